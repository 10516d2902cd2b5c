// What the environment asks for, read once, when the process launches its first kernel.

// A limit for one kernel.
struct named_limit {
  const char* name;
  u32 length;
  u64 timeout_ns;
  int used;
};
const int off = 1, armed = 2;
struct settings {
  // Not read yet (0), off or armed.
  int mode;
  lock reading;
  int leave;
  // Whether launches that run can be paused at block boundaries.
  bool pausable;
  u64 timeout_ns, fuel;
  named_limit* limits;
  u32 limit_count;
  const char* report;
};
template <class unused>
struct held_settings {
  static settings value;
};
template <class unused>
settings held_settings<unused>::value;
inline settings& asked() { return held_settings<void>::value; }

__cuinstr_once void refuse(const char* variable, const char* value, const char* help) {
  text message;
  message << "cuinstr: error: " << variable << "=" << value << ": " << help << "\n";
  message.write_to(2);
  __cuinstr_c_fflush(nullptr);
  __cuinstr_c_exit(2);
}
__cuinstr_once const char* variable(const char* name) {
  const char* value = __cuinstr_c_getenv(name);
  if (value == nullptr || *value == 0) return nullptr;
  unsigned long size = 1;
  while (value[size - 1] != 0) ++size;
  // A copy, since a program may write over its environment (`setproctitle`).
  char* copy = (char*)__cuinstr_c_calloc(size, 1);
  if (copy != nullptr) __builtin_memcpy(copy, value, size);
  return copy;
}
// A hundred years.
const u64 longest_ns = 3153600000000000000ull;
// Nanoseconds of `2s`, `500ms`, `1.5s`; 0 if the words are no time, or one beyond the longest.
__cuinstr_once u64 duration(const char* words, const char* end) {
  u64 number = 0, scale = 1;
  bool digits = false, fraction = false;
  for (; words < end && ((*words >= '0' && *words <= '9') || (*words == '.' && !fraction && digits)); ++words) {
    if (*words == '.') {
      fraction = true;
      digits = false;
      continue;
    }
    if (number > 1000000000ull || scale >= 1000000000ull) return 0;
    number = number * 10 + u64(*words - '0');
    if (fraction) scale *= 10;
    digits = true;
  }
  static const struct {
    const char* name;
    u64 ns;
  } units[] = {{"ns", 1ull}, {"us", 1000ull}, {"ms", 1000000ull}, {"s", 1000000000ull}, {"m", 60000000000ull}};
  for (int unit = 0; digits && unit < 5; ++unit) {
    const char* name = units[unit].name;
    const char* at = words;
    while (*name != 0 && at < end && *at == *name) ++name, ++at;
    if (*name != 0 || at != end) continue;
    const unsigned __int128 ns = (unsigned __int128)number * units[unit].ns / scale;
    return ns <= longest_ns ? u64(ns) : 0;
  }
  return 0;
}
// `2s,train_step=60s`: commas within a name's angle brackets are the name's.
__cuinstr_once void read_timeouts(settings& set, const char* value) {
  const char* const help = "write a time such as 2s or 500ms, or 2s,NAME=60s for a kernel of its own; units are ns, us, ms, s and m, and the longest time is 100 years";
  u32 parts = 1;
  for (const char* at = value; *at != 0; ++at) parts += *at == ',';
  set.limits = (named_limit*)__cuinstr_c_calloc(parts, sizeof(named_limit));
  for (const char* at = value; set.limits != nullptr;) {
    const char* equals = nullptr;
    const char* end = at;
    for (int depth = 0; *end != 0 && (depth > 0 || *end != ','); ++end) {
      depth += (*end == '<') - (*end == '>');
      if (*end == '=') equals = end;
    }
    const u64 ns = duration(equals != nullptr ? equals + 1 : at, end);
    if (ns == 0 || equals == at || (equals == nullptr && set.timeout_ns != 0)) refuse("CUINSTR_TIMEOUT", value, help);
    if (equals == nullptr) {
      set.timeout_ns = ns;
    } else {
      named_limit& limit = set.limits[set.limit_count++];
      limit.name = at;
      limit.length = u32(equals - at);
      limit.timeout_ns = ns;
    }
    if (*end == 0) return;
    at = end + 1;
  }
}
__cuinstr_once void read_fuel(settings& set, const char* value) {
  const u64 most = (1ull << 40) - 2;
  const char* at = value;
  for (; *at >= '0' && *at <= '9' && set.fuel <= most; ++at) set.fuel = set.fuel * 10 + u64(*at - '0');
  if (*at != 0 || set.fuel == 0 || set.fuel > most) refuse("CUINSTR_FUEL", value, "write a number of iterations from 1 to 1099511627774");
}
// Names that begin like ours and that nothing reads: a limit that is spelled wrong is no limit.
__cuinstr_once void tell_unread() {
  static const char* const read[] = {"TIMEOUT", "FUEL", "ON_STOP", "REPORT", "PAUSABLE", "FLAGS", "PTXAS", "REQUIRE", "SESSION", "SETTLES", "WORKER", "EVALUATE",
                                     "HOST_MACHINE", "SOURCE", "SKIPPED", "RUN"};
  for (char** entry = __cuinstr_c_environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* name = *entry;
    for (const char* prefix = "CUINSTR_"; *prefix != 0 && *name == *prefix; ++prefix) ++name;
    if (name != *entry + 8) continue;
    const char* end = name;
    while (*end != 0 && *end != '=') ++end;
    bool known = false;
    for (const char* word : read) {
      const char* at = name;
      while (*word != 0 && at < end && *at == *word) ++at, ++word;
      known = known || (*word == 0 && at == end);
    }
    if (known) continue;
    text message;
    message << "cuinstr: warning: nothing reads the variable ";
    for (const char* at = *entry; at < end; ++at) message.put(*at);
    message << "; a program reads CUINSTR_TIMEOUT, CUINSTR_FUEL, CUINSTR_ON_STOP, CUINSTR_REPORT and CUINSTR_PAUSABLE\n";
    message.write_to(2);
  }
}
// The file's name with the process (`%p`) and the host (`%h`) in it.
__cuinstr_once const char* expand(const char* value) {
  static text name;
  name.used = 0;
  for (const char* at = value; *at != 0; ++at) {
    if (*at != '%') {
      name.put(*at);
    } else if (*++at == 'p') {
      name << u64(__cuinstr_c_getpid());
    } else if (*at == 'h') {
      char host[256] = {};
      __cuinstr_c_gethostname(host, sizeof host - 1);
      name << host;
    } else if (*at == '%') {
      name.put('%');
    } else {
      refuse("CUINSTR_REPORT", value, "write a file's name or stderr; in a name %p is the process, %h the host and %% a per cent sign");
    }
  }
  name.data[name.used] = 0;
  return name.data;
}
__cuinstr_once int decide() {
  settings& set = asked();
  set.reading.take();
  if (__atomic_load_n(&set.mode, __ATOMIC_ACQUIRE) == 0) {
    tell_unread();
    const char* timeout = variable("CUINSTR_TIMEOUT");
    const char* fuel = variable("CUINSTR_FUEL");
    const char* action = variable("CUINSTR_ON_STOP");
    const char* pausable = variable("CUINSTR_PAUSABLE");
    set.report = variable("CUINSTR_REPORT");
    if (timeout != nullptr) read_timeouts(set, timeout);
    if (fuel != nullptr) read_fuel(set, fuel);
    set.leave = action != nullptr && same(action, "leave");
    if (action != nullptr && !set.leave && !same(action, "trap")) refuse("CUINSTR_ON_STOP", action, "write trap or leave");
    set.pausable = pausable != nullptr && same(pausable, "1");
    if (pausable != nullptr && !set.pausable && !same(pausable, "0")) refuse("CUINSTR_PAUSABLE", pausable, "write 1 or 0");
    if (set.report != nullptr) expand(set.report);
    const bool any = timeout != nullptr || fuel != nullptr || action != nullptr || set.report != nullptr || set.pausable;
    __atomic_store_n(&set.mode, any ? armed : off, __ATOMIC_RELEASE);
  }
  set.reading.give();
  return set.mode;
}
// Whether this process has nothing asked of it: one word is read, and all goes on as without us.
inline bool is_off() {
  const int mode = __atomic_load_n(&asked().mode, __ATOMIC_RELAXED);
  return __builtin_expect(mode == off, 1) || (mode == 0 && decide() == off);
}
