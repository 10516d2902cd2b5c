//@ about: a reduction goes on at a half of 0: s >= 0 where s > 0 was meant, the whole block meets in each round
//@ entry: block_minimum
//@ grid: 4
//@ block: 128
//@ arg: i32[512] rand 9
//@ arg: i32[4] zero
//@ tier: 1

__global__ void block_minimum(const int *in, int *lowest)
{
    __shared__ int values[256];
    const int t = threadIdx.x;
    values[t] = in[blockIdx.x * blockDim.x + t];
    values[t + 128] = 0x7fffffff;
    __syncthreads();

    for (int s = blockDim.x / 2; s >= 0; s >>= 1)   // HANG
    {
        if (t < s)
            values[t] = min(values[t], values[t + s]);
        __syncthreads();
    }
    if (t == 0) lowest[blockIdx.x] = values[0];
}
