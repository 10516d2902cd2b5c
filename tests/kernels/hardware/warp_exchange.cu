//@ about: warp-level exchanges with a full mask: shuffles, votes, matches, sums, __syncwarp
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

    bool right = true;
    for (unsigned round = 0; round < 64; ++round) {
        if (round == 32) LEAVE(leaving);
        const bool all = round < 32 || who == NOBODY;
        const unsigned next = __shfl_sync(0xffffffffu, threadIdx.x, (threadIdx.x + 1) % 32);
        const unsigned voters = __ballot_sync(0xffffffffu, 1);
        const unsigned same = __match_any_sync(0xffffffffu, threadIdx.x / 32);
        const unsigned sum = __reduce_add_sync(0xffffffffu, 1u);
        __syncwarp();
        right &= !all || (next == (threadIdx.x & ~31u) + (threadIdx.x + 1) % 32 && voters == 0xffffffffu && same == 0xffffffffu && sum == 32);
    }
    note(report, right);
}
