//@ about: nests whose outer loop has a constant trip count: nvcc unrolls what is inside, and keeps the outer counter in a copy
//@ entry: constant_nests
//@ grid: 2
//@ block: 64
//@ arg: i32[1024] rand 3
//@ arg: i32[512] zero

__device__ __noinline__ int by_four(const int* p) {
    int sum = 0;
    for (int i = 0; i < 300; ++i)
        for (int j = 0; j < 4; ++j) sum += p[j] ^ sum;
    return sum;
}

__device__ __noinline__ int square(const int* p) {
    int sum = 0;
    for (int i = 0; i < 300; ++i)
        for (int j = 0; j < 300; ++j) sum += p[j] ^ i;
    return sum;
}

__device__ __noinline__ int triangle(const int* p) {
    int sum = 0;
    for (int i = 0; i < 300; ++i)
        for (int j = 0; j < i; ++j) sum += p[j] ^ i;
    return sum;
}

__device__ __noinline__ int by_twos(const int* p) {
    int sum = 0;
    for (long long i = 0; i < 300; ++i)
        for (long long j = 0; j < 16; j += 2) sum += p[i ^ j];
    return sum;
}

__global__ void constant_nests(const int* p, int* results) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    results[thread] = by_four(p + thread);
    results[128 + thread] = square(p + thread);
    results[256 + thread] = triangle(p + thread);
    results[384 + thread] = by_twos(p + thread);
}
