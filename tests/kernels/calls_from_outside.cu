//@ about: a kernel that is not rewritten, as a library's is not, calls a function with barriers, in which a warp may hang
//@ entry: outside
//@ grid: 48
//@ block: 96
//@ arg: u32[1] zero
//@ arg: u32[4608] zero

__device__ void meet(const volatile unsigned *go, unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned spins = 0;
    __shared__ unsigned first;

    if (threadIdx.x == 0)
        first = i;
    __syncthreads();
    if (threadIdx.x / 32 == 1)
        while (!*go)
            spins++;
    __syncthreads();
    out[i] = first + 1 + (spins > 0);
}

// Nothing in this file says that it is a kernel.
#define PASTED(name) __##name##__
extern "C" PASTED(global) void outside(const volatile unsigned *go, unsigned *out)
{
    meet(go, out);
}
