// A poll whenever the activation's allowance is used up. The allowance only falls between two looks, and each look refills it: at most
// __cuinstr_most iterations of all the loops of one activation run without one. Debug builds, which keep the count in memory where no proof
// could follow it, look each time.
__cuinstr_device void __cuinstr_pay(unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site) {
  if (__cuinstr_most > 1u && left > weight) {
    left -= weight;
  } else {
    __cuinstr_renew(left, pace, site);
  }
}
__cuinstr_device void __cuinstr_tick(unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site) {
  __cuinstr_burn(site);
  __cuinstr_pay(left, pace, weight, site);
}
// One iteration of a chunk or strip. A debug build keeps the count in memory, where no proof could follow it, so it looks here.
__cuinstr_device void __cuinstr_debugged(unsigned long long site) {
#ifdef __CUDACC_DEBUG__
  __cuinstr_look(site);
#else
  (void)site;
#endif
}
__cuinstr_device void __cuinstr_step(unsigned int& turns, unsigned long long site) {
  --turns;
  __cuinstr_debugged(site);
}
// A loop in chunks of a constant number of iterations, each paid for before it runs. `turns` counts a chunk down: where the loop comes by
// again, a zero says that it begins or that its last chunk was used up, anything else that its condition or a `break` has ended it.
__cuinstr_device bool __cuinstr_again(unsigned int& turns, unsigned int chunk, unsigned int& left, unsigned int& pace, unsigned int charge, unsigned long long site) {
  if (turns != 0u) {
    turns = 0u;
    return false;
  }
  __cuinstr_tick(left, pace, charge, site);
  turns = __cuinstr_most > 1u ? chunk : 1u;
  return true;
}
// Behind an iteration of a `do` in chunks, whose condition has just held.
__cuinstr_device bool __cuinstr_goes_on(unsigned int& turns, unsigned long long site) {
  __cuinstr_step(turns, site);
  return turns != 0u;
}
// Whether a strip-mined loop that may be left by a `break` was not: the strip's count is used up then.
__cuinstr_device bool __cuinstr_unbroken(unsigned int& turns) {
  const bool unbroken = turns == 0u;
  turns = 0u;
  return unbroken;
}
// In a nest of loops whose trips the compiler may know. `run` starts from zero where the nest is entered and rises by constants, so that the
// compiler knows the most that it can be, and with it that the poll is dead; beyond a nest's length each iteration is paid for as any other.
__cuinstr_device void __cuinstr_pay_nest(unsigned int& run, unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site) {
  run += weight;
  if (__cuinstr_nest == 0u || run > __cuinstr_nest) __cuinstr_pay(left, pace, weight, site);
}
__cuinstr_device void __cuinstr_tick_nest(unsigned int& run, unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site) {
  __cuinstr_burn(site);
  __cuinstr_pay_nest(run, left, pace, weight, site);
}
// In a loop from a thread's index, or zero, up to `bound` in steps of `step` or of a dimension of the block: where both are constants it runs
// at most `most` times, and the compiler drops the poll.
template <bool __cuinstr_known>
__cuinstr_device void __cuinstr_tick_share(long long bound, long long step, long long most, unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site) {
  const bool few = __cuinstr_known && bound >= 0 && bound <= most && step > 0 && step <= 0x100000;
  if (__cuinstr_nest == 0u || !few) __cuinstr_tick(left, pace, weight, site);
}
// Behind each strip.
__cuinstr_device void __cuinstr_pass(unsigned int& left, unsigned int& pace, unsigned long long site) {
  if (__cuinstr_most <= 1u || left == 0u) {
    __cuinstr_renew(left, pace, site);
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
// Whether all the types are of numbers, or of pointers and references to numbers: no operator of theirs is a function.
template <class... __cuinstr_t>
struct __cuinstr_numbers {
  static constexpr bool all = true;
};
template <class __cuinstr_t, class... __cuinstr_more>
struct __cuinstr_numbers<__cuinstr_t, __cuinstr_more...> {
  static constexpr bool all = !__is_class(__cuinstr_t) && !__is_union(__cuinstr_t) && !__is_enum(__cuinstr_t) && __cuinstr_numbers<__cuinstr_more...>::all;
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
      __cuinstr_steps<__cuinstr_i>::number && __cuinstr_steps<__cuinstr_n>::number && __cuinstr_steps<__cuinstr_s>::number;
};
__cuinstr_everywhere unsigned long long __cuinstr_least(unsigned long long one, unsigned long long other) { return one < other ? one : other; }
// How often a loop runs from `first` to `last`; the largest number where that is not known. A loop that goes on until its counter meets the bound may
// pass it by, or lead away from it; and numbers so large may be others than the loop compares.
__cuinstr_everywhere unsigned long long __cuinstr_counted(long long first, long long last, long long step, bool meets, long long least, long long most) {
  return step == 0 || first < least || last < least || first > most || last > most ? ~0ull
         : (last - first) / step < 0 || (meets && (last - first) % step != 0)      ? (meets ? ~0ull : 0ull)
                                                                                   : (unsigned long long)((last - first) / step + 1);
}
// As types without a sign compare, nothing lies below zero.
template <class __cuinstr_t>
__cuinstr_everywhere long long __cuinstr_lowest(long long most) { return ~(__cuinstr_t)0 < (__cuinstr_t)1 ? -most : 0ll; }
// For the weight of the loop around it: at most as often as a nest runs for nothing, which also stands for what is no number.
template <bool, class __cuinstr_t>
struct __cuinstr_if {};
template <class __cuinstr_t>
struct __cuinstr_if<true, __cuinstr_t> {
  typedef __cuinstr_t type;
};
template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
__cuinstr_everywhere typename __cuinstr_if<__cuinstr_counts<__cuinstr_i, __cuinstr_n, __cuinstr_s>::value, unsigned long long>::type
__cuinstr_trips(__cuinstr_i start, __cuinstr_n bound, __cuinstr_s step, bool meets) {
  return __cuinstr_least(__cuinstr_counted((long long)start, (long long)bound, (long long)step, meets, __cuinstr_lowest<decltype(start + bound)>(1ll << 61), 1ll << 61), __cuinstr_nest);
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
  static __device__ __forceinline__ unsigned long long trips(const __cuinstr_s&, const __cuinstr_n&, const __cuinstr_a&) { return ~0ull; }
};
template <>
struct __cuinstr_header<true> {
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n, class __cuinstr_a>
  static __device__ __forceinline__ unsigned long long trips(__cuinstr_s start, __cuinstr_n bound, __cuinstr_a amount) {
    if (amount < (__cuinstr_a)1 || amount > (__cuinstr_a)16384) return ~0ull;
    return __cuinstr_counted((long long)start, (long long)bound, (long long)amount, false, __cuinstr_lowest<decltype(__cuinstr_i() + __cuinstr_n())>(1ll << 30), 1ll << 30);
  }
};
template <bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
struct __cuinstr_plain {
  static constexpr bool value = false;
};
template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
struct __cuinstr_plain<true, __cuinstr_i, __cuinstr_s, __cuinstr_n> {
  static constexpr bool value = __cuinstr_counts<__cuinstr_i, __cuinstr_s, __cuinstr_n>::value && !__cuinstr_steps<__cuinstr_i>::narrow;
};
// In a nest, where the front end may know the loop's extent. A loop that is short with all that is inside it needs no poll: the loop around it
// pays for it. One that may be unrolled as a whole pays once in so many units, so that not each of its iterations becomes a poll.
template <bool __cuinstr_alone>
__cuinstr_device void __cuinstr_tick_of(unsigned int& run, unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site, unsigned long long trips) {
  const unsigned long long units = trips == ~0ull ? trips : trips * weight;
  __cuinstr_burn(site);
  if (__cuinstr_nest == 0u || units > __cuinstr_unrolled) {
    __cuinstr_pay_nest(run, left, pace, weight, site);
  } else if (!__cuinstr_alone || units > __cuinstr_nest) {
    run += weight;
    if (run > __cuinstr_nest && (run & (__cuinstr_nest - 1u)) < weight) __cuinstr_pay(left, pace, weight > __cuinstr_nest ? weight : __cuinstr_nest, site);
  }
}
template <bool __cuinstr_alone, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n, class __cuinstr_a>
__cuinstr_device void __cuinstr_tick_known(unsigned int& run, unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site,
                                           __cuinstr_s start, __cuinstr_n bound, __cuinstr_a amount) {
  typedef __cuinstr_header<__cuinstr_steps<__cuinstr_a>::number && __cuinstr_plain<__cuinstr_constants, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value> header;
  __cuinstr_tick_of<__cuinstr_alone>(run, left, pace, weight, site, header::template trips<__cuinstr_i>(start, bound, amount));
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
  __cuinstr_everywhere unsigned long long trips(long long, long long) { return ~0ull; }
};
template <class __cuinstr_t>
struct __cuinstr_held<true, __cuinstr_t> {
  __cuinstr_everywhere unsigned long long trips(long long start, long long step) {
    return __cuinstr_counted(start, (long long)__cuinstr_t::value, step, false, -(1ll << 30), 1ll << 30);
  }
};
template <class __cuinstr_t>
struct __cuinstr_sized {
  template <class __cuinstr_u>
  static __device__ char holds(int, typename __cuinstr_if<__is_empty(__cuinstr_u) && __cuinstr_steps<typename __cuinstr_u::value_type>::number && sizeof((char)__cuinstr_u::value) == 1, int>::type);
  template <class __cuinstr_u>
  static __device__ long holds(...);
  typedef __cuinstr_held<sizeof(holds<typename __cuinstr_bare<__cuinstr_t>::type>(0, 0)) == 1, typename __cuinstr_bare<__cuinstr_t>::type> held;
};
template <class __cuinstr_t>
__cuinstr_everywhere unsigned long long __cuinstr_sized_trips(long long start, long long step) { return __cuinstr_least(__cuinstr_sized<__cuinstr_t>::held::trips(start, step), __cuinstr_nest); }
template <class __cuinstr_n>
__cuinstr_everywhere typename __cuinstr_if<!__cuinstr_counts<int, __cuinstr_n, int>::value, unsigned long long>::type __cuinstr_trips(int start, const __cuinstr_n&, int step, bool) {
  return __cuinstr_sized_trips<__cuinstr_n>(start, step);
}
// The class's own operators decide when the loop ends, so its count is believed for the poll's form alone: what should be dead once the loop is unrolled
// looks by a call, which is short until then. What was run falls by as much as a look is good for, rather than being asked for its lowest bits, so
// that it tells by itself how many iterations do not look; it stays beyond what is free, so that loops around pay.
template <class __cuinstr_n>
__cuinstr_device void __cuinstr_tick_sized(unsigned int& run, unsigned int& left, unsigned int& pace, unsigned int weight, unsigned long long site, long long start, int amount) {
  const unsigned long long trips = __cuinstr_sized<__cuinstr_n>::held::trips(start, amount);
  if (__cuinstr_nest != 0u && trips <= __cuinstr_nest && trips * weight <= __cuinstr_nest && (site & 1ull) == 0ull) {
    __cuinstr_burn(site);
    run += weight;
    if (run > 2u * __cuinstr_nest) {
      run -= __cuinstr_nest;
      __cuinstr_called(site);
    }
  } else {
    __cuinstr_tick_of<false>(run, left, pace, weight, site, trips);
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
#define __cuinstr_long(...) true
#else
#define __cuinstr_long(...) __VA_ARGS__
#endif
template <bool __cuinstr_plain>
struct __cuinstr_span {
  template <class __cuinstr_i, class __cuinstr_v, class __cuinstr_o>
  static __device__ __forceinline__ unsigned int place(const __cuinstr_v&, const __cuinstr_o&) { return ~0u; }
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
  static __device__ __forceinline__ unsigned int rounds(const __cuinstr_s&, const __cuinstr_n&, int, unsigned int) { return 0u; }
};
template <>
struct __cuinstr_span<true> {
  // How far beyond the lowest value that is near zero it lies in the type in which the two are compared.
  template <class __cuinstr_i, class __cuinstr_v, class __cuinstr_o>
  static __device__ __forceinline__ typename __cuinstr_unsigned<sizeof(__cuinstr_v() + __cuinstr_o()) <= 4>::type place(__cuinstr_v value, __cuinstr_o) {
    typedef decltype(__cuinstr_v() + __cuinstr_o()) common;
    typedef typename __cuinstr_unsigned<sizeof(common) <= 4>::type own;
    return (own)(common)value + (~(common)0 < (common)1 ? __cuinstr_near / 2u : 0u);
  }
  template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
  static __device__ __forceinline__ unsigned int rounds(__cuinstr_s start, __cuinstr_n bound, int less, unsigned int amount) {
    const int first = (int)(__cuinstr_i)start, last = (int)((unsigned int)bound - (unsigned int)less);
    return last < first ? 0u : ((unsigned int)last - (unsigned int)first) / amount + 1u;
  }
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device auto __cuinstr_starts(const __cuinstr_s& start, const __cuinstr_n& bound)
    -> decltype(__cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template place<__cuinstr_i>((__cuinstr_i)start, bound)) {
  return __cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template place<__cuinstr_i>((__cuinstr_i)start, bound);
}
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device auto __cuinstr_ends(const __cuinstr_s& start, const __cuinstr_n& bound)
    -> decltype(__cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template place<__cuinstr_i>(bound, (__cuinstr_i)start)) {
  return __cuinstr_span<__cuinstr_plain<__cuinstr_all, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template place<__cuinstr_i>(bound, (__cuinstr_i)start);
}
// How often such a loop runs, if it is near; its last value is the bound or one less.
template <class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device unsigned int __cuinstr_rounds(const __cuinstr_s& start, const __cuinstr_n& bound, int less, unsigned int amount) {
  return __cuinstr_span<__cuinstr_plain<true, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value>::template rounds<__cuinstr_i>(start, bound, less, amount);
}
// The same once more where the optimiser can't mix it with the rest, as of strips: anew each time that the loop around it comes round, since a
// proof knows of a round what is told in it. It is counted down beside the user's counter, and what the user asks comes to the same.
__cuinstr_device unsigned int __cuinstr_few(unsigned int rounds) {
  asm volatile("max.u32 %0, %0, 1;\n\tmin.u32 %0, %0, %1;" : "+r"(rounds) : "n"(__cuinstr_near));
#ifdef __CUDA_ARCH__
  __builtin_assume(rounds != 0u);
#endif
  return rounds;
}
__cuinstr_device bool __cuinstr_under_way(bool under_way, bool) { return under_way; }
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
  typedef typename __cuinstr_unsigned<sizeof(__cuinstr_t) <= 4>::type own;
  static constexpr bool negative = (__cuinstr_t)~(__cuinstr_t)0 < (__cuinstr_t)1;
  static __device__ __forceinline__ bool far(__cuinstr_t value) { return (own)value + (negative ? __cuinstr_near / 2u : 0u) > __cuinstr_near; }
  static __device__ __forceinline__ __cuinstr_t pin(__cuinstr_t value) {
    return negative ? (__cuinstr_t)__cuinstr_near_signed((short)value) : (__cuinstr_t)__cuinstr_near_unsigned((unsigned short)value);
  }
};
// Of such variables: whether a start or a bound may be far for all that, since a type without a sign takes what is below zero for large.
template <class __cuinstr_t>
struct __cuinstr_negative {
  static constexpr bool value = (__cuinstr_t)~(__cuinstr_t)0 < (__cuinstr_t)1;
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_s, class __cuinstr_n>
__cuinstr_device bool __cuinstr_stray(__cuinstr_s start, __cuinstr_n bound) {
  if (__cuinstr_all && __cuinstr_negative<__cuinstr_i>::value && __cuinstr_negative<__cuinstr_s>::value && __cuinstr_negative<__cuinstr_n>::value) return false;
  return __cuinstr_starts<__cuinstr_all, __cuinstr_i>(start, bound) > __cuinstr_near || __cuinstr_ends<__cuinstr_all, __cuinstr_i>(start, bound) > __cuinstr_near;
}
template <class __cuinstr_t>
__cuinstr_device bool __cuinstr_far(__cuinstr_t&) { return true; }
template <class __cuinstr_t>
__cuinstr_device __cuinstr_t& __cuinstr_pin(__cuinstr_t& other) { return other; }
#define __cuinstr_number(__cuinstr_t)                                                                   \
  __cuinstr_device bool __cuinstr_far(__cuinstr_t value) { return __cuinstr_pinned<__cuinstr_t>::far(value); } \
  __cuinstr_device __cuinstr_t __cuinstr_pin(__cuinstr_t value) { return __cuinstr_pinned<__cuinstr_t>::pin(value); }
__cuinstr_number(int) __cuinstr_number(unsigned int) __cuinstr_number(long) __cuinstr_number(unsigned long) __cuinstr_number(long long)
__cuinstr_number(unsigned long long) __cuinstr_number(short) __cuinstr_number(unsigned short) __cuinstr_number(signed char)
__cuinstr_number(unsigned char) __cuinstr_number(char)
#undef __cuinstr_number
// Pays for all of such a nest.
__cuinstr_device void __cuinstr_deduct(unsigned int& left, unsigned int units) { left = left > units ? left - units : 0u; }
// A sum of weights, and the power of two that is not below one. No weight is beyond 2^15; said so that a proof knows it of compilers which do
// not fold the power.
__cuinstr_everywhere unsigned int __cuinstr_weigh(unsigned long long weight) { return (unsigned int)__cuinstr_least(weight, __cuinstr_nest); }
__cuinstr_device unsigned int __cuinstr_shift(unsigned int weight) { return __cuinstr_power(weight != 0u ? weight : 1u) & 15u; }
// The same with what the threads of a block share, which is known at run time only and may be as much as an allowance: of so many trips each
// thread runs its part, or some more. Found again for each strip, since it would else take a register through each loop.
__cuinstr_device unsigned int __cuinstr_weigh_shares(unsigned long long weight) { return (unsigned int)__cuinstr_least(weight, __cuinstr_most); }
__cuinstr_device unsigned int __cuinstr_share(unsigned int trips, unsigned int threads) {
  unsigned int power;
  asm volatile("bfind.u32 %0, %1;" : "=r"(power) : "r"(threads));
  return (trips >> (power & 31u)) + 1u;
}
// What a strip's length is anyway, said again where the optimiser can't mix it with the rest: what it makes of minima, and a division, no
// proof could follow.
__cuinstr_device unsigned int __cuinstr_within(unsigned int turns) {
#ifdef __CUDA_ARCH__
  asm("max.u32 %0, %0, 1;\n\tmin.u32 %0, %0, %1;" : "+r"(turns) : "n"(__cuinstr_most));
  // No strip is empty, and none is tested for that.
  __builtin_assume(turns != 0u);
#endif
  return turns;
}
// The next strip of a loop: as many iterations as the allowance holds at 2^shift units each, but never fewer than are soon over in any
// case, and no more than will run for sure.
template <class __cuinstr_t>
__cuinstr_device unsigned int __cuinstr_turns(unsigned int& left, unsigned int shift, __cuinstr_t trips) {
  const unsigned int few = (__cuinstr_short >> shift) > 1u ? __cuinstr_short >> shift : 1u;
  unsigned int turns = left >> shift;
  if (turns < few) turns = few;
  if (trips < turns) turns = (unsigned int)trips;
  turns = __cuinstr_within(turns);
  const unsigned int charge = turns << shift;
  left = left > charge ? left - charge : 0u;
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
// A step of one to 2^31 - 1, or zero for any other: one that leads away, nowhere, or so far that it may mean less than it says. Told in the
// step's own width, since wider numbers would live in two registers each.
template <class __cuinstr_s>
__cuinstr_device unsigned int __cuinstr_stride(__cuinstr_s step) {
  typedef typename __cuinstr_unsigned<sizeof(__cuinstr_s) <= 4>::type own;
  return (own)step - 1u < (own)0x7fffffffu ? (unsigned int)step : 0u;
}
// How often a step fits into a distance; never too often, and once in a million and more maybe less often. A division takes some forty instructions, this ten: each part is
// rounded so that the product is not above the quotient, down, up and down again, and of the reciprocal, which may be too large by one of its last places, two
// are taken off. What is then left over tells whether one more fits: with fewer than 2^20 the parts miss less than one.
__cuinstr_device unsigned int __cuinstr_fits(unsigned int distance, unsigned int step) {
  unsigned int times;
  asm("{\n\t.reg .f32 far, by;\n\tcvt.rz.f32.u32 far, %1;\n\tcvt.rp.f32.u32 by, %2;\n\trcp.approx.ftz.f32 by, by;\n\tmul.rz.f32 by, by, 0f3F7FFFFC;\n\t"
      "mul.rz.f32 far, far, by;\n\tcvt.rzi.u32.f32 %0, far;\n\t}"
      : "=r"(times)
      : "r"(distance), "r"(step));
  return distance - times * step >= step ? times + 1u : times;
}
// The number of iterations of a loop whose condition has just held and whose counter moves towards its bound by `step`, in strips. Where
// the types make it doubtful, or the step does not lead there, a strip is one iteration, and the user's condition is asked behind it.
template <bool __cuinstr_known, bool __cuinstr_divides>
struct __cuinstr_strips {
  // How many steps a distance surely holds. A step that is not known before the kernel runs mostly is a power of two, or the threads of a grid, which
  // has as many blocks as the device has multiprocessors: rounded up, that would give a strip for each digit of the trips.
  template <class __cuinstr_t>
  static __device__ __forceinline__ __cuinstr_t steps(__cuinstr_t distance, unsigned int step) {
    if (__cuinstr_divides) return distance / (__cuinstr_t)step;
    if ((step & (step - 1u)) == 0u) return distance >> __cuinstr_power(step);
    return (__cuinstr_t)__cuinstr_fits(distance < 0xffffffffu ? (unsigned int)distance : 0xffffffffu, step);
  }
  // Where the step is known at run time only, what is reckoned of it stays behind the question whether it leads past the bound: in most loops by a grid's
  // threads it does, and compilers would else reckon in front of the loop, for all.
  template <class __cuinstr_s>
  static __device__ __forceinline__ unsigned int stride(__cuinstr_s by) {
    unsigned int step = __cuinstr_stride(by);
#ifdef __CUDA_ARCH__
    if (!__cuinstr_divides) asm("" : "+r"(step));
#endif
    return step;
  }
  // The counter's own type holds each of its values up to the bound.
  template <class __cuinstr_t, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int less(unsigned int& left, unsigned int shift, __cuinstr_t distance, __cuinstr_s by) {
    __cuinstr_t trips = 1u;
    if (__cuinstr_divides || distance > (__cuinstr_t)by) {
      const unsigned int step = stride(by);
      if (step != 0u) trips = steps(distance - 1u, step) + 1u;
    }
    return __cuinstr_turns(left, shift, trips);
  }
  template <class __cuinstr_t, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int upto(unsigned int& left, unsigned int shift, __cuinstr_t distance, __cuinstr_s by) {
    __cuinstr_t further = 0u;
    if (__cuinstr_divides || distance >= (__cuinstr_t)by) {
      const unsigned int step = stride(by);
      if (step != 0u) further = steps(distance, step);
    }
    return __cuinstr_turns(left, shift, (further < 0x10000u ? further : (__cuinstr_t)0x10000u) + 1u);
  }
  template <class __cuinstr_t, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int meet(unsigned int& left, unsigned int shift, __cuinstr_t distance, __cuinstr_s by) {
    const __cuinstr_t whole = distance / (__cuinstr_t)__cuinstr_stride(by);
    return __cuinstr_turns(left, shift, whole != 0u ? whole : (__cuinstr_t)1u);
  }
#define __cuinstr_count(__cuinstr_name, __cuinstr_how, __cuinstr_way)                                                                             \
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                                              \
  static __device__ __forceinline__ unsigned int __cuinstr_name(unsigned int& left, unsigned int shift, __cuinstr_i from, __cuinstr_n to, __cuinstr_s step) { \
    return __cuinstr_how(left, shift, __cuinstr_distance<__cuinstr_i, __cuinstr_n>::__cuinstr_way(from, to), step);                            \
  }
  __cuinstr_count(below, less, up) __cuinstr_count(above, less, down) __cuinstr_count(at_most, upto, up) __cuinstr_count(at_least, upto, down)
  __cuinstr_count(not_up, meet, meet_up) __cuinstr_count(not_down, meet, meet_down)
#undef __cuinstr_count
};
template <bool __cuinstr_divides>
struct __cuinstr_strips<false, __cuinstr_divides> {
#define __cuinstr_count(__cuinstr_name)                                                                                                           \
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                                              \
  static __device__ __forceinline__ unsigned int __cuinstr_name(unsigned int& left, unsigned int shift, const __cuinstr_i&, const __cuinstr_n&, const __cuinstr_s&) { \
    return __cuinstr_turns(left, shift, 1u);                                                                                                 \
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
  __cuinstr_device unsigned int __cuinstr_##__cuinstr_name(unsigned int& left, unsigned int shift, const __cuinstr_i& from, const __cuinstr_n& to, const __cuinstr_s& step) { \
    return __cuinstr_strips<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, true>::__cuinstr_name(left, shift, from, to, step); \
  }                                                                                                                                               \
  template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                                          \
  __cuinstr_device unsigned int __cuinstr_##__cuinstr_name##_by(unsigned int& left, unsigned int shift, const __cuinstr_i& from, const __cuinstr_n& to, const __cuinstr_s& step) { \
    return __cuinstr_strips<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, false>::__cuinstr_name(left, shift, from, to, step); \
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
  static __device__ __forceinline__ unsigned int __cuinstr_name(unsigned int& left, unsigned int shift, __cuinstr_i, __cuinstr_n, __cuinstr_s) { \
    return __cuinstr_turns(left, shift, 64u);                                                                                                \
  }
  __cuinstr_count(below) __cuinstr_count(above) __cuinstr_count(at_most) __cuinstr_count(at_least) __cuinstr_count(not_up) __cuinstr_count(not_down)
#undef __cuinstr_count
};
#define __cuinstr_strip(__cuinstr_name)                                                                                                           \
  template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                \
  __cuinstr_device unsigned int __cuinstr_maybe_##__cuinstr_name(unsigned int& left, unsigned int shift, __cuinstr_i from, __cuinstr_n to, __cuinstr_s step) { \
    return __cuinstr_maybe<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, __cuinstr_constants, true>::__cuinstr_name(left, shift, from, to, step); \
  }                                                                                                                                               \
  template <bool __cuinstr_all, bool __cuinstr_constants, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>                                \
  __cuinstr_device unsigned int __cuinstr_maybe_##__cuinstr_name##_by(unsigned int& left, unsigned int shift, __cuinstr_i from, __cuinstr_n to, __cuinstr_s step) { \
    return __cuinstr_maybe<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, __cuinstr_s>::value, __cuinstr_constants, false>::__cuinstr_name(left, shift, from, to, step); \
  }
__cuinstr_strip(below) __cuinstr_strip(above) __cuinstr_strip(at_most) __cuinstr_strip(at_least) __cuinstr_strip(not_up) __cuinstr_strip(not_down)
#undef __cuinstr_strip
// The same where the loop goes up from one number to another, if the compiler takes both for constants: then a strip is a constant number of iterations by
// which the trips can be divided, so that the compiler may unroll it, and no more than an activation may run at first. Nothing changes the counter but
// the strips' own steps, so where the user's condition holds at a strip's begin, at least one whole strip is left.
__cuinstr_device unsigned int __cuinstr_even(unsigned int trips, unsigned int most) {
#define __cuinstr_by(__cuinstr_length) trips % __cuinstr_length == 0u && __cuinstr_length <= most ? __cuinstr_length
  return trips == 0u ? 0u : __cuinstr_by(64u) : __cuinstr_by(50u) : __cuinstr_by(40u) : __cuinstr_by(32u) : __cuinstr_by(25u) : __cuinstr_by(20u)
         : __cuinstr_by(16u) : __cuinstr_by(12u) : __cuinstr_by(10u) : __cuinstr_by(8u) : 0u;
#undef __cuinstr_by
}
// How often such a loop runs, where its types hold each of its values and compare them as numbers; zero where that is not known.
template <bool __cuinstr_plain>
struct __cuinstr_exactly {
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int trips(int, const __cuinstr_n&, const __cuinstr_s&, int) { return 0u; }
};
template <>
struct __cuinstr_exactly<true> {
  template <class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>
  static __device__ __forceinline__ unsigned int trips(int start, __cuinstr_n bound, __cuinstr_s step, int less) {
    const long long most = 1ll << 30, least = __cuinstr_lowest<decltype(__cuinstr_i() + __cuinstr_n())>(most), first = start, end = (long long)bound;
    const long long last = end - less, by = (long long)step;
    return first < least || end < least || first > most || end > most || by <= 0 || last < first ? 0u : (unsigned int)((last - first) / by) + 1u;
  }
};
#define __cuinstr_strip(__cuinstr_name, __cuinstr_less)                                                                                           \
  template <bool __cuinstr_all, bool __cuinstr_constants, bool __cuinstr_settles, class __cuinstr_i, class __cuinstr_n, class __cuinstr_s>        \
  __cuinstr_device unsigned int __cuinstr_even_##__cuinstr_name(unsigned int& left, unsigned int shift, __cuinstr_i from, __cuinstr_n to, __cuinstr_s step, int start) { \
    typedef __cuinstr_exactly<__cuinstr_plain<__cuinstr_all && __cuinstr_settles, __cuinstr_i, __cuinstr_s, __cuinstr_n>::value> exactly;      \
    const unsigned int trips = exactly::template trips<__cuinstr_i>(start, to, step, __cuinstr_less);                                          \
    const unsigned int even = __cuinstr_nest != 0u ? __cuinstr_even(trips, __cuinstr_nest >> shift) : 0u;                                          \
    if (even == 0u) return __cuinstr_maybe_##__cuinstr_name<__cuinstr_all, __cuinstr_constants>(left, shift, from, to, step);                      \
    const unsigned int charge = even << shift;                                                                                               \
    left = left > charge ? left - charge : 0u;                                                                                                \
    return even;                                                                                                                             \
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
  static __device__ __forceinline__ __cuinstr_i of(__cuinstr_i from, unsigned int turns, int step) {
    return (__cuinstr_i)((unsigned long long)from + (unsigned long long)((long long)turns * step));
  }
};
template <class __cuinstr_i>
struct __cuinstr_until<true, __cuinstr_i*> {
  static __device__ __forceinline__ __cuinstr_i* of(__cuinstr_i* from, unsigned int turns, int step) { return from + (long long)turns * step; }
};
template <class __cuinstr_i>
struct __cuinstr_until<false, __cuinstr_i> {
  static __device__ __forceinline__ __cuinstr_countdown of(const __cuinstr_i&, unsigned int turns, int) { return (__cuinstr_countdown)turns; }
};
template <bool __cuinstr_all, class __cuinstr_i, class __cuinstr_n>
__cuinstr_device auto __cuinstr_to(const __cuinstr_i& from, const __cuinstr_n&, unsigned int turns, int step)
    -> decltype(__cuinstr_until<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, int>::value, __cuinstr_i>::of(from, turns, step)) {
  return __cuinstr_until<__cuinstr_known<__cuinstr_all, __cuinstr_i, __cuinstr_n, int>::value, __cuinstr_i>::of(from, turns, step);
}
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_i& end, const __cuinstr_i& counter) { return counter != end; }
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_countdown& turns, const __cuinstr_i&) { return turns != 0u; }
template <class __cuinstr_i>
__cuinstr_device void __cuinstr_on_by(const __cuinstr_i&, unsigned long long site) { __cuinstr_debugged(site); }
__cuinstr_device void __cuinstr_on_by(__cuinstr_countdown& turns, unsigned long long site) {
  turns = (__cuinstr_countdown)(turns - 1u);
  __cuinstr_debugged(site);
}
// The same in a loop that may end before its strip does. Where it comes by again, `mark` tells: zero where the loop begins, else where its
// last strip was to end, in so many of the counter's bits as tell a strip's values from each other, and one bit that is always set.
template <bool __cuinstr_known, class __cuinstr_i>
struct __cuinstr_stage : __cuinstr_until<true, __cuinstr_i> {
  static __device__ __forceinline__ unsigned int mark(__cuinstr_i counter) { return (unsigned int)counter << 1 | 1u; }
  static __device__ __forceinline__ bool is_end(unsigned int marked, __cuinstr_i counter) { return marked == mark(counter); }
};
template <class __cuinstr_i>
struct __cuinstr_stage<true, __cuinstr_i*> : __cuinstr_until<true, __cuinstr_i*> {
  static __device__ __forceinline__ unsigned int mark(__cuinstr_i* counter) { return (unsigned int)((unsigned long long)counter / sizeof(__cuinstr_i)) << 1 | 1u; }
  static __device__ __forceinline__ bool is_end(unsigned int marked, __cuinstr_i* counter) { return marked == mark(counter); }
};
template <class __cuinstr_i>
struct __cuinstr_stage<false, __cuinstr_i> : __cuinstr_until<false, __cuinstr_i> {
  static __device__ __forceinline__ unsigned int mark(__cuinstr_countdown) { return 1u; }
  static __device__ __forceinline__ bool is_end(unsigned int, const __cuinstr_i&) { return false; }
};
template <bool __cuinstr_all, class __cuinstr_n, class __cuinstr_i>
__cuinstr_device auto __cuinstr_leg(unsigned int& mark, const __cuinstr_i& from, unsigned int turns, int step)
    -> decltype(__cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i>::of(from, turns, step)) {
  typedef __cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i> stage;
  const auto end = stage::of(from, turns, step);
  mark = stage::mark(end);
  return end;
}
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_i& end, const __cuinstr_i& counter, unsigned int&) { return counter != end; }
template <class __cuinstr_i>
__cuinstr_device bool __cuinstr_on(const __cuinstr_countdown& turns, const __cuinstr_i&, unsigned int& marked) {
  if (turns == 0u) marked = 0u;
  return turns != 0u;
}
template <bool __cuinstr_all, class __cuinstr_n, class __cuinstr_i>
__cuinstr_device bool __cuinstr_arrived(unsigned int& mark, const __cuinstr_i& counter) {
  const bool arrived = mark == 0u || __cuinstr_stage<__cuinstr_known<__cuinstr_all, __cuinstr_i, typename __cuinstr_bare<__cuinstr_n>::type, int>::value, __cuinstr_i>::is_end(mark, counter);
  mark = 0u;
  return arrived;
}
