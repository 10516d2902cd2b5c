// Kernels whose launch takes all of a block's shared memory. The argument says what is done; scripts/gpu-projects says what must come of it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// Turns a tile round: in each round every element goes to its neighbour. Where a thread left and another read on, elements would be lost.
__global__ void turn(int* out, int length, int rounds) {
    extern __shared__ int tile[];
    for (int at = threadIdx.x; at < length; at += blockDim.x) tile[at] = at;
    __syncthreads();
    for (int round = 0; round < rounds; ++round) {
        const int first = tile[0];
        for (int begin = 0; begin < length; begin += blockDim.x) {
            const int at = begin + threadIdx.x;
            const int next = at + 1 < length ? tile[at + 1] : first;
            __syncthreads();
            if (at < length) tile[at] = next;
            __syncthreads();
        }
    }
    for (int at = threadIdx.x; at < length; at += blockDim.x) out[blockIdx.x * length + at] = tile[at];
}
__global__ void turn_for_ever(volatile int* gate, int length) {
    extern __shared__ int tile[];
    for (int at = threadIdx.x; at < length; at += blockDim.x) tile[at] = at;
    __syncthreads();
    while (*gate == 0) {  // FULL
        const int next = tile[(threadIdx.x + 1) % length];
        __syncthreads();
        tile[threadIdx.x] = next;
        __syncthreads();
    }
}
// Little but barriers.
__global__ void meet(int* out, int rounds) {
    extern __shared__ int tile[];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int sum = 0;
    for (int round = 0; round < rounds; ++round) {
        sum += tile[(threadIdx.x + round) % blockDim.x];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static int all_of_it() {
    int bytes = 0;
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    return bytes;
}
static int* device_ints(int count) {
    int* words = nullptr;
    if (cudaMalloc(&words, count * sizeof(int)) != cudaSuccess) std::exit(9);
    cudaMemset(words, 0, count * sizeof(int));
    return words;
}
// Whether the tiles are turned as they should be.
static int sound() {
    const int bytes = all_of_it(), length = bytes / 4, rounds = 200, blocks = 8;
    const cudaError_t set = cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    int* out = device_ints(blocks * length);
    turn<<<blocks, 256, bytes>>>(out, length, rounds);
    const cudaError_t launched = cudaGetLastError(), done = cudaDeviceSynchronize();
    std::vector<int> host(blocks * length);
    cudaMemcpy(host.data(), out, host.size() * sizeof(int), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int at = 0; at < blocks * length; ++at) wrong += host[at] != (at % length + rounds) % length;
    std::printf("%d bytes, errors %d %d %d, %d wrong\n", bytes, int(set), int(launched), int(done), wrong);
    return set != cudaSuccess || launched != cudaSuccess || done != cudaSuccess || wrong != 0;
}
static int hang() {
    const int bytes = all_of_it();
    cudaFuncSetAttribute(turn_for_ever, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    turn_for_ever<<<16, 256, bytes>>>(device_ints(1), bytes / 4);
    const cudaError_t launched = cudaGetLastError(), done = cudaDeviceSynchronize();
    std::printf("error %d\n", int(launched != cudaSuccess ? launched : done));
    return launched != cudaSuccess || done != cudaSuccess;
}
// Nanoseconds of a round, the best of ten launches.
static int time_rounds() {
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    const int rounds = 20000, blocks = processors * 4, threads = 256;
    int* out = device_ints(blocks * threads);
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e9f;
    for (int launch = 0; launch < 10; ++launch) {
        cudaEventRecord(begin);
        meet<<<blocks, threads, 8192>>>(out, rounds);
        cudaEventRecord(end);
        if (cudaEventSynchronize(end) != cudaSuccess) return 1;
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, begin, end);
        best = std::min(best, milliseconds);
    }
    std::printf("%.2f\n", best * 1e6 / rounds);
    return 0;
}

int main(int count, char** words) {
    const char* what = count > 1 ? words[1] : "";
    if (std::strcmp(what, "sound") == 0) return sound();
    if (std::strcmp(what, "hang") == 0) return hang();
    if (std::strcmp(what, "time") == 0) return time_rounds();
    if (std::strcmp(what, "hang-then-sound") == 0) {
        hang();
        return sound();
    }
    return 2;
}
