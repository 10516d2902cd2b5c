//@ about: softmax over rows, one warp for each row
//@ entry: softmax_rows
//@ grid: 8192
//@ block: 256
//@ arg: f32[65536000] rand 27
//@ arg: f32[65536000] zero
//@ arg: i32 65536
//@ arg: i32 1000
//@ long: grid 1056
//@ long: arg 0 f32[2112000000] zero
//@ long: arg 1 f32[2112000000] zero
//@ long: arg 2 i32 8448
//@ long: arg 3 i32 250000

#include <cmath>

template <class Op>
__device__ float warp_reduce(float v, Op op)
{
    for (int lane = 16; lane; lane >>= 1) {
        v = op(v, __shfl_xor_sync(0xffffffffu, v, lane));
    }
    return v;
}

__global__ void softmax_rows(const float *logits, float *probabilities, int rows, int cols)
{
    const int lane = threadIdx.x & 31;
    const int row = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
    if (row >= rows) {
        return;
    }

    const float *in = logits + (size_t)row * cols;
    float *out = probabilities + (size_t)row * cols;

    // The row's maximum keeps expf in range.
    float top = -INFINITY;
    for (int c = lane; c < cols; c += 32) {
        top = fmaxf(top, in[c]);
    }
    top = warp_reduce(top, [](float a, float b) { return fmaxf(a, b); });

    float sum = 0.0f;
    for (int c = lane; c < cols; c += 32) {
        const float e = expf(in[c] - top);
        out[c] = e;
        sum += e;
    }
    sum = warp_reduce(sum, [](float a, float b) { return a + b; });

    for (int c = lane; c < cols; c += 32) {
        out[c] /= sum;
    }
}
