/* A program that knows nothing of cuinstr, and no header of CUDA's. Its first word says how it finds the driver, the others what it does, in their order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
typedef void* handle;
typedef unsigned long long u64;
typedef int launch_t(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**, void**);
typedef int ask_t(const char*, void**, int, u64, int*);
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(handle*, int);
int cuCtxSetCurrent(handle);
int cuCtxSynchronize(void);
int cuStreamCreate(handle*, unsigned);
int cuModuleLoadData(handle*, const void*);
int cuModuleGetFunction(handle*, handle, const char*);
int cuModuleUnload(handle);
int cuLibraryLoadData(handle*, const void*, void*, void*, unsigned, void*, void*, unsigned);
int cuLibraryGetKernel(handle*, handle, const char*);
int cuStreamSynchronize(handle);
int cuStreamBeginCapture_v2(handle, int);
int cuStreamEndCapture(handle, handle*);
int cuMemAlloc_v2(u64*, size_t);
int cuMemFree_v2(u64);
int cuFuncLoad(handle);
int cuMemcpyDtoH_v2(void*, u64, size_t);
int cuMemcpyDtoHAsync_v2(void*, u64, size_t, handle);
int cuLaunchCooperativeKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**);
int cuLaunchKernelEx(const void*, handle, void**, void**);
launch_t cuLaunchKernel;

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry spin() {\n$L: bra $L;\n}\n"
    ".visible .entry blocks(.param .u64 slots, .param .u64 ns, .param .u64 counts) { ret; }\n"
    ".visible .entry _Z4workm(.param .u64 p) { ret; }\n.visible .entry done() { ret; }\n.visible .entry nccl_spin() {\n$L: bra $L;\n}\n";
/* A kernel that calls a function that repeats. */
static const char calling[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.func repeats() {\n.reg .pred p;\n.reg .b32 r;\n.reg .b64 a;\nmov.b64 a, 0;\n$M: ld.volatile.global.b32 r, [a];\n"
    "setp.ne.b32 p, r, 0;\n@p bra $M;\nret;\n}\n.visible .entry calls() {\ncall.uni repeats;\nret;\n}\n";
/* No machine code at all, but the stand-in takes it for that. */
static const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7, [18] = 190, [40] = 64, [54] = 56, [58] = 64};

static launch_t* launch = cuLaunchKernel;
static handle module, stream;

static int start(const char* name, handle in) {
  handle function;
  u64 ns = 20000000;
  void* words[] = {&ns};
  int error = cuModuleGetFunction(&function, module, name);
  return error ? error : launch(function, 1, 1, 1, 32, 1, 1, 0, in, words, 0);
}
/* A grid whose blocks take 25 ms each, four at a time, and add 1 each to a word of theirs. How it is launched is a letter. */
enum { BLOCKS = 96 };
static u64 counts[1024];
static int count_of_grids;
static int start_blocks(char how, handle in) {
  handle function;
  u64 slots = 4, ns = 25000000, *at = &counts[count_of_grids++];
  unsigned zeroes[BLOCKS] = {0};
  int cuMemcpyHtoD_v2(u64, const void*, size_t);
  cuMemAlloc_v2(at, sizeof zeroes);
  cuMemcpyHtoD_v2(*at, zeroes, sizeof zeroes);
  if (how == 'q') ns = 1000000;
  /* All at once. */
  if (how == 'L' || how == 'R') slots = BLOCKS;
  u64 packed[] = {slots, ns, *at};
  size_t size = sizeof packed;
  void *words[] = {&slots, &ns, at}, *extra[] = {(void*)1, packed, (void*)2, &size, 0};
  int error = cuModuleGetFunction(&function, module, "blocks");
  if (error) return error;
  if (how == 'p') return launch(function, 8, 6, 2, 32, 1, 1, 0, in, 0, extra);
  if (how == 'c') return cuLaunchCooperativeKernel(function, 8, 6, 2, 32, 1, 1, 0, in, words);
  if (how == 'x' || how == 'k') {
    /* A priority, or clusters of two blocks. */
    unsigned attribute[18] = {how == 'x' ? 8 : 4, 0, 2, 1, 1};
    struct { unsigned grid[3], block[3], shared; handle stream; void* attributes; unsigned count; } about = {{8, 6, 2}, {32, 1, 1}, 0, in, attribute, 1};
    return cuLaunchKernelEx(&about, function, words, 0);
  }
  return launch(function, 8, 6, 2, 32, 1, 1, 0, in, words, 0);
}
/* How often the blocks of all grids ran. */
static const char* times(void) {
  unsigned least = -1, most = 0;
  for (int grid = 0; grid < count_of_grids; ++grid) {
    /* What can not be copied, as when the context is lost, has not run. */
    unsigned found[BLOCKS] = {0};
    cuMemcpyDtoH_v2(found, counts[grid], sizeof found);
    for (int at = 0; at < BLOCKS; ++at) {
      if (found[at] < least) least = found[at];
      if (found[at] > most) most = found[at];
    }
  }
  return least == 1 && most == 1 ? "once" : most <= 1 ? "not all" : "too often";
}
static long long command(const char* words) {
  return ((long long (*)(const char*))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuinstr_stand_in"))(words);
}
/* The first grid has been paused, and none of its blocks runs. */
static void wait_until_drained(void) {
  while (command("begun") == 0 || command("running") != 0) usleep(1000);
}
/* A block that runs waits until all others have begun, as in a scan by the blocks' numbers: the stand-in holds one on request. */
static void* hold_one(void* which) {
  for (int have_begun = 0; have_begun < BLOCKS; usleep(1000)) {
    have_begun = 0;
    for (int at = 0; at < BLOCKS; ++at) have_begun += ((volatile unsigned*)*(u64*)which)[at] != 0;
  }
  command("stuck 0");
  return 0;
}
/* A call that the driver does not come back from while a stream is held. */
static void* free_later(void* context) {
  u64 memory;
  cuCtxSetCurrent(context);
  cuMemAlloc_v2(&memory, 64);
  wait_until_drained();
  if (cuMemFree_v2(memory) != 0) abort();
  return 0;
}
static void* lose_all(void* context) {
  wait_until_drained();
  usleep(300000);
  cuCtxSetCurrent(context);
  command("lose 700");
  return 0;
}
static void* in_thread(void* name) {
  handle context;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  for (int i = 0; i < 50; ++i) {
    if (start(name, 0) != 0) abort();
  }
  return 0;
}
static const char* owner(void* function) {
  Dl_info about;
  if (!dladdr(function, &about)) return "nobody";
  return strstr(about.dli_fname, "interpose") ? "ours" : "the driver's";
}
static void set_up(void) {
  handle context;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  if (!module && cuModuleLoadData(&module, ptx) != 0) abort();
  cuStreamCreate(&stream, 1);
}
int main(int count, char** words) {
  setvbuf(stdout, 0, _IONBF, 0);
  const char* way = words[1];
  void* library = strcmp(way, "plt") ? dlopen("libcuda.so.1", RTLD_LAZY) : 0;
  if (!strcmp(way, "dlsym")) launch = (launch_t*)dlsym(library, "cuLaunchKernel");
  if (!strcmp(way, "ask")) ((ask_t*)dlsym(library, "cuGetProcAddress_v2"))("cuLaunchKernel", (void**)&launch, 12000, 0, 0);
  for (int at = 2; at < count; ++at) {
    const char* word = words[at];
    if (!strcmp(word, "pointers")) {
      /* What each name leads to, by version and flags. */
      ask_t* ask = (ask_t*)dlsym(library, "cuGetProcAddress_v2");
      static const struct { const char* name; int version; u64 flags; } asked[] = {
          {"cuLaunchKernel", 4000, 0}, {"cuLaunchKernel", 13000, 0}, {"cuLaunchKernel", 13000, 2}, {"cuLaunchKernelEx", 12000, 2},
          {"cuLaunchKernelEx", 11000, 0}, {"cuGetProcAddress", 11030, 0}, {"cuGetProcAddress", 13000, 0}, {"cuMemAlloc", 13000, 0},
          {"cuLibraryLoadData", 12000, 0}, {"cuLibraryLoadData", 11080, 0}, {"cuStreamSynchronize", 13000, 2}};
      for (unsigned i = 0; i < sizeof asked / sizeof *asked; ++i) {
        void* found = 0;
        int error = ask(asked[i].name, &found, asked[i].version, asked[i].flags, 0);
        printf("%s %d %llu: %d %s\n", asked[i].name, asked[i].version, asked[i].flags, error, found ? owner(found) : "none");
      }
      /* The one that was found by asking asks itself. */
      ask_t* again = 0;
      ask("cuGetProcAddress", (void**)&again, 12000, 0, 0);
      void* found = 0;
      again("cuLaunchCooperativeKernel", &found, 12000, 0, 0);
      printf("again: %s\n", owner(found));
    } else if (!strcmp(word, "next")) {
      printf("next: %s, puts %s\n", owner(dlsym(RTLD_NEXT, "cuLaunchKernel")), dlsym(RTLD_DEFAULT, "puts") == (void*)puts ? "found" : "lost");
    } else if (!strcmp(word, "local")) {
      /* What a library looks up in its own scope, which is not the program's. */
      int (*probe)(void) = (int (*)(void))dlsym(dlopen("./liblocal.so", RTLD_LAZY | RTLD_LOCAL), "cuProbe");
      printf("local: %d\n", probe());
    } else if (!strncmp(word, "blocks-", 7)) {
      set_up();
      handle other_module, function;
      if (word[7] == 'M' && cuModuleLoadData(&other_module, ptx) != 0) abort();
      int a = 0, many = word[7] == 'q' ? 300 : word[7] == 'm' ? 3 : word[7] == 'L' ? 2 : 1;
      if (word[7] == 'H') stream = 0;
      for (int i = 0; i < many && !a; ++i) a = start_blocks(word[7], stream);
      if (word[7] == 't' || word[7] == 'l') {
        handle other;
        cuStreamCreate(&other, 1);
        /* At once, or while the first grid is paused. */
        if (word[7] == 'l') {
          wait_until_drained();
          usleep(300000);
        }
        a = a || start_blocks('t', other);
      }
      pthread_t holder;
      handle context;
      cuDevicePrimaryCtxRetain(&context, 0);
      if (word[7] == 's') pthread_create(&holder, 0, hold_one, &counts[0]);
      if (word[7] == 'd') pthread_create(&holder, 0, lose_all, context);
      if (word[7] == 'F') pthread_create(&holder, 0, free_later, context);
      if (word[7] == 'R') {
        /* The grid is over and was paused, and its kernel runs again as part of a graph. */
        int cuGraphLaunch(handle, handle);
        handle graph;
        wait_until_drained();
        a = a || cuStreamBeginCapture_v2(stream, 0) || start_blocks('R', stream) || cuStreamEndCapture(stream, &graph) || cuGraphLaunch(graph, stream);
      }
      if (word[7] == 'L') {
        /* The request has come, or is held up. The first grid is over then, and the second one waits. */
        while (command("begun") == 0 || (command("running") != 0 && command("blocked") == 0)) usleep(1000);
        command("open");
        while (command("running") != 0) usleep(1000);
        printf("held up: %lld\n", command("release"));
      }
      if (word[7] == 'f') {
        u64 memory;
        cuMemAlloc_v2(&memory, 64);
        a = a || cuMemFree_v2(memory);
      }
      if (word[7] == 'M') {
        /* Code that is loaded while the grid runs. */
        a = a || cuModuleGetFunction(&function, other_module, "done") || cuFuncLoad(function);
      }
      if (word[7] == 'h' || word[7] == 'H') {
        /* A copy behind the grid, by a call that waits. */
        unsigned found[BLOCKS], complete = 0;
        if (word[7] == 'h') cuMemcpyDtoHAsync_v2(found, counts[0], sizeof found, stream);
        else cuMemcpyDtoH_v2(found, counts[0], sizeof found);
        for (int at = 0; at < BLOCKS; ++at) complete += found[at] == 1;
        printf("behind: %u\n", complete);
      }
      if (word[7] == 'G') {
        /* A graph, launched while the grid is paused: how many blocks have run by then? */
        int cuGraphLaunch(handle, handle);
        unsigned complete = 0;
        wait_until_drained();
        a = a || cuGraphLaunch(0, 0);
        for (int at = 0; at < BLOCKS; ++at) complete += ((volatile unsigned*)counts[0])[at] == 1;
        printf("graph behind: %u\n", complete);
      }
      if (word[7] == 'e') {
        wait_until_drained();
        usleep(1500000);
        exit(a);
      }
      a = a || start("done", stream);
      printf("%s: %d", word, a);
      int b = cuStreamSynchronize(stream), c = cuCtxSynchronize();
      printf(" %d %d %s\n", b, c, times());
    } else if (!strcmp(word, "graph")) {
      int cuGraphLaunch(handle, handle);
      printf("graph: %d\n", cuGraphLaunch(0, 0));
    } else if (!strcmp(word, "capture")) {
      set_up();
      handle graph;
      cuStreamBeginCapture_v2(stream, 0);
      int a = start("done", stream);
      printf("capture: %d %d\n", a, cuStreamEndCapture(stream, &graph));
    } else if (!strcmp(word, "idle")) {
      sleep(50);
    } else if (!strcmp(word, "fork")) {
      fflush(stdout);
      if (fork() == 0) {
        set_up();
        printf("child: %d", start("spin", 0));
        printf(" %d\n", cuCtxSynchronize());
        exit(0);
      }
      wait(0);
    } else if (!strcmp(word, "exec")) {
      execl(words[0], words[0], "plt", "done", (char*)0);
    } else if (!strcmp(word, "threads")) {
      set_up();
      pthread_t threads[4];
      for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, in_thread, "done");
      for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
      printf("threads: %d\n", cuCtxSynchronize());
    } else if (!strcmp(word, "streams")) {
      /* A short kernel on one stream beside a hang on another. */
      set_up();
      int a = start("spin", stream), b = start("_Z4workm", 0);
      printf("streams: %d %d %d\n", a, b, cuCtxSynchronize());
    } else if (!strcmp(word, "code") || !strcmp(word, "deaf")) {
      set_up();
      handle code = 0;
      int error = cuModuleLoadData(&code, cubin);
      module = code;
      printf("code: %d", error);
      printf(" %d", start(!strcmp(word, "deaf") ? "deaf_code" : "sound_code", 0));
      printf(" %d\n", cuCtxSynchronize());
    } else if (!strcmp(word, "library")) {
      set_up();
      handle found, kernel;
      int a = cuLibraryLoadData(&found, ptx, 0, 0, 0, 0, 0, 0), b = cuLibraryGetKernel(&kernel, found, "spin");
      int c = launch(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
      printf("library: %d %d %d %d\n", a, b, c, cuCtxSynchronize());
    } else if (!strcmp(word, "behind")) {
      set_up();
      handle first = module;
      int a = cuModuleLoadData(&module, ptx), d = 0;
      handle second = module;
      module = first;
      int b = start("spin", 0);
      module = second;
      for (int i = 0; i < 20 && !d; ++i) d = start("done", 0);
      printf("behind: %d %d %d %d\n", a, b, d, cuCtxSynchronize());
    } else if (!strcmp(word, "calls")) {
      set_up();
      int a = cuModuleUnload(module) || cuModuleLoadData(&module, calling);
      printf("calls: %d %d", a, start("calls", 0));
      printf(" %d\n", cuCtxSynchronize());
    } else if (!strcmp(word, "reload") || !strcmp(word, "unload")) {
      /* The second one's module is gone as soon as its hang is over, as at the end of a program. */
      set_up();
      int error = 0, hangs = *word == 'u';
      for (int i = 0; i < (hangs ? 8 : 40) && !error; ++i) {
        error = start(hangs ? "spin" : "done", 0) || cuCtxSynchronize() || cuModuleUnload(module) || cuModuleLoadData(&module, ptx);
      }
      printf("%s: %d\n", word, error);
    } else {
      set_up();
      printf("%s: %d", word, start(word, 0));
      printf(" %d\n", cuCtxSynchronize());
    }
  }
  return 0;
}
