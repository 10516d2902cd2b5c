/* Appends a line for each kernel of a process to the file that KERNEL_TIME names, while the process runs: a hash of its name, its time by CUPTI, and that times
   the time of one of its blocks. The driver loads it: CUDA_INJECTION64_PATH. */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* CUPTI's kinds and the beginning of its record of a kernel, up to the name: the same in CUpti_ActivityKernel3 of CUDA 7 to CUpti_ActivityKernel13 of 13.5.
   A buffer comes once all kernels in it are over, so a small one comes soon. */
enum { KERNEL = 3, CONCURRENT_KERNEL = 10, BYTES = 1 << 14, LINE = 64, PERIOD_US = 100000 };
struct kernel {
  uint32_t kind;
  uint8_t cache, carveout;
  uint16_t registers;
  uint32_t requested, executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], fixed_shared, shared;
  uint32_t local, local_total, correlation;
  int64_t grid_id;
  const char* name;
};
_Static_assert(offsetof(struct kernel, name) == 104, "CUPTI's offset");
static int (*next)(uint8_t*, size_t, void**);
static int (*flush)(uint32_t);
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
static uint64_t hash_of(const char* name) {
  uint64_t hash = 14695981039346656037u;
  while (name && *name) hash = (hash ^ (uint8_t)*name++) * 1099511628211u;
  return hash;
}
/* All lines of a buffer are one write, so that those of other threads and processes do not come between. */
static void take(void* context, uint32_t stream, uint8_t* place, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  char lines[BYTES / sizeof(struct kernel) * LINE];
  size_t length = 0;
  for (void* record = 0; valid > 0 && next(place, valid, &record) == 0;) {
    const struct kernel* one = record;
    if ((one->kind != KERNEL && one->kind != CONCURRENT_KERNEL) || one->end <= one->start) continue;
    const uint64_t took = one->end - one->start;
    length += (size_t)snprintf(lines + length, LINE, "%016" PRIx64 " %" PRIu64 " %.0f\n", hash_of(one->name), took, (double)took * block_of(one));
  }
  const int file = open(getenv("KERNEL_TIME"), O_WRONLY | O_APPEND);
  if (file >= 0 && write(file, lines, length) < 0) perror("KERNEL_TIME");
  if (file >= 0) close(file);
  free(place);
}
/* CUPTI's own period returns full buffers alone. No flush is under way or begins once the process ends. */
static pthread_mutex_t flushing = PTHREAD_MUTEX_INITIALIZER;
static void* flusher(void* none) {
  while (pthread_mutex_lock(&flushing) == 0) {
    flush(0);
    pthread_mutex_unlock(&flushing);
    usleep(PERIOD_US);
  }
  return none;
}
static void end(void) {
  pthread_mutex_lock(&flushing);
  flush(1);
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
  if (!callbacks || !enable || !next || !flush || callbacks(give, take) || enable(CONCURRENT_KERNEL)) return 1;
  pthread_t thread;
  if (pthread_create(&thread, 0, flusher, 0) == 0) pthread_detach(thread);
  atexit(end);
  return 1;
}
