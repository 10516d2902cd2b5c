//@ about: layer norm, one block for each row, block sum as a local lambda
//@ entry: layer_norm
//@ grid: 16896
//@ block: 256
//@ arg: f32[69206016] rand 24
//@ arg: f32[4096] rand 25
//@ arg: f32[4096] rand 26
//@ arg: f32[69206016] zero
//@ arg: i32 4096
//@ arg: f32 0.00001
//@ long: grid 792
//@ long: arg 0 f32[2112000000] zero
//@ long: arg 1 f32[2000000] zero
//@ long: arg 2 f32[2000000] zero
//@ long: arg 3 f32[2112000000] zero
//@ long: arg 4 i32 2000000

__global__ void layer_norm(const float *x, const float *gamma, const float *beta, float *y, int width, float eps)
{
    __shared__ float scratch[256];

    auto block_sum = [](float v) -> float {
        scratch[threadIdx.x] = v;
        __syncthreads();
        for (int half = blockDim.x >> 1; half != 0; half >>= 1) {
            if ((int)threadIdx.x < half)
                scratch[threadIdx.x] += scratch[threadIdx.x + half];
            __syncthreads();
        }
        const float total = scratch[0];
        __syncthreads();    // scratch may be used again from here
        return total;
    };

    const float *row = x + (size_t)blockIdx.x * width;
    float *out = y + (size_t)blockIdx.x * width;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        sum += row[i];
    const float mean = block_sum(sum) / width;

    float squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
    {
        const float d = row[i] - mean;
        squares += d * d;
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / width + eps);

    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[i] = (row[i] - mean) * scale * gamma[i] + beta[i];
}
