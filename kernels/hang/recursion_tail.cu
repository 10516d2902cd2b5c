//@ about: unbounded tail recursion along a cycle, which nvcc turns into a loop
//@ entry: chain_length
//@ flags: -Xptxas=--suppress-stack-size-warning
//@ block: 64
//@ arg: i32[1024] mod 1024
//@ arg: i32[1024] zero
//@ arg: u32[64] zero
//@ tier: 1

__device__ __noinline__ unsigned steps_from(const int *next, volatile int *trace, int node, unsigned steps) // HANG
{
    if (node < 0)
        return steps;
    trace[node] = steps;
    return steps_from(next, trace, next[node], steps + 1);
}

__global__ void chain_length(const int *next, int *trace, unsigned *length)
{
    length[threadIdx.x] = steps_from(next, trace, threadIdx.x, 0);
}
