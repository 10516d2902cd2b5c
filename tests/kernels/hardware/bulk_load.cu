//@ about: bulk copies from global into shared memory are in flight
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 65536

#include "leaving.cuh"

// Eight copies of 8 KB; the first thread issues them, and all wait for their bytes.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    __shared__ __align__(8) unsigned long long barrier;
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    const unsigned first = blockIdx.x * 16384 % words;
    if (threadIdx.x == 0) {
        init_barrier(address_of(&barrier), 1);
        expect(address_of(&barrier), 65536);
        for (int part = 0; part < 8; ++part)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             address_of(shared) + part * 8192),
                         "l"(source + first + part * 2048), "r"(8192), "r"(address_of(&barrier))
                         : "memory");
    }
    __syncthreads();
    LEAVE(leaving);
    const bool arrived = wait_for(address_of(&barrier), 0);
    bool right = true;
    for (unsigned i = threadIdx.x; i < 16384; i += blockDim.x) right &= !arrived || shared[i] == pattern(first + i);
    note(report, right, arrived);
}
