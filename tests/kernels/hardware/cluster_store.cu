//@ about: asynchronous stores (st.async) to a cluster neighbour that leaves
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384
//@ cluster: 2

#include "leaving.cuh"

// Each thread stores 64 words into its neighbour's shared memory, whose mbarrier counts their bytes.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    __shared__ __align__(8) unsigned long long barrier;
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    if (threadIdx.x == 0) {
        init_barrier(address_of(&barrier), 1);
        expect(address_of(&barrier), 128 * 32 * 4);
    }
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    unsigned memory, remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(memory) : "r"(address_of(shared)), "r"(blockIdx.x % 2 ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address_of(&barrier)), "r"(blockIdx.x % 2 ^ 1));
    for (unsigned i = threadIdx.x; i < 128 * 32; i += 128) {
        if (i / 128 == 16) LEAVE(leaving);
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(memory + i * 4), "r"(pattern(i)), "r"(remote)
                     : "memory");
    }
    const bool arrived = wait_for(address_of(&barrier), 0);
    bool right = true;
    for (unsigned i = threadIdx.x; i < 128 * 32; i += 128) right &= !arrived || shared[i] == pattern(i);
    if (who == NOBODY) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    note(report, right, arrived, true);
}
