// Halves each number until it is one. A zero never gets there: the program hangs.
#include <cstdio>

__global__ void halve(unsigned *numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        while (numbers[i] != 1) numbers[i] /= 2;
}

int main()
{
    unsigned numbers[] = {7, 1000, 0}, *memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, sizeof numbers);
    if (error == cudaSuccess) error = cudaMemcpy(memory, numbers, sizeof numbers, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) {
        halve<<<1, 32>>>(memory, 3);
        error = cudaDeviceSynchronize();
    }
    std::printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
