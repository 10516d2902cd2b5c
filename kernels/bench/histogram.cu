//@ about: histogram of bytes, private copy in shared memory, a word at a time
//@ entry: histogram256
//@ grid: 1056
//@ block: 256
//@ arg: u32[33554432] rand 23
//@ arg: u64 33554432
//@ arg: u32[256] zero
//@ long: arg 0 u32[1073741824] zero
//@ long: arg 1 u64 1073741824

#define BINS 256

extern "C" __global__ void histogram256(const unsigned int *words, size_t count, unsigned int *bins)
{
    __shared__ unsigned int local[BINS];

    for (int b = threadIdx.x; b < BINS; b += blockDim.x) local[b] = 0;
    __syncthreads();

    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    while (i < count) {
        const unsigned int word = words[i];
        atomicAdd(&local[word & 0xff], 1u);
        atomicAdd(&local[word >> 8 & 0xff], 1u);
        atomicAdd(&local[word >> 16 & 0xff], 1u);
        atomicAdd(&local[word >> 24], 1u);
        i += (size_t)blockDim.x * gridDim.x;
    }
    __syncthreads();

    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}
