//@ about: tensor copies (TMA) from global into shared memory are in flight
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 65536

#include "leaving.cuh"

// The source as a matrix of 1024 columns. Eight boxes of 64 columns and 32 rows, one below the other; the first thread issues them.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words, const void *map)
{
    extern __shared__ __align__(128) unsigned shared[];
    __shared__ __align__(8) unsigned long long barrier;
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    const unsigned column = blockIdx.x * 64 % 1024, row = blockIdx.x / 16 * 256 % 1024;
    if (threadIdx.x == 0) {
        init_barrier(address_of(&barrier), 1);
        expect(address_of(&barrier), 65536);
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
        for (unsigned part = 0; part < 8; ++part)
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                             address_of(shared) + part * 8192),
                         "l"(map), "r"(column), "r"(row + part * 32), "r"(address_of(&barrier))
                         : "memory");
    }
    __syncthreads();
    LEAVE(leaving);
    const bool arrived = wait_for(address_of(&barrier), 0);
    bool right = true;
    for (unsigned i = threadIdx.x; i < 16384; i += blockDim.x)
        right &= !arrived || shared[i] == pattern((row + i / 64) * 1024 + column + i % 64);
    note(report, right, arrived);
}
