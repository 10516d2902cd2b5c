// What each call of a guarded launch costs the host, alone and together, and what waits behind 4 GB of copies each way.
#include <cuda.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#define OK(call) do { CUresult r = (call); if (r != CUDA_SUCCESS) { const char *s; cuGetErrorName(r, &s); std::printf("%s: %s\n", #call, s); std::exit(1); } } while (0)
using Clock = std::chrono::steady_clock;
static double us(Clock::time_point since) { return std::chrono::duration<double, std::micro>(Clock::now() - since).count(); }
static const char *PTX = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n"
  ".visible .entry copy(.param .u64 to, .param .u64 from, .param .u32 n) { .reg .u64 %a,%b,%o; .reg .u32 %t,%n; .reg .pred %p; .reg .u64 %v; ld.param.u64 %a,[to]; ld.param.u64 %b,[from]; ld.param.u32 %n,[n]; mov.u32 %t,%tid.x; setp.ge.u32 %p,%t,%n; @%p ret; mul.wide.u32 %o,%t,8; add.u64 %a,%a,%o; add.u64 %b,%b,%o; ld.global.u64 %v,[%b]; st.global.u64 [%a],%v; ret; }\n";
static CUstream stream, other;
static void report(const char *what, std::vector<double> v) {
    std::sort(v.begin(), v.end());
    std::printf("%-62s %8.2f %8.2f us\n", what, v[v.size() / 2], v[v.size() * 99 / 100]);
}
// A batch of a hundred calls each, drained after each batch: what one costs.
static void cost(const char *what, const std::function<void()> &call) {
    std::vector<double> v;
    for (int i = 0; i < 120; ++i) {
        auto since = Clock::now();
        for (int j = 0; j < 100; ++j) call();
        double took = us(since) / 100;
        OK(cuStreamSynchronize(stream));
        OK(cuStreamSynchronize(other));
        if (i >= 20) v.push_back(took);
    }
    report(what, v);
}
int main() {
    OK(cuInit(0));
    CUdevice device; OK(cuDeviceGet(&device, 0));
    CUcontext context; OK(cuDevicePrimaryCtxRetain(&context, device)); OK(cuCtxSetCurrent(context));
    CUmodule module; OK(cuModuleLoadData(&module, PTX));
    CUfunction empty, copy; OK(cuModuleGetFunction(&empty, module, "empty")); OK(cuModuleGetFunction(&copy, module, "copy"));
    int lo, hi; OK(cuCtxGetStreamPriorityRange(&lo, &hi));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); OK(cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, hi));
    CUevent event, second; OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)); OK(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
    CUdeviceptr words; OK(cuMemAlloc(&words, 4096)); OK(cuMemsetD8(words, 0, 4096));
    void *pinned; OK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP)); CUdeviceptr mapped; OK(cuMemHostGetDevicePointer(&mapped, pinned, 0));
    auto launch = [&] { OK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr)); };
    auto batch = [&](int n) {
        CUstreamBatchMemOpParams ops[9]; std::memset(ops, 0, sizeof ops);
        for (int i = 0; i < n; ++i) { ops[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64; ops[i].writeValue.address = words + 8 * i; ops[i].writeValue.value64 = i; }
        OK(cuStreamBatchMemOp(stream, n, ops, 0));
    };
    auto record = [&] { OK(cuEventRecord(event, stream)); };
    char local[72] = {};
    cost("cuCtxGetCurrent", [&] { CUcontext c; cuCtxGetCurrent(&c); });
    cost("cuStreamIsCapturing", [&] { CUstreamCaptureStatus s; cuStreamIsCapturing(stream, &s); });
    cost("cuEventQuery (reached)", [&] { cuEventQuery(event); });
    cost("launch", launch);
    for (int n : {1, 2, 3, 4, 8}) { char what[80]; std::snprintf(what, 80, "batch of %d words", n); cost(what, [&] { batch(n); }); }
    cost("one word by cuStreamWriteValue64", [&] { OK(cuStreamWriteValue64(stream, words, 1, 0)); });
    cost("72 bytes, pageable", [&] { OK(cuMemcpyHtoDAsync(words, local, 72, stream)); });
    cost("72 bytes, pinned", [&] { OK(cuMemcpyHtoDAsync(words, pinned, 72, stream)); });
    cost("event", record);
    cost("launch, event", [&] { launch(); record(); });
    cost("batch of 2, launch", [&] { batch(2); launch(); });
    cost("batch of 2, launch, event", [&] { batch(2); launch(); record(); });
    cost("batch of 2, launch, batch of 1", [&] { batch(2); launch(); batch(1); });
    cost("72 bytes pageable, launch, event", [&] { OK(cuMemcpyHtoDAsync(words, local, 72, stream)); launch(); record(); });
    cost("batch of 2, launch, event; capturing; current twice", [&] { CUstreamCaptureStatus s; CUcontext c; cuCtxGetCurrent(&c); cuCtxGetCurrent(&c); cuStreamIsCapturing(stream, &s); batch(2); launch(); record(); });
    // Launch-and-wait.
    auto wait = [&](const char *what, const std::function<void()> &begin) {
        std::vector<double> v;
        for (int i = 0; i < 3000; ++i) { auto since = Clock::now(); begin(); while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {} if (i >= 100) v.push_back(us(since)); }
        report(what, v);
    };
    wait("launch, event, queries", [&] { launch(); record(); });
    wait("batch of 2, launch, event, queries", [&] { batch(2); launch(); record(); });
    // Reading 1 KB on a stream of its own, nothing else running.
    std::vector<double> v;
    auto arrive = [&](const char *what, int rounds, const std::function<void()> &begin) {
        std::vector<double> v;
        for (int i = 0; i < rounds; ++i) { auto since = Clock::now(); begin(); OK(cuEventRecord(event, other)); while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {} v.push_back(us(since)); }
        report(what, v);
    };
    void *host[2]; CUdeviceptr big[2]; CUstream bulk[2];
    for (int i = 0; i < 2; ++i) { OK(cuMemHostAlloc(&host[i], 1ul << 30, 0)); OK(cuMemAlloc(&big[i], 1ul << 30)); OK(cuStreamCreate(&bulk[i], CU_STREAM_NON_BLOCKING)); }
    auto down = [&] { OK(cuMemcpyDtoHAsync(pinned, words, 1136, other)); };
    auto up = [&] { OK(cuMemcpyHtoDAsync(words, pinned, 1136, other)); };
    auto upSmall = [&] { OK(cuMemcpyHtoDAsync(words, local, 72, other)); };
    unsigned n = 142; void *toHost[] = {&mapped, &words, &n}, *toDevice[] = {&words, &mapped, &n};
    auto kernelDown = [&] { OK(cuLaunchKernel(copy, 1, 1, 1, 160, 1, 1, 0, other, toHost, nullptr)); };
    auto kernelUp = [&] { OK(cuLaunchKernel(copy, 1, 1, 1, 160, 1, 1, 0, other, toDevice, nullptr)); };
    for (bool busy : {false, true}) {
        struct { const char *what; std::function<void()> call; } list[] = {
            {"1136 bytes down", down}, {"1136 bytes up from pinned", up}, {"72 bytes up from pageable", upSmall},
            {"down, up", [&] { down(); up(); }}, {"down by a kernel", kernelDown}, {"down and up by kernels", [&] { kernelDown(); kernelUp(); }}};
        for (auto &entry : list) {
            char what[100]; std::snprintf(what, 100, "%s, %s", entry.what, busy ? "beside copies of 8 GB" : "alone");
            if (!busy) { arrive(what, 500, entry.call); continue; }
            std::vector<double> v;
            for (int i = 0; i < 6; ++i) {
                for (int k = 0; k < 4; ++k) { OK(cuMemcpyHtoDAsync(big[0], host[0], 1ul << 30, bulk[0])); OK(cuMemcpyDtoHAsync(host[1], big[1], 1ul << 30, bulk[1])); }
                auto begin = Clock::now(); while (us(begin) < 2000) {}
                auto since = Clock::now(); entry.call(); OK(cuEventRecord(event, other)); while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {} v.push_back(us(since));
                for (CUstream s : bulk) OK(cuStreamSynchronize(s));
            }
            report(what, v);
        }
    }
    // How two queued copies fare behind a kernel's end: enqueued before with a wait for its event, or after it was seen.
    std::vector<double> before, after;
    for (int i = 0; i < 2000; ++i) {
        auto since = Clock::now(); launch(); record(); OK(cuStreamWaitEvent(other, event, 0)); down(); OK(cuEventRecord(second, other));
        while (cuEventQuery(second) == CUDA_ERROR_NOT_READY) {} before.push_back(us(since));
        since = Clock::now(); launch(); record(); while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {} down(); OK(cuEventRecord(second, other));
        while (cuEventQuery(second) == CUDA_ERROR_NOT_READY) {} after.push_back(us(since));
    }
    report("launch, then 1136 bytes down that wait for its event", before);
    report("launch, seen over, then 1136 bytes down", after);
    // The same with a kernel behind, in the stream's own order.
    std::vector<double> same;
    for (int i = 0; i < 2000; ++i) {
        auto since = Clock::now(); launch(); OK(cuMemcpyDtoHAsync(pinned, words, 1136, stream)); record(); while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {} same.push_back(us(since));
    }
    report("launch, 1136 bytes down in its stream", same);
}
