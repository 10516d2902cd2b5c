// A poll whenever the activation's allowance is used up. The allowance only falls between two looks, and each look refills it: at most
// __cuinstr_most iterations of all the loops of one activation run without one. Debug builds, which keep the count in memory where no proof
// could follow it, look each time.
__cuinstr_device void __cuinstr_pay(unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site) {
  if (__cuinstr_most > 1u && __ci_left > __ci_weight) {
    __ci_left -= __ci_weight;
  } else {
    __cuinstr_renew(__ci_left, __ci_pace, __ci_site);
  }
}
__cuinstr_device void __cuinstr_tick(unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site) {
  __cuinstr_burn(__ci_site);
  __cuinstr_pay(__ci_left, __ci_pace, __ci_weight, __ci_site);
}
// One iteration of a chunk or strip. A debug build keeps the count in memory, where no proof could follow it, so it looks here.
__cuinstr_device void __cuinstr_debugged(unsigned long long __ci_site) {
#ifdef __CUDACC_DEBUG__
  __cuinstr_look(__ci_site);
#else
  (void)__ci_site;
#endif
}
__cuinstr_device void __cuinstr_step(unsigned int& __ci_turns, unsigned long long __ci_site) {
  --__ci_turns;
  __cuinstr_debugged(__ci_site);
}
// A loop in chunks of a constant number of iterations, each paid for before it runs. `__ci_turns` counts a chunk down: where the loop comes by
// again, a zero says that it begins or that its last chunk was used up, anything else that its condition or a `break` has ended it.
__cuinstr_device bool __cuinstr_again(unsigned int& __ci_turns, unsigned int __ci_chunk, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_charge, unsigned long long __ci_site) {
  if (__ci_turns != 0u) {
    __ci_turns = 0u;
    return false;
  }
  __cuinstr_tick(__ci_left, __ci_pace, __ci_charge, __ci_site);
  __ci_turns = __cuinstr_most > 1u ? __ci_chunk : 1u;
  return true;
}
// Behind an iteration of a `do` in chunks, whose condition has just held.
__cuinstr_device bool __cuinstr_goes_on(unsigned int& __ci_turns, unsigned long long __ci_site) {
  __cuinstr_step(__ci_turns, __ci_site);
  return __ci_turns != 0u;
}
// Whether a strip-mined loop that may be left by a `break` was not: the strip's count is used up then.
__cuinstr_device bool __cuinstr_unbroken(unsigned int& __ci_turns) {
  const bool __ci_unbroken = __ci_turns == 0u;
  __ci_turns = 0u;
  return __ci_unbroken;
}
// In a nest of loops whose trips the compiler may know. `__ci_run` starts from zero where the nest is entered, and rises by constants. So the compiler
// knows the most that it can be, and with it that the poll is dead. Beyond a nest's length each iteration is paid for as any other.
__cuinstr_device void __cuinstr_pay_nest(unsigned int& __ci_run, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site) {
  __ci_run += __ci_weight;
  if (__cuinstr_nest == 0u || __ci_run > __cuinstr_nest) __cuinstr_pay(__ci_left, __ci_pace, __ci_weight, __ci_site);
}
__cuinstr_device void __cuinstr_tick_nest(unsigned int& __ci_run, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site) {
  __cuinstr_burn(__ci_site);
  __cuinstr_pay_nest(__ci_run, __ci_left, __ci_pace, __ci_weight, __ci_site);
}
// In a loop from a thread's index, or zero, up to `__ci_bound` in steps of `__ci_step` or of a dimension of the block: where both are constants it runs
// at most `__ci_most` times, and the compiler drops the poll.
template <bool __cuinstr_known>
__cuinstr_device void __cuinstr_tick_share(long long __ci_bound, long long __ci_step, long long __ci_most, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight,
    unsigned long long __ci_site) {
  const bool __ci_few = __cuinstr_known && __ci_bound >= 0 && __ci_bound <= __ci_most && __ci_step > 0 && __ci_step <= 0x100000;
  if (__cuinstr_nest == 0u || !__ci_few) __cuinstr_tick(__ci_left, __ci_pace, __ci_weight, __ci_site);
}
// Behind each strip.
__cuinstr_device void __cuinstr_pass(unsigned int& __ci_left, unsigned int& __ci_pace, unsigned long long __ci_site) {
  if (__cuinstr_most <= 1u || __ci_left == 0u) {
    __cuinstr_renew(__ci_left, __ci_pace, __ci_site);
  }
}
// Types whose values step as numbers do: integers and pointers, but no references to what others may change, no booleans, no classes.
// Enumerators count as numbers where they turn into such by themselves.
template <class __cuinstr_t>
struct __cuinstr_steps {
  static __device__ char __ci_converts(long long);
  static __device__ long __ci_converts(...);
  static constexpr bool __ci_number = __is_enum(__cuinstr_t) && sizeof(__ci_converts(__cuinstr_t())) == 1;
  static constexpr bool value = __ci_number;
  static constexpr bool __ci_narrow = true;
};
template <>
struct __cuinstr_steps<int> {
  static constexpr bool value = true;
  static constexpr bool __ci_number = true;
  static constexpr bool __ci_narrow = false;
};
template <> struct __cuinstr_steps<unsigned int> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<long> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<unsigned long> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<long long> : __cuinstr_steps<int> {};
template <> struct __cuinstr_steps<unsigned long long> : __cuinstr_steps<int> {};
template <>
struct __cuinstr_steps<short> {
  static constexpr bool value = true;
  static constexpr bool __ci_number = true;
  static constexpr bool __ci_narrow = true;
};
template <> struct __cuinstr_steps<unsigned short> : __cuinstr_steps<short> {};
template <> struct __cuinstr_steps<signed char> : __cuinstr_steps<short> {};
template <> struct __cuinstr_steps<unsigned char> : __cuinstr_steps<short> {};
template <> struct __cuinstr_steps<char> : __cuinstr_steps<short> {};
template <class __cuinstr_t>
struct __cuinstr_steps<__cuinstr_t*> {
  static constexpr bool value = true;
  static constexpr bool __ci_number = false;
  static constexpr bool __ci_narrow = false;
};
template <class __cuinstr_t> struct __cuinstr_steps<const __cuinstr_t> : __cuinstr_steps<__cuinstr_t> {};
// Whether all the types are of values: what a reference names, or a volatile variable holds, others may change.
template <class... __cuinstr_t>
struct __cuinstr_values {
  static constexpr bool __ci_all = true;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<__cuinstr_t, __cuinstr_more...> {
  static constexpr bool __ci_all = __cuinstr_values<__cuinstr_more...>::__ci_all;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<__cuinstr_t&, __cuinstr_more...> {
  static constexpr bool __ci_all = false;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<__cuinstr_t&&, __cuinstr_more...> {
  static constexpr bool __ci_all = false;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<volatile __cuinstr_t, __cuinstr_more...> {
  static constexpr bool __ci_all = false;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_values<const volatile __cuinstr_t, __cuinstr_more...> {
  static constexpr bool __ci_all = false;
};
// Whether all the types are of numbers, or of pointers and references to numbers: no operator of theirs is a function.
template <class... __cuinstr_t>
struct __cuinstr_numbers {
  static constexpr bool __ci_all = true;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {
  static constexpr bool __ci_all = !__is_class(__cuinstr_t) && !__is_union(__cuinstr_t) && !__is_enum(__cuinstr_t) && __cuinstr_numbers<__cuinstr_more...>::__ci_all;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t&, __cuinstr_more...> : __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t&&, __cuinstr_more...> : __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t*, __cuinstr_more...> : __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t* const, __cuinstr_more...> : __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t[], __cuinstr_more...> : __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {};
template <class __cuinstr_t, unsigned long long __cuinstr_n, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t[__cuinstr_n], __cuinstr_more...> : __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {};
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
struct __cuinstr_counts {
  static constexpr bool value =
      __cuinstr_steps<__cuinstr_i>::__ci_number && __cuinstr_steps<__cuinstr_n>::__ci_number && __cuinstr_steps<__cuinstr_s>::__ci_number;
};
__cuinstr_everywhere unsigned long long __cuinstr_least(unsigned long long __ci_one, unsigned long long __ci_other) { return __ci_one < __ci_other ? __ci_one : __ci_other; }
// How often a loop runs from `__ci_first` to `__ci_last`; the largest number where that is not known. A loop that runs until its counter meets the bound may
// pass it by, or lead away from it. And numbers so large may be others than the loop compares.
__cuinstr_everywhere unsigned long long __cuinstr_counted(long long __ci_first, long long __ci_last, long long __ci_step, bool __ci_meets, long long __ci_least, long long __ci_most) {
  return __ci_step == 0 || __ci_first < __ci_least || __ci_last < __ci_least || __ci_first > __ci_most || __ci_last > __ci_most ? ~0ull
         : (__ci_last - __ci_first) / __ci_step < 0 || (__ci_meets && (__ci_last - __ci_first) % __ci_step != 0)      ? (__ci_meets ? ~0ull : 0ull)
                                                                                   : (unsigned long long)((__ci_last - __ci_first) / __ci_step + 1);
}
// As types without a sign compare, nothing lies below zero.
template <class __cuinstr_t>
__cuinstr_everywhere long long __cuinstr_lowest(long long __ci_most) { return ~(__cuinstr_t)0 < (__cuinstr_t)1 ? -__ci_most : 0ll; }
// For the weight of the loop around it: at most as often as a nest runs for nothing, which also stands for what is no number.
template <bool, class __cuinstr_t>
struct __cuinstr_if {};
template <class __cuinstr_t>
struct __cuinstr_if<true, __cuinstr_t> {
  typedef __cuinstr_t type;
};
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_everywhere typename __cuinstr_if<__cuinstr_counts<__cuinstr_i, __cuinstr_n, __cuinstr_s>::value, unsigned long long>::type
__cuinstr_trips(__cuinstr_i __ci_start, __cuinstr_n __ci_bound, __cuinstr_s __ci_step, bool __ci_meets) {
  return __cuinstr_least(__cuinstr_counted((long long)__ci_start, (long long)__ci_bound, (long long)__ci_step, __ci_meets, __cuinstr_lowest<decltype(__ci_start + __ci_bound)>(1ll << 61),
      1ll << 61), __cuinstr_nest);
}
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_everywhere typename __cuinstr_if<!__cuinstr_counts<__cuinstr_i, __cuinstr_n, __cuinstr_s>::value, unsigned long long>::type
__cuinstr_trips(const __cuinstr_i&, const __cuinstr_n&, const __cuinstr_s&, bool) {
  return (unsigned long long)__cuinstr_nest;
}
// For the loop's own poll, where its header tells: a counter goes up by a constant from one value to another, all of which the front end takes
// for constants and its type surely holds.
template <bool __cuinstr_plain>
struct __cuinstr_header {
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n, class __cuinstr_a>
  static __device__ __forceinline__ unsigned long long __ci_trips(const __cuinstr_s&, const __cuinstr_n&, const __cuinstr_a&) { return ~0ull; }
};
template <>
struct __cuinstr_header<true> {
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n, class __cuinstr_a>
  static __device__ __forceinline__ unsigned long long __ci_trips(__cuinstr_s __ci_start, __cuinstr_n __ci_bound, __cuinstr_a __ci_amount) {
    if (__ci_amount < (__cuinstr_a)1 || __ci_amount > (__cuinstr_a)16384) return ~0ull;
    return __cuinstr_counted((long long)__ci_start, (long long)__ci_bound, (long long)__ci_amount, false, __cuinstr_lowest<decltype(__cuinstr_i() + __cuinstr_n())>(1ll << 30), 1ll << 30);
  }
};
template <bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
struct __cuinstr_plain {
  static constexpr bool value = false;
};
template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
struct __cuinstr_plain<true, __cuinstr_i, __cuinstr_s, __cuinstr_n> {
  static constexpr bool value = __cuinstr_counts<__cuinstr_i, __cuinstr_s, __cuinstr_n>::value && !__cuinstr_steps<__cuinstr_i>::__ci_narrow;
};
// In a nest, where the counter of a loop is multiplied or divided: such a loop ends after as many iterations as a number has bits, so that many are free however
// heavy they are. Where it does not end after all, each one beyond is paid for in full.
__cuinstr_device void __cuinstr_tick_scaled(unsigned int& __ci_run, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site) {
  __cuinstr_burn(__ci_site);
  __ci_run += (unsigned int)__cuinstr_least(__ci_weight, __cuinstr_nest / 64u);
  if (__cuinstr_nest == 0u || __ci_run > __cuinstr_nest) __cuinstr_pay(__ci_left, __ci_pace, __ci_weight, __ci_site);
}
// In a nest, where the front end may know the loop's extent. A loop that is short with all that is inside it needs no poll: the loop around it
// pays for it. One that may be unrolled as a whole pays once in so many units, so that not each of its iterations becomes a poll.
template <bool __cuinstr_alone>
__cuinstr_device void __cuinstr_tick_of(unsigned int& __ci_run, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site,
    unsigned long long __ci_trips) {
  const unsigned long long __ci_units = __ci_trips == ~0ull ? __ci_trips : __ci_trips * __ci_weight;
  __cuinstr_burn(__ci_site);
  if (__cuinstr_nest == 0u || __ci_units > __cuinstr_unrolled) {
    __cuinstr_pay_nest(__ci_run, __ci_left, __ci_pace, __ci_weight, __ci_site);
  } else if (!__cuinstr_alone || __ci_units > __cuinstr_nest) {
    __ci_run += __ci_weight;
    if (__ci_run > __cuinstr_nest && (__ci_run & (__cuinstr_nest - 1u)) < __ci_weight) __cuinstr_pay(__ci_left, __ci_pace, __ci_weight > __cuinstr_nest ? __ci_weight : __cuinstr_nest, __ci_site);
  }
}
template <bool __cuinstr_alone, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n, class __cuinstr_a>
__cuinstr_device void __cuinstr_tick_known(unsigned int& __ci_run, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site,
                                           __cuinstr_s __ci_start, __cuinstr_n __ci_bound, __cuinstr_a __ci_amount) {
  typedef __cuinstr_header<__cuinstr_steps<__cuinstr_a>::__ci_number && __cuinstr_plain<__cuinstr_constants, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value> __ci_header;
  __cuinstr_tick_of<__cuinstr_alone>(__ci_run, __ci_left, __ci_pace, __ci_weight, __ci_site, __ci_header::template __ci_trips<__cuinstr_i>(__ci_start, __ci_bound, __ci_amount));
}
// The same where the bound is a call or a member: its type tells, if it is a class that holds one constant, an integral_constant of some kind.
template <class __cuinstr_t>
struct __cuinstr_bare {
  typedef __cuinstr_t type;
};
template <class __cuinstr_t> struct __cuinstr_bare<__cuinstr_t&> : __cuinstr_bare<__cuinstr_t> {};
template <class __cuinstr_t> struct __cuinstr_bare<__cuinstr_t&&> : __cuinstr_bare<__cuinstr_t> {};
template <class __cuinstr_t> struct __cuinstr_bare<const __cuinstr_t> : __cuinstr_bare<__cuinstr_t> {};
template <bool __cuinstr_holds, class __cuinstr_t>
struct __cuinstr_held {
  __cuinstr_everywhere unsigned long long __ci_trips(long long, long long) { return ~0ull; }
};
template <class __cuinstr_t>
struct __cuinstr_held<true, __cuinstr_t> {
  __cuinstr_everywhere unsigned long long __ci_trips(long long __ci_start, long long __ci_step) {
    return __cuinstr_counted(__ci_start, (long long)__cuinstr_t::value, __ci_step, false, -(1ll << 30), 1ll << 30);
  }
};
template <class __cuinstr_t>
struct __cuinstr_sized {
  template <class __cuinstr_u>
  static __device__ char __ci_holds(int,
                                  typename __cuinstr_if<__is_empty(__cuinstr_u) && __cuinstr_steps<typename __cuinstr_u::value_type>::__ci_number && sizeof((char)__cuinstr_u::value) == 1, int>::type);
  template <class __cuinstr_u>
  static __device__ long __ci_holds(...);
  typedef __cuinstr_held<sizeof(__ci_holds<typename __cuinstr_bare<__cuinstr_t>::type>(0, 0)) == 1, typename __cuinstr_bare<__cuinstr_t>::type> __ci_held;
};
template <class __cuinstr_t>
__cuinstr_everywhere unsigned long long __cuinstr_sized_trips(long long __ci_start,
    long long __ci_step) { return __cuinstr_least(__cuinstr_sized<__cuinstr_t>::__ci_held::__ci_trips(__ci_start, __ci_step), __cuinstr_nest); }
template <class __cuinstr_n>
__cuinstr_everywhere typename __cuinstr_if<!__cuinstr_counts<int, __cuinstr_n, int>::value, unsigned long long>::type __cuinstr_trips(int __ci_start, const __cuinstr_n&, int __ci_step, bool) {
  return __cuinstr_sized_trips<__cuinstr_n>(__ci_start, __ci_step);
}
// The class's own operators decide when the loop ends, so its count is believed for the poll's form alone: what should be dead once the loop is unrolled
// looks by a call, which is short until then. What was run falls by as much as a look is good for, rather than being asked for its lowest bits, so
// that it tells by itself how many iterations do not look; it stays beyond what is free, so that loops around pay.
template <class __cuinstr_n>
__cuinstr_device void __cuinstr_tick_sized(unsigned int& __ci_run, unsigned int& __ci_left, unsigned int& __ci_pace, unsigned int __ci_weight, unsigned long long __ci_site,
    long long __ci_start, int __ci_amount) {
  const unsigned long long __ci_trips = __cuinstr_sized<__cuinstr_n>::__ci_held::__ci_trips(__ci_start, __ci_amount);
  if (__cuinstr_nest != 0u && __ci_trips <= __cuinstr_nest && __ci_trips * __ci_weight <= __cuinstr_nest && (__ci_site & 1ull) == 0ull) {
    __cuinstr_burn(__ci_site);
    __ci_run += __ci_weight;
    if (__ci_run > 2u * __cuinstr_nest) {
      __ci_run -= __cuinstr_nest;
      __cuinstr_called(__ci_site);
    }
  } else {
    __cuinstr_tick_of<false>(__ci_run, __ci_left, __ci_pace, __ci_weight, __ci_site, __ci_trips);
  }
}
template <bool>
struct __cuinstr_unsigned {
  typedef unsigned int type;
};
template <>
struct __cuinstr_unsigned<false> {
  typedef unsigned long long type;
};
// A nest that stands there twice, in strips and as the user's own, which runs where it is brief: each counter goes up by a constant from one value
// to another, both of which lie near zero as the counter's type and the bound's compare them, so that nothing wraps and its rounds are few; and all
// of its units are no more than a nest runs for nothing. The allowance is no part of the question, so that threads which run the same are
// known to. Each value is compared where it is asked for, and nothing else is asked there, since without optimisation no proof could follow several
// in one. In debug builds, where it could follow none, nothing is brief.
#define __cuinstr_near 512u
#ifdef __CUDACC_DEBUG__
#define __cuinstr_long(...) !0
#else
#define __cuinstr_long(...) __VA_ARGS__
#endif
template <bool __cuinstr_plain>
struct __cuinstr_span {
  template <class __cuinstr_i, class __cuinstr_v, class __cuinstr_o>
  static __device__ __forceinline__ unsigned int __ci_place(const __cuinstr_v&, const __cuinstr_o&) { return ~0u; }
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
  static __device__ __forceinline__ unsigned int __ci_rounds(const __cuinstr_s&, const __cuinstr_n&, int, unsigned int) { return 0u; }
};
template <>
struct __cuinstr_span<true> {
  // How far beyond the lowest value that is near zero it lies in the type in which the two are compared.
  template <class __cuinstr_i, class __cuinstr_v, class __cuinstr_o>
  static __device__ __forceinline__ typename __cuinstr_unsigned<sizeof(__cuinstr_v() + __cuinstr_o()) <= 4>::type __ci_place(__cuinstr_v value, __cuinstr_o) {
    typedef decltype(__cuinstr_v() + __cuinstr_o()) __ci_common;
    typedef typename __cuinstr_unsigned<sizeof(__ci_common) <= 4>::type __ci_own;
    return (__ci_own)(__ci_common)value + (~(__ci_common)0 < (__ci_common)1 ? __cuinstr_near / 2u : 0u);
  }
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
  static __device__ __forceinline__ unsigned int __ci_rounds(__cuinstr_s __ci_start, __cuinstr_n __ci_bound, int __ci_less, unsigned int __ci_amount) {
    const int __ci_first = (int)(__cuinstr_i)__ci_start, __ci_last = (int)((unsigned int)__ci_bound - (unsigned int)__ci_less);
    return __ci_last < __ci_first ? 0u : ((unsigned int)__ci_last - (unsigned int)__ci_first) / __ci_amount + 1u;
  }
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device auto __cuinstr_starts(const __cuinstr_s& __ci_start, const __cuinstr_n& __ci_bound)
    -> decltype(__cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template __ci_place<__cuinstr_i>((__cuinstr_i)__ci_start, __ci_bound)) {
  return __cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template __ci_place<__cuinstr_i>((__cuinstr_i)__ci_start, __ci_bound);
}
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device auto __cuinstr_ends(const __cuinstr_s& __ci_start, const __cuinstr_n& __ci_bound)
    -> decltype(__cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template __ci_place<__cuinstr_i>(__ci_bound, (__cuinstr_i)__ci_start)) {
  return __cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template __ci_place<__cuinstr_i>(__ci_bound, (__cuinstr_i)__ci_start);
}
// How often such a loop runs, if it is near; its last value is the bound or one less.
template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device unsigned int __cuinstr_rounds(const __cuinstr_s& __ci_start, const __cuinstr_n& __ci_bound, int __ci_less, unsigned int __ci_amount) {
  return __cuinstr_span<__cuinstr_plain<true, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template __ci_rounds<__cuinstr_i>(__ci_start, __ci_bound, __ci_less, __ci_amount);
}
// The same once more where the optimiser can't mix it with the rest, as of strips: anew each time that the loop around it comes round, since a
// proof knows of a round what is told in it. It is counted down beside the user's counter, and what the user asks comes to the same.
__cuinstr_device unsigned int __cuinstr_few(unsigned int __ci_rounds) {
  asm volatile("max.u32 %0, %0, 1;\n\tmin.u32 %0, %0, %1;" : "+r"(__ci_rounds) : "n"(__cuinstr_near));
#ifdef __CUDA_ARCH__
  __builtin_assume(__ci_rounds != 0u);
#endif
  return __ci_rounds;
}
__cuinstr_device bool __cuinstr_under_way(bool __ci_under_way, bool) { return __ci_under_way; }
// A variable that such a nest's starts and bounds are made of: whether it is far from zero, and its value once more, from which a proof knows that it
// is not. In sixteen bits, so that compilers know no less of it than of the value itself: whether `-r` to `r` is an odd number of rounds, and at least one.
__cuinstr_device short __cuinstr_near_signed(short value) {
  asm volatile("max.s16 %0, %0, %1;\n\tmin.s16 %0, %0, %2;" : "+h"(value) : "n"(-(int)(__cuinstr_near / 2u)), "n"((int)(__cuinstr_near / 2u)));
  return value;
}
__cuinstr_device unsigned short __cuinstr_near_unsigned(unsigned short value) {
  asm volatile("min.u16 %0, %0, %1;" : "+h"(value) : "n"(__cuinstr_near));
  return value;
}
template <class __cuinstr_t>
struct __cuinstr_pinned {
  typedef typename __cuinstr_unsigned<sizeof(__cuinstr_t) <= 4>::type __ci_own;
  static constexpr bool __ci_negative = (__cuinstr_t)~(__cuinstr_t)0 < (__cuinstr_t)1;
  static __device__ __forceinline__ bool __ci_far(__cuinstr_t value) { return (__ci_own)value + (__ci_negative ? __cuinstr_near / 2u : 0u) > __cuinstr_near; }
  static __device__ __forceinline__ __cuinstr_t __ci_pin(__cuinstr_t value) {
    return __ci_negative ? (__cuinstr_t)__cuinstr_near_signed((short)value) : (__cuinstr_t)__cuinstr_near_unsigned((unsigned short)value);
  }
};
// Of such variables: whether a start or a bound may be far for all that, since a type without a sign takes what is below zero for large.
template <class __cuinstr_t>
struct __cuinstr_negative {
  static constexpr bool value = (__cuinstr_t)~(__cuinstr_t)0 < (__cuinstr_t)1;
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device bool __cuinstr_stray(__cuinstr_s __ci_start, __cuinstr_n __ci_bound) {
  if (__cuinstr_all && __cuinstr_negative<__cuinstr_i>::value && __cuinstr_negative<__cuinstr_s>::value && __cuinstr_negative<__cuinstr_n>::value) return false;
  return __cuinstr_starts<__cuinstr_all, __cuinstr_i>(__ci_start, __ci_bound) > __cuinstr_near || __cuinstr_ends<__cuinstr_all, __cuinstr_i>(__ci_start, __ci_bound) > __cuinstr_near;
}
template <class __cuinstr_t>
__cuinstr_device bool __cuinstr_far(__cuinstr_t&) { return true; }
template <class __cuinstr_t>
__cuinstr_device __cuinstr_t& __cuinstr_pin(__cuinstr_t& __ci_other) { return __ci_other; }
#define __cuinstr_number(__cuinstr_t)                                                                   \
  __cuinstr_device bool __cuinstr_far(__cuinstr_t value) { return __cuinstr_pinned<__cuinstr_t>::__ci_far(value); } \
  __cuinstr_device __cuinstr_t __cuinstr_pin(__cuinstr_t value) { return __cuinstr_pinned<__cuinstr_t>::__ci_pin(value); }
__cuinstr_number(int) __cuinstr_number(unsigned int) __cuinstr_number(long) __cuinstr_number(unsigned long) __cuinstr_number(long long)
__cuinstr_number(unsigned long long) __cuinstr_number(short) __cuinstr_number(unsigned short) __cuinstr_number(signed char)
__cuinstr_number(unsigned char) __cuinstr_number(char)
#undef __cuinstr_number
// Pays for all of such a nest.
__cuinstr_device void __cuinstr_deduct(unsigned int& __ci_left, unsigned int __ci_units) { __ci_left = __ci_left > __ci_units ? __ci_left - __ci_units : 0u; }
// A sum of weights, and the power of two that is not below one. No weight is beyond 2^15; said so that a proof knows it of compilers which do
// not fold the power.
__cuinstr_everywhere unsigned int __cuinstr_weigh(unsigned long long __ci_weight) { return (unsigned int)__cuinstr_least(__ci_weight, __cuinstr_nest); }
__cuinstr_device unsigned int __cuinstr_shift(unsigned int __ci_weight) { return __cuinstr_power(__ci_weight != 0u ? __ci_weight : 1u) & 15u; }
// The same with what the threads of a block share, which is known at run time only and may be as much as an allowance: of so many trips each
// thread runs its part, or some more. Found again for each strip, since it would else take a register through each loop.
__cuinstr_device unsigned int __cuinstr_weigh_shares(unsigned long long __ci_weight) { return (unsigned int)__cuinstr_least(__ci_weight, __cuinstr_most); }
__cuinstr_device unsigned int __cuinstr_share(unsigned int __ci_trips, unsigned int __ci_threads) {
  unsigned int __ci_power;
  asm volatile("bfind.u32 %0, %1;" : "=r"(__ci_power) : "r"(__ci_threads));
  return (__ci_trips >> (__ci_power & 31u)) + 1u;
}
// What a strip's length is anyway, said again where the optimiser can't mix it with the rest: what it makes of minima, and a division, no
// proof could follow.
__cuinstr_device unsigned int __cuinstr_within(unsigned int __ci_turns) {
#ifdef __CUDA_ARCH__
  asm("max.u32 %0, %0, 1;\n\tmin.u32 %0, %0, %1;" : "+r"(__ci_turns) : "n"(__cuinstr_most));
  // No strip is empty, and none is tested for that.
  __builtin_assume(__ci_turns != 0u);
#endif
  return __ci_turns;
}
// The next strip of a loop: as many iterations as the allowance holds at 2^shift units each, but never fewer than are soon over in any
// case, and no more than will run for sure.
template <class __cuinstr_t>
__cuinstr_device unsigned int __cuinstr_turns(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_t __ci_trips) {
  const unsigned int __ci_few = (__cuinstr_short >> __ci_shift) > 1u ? __cuinstr_short >> __ci_shift : 1u;
  unsigned int __ci_turns = __ci_left >> __ci_shift;
  if (__ci_turns < __ci_few) __ci_turns = __ci_few;
  if (__ci_trips < __ci_turns) __ci_turns = (unsigned int)__ci_trips;
  __ci_turns = __cuinstr_within(__ci_turns);
  const unsigned int __ci_charge = __ci_turns << __ci_shift;
  __ci_left = __ci_left > __ci_charge ? __ci_left - __ci_charge : 0u;
  return __ci_turns;
}
// How far a counter is from its bound, in a type without a sign, so that no difference overflows.
template <class __cuinstr_i, class __cuinstr_n>
struct __cuinstr_distance {
  typedef decltype(__cuinstr_i() - __cuinstr_n()) __ci_common;
  typedef typename __cuinstr_unsigned<sizeof(__ci_common) <= 4>::type type;
  typedef typename __cuinstr_unsigned<sizeof(__cuinstr_i) <= 4>::type __ci_own;
  static __device__ __forceinline__ type __ci_up(__cuinstr_i __ci_from, __cuinstr_n __ci_to) { return (type)(__ci_common)__ci_to - (type)(__ci_common)__ci_from; }
  static __device__ __forceinline__ type __ci_down(__cuinstr_i __ci_from, __cuinstr_n __ci_to) { return (type)(__ci_common)__ci_from - (type)(__ci_common)__ci_to; }
  // A counter that must meet its bound does so by its own bits. No distance is a whole round of them, or for ever.
  static __device__ __forceinline__ __ci_own __ci_round(__ci_own __ci_distance) { return __ci_distance != 0u ? __ci_distance : ~(__ci_own)0u; }
  static __device__ __forceinline__ __ci_own __ci_meet_up(__cuinstr_i __ci_from, __cuinstr_n __ci_to) { return __ci_round((__ci_own)__ci_to - (__ci_own)__ci_from); }
  static __device__ __forceinline__ __ci_own __ci_meet_down(__cuinstr_i __ci_from, __cuinstr_n __ci_to) { return __ci_round((__ci_own)__ci_from - (__ci_own)__ci_to); }
};
template <class __cuinstr_i, class __cuinstr_n>
struct __cuinstr_distance<__cuinstr_i*, __cuinstr_n*> {
  typedef unsigned long long type;
  static __device__ __forceinline__ type __ci_up(__cuinstr_i* __ci_from, __cuinstr_n* __ci_to) { return (type)(__ci_to - __ci_from); }
  static __device__ __forceinline__ type __ci_down(__cuinstr_i* __ci_from, __cuinstr_n* __ci_to) { return (type)(__ci_from - __ci_to); }
  static __device__ __forceinline__ type __ci_meet_up(__cuinstr_i* __ci_from, __cuinstr_n* __ci_to) { return __ci_to - __ci_from > 0 ? (type)(__ci_to - __ci_from) : 1u; }
  static __device__ __forceinline__ type __ci_meet_down(__cuinstr_i* __ci_from, __cuinstr_n* __ci_to) { return __ci_from - __ci_to > 0 ? (type)(__ci_from - __ci_to) : 1u; }
};
// A step of one to 2^31 - 1, or zero for any other: one that leads away, nowhere, or so far that it may mean less than it says. Told in the
// step's own width, since wider numbers would live in two registers each.
template <class __cuinstr_s>
__cuinstr_device unsigned int __cuinstr_stride(__cuinstr_s __ci_step) {
  typedef typename __cuinstr_unsigned<sizeof(__cuinstr_s) <= 4>::type __ci_own;
  return (__ci_own)__ci_step - 1u < (__ci_own)0x7fffffffu ? (unsigned int)__ci_step : 0u;
}
// How often a step fits into a distance; never too often, and once in a million and more maybe less often. A division takes some forty instructions, this ten: each part is
// rounded so that the product is not above the quotient, down, up and down again, and of the reciprocal, which may be too large by one of its last places, two
// are taken off. What is then left over tells whether one more fits: with fewer than 2^20 the parts miss less than one.
__cuinstr_device unsigned int __cuinstr_fits(unsigned int __ci_distance, unsigned int __ci_step) {
  unsigned int __ci_times;
  asm("{\n\t.reg .f32 far, by;\n\tcvt.rz.f32.u32 far, %1;\n\tcvt.rp.f32.u32 by, %2;\n\trcp.approx.ftz.f32 by, by;\n\tmul.rz.f32 by, by, 0f3F7FFFFC;\n\t"
      "mul.rz.f32 far, far, by;\n\tcvt.rzi.u32.f32 %0, far;\n\t}"
      : "=r"(__ci_times)
      : "r"(__ci_distance), "r"(__ci_step));
  return __ci_distance - __ci_times * __ci_step >= __ci_step ? __ci_times + 1u : __ci_times;
}
// The number of iterations of a loop whose condition has just held and whose counter moves towards its bound by `__ci_step`, in strips. Where
// the types make it doubtful, or the step does not lead there, a strip is one iteration, and the user's condition is asked behind it.
template <bool __cuinstr_known, bool __cuinstr_divides>
struct __cuinstr_strips {
  // How many steps a distance surely holds. A step that is not known before the kernel runs mostly is a power of two, or the threads of a grid, which
  // has as many blocks as the device has multiprocessors: rounded up, that would give a strip for each digit of the trips.
  template <class __cuinstr_t>
  static __device__ __forceinline__ __cuinstr_t __ci_steps(__cuinstr_t __ci_distance, unsigned int __ci_step) {
    if (__cuinstr_divides) return __ci_distance / (__cuinstr_t)__ci_step;
    if ((__ci_step & (__ci_step - 1u)) == 0u) return __ci_distance >> __cuinstr_power(__ci_step);
    return (__cuinstr_t)__cuinstr_fits(__ci_distance < 0xffffffffu ? (unsigned int)__ci_distance : 0xffffffffu, __ci_step);
  }
  // Where the step is known at run time only, what is reckoned of it stays behind the question whether it leads past the bound: in most loops by a grid's
  // threads it does, and compilers would else reckon in front of the loop, for all.
  template <class __cuinstr_s>
  static __device__ __forceinline__ unsigned int __ci_stride(__cuinstr_s __ci_by) {
    unsigned int __ci_step = __cuinstr_stride(__ci_by);
#ifdef __CUDA_ARCH__
    if (!__cuinstr_divides) asm("" : "+r"(__ci_step));
#endif
    return __ci_step;
  }
  // The counter's own type holds each of its values up to the bound.
  template <class __cuinstr_t, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int __ci_less(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_t __ci_distance, __cuinstr_s __ci_by) {
    __cuinstr_t __ci_trips = 1u;
    if (__cuinstr_divides || __ci_distance > (__cuinstr_t)__ci_by) {
      const unsigned int __ci_step = __ci_stride(__ci_by);
      if (__ci_step != 0u) __ci_trips = __ci_steps(__ci_distance - 1u, __ci_step) + 1u;
    }
    return __cuinstr_turns(__ci_left, __ci_shift, __ci_trips);
  }
  template <class __cuinstr_t, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int __ci_upto(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_t __ci_distance, __cuinstr_s __ci_by) {
    __cuinstr_t __ci_further = 0u;
    if (__cuinstr_divides || __ci_distance >= (__cuinstr_t)__ci_by) {
      const unsigned int __ci_step = __ci_stride(__ci_by);
      if (__ci_step != 0u) __ci_further = __ci_steps(__ci_distance, __ci_step);
    }
    return __cuinstr_turns(__ci_left, __ci_shift, (__ci_further < 0x10000u ? __ci_further : (__cuinstr_t)0x10000u) + 1u);
  }
  template <class __cuinstr_t, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int __ci_meet(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_t __ci_distance, __cuinstr_s __ci_by) {
    const __cuinstr_t __ci_whole = __ci_distance / (__cuinstr_t)__cuinstr_stride(__ci_by);
    return __cuinstr_turns(__ci_left, __ci_shift, __ci_whole != 0u ? __ci_whole : (__cuinstr_t)1u);
  }
#define __cuinstr_count(__cuinstr_name, __cuinstr_how, __cuinstr_way)                                                                             \
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                                              \
  static __device__ __forceinline__ unsigned int __ci_##__cuinstr_name(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_i __ci_from, __cuinstr_n __ci_to, __cuinstr_s __ci_step) { \
    return __cuinstr_how(__ci_left, __ci_shift, __cuinstr_distance<__cuinstr_i, __cuinstr_n>::__cuinstr_way(__ci_from, __ci_to), __ci_step);                            \
  }
  __cuinstr_count(below, __ci_less, __ci_up) __cuinstr_count(above, __ci_less, __ci_down) __cuinstr_count(at_most, __ci_upto, __ci_up) __cuinstr_count(at_least, __ci_upto, __ci_down)
  __cuinstr_count(not_up, __ci_meet, __ci_meet_up) __cuinstr_count(not_down, __ci_meet, __ci_meet_down)
#undef __cuinstr_count
};
template <bool __cuinstr_divides>
struct __cuinstr_strips<false, __cuinstr_divides> {
#define __cuinstr_count(__cuinstr_name)                                                                                                           \
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                                              \
  static __device__ __forceinline__ unsigned int __ci_##__cuinstr_name(unsigned int& __ci_left, unsigned int __ci_shift, const __cuinstr_i&, const __cuinstr_n&, const __cuinstr_s&) { \
    return __cuinstr_turns(__ci_left, __ci_shift, 1u);                                                                                                 \
  }
  __cuinstr_count(below) __cuinstr_count(above) __cuinstr_count(at_most) __cuinstr_count(at_least) __cuinstr_count(not_up) __cuinstr_count(not_down)
#undef __cuinstr_count
};
// Whether a counter, a bound and a step have types that can be counted with, the variables among them being values.
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
struct __cuinstr_known {
  static constexpr bool value = __cuinstr_all && __cuinstr_steps<__cuinstr_i>::value && !__cuinstr_steps<__cuinstr_i>::__ci_narrow &&
                                __cuinstr_steps<__cuinstr_n>::value && __cuinstr_steps<__cuinstr_s>::__ci_number &&
                                __cuinstr_steps<__cuinstr_i>::__ci_number == __cuinstr_steps<__cuinstr_n>::__ci_number;
};
#define __cuinstr_strip(__cuinstr_name)                                                                                                           \
  template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                          \
  __cuinstr_device unsigned int __cuinstr_##__cuinstr_name(unsigned int& __ci_left, unsigned int __ci_shift, const __cuinstr_i& __ci_from, const __cuinstr_n& __ci_to, const __cuinstr_s& __ci_step) { \
    return __cuinstr_strips<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, true>::__ci_##__cuinstr_name(__ci_left, __ci_shift, __ci_from, __ci_to, __ci_step); \
  }                                                                                                                                               \
  template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                          \
  __cuinstr_device unsigned int __cuinstr_##__cuinstr_name##_by(unsigned int& __ci_left, unsigned int __ci_shift, const __cuinstr_i& __ci_from, const __cuinstr_n& __ci_to, \
      const __cuinstr_s& __ci_step) { \
    return __cuinstr_strips<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, false>::__ci_##__cuinstr_name(__ci_left, __ci_shift, __ci_from, __ci_to, __ci_step); \
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
  static __device__ __forceinline__ unsigned int __ci_##__cuinstr_name(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_i, __cuinstr_n, __cuinstr_s) { \
    return __cuinstr_turns(__ci_left, __ci_shift, 64u);                                                                                                \
  }
  __cuinstr_count(below) __cuinstr_count(above) __cuinstr_count(at_most) __cuinstr_count(at_least) __cuinstr_count(not_up) __cuinstr_count(not_down)
#undef __cuinstr_count
};
#define __cuinstr_strip(__cuinstr_name)                                                                                                           \
  template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                \
  __cuinstr_device unsigned int __cuinstr_maybe_##__cuinstr_name(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_i __ci_from, __cuinstr_n __ci_to, __cuinstr_s __ci_step) { \
    return __cuinstr_maybe<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, __cuinstr_constants, true>::__ci_##__cuinstr_name(__ci_left, __ci_shift, __ci_from, \
        __ci_to, __ci_step); \
  }                                                                                                                                               \
  template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                \
  __cuinstr_device unsigned int __cuinstr_maybe_##__cuinstr_name##_by(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_i __ci_from, __cuinstr_n __ci_to, __cuinstr_s __ci_step) { \
    return __cuinstr_maybe<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, __cuinstr_constants, false>::__ci_##__cuinstr_name(__ci_left, __ci_shift, \
        __ci_from, __ci_to, __ci_step); \
  }
__cuinstr_strip(below) __cuinstr_strip(above) __cuinstr_strip(at_most) __cuinstr_strip(at_least) __cuinstr_strip(not_up) __cuinstr_strip(not_down)
#undef __cuinstr_strip
// The same where the loop goes up from one number to another, if the compiler takes both for constants: then a strip is a constant number of iterations by
// which the trips can be divided, so that the compiler may unroll it, and no more than an activation may run at first. Nothing changes the counter but
// the strips' own steps, so where the user's condition holds at a strip's begin, at least one whole strip is left.
__cuinstr_device unsigned int __cuinstr_even(unsigned int __ci_trips, unsigned int __ci_most) {
#define __cuinstr_by(__cuinstr_length) __ci_trips % __cuinstr_length == 0u && __cuinstr_length <= __ci_most ? __cuinstr_length
  return __ci_trips == 0u ? 0u : __cuinstr_by(64u) : __cuinstr_by(50u) : __cuinstr_by(40u) : __cuinstr_by(32u) : __cuinstr_by(25u) : __cuinstr_by(20u)
         : __cuinstr_by(16u) : __cuinstr_by(12u) : __cuinstr_by(10u) : __cuinstr_by(8u) : 0u;
#undef __cuinstr_by
}
// How often such a loop runs, where its types hold each of its values and compare them as numbers; zero where that is not known.
template <bool __cuinstr_plain>
struct __cuinstr_exactly {
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int __ci_trips(int, const __cuinstr_n&, const __cuinstr_s&, int) { return 0u; }
};
template <>
struct __cuinstr_exactly<true> {
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int __ci_trips(int __ci_start, __cuinstr_n __ci_bound, __cuinstr_s __ci_step, int __ci_less) {
    const long long __ci_most = 1ll << 30, __ci_least = __cuinstr_lowest<decltype(__cuinstr_i() + __cuinstr_n())>(__ci_most), __ci_first = __ci_start, __ci_end = (long long)__ci_bound;
    const long long __ci_last = __ci_end - __ci_less, __ci_by = (long long)__ci_step;
    return __ci_first < __ci_least || __ci_end < __ci_least || __ci_first > __ci_most || __ci_end > __ci_most || __ci_by <= 0 || __ci_last < __ci_first
        ? 0u : (unsigned int)((__ci_last - __ci_first) / __ci_by) + 1u;
  }
};
#define __cuinstr_strip(__cuinstr_name, __cuinstr_less)                                                                                           \
  template <bool __cuinstr_all, bool __cuinstr_constants, bool __cuinstr_settles, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>        \
  __cuinstr_device unsigned int __cuinstr_even_##__cuinstr_name(unsigned int& __ci_left, unsigned int __ci_shift, __cuinstr_i __ci_from, __cuinstr_n __ci_to, __cuinstr_s __ci_step, int __ci_start) { \
    typedef __cuinstr_exactly<__cuinstr_plain<__cuinstr_all && __cuinstr_settles, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value> __ci_exactly;      \
    const unsigned int __ci_trips = __ci_exactly::template __ci_trips<__cuinstr_i>(__ci_start, __ci_to, __ci_step, __cuinstr_less);                                          \
    const unsigned int __ci_even = __cuinstr_nest != 0u ? __cuinstr_even(__ci_trips, __cuinstr_nest >> __ci_shift) : 0u;                                          \
    if (__ci_even == 0u) return __cuinstr_maybe_##__cuinstr_name<__cuinstr_all, __cuinstr_constants>(__ci_left, __ci_shift, __ci_from, __ci_to, __ci_step);                      \
    const unsigned int __ci_charge = __ci_even << __ci_shift;                                                                                               \
    __ci_left = __ci_left > __ci_charge ? __ci_left - __ci_charge : 0u;                                                                                                \
    return __ci_even;                                                                                                                             \
  }
__cuinstr_strip(below, 1) __cuinstr_strip(at_most, 0)
#undef __cuinstr_strip
template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_device bool __cuinstr_sure(__cuinstr_i, __cuinstr_n, __cuinstr_s) {
  return __cuinstr_constants || !__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value;
}
// The inner loop of a strip. With a constant step it ends where the counter arrives, so that the loop needs no second counter: within a
// strip the counter's bits do not come by that value before, even if they wrap. Else it is counted down, in a type that no counter has.
enum __cuinstr_countdown : unsigned int {};
template <bool __cuinstr_known, class __cuinstr_i>
struct __cuinstr_until {
  static __device__ __forceinline__ __cuinstr_i __ci_of(__cuinstr_i __ci_from, unsigned int __ci_turns, int __ci_step) {
    return (__cuinstr_i)((unsigned long long)__ci_from + (unsigned long long)((long long)__ci_turns * __ci_step));
  }
};
template <class __cuinstr_i>
struct __cuinstr_until<true, __cuinstr_i*> {
  static __device__ __forceinline__ __cuinstr_i* __ci_of(__cuinstr_i* __ci_from, unsigned int __ci_turns, int __ci_step) { return __ci_from + (long long)__ci_turns * __ci_step; }
};
template <class __cuinstr_i>
struct __cuinstr_until<false, __cuinstr_i> {
  static __device__ __forceinline__ __cuinstr_countdown __ci_of(const __cuinstr_i&, unsigned int __ci_turns, int) { return (__cuinstr_countdown)__ci_turns; }
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n>
__cuinstr_device auto __cuinstr_to(const __cuinstr_i& __ci_from, const __cuinstr_n&, unsigned int __ci_turns, int __ci_step)
    -> decltype(__cuinstr_until<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, int>::value, __cuinstr_i>::__ci_of(__ci_from, __ci_turns, __ci_step)) {
  return __cuinstr_until<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, int>::value, __cuinstr_i>::__ci_of(__ci_from, __ci_turns, __ci_step);
}
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_i& __ci_end, const __cuinstr_i& __ci_counter) { return __ci_counter != __ci_end; }
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_countdown& __ci_turns, const __cuinstr_i&) { return __ci_turns != 0u; }
template <class __cuinstr_i>
__cuinstr_device void __cuinstr_on_by(const __cuinstr_i&, unsigned long long __ci_site) { __cuinstr_debugged(__ci_site); }
__cuinstr_device void __cuinstr_on_by(__cuinstr_countdown& __ci_turns, unsigned long long __ci_site) {
  __ci_turns = (__cuinstr_countdown)(__ci_turns - 1u);
  __cuinstr_debugged(__ci_site);
}
// The same in a loop that may end before its strip does. Where it comes by again, `__ci_mark` tells: zero where the loop begins, else where its
// last strip was to end, in so many of the counter's bits as tell a strip's values from each other, and one bit that is always set.
template <bool __cuinstr_known, class __cuinstr_i>
struct __cuinstr_stage : __cuinstr_until<true, __cuinstr_i> {
  static __device__ __forceinline__ unsigned int __ci_mark(__cuinstr_i __ci_counter) { return (unsigned int)__ci_counter << 1 | 1u; }
  static __device__ __forceinline__ bool __ci_is_end(unsigned int __ci_marked, __cuinstr_i __ci_counter) { return __ci_marked == __ci_mark(__ci_counter); }
};
template <class __cuinstr_i>
struct __cuinstr_stage<true, __cuinstr_i*> : __cuinstr_until<true, __cuinstr_i*> {
  static __device__ __forceinline__ unsigned int __ci_mark(__cuinstr_i* __ci_counter) { return (unsigned int)((unsigned long long)__ci_counter / sizeof(__cuinstr_i)) << 1 | 1u; }
  static __device__ __forceinline__ bool __ci_is_end(unsigned int __ci_marked, __cuinstr_i* __ci_counter) { return __ci_marked == __ci_mark(__ci_counter); }
};
template <class __cuinstr_i>
struct __cuinstr_stage<false, __cuinstr_i> : __cuinstr_until<false, __cuinstr_i> {
  static __device__ __forceinline__ unsigned int __ci_mark(__cuinstr_countdown) { return 1u; }
  static __device__ __forceinline__ bool __ci_is_end(unsigned int, const __cuinstr_i&) { return false; }
};
template <bool __cuinstr_all, class __cuinstr_n, class __cuinstr_i>
__cuinstr_device auto __cuinstr_leg(unsigned int& __ci_mark, const __cuinstr_i& __ci_from, unsigned int __ci_turns, int __ci_step)
    -> decltype(__cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i>::__ci_of(__ci_from, __ci_turns, __ci_step)) {
  typedef __cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i> __ci_stage;
  const auto __ci_end = __ci_stage::__ci_of(__ci_from, __ci_turns, __ci_step);
  __ci_mark = __ci_stage::__ci_mark(__ci_end);
  return __ci_end;
}
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_i& __ci_end, const __cuinstr_i& __ci_counter, unsigned int&) { return __ci_counter != __ci_end; }
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_countdown& __ci_turns, const __cuinstr_i&, unsigned int& __ci_marked) {
  if (__ci_turns == 0u) __ci_marked = 0u;
  return __ci_turns != 0u;
}
template <bool __cuinstr_all, class __cuinstr_n, class __cuinstr_i>
__cuinstr_device bool __cuinstr_arrived(unsigned int& __ci_mark, const __cuinstr_i& __ci_counter) {
  const bool __ci_arrived = __ci_mark == 0u || __cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value,
      __cuinstr_i>::__ci_is_end(__ci_mark, __ci_counter);
  __ci_mark = 0u;
  return __ci_arrived;
}
