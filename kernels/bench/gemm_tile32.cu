//@ about: matrix product through 32 by 32 tiles, 1024 threads a block: more than 32 registers halve its occupancy
//@ entry: gemm_tile32
//@ grid: 48 48
//@ block: 32 32
//@ arg: f32[2359296] rand 13
//@ arg: f32[2359296] rand 14
//@ arg: f32[2359296] zero
//@ arg: i32 1536
//@ long: grid 12 22
//@ long: arg 0 f32[2112000000] zero
//@ long: arg 1 f32[2112000000] zero
//@ long: arg 3 i32 1056000

constexpr int kTile = 32;

// Matrices of n x n; n is a multiple of the tile's width.
__global__ void __launch_bounds__(kTile * kTile) gemm_tile32(const float *a, const float *b, float *c, int n)
{
    __shared__ float sa[kTile][kTile], sb[kTile][kTile];

    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    float acc = 0.0f;

    for (int k0 = 0; k0 < n; k0 += kTile) {
        sa[threadIdx.y][threadIdx.x] = a[(size_t)row * n + k0 + threadIdx.x];
        sb[threadIdx.y][threadIdx.x] = b[(size_t)(k0 + threadIdx.y) * n + col];
        __syncthreads();
        for (int k = 0; k < kTile; ++k)
            acc += sa[threadIdx.y][k] * sb[k][threadIdx.x];
        __syncthreads();
    }
    c[(size_t)row * n + col] = acc;
}
