//@ about: a named barrier with a count of threads, of which some leave
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384

#include "leaving.cuh"

extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    for (unsigned round = 0; round < 16; ++round) {
        if (round == 8) LEAVE(leaving);
        asm volatile("barrier.sync 1, 128;" ::: "memory");
    }
    note(report, true);
}
