// What others may ask of a process. None of this calls the driver, whose calls may block for any time. The watch does
// what is asked.

// Has the watch stop every launch that runs and polls, and waits for that.
__cuinstr_once void stop_all() {
  state& at = here();
  if (at.process != __cuinstr_c_getpid() || at.fails || at.finished) return;
  const u32 number = __atomic_add_fetch(&at.stops_wanted, 1, __ATOMIC_ACQ_REL);
  wake(&at.stops_wanted);
  const u64 since = now_ns();
  // Numbers begin again at zero.
  while (int(__atomic_load_n(&at.stops_made, __ATOMIC_ACQUIRE) - number) < 0 && now_ns() - since < answer_ns) sleep_ns(100000ull);
}
// Calls `tell` for each launch that runs, with how long it has run.
__cuinstr_once void each_running(void (*tell)(void*, const kernel*, u64), void* data) {
  state& at = here();
  if (at.process != __cuinstr_c_getpid() || at.fails || at.finished) return;
  const u64 now = now_ns();
  const u32 count = __atomic_load_n(&at.queue_count, __ATOMIC_ACQUIRE);
  at.looking.take();
  for (u32 index = 0; index < count; ++index) {
    const sight seen = sight_of(at.queues[index], now);
    const kernel* what = launch_of(at.queues[index], seen.running).what;
    if (seen.runs && what != nullptr) tell(data, what, now - seen.began);
  }
  at.looking.give();
}
// Launches wait from now on, or go on.
inline void hold(bool is_held) { __atomic_store_n(&here().is_held, is_held, __ATOMIC_RELEASE); }
inline bool is_held() { return __atomic_load_n(&here().is_held, __ATOMIC_ACQUIRE); }
