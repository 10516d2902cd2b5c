// SPDX-License-Identifier: 0BSD
// Inserted by cuinstr where nvcc compiles for the host, whose text is the user's own: the variables of the device's side that the CUDA runtime is told of.
// It goes by their names; of what type the host takes them to be does not matter.
#ifndef __cuinstr_prelude_v1
#define __cuinstr_prelude_v1
extern "C++" {
// Weak control words under -rdc=true need `inline` variables, which C++11 and C++14 know as an extension only.
#if defined(__CUDACC_RDC__)
#if __cplusplus < 201703L
#pragma nv_diagnostic push
#pragma nv_diag_suppress 3033
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wc++17-extensions"
#endif
#endif
inline __device__ unsigned int cuinstr_flag_v1[32];
inline __device__ unsigned int cuinstr_left_v1;
inline __device__ unsigned long long cuinstr_control_v1[@WORDS@];
#if @PAUSABLE@
inline __device__ unsigned long long cuinstr_pause_v1[6];
#endif
#if __cplusplus < 201703L
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#pragma nv_diagnostic pop
#endif
#else
static __device__ __attribute__((__unused__)) unsigned int cuinstr_flag_v1[32];
static __device__ __attribute__((__unused__)) unsigned int cuinstr_left_v1;
static __device__ __attribute__((__unused__)) unsigned long long cuinstr_control_v1[@WORDS@];
#if @PAUSABLE@
static __device__ __attribute__((__unused__)) unsigned long long cuinstr_pause_v1[6];
#endif
#endif
static __device__ __attribute__((__unused__)) char __cuinstr_sites_unit[1];
#if @VIRTUALS@
static __device__ __attribute__((__unused__)) unsigned long long __cuinstr_stop_is_first;
#endif
}
#endif
