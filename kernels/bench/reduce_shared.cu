//@ about: sum of each block through shared memory
//@ entry: reduce_shared
//@ grid: 1056
//@ block: 256
//@ shared: 1024
//@ arg: f32[67108864] const 0.5
//@ arg: f32[1056] zero
//@ arg: u64 67108864
//@ long: arg 0 f32[5368709120] zero
//@ long: arg 2 u64 5368709120

__global__ void reduce_shared(const float *in, float *sums, size_t n)
{
    extern __shared__ float partial[];

    const int tid = threadIdx.x;

    float sum = 0.0f;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + tid; i < n; i += (size_t)gridDim.x * blockDim.x) {
        sum += in[i];
    }
    partial[tid] = sum;
    __syncthreads();

    // Halve the number of live threads in each round.
    for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
        if (tid < half) {
            partial[tid] += partial[tid + half];
        }
        __syncthreads();
    }

    if (tid == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
