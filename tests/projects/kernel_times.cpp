// Sums the time of each kernel that a process runs, by CUPTI. The driver loads it into any program whose CUDA_INJECTION64_PATH names it; when the program
// exits, one line of JSON goes to the end of the file that KERNEL_TIMES names. `scripts/coverage --kernels` builds and uses it.
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

struct Sum {
  unsigned long long launches, nanoseconds;
};

std::mutex &guard() {
  static std::mutex *const one = new std::mutex;
  return *one;
}

std::map<std::string, Sum> &sums() {
  // Never destroyed: records come as long as the process lives.
  static auto *const one = new std::map<std::string, Sum>;
  return *one;
}

void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *records) {
  *size = 4 << 20;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, *size));
  *records = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  CUpti_Activity *record = nullptr;
  const std::lock_guard<std::mutex> held(guard());
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto *const kernel = reinterpret_cast<const CUpti_ActivityKernel10 *>(record);
      Sum &sum = sums()[kernel->name];
      sum.launches += 1;
      sum.nanoseconds += kernel->end - kernel->start;
    }
  }
  std::free(buffer);
}

void tell() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const char *const path = std::getenv("KERNEL_TIMES");
  std::FILE *const file = path ? std::fopen(path, "a") : nullptr;
  if (!file)
    return;
  const std::lock_guard<std::mutex> held(guard());
  std::fputc('{', file);
  const char *between = "";
  for (const auto &entry : sums()) {
    // Names are mangled: no character of them needs escaping.
    std::fprintf(file, "%s\"%s\": [%llu, %llu]", between, entry.first.c_str(), entry.second.launches, entry.second.nanoseconds);
    between = ", ";
  }
  std::fputs("}\n", file);
  std::fclose(file);
}

}  // namespace

extern "C" int InitializeInjection() {
  if (cuptiActivityRegisterCallbacks(requested, completed) != CUPTI_SUCCESS || cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS)
    return 1;
  std::atexit(tell);
  return 1;
}
