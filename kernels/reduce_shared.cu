//@ about: sum of each block through dynamic shared memory
//@ entry: block_sums
//@ grid: 64
//@ block: 256
//@ shared: 1024
//@ arg: f32[100000] rand 5
//@ arg: f32[64] zero
//@ arg: i32 100000

__global__ void block_sums(const float *in, float *sums, int n)
{
    extern __shared__ float partial[];

    const int tid = threadIdx.x;

    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) {
        sum += in[i];
    }
    partial[tid] = sum;
    __syncthreads();

    // Halve the number of live threads in each round.
    for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            partial[tid] += partial[tid + half];
        }
        __syncthreads();
    }

    if (tid == 0) {
        sums[blockIdx.x] = partial[0];
    }
}
