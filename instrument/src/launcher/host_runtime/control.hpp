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
// A launch that runs or is paused, and what a pause has come to, if one was asked for.
struct seen_launch {
  const kernel* what;
  u64 ran_ns;
  pause_phase phase;
  u32 done, left;
  // Why it runs on to its end; null if it does not.
  const char* runs_on;
};
// Calls `tell` for each launch that runs, with how long it has run, and for each that is paused.
__cuinstr_once void each_running(void (*tell)(void*, const seen_launch&), void* data) {
  state& at = here();
  if (at.process != __cuinstr_c_getpid() || at.fails || at.finished) return;
  const u64 now = now_ns();
  const u32 count = __atomic_load_n(&at.queue_count, __ATOMIC_ACQUIRE);
  at.looking.take();
  for (u32 index = 0; index < count; ++index) {
    const queue* one = at.queues[index];
    const sight seen = sight_of(one, now);
    const launched it = launch_of(one, seen.running);
    if (it.what == nullptr || (!seen.runs && one->phase == unasked)) continue;
    const bool is_resting = one->phase == resting;
    const u32 blocks = is_resting && it.again != nullptr ? it.again->blocks : 0;
    tell(data, {it.what, is_resting ? one->ran_ns : now - seen.began, one->phase, blocks - one->left, one->left, can_pause() ? one->runs_on : nullptr});
  }
  at.looking.give();
}
// Nothing is held (0), launches wait from now on (1), or wait while those that run pause at block boundaries, if they can be paused (2).
__cuinstr_once void hold(int how) {
  __atomic_store_n(&join_process().held, how == 2 && !asked().pausable ? 1 : how, __ATOMIC_SEQ_CST);
  wake(&here().stops_wanted);
}
inline bool is_held() { return __atomic_load_n(&join_process().held, __ATOMIC_ACQUIRE) != 0; }
