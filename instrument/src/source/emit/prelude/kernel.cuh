// The same with a fixed pace, for functions that the host or the compiler may run, too.
__cuinstr_device void __cuinstr_pay(unsigned int& __ci_left, unsigned int __ci_weight, unsigned long long __ci_site) {
  if (__cuinstr_chunk > 1u && __ci_left > __ci_weight) {
    __ci_left -= __ci_weight;
  } else {
    __ci_left = __cuinstr_chunk;
    __cuinstr_look_aside(__ci_site);
  }
}
__cuinstr_device void __cuinstr_tick(unsigned int& __ci_left, unsigned int __ci_weight, unsigned long long __ci_site) {
  __cuinstr_burn(__ci_site);
  __cuinstr_pay(__ci_left, __ci_weight, __ci_site);
}
// After a barrier: a thread released by others that left must leave too, before it reads what they have not written. Those others said
// so in shared memory before they left, which is asked at a fraction of the flag's price. All in one piece of assembly, since compilers unroll no loop
// that they see another way out of; with a call, behind which nothing lives, since ptxas moves blocks with one out of the way: where the counting stood
// between, each of an unrolled loop's barriers was followed by 40 instructions that short kernels had to fetch. `__ci_mark` is read by one
// load of 32 bits, since what a multiprocessor hands out of shared memory is what its warps wait for; what it is compared with is in the
// instruction. So a barrier takes one register for a moment, and nothing lives through the loops around it.
#if __cuinstr_global_marks
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
#define __cuinstr_load_mark "ld.relaxed.cta.global.b32"
#else
#define __cuinstr_load_mark "ld.volatile.global.b32"
#endif
#define __cuinstr_leave_if_told(__cuinstr_site)                                                                                                        \
  asm volatile("{\n\t.reg .pred stays;\n\t.reg .b32 mark, launch;\n\t.param .b64 site;\n\t.param .b32 why;\n\t" __cuinstr_load_mark                    \
               " mark, [cuinstr_left_v1];\n\tld.global.b32 launch, [cuinstr_control_v1+8];\n\tsetp.ne.b32 stays, mark, launch;\n\t"                    \
               "@stays bra passed;\n\tst.param.b64 [site], %0;\n\tst.param.b32 [why], 0;\n\tcall __cuinstr_stop, (site, why);\n\texit;\n"              \
               "passed:\n\t}"                                                                                                                          \
               :                                                                                                                                       \
               : "l"(__cuinstr_site)                                                                                                                   \
               : "memory")
#endif
#define __cuinstr_leave_if_left(__cuinstr_sure, __cuinstr_site, __cuinstr_where, __cuinstr_mark)                                                       \
  asm volatile("{\n\t.reg .pred stays;\n\t.reg .b32 mark, launch, below;\n\t.reg .b64 tag, found;\n\t.param .b64 site;\n\t.param .b32 why;\n\t"        \
               "ld.volatile.shared.b32 mark, [%1+4];\n\tsetp.ne.b32 stays, mark, %2;\n\t@stays bra passed;\n\t" __cuinstr_sure                         \
               "st.param.b64 [site], %0;\n\tst.param.b32 [why], 0;\n\tcall __cuinstr_stop, (site, why);\n\texit;\n"                                    \
               "passed:\n\t}"                                                                                                                          \
               :                                                                                                                                       \
               : "l"(__cuinstr_site), "r"(__cuinstr_where), "n"(__cuinstr_mark)                                                                        \
               : "memory")
// In any function, which a foreign kernel may have called: the word was not cleared, so it may be another launch's, which is told by
// the word's other half. Then the thread goes on.
__cuinstr_device void __cuinstr_barrier(unsigned long long __ci_site) {
#if __cuinstr_barriers && __cuinstr_global_marks
  if ((__ci_site & 1ull) == 0ull) __cuinstr_leave_if_told(__ci_site);
#elif __cuinstr_barriers
  if ((__ci_site & 1ull) == 0ull) {
    __cuinstr_leave_if_left(
        "mov.u64 found, %%gridid;\n\tmov.b64 {below, launch}, found;\n\tmad.lo.u32 below, launch, 0x85ebca6b, below;\n\t"
        "ld.global.b32 launch, [cuinstr_control_v1+8];\n\tmad.lo.u32 below, launch, 0x9e3779b1, below;\n\tld.volatile.shared.b64 found, [%1];\n\t"
        "mov.b64 tag, {below, mark};\n\tsetp.ne.b64 stays, tag, found;\n\t@stays bra passed;\n\t",
        __ci_site, __cuinstr_left_address(), __cuinstr_left_mark);
  }
#else
  (void)__ci_site;
#endif
}
// The same in a kernel's own body, where each thread has cleared the word of what others left (`__cuinstr_forget_left`): the mark is enough.
__cuinstr_device void __cuinstr_barrier_here(unsigned long long __ci_site) {
#if __cuinstr_global_marks
  __cuinstr_barrier(__ci_site);
#elif __cuinstr_barriers
  if ((__ci_site & 1ull) == 0ull) __cuinstr_leave_if_left("", __ci_site, __cuinstr_left_address(), __cuinstr_left_mark);
#else
  (void)__ci_site;
#endif
}
// The same for functions that the host runs too, or the compiler itself.
__cuinstr_everywhere void __cuinstr_poll_hd(unsigned long long __ci_site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_poll(__ci_site);
#else
  (void)__ci_site;
#endif
}
// What names of an activation's words find where it declares none: a function that the host may run too keeps no pace, and in the body of a
// macro the activation is not known; where that declares no allowance either, each iteration polls.
enum __cuinstr_no_word : unsigned int { __cuinstr_left, __cuinstr_pace };
__cuinstr_everywhere void __cuinstr_tick_hd(__cuinstr_no_word, __cuinstr_no_word, unsigned int, unsigned long long __ci_site) { __cuinstr_poll_hd(__ci_site); }
__cuinstr_everywhere void __cuinstr_tick_hd(unsigned int& __ci_left, __cuinstr_no_word, unsigned int __ci_weight, unsigned long long __ci_site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_tick(__ci_left, __ci_weight, __ci_site);
#else
  (void)__ci_left, (void)__ci_weight, (void)__ci_site;
#endif
}
__cuinstr_everywhere void __cuinstr_tick_hd(unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_tick(__ci_left, __ci_pace, __ci_weight, __ci_site);
#else
  (void)__ci_left, (void)__ci_pace, (void)__ci_weight, (void)__ci_site;
#endif
}
__cuinstr_everywhere void __cuinstr_tick_nest_hd(unsigned int& __ci_run, unsigned int& __ci_left, __cuinstr_no_word, unsigned int __ci_weight, unsigned long long __ci_site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) {
    __cuinstr_burn(__ci_site);
    __ci_run += __ci_weight;
    if (__cuinstr_nest == 0u || __ci_run > __cuinstr_nest) __cuinstr_pay(__ci_left, __ci_weight, __ci_site);
  }
#else
  (void)__ci_run, (void)__ci_left, (void)__ci_weight, (void)__ci_site;
#endif
}
// In a nest, by a bound whose type tells its value. Loops of such functions are mostly those of libraries of templates, unrolled as a whole with functions in them that are
// empty in the end, so sixteen times as many units are free.
template <class __cuinstr_n>
__cuinstr_everywhere void __cuinstr_tick_sized_hd(unsigned int& __ci_run, unsigned int& __ci_left, __cuinstr_no_word __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site,
    long long __ci_start, int __ci_amount) {
#ifdef __CUDA_ARCH__
  const unsigned long long __ci_trips = __cuinstr_sized<__cuinstr_n>::__ci_held::__ci_trips(__ci_start, __ci_amount);
  if (__cuinstr_nest == 0u || __ci_trips > __cuinstr_nest || __ci_trips * __ci_weight > 16u * __cuinstr_nest || (__ci_site & 1ull) != 0ull) {
    __cuinstr_tick_nest_hd(__ci_run, __ci_left, __ci_pace, __ci_weight, __ci_site);
  } else if (!__cuinstr_evaluated_by_compiler) {
    __cuinstr_burn(__ci_site);
    __ci_run += __ci_weight;
    if (__ci_run > 32u * __cuinstr_nest) {
      __ci_run -= 16u * __cuinstr_nest;
      __cuinstr_called(__ci_site);
    }
  }
#else
  (void)__ci_run, (void)__ci_left, (void)__ci_pace, (void)__ci_weight, (void)__ci_site, (void)__ci_start, (void)__ci_amount;
#endif
}
__cuinstr_everywhere void __cuinstr_barrier_hd(unsigned long long __ci_site) {
#ifdef __CUDA_ARCH__
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_barrier(__ci_site);
#else
  (void)__ci_site;
#endif
}
__cuinstr_everywhere void __cuinstr_call_hd(unsigned long long __ci_site) {
#ifdef __CUDA_ARCH__
#ifdef __cuinstr_marks_calls
  if (!__cuinstr_evaluated_by_compiler) __cuinstr_call(__ci_site);
#else
  (void)"cuinstr: settled";
  // Templates that only seem to be recursive, since others have their names, are inlined by the thousand: what stands in each must be short.
  if (!__cuinstr_evaluated_by_compiler && (__ci_site & 1ull) == 0ull) __cuinstr_called(__ci_site);
  if (!__cuinstr_evaluated_by_compiler && (__ci_site & 1ull) != 0ull) __cuinstr_call(__ci_site);
#endif
#else
  (void)__ci_site;
#endif
}
// A call of a function that only calls on members of its own object. If these are values, there is an end to that.
template <class... __cuinstr_t>
__cuinstr_device void __cuinstr_call_part(unsigned long long __ci_site) {
  if (!__cuinstr_values<__cuinstr_t...>::__ci_all) __cuinstr_call(__ci_site);
}
template <class... __cuinstr_t>
__cuinstr_everywhere void __cuinstr_call_part_hd(unsigned long long __ci_site) {
  if (!__cuinstr_values<__cuinstr_t...>::__ci_all) __cuinstr_call_hd(__ci_site);
}
// A call of a function that is recursive only if some of its values, or what they point to, are objects of classes.
template <class... __cuinstr_t>
__cuinstr_device void __cuinstr_call_unless_numbers(unsigned long long __ci_site) {
  if (!__cuinstr_numbers<__cuinstr_t...>::__ci_all) __cuinstr_call(__ci_site);
}
template <class... __cuinstr_t>
__cuinstr_everywhere void __cuinstr_call_unless_numbers_hd(unsigned long long __ci_site) {
  if (!__cuinstr_numbers<__cuinstr_t...>::__ci_all) __cuinstr_call_hd(__ci_site);
}

// What a kernel does first, with barriers of its own or without.
template <bool __cuinstr_has_barriers>
__cuinstr_device void __cuinstr_begin() {
#if __cuinstr_clocks
  __cuinstr_enter_block(__cuinstr_this_block());
#endif
#if __cuinstr_gate
  // The one barrier that is ever added stands where no thread of the block can yet be at another.
  if (__cuinstr_thread() == 0u) __cuinstr_this_block()->__ci_ended = 0u;
  __syncthreads();
#endif
#if __cuinstr_barriers
  if (__cuinstr_has_barriers) __cuinstr_forget_left();
#endif
#if __cuinstr_fuel
  *__cuinstr_tank() = __cuinstr_full_tank();
#endif
}
// When the launch begins: one thread of the grid's first blocks can tell, and one of the grid where blocks are short. Should others run
// before them, the first to look at the clock will have told. All other blocks pass by one branch, which nothing is read ahead of: compilers would
// else ask each thread's index and the timeout where every block begins, and wait for them.
__cuinstr_device void __cuinstr_begin_clock(unsigned int __ci_others) {
  if (blockIdx.x != 0u) return;
  unsigned int __ci_thread = threadIdx.x | threadIdx.y | threadIdx.z | __ci_others;
#ifdef __CUDA_ARCH__
  asm("" : "+r"(__ci_thread));
#endif
  if (__ci_thread == 0u && cuinstr_control_v1.__ci_timeout_ns != 0ull) __cuinstr_claim_start(__cuinstr_now());
}
// Reads the launch's number where it stands, so that a kernel that is soon over has it before it needs it: what compilers read by themselves, they
// read where it is used.
__cuinstr_device unsigned int __cuinstr_number() {
  unsigned int __ci_launch;
  asm volatile("ld.global.u32 %0, [cuinstr_control_v1+8];" : "=r"(__ci_launch));
  return __ci_launch;
}
// The same with where the flag lies.
__cuinstr_device void __cuinstr_read_launch(unsigned int& __ci_launch, const unsigned int*& __ci_where) {
  asm volatile("ld.global.u32 %0, [cuinstr_control_v1+8];\n\tld.global.u64 %1, [cuinstr_control_v1+16];" : "=r"(__ci_launch), "=l"(__ci_where));
}
// What those ask at a kernel's end who ask for all: what few threads come by stands once in each unit, since files full of templates have hundreds of kernels.
static __device__ __attribute__((__unused__)) __noinline__ void __cuinstr_ask_last(unsigned long long __ci_exit_site, unsigned int __ci_launch) {
#if __cuinstr_clocks
  const unsigned int __ci_why = __cuinstr_due(__cuinstr_asked_near());
  if (__ci_why == 0u) return;
  if (cuinstr_control_v1.__ci_action == 0u) __cuinstr_stop(__ci_exit_site, __ci_why);
  // The host's own copy lies across the bus, so few write it.
  if (__cuinstr_load(&__cuinstr_record()->__ci_late) == __ci_launch) return;
  *(volatile unsigned int*)&__cuinstr_record()->__ci_late = __ci_launch;
  if (cuinstr_control_v1.__ci_host_record != nullptr) *(volatile unsigned int*)&cuinstr_control_v1.__ci_host_record->__ci_late = __ci_launch;
#else
  asm volatile(
      "{\n\t.reg .pred asked, holds;\n\t.reg .b32 word, reason;\n\t.reg .b64 where, now, begin, limit;\n\t.param .b64 site;\n\t.param .b32 why;\n\t"
      "ld.global.u64 where, [cuinstr_control_v1+16];\n\tld." __cuinstr_strong("gpu") ".u32 word, [where];\n\tld.global.u64 limit, [cuinstr_control_v1+24];\n\t"
      "setp.eq.u32 asked, word, %1;\n\tselp.u32 reason, 1, 0, asked;\n\t"
      // One thread of a block can tell whether a deadline has passed; as in `__cuinstr_due`.
      "setp.eq.u64 holds, limit, 0;\n\t@holds bra told;\n\tmov.u32 word, %%tid.x;\n\tsetp.ne.u32 holds, word, 0;\n\t@holds bra told;\n\t"
      "mov.u64 now, %%globaltimer;\n\tld." __cuinstr_strong("gpu") ".u64 begin, [cuinstr_control_v1+32];\n\tsetp.ne.u64 holds, begin, 0;\n\t@holds bra begun;\n\t"
      "mov.b64 where, cuinstr_control_v1;\n\tatom.global.cas.b64 begin, [where+32], 0, now;\n\tsetp.ne.u64 holds, begin, 0;\n\t@holds bra begun;\n\t"
      "ld.global.u64 where, [cuinstr_control_v1+56];\n\tsetp.ne.u64 holds, where, 0;\n\t@holds st.volatile.global.u64 [where+48], now;\n\tbra told;\n"
      "begun:\n\t@asked bra told;\n\tsetp.le.u64 holds, now, begin;\n\t@holds bra told;\n\tsub.u64 now, now, begin;\n\tsetp.lt.u64 holds, now, limit;\n\t@holds bra told;\n\t"
      "ld." __cuinstr_strong("gpu") ".u64 limit, [cuinstr_control_v1+24];\n\tsetp.eq.u64 holds, limit, 0;\n\t@holds bra told;\n\tsetp.lt.u64 holds, now, limit;\n\t@holds bra told;\n\t"
      "mov.b32 reason, 2;\n"
      "told:\n\tsetp.eq.u32 holds, reason, 0;\n\t@holds bra out;\n\tld.global.u32 word, [cuinstr_control_v1+4];\n\tsetp.ne.u32 holds, word, 0;\n\t@holds bra late;\n\t"
      "st.param.b64 [site], %0;\n\tst.param.b32 [why], reason;\n\tcall __cuinstr_stop, (site, why);\n"
      // The host's own copy lies across the bus, so few write it.
      "late:\n\tmov.b64 where, cuinstr_control_v1;\n\tadd.u64 now, where, 72;\n\tld.global.u64 begin, [where+64];\n\tsetp.eq.u64 holds, begin, 0;\n\tselp.b64 begin, now, begin, holds;\n\t"
      "ld." __cuinstr_strong("sys") ".u32 word, [begin+20];\n\tsetp.eq.u32 holds, word, %1;\n\t@holds bra out;\n\tst.volatile.global.u32 [begin+20], %1;\n\t"
      "ld.global.u64 where, [where+56];\n\tsetp.ne.u64 holds, where, 0;\n\t@holds st.volatile.global.u32 [where+20], %1;\n"
      "out:\n\t}"
      :
      : "l"(__ci_exit_site), "r"(__ci_launch)
      : "memory");
#endif
}
// What it does last, on every way out. A few threads ask for their block, and where there are many blocks, each eighth for its neighbours:
// if all did, the warps of a short kernel would wait in line for the one word that the flag is.
__cuinstr_device void __cuinstr_finish(unsigned long long __ci_exit_site, unsigned int __ci_launch) {
#if __cuinstr_gate
  // A thread that is done sleeps and polls until its whole block is done.
  const unsigned int __ci_threads = blockDim.x * blockDim.y * blockDim.z;
  atomicAdd((unsigned int*)&__cuinstr_this_block()->__ci_ended, 1u);
  while (__cuinstr_this_block()->__ci_ended < __ci_threads) {
    const unsigned int __ci_reason = __cuinstr_due(__cuinstr_asked());
    if (__ci_reason != 0u) {
      // Its own work is done, so under `leave` it just goes: the host sees that the launch was asked to stop.
      if (cuinstr_control_v1.__ci_action == 0u) __cuinstr_stop(__ci_exit_site, __ci_reason);
      break;
    }
#if __CUDA_ARCH__ >= 700
    __nanosleep(1000u);
#endif
  }
#endif
#if __cuinstr_fuel
  if (cuinstr_control_v1.__ci_count_fuel != 0u) {
    const unsigned long long __ci_left = *__cuinstr_tank() & 0xffffffffffull;
    atomicMax(&__cuinstr_record()->__ci_fuel_used, (__cuinstr_full_tank() & 0xffffffffffull) - __ci_left);
  }
#endif
#if !__cuinstr_clocks
  // What asks no memory comes first.
  if (gridDim.x * gridDim.y >= 1024u && ((blockIdx.x + blockIdx.y) & 7u) != 0u) return;
  if (__cuinstr_unarmed(__ci_launch) || (threadIdx.y | threadIdx.z) != 0u || threadIdx.x >= 32u) return;
#endif
  __cuinstr_ask_last(__ci_exit_site, __ci_launch);
}
#if __cuinstr_file_pausable
__cuinstr_shared_definition __device__ __attribute__((__used__, __aligned__(16))) __cuinstr_pause cuinstr_pause_v1 = {};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define __cuinstr_of_clusters "@OF_CLUSTERS@"
#else
#define __cuinstr_of_clusters
#endif
// Stand in front of all else in a kernel (docs/ABI.md, Pausing), around the look at the flag. The first ends blocks that another launch has run, or will run, and
// has one thread read whether a pause is asked for. The second tells all of the block by a barrier, so that its threads decide alike. No thread of the block can be at
// another barrier yet. Whole warps leave, by a vote: see `__cuinstr_entry`.
struct __cuinstr_request {
  unsigned int __ci_launch;
  unsigned int __ci_word;
};
__cuinstr_device __cuinstr_request __cuinstr_decide() {
  __cuinstr_request __ci_request;
  asm volatile(
      "{\n\t.reg .pred p, leads;\n\t.reg .b32 launch, word, first, span, index, x, y, mask;\n\t.reg .b64 asked, list, at;\n\t"
@DECIDE@      "mov.b32 %0, launch;\n\tmov.b32 %1, word;\n\t}"
      : "=r"(__ci_request.__ci_launch), "=r"(__ci_request.__ci_word)
      :
      : "memory");
  return __ci_request;
}
__cuinstr_device void __cuinstr_decline(__cuinstr_request __ci_request) {
  asm volatile(
      "{\n\t.reg .pred p;\n\t.reg .b32 launch, word, index, x, y, mask;\n\t.reg .b64 at;\n\tmov.b32 launch, %0;\n\tmov.b32 word, %1;\n\t"
@DECLINE@      "}"
      :
      : "r"(__ci_request.__ci_launch), "r"(__ci_request.__ci_word)
      : "memory");
}
#endif
// Stands first in a kernel: blocks of a stopped launch that begin late leave at once. Whole warps do: behind a way on which some of a warp's
// threads end, ptxas takes the warp for divided, and keeps what all its threads share in registers of each (`stencil3d`: 48 for 32). Where no host
// armed the launch one word is read and nothing else asked. What the kernel may run at first is for its first allowance.
template <bool __cuinstr_has_barriers>
__cuinstr_device unsigned int __cuinstr_entry(unsigned long long __ci_site) {
  unsigned int __ci_launch;
  const unsigned int* __ci_where;
  __cuinstr_read_launch(__ci_launch, __ci_where);
  unsigned int __ci_units = __cuinstr_most;
  // Not behind the branch: there it costs `ray_march` two registers.
  __cuinstr_begin_clock(__cuinstr_unarmed(__ci_launch) ? 1u : 0u);
  if (__cuinstr_any(!__cuinstr_unarmed(__ci_launch))) {
    // Read first and looked at last: what else there is to read is then waited for at the same time.
    const unsigned int __ci_flag = __cuinstr_load_near(__ci_where);
    if (__cuinstr_any(__ci_flag == __ci_launch)) __cuinstr_end_thread(__ci_site & ~1ull, 1u);
    __ci_units = __cuinstr_same(__cuinstr_chunk - __cuinstr_phase() * (__cuinstr_chunk >> 5));
  }
  __cuinstr_begin<__cuinstr_has_barriers>();
  return __ci_units;
}
// Asks on every way out of the kernel from where it is declared.
struct __cuinstr_exit {
  unsigned long long __ci_exit_site;
  __device__ __forceinline__ explicit __cuinstr_exit(unsigned long long __ci_site) : __ci_exit_site(__ci_site) {}
  __device__ __forceinline__ ~__cuinstr_exit() { __cuinstr_finish(__ci_exit_site, cuinstr_control_v1.__ci_launch); }
};
// Both ends of a kernel without a loop or call that polls: it is soon over, so it asks at its end only, when nothing waits for the answer.
template <bool __cuinstr_waits, bool __cuinstr_has_barriers>
struct __cuinstr_short_kernel {
  unsigned long long __ci_exit_site;
  unsigned int __ci_launch;
  __device__ __forceinline__ explicit __cuinstr_short_kernel(unsigned long long __ci_site) : __ci_exit_site(__ci_site), __ci_launch(__cuinstr_number()) {
    __cuinstr_begin<__cuinstr_has_barriers>();
    // One that waits for nothing has begun when its first block ends, too.
    if (__cuinstr_waits) __cuinstr_begin_clock(blockIdx.y | blockIdx.z);
  }
  __device__ __forceinline__ ~__cuinstr_short_kernel() { __cuinstr_finish(__ci_exit_site, __ci_launch); }
};
}
#if defined(__CUDACC_RDC__) && __cplusplus < 201703L
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#pragma nv_diagnostic pop
#endif
#ifdef __CUDA_ARCH__
// `__cuinstr_in_round` asks in templates that turn out to be no constant expressions. The host's pass warns of such questions of the user's.
#pragma nv_diag_suppress 3060
#endif
#endif
