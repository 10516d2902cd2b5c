#pragma once
// What the experiments share. Blocks of the first half of a grid experiment, and in these only odd ones lose threads; blocks of the
// second half begin as room comes free, and see whether anybody writes into their shared memory.

// Who leaves, by the number that the host passes.
enum Who { NOBODY, THREAD, HALF_WARP, WARP, BLOCK };

// What is counted, by its place in the report.
enum Count {
    ENDED,          // threads that came to their end
    WRONG,          // wrong values that threads of blocks with leavers saw
    GIVEN_UP,       // waits that were given up after a while, as a poll would
    STRAY,          // words of a later block's shared memory that somebody changed
    BYSTANDER,      // wrong values or waits given up in blocks that nobody left
};

__device__ bool is_victim() { return blockIdx.x % 2 == 1; }

__device__ bool leaves(int who)
{
    if (!is_victim()) return false;
    const unsigned thread = threadIdx.x;
    return who == THREAD ? thread == 0 : who == HALF_WARP ? thread < 32 && thread % 2 == 0 : who == WARP ? thread < 32 : who == BLOCK;
}

// Whoever leaves knew it long before: nothing but the exit stands between what is in flight and what would wait for it.
#define LEAVE(leaving)                      \
    do {                                    \
        if (leaving) asm volatile("exit;"); \
    } while (0)

__device__ unsigned pattern(unsigned i) { return i * 2654435761u | 1u; }

__device__ unsigned address_of(const void *shared) { return (unsigned)__cvta_generic_to_shared(shared); }

__device__ unsigned long long now()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// A wait on an mbarrier that ends after two milliseconds: whoever polls does not wait for ever.
__device__ bool wait_for(unsigned barrier, unsigned parity)
{
    const unsigned long long since = now();
    while (true) {
        unsigned done;
        asm volatile(
            "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
        if (done) return true;
        if (now() - since > 2000000ull) return false;
    }
}

__device__ void init_barrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ void arrive(unsigned barrier)
{
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" ::"r"(barrier) : "memory");
}

__device__ void expect(unsigned barrier, unsigned bytes)
{
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1; }" ::"r"(barrier), "r"(bytes) : "memory");
}

// The end of a thread. `concerned` are those that cannot but notice that others have left: their block, unless the caller says more.
__device__ void note(unsigned *report, bool right, bool arrived, bool concerned)
{
    if (!arrived) atomicAdd(&report[concerned ? GIVEN_UP : BYSTANDER], 1u);
    if (!right) atomicAdd(&report[concerned ? WRONG : BYSTANDER], 1u);
    atomicAdd(&report[ENDED], 1u);
}

__device__ void note(unsigned *report, bool right, bool arrived = true) { note(report, right, arrived, is_victim()); }

// A block of the second half: its shared memory must stay as it wrote it.
__device__ bool is_later(unsigned *report, unsigned *shared)
{
    if (blockIdx.x < gridDim.x / 2) return false;
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) shared[i] = pattern(i ^ 0x5a5a5a5au);
    __syncthreads();
    const unsigned long long since = now();
    while (now() - since < 20000ull) {
    }
    unsigned stray = 0;
    for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) stray += shared[i] != pattern(i ^ 0x5a5a5a5au);
    if (stray) atomicAdd(&report[STRAY], stray);
    return true;
}
