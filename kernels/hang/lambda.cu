//@ about: the loop is in a lambda inside the kernel
//@ entry: fill_by_rejection
//@ grid: 2
//@ block: 32
//@ arg: u32[64] zero
//@ arg: u32 0
//@ tier: 1

__global__ void fill_by_rejection(volatile unsigned *out, unsigned limit)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;

    auto below = [&](unsigned seed) {
        unsigned r = seed;
        do {    // HANG
            r = r * 1664525u + 1013904223u;
            out[tid] = r;
        } while (r >= limit);
        return r;
    };

    out[tid] = below(tid + 1);
}
