// SPDX-License-Identifier: 0BSD
// In front of the text that nvcc hands to the host's compiler: its launches reach the host half. The names that the object asks the linker for are
// changed, and no word of the text is.
#pragma GCC system_header
#pragma redefine_extname __cudaLaunchKernel __cuinstr_@HASH@_stub
#pragma redefine_extname __cudaLaunchKernel_ptsz __cuinstr_@HASH@_stub_ptsz
#pragma redefine_extname cudaLaunchKernel __cuinstr_@HASH@_kernel
#pragma redefine_extname cudaLaunchKernel_ptsz __cuinstr_@HASH@_kernel_ptsz
#pragma redefine_extname cudaLaunchCooperativeKernel __cuinstr_@HASH@_cooperative
#pragma redefine_extname cudaLaunchCooperativeKernel_ptsz __cuinstr_@HASH@_cooperative_ptsz
#pragma redefine_extname cudaLaunchKernelExC __cuinstr_@HASH@_extended
#pragma redefine_extname cudaLaunchKernelExC_ptsz __cuinstr_@HASH@_extended_ptsz
#pragma redefine_extname __cudaPushCallConfiguration __cuinstr_@HASH@_push
// Where the source stands that a launch is written in.
struct __cuinstr_written_at {
  const char* file;
  int line;
  struct here {};
  __cuinstr_written_at(here, const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE()) : file(file_), line(line_) {}
};
// In a call this is one argument more, made where the call stands; in the declaration it is one parameter more, of that type and name.
static const __cuinstr_written_at::here __cuinstr_here __attribute__((unused)) = {};
#define __cudaPushCallConfiguration(...) __cudaPushCallConfiguration(__cuinstr_written_at(__cuinstr_here), __VA_ARGS__)
