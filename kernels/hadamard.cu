//@ about: Walsh-Hadamard transform of rows in registers, every loop unrolled up to template parameters, three and four deep
//@ entry: transform
//@ grid: 6
//@ block: 128
//@ shared: 4096
//@ arg: f32[49152] rand 61
//@ arg: f32[49152] zero
//@ arg: i32 8000
//@ arg: f32 0.5

template <int LogN, int Chunks>
__device__ __forceinline__ void within_thread(float (&x)[Chunks][1 << LogN])
{
    constexpr int N = 1 << LogN;
#pragma unroll
    for (int i = 0; i < LogN; ++i) {
        const int stride = 1 << i;
#pragma unroll
        for (int j = 0; j < N / 2; ++j) {
            const int low = j & (stride - 1);
            const int at = (j - low) * 2 + low;
#pragma unroll
            for (int c = 0; c < Chunks; ++c) {
                const float a = x[c][at], b = x[c][at + stride];
                x[c][at] = a + b;
                x[c][at + stride] = a - b;
            }
        }
    }
}

template <int LogLanes, int Chunks, int Items>
__device__ __forceinline__ void within_warp(float (&x)[Chunks][Items])
{
    const int lane = threadIdx.x % (1 << LogLanes);
#pragma unroll
    for (int step = 0; step < LogLanes; ++step) {
        const int mask = 1 << step;
        const float sign = lane & mask ? -1.f : 1.f;
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
#pragma unroll
            for (int i = 0; i < Items; ++i)
                x[c][i] = sign * x[c][i] + __shfl_xor_sync(0xffffffffu, x[c][i], mask);
        }
    }
}

// Each thread's items go to the thread that holds the same lane of another warp.
template <int Rounds, int PerRound, int Items, int Warps, bool There>
__device__ __forceinline__ void exchange(float (&x)[Rounds * PerRound][Items], float4 *shared)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = threadIdx.x % Warps, column = threadIdx.x / Warps;
    const int mine = warp * 32 + (lane ^ warp), theirs = row * 32 + (column ^ row);
#pragma unroll
    for (int round = 0; round < Rounds; ++round) {
        __syncthreads();
#pragma unroll
        for (int c = 0; c < PerRound; ++c)
            shared[c * 32 * Warps + (There ? mine : theirs)] = *reinterpret_cast<float4 *>(x[round * PerRound + c]);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < PerRound; ++c)
            *reinterpret_cast<float4 *>(x[round * PerRound + c]) = shared[c * 32 * Warps + (There ? theirs : mine)];
    }
}

template <int Threads, int LogChunks>
__global__ void __launch_bounds__(Threads) transform(const float *in, float *out, int dim, float scale)
{
    constexpr int Items = 4, Chunks = 1 << LogChunks, Warps = Threads / 32;
    extern __shared__ float4 shared[];
    const int row = blockIdx.x * Chunks * Threads * Items;
    alignas(16) float x[Chunks][Items];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int at = (c * Threads + threadIdx.x) * Items;
#pragma unroll
        for (int i = 0; i < Items; ++i)
            x[c][i] = at + i < dim ? in[row + at + i] : 0.f;
    }
    within_thread<2, Chunks>(x);
    within_warp<5, Chunks, Items>(x);
    exchange<Chunks / 2, 2, Items, Warps, true>(x, shared);
    within_warp<2, Chunks, Items>(x);
    exchange<Chunks / 2, 2, Items, Warps, false>(x, shared);
    float turned[Items][Chunks];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
        for (int i = 0; i < Items; ++i)
            turned[i][c] = x[c][i];
    }
    within_thread<LogChunks, Items>(turned);
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        const int at = (c * Threads + threadIdx.x) * Items;
#pragma unroll
        for (int i = 0; i < Items; ++i)
            if (at + i < dim)
                out[row + at + i] = turned[i][c] * scale;
    }
}

template __global__ void transform<128, 4>(const float *, float *, int, float);
