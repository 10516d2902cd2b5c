// What others may ask of a process.

// Has every launch that runs and polls stop. Answers how many run.
__cuinstr_once int stop_all() {
  state& at = here();
  if (at.process != __cuinstr_c_getpid() || at.fails || !at.watching.try_for(grace_ns)) return 0;
  int count = 0;
  look_at_all();
  for (u32 index = 0; index < at.queue_count; ++index) {
    queue* one = at.queues[index];
    if (!one->runs || one->asked || last_of(one).what == nullptr) continue;
    ++count;
    if (!last_of(one).what->home->works) continue;
    last_of(one).what->home->is_requested = true;
    halt(one);
  }
  at.watching.give();
  return count;
}
// Calls `tell` for each launch that runs, with how long it has run.
__cuinstr_once void each_running(void (*tell)(void*, const kernel*, u64), void* data) {
  state& at = here();
  if (at.process != __cuinstr_c_getpid() || at.fails || !at.watching.try_for(grace_ns)) return;
  look_at_all();
  for (u32 index = 0; index < at.queue_count; ++index) {
    const queue* one = at.queues[index];
    if (one->runs && last_of(one).what != nullptr) tell(data, last_of(one).what, now_ns() - one->began);
  }
  at.watching.give();
}
// Launches wait from now on, or go on.
inline void hold(bool is_held) { __atomic_store_n(&here().is_held, is_held, __ATOMIC_RELEASE); }
inline bool is_held() { return __atomic_load_n(&here().is_held, __ATOMIC_ACQUIRE); }
