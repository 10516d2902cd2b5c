// Warp groups leave in a callee while their products are under way. LEAVE says who decides: each thread (0), each warp (1), the warp group (2).
// WAIT says whether the group waits for its products first. Operands are ones, so that each sum is the number of its terms.

#ifndef LEAVE
#define LEAVE 2
#endif
#ifndef WAIT
#define WAIT 1
#endif

__device__ __noinline__ void poll(const unsigned *flag, unsigned launch)
{
    unsigned word;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(flag) : "memory");
    unsigned leaves = word == launch;
#if LEAVE == 1
    leaves = __any_sync(0xffffffff, leaves);
#elif LEAVE == 2
    asm volatile(
        "{ .reg .pred one; setp.ne.u32 one, %0, 0; barrier.cta.red.or.pred.aligned one, %1, 128, one; selp.u32 %0, 1, 0, one; }"
        : "+r"(leaves)
        : "r"(1 + threadIdx.x / 128)
        : "memory");
#endif
    if (leaves) {
#if WAIT
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
        asm volatile("exit;");
    }
}

extern "C" __global__ void __launch_bounds__(256) product(const unsigned *flag, unsigned launch, int rounds, unsigned *right)
{
    __shared__ __align__(128) unsigned shared[4096];
    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) shared[i] = 0x3f803f80u;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long matrix = ((unsigned)__cvta_generic_to_shared(shared) & 0x3ffffull) >> 4 | 8ull << 16 | 16ull << 32;
    float d[4] = {0, 0, 0, 0};
    for (int round = 0; round < rounds; ++round) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 8; ++k)
            asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
                         : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                         : "l"(matrix));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        poll(flag, launch);
        asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
    }
    bool ok = true;
    for (int i = 0; i < 4; ++i) ok &= d[i] == rounds * 8.0f * 16.0f;
    if (ok) atomicAdd(right, 1u);
}
