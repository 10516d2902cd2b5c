//@ about: does nothing, so that a launch costs what launching costs
//@ entry: empty

extern "C" __global__ void empty()
{
}
