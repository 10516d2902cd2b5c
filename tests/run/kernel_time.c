/* Adds up the time of all kernels of a process by CUPTI, and how long their blocks take, and writes it to the file that KERNEL_TIME names. The driver loads it:
   CUDA_INJECTION64_PATH. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* CUPTI's kinds and the beginning of its record of a kernel, which is the same in all versions since CUDA 7. */
enum { KERNEL = 3, CONCURRENT_KERNEL = 10, BYTES = 1 << 23 };
struct kernel {
  uint32_t kind;
  uint8_t cache, carveout;
  uint16_t registers;
  uint32_t requested, executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], fixed_shared, shared;
};
static int (*next)(uint8_t*, size_t, void**);
static int (*flush)(uint32_t);
static uint64_t nanoseconds, kernels;
/* The time of each kernel times that of one of its blocks: their mean by time is this over all time. */
static double block_time;
/* The first GPU's multiprocessors, and what each of them has: threads, blocks, registers, shared memory, and the driver's part of that in each block. */
enum { ATTRIBUTES = 6 };
static int device[ATTRIBUTES];

static double least(double one, double other) { return one < other ? one : other; }
/* How long a block takes, about: the kernel's time over the number of times that its blocks fill the GPU. */
static double block_of(const struct kernel* one) {
  const double threads = (double)one->block[0] * one->block[1] * one->block[2], blocks = (double)one->grid[0] * one->grid[1] * one->grid[2];
  const int warps = ((int)threads + 31) / 32, registers = (one->registers * 32 + 255) / 256 * 256 * warps;
  const int shared = one->fixed_shared + one->shared + device[5];
  double fit = least(device[1] / (32 * warps), device[2]);
  if (registers) fit = least(fit, device[3] / registers);
  if (shared) fit = least(fit, device[4] / shared);
  const double fills = blocks / (fit * device[0]);
  return (double)(one->end - one->start) / (fills > 1 ? fills : 1);
}

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
    block_time += (double)(one->end - one->start) * block_of(one);
    ++kernels;
  }
  free(place);
}
static void end(void) {
  flush(1);
  FILE* file = fopen(getenv("KERNEL_TIME"), "a");
  if (!file) return;
  fprintf(file, "%d %llu %llu %.0f\n", getpid(), (unsigned long long)nanoseconds, (unsigned long long)kernels, block_time);
  fclose(file);
}
int InitializeInjection(void) {
  void* cupti = getenv("CUPTI") ? dlopen(getenv("CUPTI"), RTLD_NOW) : 0;
  if (!cupti || !getenv("KERNEL_TIME")) return 1;
  int (*callbacks)(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t)) = 0;
  int (*enable)(int) = 0;
  int (*attribute)(int*, int, int) = 0;
  static const int asked[ATTRIBUTES] = {16, 39, 106, 82, 81, 111};
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda) *(void**)&attribute = dlsym(cuda, "cuDeviceGetAttribute");
  *(void**)&callbacks = dlsym(cupti, "cuptiActivityRegisterCallbacks");
  *(void**)&enable = dlsym(cupti, "cuptiActivityEnable");
  *(void**)&next = dlsym(cupti, "cuptiActivityGetNextRecord");
  *(void**)&flush = dlsym(cupti, "cuptiActivityFlushAll");
  for (int at = 0; attribute && at < ATTRIBUTES; ++at) attribute(&device[at], asked[at], 0);
  if (callbacks && enable && next && flush && callbacks(give, take) == 0 && enable(CONCURRENT_KERNEL) == 0) atexit(end);
  return 1;
}
