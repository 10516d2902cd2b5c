//@ about: voting barriers (barrier.red.popc.aligned), some lanes of a warp gone
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
    for (unsigned round = 0; round < 16; ++round) {
        if (round == 8) LEAVE(leaving);
        shared[threadIdx.x] = pattern(round * 128 + threadIdx.x);
        {
            unsigned voters;
            asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; barrier.red.popc.aligned.u32 %0, 0, p; }" : "=r"(voters)::"memory");
            right &= (round >= 8 && who != NOBODY) || voters == 128;
        }
        const unsigned other = threadIdx.x ^ 64;
        right &= (round >= 8 && who != NOBODY) || shared[other] == pattern(round * 128 + other);
        {
            unsigned voters;
            asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0; barrier.red.popc.aligned.u32 %0, 0, p; }" : "=r"(voters)::"memory");
            right &= (round >= 8 && who != NOBODY) || voters == 128;
        }
    }
    note(report, right);
}
