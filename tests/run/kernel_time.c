/* Adds up the time of all kernels of a process by CUPTI, and writes it to the file that KERNEL_TIME names. The driver loads it: CUDA_INJECTION64_PATH. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* CUPTI's kinds and the beginning of its record of a kernel, which is the same in all versions since CUDA 7. */
enum { KERNEL = 3, CONCURRENT_KERNEL = 10, BYTES = 1 << 23 };
struct kernel {
  uint32_t kind, configuration, requested, executed;
  uint64_t start, end;
};
static int (*next)(uint8_t*, size_t, void**);
static int (*flush)(uint32_t);
static uint64_t nanoseconds, kernels;

static void give(uint8_t** place, size_t* size, size_t* most) {
  *place = aligned_alloc(8, BYTES);
  *size = *place ? BYTES : 0;
  *most = 0;
}
static void take(void* context, uint32_t stream, uint8_t* place, size_t size, size_t valid) {
  for (void* record = 0; valid > 0 && next(place, valid, &record) == 0;) {
    const struct kernel* one = record;
    if (one->kind != KERNEL && one->kind != CONCURRENT_KERNEL) continue;
    nanoseconds += one->end - one->start;
    ++kernels;
  }
  free(place);
}
static void end(void) {
  flush(1);
  FILE* file = fopen(getenv("KERNEL_TIME"), "a");
  if (!file) return;
  fprintf(file, "%d %llu %llu\n", getpid(), (unsigned long long)nanoseconds, (unsigned long long)kernels);
  fclose(file);
}
int InitializeInjection(void) {
  void* cupti = getenv("CUPTI") ? dlopen(getenv("CUPTI"), RTLD_NOW) : 0;
  if (!cupti || !getenv("KERNEL_TIME")) return 1;
  int (*callbacks)(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t)) = 0;
  int (*enable)(int) = 0;
  *(void**)&callbacks = dlsym(cupti, "cuptiActivityRegisterCallbacks");
  *(void**)&enable = dlsym(cupti, "cuptiActivityEnable");
  *(void**)&next = dlsym(cupti, "cuptiActivityGetNextRecord");
  *(void**)&flush = dlsym(cupti, "cuptiActivityFlushAll");
  if (callbacks && enable && next && flush && callbacks(give, take) == 0 && enable(CONCURRENT_KERNEL) == 0) atexit(end);
  return 1;
}
