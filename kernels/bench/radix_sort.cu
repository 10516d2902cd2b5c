//@ about: radix sort of segments of 2048 keys, a bit at a time, in shared memory
//@ entry: radix_sort
//@ grid: 528
//@ block: 256
//@ arg: u32[8650752] rand 32
//@ arg: u32[8650752] zero
//@ arg: i32 4224
//@ long: arg 0 u32[540672000] zero
//@ long: arg 1 u32[540672000] zero
//@ long: arg 2 i32 264000

constexpr int kThreads = 256;
constexpr int kEach = 8;
constexpr int kSegment = kThreads * kEach;

__global__ void __launch_bounds__(kThreads) radix_sort(const unsigned *in, unsigned *out, int segments)
{
    __shared__ unsigned keys[kSegment];
    __shared__ int warp_zeros[kThreads / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (int segment = blockIdx.x; segment < segments; segment += gridDim.x) {
        for (int i = threadIdx.x; i < kSegment; i += kThreads)
            keys[i] = in[(size_t)segment * kSegment + i];
        __syncthreads();

        for (int bit = 0; bit < 32; ++bit) {
            // Each thread has eight keys in a row.
            unsigned mine[kEach];
            int zeros = 0;
#pragma unroll
            for (int e = 0; e < kEach; ++e) {
                mine[e] = keys[threadIdx.x * kEach + e];
                zeros += (mine[e] >> bit & 1) == 0;
            }

            // How many zeros stand before them, and in all.
            int before = zeros;
            for (int d = 1; d < 32; d *= 2) {
                const int below = __shfl_up_sync(0xffffffffu, before, d);
                if (lane >= d) before += below;
            }
            if (lane == 31) warp_zeros[warp] = before;
            __syncthreads();
            before -= zeros;
            int all = 0;
            for (int w = 0; w < kThreads / 32; ++w) {
                if (w < warp) before += warp_zeros[w];
                all += warp_zeros[w];
            }

            int zero_at = before, one_at = all + (int)threadIdx.x * kEach - before;
#pragma unroll
            for (int e = 0; e < kEach; ++e)
                keys[(mine[e] >> bit & 1) == 0 ? zero_at++ : one_at++] = mine[e];
            __syncthreads();
        }

        for (int i = threadIdx.x; i < kSegment; i += kThreads)
            out[(size_t)segment * kSegment + i] = keys[i];
        __syncthreads();
    }
}
