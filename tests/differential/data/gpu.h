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
  // A bit for each site: whether the loop polls.
  unsigned long long polled;
  // Since the last look, or the first iteration: iterations of loops that poll, and when that was; and the most between two looks.
  unsigned long long iterations, most_iterations, since_ns, most_ns;
  unsigned long long looks;
  unsigned int budget, is_cut;
};
static __device__ gpu_state gpu_now;

static __device__ __attribute__((unused)) unsigned long long gpu_clock() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
// A thread has looked at the flag.
static __device__ __attribute__((unused)) void gpu_looked() {
  const unsigned long long now = gpu_clock();
  if (gpu_now.since_ns != 0ull && now - gpu_now.since_ns > gpu_now.most_ns) gpu_now.most_ns = now - gpu_now.since_ns;
  gpu_now.since_ns = now;
  gpu_now.iterations = 0ull;
  ++gpu_now.looks;
}
// An iteration of the user's begins; always true. CUDA's own function of this name takes a pointer.
static __device__ __attribute__((unused)) bool __stwt(int site, int) {
  if (gpu_now.ticks == gpu_now.budget) {
    gpu_now.is_cut = 1u;
    asm volatile("exit;" ::: "memory");
    // The compiler must see an end here: a loop whose only other end is an overflow runs as often as it can without one, for all that it knows.
    __builtin_unreachable();
  }
  ++gpu_now.ticks;
  gpu_now.hash = mixed(gpu_now.hash, (unsigned long long)site * 2u + 1u);
  if ((gpu_now.polled >> site & 1ull) != 0ull) {
    if (gpu_now.since_ns == 0ull) gpu_now.since_ns = gpu_clock();
    if (++gpu_now.iterations > gpu_now.most_iterations) gpu_now.most_iterations = gpu_now.iterations;
  }
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
  // In the order of the calling thread's own stream.
  cudaError_t (*reset)(const host_program& program);
  cudaError_t (*result)(gpu_state& state);
  gpu_batch* next;
};
extern gpu_batch* gpu_batches;

static __attribute__((unused)) cudaError_t gpu_reset(const host_program& program) {
  gpu_state fresh = {};
  fresh.hash = first_hash;
  fresh.budget = program.budget;
  for (unsigned int site = 0; site < program.sites && site < 64; ++site) fresh.polled |= (unsigned long long)program.polled[site] << site;
  return cudaMemcpyToSymbol(gpu_now, &fresh, sizeof fresh);
}
static __attribute__((unused)) cudaError_t gpu_result(gpu_state& state) { return cudaMemcpyFromSymbol(&state, gpu_now, sizeof state); }
// Puts a batch on the list. What is the unit's own is named by the unit: a class that all units define alike is linked once, and would hold
// one unit's functions and state for all.
struct gpu_registration {
  explicit gpu_registration(gpu_batch& batch) {
    batch.next = gpu_batches;
    gpu_batches = &batch;
  }
};
