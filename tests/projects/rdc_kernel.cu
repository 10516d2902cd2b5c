// The loop lies in another unit's device function.
#include <cstdio>
__device__ int wait_elsewhere(volatile int* gate);
__global__ void calls(volatile int* gate, int* out) { out[0] = wait_elsewhere(gate); }
int main() {
    int* words = nullptr;
    cudaMalloc(&words, 2 * sizeof(int));
    cudaMemset(words, 0, 2 * sizeof(int));
    calls<<<1, 32>>>(words, words + 1);
    const int error = cudaDeviceSynchronize();
    std::printf("error %d\n", error);
    return error != 0;
}
