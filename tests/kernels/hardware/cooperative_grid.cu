//@ about: cooperative groups: the barrier of the whole grid
//@ entry: experiment
//@ grid: 132
//@ block: 128
//@ shared: 16384
//@ cooperative: yes

#include "leaving.cuh"

#include <cooperative_groups.h>

// Here no block comes later: all must be resident.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    const bool leaving = leaves(who);
    const auto grid = cooperative_groups::this_grid();
    for (unsigned round = 0; round < 8; ++round) {
        if (round == 4) LEAVE(leaving);
        grid.sync();
    }
    note(report, true);
}
