//@ about: C = alpha A B + beta C, one element of C for each thread
//@ entry: sgemm_naive
//@ grid: 7 9
//@ block: 16 16
//@ arg: i32 140
//@ arg: i32 105
//@ arg: i32 77
//@ arg: f32 1.5
//@ arg: f32[10780] rand 8
//@ arg: f32[8085] rand 9
//@ arg: f32 0.25
//@ arg: f32[14700] rand 10

__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float acc = 0.f;
        for (int k = 0; k < K; ++k) acc += A[row * K + k] * B[k * N + col];
        C[row * N + col] = alpha * acc + beta * C[row * N + col];
    }
}
