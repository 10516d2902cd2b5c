// What a launch that was stopped leaves behind: one program for each line of docs/AFTER_A_STOP.md. Runs under CUINSTR_ON_STOP=leave.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" unsigned long long cuinstr_stopped_launches();

__global__ void fills(int* out, int count, volatile int* gate) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        out[i] = 1;
        while (i >= count / 2 && *gate == 0) {
        }
    }
}
__global__ void locks(int* lock, volatile int* gate) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    while (*gate == 0) {
    }
    atomicExch(lock, 0);
}
__global__ void holds(size_t bytes, int* got, volatile int* gate) {
    void* memory = malloc(bytes);
    *got = memory != nullptr;
    while (*gate == 0) {
    }
    free(memory);
}
__global__ void says(volatile int* gate) {
    printf("from the kernel\n");
    while (*gate == 0) {
    }
}
__global__ void meets(int* words, int rounds, volatile int* gate) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x == 0) atomicAdd(words, 1);
        grid.sync();
        if (words[0] != int(gridDim.x) * (round + 1)) words[1] = 1;
        grid.sync();
        // The last block never comes.
        while (blockIdx.x == gridDim.x - 1 && round == 1 && *gate == 0) {
        }
    }
}
__global__ void adds(int* out, int what) { out[threadIdx.x] += what; }

static void settle() {
    std::printf("after it: error %d", int(cudaDeviceSynchronize()));
    // The count is in when the host half has seen the stop.
    unsigned long long stopped = 0;
    for (int tries = 0; tries < 200 && (stopped = cuinstr_stopped_launches()) == 0; ++tries) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::printf(", stopped %llu\n", stopped);
}
static int read(const int* word) {
    int value = -1;
    cudaMemcpy(&value, word, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}
static int launch_meets(int* words, int rounds, int* gate) {
    void* arguments[] = {&words, &rounds, &gate};
    return cudaLaunchCooperativeKernel((const void*)meets, dim3(8), dim3(64), arguments, 0, nullptr);
}

int main(int, char** arguments) {
    const std::string what = arguments[1];
    const int count = 1 << 16;
    int *words = nullptr, *gate = nullptr, *open = nullptr;
    cudaMalloc(&words, count * sizeof(int));
    cudaMemset(words, 0, count * sizeof(int));
    cudaMalloc(&gate, sizeof(int));
    cudaMemset(gate, 0, sizeof(int));
    cudaMalloc(&open, sizeof(int));
    cudaMemset(open, 1, sizeof(int));
    if (what == "output") {
        fills<<<1, 64>>>(words, count, gate);
        settle();
        std::vector<int> host(count);
        cudaMemcpy(host.data(), words, count * sizeof(int), cudaMemcpyDeviceToHost);
        int written = 0;
        for (int value : host) written += value;
        std::printf("written %s\n", written == 0 ? "nothing" : written == count ? "all" : "a part");
    } else if (what == "lock") {
        locks<<<1, 1>>>(words, gate);
        settle();
        std::printf("lock %d\n", read(words));
        cudaMemset(words, 0, sizeof(int));
        locks<<<1, 1>>>(words, open);
        const int error = cudaDeviceSynchronize();
        std::printf("freed by the host: error %d, lock %d\n", error, read(words));
    } else if (what == "heap") {
        cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20);
        holds<<<1, 1>>>(40 << 20, words, open);
        std::printf("before: error %d, got %d\n", int(cudaDeviceSynchronize()), read(words));
        holds<<<1, 1>>>(40 << 20, words, gate);
        settle();
        holds<<<1, 1>>>(40 << 20, words, open);
        std::printf("again: error %d, got %d\n", int(cudaDeviceSynchronize()), read(words));
    } else if (what == "printf") {
        says<<<1, 1>>>(gate);
        settle();
    } else if (what == "grid") {
        launch_meets(words, 3, open);
        std::printf("before: error %d, wrong %d\n", int(cudaDeviceSynchronize()), read(words + 1));
        cudaMemset(words, 0, 2 * sizeof(int));
        launch_meets(words, 3, gate);
        settle();
        cudaMemset(words, 0, 2 * sizeof(int));
        launch_meets(words, 3, open);
        std::printf("again: error %d, wrong %d\n", int(cudaDeviceSynchronize()), read(words + 1));
    } else if (what == "others") {
        // Another stream, its event and its memory, made before the stop.
        cudaStream_t stream;
        cudaEvent_t event;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreate(&event);
        adds<<<1, 1, 0, stream>>>(words + 1, 5);
        cudaEventRecord(event, stream);
        cudaStreamSynchronize(stream);
        locks<<<1, 1>>>(words, gate);
        settle();
        adds<<<1, 1, 0, stream>>>(words + 1, 6);
        const int error = cudaStreamSynchronize(stream);
        std::printf("other stream: error %d, event %d, sum %d\n", error, int(cudaEventQuery(event)), read(words + 1));
    }
    return 0;
}
