//@ about: cuda::barrier of a block, whose wait is in a header
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384

#include "leaving.cuh"

#include <cuda/barrier>

extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    for (unsigned round = 0; round < 16; ++round) {
        if (round == 8) LEAVE(leaving);
        barrier.arrive_and_wait();
    }
    note(report, true);
}
