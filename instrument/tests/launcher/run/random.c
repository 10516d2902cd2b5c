/* A program that launches random grids in random streams: what its first word, a number, chooses. Each block adds 1 to a word of its own. At its end it says of how
   many grids all blocks ran, of how many not all, how often a block ran that had run, and how often a copy or an event behind a grid came before all of it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
typedef void* handle;
typedef unsigned long long u64;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(handle*, int);
int cuCtxSetCurrent(handle);
int cuCtxSynchronize(void);
int cuStreamCreate(handle*, unsigned);
int cuStreamSynchronize(handle);
int cuModuleLoadData(handle*, const void*);
int cuModuleGetFunction(handle*, handle, const char*);
int cuMemAlloc_v2(u64*, size_t);
int cuMemFree_v2(u64);
int cuMemcpyHtoD_v2(u64, const void*, size_t);
int cuMemcpyDtoH_v2(void*, u64, size_t);
int cuMemcpyDtoHAsync_v2(void*, u64, size_t, handle);
int cuEventCreate(handle*, unsigned);
int cuEventRecord(handle, handle);
int cuEventQuery(handle);
int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**, void**);
int cuLaunchCooperativeKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**);

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry blocks(.param .u64 slots, .param .u64 ns, .param .u64 counts) { ret; }\n";
enum { MODULES = 3, MOST = 16, BLOCKS = 512 };
static struct {
  u64 counts;
  unsigned blocks;
  handle stream, behind;
} grids[MOST];
static unsigned made, early;
static u64 state;
static handle context;

static unsigned below(unsigned bound) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (unsigned)(state >> 20) % bound;
}
static void expect(int error) {
  if (error == 0) return;
  printf("error %d\n", error);
  exit(3);
}
static unsigned ran(unsigned grid) {
  static unsigned found[BLOCKS];
  unsigned once = 0;
  expect(cuMemcpyDtoHAsync_v2(found, grids[grid].counts, 4 * grids[grid].blocks, grids[grid].stream));
  for (unsigned block = 0; block < grids[grid].blocks; ++block) once += found[block] == 1;
  return once;
}
/* An event behind a grid comes when all of the grid has run. Memory of the stand-in is the host's. */
static void look_at_events(void) {
  for (unsigned grid = 0; grid < made; ++grid) {
    unsigned once = 0;
    if (cuEventQuery(grids[grid].behind) != 0) continue;
    for (unsigned block = 0; block < grids[grid].blocks; ++block) once += ((volatile unsigned*)grids[grid].counts)[block] == 1;
    early += once != grids[grid].blocks;
  }
}
/* Meanwhile another thread makes calls that wait for all kernels. */
static void* frees(void* count) {
  cuCtxSetCurrent(context);
  for (unsigned left = *(unsigned*)count; left > 0; --left) {
    u64 memory;
    usleep(30000);
    expect(cuMemAlloc_v2(&memory, 64));
    expect(cuMemFree_v2(memory));
  }
  return 0;
}
static void launch(handle module, handle stream) {
  handle function;
  static unsigned zeroes[BLOCKS];
  unsigned x = 1 + below(16), y = 1 + below(4), z = 1 + below(4);
  u64 slots = 1 + below(6), ns = below(4) ? 500000 + below(4000000) : 50000, *counts = &grids[made].counts;
  grids[made].blocks = x * y * z;
  grids[made].stream = stream;
  expect(cuMemAlloc_v2(counts, sizeof zeroes));
  expect(cuMemcpyHtoD_v2(*counts, zeroes, sizeof zeroes));
  expect(cuModuleGetFunction(&function, module, "blocks"));
  u64 packed[] = {slots, ns, *counts};
  size_t size = sizeof packed;
  void *words[] = {&slots, &ns, counts}, *extra[] = {(void*)1, packed, (void*)2, &size, 0};
  unsigned how = below(10);
  if (how == 0) expect(cuLaunchCooperativeKernel(function, x, y, z, 32, 1, 1, 0, stream, words));
  else expect(cuLaunchKernel(function, x, y, z, 32, 1, 1, 0, stream, how > 5 ? words : 0, how > 5 ? 0 : extra));
  expect(cuEventCreate(&grids[made].behind, 0));
  expect(cuEventRecord(grids[made].behind, stream));
  /* The arguments are the program's again. */
  slots = ns = packed[0] = packed[1] = packed[2] = 0;
  ++made;
}
int main(int count, char** words) {
  setvbuf(stdout, 0, _IONBF, 0);
  u64 seed = count > 1 ? strtoull(words[1], 0, 10) : 1;
  state = (seed + 1) * 0x9e3779b97f4a7c15ull;
  handle modules[MODULES], streams[MODULES] = {0};
  expect(cuInit(0));
  expect(cuDevicePrimaryCtxRetain(&context, 0));
  expect(cuCtxSetCurrent(context));
  for (unsigned at = 0; at < MODULES; ++at) {
    expect(cuModuleLoadData(&modules[at], ptx));
    if (at > 0 || seed % 2) expect(cuStreamCreate(&streams[at], 1));
  }
  unsigned frees_left = seed % 3 == 0 ? 3 : 0, leaves = seed % 7 == 6;
  pthread_t other;
  if (frees_left) pthread_create(&other, 0, frees, &frees_left);
  for (unsigned left = 4 + below(MOST - 4); left > 0; --left) {
    unsigned at = below(MODULES);
    /* Now and then a module is launched in several streams. */
    launch(modules[at], streams[below(8) ? at : below(MODULES)]);
    switch (below(6)) {
      case 0: early += ran(made - 1) != grids[made - 1].blocks; break;
      case 1: expect(cuStreamSynchronize(streams[below(MODULES)])); break;
      case 2: usleep(below(60000)); break;
      case 3: look_at_events(); break;
    }
    if (leaves && left < 4) exit(0);
  }
  if (frees_left) pthread_join(other, 0);
  for (unsigned looks = 0; looks < 20; ++looks) usleep(10000), look_at_events();
  expect(cuCtxSynchronize());
  unsigned whole = 0, parts = 0, often = 0;
  for (unsigned grid = 0; grid < made; ++grid) {
    unsigned found[BLOCKS], once = 0;
    expect(cuMemcpyDtoH_v2(found, grids[grid].counts, 4 * grids[grid].blocks));
    for (unsigned block = 0; block < grids[grid].blocks; ++block) once += found[block] == 1, often += found[block] > 1;
    once == grids[grid].blocks ? ++whole : ++parts;
  }
  printf("%u whole, %u in part, %u too often, %u early\n", whole, parts, often, early);
  return 0;
}
