// What a program of the differential test is compiled against on the host: CUDA's words, and the test's hooks under names that CUDA has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits.h>

#include "arguments.h"

#define __device__
#define __host__
#define __global__ __attribute__((noinline))
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __CUDA_ARCH__ 900

struct host_triple {
  unsigned int x, y, z;
};
static const host_triple threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0}, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

// The hooks; `run.cpp` defines them, in another translation unit, so that no optimisation looks through.
void host_tick(unsigned int site);
void host_put(unsigned int place, unsigned long long value);
void host_edge();
unsigned int host_look(const unsigned int* word);
unsigned long long host_now();
[[noreturn]] void host_leave();
void host_stop(unsigned long long site, unsigned int why);

// An iteration of the user's begins; always true.
inline bool __stwt(unsigned int site, int) {
  host_tick(site);
  return true;
}
// A side effect of the user's.
template <class T>
inline void __stcg(unsigned int place, T value) {
  host_put(place, (unsigned long long)value);
}
inline bool tick(unsigned int site) { return __stwt(site, 0); }
template <class T>
inline void put(unsigned int place, T value) {
  host_put(place, (unsigned long long)value);
}
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }

template <class T, class U>
inline T atomicCAS(T* word, U compare, U value) {
  const T before = *word;
  if (before == (T)compare) *word = (T)value;
  return before;
}
template <class T, class U>
inline T atomicAdd(T* word, U value) {
  const T before = *word;
  *word = (T)(before + value);
  return before;
}
template <class T, class U>
inline T atomicMax(T* word, U value) {
  const T before = *word;
  if (before < (T)value) *word = (T)value;
  return before;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __syncthreads() {}
inline void __nanosleep(unsigned int) {}

extern const host_program host_programs[];
extern const unsigned int host_program_count;
// Whether the programs were rewritten, and with fuel.
extern const bool host_is_rewritten, host_has_fuel;
// Makes the control block ready for a run with so much fuel; says where its flag is, what its launch is, and what fuel was used.
void host_arm(unsigned int launch, unsigned long long fuel);
const unsigned int* host_flag();
unsigned int host_launch();
unsigned long long host_fuel_used();
