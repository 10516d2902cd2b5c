// A library with a half of its own: NAME_load loads its module, NAME_run launches a grid in a stream of its own and waits for it, NAME_free makes a call that waits
// for all kernels.
#include <cstdio>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

extern "C" __global__ void blocks(unsigned long long slots, unsigned long long ns, unsigned* counts) {
    while (slots-- > ns) counts[blockIdx.x] += 1;
}

extern "C" int JOIN(NAME, _load)() {
    cudaFunction_t function;
    return cudaGetFuncBySymbol(&function, (const void*)blocks);
}

extern "C" int JOIN(NAME, _run)() {
    const int count = 96;
    unsigned* counts;
    unsigned found[count] = {};
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&counts, sizeof found);
    cudaMemcpy(counts, found, sizeof found, cudaMemcpyHostToDevice);
    blocks<<<dim3(8, 6, 2), 32, 0, stream>>>(4, 25000000, counts);
    if (cudaStreamSynchronize(stream) != cudaSuccess) return -1;
    cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost);
    int once = 0;
    for (int block = 0; block < count; ++block) once += found[block] == 1;
    return once;
}

extern "C" int JOIN(NAME, _free)() {
    void* memory;
    cudaMalloc(&memory, 64);
    return cudaFree(memory);
}
