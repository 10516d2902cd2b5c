// Which calls of one thread come back while another thread waits behind a held stream: held_calls WAIT CALL. The pauses rely on what this shows.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>
#include <thread>
#include <unistd.h>

__global__ void copy(const unsigned* from, unsigned* to, int count) {
  for (int at = threadIdx.x; at < count; at += blockDim.x) to[at] = from[at];
}

template <class Function>
Function* driver(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  return (Function*)found;
}

static double milliseconds() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
static char host[4 << 20];

int main(int, char** words) {
  const std::string wait = words[1], call = words[2];
  auto* write = driver<CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWriteValue32", 12000);
  auto* hold = driver<CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32", 12000);
  unsigned *first, *second, *pinned, *other_pinned, *device_pinned;
  volatile unsigned* gate;
  cudaMalloc(&first, sizeof host);
  cudaMalloc(&second, sizeof host);
  cudaHostAlloc((void**)&pinned, sizeof host, cudaHostAllocMapped);
  cudaHostAlloc((void**)&other_pinned, sizeof host, cudaHostAllocMapped);
  cudaHostAlloc((void**)&gate, 64, cudaHostAllocMapped);
  gate[0] = gate[1] = 0;
  cudaHostGetDevicePointer((void**)&device_pinned, pinned, 0);
  unsigned* device_gate;
  cudaHostGetDevicePointer((void**)&device_gate, (void*)gate, 0);
  int lowest, highest;
  cudaDeviceGetStreamPriorityRange(&lowest, &highest);
  cudaStream_t home, own;
  cudaStreamCreateWithPriority(&home, cudaStreamNonBlocking, highest);
  cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  // All code is loaded, and all paths were used once.
  copy<<<1, 1>>>(first, device_pinned, 1);
  cudaMemcpy(host, first, sizeof host, cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  cudaStream_t in = wait.rfind("own", 0) == 0 ? own : nullptr;
  copy<<<1, 256, 0, in>>>(first, second, 100);
  hold(in, (CUdeviceptr)(device_gate + 1), 1, CU_STREAM_WAIT_VALUE_EQ);
  std::atomic<bool> returned{false}, done{false};
  std::thread([&] {
    if (wait == "down" || wait == "down-4-bytes") cudaMemcpy(host, first, wait == "down" ? sizeof host : 4, cudaMemcpyDeviceToHost);
    if (wait == "down-async" || wait == "own-down-async") cudaMemcpyAsync(host, first, sizeof host, cudaMemcpyDeviceToHost, in);
    if (wait == "down-pinned") cudaMemcpy(other_pinned, first, sizeof host, cudaMemcpyDeviceToHost);
    if (wait == "up") cudaMemcpy(first, host, sizeof host, cudaMemcpyHostToDevice);
    if (wait == "device") cudaDeviceSynchronize();
    if (wait == "stream" || wait == "own-stream") cudaStreamSynchronize(in);
    if (wait == "event") {
      cudaEventRecord(event, in);
      cudaEventSynchronize(event);
    }
  }).detach();
  usleep(150000);
  const double begun = milliseconds();
  std::thread([&] {
    cudaSetDevice(0);
    if (call == "write") write(home, (CUdeviceptr)device_gate, 7, 0);
    if (call == "launch") copy<<<1, 256, 0, home>>>(second, device_pinned, 32768);
    if (call == "copy") cudaMemcpyAsync(pinned, second, 131072, cudaMemcpyDeviceToHost, home);
    if (call == "set") cudaMemsetAsync(second, 0, 131072, home);
    returned = true;
    while (cudaStreamQuery(home) == cudaErrorNotReady) usleep(20);
    done = true;
  }).detach();
  while (milliseconds() - begun < 400 && !done) usleep(100);
  printf("result %s %s %s\n", wait.c_str(), call.c_str(), done ? "done" : returned ? "waits" : "blocked");
  fflush(stdout);
  gate[1] = 1;
  usleep(1000);
  _exit(0);
}
