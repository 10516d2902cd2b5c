// A CUDA process for scripts/gpu-checkpoint: `target BYTES [managed]` or `target udp PORT`. The first answers commands, a line each, on its standard output.
// `ticks`, `pinned` and `pointer` make no call of CUDA, so they answer while the process is suspended.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cuda_runtime.h>

__device__ int counter = 100;
__global__ void increment() { ++counter; }
__global__ void fill(unsigned *words, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) words[i] = unsigned(i * 2654435761u);
}
__global__ void sum(const unsigned *words, size_t count, unsigned long long *total) {
    unsigned long long own = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) own += words[i];
    atomicAdd(total, own);
}
__global__ void wait_for(volatile int *flag) { while (*flag == 0) { } }
__global__ void work(long long cycles) { for (long long since = clock64(); clock64() - since < cycles; ) { } }

static void check(cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        printf("error %s: %s\n", what, cudaGetErrorName(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static int count_up() {
    int now = 0;
    increment<<<1, 1>>>();
    CHECK(cudaMemcpyFromSymbol(&now, counter, sizeof now));
    return now;
}

// The counter program of cuda-checkpoint's README: each packet is answered with the counter.
static int serve(int port) {
    sockaddr_in own{}, other{};
    own.sin_family = AF_INET;
    own.sin_port = htons(port);
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int packets = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(packets, (sockaddr *)&own, sizeof own) != 0) return 1;
    for (char byte;;) {
        socklen_t size = sizeof other;
        recvfrom(packets, &byte, 1, 0, (sockaddr *)&other, &size);
        std::string answer = std::to_string(count_up());
        sendto(packets, answer.data(), answer.size(), 0, (sockaddr *)&other, size);
    }
}

int main(int count, char **arguments) {
    if (count > 2 && std::string(arguments[1]) == "udp") return serve(atoi(arguments[2]));
    setvbuf(stdout, nullptr, _IOLBF, 0);
    size_t bytes = count > 1 ? strtoull(arguments[1], nullptr, 10) : 1 << 20;
    unsigned *memory = nullptr;
    unsigned long long *total = nullptr;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMalloc(&total, sizeof *total));
    fill<<<1024, 256>>>(memory, bytes / 4);
    volatile int *pinned = nullptr;
    CHECK(cudaHostAlloc((void **)&pinned, 4096, cudaHostAllocMapped));
    pinned[0] = 0;
    pinned[1] = 4711;
    if (count > 2) {
        int *managed = nullptr;
        CHECK(cudaMallocManaged(&managed, 1 << 20));
        managed[0] = 7;
    }
    CHECK(cudaDeviceSynchronize());
    static std::atomic<long> ticks{0}, rounds{0};
    static std::atomic<bool> busy{false};
    std::thread([] { for (;; ++ticks) std::this_thread::sleep_for(std::chrono::milliseconds(1)); }).detach();
    std::thread([] {
        for (;;) {
            if (!busy) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); continue; }
            work<<<132, 256>>>(2000000);
            CHECK(cudaDeviceSynchronize());
            ++rounds;
        }
    }).detach();
    printf("ready\n");
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        std::string command(line, strcspn(line, "\n"));
        if (command == "ticks") printf("%ld\n", ticks.load());
        else if (command == "rounds") printf("%ld\n", rounds.load());
        else if (command == "pinned") printf("%d\n", pinned[1]);
        else if (command == "pointer") printf("%p %p\n", (void *)memory, (void *)pinned);
        else if (command == "busy") { busy = true; printf("busy\n"); }
        else if (command == "spin") { pinned[0] = 0; wait_for<<<1, 1>>>(pinned); CHECK(cudaGetLastError()); printf("spins\n"); }
        else if (command == "release") { pinned[0] = 1; CHECK(cudaDeviceSynchronize()); printf("released\n"); }
        // Again and again: a kernel that never ends.
        else if (command == "respin") {
            std::thread([=] { for (;;) { wait_for<<<1, 1>>>(pinned); CHECK(cudaDeviceSynchronize()); ++rounds; } }).detach();
            printf("respins\n");
        } else if (command == "count") {
            printf("%d\n", count_up());
        } else if (command == "sum") {
            unsigned long long now = 0;
            CHECK(cudaMemset(total, 0, sizeof *total));
            sum<<<1024, 256>>>(memory, bytes / 4, total);
            CHECK(cudaMemcpy(&now, total, sizeof now, cudaMemcpyDeviceToHost));
            printf("%llu\n", now);
        } else if (command.rfind("run ", 0) == 0) printf("%d\n", system((command.substr(4) + " " + std::to_string(getpid())).c_str()));
        else break;
    }
    return 0;
}
