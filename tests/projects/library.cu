// A library that others link with: a kernel with a loop, and a function that launches it.
#include <cuda_runtime.h>
#ifndef NAME
#define NAME library
#endif
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
static __global__ void JOIN(NAME, _kernel)(volatile int* gate, int turns) {
    int seen = 0;
    while (seen < turns) {  // LIBRARY
        if (*gate != 0) ++seen;
    }
}
extern "C" int JOIN(NAME, _run)(int open) {
    int* gate = nullptr;
    cudaMalloc(&gate, sizeof(int));
    cudaMemset(gate, open, sizeof(int));
    JOIN(NAME, _kernel)<<<2, 32>>>(gate, 10);
    return cudaDeviceSynchronize();
}
