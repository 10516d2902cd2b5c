//@ about: warp group products (wgmma) are in flight
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384

#include "leaving.cuh"

// All operands are ones, so that each sum is the number of its terms, whatever the layout.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) shared[i] = 0x3f803f80u;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long matrix = (address_of(shared) & 0x3ffffull) >> 4 | 8ull << 16 | 16ull << 32;
    float d[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    bool right = true;
    for (int round = 0; round < 16; ++round) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 8; ++k)
            asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                         : "l"(matrix));
        // Between the commit and the wait the products are in flight.
        asm volatile(
            "{ .reg .pred leaving; setp.ne.u32 leaving, %4, 0;\n"
            "wgmma.commit_group.sync.aligned;\n"
            "@leaving exit;\n"
            "wgmma.wait_group.sync.aligned 0; }"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(unsigned(leaving && round == 8))
            : "memory");
    }
    for (int i = 0; i < 4; ++i) right &= d[i] == 16.0f * 8 * 16;
    note(report, right);
}
