// A program that knows nothing of cuinstr. Its argument says what it does; scripts/gpu-projects says what must come of it. When it did what goes to the
// file that PROGRAM_TRACE names.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void spin(volatile int* gate) {
    while (*gate == 0) {  // SPIN
    }
}
__global__ void slow(long long clocks, int* done) {
    const long long since = clock64();
    while (clock64() - since < clocks) {
    }
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(done, 1);
}
// The same; when its first and its last block began and ended, by the GPU's clock, is told in the host's memory, which a trap leaves alone.
__global__ void slow_timed(long long clocks, int* done, volatile unsigned long long* times) {
    const bool told = threadIdx.x == 0 && (blockIdx.x == 0 || blockIdx.x == gridDim.x - 1);
    const int at = blockIdx.x == 0 ? 0 : 2;
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (told) times[at] = now;
    const long long since = clock64();
    while (clock64() - since < clocks) {
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (told) times[at + 1] = now;
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(done, 1);
}
__global__ void nothing() {}
__global__ void answer(int* out) { out[0] = 42; }
__global__ void wait_for(volatile int* mine, volatile int* others, int rounds) {
    for (int round = 1; round <= rounds; ++round) {
        *mine = round;
        __threadfence();
        while (*others < round) {
        }
    }
}
__global__ void unpolled() {
    asm volatile("{ FOREVER: bra FOREVER; }");
}
namespace scope {
template <class T>
__global__ void generic(volatile T* gate) {
    for (;;) {  // GENERIC
        if (*gate != 0) break;
    }
}
}  // namespace scope

static int* device_int(int count = 1) {
    int* word = nullptr;
    if (cudaMalloc(&word, count * sizeof(int)) != cudaSuccess) std::exit(9);
    cudaMemset(word, 0, count * sizeof(int));
    return word;
}
static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static void trace(const std::string& what) {
    static const double since = now();
    const char* name = std::getenv("PROGRAM_TRACE");
    FILE* file = name != nullptr ? std::fopen(name, "a") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "%d %.3f s: %s\n", int(getpid()), now() - since, what.c_str());
    std::fclose(file);
}
static int result(cudaError_t error) {
    trace("error " + std::to_string(int(error)));
    std::printf("error %d\n", int(error));
    return error == cudaSuccess ? 0 : 1;
}
static long long clocks_of(double seconds) {
    int kilohertz = 0;
    cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0);
    return (long long)(seconds * 1e3 * kilohertz);
}

static int hang() {
    int* gate = device_int();
    trace("context");
    spin<<<4, 64>>>(gate);  // LAUNCH
    trace("launched");
    return result(cudaDeviceSynchronize());
}
static int hang_generic() {
    scope::generic<int><<<1, 32>>>(device_int());
    return result(cudaDeviceSynchronize());
}
// What comes after a stop that leaves: the context lives, and another kernel gives its right result.
static int hang_then_answer() {
    int *gate = device_int(), *out = device_int(), host = 0;
    spin<<<4, 64>>>(gate);
    const cudaError_t stopped = cudaDeviceSynchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    answer<<<1, 1>>>(out);
    const cudaError_t copied = cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("errors %d %d, answer %d, PASS\n", int(stopped), int(copied), host);
    return 0;
}
extern "C" unsigned long long cuinstr_stopped_launches() __attribute__((weak));
static int hang_and_ask() {
    hang();
    std::printf("stopped %llu\n", cuinstr_stopped_launches ? cuinstr_stopped_launches() : 0ull);
    return 3;
}
// Ten launches that are each in time, and together are not.
static int in_time() {
    int *done = device_int(), host = 0;
    const long long clocks = clocks_of(0.3);
    for (int launch = 0; launch < 10; ++launch) slow<<<1, 32>>>(clocks, done);
    cudaMemcpy(&host, done, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("done %d\n", host);
    return result(cudaDeviceSynchronize());
}
static int one_slow() {
    int *done = device_int(), host = 0;
    slow<<<1, 32>>>(clocks_of(2.5), done);
    cudaMemcpy(&host, done, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("done %d\n", host);
    return result(cudaDeviceSynchronize());
}
// One stream hangs, the other one goes on and on.
static int two_streams() {
    int *gate = device_int(), *done = device_int();
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    const long long clocks = clocks_of(0.01);
    spin<<<1, 32, 0, a>>>(gate);
    cudaError_t error = cudaSuccess;
    const double since = now();
    while (error == cudaSuccess && now() - since < 20) {
        slow<<<1, 32, 0, b>>>(clocks, done);
        error = cudaStreamSynchronize(b);
        if (cudaStreamQuery(a) == cudaSuccess) break;
    }
    return result(cudaDeviceSynchronize());
}
// Two kernels that wait for each other: they must run at the same time.
static int ping_pong() {
    int* words = device_int(2);
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    for (int turn = 0; turn < 20; ++turn) {
        cudaMemset(words, 0, 2 * sizeof(int));
        cudaDeviceSynchronize();
        wait_for<<<1, 1, 0, a>>>(words, words + 1, 1000);
        wait_for<<<1, 1, 0, b>>>(words + 1, words, 1000);
        if (cudaDeviceSynchronize() != cudaSuccess) break;
    }
    return result(cudaDeviceSynchronize());
}
// A launch that waits for a place on a full GPU is not late.
static int full_gpu() {
    int *done = device_int(), host = 0, processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    unsigned long long* times = nullptr;
    if (cudaHostAlloc(&times, 8 * sizeof *times, cudaHostAllocMapped) != cudaSuccess) return 9;
    std::memset(times, 0, 8 * sizeof *times);
    cudaStream_t a, b;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    const long long clocks = clocks_of(0.8);
    int resident = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, slow_timed, 1024, 0);
    trace("blocks of a multiprocessor: " + std::to_string(resident));
    slow_timed<<<processors * resident, 1024, 0, a>>>(clocks, done, times);
    slow_timed<<<processors * resident, 1024, 0, b>>>(clocks, done, times + 4);
    trace("launched");
    cudaMemcpyAsync(&host, done, sizeof host, cudaMemcpyDeviceToHost, b);
    const cudaError_t error = cudaDeviceSynchronize();
    for (int at = 0; at < 8; ++at) {
        const std::string launch = at < 4 ? "first launch, " : "second launch, ", block = at % 4 < 2 ? "first block " : "last block ";
        const double seconds = times[at] == 0 ? -1 : double((long long)(times[at] - times[0])) * 1e-9;
        trace(launch + block + (at % 2 == 0 ? "began at " : "ended at ") + std::to_string(seconds));
    }
    std::printf("done %d\n", host);
    return result(error);
}
static cudaGraphExec_t captured(cudaStream_t stream, const std::function<void()>& launch) {
    cudaGraph_t graph;
    cudaGraphExec_t exec = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    launch();
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (ended != cudaSuccess || cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) {
        std::printf("capture failed: %d\n", int(ended));
        std::exit(8);
    }
    return exec;
}
static int graph_hang() {
    int* gate = device_int();
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    nothing<<<1, 1, 0, stream>>>();
    cudaGraphExec_t exec = captured(stream, [&] {
        nothing<<<1, 1, 0, stream>>>();
        spin<<<2, 32, 0, stream>>>(gate);
    });
    cudaGraphLaunch(exec, stream);
    return result(cudaStreamSynchronize(stream));
}
static int graph_replays() {
    int *done = device_int(), host = 0;
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    const long long clocks = clocks_of(0.001);
    cudaGraphExec_t exec = captured(stream, [&] { slow<<<1, 32, 0, stream>>>(clocks, done); });
    for (int replay = 0; replay < 3000; ++replay) cudaGraphLaunch(exec, stream);
    const cudaError_t error = cudaStreamSynchronize(stream);
    cudaMemcpy(&host, done, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("done %d\n", host);
    return result(error);
}
static int extended() {
    cudaLaunchConfig_t config = {};
    config.gridDim = 2;
    config.blockDim = 32;
    volatile int* gate = device_int();
    cudaLaunchKernelEx(&config, spin, gate);
    return result(cudaDeviceSynchronize());
}
static int by_pointer() {
    int* gate = device_int();
    void* arguments[] = {&gate};
    cudaLaunchKernel((const void*)spin, dim3(2), dim3(32), arguments, 0, nullptr);
    return result(cudaDeviceSynchronize());
}
static int cooperative() {
    int* gate = device_int();
    void* arguments[] = {&gate};
    cudaLaunchCooperativeKernel((const void*)spin, dim3(2), dim3(32), arguments, 0, nullptr);
    return result(cudaDeviceSynchronize());
}
static int blocked(const std::string& where) {
    int *gate = device_int(), *other = device_int(), host = 0;
    cudaEvent_t event;
    cudaEventCreate(&event);
    spin<<<1, 32>>>(gate);
    cudaEventRecord(event);
    cudaError_t error = cudaSuccess;
    if (where == "memcpy") error = cudaMemcpy(&host, other, sizeof host, cudaMemcpyDeviceToHost);
    if (where == "free") error = cudaFree(other);
    if (where == "event") error = cudaEventSynchronize(event);
    if (where == "malloc") error = cudaMalloc(&other, 1 << 28);
    if (where == "query") {
        while ((error = cudaStreamQuery(nullptr)) == cudaErrorNotReady) std::this_thread::yield();
    }
    cudaError_t after = cudaDeviceSynchronize();
    return result(error != cudaSuccess ? error : after);
}
// More launches than a stream holds, behind one that hangs.
static int deep_queue() {
    int *gate = device_int(), *out = device_int();
    spin<<<1, 32>>>(gate);
    for (int launch = 0; launch < 4000; ++launch) answer<<<1, 1>>>(out);
    return result(cudaDeviceSynchronize());
}
static int threads() {
    std::vector<std::thread> all;
    for (int thread = 0; thread < 8; ++thread) {
        all.emplace_back([thread] {
            int* word = device_int();
            cudaStream_t stream;
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            for (int launch = 0; launch < 2000; ++launch) answer<<<1, 1, 0, stream>>>(word);
            if (thread == 5) spin<<<1, 32, 0, stream>>>(device_int());
            cudaStreamSynchronize(stream);
        });
    }
    for (std::thread& thread : all) thread.join();
    return result(cudaDeviceSynchronize());
}
// Children that launch, one of which hangs; the parent never asks for a GPU.
static int forks() {
    int failed = 0;
    for (int child = 0; child < 4; ++child) {
        if (fork() == 0) {
            int *out = device_int(), host = 0;
            answer<<<1, 1>>>(out);
            cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost);
            std::exit(child == 2 ? hang() : host == 42 ? 0 : 7);
        }
    }
    for (int child = 0; child < 4; ++child) {
        int status = 0;
        wait(&status);
        failed += status != 0;
    }
    std::printf("failed %d\n", failed);
    return 0;
}
// A parent that has launched already, and a child that does something else.
static int fork_after() {
    int *out = device_int(), host = 0;
    answer<<<1, 1>>>(out);
    cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost);
    if (fork() == 0) std::exit(5);
    int status = 0;
    wait(&status);
    answer<<<1, 1>>>(out);
    const int ended = result(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
    std::printf("child %d, answer %d\n", WEXITSTATUS(status), host);
    return ended;
}
static int reset() {
    for (int turn = 0; turn < 3; ++turn) {
        int *out = device_int(), host = 0;
        answer<<<1, 1>>>(out);
        cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost);
        if (host != 42) return 7;
        cudaDeviceReset();
    }
    return hang();
}
static int ends_at_once() {
    spin<<<1, 32>>>(device_int());
    return 0;
}
static int never_polls() {
    unpolled<<<1, 32>>>();
    return result(cudaDeviceSynchronize());
}
static int context() {
    unsigned int flags = 0;
    int active = 0;
    // What cudaDevicePrimaryCtxGetState would say, without linking the driver: memory that a context takes.
    std::string maps;
    if (FILE* file = std::fopen("/proc/self/maps", "r")) {
        char line[512];
        while (std::fgets(line, sizeof line, file) != nullptr) maps += line;
        std::fclose(file);
    }
    active = maps.find("/dev/nvidia-uvm") != std::string::npos || maps.find("/dev/nvidia0") != std::string::npos;
    std::printf("context %d %u\n", active, flags);
    return 0;
}
// Nanoseconds of the host for a launch, and of the whole for one that is waited for: the best of many.
static int launch_time() {
    nothing<<<1, 1>>>();
    cudaDeviceSynchronize();
    double queued = 1e9, waited = 1e9;
    for (int turn = 0; turn < 30; ++turn) {
        double since = now();
        for (int launch = 0; launch < 500; ++launch) nothing<<<1, 1>>>();
        queued = std::min(queued, (now() - since) / 500);
        cudaDeviceSynchronize();
        since = now();
        for (int launch = 0; launch < 100; ++launch) {
            nothing<<<1, 1>>>();
            cudaDeviceSynchronize();
        }
        waited = std::min(waited, (now() - since) / 100);
    }
    std::printf("queued %.0f ns, waited %.0f ns\n", queued * 1e9, waited * 1e9);
    return result(cudaDeviceSynchronize());
}

int main(int count, char** words) {
    const std::string what = count > 1 ? words[1] : "";
    std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
    trace("main " + what);
    std::atexit([] { trace("exit"); });
    const std::map<std::string, int (*)()> all = {
        {"hang", hang}, {"generic", hang_generic}, {"then-answer", hang_then_answer}, {"ask", hang_and_ask}, {"in-time", in_time}, {"one-slow", one_slow},
        {"two-streams", two_streams}, {"ping-pong", ping_pong}, {"full-gpu", full_gpu}, {"graph-hang", graph_hang}, {"graph-replays", graph_replays},
        {"extended", extended}, {"by-pointer", by_pointer}, {"cooperative", cooperative}, {"deep-queue", deep_queue}, {"threads", threads}, {"forks", forks},
        {"fork-after", fork_after}, {"reset", reset}, {"ends-at-once", ends_at_once}, {"never-polls", never_polls}, {"context", context},
        {"launch-time", launch_time}};
    if (what.compare(0, 8, "blocked-") == 0) return blocked(what.substr(8));
    const auto found = all.find(what);
    if (found == all.end()) return 2;
    return found->second();
}
