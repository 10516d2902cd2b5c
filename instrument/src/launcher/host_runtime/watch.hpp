// The thread that looks whether launches are in time. It reads words that the GPU writes in the order of each stream, and calls the driver only to stop something.

const u64 grace_ns = 2000000000ull;
const u64 drain_ns = 5000000000ull;
// Those who ask wait five seconds for an answer.
const u64 answer_ns = 4000000000ull;
// How long a driver may take to give back what has trapped: some tenths of a second, and as much again for each other process that traps.
const u64 give_back_ns = 20000000000ull;

__cuinstr_once bool begin_thread(void* (*does)(void*), void* with) {
  // Signals are the program's own threads' business.
  u64 all[16], before[16];
  for (int index = 0; index < 16; ++index) all[index] = ~0ull;
  unsigned long thread;
  __cuinstr_c_pthread_sigmask(0, all, before);
  const bool began = __cuinstr_c_pthread_create(&thread, nullptr, does, with) == 0;
  __cuinstr_c_pthread_sigmask(2, before, nullptr);
  if (began) __cuinstr_c_pthread_detach(thread);
  return began;
}
// Gives the image a new launch number, so that what was asked of the last launch holds for it alone. Its threads are gone by then.
__cuinstr_once void renew(image* of) {
  driver& cuda = here().cuda;
  stop_record* record = &here().memory->records[of->index];
  u32 next = of->launch + 1 != 0 ? of->launch + 1 : 2;
  cuda.clear(of->control_at + 72, 0, sizeof(stop_record) / 4, of->home->stream);
  cuda.write(of->home->stream, of->control_at + 8, next, 0);
  const u64 since = now_ns();
  while (cuda.query_stream(of->home->stream) == 600 && now_ns() - since < grace_ns) sleep_ns(50000ull);
  of->launch = next;
  __builtin_memset(record, 0, sizeof *record);
  of->told = of->stopping = of->is_requested = false;
}
// What is known of a queue: whether a launch is on its way, which, and since when.
struct sight {
  bool runs;
  u32 running;
  u64 began;
};
inline u32* word_of(const queue* at) { return &here().memory->words[at->index]; }
// With what the GPU has written since the watch looked. Only under `looking`.
inline sight sight_of(const queue* at, u64 now) {
  const u32 last = __atomic_load_n(word_of(at), __ATOMIC_ACQUIRE);
  if (last == 0) return {at->runs, at->running, at->began};
  return {(last & done_bit) == 0, last & ~done_bit, at->is_rest ? at->began : now};
}
// Whether blocks that were launched beside others of the queue's launch are over.
inline bool is_beside_over(const queue* at) { return __atomic_load_n(&here().memory->besides[at->index], __ATOMIC_ACQUIRE) == at->running; }
// Takes over what the GPU wrote.
inline void look(queue* at, u64 now) {
  if (at->is_first_over && at->runs) at->runs = !is_beside_over(at);
  if (__atomic_load_n(word_of(at), __ATOMIC_ACQUIRE) == 0) return;
  state& all = here();
  all.looking.take();
  const u32 last = __atomic_exchange_n(word_of(at), 0, __ATOMIC_ACQ_REL);
  at->running = last & ~done_bit;
  at->runs = (last & done_bit) == 0;
  if (!at->is_rest && !at->is_beside) at->began = now;
  if (at->runs && !at->is_rest) at->ran_ns = 0;
  if (at->is_beside && !at->runs) {
    at->is_first_over = true;
    at->runs = !is_beside_over(at);
  }
  at->asked = false;
  all.looking.give();
}
inline launched launch_of(const queue* at, u32 number) { return at->ring[number % at->length]; }
inline launched last_of(const queue* at) { return launch_of(at, at->running); }
// A trap is over when the driver says so to whoever asks. It is asked by a thread of its own, since it may never answer.
__cuinstr_once void* ask_for_loss(void* data) {
  const image* of = (const image*)data;
  driver& cuda = here().cuda;
  if (cuda.set_context(of->home->handle) == 0) {
    for (int answer = 600; answer == 0 || answer == 600; answer = cuda.query_stream(of->home->stream)) {
      if (__atomic_load_n(&here().leaves_at, __ATOMIC_ACQUIRE) != 0) return nullptr;
      sleep_ns(20000000ull);
    }
  }
  __atomic_store_n(&here().lost, 1, __ATOMIC_RELEASE);
  return nullptr;
}
__cuinstr_once void await_loss(image* of) {
  if (here().trapped_at != 0) return;
  here().trapped_at = now_ns();
  if (__atomic_load_n(&here().leaves_at, __ATOMIC_ACQUIRE) == 0) begin_thread(ask_for_loss, of);
}
// The first thing that a process does at its end.
void open_gates();
__cuinstr_once void note_end(int status, void*) {
  state& at = here();
  if (at.process != __cuinstr_c_getpid()) return;
  at.status = status;
  __atomic_store_n(&at.leaves_at, now_ns(), __ATOMIC_SEQ_CST);
  open_gates();
}
// A process that was stopped comes to its end, even if its driver holds on to it: inside the call that waits for the launch, or at the process's end.
__cuinstr_once void end_if_held() {
  state& at = here();
  if (at.trapped_at == 0) return;
  const u64 leaves_at = __atomic_load_n(&at.leaves_at, __ATOMIC_ACQUIRE);
  const bool leaves = leaves_at != 0;
  if (!leaves && __atomic_load_n(&at.lost, __ATOMIC_ACQUIRE) != 0) return;
  if (now_ns() - (leaves ? leaves_at : at.trapped_at) < give_back_ns) return;
  const u32 own = u32(at.status) & 255, status = leaves && own != 0 ? own : 124;
  text message;
  message << "cuinstr: error: the driver " << (leaves ? "does not let the process end" : "does not give back the launch that trapped") << ": it ends here with status "
          << status << "\n";
  message.write_to(2);
  __cuinstr_c_fflush(nullptr);
  __cuinstr_c_exit(int(status));
}
// The latest launch of the image that has begun, where others have come to their streams behind it.
__cuinstr_once launched latest_of(const image* of) {
  launched latest = {};
  for (u32 index = 0; index < here().queue_count; ++index) {
    const queue* one = here().queues[index];
    for (u32 back = 0; back < one->length && back < one->running; ++back) {
      const launched it = one->ring[(one->running - back) % one->length];
      if (it.what != nullptr && it.what->home == of && (latest.what == nullptr || it.order > latest.order)) latest = it;
    }
  }
  return latest;
}
__cuinstr_once void tell_record(image* of, queue* at) {
  static stop_record kept;
  kept = here().memory->records[of->index];
  stop it = {};
  it.how = stopped;
  it.record = &kept;
  if (at == nullptr) {
    // The GPU itself was first: a launch of the image that is on its way, or the last that was.
    for (u32 index = 0; index < here().queue_count; ++index) {
      queue* one = here().queues[index];
      look(one, now_ns());
      if (last_of(one).what != nullptr && last_of(one).what->home == of && (at == nullptr || one->runs)) at = one;
    }
  }
  if (at != nullptr) {
    at->halted = at->running;
    it.what = last_of(at).what;
    it.where = last_of(at).where;
    it.ran_ns = at->ran_ns;
  } else {
    const launched latest = latest_of(of);
    it.what = latest.what;
    it.where = latest.where;
  }
  if (kept.elapsed_ns > it.ran_ns) it.ran_ns = kept.elapsed_ns;
  if (asked().leave) {
    // Counts are there once its threads have left; a process that is at its end does not wait for them.
    const u64 since = now_ns();
    const u32 running = at != nullptr ? at->running : 0;
    bool goes_on = at != nullptr && at->runs;
    while (goes_on && now_ns() - since < drain_ns && !here().finished) {
      sleep_ns(50000ull);
      look(at, now_ns());
      goes_on = at->runs && at->running == running;
    }
    if (goes_on && !here().finished) it.how = stuck;
    static stop_record counted;
    if (!here().finished && it.how == stopped && here().cuda.to_host(&counted, of->control_at + 72, sizeof counted, of->home->stream) == 0 &&
        here().cuda.wait_stream(of->home->stream) == 0) {
      it.threads = counted.unlisted;
      for (auto& slot : counted.sites) it.threads += slot.threads;
    }
  }
  ++here().stops;
  of->told = true;
  tell(it);
  if (!asked().leave) await_loss(of);
  if (it.how == stuck) {
    __cuinstr_c_fflush(nullptr);
    __cuinstr_c_exit(124);
  }
}
// The flag, on its way to the GPU. A driver that lets nobody through must not hold up the watch, so a thread of its own waits for it.
struct errand {
  image* of;
  u32 launch;
  // 1: it was handed over, 2: the driver refused, as it does when the GPU is lost.
  int state;
};
__cuinstr_once void* send_flag(void* data) {
  errand* it = (errand*)data;
  driver& cuda = here().cuda;
  const bool sent = cuda.set_context(it->of->home->handle) == 0 && cuda.write(it->of->home->stream, it->of->flag, it->launch, 0) == 0;
  __atomic_store_n(&it->state, sent ? 1 : 2, __ATOMIC_RELEASE);
  return nullptr;
}
// Nothing but the end of the process ends this launch.
__cuinstr_once void end_unpolled(const queue* at) {
  const launched it = last_of(at);
  stop what = {stuck, it.what, it.where, at->ran_ns, nullptr, 0};
  tell(what);
  __cuinstr_c_fflush(nullptr);
  __cuinstr_c_exit(124);
}
// A launch is too late: its image is asked to stop. What does not poll is ended with the process.
__cuinstr_once void halt(queue* at) {
  const launched it = last_of(at);
  image* of = it.what->home;
  const stop_record* record = &here().memory->records[of->index];
  at->asked = true;
  at->halted = at->running;
  if (!of->works) end_unpolled(at);
  if (of->told) return;
  of->stopping = true;
  const u32 running = at->running;
  // Never freed: the driver may come back at any time.
  errand* sending = (errand*)__cuinstr_c_calloc(1, sizeof(errand));
  if (sending == nullptr) return;
  sending->of = of;
  sending->launch = of->launch;
  const bool goes = begin_thread(send_flag, sending);
  const u64 since = now_ns();
  while (goes && now_ns() - since < grace_ns) {
    if (__atomic_load_n(&record->published, __ATOMIC_ACQUIRE) != 0) return tell_record(of, at);
    look(at, now_ns());
    const int state = __atomic_load_n(&sending->state, __ATOMIC_ACQUIRE);
    if (state == 2) return;
    // It came to its end by itself. A flag that is still on its way would be one for the next launches.
    if (state == 1 && (!at->runs || at->running != running)) return renew(of);
    sleep_ns(50000ull);
  }
  end_unpolled(at);
}
// The limit that the clock of a launch's own has. An image has one such clock: where launches of it may overlap, it must not end one that has a longer limit
// than another, and the watch does the rest.
inline u64 limit_of(const kernel* what) {
  const image* of = what->home;
  return !of->several ? what->timeout_ns : of->has_no_clock() ? 0 : of->longest_ns;
}
inline u64 period_ns() {
  const settings& set = asked();
  u64 shortest = set.timeout_ns != 0 ? set.timeout_ns : 2000000000ull;
  for (u32 index = 0; index < set.limit_count; ++index) {
    if (set.limits[index].timeout_ns < shortest) shortest = set.limits[index].timeout_ns;
  }
  const u64 part = shortest / 100;
  return part < 100000ull ? 100000ull : part > 20000000ull ? 20000000ull : part;
}
// Whether threads of the image's latest launch have looked at its clock. The stream's order clears the word before each launch.
inline bool has_begun(const image* of) { return of->works && __atomic_load_n(&here().memory->records[of->index].start_ns, __ATOMIC_ACQUIRE) != 0; }
// Which of two launches came first: to the head of their streams, or, between two looks, out of the program's hands.
inline bool is_older(const queue* a, const queue* b) { return a->began != b->began ? a->began < b->began : last_of(a).order < last_of(b).order; }
__cuinstr_once void look_at_all() {
  state& at = here();
  const u64 now = now_ns(), passed = now - at.last_look;
  at.last_look = now;
  const u32 wanted = __atomic_load_n(&at.stops_wanted, __ATOMIC_ACQUIRE);
  const bool stops = wanted != at.stops_made;
  const queue *oldest = nullptr, *oldest_limited = nullptr;
  const u32 count = __atomic_load_n(&at.queue_count, __ATOMIC_ACQUIRE);
  for (u32 index = 0; index < count; ++index) {
    queue* one = at.queues[index];
    look(one, now);
    if (!one->runs) continue;
    if (oldest == nullptr || is_older(one, oldest)) oldest = one;
    if (last_of(one).what->timeout_ns != 0 && (oldest_limited == nullptr || is_older(one, oldest_limited))) oldest_limited = one;
  }
  // What the GPU itself stopped comes first.
  for (image* of = __atomic_load_n(&at.images, __ATOMIC_ACQUIRE); of != nullptr; of = of->next) {
    if (!of->works || __atomic_load_n(&at.memory->records[of->index].published, __ATOMIC_ACQUIRE) == 0) continue;
    // A driver that has lost its GPU is left alone.
    if (of->told && !asked().leave) continue;
    // A thread of the program's own keeps its context.
    void* before = nullptr;
    at.cuda.context(&before);
    at.cuda.set_context(of->home->handle);
    if (!of->told) tell_record(of, nullptr);
    // Under `leave` the next launches shall run again.
    if (asked().leave && !at.finished) renew(of);
    at.cuda.set_context(before);
  }
  for (u32 index = 0; index < count; ++index) {
    queue* one = at.queues[index];
    if (!one->runs) continue;
    const kernel* what = last_of(one).what;
    // A launch that came later may still wait for a place on the GPU, so only the oldest pays. Behind launches without a limit that wait may have no end.
    // The oldest launch with a limit pays behind these, too, once its image's clock says that it has begun, or if that clock is off.
    const bool pays = one == oldest || (one == oldest_limited && (what->home->has_no_clock() || has_begun(what->home)));
    if (pays && one->began < now) one->ran_ns += passed;
    if (one->asked) continue;
    if (stops && what->home->works) what->home->is_requested = true;
    // The launch's own clock has a start of some ticks.
    else if (what->timeout_ns == 0 || one->ran_ns < what->timeout_ns + 2 * period_ns()) continue;
    halt(one);
  }
  __atomic_store_n(&at.stops_made, wanted, __ATOMIC_RELEASE);
}
// Of launches that pause or come back: whether there are any, what is due for them, and what is due if all shall end (pause.hpp).
bool is_tending();
void tend_all();
void wake_resting();
__cuinstr_once void* watch(void*) {
  for (;;) {
    const u64 period = is_tending() ? 200000ull : period_ns();
    // One who asks for the end of all launches does not wait for a period.
    wait_while(&here().stops_wanted, here().stops_made, period);
    end_if_held();
    // At the process's end it is never given back.
    if (!here().watching.try_for(period)) continue;
    if (here().stops_wanted != here().stops_made) wake_resting();
    look_at_all();
    tend_all();
    here().watching.give();
  }
}
__cuinstr_once bool begin_watch() {
  here().last_look = now_ns();
  const bool began = begin_thread(watch, nullptr);
  if (!began) complain("no thread can be started");
  return began;
}
// At the process's end, behind all that the program itself does there: what was stopped is told. Answers whether there was anything to watch.
__cuinstr_once bool end_watch() {
  state& at = here();
  if (asked().mode != armed || at.process != __cuinstr_c_getpid() || at.finished) return false;
  if (!at.watching.try_for(drain_ns + grace_ns)) return false;
  at.finished = true;
  if (!at.fails) {
    for (image* of = at.images; of != nullptr; of = of->next) {
      if (of->works && !of->told && at.memory->records[of->index].published != 0) tell_record(of, nullptr);
    }
  }
  return true;
}
