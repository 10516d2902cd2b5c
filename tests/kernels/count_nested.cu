//@ about: counts the iterations of three loops, one in another
//@ entry: count_nested
//@ arg: u32[256] zero
//@ arg: u32[256] const 9
//@ arg: i32 2000

extern "C" __global__ void count_nested(volatile unsigned *steps, const unsigned *widths, int rounds)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned count = 0;
    for (int round = 0; round < rounds; ++round) {
        steps[tid] = ++count;
        for (unsigned column = 0; column < widths[tid]; ++column) {
            steps[tid] = ++count;
            unsigned bits = column;
            while (bits != 0) {
                bits >>= 1;
                steps[tid] = ++count;
            }
        }
    }
}
