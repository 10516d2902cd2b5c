//@ about: a cluster's barrier, before which threads leave
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384
//@ cluster: 4

#include "leaving.cuh"

extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    for (int round = 0; round < 8; ++round) {
        if (round == 4) LEAVE(leaving);
        asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    }
    note(report, true);
}
