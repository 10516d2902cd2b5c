// What a program of the differential test is compiled against for a GPU: the hooks, and how a batch is listed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits.h>

#include "arguments.h"

// What a run leaves behind; it goes on living when its thread has left.
struct gpu_state {
  unsigned long long hash, ticks;
  unsigned int budget, is_cut;
};
static __device__ gpu_state gpu_now;

// An iteration of the user's begins; always true. CUDA's own function of this name takes a pointer.
static __device__ __attribute__((unused)) bool __stwt(int site, int) {
  if (gpu_now.ticks == gpu_now.budget) {
    gpu_now.is_cut = 1u;
    asm volatile("exit;" ::: "memory");
  }
  ++gpu_now.ticks;
  gpu_now.hash = mixed(gpu_now.hash, (unsigned long long)site * 2u + 1u);
  return true;
}
// A side effect of the user's.
template <class T>
static __device__ void __stcg(int place, T value) {
  gpu_now.hash = mixed(mixed(gpu_now.hash, (unsigned long long)place * 2u), (unsigned long long)value);
}
static __device__ __attribute__((unused)) bool tick(int site) { return __stwt(site, 0); }
template <class T>
static __device__ void put(int place, T value) {
  __stcg(place, value);
}

// A translation unit's programs.
struct gpu_batch {
  const char* lane;
  const host_program* programs;
  unsigned int count;
  void (*reset)(unsigned int budget);
  gpu_state (*result)();
  gpu_batch* next;
};
extern gpu_batch* gpu_batches;

static __attribute__((unused)) void gpu_reset(unsigned int budget) {
  const gpu_state fresh = {first_hash, 0, budget, 0};
  cudaMemcpyToSymbol(gpu_now, &fresh, sizeof fresh);
}
static __attribute__((unused)) gpu_state gpu_result() {
  gpu_state result = {};
  cudaMemcpyFromSymbol(&result, gpu_now, sizeof result);
  return result;
}
struct gpu_registration {
  gpu_batch batch;
  gpu_registration(const char* lane, const host_program* programs, unsigned int count) : batch{lane, programs, count, gpu_reset, gpu_result, gpu_batches} {
    gpu_batches = &batch;
  }
};
