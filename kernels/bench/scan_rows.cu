//@ about: prefix sums of rows, a block for each, tile after tile with a carry
//@ entry: scan_rows
//@ grid: 1056
//@ block: 256
//@ arg: u32[34603008] mod 1000003
//@ arg: u32[34603008] zero
//@ arg: u64 32768
//@ long: arg 0 u32[2162688000] zero
//@ long: arg 1 u32[2162688000] zero
//@ long: arg 2 u64 2048000

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ unsigned warp_inclusive(unsigned v, int lane)
{
    for (int d = 1; d < 32; d *= 2) {
        const unsigned below = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += below;
    }
    return v;
}

__global__ void scan_rows(const unsigned *in, unsigned *out, size_t columns)
{
    __shared__ unsigned sums[kWarps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    in += blockIdx.x * columns;
    out += blockIdx.x * columns;

    unsigned carry = 0;
    for (size_t start = 0; start < columns; start += kThreads) {
        const size_t i = start + threadIdx.x;
        const unsigned sum = warp_inclusive(i < columns ? in[i] : 0, lane);
        if (lane == 31) sums[warp] = sum;
        __syncthreads();

        if (warp == 0) {
            const unsigned all = warp_inclusive(lane < kWarps ? sums[lane] : 0, lane);
            if (lane < kWarps) sums[lane] = all;
        }
        __syncthreads();

        if (i < columns) out[i] = carry + (warp ? sums[warp - 1] : 0) + sum;
        carry += sums[kWarps - 1];
        __syncthreads();
    }
}
