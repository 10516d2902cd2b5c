//@ about: an unsigned index counts down to a bound of 0, and below it
//@ entry: suffix_sums
//@ grid: 2
//@ block: 32
//@ arg: u32[1024] mod 1021
//@ arg: u32[64] zero
//@ arg: u32 0
//@ arg: u32 1023
//@ tier: 1

__global__ void suffix_sums(const unsigned *in, volatile unsigned *sums, unsigned first, unsigned last)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned i = last; i >= first; --i) // HANG
        sums[tid] = sums[tid] + in[i % (last + 1)];
}
