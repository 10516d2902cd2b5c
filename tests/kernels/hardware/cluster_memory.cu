//@ about: a cluster's neighbour reads and writes the shared memory of a block whose threads leave
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 32768
//@ cluster: 2

#include "leaving.cuh"

// Threads of odd blocks leave while even ones read and write their memory for 50 us; what is left of the odd ones stays for 100 us.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    for (unsigned i = threadIdx.x; i < 8192; i += blockDim.x) shared[i] = pattern(i);
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    LEAVE(leaving);
    unsigned peer;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(address_of(shared)), "r"(blockIdx.x % 2 ^ 1));
    unsigned wrong = 0;
    const unsigned long long since = now();
    for (unsigned i = threadIdx.x; now() - since < (is_victim() ? 30000ull : 50000ull); i = (i + 128) % 8192) {
        unsigned value;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(peer + i * 4) : "memory");
        wrong += value != pattern(i);
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(peer + i * 4), "r"(pattern(i)) : "memory");
    }
    while (is_victim() && now() - since < 100000ull) {
    }
    if (who == NOBODY) asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    note(report, wrong == 0, true, true);
}
