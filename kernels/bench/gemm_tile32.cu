//@ about: matrix product through 32 by 32 tiles, 1024 threads a block: more than 32 registers halve its occupancy
//@ entry: gemm_tile32
//@ grid: 48 48
//@ block: 32 32
//@ arg: f32[2359296] rand 13
//@ arg: f32[2359296] rand 14
//@ arg: f32[2359296] zero
//@ arg: i32 1536
//@ arg: i32 1536
//@ long: grid 22 12
//@ long: arg 0 f32[405504000] zero
//@ long: arg 1 f32[743424000] zero
//@ long: arg 3 i32 704
//@ long: arg 4 i32 1056000

constexpr int kTile = 32;

// The product of m x k and k x n, all multiples of the tile's width.
__global__ void __launch_bounds__(kTile * kTile) gemm_tile32(const float *a, const float *b, float *c, int n, int k)
{
    __shared__ float sa[kTile][kTile], sb[kTile][kTile];

    const int row = blockIdx.y * kTile + threadIdx.y;
    const int col = blockIdx.x * kTile + threadIdx.x;
    float acc = 0.0f;

    for (int k0 = 0; k0 < k; k0 += kTile) {
        sa[threadIdx.y][threadIdx.x] = a[(size_t)row * k + k0 + threadIdx.x];
        sb[threadIdx.y][threadIdx.x] = b[(size_t)(k0 + threadIdx.y) * n + col];
        __syncthreads();
        for (int i = 0; i < kTile; ++i)
            acc += sa[threadIdx.y][i] * sb[i][threadIdx.x];
        __syncthreads();
    }
    c[(size_t)row * n + col] = acc;
}
