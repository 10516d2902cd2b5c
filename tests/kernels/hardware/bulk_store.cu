//@ about: bulk copies from shared into global memory are in flight, nobody waits for their group
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 65536

#include "leaving.cuh"

// What arrives in global memory must be what stood in shared memory when the copies were issued, or nothing.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    const unsigned first = blockIdx.x * 16384 % words;
    for (unsigned i = threadIdx.x; i < 16384; i += blockDim.x) shared[i] = pattern(first + i);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int part = 0; part < 8; ++part)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(sink + first + part * 2048),
                         "r"(address_of(shared) + part * 8192), "r"(8192)
                         : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    LEAVE(leaving);
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    __syncthreads();
    note(report, true);
}
