// What programs of the CUDA runtime have: a demangler, where they are linked with the library of C++, and
// the runtime's functions that the half itself calls, and those whose calls it stands in for, under names of our own.
static char* __cuinstr_c_demangle(const char*, char*, unsigned long*, int*) __attribute__((weakref("__cxa_demangle")));
struct __cuinstr_grid_@HASH@ {
  unsigned int x, y, z;
};
extern "C" {
int __cuinstr_r_cudaFree(void*) __asm__("cudaFree");
int __cuinstr_r_cudaFreeHost(void*) __asm__("cudaFreeHost");
int __cuinstr_r_copy(void*, const void*, unsigned long, int) __asm__("cudaMemcpy");
int __cuinstr_r_copy_rows(void*, unsigned long, const void*, unsigned long, unsigned long, unsigned long, int) __asm__("cudaMemcpy2D");
int __cuinstr_r_copy_to(const void*, const void*, unsigned long, unsigned long, int) __asm__("cudaMemcpyToSymbol");
int __cuinstr_r_copy_from(void*, const void*, unsigned long, unsigned long, int) __asm__("cudaMemcpyFromSymbol");
int __cuinstr_r_stream(void**) __asm__("cudaStreamCreate");
int __cuinstr_r_stream_flags(void**, unsigned int) __asm__("cudaStreamCreateWithFlags");
int __cuinstr_r_stream_priority(void**, unsigned int, int) __asm__("cudaStreamCreateWithPriority");
int __cuinstr_r_graph(void*, void*) __asm__("cudaGraphLaunch");
int __cuinstr_r_graph_ptsz(void*, void*) __asm__("cudaGraphLaunch_ptsz");
int __cuinstr_r_cudaGetDevice(int*) __asm__("cudaGetDevice");
int __cuinstr_r_cudaDeviceGetAttribute(int*, int, int) __asm__("cudaDeviceGetAttribute");
int __cuinstr_r_cudaFuncGetAttributes(void*, const void*) __asm__("cudaFuncGetAttributes");
int __cuinstr_r_attribute(const void*, int, int) __asm__("cudaFuncSetAttribute");
int __cuinstr_r_cudaGetFuncBySymbol(void**, const void*) __asm__("cudaGetFuncBySymbol");
unsigned int __cuinstr_r_push(__cuinstr_grid_@HASH@, __cuinstr_grid_@HASH@, unsigned long, void*) __asm__("__cudaPushCallConfiguration");
#define __cuinstr_real(name, symbol) \
  int __cuinstr_r_##name(const void*, __cuinstr_grid_@HASH@, __cuinstr_grid_@HASH@, void**, unsigned long, void*) __asm__(symbol)
__cuinstr_real(stub, "__cudaLaunchKernel");
__cuinstr_real(stub_ptsz, "__cudaLaunchKernel_ptsz");
__cuinstr_real(kernel, "cudaLaunchKernel");
__cuinstr_real(kernel_ptsz, "cudaLaunchKernel_ptsz");
__cuinstr_real(cooperative, "cudaLaunchCooperativeKernel");
__cuinstr_real(cooperative_ptsz, "cudaLaunchCooperativeKernel_ptsz");
int __cuinstr_r_extended(const void*, const void*, void**) __asm__("cudaLaunchKernelExC");
int __cuinstr_r_extended_ptsz(const void*, const void*, void**) __asm__("cudaLaunchKernelExC_ptsz");
}
#undef __cuinstr_real
