//@ about: integer sum and maximum with warp shuffles, then one atomic for each warp
//@ entry: sum_and_max
//@ grid: 48
//@ block: 192
//@ arg: i32[90000] mod 100003
//@ arg: i32 90000
//@ arg: u64[1] zero
//@ arg: i32[1] const -1

#define FULL_MASK 0xffffffffu

__inline__ __device__ long long warp_sum(long long v)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        v += __shfl_down_sync(FULL_MASK, v, offset);
    return v;
}

__inline__ __device__ int warp_max(int v)
{
    for (int mask = warpSize / 2; mask > 0; mask >>= 1)
        v = max(v, __shfl_xor_sync(FULL_MASK, v, mask));
    return v;
}

__global__ void sum_and_max(const int *values, int n, unsigned long long *sum, int *largest)
{
    long long mine = 0;
    int top = -1;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    {
        const int v = values[i];
        mine += v;
        top = max(top, v);
    }

    mine = warp_sum(mine);
    top  = warp_max(top);

    if (threadIdx.x % warpSize == 0)
    {
        atomicAdd(sum, (unsigned long long)mine);
        atomicMax(largest, top);
    }
}
