// SPDX-License-Identifier: 0BSD
// Inserted by cuinstr: the device side of docs/ABI.md. This text may land in anybody's source, without conditions.
#ifndef __cuinstr_prelude_v1
#define __cuinstr_prelude_v1
// NVRTC makes weak words with a name of ours from nothing but an `inline` variable, and takes those from C++17 on.
#if defined(__CUDACC_RTC__) && defined(__CUDACC_RDC__) && __cplusplus < 201703L
#error "cuinstr: NVRTC with relocatable device code needs C++17 (--std=c++17)"
#endif
// Weak control words under -rdc=true need `inline` variables, which C++11 and C++14 know as an extension only.
#if defined(__CUDACC_RDC__) && __cplusplus < 201703L
#pragma nv_diagnostic push
#pragma nv_diag_suppress 3033
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wc++17-extensions"
#endif
#endif
extern "C++" {
@CONTROL_BLOCK@
// What is compiled in for hosts that arm nothing. 0 stands for no limit.
#define __cuinstr_timeout_ns @TIMEOUT_NS@ull
#define __cuinstr_budget_cycles @BUDGET_CYCLES@ull
#define __cuinstr_fuel @FUEL@ull
#define __cuinstr_gate @GATE@
// Whether threads check at barriers if others of their block have left. Another translation unit's barriers are not in sight.
#if defined(__CUDACC_RDC__)
#define __cuinstr_barriers 1
#else
#define __cuinstr_barriers @BARRIERS@
#endif
#define __cuinstr_clocks (@TIMEOUT_NS@ull != 0 || @BUDGET_CYCLES@ull != 0)
// Iterations, by weight, between two looks of one function activation: at first, at most, both as powers of two; how many are too few to
// cut a loop into; and the time that they should take. Debug builds look at each.
#ifdef __CUDACC_DEBUG__
#define __cuinstr_first_pace 0u
#define __cuinstr_most_pace 0u
#define __cuinstr_nest 0u
#define __cuinstr_short 1u
#else
#define __cuinstr_first_pace @FIRST_PACE@u
#define __cuinstr_most_pace @MOST_PACE@u
#define __cuinstr_nest @NEST@u
#define __cuinstr_short @SHORT@u
#endif
#define __cuinstr_chunk (1u << __cuinstr_first_pace)
#define __cuinstr_most (1u << __cuinstr_most_pace)
// In units of 1024 ns.
#define __cuinstr_gap @GAP@u
// For loops of ours around the user's own, in front of which a pragma to unroll may stand.
#define __cuinstr_pragma(__cuinstr_text) _Pragma(#__cuinstr_text)
#define __cuinstr_rolled _Pragma("unroll 1")
// One definition a program: static where a translation unit is the program, merged by nvlink where it is not.
#ifdef __CUDACC_RDC__
#define __cuinstr_shared_definition inline
#else
#define __cuinstr_shared_definition static
#endif
#define __cuinstr_device static __device__ __attribute__((unused)) __forceinline__
#if __cplusplus >= 201402L
#define __cuinstr_constexpr constexpr
#define __cuinstr_evaluated_by_compiler __builtin_is_constant_evaluated()
#else
#define __cuinstr_constexpr
#define __cuinstr_evaluated_by_compiler false
#endif
#define __cuinstr_everywhere __attribute__((unused)) static __host__ __device__ __forceinline__ __cuinstr_constexpr
__cuinstr_shared_definition __device__ unsigned int cuinstr_flag_v1 = 0u;
__cuinstr_shared_definition __device__ __cuinstr_control cuinstr_control_v1 = {
    1u, 0u, 1u, 0u, &cuinstr_flag_v1, 0ull, 0ull, 0ull, 0ull, nullptr, nullptr, {}};

// Words that a host or another thread may change while the kernel runs are read past the first cache; the flag at system scope in
// loops, since it may lie in host memory. At a kernel's two ends, where every thread passes once, the narrower scope is half the price,
// and what it could miss there the clocks and loops do not. All other words were written before the launch, in the order of its stream, and are read as any data.
__cuinstr_device unsigned int __cuinstr_load(const unsigned int* word) {
  unsigned int value;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(word));
#else
  asm volatile("ld.volatile.u32 %0, [%1];" : "=r"(value) : "l"(word));
#endif
  return value;
}
__cuinstr_device unsigned int __cuinstr_load_near(const unsigned int* word) {
  unsigned int value;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word));
#else
  asm volatile("ld.volatile.u32 %0, [%1];" : "=r"(value) : "l"(word));
#endif
  return value;
}
__cuinstr_device unsigned long long __cuinstr_load(const unsigned long long* word) {
  unsigned long long value;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word));
#else
  asm volatile("ld.volatile.u64 %0, [%1];" : "=l"(value) : "l"(word));
#endif
  return value;
}
__cuinstr_device unsigned long long __cuinstr_now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__cuinstr_device unsigned long long __cuinstr_cycles() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
  return now;
}
__cuinstr_device unsigned int __cuinstr_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
// The end of this thread. After the call to __cuinstr_stop nothing lives on, so the cold side costs the hot one no registers.
#define __cuinstr_leave() \
  do {                    \
    asm volatile("exit;"); \
    __builtin_unreachable(); \
  } while (0)

// Names this block of this launch, so that words in shared memory left by another block are not taken for ours.
__cuinstr_device unsigned long long __cuinstr_tag() {
  unsigned long long grid;
  asm("mov.u64 %0, %%gridid;" : "=l"(grid));
  const unsigned long long block = ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned long long mixed = (grid * 0x9e3779b97f4a7c15ull) ^ ((block + 1ull) * 0xd1342543de82ef95ull);
  return mixed ^ (mixed >> 29) ^ 0x63756e7374727631ull;
}
// What the threads of a block share, in shared memory. It is not initialised when a block begins: a word left by another block is told
// from ours by its value.
#if __cuinstr_clocks || __cuinstr_gate || __cuinstr_barriers
struct __attribute__((aligned(16))) __cuinstr_block {
#if __cuinstr_barriers
  unsigned long long mine;
  unsigned long long left;
#endif
#if __cuinstr_clocks
  unsigned long long tag;
  unsigned long long start_ns;
  unsigned long long start_cycles;
#endif
#if __cuinstr_gate
  unsigned int ended;
#endif
};
__cuinstr_shared_definition __device__ __attribute__((unused)) volatile __cuinstr_block* __cuinstr_this_block() {
  __shared__ __cuinstr_block block;
  return &block;
}
#endif
#if __cuinstr_clocks
// Threads that do this at once write times that differ by less than the compiled-in limits can tell.
__cuinstr_device void __cuinstr_enter_block(volatile __cuinstr_block* block) {
  block->start_ns = __cuinstr_now();
  block->start_cycles = __cuinstr_cycles();
  __threadfence_block();
  block->tag = __cuinstr_tag();
  __threadfence_block();
}
// In a kernel that was not rewritten (a library's, calling our functor) nobody entered: the first poll does.
__cuinstr_device volatile __cuinstr_block* __cuinstr_entered_block() {
  volatile __cuinstr_block* block = __cuinstr_this_block();
  if (block->tag != __cuinstr_tag()) __cuinstr_enter_block(block);
  return block;
}
#endif
#if __cuinstr_barriers
// What a thread that leaves writes for its block. A block of the same launch may have left it there before: then the launch is being
// stopped all the same.
__cuinstr_device unsigned long long __cuinstr_left_word() { return 0x63756e7374720000ull + cuinstr_control_v1.launch; }
#endif

__cuinstr_device __cuinstr_stop_record* __cuinstr_record() {
  return cuinstr_control_v1.record != nullptr ? cuinstr_control_v1.record : &cuinstr_control_v1.own_record;
}
// The first to stop writes who and why; all are counted, a warp's threads at one site at a time. Under `trap` nobody traps before
// the record is out: device memory can't be read afterwards.
static __device__ __attribute__((unused)) __noinline__ void __cuinstr_stop(unsigned long long site, unsigned int why) {
  __cuinstr_control* control = &cuinstr_control_v1;
  const unsigned int launch = control->launch;
  const bool trap = control->action == 0u;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  const unsigned int mask = __match_any_sync(__activemask(), site);
#else
  const unsigned int mask = __ballot_sync(__activemask(), 1);
#endif
  unsigned int lanes_below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_below));
  if ((mask & lanes_below) == 0u) {
    __cuinstr_stop_record* record = __cuinstr_record();
    const unsigned long long threads = (unsigned long long)__popc(mask);
    if (atomicCAS(&record->claimed, 0u, launch) == 0u) {
      record->site = site;
      record->why = why;
      record->block[0] = blockIdx.x;
      record->block[1] = blockIdx.y;
      record->block[2] = blockIdx.z;
      record->thread[0] = threadIdx.x;
      record->thread[1] = threadIdx.y;
      record->thread[2] = threadIdx.z;
      const unsigned long long start = __cuinstr_load(&control->start_ns);
      record->elapsed_ns = start == 0ull ? 0ull : __cuinstr_now() - start;
#if __cuinstr_budget_cycles
      record->elapsed_cycles = __cuinstr_cycles() - __cuinstr_entered_block()->start_cycles;
#endif
      if (control->host_record != nullptr) {
        __cuinstr_stop_record* host = control->host_record;
        host->claimed = launch;
        host->site = site;
        host->why = why;
        for (int axis = 0; axis < 3; ++axis) {
          host->block[axis] = record->block[axis];
          host->thread[axis] = record->thread[axis];
        }
        host->elapsed_ns = record->elapsed_ns;
        host->elapsed_cycles = record->elapsed_cycles;
        __threadfence_system();
        *(volatile unsigned int*)&host->published = launch;
        __threadfence_system();
      }
      __threadfence();
      *(volatile unsigned int*)&record->published = launch;
    }
    atomicAdd(&record->threads, threads);
    unsigned int slot = (unsigned int)(site >> 1) % 64u;
    __cuinstr_rolled for (unsigned int probes = 0u;; ++probes) {
      if (probes == 64u) {
        atomicAdd(&record->unlisted, threads);
        break;
      }
      const unsigned long long there = atomicCAS(&record->sites[slot].site, 0ull, site);
      if (there == 0ull || there == site) {
        atomicAdd(&record->sites[slot].threads, threads);
        break;
      }
      slot = (slot + 1u) % 64u;
    }
  }
  // The flag comes after the claim: whoever sees it finds the reason taken. Who finds it raised has nothing to add, and no fence to wait for.
  if (__cuinstr_load(control->flag) != launch) {
    __threadfence_system();
    *(volatile unsigned int*)control->flag = launch;
  }
  if (trap) {
    __threadfence_system();
    // A record that another thread has claimed is waited for, but not for longer than a millisecond.
    const unsigned long long since = __cuinstr_now();
    while (__cuinstr_load(&__cuinstr_record()->published) == 0u && __cuinstr_now() - since < 1000000ull) {
    }
    asm volatile("trap;");
  }
}

__cuinstr_device bool __cuinstr_asked() { return __cuinstr_load(cuinstr_control_v1.flag) == cuinstr_control_v1.launch; }
__cuinstr_device bool __cuinstr_asked_near() { return __cuinstr_load_near(cuinstr_control_v1.flag) == cuinstr_control_v1.launch; }
// The launch begins at the first look at its clock; whoever is first sets it for all.
__cuinstr_device unsigned long long __cuinstr_start(unsigned long long now) {
  const unsigned long long start = __cuinstr_load(&cuinstr_control_v1.start_ns);
  if (start != 0ull) return start;
  const unsigned long long first = atomicCAS(&cuinstr_control_v1.start_ns, 0ull, now);
  if (first != 0ull) return first;
  if (cuinstr_control_v1.host_record != nullptr) *(volatile unsigned long long*)&cuinstr_control_v1.host_record->start_ns = now;
  return now;
}
// The reason to stop, or 0. Two clocks of one launch may differ by a tick, so a start that lies ahead is no deadline passed.
__cuinstr_device unsigned int __cuinstr_due(bool asked) {
  unsigned int why = asked ? 1u : 0u;
  const unsigned long long timeout = cuinstr_control_v1.timeout_ns;
  if (timeout != 0ull) {
    const unsigned long long now = __cuinstr_now();
    const unsigned long long start = __cuinstr_start(now);
    if (why == 0u && now > start && now - start >= timeout) why = 2u;
  }
#if __cuinstr_timeout_ns
  else {
    const unsigned long long now = __cuinstr_now();
    const unsigned long long start = __cuinstr_entered_block()->start_ns;
    if (why == 0u && now > start && now - start >= __cuinstr_timeout_ns) why = 2u;
  }
#endif
#if __cuinstr_budget_cycles
  const unsigned long long armed = cuinstr_control_v1.budget_cycles;
  if (why == 0u && __cuinstr_cycles() - __cuinstr_entered_block()->start_cycles >= (armed != 0ull ? armed : __cuinstr_budget_cycles)) why = 3u;
#endif
  return why;
}

// A site with an odd id stands where leaving is not defined: its threads say that they should stop, and go on.
__cuinstr_device void __cuinstr_end_thread(unsigned long long site, unsigned int why) {
  if ((site & 1ull) == 0ull) {
#if __cuinstr_barriers
    __cuinstr_this_block()->left = __cuinstr_left_word();
    __threadfence_block();
#endif
    __cuinstr_stop(site, why);
    __cuinstr_leave();
  } else if (why != 1u || cuinstr_control_v1.action == 0u) {
    __cuinstr_stop(site, why);
  }
}

#if __cuinstr_fuel
// One word a thread: what is left in the low 40 bits, above them a part of the tag, for threads that no kernel of ours filled up.
__cuinstr_shared_definition __device__ __attribute__((unused)) unsigned long long* __cuinstr_tank() {
  __shared__ unsigned long long tanks[1024];
  return tanks + __cuinstr_thread();
}
__cuinstr_device unsigned long long __cuinstr_full_tank() {
  const unsigned long long armed = cuinstr_control_v1.fuel;
  const unsigned long long fuel = armed != 0ull ? armed : __cuinstr_fuel;
  return (__cuinstr_tag() & ~0xffffffffffull) | (fuel < 0xffffffffffull ? fuel : 0xffffffffffull);
}
#endif
// Each iteration costs one unit. A full tank of 2^40 - 1 is no limit and is not drawn from.
__cuinstr_device void __cuinstr_burn(unsigned long long site) {
#if __cuinstr_fuel
  unsigned long long* tank = __cuinstr_tank();
  unsigned long long level = *tank;
  if (((level ^ __cuinstr_tag()) & ~0xffffffffffull) != 0ull) level = __cuinstr_full_tank();
  const unsigned long long left = level & 0xffffffffffull;
  if (left == 0ull) __cuinstr_end_thread(site, 4u);
  if (left != 0ull && left != 0xffffffffffull) --level;
  *tank = level;
#else
  (void)site;
#endif
}

__cuinstr_device void __cuinstr_look(unsigned long long site) {
  const unsigned int why = __cuinstr_due(__cuinstr_asked());
  if (why != 0u) __cuinstr_end_thread(site, why);
}
// A poll at each iteration.
__cuinstr_device void __cuinstr_poll(unsigned long long site) {
  __cuinstr_burn(site);
  __cuinstr_look(site);
}
// What an activation may run before it looks. The pace follows the clock, so that slow iterations do not stretch the gap and fast ones
// do not pay for it. It is one word, since it lives as long as the activation: the logarithm of the allowance in the low five bits, above
// them the time of the last look in units of 1024 ns, or zero before the first.
struct __cuinstr_allowance {
  unsigned int left;
  unsigned int pace;
  __device__ __forceinline__ __cuinstr_allowance() : left(__cuinstr_chunk), pace(__cuinstr_first_pace) {}
  __device__ __forceinline__ explicit __cuinstr_allowance(unsigned int phase) : left(__cuinstr_chunk - phase * (__cuinstr_chunk >> 5)), pace(__cuinstr_first_pace) {}
};
// The warps of a grid begin at the same time. If all looked at the same time too, they would wait in line for the one word that the flag is,
// with nobody left to work meanwhile: 16 warps of a multiprocessor take turns.
__cuinstr_device unsigned int __cuinstr_phase() {
  unsigned int warp = 0u;
#ifdef __CUDA_ARCH__
  asm("mov.u32 %0, %%warpid;" : "=r"(warp));
#endif
  return warp & 15u;
}
__cuinstr_device void __cuinstr_refill(__cuinstr_allowance& allowance) {
  const unsigned int now = (unsigned int)(__cuinstr_now() >> 10) | 1u;
  const unsigned int before = allowance.pace >> 5;
  unsigned int pace = allowance.pace & 31u;
  if (before != 0u) {
    const unsigned int took = (now - before) & 0x7ffffffu;
    if (took > __cuinstr_gap) {
      const unsigned int less = took > 64u * __cuinstr_gap ? 6u : took > 8u * __cuinstr_gap ? 3u : 1u;
      pace = pace > less ? pace - less : 0u;
    } else if (took < __cuinstr_gap / 2u) {
      pace += took < __cuinstr_gap / 8u ? 2u : 1u;
    }
  }
  if (pace > __cuinstr_most_pace) pace = __cuinstr_most_pace;
  allowance.pace = now << 5 | pace;
  unsigned int left = 1u << pace;
#ifdef __CUDA_ARCH__
  // Said again, since a proof need not follow how a shift is bounded.
  asm("" : "+r"(left));
#endif
  allowance.left = left < __cuinstr_most ? left : __cuinstr_most;
}
// A poll whenever the activation's allowance is used up. The allowance only falls between two looks, and each look refills it: at most
// __cuinstr_most iterations of all the loops of one activation run without one. Debug builds, which keep the count in memory where no proof
// could follow it, look each time.
__cuinstr_device void __cuinstr_tick(__cuinstr_allowance& allowance, unsigned int weight, unsigned long long site) {
  __cuinstr_burn(site);
  if (__cuinstr_most > 1u && allowance.left > weight) {
    allowance.left -= weight;
  } else {
    __cuinstr_look(site);
    __cuinstr_refill(allowance);
  }
}
// A loop in chunks of a constant number of iterations, each paid for before it runs. `turns` counts a chunk down: where the loop comes by
// again, a zero says that it begins or that its last chunk was used up, anything else that its condition or a `break` has ended it.
__cuinstr_device bool __cuinstr_again(unsigned int& turns, unsigned int chunk, __cuinstr_allowance& allowance, unsigned int charge, unsigned long long site) {
  if (turns != 0u) {
    turns = 0u;
    return false;
  }
  __cuinstr_tick(allowance, charge, site);
  turns = __cuinstr_most > 1u ? chunk : 1u;
  return true;
}
// Whether a strip-mined loop that may be left by a `break` was not: the strip's count is used up then.
__cuinstr_device bool __cuinstr_unbroken(unsigned int& turns) {
  const bool unbroken = turns == 0u;
  turns = 0u;
  return unbroken;
}
// In a nest of loops whose trips the compiler may know. `run` starts from zero where the nest is entered and rises by constants, so that the
// compiler knows the most that it can be, and with it that the poll is dead; beyond a nest's length each iteration is paid for as any other.
__cuinstr_device void __cuinstr_tick_nest(unsigned int& run, __cuinstr_allowance& allowance, unsigned int weight, unsigned long long site) {
  run += weight;
  if (run > __cuinstr_nest) __cuinstr_tick(allowance, weight, site);
}
// Behind each strip.
__cuinstr_device void __cuinstr_pass(__cuinstr_allowance& allowance, unsigned long long site) {
  if (allowance.left == 0u) {
    __cuinstr_look(site);
    __cuinstr_refill(allowance);
  }
}
// Types whose values step as numbers do: integers and pointers, but no references to what others may change, no booleans, no classes.
// Enumerators count as numbers where they turn into such by themselves.
template <class __cuinstr_t>
struct __cuinstr_steps {
  static __device__ char converts(long long);
  static __device__ long converts(...);
  static constexpr bool number = __is_enum(__cuinstr_t) && sizeof(converts(__cuinstr_t())) == 1;
  static constexpr bool value = number;
  static constexpr bool narrow = true;
};
template <>
struct __cuinstr_steps<int> {
  static constexpr bool value = true;
  static constexpr bool number = true;
  static constexpr bool narrow = false;
};
template <> struct __cuinstr_steps<unsigned int> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<long> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<unsigned long> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<long long> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<unsigned long long> : __cuinstr_steps<int> {};
template <>
struct __cuinstr_steps<short> {
  static constexpr bool value = true;
  static constexpr bool number = true;
  static constexpr bool narrow = true;
};
template <> struct __cuinstr_steps<unsigned short> : __cuinstr_steps<short> {};
template <> struct __cuinstr_steps<signed char> : __cuinstr_steps<short> {};
template <> struct __cuinstr_steps<unsigned char> : __cuinstr_steps<short> {};
template <> struct __cuinstr_steps<char> : __cuinstr_steps<short> {};
template <class __cuinstr_t>
struct __cuinstr_steps<__cuinstr_t*> {
  static constexpr bool value = true;
  static constexpr bool number = false;
  static constexpr bool narrow = false;
};
template <class __cuinstr_t> struct __cuinstr_steps<const __cuinstr_t> : __cuinstr_steps<__cuinstr_t> {};
// Whether all the types are of values: what a reference names, or a volatile variable holds, others may change.
template <class... __cuinstr_t>
struct __cuinstr_values {
  static constexpr bool all = true;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<__cuinstr_t, __cuinstr_more...> {
  static constexpr bool all = __cuinstr_values<__cuinstr_more...>::all;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<__cuinstr_t&, __cuinstr_more...> {
  static constexpr bool all = false;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<__cuinstr_t&&, __cuinstr_more...> {
  static constexpr bool all = false;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<volatile __cuinstr_t, __cuinstr_more...> {
  static constexpr bool all = false;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<const volatile __cuinstr_t, __cuinstr_more...> {
  static constexpr bool all = false;
};
// How often a loop runs from `start` to `bound`, for the weight of the loop around it: at most as often as a nest runs for nothing, which
// also stands for what is no number.
template <bool, class __cuinstr_t>
struct __cuinstr_if {};
template <class __cuinstr_t>
struct __cuinstr_if<true, __cuinstr_t> {
  typedef __cuinstr_t type;
};
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
struct __cuinstr_counts {
  static constexpr bool value =
      __cuinstr_steps<__cuinstr_i>::number && __cuinstr_steps<__cuinstr_n>::number && __cuinstr_steps<__cuinstr_s>::number;
};
__cuinstr_everywhere unsigned long long __cuinstr_counted(long long trips) {
  return trips < 0 ? 0ull : (unsigned long long)trips < (unsigned long long)__cuinstr_nest ? (unsigned long long)trips : (unsigned long long)__cuinstr_nest;
}
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_everywhere typename __cuinstr_if<__cuinstr_counts<__cuinstr_i, __cuinstr_n, __cuinstr_s>::value, unsigned long long>::type __cuinstr_trips(__cuinstr_i start, __cuinstr_n bound, __cuinstr_s step) {
  return (long long)step == 0 ? (unsigned long long)__cuinstr_nest : __cuinstr_counted(((long long)bound - (long long)start) / (long long)step + 1);
}
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_everywhere typename __cuinstr_if<!__cuinstr_counts<__cuinstr_i, __cuinstr_n, __cuinstr_s>::value, unsigned long long>::type __cuinstr_trips(const __cuinstr_i&, const __cuinstr_n&, const __cuinstr_s&) {
  return (unsigned long long)__cuinstr_nest;
}
// A sum of weights, and the power of two that is not below one.
__cuinstr_everywhere unsigned int __cuinstr_weigh(unsigned long long weight) { return weight < (unsigned long long)__cuinstr_nest ? (unsigned int)weight : __cuinstr_nest; }
__cuinstr_device unsigned int __cuinstr_shift(unsigned int weight) {
  unsigned int shift = 0u;
  for (int bit = 0; bit < 10; ++bit) shift += weight > 1u << bit ? 1u : 0u;
  return shift;
}
template <bool>
struct __cuinstr_unsigned {
  typedef unsigned int type;
};
template <>
struct __cuinstr_unsigned<false> {
  typedef unsigned long long type;
};
// What a strip's length is anyway, said again where the optimiser can't mix it with the rest: what it makes of minima, and a division, no
// proof could follow.
__cuinstr_device unsigned int __cuinstr_within(unsigned int turns) {
#ifdef __CUDA_ARCH__
  asm("max.u32 %0, %0, 1;\n\tmin.u32 %0, %0, %1;" : "+r"(turns) : "n"(__cuinstr_most));
#endif
  return turns;
}
// The next strip of a loop: as many iterations as the allowance holds at 2^shift units each, but never fewer than are soon over in any
// case, and no more than will run for sure.
template <class __cuinstr_t>
__cuinstr_device unsigned int __cuinstr_turns(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_t trips) {
  const unsigned int few = (__cuinstr_short >> shift) > 1u ? __cuinstr_short >> shift : 1u;
  unsigned int turns = allowance.left >> shift;
  if (turns < few) turns = few;
  if (trips < turns) turns = (unsigned int)trips;
  turns = __cuinstr_within(turns);
  const unsigned int charge = turns << shift;
  allowance.left = allowance.left > charge ? allowance.left - charge : 0u;
  return turns;
}
// How far a counter is from its bound, in a type without a sign, so that no difference overflows.
template <class __cuinstr_i, class __cuinstr_n>
struct __cuinstr_distance {
  typedef decltype(__cuinstr_i() - __cuinstr_n()) common;
  typedef typename __cuinstr_unsigned<sizeof(common) <= 4>::type type;
  typedef typename __cuinstr_unsigned<sizeof(__cuinstr_i) <= 4>::type own;
  static __device__ __forceinline__ type up(__cuinstr_i from, __cuinstr_n to) { return (type)(common)to - (type)(common)from; }
  static __device__ __forceinline__ type down(__cuinstr_i from, __cuinstr_n to) { return (type)(common)from - (type)(common)to; }
  // A counter that must meet its bound does so by its own bits. No distance is a whole round of them, or for ever.
  static __device__ __forceinline__ own round(own distance) { return distance != 0u ? distance : ~(own)0u; }
  static __device__ __forceinline__ own meet_up(__cuinstr_i from, __cuinstr_n to) { return round((own)to - (own)from); }
  static __device__ __forceinline__ own meet_down(__cuinstr_i from, __cuinstr_n to) { return round((own)from - (own)to); }
};
template <class __cuinstr_i, class __cuinstr_n>
struct __cuinstr_distance<__cuinstr_i*, __cuinstr_n*> {
  typedef unsigned long long type;
  static __device__ __forceinline__ type up(__cuinstr_i* from, __cuinstr_n* to) { return (type)(to - from); }
  static __device__ __forceinline__ type down(__cuinstr_i* from, __cuinstr_n* to) { return (type)(from - to); }
  static __device__ __forceinline__ type meet_up(__cuinstr_i* from, __cuinstr_n* to) { return to - from > 0 ? (type)(to - from) : 1u; }
  static __device__ __forceinline__ type meet_down(__cuinstr_i* from, __cuinstr_n* to) { return from - to > 0 ? (type)(from - to) : 1u; }
};
// The power of two, by its logarithm, that is not below a number of at most 31 bits and at least one.
__cuinstr_device unsigned int __cuinstr_power(unsigned int number) {
#ifdef __CUDA_ARCH__
  return 32u - (unsigned int)__clz((int)(number - 1u));
#else
  unsigned int power = 0u;
  while (1u << power < number) ++power;
  return power;
#endif
}
// The number of iterations of a loop whose condition has just held and whose counter moves towards its bound by `step`, in strips. Where
// the types make it doubtful, or the step does not lead there, a strip is one iteration, and the user's condition is asked behind it.
template <bool __cuinstr_known, bool __cuinstr_divides>
struct __cuinstr_strips {
  // How many steps a distance surely holds. A step that is not known before the kernel runs is rounded up to a power of two: that is what
  // it mostly is, and where it is not, a few strips more cost less than a division each.
  template <class __cuinstr_t>
  static __device__ __forceinline__ __cuinstr_t steps(__cuinstr_t distance, long long step) {
    if (__cuinstr_divides) return distance / (__cuinstr_t)step;
    return distance >> __cuinstr_power((unsigned int)step);
  }
  template <class __cuinstr_t>
  static __device__ __forceinline__ unsigned int less(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_t distance, long long step) {
    // The counter's own type holds each of its values up to the bound; a step beyond 31 bits may mean less than it says.
    if (step <= 0 || step > 0x7fffffffll) return __cuinstr_turns(allowance, shift, 1u);
    return __cuinstr_turns(allowance, shift, steps(distance - 1u, step) + 1u);
  }
  template <class __cuinstr_t>
  static __device__ __forceinline__ unsigned int upto(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_t distance, long long step) {
    if (step <= 0 || step > 0x7fffffffll) return __cuinstr_turns(allowance, shift, 1u);
    const __cuinstr_t further = steps(distance, step);
    return __cuinstr_turns(allowance, shift, (further < 0x10000u ? further : (__cuinstr_t)0x10000u) + 1u);
  }
  template <class __cuinstr_t>
  static __device__ __forceinline__ unsigned int meet(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_t distance, long long step) {
    const __cuinstr_t whole = distance / (__cuinstr_t)step;
    return __cuinstr_turns(allowance, shift, whole != 0u ? whole : (__cuinstr_t)1u);
  }
#define __cuinstr_count(__cuinstr_name, __cuinstr_how, __cuinstr_way)                                                                             \
  template <class __cuinstr_i, class __cuinstr_n>                                                                                                 \
  static __device__ __forceinline__ unsigned int __cuinstr_name(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_i from, __cuinstr_n to, long long step) { \
    return __cuinstr_how(allowance, shift, __cuinstr_distance<__cuinstr_i, __cuinstr_n>::__cuinstr_way(from, to), step);                          \
  }
  __cuinstr_count(below, less, up) __cuinstr_count(above, less, down) __cuinstr_count(at_most, upto, up) __cuinstr_count(at_least, upto, down)
  __cuinstr_count(not_up, meet, meet_up) __cuinstr_count(not_down, meet, meet_down)
#undef __cuinstr_count
};
template <bool __cuinstr_divides>
struct __cuinstr_strips<false, __cuinstr_divides> {
#define __cuinstr_count(__cuinstr_name)                                                                                                           \
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                                              \
  static __device__ __forceinline__ unsigned int __cuinstr_name(__cuinstr_allowance& allowance, unsigned int shift, const __cuinstr_i&, const __cuinstr_n&, const __cuinstr_s&) { \
    return __cuinstr_turns(allowance, shift, 1u);                                                                                                 \
  }
  __cuinstr_count(below) __cuinstr_count(above) __cuinstr_count(at_most) __cuinstr_count(at_least) __cuinstr_count(not_up) __cuinstr_count(not_down)
#undef __cuinstr_count
};
// Whether a counter, a bound and a step have types that can be counted with, the variables among them being values.
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
struct __cuinstr_known {
  static constexpr bool value = __cuinstr_all && __cuinstr_steps<__cuinstr_i>::value && !__cuinstr_steps<__cuinstr_i>::narrow &&
                                __cuinstr_steps<__cuinstr_n>::value && __cuinstr_steps<__cuinstr_s>::number &&
                                __cuinstr_steps<__cuinstr_i>::number == __cuinstr_steps<__cuinstr_n>::number;
};
#define __cuinstr_strip(__cuinstr_name)                                                                                                           \
  template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                          \
  __cuinstr_device unsigned int __cuinstr_##__cuinstr_name(__cuinstr_allowance& allowance, unsigned int shift, const __cuinstr_i& from, const __cuinstr_n& to, const __cuinstr_s& step) { \
    return __cuinstr_strips<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, true>::__cuinstr_name(allowance, shift, from, to, step); \
  }                                                                                                                                               \
  template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                          \
  __cuinstr_device unsigned int __cuinstr_##__cuinstr_name##_by(__cuinstr_allowance& allowance, unsigned int shift, const __cuinstr_i& from, const __cuinstr_n& to, const __cuinstr_s& step) { \
    return __cuinstr_strips<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, false>::__cuinstr_name(allowance, shift, from, to, step); \
  }
__cuinstr_strip(below) __cuinstr_strip(above) __cuinstr_strip(at_most) __cuinstr_strip(at_least) __cuinstr_strip(not_up) __cuinstr_strip(not_down)
#undef __cuinstr_strip
// The same where a name may be a constant or not: if not, a strip is a chunk of a constant number of iterations, before each of which the
// user's condition is asked. All values, so that no constant's address is asked for.
template <bool __cuinstr_types, bool __cuinstr_constants, bool __cuinstr_divides>
struct __cuinstr_maybe : __cuinstr_strips<__cuinstr_types, __cuinstr_divides> {};
template <bool __cuinstr_divides>
struct __cuinstr_maybe<true, false, __cuinstr_divides> {
#define __cuinstr_count(__cuinstr_name)                                                                                                           \
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                                              \
  static __device__ __forceinline__ unsigned int __cuinstr_name(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_i, __cuinstr_n, __cuinstr_s) { \
    return __cuinstr_turns(allowance, shift, 64u);                                                                                                \
  }
  __cuinstr_count(below) __cuinstr_count(above) __cuinstr_count(at_most) __cuinstr_count(at_least) __cuinstr_count(not_up) __cuinstr_count(not_down)
#undef __cuinstr_count
};
#define __cuinstr_strip(__cuinstr_name)                                                                                                           \
  template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                \
  __cuinstr_device unsigned int __cuinstr_maybe_##__cuinstr_name(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_i from, __cuinstr_n to, __cuinstr_s step) { \
    return __cuinstr_maybe<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, __cuinstr_constants, true>::__cuinstr_name(allowance, shift, from, to, step); \
  }                                                                                                                                               \
  template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                \
  __cuinstr_device unsigned int __cuinstr_maybe_##__cuinstr_name##_by(__cuinstr_allowance& allowance, unsigned int shift, __cuinstr_i from, __cuinstr_n to, __cuinstr_s step) { \
    return __cuinstr_maybe<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, __cuinstr_constants, false>::__cuinstr_name(allowance, shift, from, to, step); \
  }
__cuinstr_strip(below) __cuinstr_strip(above) __cuinstr_strip(at_most) __cuinstr_strip(at_least) __cuinstr_strip(not_up) __cuinstr_strip(not_down)
#undef __cuinstr_strip
template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_device bool __cuinstr_sure(__cuinstr_i, __cuinstr_n, __cuinstr_s) {
  return __cuinstr_constants || !__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value;
}
// The inner loop of a strip. With a constant step it ends where the counter arrives, so that the loop needs no second counter: within a
// strip the counter's bits do not come by that value before, whatever wraps. Else it is counted down.
template <bool __cuinstr_known, class __cuinstr_i>
struct __cuinstr_until {
  __cuinstr_i end;
  __device__ __forceinline__ __cuinstr_until(__cuinstr_i from, unsigned int turns, int step)
      : end((__cuinstr_i)((unsigned long long)from + (unsigned long long)((long long)turns * step))) {}
  __device__ __forceinline__ bool goes_on(const __cuinstr_i& counter) const { return counter != end; }
  __device__ __forceinline__ void step() {}
};
template <class __cuinstr_i>
struct __cuinstr_until<true, __cuinstr_i*> {
  __cuinstr_i* end;
  __device__ __forceinline__ __cuinstr_until(__cuinstr_i* from, unsigned int turns, int step) : end(from + (long long)turns * step) {}
  __device__ __forceinline__ bool goes_on(__cuinstr_i* counter) const { return counter != end; }
  __device__ __forceinline__ void step() {}
};
template <class __cuinstr_i>
struct __cuinstr_until<false, __cuinstr_i> {
  unsigned int turns;
  __device__ __forceinline__ __cuinstr_until(const __cuinstr_i&, unsigned int turns_, int) : turns(turns_) {}
  __device__ __forceinline__ bool goes_on(const __cuinstr_i&) const { return turns != 0u; }
  __device__ __forceinline__ void step() { --turns; }
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n>
__cuinstr_device __cuinstr_until<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, int>::value, __cuinstr_i> __cuinstr_to(const __cuinstr_i& from, const __cuinstr_n&, unsigned int turns, int step) {
  return {from, turns, step};
}
// The same in a loop that may end before its strip does. Where it comes by again, `mark` tells: zero where the loop begins, else where its
// last strip was to end, in so many of the counter's bits as tell a strip's values from each other, and one bit that is always set.
template <class __cuinstr_t>
struct __cuinstr_bare {
  typedef __cuinstr_t type;
};
template <class __cuinstr_t> struct __cuinstr_bare<const __cuinstr_t> : __cuinstr_bare<__cuinstr_t> {};
template <class __cuinstr_t> struct __cuinstr_bare<__cuinstr_t&> : __cuinstr_bare<__cuinstr_t> {};
template <class __cuinstr_t> struct __cuinstr_bare<__cuinstr_t&&> : __cuinstr_bare<__cuinstr_t> {};
template <bool __cuinstr_known, class __cuinstr_i>
struct __cuinstr_stage {
  __cuinstr_i end;
  static __device__ __forceinline__ unsigned int mark(__cuinstr_i counter) { return (unsigned int)counter << 1 | 1u; }
  static __device__ __forceinline__ bool is_end(unsigned int marked, __cuinstr_i counter) { return marked == mark(counter); }
  __device__ __forceinline__ __cuinstr_stage(unsigned int& marked, __cuinstr_i from, unsigned int turns, int step)
      : end((__cuinstr_i)((unsigned long long)from + (unsigned long long)((long long)turns * step))) { marked = mark(end); }
  __device__ __forceinline__ bool goes_on(const __cuinstr_i& counter, unsigned int&) const { return counter != end; }
  __device__ __forceinline__ void step() {}
};
template <class __cuinstr_i>
struct __cuinstr_stage<true, __cuinstr_i*> {
  __cuinstr_i* end;
  static __device__ __forceinline__ unsigned int mark(__cuinstr_i* counter) { return (unsigned int)((unsigned long long)counter / sizeof(__cuinstr_i)) << 1 | 1u; }
  static __device__ __forceinline__ bool is_end(unsigned int marked, __cuinstr_i* counter) { return marked == mark(counter); }
  __device__ __forceinline__ __cuinstr_stage(unsigned int& marked, __cuinstr_i* from, unsigned int turns, int step) : end(from + (long long)turns * step) { marked = mark(end); }
  __device__ __forceinline__ bool goes_on(__cuinstr_i* counter, unsigned int&) const { return counter != end; }
  __device__ __forceinline__ void step() {}
};
template <class __cuinstr_i>
struct __cuinstr_stage<false, __cuinstr_i> {
  unsigned int turns;
  static __device__ __forceinline__ bool is_end(unsigned int, const __cuinstr_i&) { return false; }
  __device__ __forceinline__ __cuinstr_stage(unsigned int& marked, const __cuinstr_i&, unsigned int turns_, int) : turns(turns_) { marked = 1u; }
  __device__ __forceinline__ bool goes_on(const __cuinstr_i&, unsigned int& marked) const {
    if (turns == 0u) marked = 0u;
    return turns != 0u;
  }
  __device__ __forceinline__ void step() { --turns; }
};
template <bool __cuinstr_all, class __cuinstr_n, class __cuinstr_i>
__cuinstr_device __cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i> __cuinstr_leg(unsigned int& mark, const __cuinstr_i& from, unsigned int turns, int step) {
  return {mark, from, turns, step};
}
template <bool __cuinstr_all, class __cuinstr_n, class __cuinstr_i>
__cuinstr_device bool __cuinstr_arrived(unsigned int& mark, const __cuinstr_i& counter) {
  const bool arrived = mark == 0u || __cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i>::is_end(mark, counter);
  mark = 0u;
  return arrived;
}
// The same with a fixed pace, for functions that the host or the compiler may run, too.
__cuinstr_device void __cuinstr_tick(unsigned int& left, unsigned int weight, unsigned long long site) {
  __cuinstr_burn(site);
  if (__cuinstr_chunk > 1u && left > weight) {
    left -= weight;
  } else {
    left = __cuinstr_chunk;
    __cuinstr_look(site);
  }
}
// After a barrier: a thread released by others that left must leave too, before it reads what they have not written. Those others said
// so in shared memory, which is asked at a fraction of the flag's price, and have told why: this thread is only counted, at its site's first
// slot. All in one piece of assembly, since compilers unroll no loop that they see another way out of. `left` is what others wrote there.
#define __cuinstr_leave_if_left(__cuinstr_load, __cuinstr_site, __cuinstr_where, __cuinstr_what)                                                  \
  asm volatile("{\n\t.reg .pred stays, other;\n\t.reg .b64 left, awaited, record, slot, found;\n\t" __cuinstr_load                                 \
               "setp.ne.b64 stays, left, awaited;\n\t@stays bra passed;\n\t"                                                                         \
               "ld.global.b64 record, [cuinstr_control_v1+64];\n\tsetp.ne.b64 other, record, 0;\n\t@other bra given;\n\t"                          \
               "mov.b64 record, cuinstr_control_v1;\n\tcvta.global.u64 record, record;\n\tadd.u64 record, record, 72;\n"                           \
               "given:\n\tred.add.u64 [record+80], 1;\n\tshr.u64 slot, %0, 1;\n\tand.b64 slot, slot, 63;\n\tshl.b64 slot, slot, 4;\n\t"              \
               "add.u64 slot, slot, record;\n\tatom.cas.b64 found, [slot+96], 0, %0;\n\tsetp.eq.b64 other, found, 0;\n\t@other bra listed;\n\t"      \
               "setp.eq.b64 other, found, %0;\n\t@other bra listed;\n\tred.add.u64 [record+88], 1;\n\texit;\n"                                     \
               "listed:\n\tred.add.u64 [slot+104], 1;\n\texit;\n"                                                                                 \
               "passed:\n\t}"                                                                                                                        \
               :                                                                                                                               \
               : "l"(__cuinstr_site), "r"(__cuinstr_where), "l"(__cuinstr_what)                                                                 \
               : "memory")
__cuinstr_device void __cuinstr_barrier(unsigned long long site) {
#if __cuinstr_barriers
  if ((site & 1ull) == 0ull) {
    const unsigned int where = (unsigned int)__cvta_generic_to_shared((const void*)&__cuinstr_this_block()->left);
    __cuinstr_leave_if_left("mov.b64 awaited, %2;\n\tld.volatile.shared.b64 left, [%1];\n\t", site, where, __cuinstr_left_word());
  }
#else
  (void)site;
#endif
}
// The same in a kernel's own body, whose threads have all written their launch's word at its entry: no thread passes the barrier before
// each of its block has.
__cuinstr_device void __cuinstr_barrier_here(unsigned long long site) {
#if __cuinstr_barriers
  if ((site & 1ull) == 0ull) {
    const unsigned int where = (unsigned int)__cvta_generic_to_shared((const void*)&__cuinstr_this_block()->mine);
    __cuinstr_leave_if_left("ld.volatile.shared.v2.b64 {awaited, left}, [%1];\n\t", site, where, 0ull);
  }
#else
  (void)site;
#endif
}
// A call of a recursive function.
__cuinstr_device void __cuinstr_call(unsigned long long site) {
  __cuinstr_burn(site);
  __cuinstr_look(site);
}

// The same for functions that the host runs too, or the compiler itself.
__cuinstr_everywhere void __cuinstr_poll_hd(unsigned long long site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_poll(site);
#else
  (void)site;
#endif
}
__cuinstr_everywhere void __cuinstr_tick_hd(unsigned int& left, unsigned int weight, unsigned long long site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_tick(left, weight, site);
#else
  (void)left, (void)weight, (void)site;
#endif
}
__cuinstr_everywhere void __cuinstr_tick_hd(__cuinstr_allowance& allowance, unsigned int weight, unsigned long long site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_tick(allowance, weight, site);
#else
  (void)allowance, (void)weight, (void)site;
#endif
}
__cuinstr_everywhere void __cuinstr_tick_nest_hd(unsigned int& run, unsigned int& left, unsigned int weight, unsigned long long site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) {
    run += weight;
    if (run > __cuinstr_nest) __cuinstr_tick(left, weight, site);
  }
#else
  (void)run, (void)left, (void)weight, (void)site;
#endif
}
__cuinstr_everywhere void __cuinstr_barrier_hd(unsigned long long site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_barrier(site);
#else
  (void)site;
#endif
}
__cuinstr_everywhere void __cuinstr_call_hd(unsigned long long site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_call(site);
#else
  (void)site;
#endif
}
// In the body of a macro nobody knows whose activation it will be: where the function declares no allowance, this is what the name
// `__cuinstr_left` finds, and each iteration polls.
struct __cuinstr_no_allowance {};
__attribute__((unused)) static constexpr __cuinstr_no_allowance __cuinstr_left = {};
__cuinstr_everywhere void __cuinstr_tick_hd(const __cuinstr_no_allowance&, unsigned int, unsigned long long site) { __cuinstr_poll_hd(site); }

// What a kernel does first.
__cuinstr_device void __cuinstr_begin() {
#if __cuinstr_clocks
  __cuinstr_enter_block(__cuinstr_this_block());
#endif
#if __cuinstr_gate
  // The one barrier that is ever added stands where no thread of the block can yet be at another.
  if (__cuinstr_thread() == 0u) __cuinstr_this_block()->ended = 0u;
  __syncthreads();
#endif
#if __cuinstr_barriers
  __cuinstr_this_block()->mine = __cuinstr_left_word();
#endif
#if __cuinstr_fuel
  *__cuinstr_tank() = __cuinstr_full_tank();
#endif
}
// When the launch begins, which one thread of a block can tell; a kernel without a loop does not need it before its end.
__cuinstr_device void __cuinstr_begin_clock() {
  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0u && cuinstr_control_v1.timeout_ns != 0ull) __cuinstr_start(__cuinstr_now());
}
// What it does last, on every way out. A few threads ask for their block, and where there are many blocks, each eighth for its neighbours:
// if all did, the warps of a short kernel would wait in line for the one word that the flag is.
__cuinstr_device void __cuinstr_finish(unsigned long long exit_site) {
#if __cuinstr_gate
  // A thread that is done sleeps and polls until its whole block is done.
  const unsigned int threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd((unsigned int*)&__cuinstr_this_block()->ended, 1u);
  while (__cuinstr_this_block()->ended < threads) {
    const unsigned int reason = __cuinstr_due(__cuinstr_asked());
    if (reason != 0u) {
      // Its own work is done, so under `leave` it just goes: the host sees that the launch was asked to stop.
      if (cuinstr_control_v1.action == 0u) __cuinstr_stop(exit_site, reason);
      break;
    }
#if __CUDA_ARCH__ >= 700
    __nanosleep(1000u);
#endif
  }
#endif
#if __cuinstr_fuel
  if (cuinstr_control_v1.count_fuel != 0u) {
    const unsigned long long left = *__cuinstr_tank() & 0xffffffffffull;
    atomicMax(&__cuinstr_record()->fuel_used, (__cuinstr_full_tank() & 0xffffffffffull) - left);
  }
#endif
#if __cuinstr_clocks
  const unsigned int why = __cuinstr_due(__cuinstr_asked_near());
#else
  if ((threadIdx.y | threadIdx.z) != 0u || threadIdx.x >= 32u) return;
  if (gridDim.x * gridDim.y >= 1024u && ((blockIdx.x + blockIdx.y) & 7u) != 0u) return;
  const bool asked = __cuinstr_asked_near();
  unsigned int why = asked ? 1u : 0u;
  // One thread of a block can tell whether a deadline has passed.
  if (cuinstr_control_v1.timeout_ns != 0ull && threadIdx.x == 0u) why = __cuinstr_due(asked);
#endif
  if (why == 0u) return;
  if (cuinstr_control_v1.action == 0u) __cuinstr_stop(exit_site, why);
  const unsigned int launch = cuinstr_control_v1.launch;
  // The host's own copy lies across the bus, so few write it.
  if (__cuinstr_load(&__cuinstr_record()->late) == launch) return;
  *(volatile unsigned int*)&__cuinstr_record()->late = launch;
  if (cuinstr_control_v1.host_record != nullptr) *(volatile unsigned int*)&cuinstr_control_v1.host_record->late = launch;
}
// Stands first in a kernel: blocks of a stopped launch that begin late leave at once, and its destructor asks on every way out.
struct __cuinstr_kernel {
  unsigned long long exit_site;
  __device__ __forceinline__ __cuinstr_kernel(unsigned long long entry_site, unsigned long long exit) : exit_site(exit) {
    // Read first and looked at last: what else there is to read is then waited for at the same time.
    const unsigned int flag = __cuinstr_load_near(cuinstr_control_v1.flag);
    __cuinstr_begin();
    __cuinstr_begin_clock();
    if (flag == cuinstr_control_v1.launch) __cuinstr_end_thread(entry_site & ~1ull, 1u);
  }
  __device__ __forceinline__ ~__cuinstr_kernel() { __cuinstr_finish(exit_site); }
};
// The same in a kernel without a loop or call that polls: it is soon over, so it asks at its end only, when nothing waits for the answer.
struct __cuinstr_short_kernel {
  unsigned long long exit_site;
  __device__ __forceinline__ __cuinstr_short_kernel(unsigned long long, unsigned long long exit) : exit_site(exit) { __cuinstr_begin(); }
  __device__ __forceinline__ ~__cuinstr_short_kernel() { __cuinstr_finish(exit_site); }
};
}
#if defined(__CUDACC_RDC__) && __cplusplus < 201703L
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#pragma nv_diagnostic pop
#endif
#endif
