//@ about: histogram of bytes, private copy in shared memory
//@ entry: histogram256
//@ grid: 20
//@ block: 256
//@ arg: u8[300000] rand 14
//@ arg: u32 300000
//@ arg: u32[256] zero

#define BINS 256

extern "C" __global__ void histogram256(const unsigned char *data, unsigned int size, unsigned int *bins)
{
    __shared__ unsigned int local[BINS];

    for (int b = threadIdx.x; b < BINS; b += blockDim.x) local[b] = 0;
    __syncthreads();

    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < size) {
        atomicAdd(&local[data[i]], 1u);
        i += blockDim.x * gridDim.x;
    }
    __syncthreads();

    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}
