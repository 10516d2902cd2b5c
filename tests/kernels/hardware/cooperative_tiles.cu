//@ about: cooperative groups: tiles of 32 and of 8 threads, their barriers, shuffles and votes
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384

#include "leaving.cuh"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    const auto tile = cg::tiled_partition<8>(block);
    bool right = true;
    for (unsigned round = 0; round < 64; ++round) {
        if (round == 32) LEAVE(leaving);
        const bool all = round < 32 || who == NOBODY;
        right &= !all || tile.shfl(threadIdx.x, 3) == (threadIdx.x & ~7u) + 3;
        right &= !all || warp.shfl_xor(threadIdx.x, 16) == (threadIdx.x ^ 16);
        right &= !all || tile.all(true);
        tile.sync();
        warp.sync();
    }
    note(report, right);
}
