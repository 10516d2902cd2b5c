/* A tool that looks at a program's calls, in the manner of NVIDIA's profilers. Its library is preloaded. The program's `dlopen` of the driver gives the tool's
   other library (INJECTION), which has the driver's SONAME. That one's functions count, and jump to what `dlsym` gives for the driver. FRONT is such a library
   under the driver's own file name, and its answers are the functions that the driver exports. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#ifdef INJECTION
#ifdef FRONT
static void* tool_driver(void) { return dlopen("fake/libcuda.so.1", RTLD_LAZY); }
static void tool_saw(void) {}
#else
void* tool_driver(void);
void tool_saw(void);
#endif
#define PASS(name, ...) \
  int name(__VA_ARGS__) { \
    tool_saw(); \
    void* real = dlsym(tool_driver(), #name);
typedef void* any;
PASS(cuGetProcAddress_v2, any a, any b, int c, unsigned long long d, any e)
#ifdef FRONT
  *(any*)b = dlsym(tool_driver(), a);
  return *(any*)b ? 0 : 500;
#endif
  return ((int (*)(any, any, int, unsigned long long, any))real)(a, b, c, d, e);
}
PASS(cuLaunchKernel, any a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g, unsigned h, any i, any j, any k)
  return ((int (*)(any, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, any, any, any))real)(a, b, c, d, e, f, g, h, i, j, k);
}
#else
typedef void* open_t(const char*, int);
static void *driver, *injection;
static int calls;
void* tool_driver(void) { return driver; }
void tool_saw(void) { ++calls; }
static __attribute__((destructor)) void tell(void) {
  if (injection) fprintf(stderr, "tool: %s\n", calls ? "saw calls" : "saw nothing");
}
void* dlopen(const char* path, int flags) {
  open_t* real = (open_t*)dlsym(RTLD_NEXT, "dlopen");
  if (path && !strcmp(path, "libcuda.so.1")) {
    if (!driver) driver = real(path, RTLD_LAZY);
    if (!injection) injection = real("./libcuda-injection.so", RTLD_LAZY);
    return injection;
  }
  return real(path, flags);
}
#endif
