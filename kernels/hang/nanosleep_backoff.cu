//@ about: exponential backoff on an atomic that never succeeds
//@ entry: acquire_permits
//@ grid: 4
//@ block: 32
//@ arg: i32[1] zero
//@ arg: i32[128] zero
//@ tier: 1

__device__ bool try_acquire(int *permits)
{
    if (atomicSub(permits, 1) > 0) return true;
    atomicAdd(permits, 1);
    return false;
}

__global__ void acquire_permits(int *permits, int *got)
{
    unsigned ns = 8;
    for (; !try_acquire(permits); ns = ns < 256 ? 2 * ns : ns) __nanosleep(ns); // HANG
    got[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
