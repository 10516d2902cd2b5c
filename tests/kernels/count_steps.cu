//@ about: counts the iterations of one long loop; fuel says how many there are
//@ entry: count_steps
//@ arg: u32[1024] zero
//@ arg: u32 1000000

extern "C" __global__ void count_steps(volatile unsigned *steps, unsigned enough)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned count = 0;
    while (count != enough) {
        ++count;
        steps[i] = count;
    }
}
