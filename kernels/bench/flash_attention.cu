//@ about: attention with a running softmax over tiles of keys and values, one query for each thread
//@ entry: flash_attention
//@ grid: 16 16
//@ block: 128
//@ arg: f32[2097152] rand 28
//@ arg: f32[2097152] rand 29
//@ arg: f32[2097152] rand 30
//@ arg: f32[2097152] zero
//@ arg: i32 2048
//@ arg: f32 0.125
//@ long: grid 264 1
//@ long: arg 0 f32[64000000] zero
//@ long: arg 1 f32[64000000] zero
//@ long: arg 2 f32[64000000] zero
//@ long: arg 3 f32[64000000] zero
//@ long: arg 4 i32 1000000

#include <cmath>

constexpr int kDim = 64;
constexpr int kKeys = 32;

// Each of the four is heads x length x kDim; blockIdx.y is the head.
__global__ void __launch_bounds__(128)
flash_attention(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, float *__restrict__ o,
                int length, float scale)
{
    __shared__ float4 ks[kKeys][kDim / 4], vs[kKeys][kDim / 4];

    const size_t head = (size_t)blockIdx.y * length * kDim;
    const int query = blockIdx.x * blockDim.x + threadIdx.x;
    const bool live = query < length;

    float4 mine[kDim / 4], acc[kDim / 4];
#pragma unroll
    for (int d = 0; d < kDim / 4; ++d) {
        mine[d] = live ? reinterpret_cast<const float4 *>(q + head + (size_t)query * kDim)[d] : make_float4(0, 0, 0, 0);
        acc[d] = make_float4(0, 0, 0, 0);
    }
    float top = -INFINITY, sum = 0.0f;

    for (int first = 0; first < length; first += kKeys) {
        const int keys = min(kKeys, length - first);
        const float4 *kt = reinterpret_cast<const float4 *>(k + head + (size_t)first * kDim);
        const float4 *vt = reinterpret_cast<const float4 *>(v + head + (size_t)first * kDim);
        for (int i = threadIdx.x; i < keys * (kDim / 4); i += blockDim.x) {
            ks[i / (kDim / 4)][i % (kDim / 4)] = kt[i];
            vs[i / (kDim / 4)][i % (kDim / 4)] = vt[i];
        }
        __syncthreads();

        for (int j = 0; j < keys; ++j) {
            float dot = 0.0f;
#pragma unroll
            for (int d = 0; d < kDim / 4; ++d) {
                const float4 key = ks[j][d];
                dot += mine[d].x * key.x + mine[d].y * key.y + mine[d].z * key.z + mine[d].w * key.w;
            }
            dot *= scale;
            if (dot > top) {
                // What was summed so far is scaled to the new maximum.
                const float shrink = expf(top - dot);
                sum *= shrink;
#pragma unroll
                for (int d = 0; d < kDim / 4; ++d) {
                    acc[d].x *= shrink;
                    acc[d].y *= shrink;
                    acc[d].z *= shrink;
                    acc[d].w *= shrink;
                }
                top = dot;
            }
            const float p = expf(dot - top);
            sum += p;
#pragma unroll
            for (int d = 0; d < kDim / 4; ++d) {
                const float4 value = vs[j][d];
                acc[d].x += p * value.x;
                acc[d].y += p * value.y;
                acc[d].z += p * value.z;
                acc[d].w += p * value.w;
            }
        }
        __syncthreads();
    }

    if (!live) return;
#pragma unroll
    for (int d = 0; d < kDim / 4; ++d)
        reinterpret_cast<float4 *>(o + head + (size_t)query * kDim)[d] =
            make_float4(acc[d].x / sum, acc[d].y / sum, acc[d].z / sum, acc[d].w / sum);
}
