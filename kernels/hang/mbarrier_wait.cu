//@ about: a wait for an mbarrier at which one thread too few arrives; the loop is in C++ around try_wait
//@ entry: staged_copy
//@ grid: 2
//@ block: 64
//@ min-arch: 90
//@ arg: f32[128] rand 6
//@ arg: f32[128] zero
//@ tier: 1

#include <cstdint>

__device__ inline uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ inline void mbarrier_init(uint64_t *bar, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(shared_address(bar)), "r"(arrivals) : "memory");
}

__device__ inline void mbarrier_arrive(uint64_t *bar)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" :: "r"(shared_address(bar)) : "memory");
}

__device__ inline bool mbarrier_try_wait(uint64_t *bar, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
                 "  selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(done) : "r"(shared_address(bar)), "r"(parity) : "memory");
    return done != 0;
}

__global__ void staged_copy(const float *in, float *out)
{
    __shared__ uint64_t full;
    __shared__ float stage[64];

    if (threadIdx.x == 0)
        mbarrier_init(&full, blockDim.x + 1);   // nobody plays the producer
    __syncthreads();

    stage[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    mbarrier_arrive(&full);
    while (!mbarrier_try_wait(&full, 0)) { }    // HANG

    out[blockIdx.x * blockDim.x + threadIdx.x] = stage[threadIdx.x ^ 1];
}
