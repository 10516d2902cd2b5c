//@ about: a named barrier at which one warp arrives (barrier.arrive) and others wait
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

    for (unsigned round = 0; round < 8; ++round) {
        if (round == 4) LEAVE(leaving);
        if (threadIdx.x < 32) {
            asm volatile("barrier.arrive 1, 128;\nbarrier.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("barrier.sync 1, 128;\nbarrier.arrive 2, 128;" ::: "memory");
        }
    }
    note(report, true);
}
