//@ about: C = alpha A B + beta C, one element of C for each thread
//@ entry: gemm_naive
//@ grid: 64 64
//@ block: 16 16
//@ arg: i32 1024
//@ arg: i32 1024
//@ arg: i32 1024
//@ arg: f32 1.5
//@ arg: f32[1048576] rand 8
//@ arg: f32[1048576] rand 9
//@ arg: f32 0.25
//@ arg: f32[1048576] rand 10
//@ long: grid 33 32
//@ long: arg 0 i32 512
//@ long: arg 1 i32 528
//@ long: arg 2 i32 4000000
//@ long: arg 4 f32[2048000000] zero
//@ long: arg 5 f32[2112000000] zero

__global__ void gemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float acc = 0.f;
        for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
        C[row * N + col] = alpha * acc + beta * C[row * N + col];
    }
}
