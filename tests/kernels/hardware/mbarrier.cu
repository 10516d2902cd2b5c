//@ about: an mbarrier whose producers leave before they arrive
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384

#include "leaving.cuh"

// The first warp produces, the others consume, over two mbarriers as pipelines do.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    __shared__ __align__(8) unsigned long long full, empty;
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    if (threadIdx.x == 0) {
        init_barrier(address_of(&full), 32);
        init_barrier(address_of(&empty), 96);
    }
    __syncthreads();
    bool right = true, arrived = true;
    for (unsigned round = 0; round < 16 && arrived; ++round) {
        if (round == 8) LEAVE(leaving);
        if (threadIdx.x < 32) {
            arrived = round == 0 || wait_for(address_of(&empty), (round - 1) & 1);
            shared[threadIdx.x] = pattern(round * 32 + threadIdx.x);
            arrive(address_of(&full));
        } else {
            arrived = wait_for(address_of(&full), round & 1);
            right &= !arrived || shared[threadIdx.x % 32] == pattern(round * 32 + threadIdx.x % 32);
            arrive(address_of(&empty));
        }
    }
    note(report, right, arrived);
}
