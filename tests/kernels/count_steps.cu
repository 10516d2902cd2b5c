//@ about: every thread counts the iterations of one endless loop; fuel says how many there are
//@ entry: count_steps
//@ grid: 8
//@ block: 128
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
