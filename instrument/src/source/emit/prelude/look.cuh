// What an activation may run before it looks. The pace follows the clock, so that slow iterations do not stretch the gap and fast ones
// do not pay for it: the logarithm of the allowance in the low five bits, above them the time of the last look in units of 1024 ns, or zero
// before the first. Only looks ask for it, so it is kept in the thread's local memory, where it takes no register from the loops: the
// compiler is made to believe that somebody else has its address.
__cuinstr_device void __cuinstr_lend(unsigned int* __ci_word) { asm volatile("" : : "l"(__ci_word) : "memory"); }
// Where an activation begins: what it may run at first. What is left of that, and the counts of strips and chunks, are plain variables each:
// compilers that do not optimise keep the members of a class in memory, where any store through a pointer of the user's may mean them.
__cuinstr_device unsigned int __cuinstr_first(unsigned int& __ci_pace) {
  __ci_pace = __cuinstr_first_pace;
  __cuinstr_lend(&__ci_pace);
  return __cuinstr_chunk;
}
// The bound is said in one instruction, which a proof follows without optimisation, too.
__cuinstr_device unsigned int __cuinstr_no_more(unsigned int __ci_units) {
#ifdef __CUDA_ARCH__
  asm("min.u32 %0, %0, %1;" : "+r"(__ci_units) : "n"(__cuinstr_most));
#endif
  return __ci_units;
}
// The same where a kernel begins, which has found out how much it may run.
__cuinstr_device unsigned int __cuinstr_first(unsigned int& __ci_pace, unsigned int __ci_units) {
  __cuinstr_first(__ci_pace);
  return __cuinstr_no_more(__ci_units);
}
// The least of what the warp's threads have that are here together. Where they all count with one number, and leave together, compilers know that loops which
// are the same for all of them stay so: they keep what a loop reads of the kernel's parameters in registers that a warp has once, load it in front of it, and need
// no place to meet again behind each branch (`nbody`: 40 registers -> 32). Before sm_80 no instruction tells them so. Each thread runs both instructions one behind the
// other, so the threads that others wait for come.
__cuinstr_device unsigned int __cuinstr_same(unsigned int __ci_number) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("{\n\t.reg .b32 here;\n\tactivemask.b32 here;\n\tredux.sync.min.u32 %0, %0, here;\n\t}" : "+r"(__ci_number));
#endif
  return __ci_number;
}
// Whether it holds for any of them. A debug build keeps nothing in registers anyway, and its looks are each thread's own.
__cuinstr_device bool __cuinstr_some(bool __ci_holds) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(__CUDACC_DEBUG__)
  unsigned int __ci_some = __ci_holds ? 1u : 0u;
  asm volatile(
      "{\n\t.reg .b32 here;\n\t.reg .pred one;\n\tsetp.ne.u32 one, %0, 0;\n\tactivemask.b32 here;\n\tvote.sync.any.pred one, one, here;\n\tselp.u32 %0, 1, 0, one;\n\t}"
      : "+r"(__ci_some));
  return __ci_some != 0u;
#else
  return __ci_holds;
#endif
}
// The warps of a grid begin at the same time. If all looked at the same time too, they would wait in line for the one word that the flag is,
// and none would work meanwhile: 16 warps of a multiprocessor take turns. Where there are barriers, 16 blocks do: warps that wait for each
// other would else wait for each one's look in turn.
__cuinstr_device unsigned int __cuinstr_phase() {
#if __cuinstr_barriers
  return (blockIdx.y * gridDim.x + blockIdx.x) * 0x9e3779b1u >> 28;
#else
  unsigned int __ci_warp = 0u;
#ifdef __CUDA_ARCH__
  asm("mov.u32 %0, %%warpid;" : "=r"(__ci_warp));
#endif
  return __ci_warp & 15u;
#endif
}
// A launch that no host armed has the number 1. Its loops see a flag that a host raises all the same, but as late as they ever may: a host that wants it to end
// soon arms it. Where no limit is compiled in, its ends have nothing to ask: the price of a kernel's ends is what they wait for, 0.5 us of one that takes 1 us.
__cuinstr_device bool __cuinstr_unarmed(unsigned int __ci_launch) { return !__cuinstr_clocks && !__cuinstr_fuel && __ci_launch == 1u; }
// The power of two, by its logarithm, that is not below a number of at most 31 bits and at least one.
__cuinstr_device unsigned int __cuinstr_power(unsigned int __ci_number) {
#ifdef __CUDA_ARCH__
  return 32u - (unsigned int)__clz((int)(__ci_number - 1u));
#else
  unsigned int __ci_power = 0u;
  while (1u << __ci_power < __ci_number) ++__ci_power;
  return __ci_power;
#endif
}
// A look, and the next allowance. All loads are issued at once, and all is computed before the flag is there: what a look takes is the
// one way to the memory that it lies in. The launch's begin is read as any data, since it changes once, from zero; a thread that still reads
// zero, or may have to stop, asks again and asks for all. This is what the looks of debug builds are made of, those of sites whose threads go on,
// those beside compiled-in clocks, and those with a stop of their own (`__cuinstr_own_stops`); `__cuinstr_renew` says the same in assembly.
__cuinstr_device void __cuinstr_renew_at_length(unsigned int& __ci_left, unsigned int& __ci_kept, unsigned long long __ci_site) {
#if __cuinstr_clocks
  __cuinstr_look(__ci_site);
  const unsigned long long __ci_now = __cuinstr_now();
#else
  const unsigned int __ci_flag = __cuinstr_load(cuinstr_control_v1.__ci_flag);
  const unsigned long long __ci_now = __cuinstr_now();
  // Without a timeout, which is zero then, the right side is more than any number.
  const bool __ci_late = __ci_now - cuinstr_control_v1.__ci_start_ns > cuinstr_control_v1.__ci_timeout_ns - 1ull;
#endif
  const unsigned int __ci_time = (unsigned int)(__ci_now >> 10) | 1u;
  const unsigned int __ci_before = __ci_kept >> 5;
  unsigned int __ci_took = (__ci_time - __ci_before) & 0x7ffffffu;
  if (__ci_took > 64u * __cuinstr_gap) __ci_took = 64u * __cuinstr_gap;
  // By how many powers of two it was shorter than the gap: none from half a gap to one.
  int __ci_more = 20 - (int)__cuinstr_power(__ci_took * (0x100000u / __cuinstr_gap) + 1u);
  if (__ci_more > 2) __ci_more = 2;
  int __ci_pace = (int)(__ci_kept & 31u) + (__ci_before != 0u ? __ci_more : 0);
  if (__ci_pace < 0) __ci_pace = 0;
  if (__ci_pace > (int)__cuinstr_most_pace || __cuinstr_unarmed(cuinstr_control_v1.__ci_launch)) __ci_pace = (int)__cuinstr_most_pace;
  // The pace itself is the warp's: where only what may be run is, that of a thread among slower ones rises look by look, and without them it would run for ever.
  __ci_pace = (int)__cuinstr_same((unsigned int)__ci_pace);
  __ci_kept = __ci_time << 5 | (unsigned int)__ci_pace;
  __ci_left = 1u << __ci_pace;
#if !__cuinstr_clocks
  // Whole warps leave, as at the entry: one thread's reason is the reason of all that are here with it.
  if (__cuinstr_some(__ci_flag == cuinstr_control_v1.__ci_launch || __ci_late)) {
    const unsigned int __ci_why = __cuinstr_due_again(__cuinstr_some(__ci_flag == cuinstr_control_v1.__ci_launch));
    if (__cuinstr_some(__ci_why != 0u)) __cuinstr_end_thread(__ci_site, __ci_why != 0u ? __ci_why : 2u);
  }
#endif
}
// The compiler sees one instruction: where loops are unrolled, each copy has its look, and what compilers learn of a hundred instructions, to drop most of them
// when the trips are known, was half the time that files full of templates took.
__cuinstr_device void __cuinstr_renew(unsigned int& __ci_left, unsigned int& __ci_kept, unsigned long long __ci_site) {
  unsigned int __ci_units;
#if defined(__CUDA_ARCH__) && !__cuinstr_clocks && !defined(__CUDACC_DEBUG__) && !defined(__cuinstr_own_stops)
#if __CUDA_ARCH__ >= 800
#define __cuinstr_same_pace "activemask.b32 word;\n\tredux.sync.min.u32 pace, pace, word;\n\t"
#define __cuinstr_for_all "activemask.b32 word;\n\tvote.sync.any.pred holds, holds, word;\n\t"
#else
#define __cuinstr_same_pace
#define __cuinstr_for_all
#endif
#if __cuinstr_fuel
#define __cuinstr_unarmed_pace
#else
#define __cuinstr_unarmed_pace "setp.eq.u32 holds, launch, 1;\n\tselp.b32 pace, %5, pace, holds;\n\t"
#endif
  if ((__ci_site & 1ull) == 0ull) {
    unsigned int __ci_pace = __ci_kept;
    asm volatile(
        "{\n\t.reg .pred asked, late, holds;\n\t.reg .b32 flag, launch, time, before, pace, word;\n\t.reg .b64 now, begin, limit, where;\n\t.param .b64 site;\n\t.param .b32 why;\n\t"
        "ld.global.u64 begin, [cuinstr_control_v1+16];\n\tld." __cuinstr_strong("sys") ".u32 flag, [begin];\n\tmov.u64 now, %%globaltimer;\n\t"
        "ld.global.u64 begin, [cuinstr_control_v1+32];\n\tld.global.u64 limit, [cuinstr_control_v1+24];\n\tsub.u64 begin, now, begin;\n\tadd.s64 limit, limit, -1;\n\t"
        "setp.gt.u64 late, begin, limit;\n\t"
        // The pace: by how many powers of two the time since the last look was shorter than the gap.
        "shr.u64 begin, now, 10;\n\tcvt.u32.u64 time, begin;\n\tor.b32 time, time, 1;\n\tshr.u32 before, %1, 5;\n\tsub.u32 word, time, before;\n\tand.b32 word, word, 0x7ffffff;\n\t"
        "min.u32 word, word, %3;\n\tmul.lo.u32 word, word, %4;\n\tclz.b32 word, word;\n\tsub.s32 word, word, 12;\n\tmin.s32 word, word, 2;\n\t"
        "setp.eq.u32 holds, before, 0;\n\tselp.b32 word, 0, word, holds;\n\tand.b32 pace, %1, 31;\n\tadd.s32 pace, pace, word;\n\tmax.s32 pace, pace, 0;\n\tmin.s32 pace, pace, %5;\n\t"
        "ld.global.u32 launch, [cuinstr_control_v1+8];\n\t" __cuinstr_unarmed_pace __cuinstr_same_pace
        "shl.b32 time, time, 5;\n\tor.b32 %1, time, pace;\n\tmov.b32 word, 1;\n\tshl.b32 %0, word, pace;\n\t"
        "setp.eq.u32 asked, flag, launch;\n\tor.pred holds, asked, late;\n\t" __cuinstr_for_all "@!holds bra stays;\n\t"
        // Again, and for all: the flag's word is as good as before, the limit and the begin may not be.
        "mov.b32 time, 1;\n\tsetp.eq.u32 holds, flag, launch;\n\t" __cuinstr_for_all "@holds bra stops;\n\tmov.b32 time, 2;\n\t"
        "ld." __cuinstr_strong("gpu") ".u64 limit, [cuinstr_control_v1+24];\n\tmov.u64 now, %%globaltimer;\n\tld." __cuinstr_strong("gpu") ".u64 begin, [cuinstr_control_v1+32];\n\t"
        // As in `__cuinstr_claim_start`. A thread that has just set the begin is not late.
        "setp.ne.u64 holds, begin, 0;\n\t@holds bra begun;\n\tmov.b64 where, cuinstr_control_v1;\n\tshr.u64 begin, now, 63;\n\tadd.u64 where, where, begin;\n\t"
        "atom.global.cas.b64 begin, [where+32], 0, now;\n\tsetp.ne.u64 holds, begin, 0;\n\t@holds bra begun;\n\tmov.b64 begin, now;\n\t"
        "ld.global.u64 where, [where+56];\n\tsetp.ne.u64 holds, where, 0;\n\t@holds st.volatile.global.u64 [where+48], now;\n"
        "begun:\n\tsetp.gt.u64 holds, now, begin;\n\tsub.u64 now, now, begin;\n\tsetp.ge.u64 asked, now, limit;\n\tand.pred holds, holds, asked;\n\t"
        "setp.ne.u64 asked, limit, 0;\n\tand.pred holds, holds, asked;\n\t" __cuinstr_for_all
        "@!holds bra stays;\n"
        "stops:\n\tst.param.b64 [site], %2;\n\tst.param.b32 [why], time;\n\tcall __cuinstr_stop, (site, why);\n\texit;\n"
        "stays:\n\t}"
        : "=&r"(__ci_units), "+r"(__ci_pace)
        : "l"(__ci_site), "n"(64u * __cuinstr_gap), "n"(0x100000u / __cuinstr_gap), "n"(__cuinstr_most_pace));
    __ci_kept = __ci_pace;
  } else {
    __cuinstr_renew_at_length(__ci_units, __ci_kept, __ci_site);
  }
#undef __cuinstr_same_pace
#undef __cuinstr_for_all
#undef __cuinstr_unarmed_pace
#else
  __cuinstr_renew_at_length(__ci_units, __ci_kept, __ci_site);
#endif
#ifdef __CUDA_ARCH__
  // Said again, since a proof need not follow how a shift is bounded.
  asm("" : "+r"(__ci_units));
#endif
  __ci_left = __ci_units < __cuinstr_most ? __ci_units : __cuinstr_most;
}
