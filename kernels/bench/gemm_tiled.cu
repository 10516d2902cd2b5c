//@ about: matrix product through 16 by 16 tiles in shared memory, ragged edges
//@ entry: gemm_tiled
//@ grid: 64 64
//@ block: 16 16
//@ arg: f32[1048576] rand 11
//@ arg: f32[1048576] rand 12
//@ arg: f32[1048576] zero
//@ arg: i32 1024
//@ arg: i32 1024
//@ arg: i32 1024
//@ long: grid 33 32
//@ long: arg 0 f32[2048000000] zero
//@ long: arg 1 f32[2112000000] zero
//@ long: arg 3 i32 512
//@ long: arg 4 i32 528
//@ long: arg 5 i32 4000000

#define TILE 16

__global__ void gemm_tiled(const float *__restrict__ a,    // m x k
                           const float *__restrict__ b,    // k x n
                           float *__restrict__ c,          // m x n
                           int m, int n, int k)
{
    __shared__ float as[TILE][TILE];
    __shared__ float bs[TILE][TILE + 1];

    int const tx = threadIdx.x;
    int const ty = threadIdx.y;
    int const row = blockIdx.y * TILE + ty;
    int const col = blockIdx.x * TILE + tx;

    float sum = 0;
    for (int t = 0; t < (k + TILE - 1) / TILE; ++t)
    {
        int const ak = t * TILE + tx;
        int const bk = t * TILE + ty;

        as[ty][tx] = (row < m && ak < k) ? a[row * k + ak] : 0.0f;
        bs[ty][tx] = (bk < k && col < n) ? b[bk * n + col] : 0.0f;
        __syncthreads();

#pragma unroll
        for (int i = 0; i < TILE; ++i)
            sum += as[ty][i] * bs[i][tx];

        __syncthreads();
    }

    if (row < m && col < n)
        c[row * n + col] = sum;
}
