//@ about: integer sum and maximum with warp shuffles, then one atomic for each warp
//@ entry: reduce_shuffle
//@ grid: 1056
//@ block: 256
//@ arg: i32[67108864] mod 1000003
//@ arg: u64 67108864
//@ arg: u64[1] zero
//@ arg: i32[1] const -1
//@ long: grid 792
//@ long: arg 0 i32[5368709120] zero
//@ long: arg 1 u64 5368709120

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

__global__ void reduce_shuffle(const int *values, size_t n, unsigned long long *sum, int *largest)
{
    long long mine = 0;
    int top = -1;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)blockDim.x * gridDim.x)
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
