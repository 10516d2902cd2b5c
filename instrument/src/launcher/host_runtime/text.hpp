// Time, locks and text.

#pragma GCC visibility push(hidden)
namespace __cuinstr_half_@HASH@ {
typedef unsigned int u32;
typedef unsigned long long u64;

inline u64 now_ns(int clock) {
  long time[2];
  __cuinstr_c_clock_gettime(clock, time);
  return u64(time[0]) * 1000000000ull + u64(time[1]);
}
// The clock that nobody sets.
inline u64 now_ns() { return now_ns(1); }
inline void sleep_ns(u64 ns) {
  const long time[2] = {long(ns / 1000000000ull), long(ns % 1000000000ull)};
  __cuinstr_c_nanosleep(time, nullptr);
}
#if defined(__aarch64__)
const long futex = 98;
#else
const long futex = 202;
#endif
// Waits until a word is no longer what it was seen to be, but not longer than so many nanoseconds.
inline void wait_while(const u32* word, u32 seen, u64 ns) {
  const long time[2] = {long(ns / 1000000000ull), long(ns % 1000000000ull)};
  __cuinstr_c_syscall(futex, word, 128, seen, time, nullptr, 0);
}
inline void wake(const u32* word) { __cuinstr_c_syscall(futex, word, 129, 1, nullptr, nullptr, 0); }
inline bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}
// Held for a few instructions, or while one stream's launch is handed over.
struct lock {
  int held;
  void take() {
    for (int tries = 0; __atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE) != 0; ++tries) {
      if (tries < 100) __cuinstr_c_sched_yield();
      else sleep_ns(50000ull);
    }
  }
  bool try_for(u64 ns) {
    const u64 since = now_ns();
    while (__atomic_exchange_n(&held, 1, __ATOMIC_ACQUIRE) != 0) {
      if (now_ns() - since > ns) return false;
      sleep_ns(100000ull);
    }
    return true;
  }
  void give() { __atomic_store_n(&held, 0, __ATOMIC_RELEASE); }
};

// A text that is written whole or, where it is too long, cut short.
struct text {
  u32 used;
  char data[16380];
  text() : used(0) {}
  void put(char c) {
    if (used + 1 < sizeof data) data[used++] = c;
  }
  text& operator<<(const char* words) {
    for (u32 count = 0; words != nullptr && *words != 0 && count < 1000; ++words, ++count) put(*words);
    return *this;
  }
  text& operator<<(u64 number) {
    char digits[20];
    int count = 0;
    do digits[count++] = char('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  text& operator<<(u32 number) { return *this << u64(number); }
  text& hex(u64 number) {
    for (int shift = 60; shift >= 0; shift -= 4) put("0123456789abcdef"[(number >> shift) & 15]);
    return *this;
  }
  // In quotes, as JSON has it. What is no UTF-8 in a name goes through as it is.
  text& json(const char* words) {
    put('"');
    for (u32 count = 0; words != nullptr && *words != 0 && count < 1000; ++words, ++count) {
      const unsigned char c = (unsigned char)*words;
      if (c == '"' || c == '\\') put('\\');
      if (c >= 32) put(char(c));
      else *this << "\\u00" << (c < 16 ? "0" : "1"), put("0123456789abcdef"[c & 15]);
    }
    put('"');
    return *this;
  }
  // As people write times: `2 s`, `1.5 ms`.
  text& time(u64 ns) {
    static const struct {
      u64 scale;
      const char* name;
    } units[] = {{1000000000ull, " s"}, {1000000ull, " ms"}, {1000ull, " us"}, {1ull, " ns"}};
    int unit = 0;
    while (unit < 3 && ns < units[unit].scale) ++unit;
    const u64 hundredths = ns / (units[unit].scale < 100 ? 1 : units[unit].scale / 100) % 100;
    *this << ns / units[unit].scale;
    if (units[unit].scale >= 100 && hundredths != 0) {
      put('.'), put(char('0' + hundredths / 10));
      if (hundredths % 10 != 0) put(char('0' + hundredths % 10));
    }
    return *this << units[unit].name;
  }
  // One call, so that lines of several processes stay whole.
  void write_to(int file) const {
    if (__cuinstr_c_write(file, data, used) < 0) return;
  }
};
// A site of the source. Texts may go on behind their lengths.
struct site_row {
  bool known;
  u64 id;
  u32 line, column;
  const char *kind, *function, *file;
  u32 kind_length, function_length, file_length;
};
