// SPDX-License-Identifier: 0BSD
// In front of the text that nvcc hands to the host's compiler: its launches reach the host half. The names that the object asks the linker for are
// changed, and no word of the text is.
#pragma GCC system_header
// Each object has some rows, if only an empty one, and a word about the end of the process, which no linker leaves out and which holds on to the rows.
__asm__(
    ".pushsection cuinstr_rows,\"a\"\n"
    "771:\n"
    ".byte 0\n"
    ".popsection\n"
    ".pushsection .fini_array.00101,\"aw\",@fini_array\n"
    ".balign 8\n"
    ".reloc ., BFD_RELOC_NONE, 771b\n"
    ".quad __cuinstr_@HASH@_finish\n"
    ".popsection\n");
#pragma redefine_extname __cudaLaunchKernel __cuinstr_@HASH@_stub
#pragma redefine_extname __cudaLaunchKernel_ptsz __cuinstr_@HASH@_stub_ptsz
#pragma redefine_extname cudaLaunchKernel __cuinstr_@HASH@_kernel
#pragma redefine_extname cudaLaunchKernel_ptsz __cuinstr_@HASH@_kernel_ptsz
#pragma redefine_extname cudaLaunchCooperativeKernel __cuinstr_@HASH@_cooperative
#pragma redefine_extname cudaLaunchCooperativeKernel_ptsz __cuinstr_@HASH@_cooperative_ptsz
#pragma redefine_extname cudaLaunchKernelExC __cuinstr_@HASH@_extended
#pragma redefine_extname cudaLaunchKernelExC_ptsz __cuinstr_@HASH@_extended_ptsz
#pragma redefine_extname cudaFuncSetAttribute __cuinstr_@HASH@_attribute
#pragma redefine_extname cudaGraphLaunch __cuinstr_@HASH@_graph
#pragma redefine_extname cudaGraphLaunch_ptsz __cuinstr_@HASH@_graph_ptsz
#pragma redefine_extname cudaFree __cuinstr_@HASH@_free
#pragma redefine_extname cudaFreeHost __cuinstr_@HASH@_free_host
#pragma redefine_extname cudaMemcpy __cuinstr_@HASH@_copy
#pragma redefine_extname cudaMemcpy2D __cuinstr_@HASH@_copy_rows
#pragma redefine_extname cudaMemcpyToSymbol __cuinstr_@HASH@_copy_to
#pragma redefine_extname cudaMemcpyFromSymbol __cuinstr_@HASH@_copy_from
#pragma redefine_extname cudaStreamCreate __cuinstr_@HASH@_stream
#pragma redefine_extname cudaStreamCreateWithFlags __cuinstr_@HASH@_stream_flags
#pragma redefine_extname cudaStreamCreateWithPriority __cuinstr_@HASH@_stream_priority
#pragma redefine_extname __cudaPushCallConfiguration __cuinstr_@HASH@_push
// Where the source stands that a launch is written in.
struct __attribute__((visibility("hidden"))) __cuinstr_written_at {
  const char* file;
  int line;
  struct here {};
  __attribute__((always_inline)) inline __cuinstr_written_at(here, const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE()) : file(file_), line(line_) {}
};
// In a call this is one argument more, made where the call stands; in the declaration it is one parameter more, of that type and name.
static const __cuinstr_written_at::here __cuinstr_here __attribute__((unused)) = {};
#define __cudaPushCallConfiguration(...) __cudaPushCallConfiguration(__cuinstr_written_at(__cuinstr_here), __VA_ARGS__)
