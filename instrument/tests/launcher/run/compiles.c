/* A program that compiles while it runs. Its first word is how it finds the compiler, the second the compiler's library, the others what it does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void* handle;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(handle*, int);
int cuCtxSetCurrent(handle);
int cuCtxSynchronize(void);
int cuModuleLoadData(handle*, const void*);
int cuModuleGetFunction(handle*, handle, const char*);
int cuLaunchKernel(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void**, void**);
#ifdef BOUND
int nvrtcGetCUBIN(handle, char*);
#endif

static handle library;
static int call(const char* name, void* a, void* b, const void* c) {
  int (*function)(void*, void*, const void*, int, int, int) = (int (*)(void*, void*, const void*, int, int, int))dlsym(library, name);
  int error = function(a, b, c, 0, 0, 0);
  if (error) printf("%s: %d\n", name, error);
  return error;
}
static void run(const void* code) {
  handle context, module, function;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  int a = cuModuleLoadData(&module, code), b = cuModuleGetFunction(&function, module, "spin");
  int c = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0);
  printf("spin: %d %d %d %d\n", a, b, c, cuCtxSynchronize());
}
static void rtc(const char* way, char* code) {
  static const char source[] = "__device__ volatile int at; extern \"C\" __global__ void spin() { while (at == 0) {} }";
  const char* options[] = {"-arch=sm_90"};
  handle program;
  int (*make)(handle*, const char*, const char*, int, void*, void*) = (int (*)(handle*, const char*, const char*, int, void*, void*))dlsym(library, "nvrtcCreateProgram");
  int (*compile)(handle, int, const char**) = (int (*)(handle, int, const char**))dlsym(library, "nvrtcCompileProgram");
  int a = make(&program, source, "spin.cu", 0, 0, 0), b = compile(program, 1, options);
  printf("made: %d %d\n", a, b);
#ifdef BOUND
  if (!strcmp(way, "bound")) {
    nvrtcGetCUBIN(program, code);
    return;
  }
#endif
  call("nvrtcGetCUBIN", program, code, 0);
}
static void link_with(const char* option, int kind, const char* input, char* code) {
  handle link;
  const char* options[] = {"-arch=sm_90", option};
  int (*make)(handle*, unsigned, const char**) = (int (*)(handle*, unsigned, const char**))dlsym(library, "__nvJitLinkCreate_12_4");
  int (*add)(handle, int, const void*, size_t, const char*) = (int (*)(handle, int, const void*, size_t, const char*))dlsym(library, "nvJitLinkAddData");
  int a = make(&link, 2, options), b = add(link, kind, input, strlen(input), "input");
  printf("linked: %d %d\n", a, b);
  call("nvJitLinkComplete", link, 0, 0);
  call("nvJitLinkGetLinkedCubin", link, code, 0);
  call("nvJitLinkDestroy", &link, 0, 0);
}
int main(int count, char** words) {
  static char code[1 << 20];
  setvbuf(stdout, 0, _IONBF, 0);
  library = dlopen(words[2], RTLD_NOW);
  if (!library) return puts(dlerror()), 9;
  for (int at = 3; at < count; ++at) {
    if (!strcmp(words[at], "rtc")) rtc(words[1], code);
    if (!strcmp(words[at], "lto")) link_with("-lto", 3, "intermediate code", code);
    if (!strcmp(words[at], "ptx")) {
      link_with("-O3", 2, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry spin() {\n$L: bra $L;\n}\n", code);
    }
    if (!strcmp(words[at], "keep")) {
      FILE* file = fopen("kept", "wb");
      fwrite(code, 1, sizeof code, file);
      fclose(file);
    }
    if (!strcmp(words[at], "take")) {
      FILE* file = fopen("kept", "rb");
      if (!file || fread(code, 1, sizeof code, file) != sizeof code) abort();
      fclose(file);
    }
    if (!strcmp(words[at], "run")) run(code);
  }
  return 0;
}
