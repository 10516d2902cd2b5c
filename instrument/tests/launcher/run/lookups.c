/* A program that looks up what it has loaded in all ways, and knows nothing of cuinstr. Its word says how. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef void* handle;
typedef unsigned long long u64;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(handle*, int);
int cuCtxSetCurrent(handle);
int cuCtxSynchronize(void);
int cuModuleLoadData(handle*, const void*);
int cuModuleGetFunction(handle*, handle, const char*);
int cuModuleUnload(handle);
int cuLibraryLoadData(handle*, const void*, int*, void**, unsigned, int*, void**, unsigned);
int cuLibraryLoadFromFile(handle*, const char*, int*, void**, unsigned, int*, void**, unsigned);
int cuLibraryUnload(handle);
int cuLibraryGetKernel(handle*, handle, const char*);
int cuLibraryGetKernelCount(unsigned*, handle);
int cuLibraryEnumerateKernels(handle*, unsigned, handle);
int cuLibraryGetModule(handle*, handle);
int cuLibraryGetGlobal(u64*, size_t*, handle, const char*);
int cuKernelGetFunction(handle*, handle);
int cuMemAlloc_v2(u64*, size_t);
int cuMemcpyHtoD_v2(u64, const void*, size_t);
int cuMemcpyDtoH_v2(void*, u64, size_t);
int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**, void**);

static const char code[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b8 told[64];\n.visible .entry spin() {\n$L: bra $L;\n}\n"
    ".visible .entry blocks(.param .u64 slots, .param .u64 ns, .param .u64 counts) { ret; }\n.visible .entry done() { ret; }\n";
static handle library;

static long long command(const char* words) {
  return ((long long (*)(const char*))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuinstr_stand_in"))(words);
}
static void set_up(void) {
  handle context;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
}
/* Runs twelve blocks, and says how many have run once. */
static int run(handle kernel) {
  unsigned found[12] = {0}, once = 0;
  u64 slots = 4, ns = 1000, at;
  cuMemAlloc_v2(&at, sizeof found);
  cuMemcpyHtoD_v2(at, found, sizeof found);
  void* words[] = {&slots, &ns, &at};
  int error = cuLaunchKernel(kernel, 12, 1, 1, 32, 1, 1, 0, 0, words, 0);
  if (error) return -error;
  cuCtxSynchronize();
  cuMemcpyDtoH_v2(found, at, sizeof found);
  for (int i = 0; i < 12; ++i) once += found[i] == 1;
  return once;
}
static int start(handle kernel) { return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0); }
/* The program keeps neither its code nor its options. */
static int load(void) {
  char* own = strdup(code);
  char message[64];
  int names[] = {5, 6, 0};
  void* values[] = {message, (void*)64, (void*)32};
  int error = cuLibraryLoadData(&library, own, names, values, 3, 0, 0, 0);
  memset(own, '?', sizeof code - 1);
  free(own);
  return error;
}
/* One call each, since the order of a call's arguments is the compiler's. */
static void say(const char* what, long long answer) { printf("%s %lld\n", what, answer); }
static void use(void) {
  handle kernel, function, module, all[8];
  unsigned count = 0, ones[16], read[16] = {0};
  u64 variable = 0;
  size_t bytes = 0;
  for (int i = 0; i < 16; ++i) ones[i] = i;
  say("kernel", cuLibraryGetKernel(&kernel, library, "blocks"));
  say("ran", run(kernel));
  say("function", cuKernelGetFunction(&function, kernel));
  say("ran", run(function));
  say("module", cuLibraryGetModule(&module, library));
  say("its function", cuModuleGetFunction(&function, module, "done"));
  say("started", start(function));
  say("count", cuLibraryGetKernelCount(&count, library));
  say("of", count);
  say("all", cuLibraryEnumerateKernels(all, count, library));
  say("last started", start(all[count - 1]));
  say("variable", cuLibraryGetGlobal(&variable, &bytes, library, "told"));
  say("of", bytes);
  say("written", cuMemcpyHtoD_v2(variable, ones, sizeof ones));
  say("read", cuMemcpyDtoH_v2(read, variable, sizeof read));
  say("is another", memcmp(ones, read, sizeof ones));
  say("no kernel", cuLibraryGetKernel(&kernel, library, "none"));
}
static void unload(void) {
  say("unload", cuLibraryUnload(library));
  say("live", command("live modules"));
}
static void* in_thread(void* errors) {
  handle kernel;
  set_up();
  int error = cuLibraryGetKernel(&kernel, library, "done");
  *(int*)errors = error ? error : start(kernel);
  return 0;
}
int main(int count, char** words) {
  const char* way = words[count - 1];
  setvbuf(stdout, 0, _IONBF, 0);
  cuInit(0);
  if (!strcmp(way, "library") || !strcmp(way, "file")) {
    set_up();
    say("load", *way == 'l' ? load() : cuLibraryLoadFromFile(&library, "code.ptx", 0, 0, 0, 0, 0, 0));
    use();
    unload();
  } else if (!strcmp(way, "early")) {
    /* Kernels are looked up while there is no context. */
    handle kernel, function, all[3];
    say("load", load());
    say("early kernel", cuLibraryGetKernel(&kernel, library, "blocks"));
    say("early all", cuLibraryEnumerateKernels(all, 3, library));
    set_up();
    say("ran", run(kernel));
    say("ran", run(kernel));
    say("another started", start(all[2]));
    say("function", cuKernelGetFunction(&function, kernel));
    say("ran", run(function));
    use();
    unload();
  } else if (!strcmp(way, "module")) {
    handle module, function;
    set_up();
    say("load", cuModuleLoadData(&module, code));
    say("function", cuModuleGetFunction(&function, module, "blocks"));
    say("ran", run(function));
    say("unload", cuModuleUnload(module));
    say("live", command("live modules"));
  } else if (!strcmp(way, "variable")) {
    /* The driver refuses the code for another GPU, say, when the program has a variable of it. */
    handle kernel;
    u64 variable;
    set_up();
    say("load", load());
    say("variable", cuLibraryGetGlobal(&variable, 0, library, "told"));
    command("late 218");
    say("kernel", cuLibraryGetKernel(&kernel, library, "done"));
    say("kernel", cuLibraryGetKernel(&kernel, library, "done"));
    unload();
  } else if (!strcmp(way, "again")) {
    int errors = 0;
    handle kernel;
    set_up();
    for (int i = 0; i < 20; ++i) {
      errors += load() || cuLibraryGetKernel(&kernel, library, "done") || start(kernel) || cuCtxSynchronize() || cuLibraryUnload(library);
    }
    say("errors", errors);
    say("live", command("live modules"));
  } else if (!strcmp(way, "threads")) {
    pthread_t threads[8];
    int errors[8] = {0}, sum = 0;
    set_up();
    sum = load();
    /* The driver is long about the first look-up. */
    command("block cuLibraryGetGlobal 1");
    for (int i = 0; i < 8; ++i) pthread_create(&threads[i], 0, in_thread, &errors[i]);
    while (command("blocked") == 0) usleep(1000);
    usleep(200000);
    command("release");
    for (int i = 0; i < 8; ++i) pthread_join(threads[i], 0), sum += errors[i];
    say("threads", sum);
    say("done", cuCtxSynchronize());
    say("loaded", command("calls cuLibraryLoadData"));
    unload();
  }
  return 0;
}
