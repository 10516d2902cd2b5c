//@ about: one thread loops while the rest of its block wait at __syncthreads
//@ entry: collect_sums
//@ grid: 4
//@ block: 128
//@ arg: i32[512] mod 77
//@ arg: i32[4] zero
//@ arg: i32[1] zero
//@ tier: 1

__global__ void collect_sums(const int *in, int *sums, const volatile int *chunks_ready)
{
    __shared__ int values[128];
    values[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];

    if (threadIdx.x == 0) {
        while (*chunks_ready <= (int)blockIdx.x)    // HANG
            __nanosleep(20);
    }
    __syncthreads();

    if (threadIdx.x == 1) {
        int sum = 0;
        for (unsigned i = 0; i < blockDim.x; ++i) sum += values[i];
        sums[blockIdx.x] = sum;
    }
}
