//@ about: matrix product of bf16 on tensor cores: 128 by 128 tiles, four warps, two stages of shared memory
//@ entry: gemm_bf16
//@ grid: 32 16
//@ block: 128
//@ min-arch: 80
//@ arg: bf16[8388608] rand 15
//@ arg: bf16[16777216] rand 16
//@ arg: f32[8388608] zero
//@ arg: i32 2048
//@ arg: i32 4096
//@ arg: i32 4096
//@ long: grid 11 12
//@ long: arg 0 bf16[3221225472] zero
//@ long: arg 1 bf16[2952790016] zero
//@ long: arg 3 i32 1536
//@ long: arg 4 i32 1408
//@ long: arg 5 i32 2097152

#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int PAD = 8;      // bf16 elements: keeps rows of the tiles in different banks

// c = a b, row major; m, n and k are multiples of the tile's sizes.
__global__ void __launch_bounds__(128)
gemm_bf16(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, float *__restrict__ c, int m, int n, int k)
{
    __shared__ __align__(16) __nv_bfloat16 as[2][BM][BK + PAD];
    __shared__ __align__(16) __nv_bfloat16 bs[2][BK][BN + PAD];

    const int warp = threadIdx.x / 32;
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int warp_row = (warp / 2) * 64, warp_col = (warp % 2) * 64;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[4][4];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            wmma::fill_fragment(acc[i][j], 0.0f);

    // Eight elements, 16 bytes, at a time: 512 of these in each tile.
    auto load = [&](int stage, int k0) {
#pragma unroll
        for (int v = threadIdx.x; v < BM * BK / 8; v += 128) {
            const int r = v / (BK / 8), q = v % (BK / 8) * 8;
            *reinterpret_cast<int4 *>(&as[stage][r][q]) = *reinterpret_cast<const int4 *>(&a[(size_t)(row0 + r) * k + k0 + q]);
        }
#pragma unroll
        for (int v = threadIdx.x; v < BK * BN / 8; v += 128) {
            const int r = v / (BN / 8), q = v % (BN / 8) * 8;
            *reinterpret_cast<int4 *>(&bs[stage][r][q]) = *reinterpret_cast<const int4 *>(&b[(size_t)(k0 + r) * n + col0 + q]);
        }
    };

    load(0, 0);
    __syncthreads();

    int stage = 0;
    for (int k0 = 0; k0 < k; k0 += BK) {
        if (k0 + BK < k)
            load(stage ^ 1, k0 + BK);
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa[4];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> fb[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                wmma::load_matrix_sync(fa[i], &as[stage][warp_row + i * 16][kk], BK + PAD);
                wmma::load_matrix_sync(fb[i], &bs[stage][kk][warp_col + i * 16], BN + PAD);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    wmma::mma_sync(acc[i][j], fa[i], fb[j], acc[i][j]);
        }
        __syncthreads();
        stage ^= 1;
    }

#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            wmma::store_matrix_sync(&c[(size_t)(row0 + warp_row + i * 16) * n + col0 + warp_col + j * 16], acc[i][j], n,
                                    wmma::mem_row_major);
}
