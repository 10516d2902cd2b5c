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
// Types by names that no macro takes: behind this text the file may define any word.
typedef bool __cuinstr_bool;
typedef unsigned int __cuinstr_word;
typedef unsigned long long __cuinstr_wide;
// Whether threads check at barriers if others of their block have left. Another translation unit's barriers are not in sight.
#if defined(__CUDACC_RDC__)
#define __cuinstr_barriers 1
#else
#define __cuinstr_barriers __cuinstr_file_barriers
#endif
// Whether a thread that leaves tells so in a word of global memory, and not in its block's shared memory. Units that are linked agree: what one tells the
// other asks. NVRTC does not say which of its programs are linked, and most are one unit.
#if __cuinstr_file_global_marks || (defined(__CUDACC_RDC__) && !defined(__CUDACC_RTC__))
#define __cuinstr_global_marks 1
#else
#define __cuinstr_global_marks 0
#endif
#define __cuinstr_shared_marks (__cuinstr_barriers && !__cuinstr_global_marks)
#define __cuinstr_clocks (__cuinstr_timeout_ns != 0 || __cuinstr_budget_cycles != 0)
// Iterations, by weight, between two looks of one function activation: at first, at most, both as powers of two; and how many are too few to
// cut a loop into. Debug builds look at each.
#ifdef __CUDACC_DEBUG__
#define __cuinstr_first_pace 0u
#define __cuinstr_most_pace 0u
#define __cuinstr_nest 0u
#define __cuinstr_short 1u
#else
#define __cuinstr_first_pace __cuinstr_file_first_pace
#define __cuinstr_most_pace @MOST_PACE@u
#define __cuinstr_nest @NEST@u
#define __cuinstr_short __cuinstr_file_short
#endif
// Of loops with more units than this not all iterations are unrolled.
#define __cuinstr_unrolled 65536u
#define __cuinstr_chunk (1u << __cuinstr_first_pace)
#define __cuinstr_most (1u << __cuinstr_most_pace)
// For loops of ours around the user's own, in front of which a pragma to unroll may stand.
#define __cuinstr_pragma(__cuinstr_text) _Pragma(#__cuinstr_text)
#define __cuinstr_rolled _Pragma("unroll 1")
// Whether the compiler takes a name for a constant. NVRTC and compilers of Microsoft's kind can't be asked: there the user's condition is asked in each iteration of a strip, and
// a loop over what a block shares asks each time whether its bound is small, which comes to the same if it is no constant after all.
#if defined(__CUDACC_RTC__) || !defined(__GNUC__)
#define __cuinstr_constant(...) !1
#define __cuinstr_settled(...) !0
#else
#define __cuinstr_constant(...) __builtin_constant_p(__VA_ARGS__)
#define __cuinstr_settled(...) __builtin_constant_p(__VA_ARGS__)
#endif
// One definition a program: static where a translation unit is the program, merged by nvlink where it is not.
#ifdef __CUDACC_RDC__
#define __cuinstr_shared_definition inline
#else
#define __cuinstr_shared_definition static
#endif
#define __cuinstr_device static __device__ __attribute__((__unused__)) __forceinline__
// What few threads come by stands out of line. Where groups of a block's warps have registers of their own (`setmaxnreg`), ptxas can't compile a function that two of them
// call, and each look has its own copy.
#ifdef __cuinstr_own_stops
#define __cuinstr_out_of_line __attribute__((__always_inline__))
#define __cuinstr_aside __cuinstr_device
#else
#define __cuinstr_out_of_line __noinline__
#define __cuinstr_aside static __device__ __attribute__((__unused__)) __noinline__
#endif
#if __cplusplus >= 201402L
#define __cuinstr_constexpr constexpr
#define __cuinstr_beside_return(__cuinstr_poll) __cuinstr_poll;
#define __cuinstr_before_value(__cuinstr_poll) __cuinstr_poll,
#define __cuinstr_evaluated_by_compiler __builtin_is_constant_evaluated()
#else
#define __cuinstr_constexpr
// A constexpr function of C++11 has one statement.
#define __cuinstr_beside_return(__cuinstr_poll)
#ifdef __CUDA_ARCH__
#define __cuinstr_before_value(__cuinstr_poll) (__builtin_is_constant_evaluated() ? (void)0 : __cuinstr_poll),
#else
#define __cuinstr_before_value(__cuinstr_poll)
#endif
#define __cuinstr_evaluated_by_compiler false
#endif
// The poll in each iteration of a `constexpr` function. Where the compiler evaluates the function it is no call: calls count towards the evaluation's limit.
#ifndef __CUDA_ARCH__
#define __cuinstr_in_round(...) ((void)0)
#elif __cplusplus >= 201402L
#define __cuinstr_in_round(...) (__builtin_is_constant_evaluated() ? (void)0 : __VA_ARGS__)
#else
#define __cuinstr_in_round(...) __VA_ARGS__
#endif
#define __cuinstr_everywhere __attribute__((__unused__)) static __host__ __device__ __forceinline__ __cuinstr_constexpr
// A line of the caches for itself, as in units that the PTX pass made.
__cuinstr_shared_definition __device__ __attribute__((__aligned__(128))) unsigned int cuinstr_flag_v1[32] = {};
__cuinstr_shared_definition __device__ __cuinstr_control cuinstr_control_v1 = {
    1u, 0u, 1u, 0u, cuinstr_flag_v1, 0ull, 0ull, 0ull, 0ull, nullptr, nullptr, {}};
#if __cuinstr_barriers && __cuinstr_global_marks
// Number of a launch of which threads have left.
__cuinstr_shared_definition __device__ __attribute__((__used__)) unsigned int cuinstr_left_v1 = 0u;
#endif

// Words that a host or another thread may change while the kernel runs are read past the first cache; the flag at system scope in
// loops, since it may lie in host memory. At a kernel's two ends, where every thread passes once, the narrower scope is half the price,
// and what it could miss there the clocks and loops do not. All other words were written before the launch, in the order of its stream, and are read as any data.
// All of them lie in global memory, where a generic address is the same number (PTX, Generic Addressing), and is said to: a load that might be of the thread's
// own memory takes longer.
__cuinstr_device unsigned int __cuinstr_load(const unsigned int* __ci_word) {
  unsigned int value;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(__ci_word));
#else
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(__ci_word));
#endif
  return value;
}
__cuinstr_device unsigned int __cuinstr_load_near(const unsigned int* __ci_word) {
  unsigned int value;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__ci_word));
#else
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(__ci_word));
#endif
  return value;
}
__cuinstr_device unsigned long long __cuinstr_load(const unsigned long long* __ci_word) {
  unsigned long long value;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(__ci_word));
#else
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(__ci_word));
#endif
  return value;
}
__cuinstr_device unsigned long long __cuinstr_now() {
  unsigned long long __ci_now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(__ci_now));
  return __ci_now;
}
__cuinstr_device unsigned long long __cuinstr_cycles() {
  unsigned long long __ci_now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(__ci_now));
  return __ci_now;
}
__cuinstr_device unsigned int __cuinstr_thread() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
// The end of this thread. After the call to __cuinstr_stop nothing lives on, so the cold side costs the hot one no registers.
#define __cuinstr_leave() \
  do {                    \
    asm volatile("exit;"); \
    __builtin_unreachable(); \
  } while (0)
// Whether it holds for any of the warp's threads that have come here together: what compilers know to be the same for all of them.
__cuinstr_device bool __cuinstr_any(bool __ci_holds) { return __any_sync(__activemask(), __ci_holds) != 0; }

// Names this block of this launch, so that words in shared memory left by another block are not taken for ours.
__cuinstr_device unsigned long long __cuinstr_tag() {
  unsigned long long __ci_grid;
  asm("mov.u64 %0, %%gridid;" : "=l"(__ci_grid));
  const unsigned long long __ci_block = ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned long long __ci_mixed = (__ci_grid * 0x9e3779b97f4a7c15ull) ^ ((__ci_block + 1ull) * 0xd1342543de82ef95ull);
  return __ci_mixed ^ (__ci_mixed >> 29) ^ 0x63756e7374727631ull;
}
// What the threads of a block share, in shared memory. It is not initialised when a block begins: a word left by another block is told
// from ours by its value.
#if __cuinstr_clocks || __cuinstr_gate || __cuinstr_shared_marks
// Memory whose size the launch says begins behind it, and kernels take for granted that this is where the block's memory begins: copies by hardware
// ask for 128 bytes, products of matrices for 1024. So it takes as much as leaves that as it was.
#if !__cuinstr_file_dynamic
#define __cuinstr_apart 16
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define __cuinstr_apart 128
#else
#define __cuinstr_apart 1024
#endif
struct __attribute__((__aligned__(__cuinstr_apart))) __cuinstr_block {
#if __cuinstr_shared_marks
  // One word of 64 bits: of whom, in the low half, and that somebody has left, in the high half.
  unsigned int __ci_of_whom;
  unsigned int __ci_left;
#endif
#if __cuinstr_clocks
  unsigned long long __ci_tag;
  unsigned long long __ci_start_ns;
  unsigned long long __ci_start_cycles;
#endif
#if __cuinstr_gate
  unsigned int __ci_ended;
#endif
};
__cuinstr_shared_definition __device__ __attribute__((__unused__)) volatile __cuinstr_block* __cuinstr_this_block() {
  __shared__ __cuinstr_block __ci_block;
  return &__ci_block;
}
#endif
#if __cuinstr_clocks
// Threads that do this at once write times that differ by less than the compiled-in limits can tell.
__cuinstr_device void __cuinstr_enter_block(volatile __cuinstr_block* __ci_block) {
  __ci_block->__ci_start_ns = __cuinstr_now();
  __ci_block->__ci_start_cycles = __cuinstr_cycles();
  __threadfence_block();
  __ci_block->__ci_tag = __cuinstr_tag();
  __threadfence_block();
}
// A kernel that was not rewritten (a library's, calling our functor) has not entered its block: the first poll does.
__cuinstr_device volatile __cuinstr_block* __cuinstr_entered_block() {
  volatile __cuinstr_block* __ci_block = __cuinstr_this_block();
  if (__ci_block->__ci_tag != __cuinstr_tag()) __cuinstr_enter_block(__ci_block);
  return __ci_block;
}
#endif
#if __cuinstr_barriers && __cuinstr_global_marks
// A thread that leaves writes the launch's number for those that it may release from a barrier, and they leave if they find the number of their own launch.
// One word serves all blocks. A thread that finds the number leaves rightly, whichever block wrote it: only a launch that is being stopped has threads
// that leave. A thread that another one released by leaving finds the number: both are of one block, the store comes before the exit, with a fence between, and
// no other number takes its place, since a launch's number does not change while it runs (docs/ABI.md). What an earlier launch left there is another number.
// So the load needs no more than the block's scope, and the nearest cache may answer it.
__cuinstr_device void __cuinstr_tell_left() {
  const unsigned int __ci_launch = cuinstr_control_v1.__ci_launch;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("st.relaxed.gpu.global.u32 [cuinstr_left_v1], %0;" : : "r"(__ci_launch) : "memory");
#else
  asm volatile("st.volatile.global.u32 [cuinstr_left_v1], %0;" : : "r"(__ci_launch) : "memory");
#endif
  __threadfence();
}
__cuinstr_device void __cuinstr_forget_left() {}
#elif __cuinstr_barriers
// What a thread that leaves writes for those that it may release from a barrier: that somebody has left, of which launch, and of which grid,
// since two modules may number their launches alike. A block of the same launch may have left it there before: then the launch is being stopped
// all the same.
#define __cuinstr_left_mark 0x63756e72u
__cuinstr_device unsigned long long __cuinstr_left_word() {
  unsigned long long __ci_grid;
  asm("mov.u64 %0, %%gridid;" : "=l"(__ci_grid));
  const unsigned int __ci_of_whom = cuinstr_control_v1.__ci_launch * 0x9e3779b1u + (unsigned int)__ci_grid + (unsigned int)(__ci_grid >> 32) * 0x85ebca6bu;
  return (unsigned long long)__cuinstr_left_mark << 32 | __ci_of_whom;
}
__cuinstr_device unsigned int __cuinstr_left_address() { return (unsigned int)__cvta_generic_to_shared((const void*)&__cuinstr_this_block()->__ci_of_whom); }
// Both parts at once, and as an exchange, since others may be clearing the word.
__cuinstr_device void __cuinstr_tell_left() {
  asm volatile("{\n\t.reg .b64 before;\n\tatom.shared.exch.b64 before, [%0], %1;\n\t}" : : "r"(__cuinstr_left_address()), "l"(__cuinstr_left_word()) : "memory");
  __threadfence_block();
}
// What another launch left there goes, where a kernel begins, so that at this kernel's own barriers the mark alone tells. Each thread does
// this before its first barrier. The word then holds what it held when the block began, without the mark, or zero, or what a thread of this
// launch has told: if that comes in between, the word is not what was read, and stays.
__cuinstr_device void __cuinstr_forget_left() {
  if (__cuinstr_this_block()->__ci_left == __cuinstr_left_mark) {
    asm volatile(
        "{\n\t.reg .pred other;\n\t.reg .b64 there, before;\n\tld.volatile.shared.b64 there, [%0];\n\tsetp.ne.b64 other, there, %1;\n\t"
        "@other atom.shared.cas.b64 before, [%0], there, 0;\n\t}"
        :
        : "r"(__cuinstr_left_address()), "l"(__cuinstr_left_word())
        : "memory");
  }
}
#endif

__cuinstr_device __cuinstr_stop_record* __cuinstr_record() {
  return cuinstr_control_v1.__ci_record != nullptr ? cuinstr_control_v1.__ci_record : &cuinstr_control_v1.__ci_own_record;
}
// The first to stop writes who and why; all are counted, a warp's threads at one site at a time. Under `trap` no thread traps before
// the record is out: device memory can't be read afterwards. A thread that another one has released from a barrier has no reason of its own (0), and is counted
// only: both are one function. All of it is assembly without generic addresses: each compilation pays for it. Its numbers are the ABI's, which a test holds against it.
// Where no host asks for a copy of the record, what would go there is written to the record twice: two ways would cost more than seven words.
// A full grid's warps all come here within some microseconds, and the second cache does one addition to a word in two cycles: 8,448 of them in line took 10 us. So each
// adds to one word, that of four in turn that its multiprocessor's number says, and no word counts all. What others may have done already is asked by loads first.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
#define __cuinstr_strong(__cuinstr_scope) "relaxed." __cuinstr_scope ".global"
#define __cuinstr_match "match.any.sync.b64 mask, %0, mask;\n\t"
#else
#define __cuinstr_strong(__cuinstr_scope) "volatile.global"
#define __cuinstr_match
#endif
// Address of the slot, and the site's own number in the table.
#define __cuinstr_slot \
  "shr.u64 word, %0, 1;\n\tcvt.u32.u64 z, word;\n\tmov.u32 x, %%smid;\n\tshl.b32 x, x, 4;\n\tadd.u32 x, x, z;\n\tand.b32 x, x, 63;\n\tmad.wide.u32 to, x, 16, record;\n\t"
#if __cuinstr_budget_cycles
#define __cuinstr_write_cycles "st.global.b64 [to+72], %2;\n\tst.global.b64 [record+72], %2;\n\t"
#else
#define __cuinstr_write_cycles
#endif
extern "C" {
// What only assembly calls must stand in front of its callers in PTX. Functions stand in the order in which the compiler meets them: tables of virtual functions first,
// then other variables with functions in them, then functions. So this one is in a variable, too: in the first of all, or in one that the compiler finds needless.
inline __device__ __attribute__((__used__)) __cuinstr_out_of_line void __cuinstr_stop(unsigned long long __ci_site, unsigned int __ci_why) {
#ifndef __cuinstr_own_stops
  static void (*const __ci_self[1])(unsigned long long, unsigned int) = {__cuinstr_stop};
  if (__ci_self[0] == nullptr) return;
#endif
#if __cuinstr_barriers
  // So do those that a barrier has released where marks lie in global memory: another block may have told them, and those of this one are told by one of their own.
  if ((__ci_site & 1ull) == 0ull) __cuinstr_tell_left();
#endif
#if __cuinstr_budget_cycles
  const unsigned long long __ci_cycles = __cuinstr_cycles() - __cuinstr_entered_block()->__ci_start_cycles;
#else
  const unsigned long long __ci_cycles = 0ull;
#endif
  asm volatile(
      "{\n\t.reg .pred idle, asked, mine, one;\n\t.reg .b32 launch, mask, x, y, z;\n\t.reg .b64 record, to, word, now, threads;\n\t"
      "ld.global.b32 launch, [cuinstr_control_v1+8];\n\tld.global.b64 record, [cuinstr_control_v1+64];\n\tmov.b64 word, cuinstr_control_v1;\n\t"
      "add.u64 word, word, 72;\n\tsetp.eq.u64 one, record, 0;\n\tselp.b64 record, word, record, one;\n\tsetp.eq.u32 idle, %1, 0;\n\t"
      "activemask.b32 mask;\n\t" __cuinstr_match "mov.u32 x, %%lanemask_lt;\n\tand.b32 x, x, mask;\n\tsetp.ne.u32 one, x, 0;\n\t@one bra raised;\n\t"
      // All that there is to ask, at once: the flag, who was first, and whose the slot is. What comes of it is kept in predicates: linked units call this by the ABI, with no
      // limit to the registers, and a block of 1024 threads has 64 of each.
      "ld.global.b64 now, [cuinstr_control_v1+16];\n\t" __cuinstr_slot "ld." __cuinstr_strong("sys") ".b32 x, [now];\n\tld." __cuinstr_strong("gpu") ".b32 y, [record];\n\t"
      "ld." __cuinstr_strong("gpu") ".b64 word, [to+96];\n\tsetp.eq.u32 asked, x, launch;\n\tsetp.eq.u64 mine, word, %0;\n\t"
      "@idle bra claimed;\n\tsetp.ne.u32 one, y, 0;\n\t@one bra claimed;\n\tatom.global.cas.b32 x, [record], 0, launch;\n\tsetp.ne.u32 one, x, 0;\n\t@one bra claimed;\n\t"
      // Who and why.
      "ld.global.b64 to, [cuinstr_control_v1+56];\n\tsetp.eq.u64 one, to, 0;\n\tselp.b64 to, record, to, one;\n\t"
      "st.global.b32 [to], launch;\n\tst.global.b64 [to+8], %0;\n\tst.global.b64 [record+8], %0;\n\tst.global.b32 [to+16], %1;\n\tst.global.b32 [record+16], %1;\n\t"
      "mov.u32 x, %%ctaid.x;\n\tmov.u32 y, %%ctaid.y;\n\tst.global.v2.b32 [to+24], {x, y};\n\tst.global.v2.b32 [record+24], {x, y};\n\t"
      "mov.u32 x, %%ctaid.z;\n\tmov.u32 y, %%tid.x;\n\tst.global.v2.b32 [to+32], {x, y};\n\tst.global.v2.b32 [record+32], {x, y};\n\t"
      "mov.u32 x, %%tid.y;\n\tmov.u32 y, %%tid.z;\n\tst.global.v2.b32 [to+40], {x, y};\n\tst.global.v2.b32 [record+40], {x, y};\n\t"
      // For how long, if the launch has a begin.
      "ld." __cuinstr_strong("gpu") ".b64 word, [cuinstr_control_v1+32];\n\tmov.u64 now, %%globaltimer;\n\tsetp.eq.u64 one, word, 0;\n\t"
      "selp.b64 word, now, word, one;\n\tsub.u64 word, now, word;\n\tst.global.b64 [to+64], word;\n\tst.global.b64 [record+64], word;\n\t" __cuinstr_write_cycles
      "membar.sys;\n\tst.volatile.global.b32 [to+4], launch;\n\tmembar.sys;\n\tst.volatile.global.b32 [record+4], launch;\n"
      // Threads, in the site's slot for this multiprocessor, or the site's own, or the next one that is free, or `unlisted`.
      "claimed:\n\tpopc.b32 mask, mask;\n\tcvt.u64.u32 threads, mask;\n\t" __cuinstr_slot "@mine bra found;\n\tmov.b32 mask, 65;\n"
      "probe:\n\t.pragma \"nounroll\";\n\tatom.global.cas.b64 word, [to+96], 0, %0;\n\tsetp.eq.u64 one, word, 0;\n\t@one bra found;\n\tsetp.eq.u64 one, word, %0;\n\t@one bra found;\n\t"
      "and.b32 x, z, 63;\n\tmad.wide.u32 to, x, 16, record;\n\tadd.u32 z, z, 1;\n\tsub.u32 mask, mask, 1;\n\tsetp.ne.u32 one, mask, 0;\n\t@one bra probe;\n\tsub.u64 to, record, 16;\n"
      "found:\n\tred.global.add.u64 [to+104], threads;\n\t"
      // The flag comes after the claim: a thread that sees it finds the reason taken. A store would leave the flag's line in the first cache, where polls of a unit that
      // the PTX pass made would find it. A thread that found it raised adds nothing, and waits for no fence.
      "@idle bra done;\n\t@asked bra raised;\n\tld.global.b64 to, [cuinstr_control_v1+16];\n\tmembar.sys;\n\tatom.global.exch.b32 x, [to], launch;\n"
      "raised:\n\t@idle bra done;\n\tld.global.b32 x, [cuinstr_control_v1+4];\n\tsetp.ne.u32 one, x, 0;\n\t@one bra done;\n\tmembar.sys;\n\tmov.u64 word, %%globaltimer;\n"
      // A record that another thread has claimed is waited for, but not for longer than a millisecond.
      "wait:\n\tld." __cuinstr_strong("sys") ".b32 x, [record+4];\n\tsetp.ne.u32 one, x, 0;\n\t@one bra out;\n\tmov.u64 now, %%globaltimer;\n\tsub.u64 now, now, word;\n\t"
      "setp.lt.u64 one, now, 1000000;\n\t@one bra wait;\n"
      "out:\n\ttrap;\n"
      "done:\n\t}"
      :
      : "l"(__ci_site), "r"(__ci_why), "l"(__ci_cycles)
      : "memory");
}
#if __cuinstr_file_virtuals && !defined(__cuinstr_own_stops)
static __device__ __attribute__((__unused__)) void (*const __cuinstr_stop_is_first)(unsigned long long, unsigned int) = __cuinstr_stop;
#endif
}

__cuinstr_device bool __cuinstr_asked() { return __cuinstr_load(cuinstr_control_v1.__ci_flag) == cuinstr_control_v1.__ci_launch; }
__cuinstr_device bool __cuinstr_asked_near() { return __cuinstr_load_near(cuinstr_control_v1.__ci_flag) == cuinstr_control_v1.__ci_launch; }
// Sets the launch's begin if it is not set, tells the host's record, and gives back what was there. The word's address is told by the clock,
// whose highest bit stays zero until the year 2262: else compilers would make it where the kernel begins, and keep two registers for it through
// each loop. All of it is assembly that clobbers no memory, since it stands in loops: what it writes is no word of the user's and is read by
// strong loads, and a compiler that must reckon with any store would keep no sum of the user's (`sum[i] += …`) in a register.
__cuinstr_device unsigned long long __cuinstr_claim_start(unsigned long long __ci_now) {
  unsigned long long __ci_before;
  asm volatile(
      "{\n\t.reg .pred first;\n\t.reg .b64 word, none, host;\n\tmov.b64 word, cuinstr_control_v1;\n\tshr.u64 none, %1, 63;\n\tadd.u64 word, word, none;\n\t"
      "atom.global.cas.b64 %0, [word+32], 0, %1;\n\tsetp.eq.u64 first, %0, 0;\n\tmov.b64 host, 0;\n\t@first ld.global.b64 host, [word+56];\n\t"
      "setp.ne.u64 first, host, 0;\n\t@first st.volatile.b64 [host+48], %1;\n\t}"
      : "=&l"(__ci_before)
      : "l"(__ci_now));
  return __ci_before;
}
// The launch begins at the first look at its clock; the first thread sets it for all.
__cuinstr_device unsigned long long __cuinstr_start(unsigned long long __ci_now) {
  const unsigned long long __ci_start = __cuinstr_load(&cuinstr_control_v1.__ci_start_ns);
  if (__ci_start != 0ull) return __ci_start;
  const unsigned long long __ci_first = __cuinstr_claim_start(__ci_now);
  return __ci_first != 0ull ? __ci_first : __ci_now;
}
// The reason to stop, or 0. Two clocks of one launch may differ by a tick, so a start that lies ahead is no deadline passed.
__cuinstr_device unsigned int __cuinstr_due(bool __ci_asked) {
  unsigned int __ci_why = __ci_asked ? 1u : 0u;
  const unsigned long long __ci_timeout = cuinstr_control_v1.__ci_timeout_ns;
  if (__ci_timeout != 0ull) {
    const unsigned long long __ci_now = __cuinstr_now();
    const unsigned long long __ci_start = __cuinstr_start(__ci_now);
    // Launches that overlap share this clock, and the host turns it off when the first is done. Blocks of the next may have begun by then, and their
    // cache still holds the limit of the first, so who is late by that asks the memory.
    if (__ci_why == 0u && __ci_now > __ci_start && __ci_now - __ci_start >= __ci_timeout) {
      const unsigned long long __ci_holds = __cuinstr_load(&cuinstr_control_v1.__ci_timeout_ns);
      if (__ci_holds != 0ull && __ci_now - __ci_start >= __ci_holds) __ci_why = 2u;
    }
  }
#if __cuinstr_timeout_ns
  else {
    const unsigned long long __ci_now = __cuinstr_now();
    const unsigned long long __ci_start = __cuinstr_entered_block()->__ci_start_ns;
    if (__ci_why == 0u && __ci_now > __ci_start && __ci_now - __ci_start >= __cuinstr_timeout_ns) __ci_why = 2u;
  }
#endif
#if __cuinstr_budget_cycles
  const unsigned long long __ci_armed = cuinstr_control_v1.__ci_budget_cycles;
  if (__ci_why == 0u && __cuinstr_cycles() - __cuinstr_entered_block()->__ci_start_cycles >= (__ci_armed != 0ull ? __ci_armed : __cuinstr_budget_cycles)) __ci_why = 3u;
#endif
  return __ci_why;
}

// The same where a look has found that the flag asks, or that it is late by the limit in the block's cache.
__cuinstr_device unsigned int __cuinstr_due_again(bool __ci_asked) {
  if (__ci_asked) return 1u;
  const unsigned long long __ci_timeout = __cuinstr_load(&cuinstr_control_v1.__ci_timeout_ns);
  const unsigned long long __ci_now = __cuinstr_now();
  const unsigned long long __ci_start = __cuinstr_start(__ci_now);
  return __ci_timeout != 0ull && __ci_now > __ci_start && __ci_now - __ci_start >= __ci_timeout ? 2u : 0u;
}

// A site with an odd id stands where leaving is not defined: its threads say that they should stop, and go on.
__cuinstr_device void __cuinstr_end_thread(unsigned long long __ci_site, unsigned int __ci_why) {
  if ((__ci_site & 1ull) == 0ull) {
    __cuinstr_stop(__ci_site, __ci_why);
    __cuinstr_leave();
  } else if (__ci_why != 1u || cuinstr_control_v1.__ci_action == 0u) {
    __cuinstr_stop(__ci_site, __ci_why);
  }
}

#if __cuinstr_fuel
// One word a thread: what is left in the low 40 bits, above them a part of the tag, for threads that no kernel of ours filled up.
__cuinstr_shared_definition __device__ __attribute__((__unused__)) unsigned long long* __cuinstr_tank() {
  __shared__ unsigned long long __ci_tanks[1024];
  return __ci_tanks + __cuinstr_thread();
}
__cuinstr_device unsigned long long __cuinstr_full_tank() {
  const unsigned long long __ci_armed = cuinstr_control_v1.__ci_fuel;
  const unsigned long long __ci_fuel = __ci_armed != 0ull ? __ci_armed : __cuinstr_fuel;
  return (__cuinstr_tag() & ~0xffffffffffull) | (__ci_fuel < 0xffffffffffull ? __ci_fuel : 0xffffffffffull);
}
#endif
// Each iteration costs one unit. A full tank of 2^40 - 1 is no limit and is not drawn from.
__cuinstr_device void __cuinstr_burn(unsigned long long __ci_site) {
#if __cuinstr_fuel
  unsigned long long* __ci_tank = __cuinstr_tank();
  unsigned long long __ci_level = *__ci_tank;
  if (((__ci_level ^ __cuinstr_tag()) & ~0xffffffffffull) != 0ull) __ci_level = __cuinstr_full_tank();
  const unsigned long long __ci_left = __ci_level & 0xffffffffffull;
  if (__ci_left == 0ull) __cuinstr_end_thread(__ci_site, 4u);
  if (__ci_left != 0ull && __ci_left != 0xffffffffffull) --__ci_level;
  *__ci_tank = __ci_level;
#else
  (void)__ci_site;
#endif
}

__cuinstr_device void __cuinstr_look(unsigned long long __ci_site) {
  const unsigned int __ci_why = __cuinstr_due(__cuinstr_asked());
  if (__ci_why != 0u) __cuinstr_end_thread(__ci_site, __ci_why);
}
// A poll at each iteration.
__cuinstr_device void __cuinstr_poll(unsigned long long __ci_site) {
  __cuinstr_burn(__ci_site);
  __cuinstr_look(__ci_site);
}
// The mark that stands for a poll at a call where the compiler's output is asked whether the call needs one.
__cuinstr_device void __cuinstr_mark_call(unsigned long long __ci_site) { asm volatile("{\n\t.reg .b64 cuinstr_call;\n\tmov.b64 cuinstr_call, %0;\n\t}" : : "l"(__ci_site)); }
// A call of a recursive function. Whether a call that looks like one leads back at all is asked of the compiler's output, in which it leaves a mark; those
// that don't have the number 0 from then on (docs/VERIFY.md).
__cuinstr_device void __cuinstr_call(unsigned long long __ci_site) {
#ifdef __cuinstr_marks_calls
  __cuinstr_mark_call(__ci_site);
#else
  (void)"cuinstr: settled";
  __cuinstr_burn(__ci_site);
  __cuinstr_look(__ci_site);
#endif
}
// A look out of line where leaving is defined. Where a thread leaves between a branch and where its warp meets again, ptxas keeps that place in registers,
// by three moves in each round of the loop, each of which waits.
__cuinstr_aside void __cuinstr_looked(unsigned long long __ci_site) { __cuinstr_look(__ci_site & ~1ull); }
__cuinstr_device void __cuinstr_look_aside(unsigned long long __ci_site) {
  if ((__ci_site & 1ull) == 0ull) {
    __cuinstr_looked(__ci_site);
  } else {
    __cuinstr_look(__ci_site);
  }
}
// The same out of line, for sites where leaving is defined, which is said again where the compiler does not see the site.
__cuinstr_aside void __cuinstr_called(unsigned long long __ci_site) {
  __cuinstr_burn(__ci_site & ~1ull);
  __cuinstr_look(__ci_site & ~1ull);
}
