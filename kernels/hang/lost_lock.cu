//@ about: a spin lock that an early return forgets to release
//@ entry: add_small
//@ grid: 64
//@ block: 32
//@ arg: u32[1] zero
//@ arg: i32[64] mod 101
//@ arg: i64[1] zero
//@ tier: 1

__global__ void add_small(unsigned *lock, const int *values, volatile long long *total)
{
    if (threadIdx.x != 0)
        return;

    while (atomicCAS(lock, 0u, 1u) != 0u)   // HANG
        __nanosleep(100);
    __threadfence();

    const int v = values[blockIdx.x];
    if (v > 40)
        return;             // still holds the lock
    *total = *total + v;

    __threadfence();
    atomicExch(lock, 0u);
}
