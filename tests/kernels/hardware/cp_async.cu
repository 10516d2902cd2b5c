//@ about: copies of the older kind (cp.async, 16 bytes a thread) are in flight
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 32768

#include "leaving.cuh"

extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    const unsigned first = blockIdx.x * 8192 % words;
    for (unsigned i = threadIdx.x * 4; i < 8192; i += blockDim.x * 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(shared + i)), "l"(source + first + i) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    LEAVE(leaving);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    bool right = true;
    for (unsigned i = threadIdx.x * 4; i < 8192; i += blockDim.x * 4)
        for (unsigned j = 0; j < 4; ++j) right &= shared[i + j] == pattern(first + i + j);
    note(report, right);
}
