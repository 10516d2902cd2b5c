// Pauses at block boundaries (docs/RUNTIME.md): blocks of running launches that have not begun decline to run, and their kernels are launched again for them
// later. The watch does all of this. A launch is asked only if the blocks that decline are sure to be its own, and if its rest is sure to get through.

// Whether the queue is as it would be without pauses.
inline bool is_plain(const queue* at) { return at->phase == unasked && !at->is_rest; }
const u32 most_blocks = 1u << 28;
inline u32* gate_of(const queue* at) { return &here().memory->gates[at->index]; }
inline void set_gate(const queue* at, bool is_open) { __atomic_store_n(gate_of(at), is_open ? 1u : 0u, __ATOMIC_SEQ_CST); }
inline bool can_pause() { return __atomic_load_n(&shared().held, __ATOMIC_SEQ_CST) == 2; }
inline bool is_gated() { return __atomic_load_n(&shared().gated, __ATOMIC_SEQ_CST) != 0; }
// Around calls of the driver. Begun before a pause they keep it from coming, and later ones wait. A call that waits for the GPU holds up others meanwhile, so it waits
// until nothing is left of paused launches, too.
__cuinstr_once void enter_driver(bool waits) {
  u32* inside = &shared().inside;
  __atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST);
  while (can_pause() || (waits && is_gated())) {
    __atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
    while (can_pause() || (waits && is_gated())) sleep_ns(1000000ull);
    __atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST);
  }
}
// The same for a thread that may be the first of its process to come here.
__cuinstr_once void enter_waiting() {
  join_process();
  enter_driver(true);
}
// In front of a copy that the caller waits for. In the legacy default stream the driver lets no other thread launch or copy meanwhile, and the rest of a paused
// launch could not be launched. One who waits for an event keeps nobody out, so that comes first.
__cuinstr_once void enter_copy() {
  join_process();
  const driver& cuda = here().cuda;
  void* event = nullptr;
  int answer = 0;
  // A process that has launched nothing has nothing to wait for. The event is one without a time.
  if (here().memory != nullptr && here().process == __cuinstr_c_getpid() && cuda.make_event != nullptr && (answer = cuda.make_event(&event, 2)) == 0) {
    answer = cuda.record_event(event, nullptr);
    if (answer == 0) answer = cuda.wait_event(event);
    cuda.free_event(event);
  }
  // If the context is lost, the program's own call says so.
  if (answer == 0) enter_driver(true);
  else __atomic_add_fetch(&shared().inside, 1, __ATOMIC_SEQ_CST);
}
// In front of a graph's launch: its kernels would take the rest of a paused launch for theirs, and which of them runs is not known.
__cuinstr_once void launches_graph() {
  process_words& words = join_process();
  __atomic_store_n(&words.launches_graphs, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&words.held, __ATOMIC_SEQ_CST) != 0 || is_gated()) sleep_ns(1000000ull);
}
inline void leave_driver() { __atomic_sub_fetch(&shared().inside, 1, __ATOMIC_SEQ_CST); }

// Whether launches of the image are on their way in another stream.
__cuinstr_once bool is_elsewhere(const image* of, const queue* but, u64 now) {
  state& all = here();
  for (u32 index = 0; index < all.queue_count; ++index) {
    const queue* one = all.queues[index];
    if (one == but || one->length == 1) continue;
    all.looking.take();
    const sight seen = sight_of(one, now);
    all.looking.give();
    if (one->phase != unasked && last_of(one).what != nullptr && last_of(one).what->home == of) return true;
    u32 number = __atomic_load_n(&one->number, __ATOMIC_ACQUIRE);
    for (u32 left = one->length; left > 0 && number != 0; --left, --number) {
      if (number == seen.running && !seen.runs) break;
      const kernel* what = launch_of(one, number).what;
      if (what != nullptr && what->home == of) return true;
      if (number == seen.running) break;
    }
  }
  return false;
}
// Why the launch that runs in the queue runs on to its end; null if it can be asked. Under `setting_up`.
__cuinstr_once const char* why_it_runs_on(const queue* at, u64 now) {
  const launched it = last_of(at);
  if (it.what == nullptr || it.again == nullptr) return "it was launched before that could be known";
  if (it.again->why != nullptr) return it.again->why;
  if (it.again->number != at->running) return "what it was launched with is not kept any more";
  if (it.what->home->unpausable != nullptr) return it.what->home->unpausable;
  if (__atomic_load_n(&shared().launches_graphs, __ATOMIC_SEQ_CST) != 0) return "the process launches graphs, whose kernels can't be told apart";
  // Those that are about to launch it in this stream come behind.
  const image* of = it.what->home;
  if ((of->users != 0 && of->several) || is_elsewhere(of, at, now)) return "its module runs in several streams";
  if (__atomic_load_n(&shared().inside, __ATOMIC_SEQ_CST) != 0) return "a call of the program waits for it";
  return nullptr;
}
// The requests that the blocks of a launch obey, and of what is launched again. No others do, so a request that comes late turns away no other launch.
inline u32 request_to(u64 order) { return u32(order % (done_bit - 1)) + 1; }
inline u32 request_to_rest() { return done_bit | __atomic_add_fetch(&here().rests, 1, __ATOMIC_RELAXED); }
// Hands over the word that blocks read when they begin, past what runs.
inline bool send_request(const image* of, u32 word) { return here().cuda.write(of->home->stream, of->request, word, 0) == 0; }
// The same. Whether it has arrived.
__cuinstr_once bool write_request(const image* of, u32 word) {
  const driver& cuda = here().cuda;
  if (!send_request(of, word)) return false;
  int answer = 600;
  for (const u64 since = now_ns(); answer == 600 && now_ns() - since < grace_ns; sleep_ns(20000ull)) answer = cuda.query_stream(of->home->stream);
  return answer == 0;
}
// Waits until what was written past the running kernels has arrived.
inline bool has_arrived(const image* of) { return here().cuda.wait_stream(of->home->stream) == 0; }
// For those who ask what runs.
inline void set_phase(queue* at, pause_phase phase) {
  here().looking.take();
  at->phase = phase;
  here().looking.give();
}
inline u32 words_of(const repeat* again) { return (again->blocks + 31) / 32; }
// Whether the blocks that decline are those of the queue's last launch, if any do.
inline bool is_asked(const queue* at) {
  const launched it = last_of(at);
  return it.what->home == at->asked_of && it.again != nullptr && it.again->number == at->asked_number && it.again->blocks != 0;
}
// Reads which blocks of the part that ran have declined; null if that fails. The caller frees it.
__cuinstr_once u32* read_declined(const queue* at, const repeat* again) {
  const driver& cuda = here().cuda;
  const u32 count = words_of(again);
  u32* found = (u32*)__cuinstr_c_calloc(count, 4);
  if (found == nullptr) return nullptr;
  u32* const staging = at->asked_of->staging;
  const bool is_read = cuda.to_host(staging, again->bitmaps[at->turn], count * 4ul, at->home->stream) == 0 && has_arrived(at->asked_of);
  for (u32 word = 0; word < count && is_read; ++word) found[word] = staging[word] & (at->part != nullptr ? at->part[word] : ~0u);
  if (is_read) return found;
  __cuinstr_c_free(found);
  return nullptr;
}
// Writes such a list to a bitmap.
__cuinstr_once bool write_bitmap(const image* of, address to, const u32* from, u32 count) {
  u32* const staging = of->staging;
  __builtin_memcpy(staging, from, count * 4ul);
  return here().cuda.to_device(to, staging, count * 4ul, of->home->stream) == 0 && has_arrived(of);
}
// How many bits are set, and the first and the last of them.
__cuinstr_once u32 count_bits(const u32* words, u32 count, u32& first, u32& last) {
  u32 bits = 0;
  for (u32 word = 0; word < count; ++word) {
    if (words[word] == 0) continue;
    if (bits == 0) first = 32 * word + u32(__builtin_ctz(words[word]));
    last = 32 * word + 31 - u32(__builtin_clz(words[word]));
    bits += u32(__builtin_popcount(words[word]));
  }
  return bits;
}
// All blocks have run, or those that are left never will: the next launch finds everything as it was.
__cuinstr_once bool restore(queue* at) {
  const driver& cuda = here().cuda;
  const image* of = at->asked_of;
  const launched it = last_of(at);
  if (is_asked(at)) {
    const address first = it.again->bitmaps[0];
    // A kernel of a graph brings no number, and the request still stands where it was written.
    const memory_write writes[] = {write_of(of->pause_at, 0, 2), write_of(of->pause_at + 24, 0, 5), write_of(of->pause_at + 4, 0, 2), write_of(of->pause_at + 8, ~0u, 2),
                                   write_of(of->pause_at + 32, first, 5), write_of(of->pause_at + 40, 0, 5)};
    const bool is_done = cuda.clear(first, 0, words_of(it.again), of->home->stream) == 0 && cuda.write_all(of->home->stream, sizeof writes / sizeof *writes, writes, 0) == 0;
    if (!is_done || !has_arrived(of)) return false;
  }
  __cuinstr_c_free(at->part);
  at->part = nullptr;
  at->turn = 0;
  at->is_rest = false;
  return true;
}
// The launch has drained: are blocks of it left? Nothing changes if that is not known yet.
__cuinstr_once void settle(queue* at) {
  const launched it = last_of(at);
  const image* of = at->asked_of;
  // What is known of a stop comes first.
  if (__atomic_load_n(&here().memory->records[of->index].published, __ATOMIC_ACQUIRE) != 0) return;
  at->left = 0;
  // Blocks that are left of one that was stopped never run.
  if (is_asked(at) && at->halted != at->running) {
    u32* found = read_declined(at, it.again);
    if (found == nullptr) return;
    const u32 count = words_of(it.again);
    for (u32 word = 0; word < count && at->is_beside; ++word) found[word] &= ~at->beside_part[word];
    at->left = count_bits(found, count, at->first, at->last);
    if (at->is_beside && !write_bitmap(of, it.again->bitmaps[at->turn], found, count)) return __cuinstr_c_free(found);
    __cuinstr_c_free(at->part);
    at->part = found;
  }
  if (at->left == 0 && !restore(at)) return;
  __cuinstr_c_free(at->beside_part);
  at->beside_part = nullptr;
  at->is_taken_back = at->is_beside = at->is_first_over = false;
  set_phase(at, at->left != 0 ? resting : unasked);
}
// Half a result is no success.
__cuinstr_once void give_up(const queue* at, int error) {
  text message;
  message << "cuinstr: error: kernel `" << last_of(at).what->name << "` was paused, and the driver refuses to launch its rest (error " << u32(error)
          << "): the process ends here with status 124\n";
  message.write_to(2);
  __cuinstr_c_fflush(nullptr);
  __cuinstr_c_exit(124);
}
// Launches the kernel of the queue's last launch again.
__cuinstr_once int launch_again(const queue* at, void* stream) {
  const launched it = last_of(at);
  const repeat& again = *it.again;
  unsigned long size = again.used;
  void* extra[] = {(void*)1, again.arguments, (void*)2, &size, nullptr};
  const grid_size grid = again.grid, block = again.block;
  return here().cuda.launch(it.what->function, grid.x, grid.y, grid.z, block.x, block.y, block.z, again.shared, stream, nullptr, size != 0 ? extra : nullptr);
}
// Launches the kernel for the blocks that are left, past the stream that is held.
__cuinstr_once void launch_rest(queue* at) {
  state& all = here();
  const driver& cuda = all.cuda;
  const launched it = last_of(at);
  const image* of = it.what->home;
  void* stream = of->home->beside[at->index % beside_count];
  const u32 number = at->running;
  it.again->word = request_to_rest();
  const address missing = it.again->bitmaps[at->turn], declined = it.again->bitmaps[1 - at->turn], word = at->home->memory + at->index * 4u;
  const stop_record* record = &all.memory->records[of->index];
  const address begin_at = at->home->memory + address((char*)&record->start_ns - (char*)all.memory);
  u64 limit = limit_of(it.what);
  if (limit != 0) limit = limit > at->ran_ns ? limit - at->ran_ns : 1;
  const memory_write before[] = {
      write_of(of->pause_at, it.again->word, 2), write_of(of->pause_at + 4, at->first, 2), write_of(of->pause_at + 8, at->last - at->first, 2), write_of(of->pause_at + 12, it.again->blocks, 2),
      write_of(of->pause_at + 24, missing, 5), write_of(of->pause_at + 32, declined, 5), write_of(of->control_at + 32, 0, 5),
      write_of(of->control_at + 24, limit, 5), write_of(begin_at, 0, 5), write_of(word, number, 2)};
  const memory_write after[] = {write_of(of->control_at + 24, 0, 5), write_of(word, number | done_bit, 2)};
  // It runs from now on, by what the watch knows: the GPU says so later.
  all.looking.take();
  at->phase = unasked;
  at->is_rest = at->runs = true;
  at->began = now_ns() - at->ran_ns;
  at->turn = 1 - at->turn;
  all.looking.give();
  int error = cuda.clear(declined, 0, words_of(it.again), stream);
  if (error == 0) error = cuda.write_all(stream, sizeof before / sizeof *before, before, 0);
  if (error == 0) error = launch_again(at, stream);
  if (error == 0) error = cuda.write_all(stream, sizeof after / sizeof *after, after, 0);
  // After a stop that trapped, every call answers so, and the program sees that by itself.
  if (error != 0 && all.trapped_at == 0) give_up(at, error);
}
// Takes the request back. Blocks that run may wait for blocks that have declined, so these run beside the others. Both launches share the pause block: the bitmap of
// those that were passed over tells which blocks both pass over, and these are left in the end.
__cuinstr_once void take_back(queue* at) {
  state& all = here();
  const driver& cuda = all.cuda;
  const launched it = last_of(at);
  const image* of = at->asked_of;
  if (!write_request(of, 0)) return;
  at->is_taken_back = true;
  if (!is_asked(at)) return;
  u32* found = read_declined(at, it.again);
  if (found == nullptr) return;
  const u32 count = words_of(it.again);
  u32 first, last;
  if (count_bits(found, count, first, last) == 0) return __cuinstr_c_free(found);
  const address missing = it.again->bitmaps[2], passed_over = it.again->bitmaps[3];
  const memory_write writes[] = {write_of(of->pause_at + 40, passed_over, 5), write_of(of->pause_at + 24, missing | 1, 5)};
  const bool is_set = cuda.clear(passed_over, 0, count, of->home->stream) == 0 && write_bitmap(of, missing, found, count) &&
      cuda.write_all(of->home->stream, 2, writes, 0) == 0 && has_arrived(of);
  if (!is_set) return __cuinstr_c_free(found);
  all.looking.take();
  all.memory->besides[at->index] = 0;
  at->beside_part = found;
  at->is_beside = true;
  all.looking.give();
  void* stream = of->home->beside[beside_count + at->index % beside_count];
  const memory_write after = write_of(at->home->memory + address((char*)&all.memory->besides[at->index] - (char*)all.memory), at->running, 2);
  int error = launch_again(at, stream);
  if (error == 0) error = cuda.write_all(stream, 1, &after, 0);
  if (error != 0 && all.trapped_at == 0) give_up(at, error);
}
// Asks the launch that runs to pause, unless it can't.
__cuinstr_once void ask(queue* at, u64 now) {
  at->runs_on = why_it_runs_on(at, now);
  image* of = last_of(at).what->home;
  if (at->runs_on != nullptr) return;
  at->asked_number = at->running;
  at->asked_of = of;
  at->unknown_since = 0;
  of->paused_in = at;
  // The launch may drain as soon as the request is sent, and `pause` lists no launch that is over. So the phase comes first. It counts from here on, whether
  // the request has arrived or not.
  set_phase(at, declining);
  if (!send_request(of, last_of(at).again->word)) set_phase(at, unasked);
}
// Its context is lost or gone, and all that was in its streams.
__cuinstr_once void drop(queue* at) {
  at->phase = unasked;
  at->is_rest = at->is_taken_back = at->is_beside = at->is_first_over = false;
  __cuinstr_c_free(at->part);
  __cuinstr_c_free(at->beside_part);
  at->part = at->beside_part = nullptr;
}
// One queue, while launches pause or come back.
__cuinstr_once void tend(queue* at, bool pauses, bool may_ask, u64 now) {
  const driver& cuda = here().cuda;
  int answer = cuda.set_context(at->home->handle);
  if (answer == 0) answer = cuda.query_stream(at->home->stream);
  if (answer != 0 && answer != 600) return drop(at);
  if (at->phase == declining && at->running != at->asked_number) {
    // What was asked came to its end before the gate was closed, and this is another one, which does not obey that.
    at->phase = unasked;
    at->is_taken_back = false;
    at->asked_of->paused_in = nullptr;
  }
  if (at->phase == declining && !at->runs && answer == 600) {
    // Which blocks have declined can't be read yet.
    if (at->unknown_since == 0) at->unknown_since = now;
    if (!pauses && now - at->unknown_since > drain_ns) give_up(at, answer);
  } else if (at->phase == declining && !at->runs) settle(at);
  else if (at->is_rest && !at->runs && at->phase == unasked) restore(at);
  if (pauses && at->phase == unasked && at->runs && may_ask) ask(at, now);
  else if (pauses && at->phase == declining && at->is_taken_back && !at->is_beside) at->is_taken_back = !write_request(at->asked_of, last_of(at).again->word);
  else if (!pauses && at->phase == declining && at->runs && !at->is_taken_back) take_back(at);
  else if (!pauses && at->phase == resting) launch_rest(at);
  if (!pauses || !at->runs) at->runs_on = nullptr;
}
// Whether what is written now gets past the running kernels. It does not while the driver loads code of the program: that waits for all kernels, and whatever
// comes later waits for that, in all streams. Behind a closed gate it would wait for ever. So no gate is closed before all threads are out of the driver and a
// word that was written then has arrived.
__cuinstr_once bool gets_through() {
  state& all = here();
  const driver& cuda = all.cuda;
  const bool is_free = all.setting_up.try_for(0);
  if (is_free) all.setting_up.give();
  if (!is_free || __atomic_load_n(&shared().inside, __ATOMIC_SEQ_CST) != 0) return all.is_probed = false;
  bool is_through = true;
  for (const context* one = all.contexts; one != nullptr; one = one->next) {
    if (cuda.set_context(one->handle) != 0) continue;
    if (!all.is_probed) cuda.write(one->stream, one->memory + address((char*)&all.memory->probe - (char*)all.memory), 1, 0);
    is_through &= cuda.query_stream(one->stream) != 600;
  }
  all.is_probed = true;
  return is_through;
}
__cuinstr_once void set_has_gates(bool has) {
  state& all = here();
  if (__atomic_exchange_n(&all.has_gates, has, __ATOMIC_SEQ_CST) != has) __atomic_add_fetch(&shared().gated, has ? 1 : -1, __ATOMIC_SEQ_CST);
}
// At the process's end nothing is left that would open them.
__cuinstr_once void open_gates() {
  state& all = here();
  for (u32 index = 0; all.has_gates && index < all.queue_count; ++index) set_gate(all.queues[index], true);
  set_has_gates(false);
}
// Does what is due for all queues. Only the watch's own thread calls this.
__cuinstr_once void tend_all() {
  state& all = here();
  const u64 now = now_ns();
  const bool pauses = can_pause();
  // At its end a process runs what is in its streams, or does not: its own affair.
  if ((!pauses && !all.has_gates) || all.leaves_at != 0) return;
  const u32 count = __atomic_load_n(&all.queue_count, __ATOMIC_ACQUIRE);
  if (pauses && !all.has_gates && !gets_through()) {
    for (u32 index = 0; index < count; ++index) all.queues[index]->runs_on = all.is_probed ? "the driver loads code, which waits for it" : "a call of the program waits for it";
    return;
  }
  all.is_probed = false;
  set_has_gates(true);
  for (u32 index = 0; index < count && pauses; ++index) set_gate(all.queues[index], false);
  // What is being set up may be a launch of the same module in another stream.
  const bool may_ask = pauses && all.setting_up.try_for(0);
  if (may_ask) all.setting_up.give();
  bool is_over = !pauses;
  for (u32 index = 0; index < count; ++index) {
    queue* one = all.queues[index];
    look(one, now);
    if (one->length != 1 && one->home != nullptr && (one->runs || !is_plain(one))) tend(one, pauses, may_ask, now);
    if (is_plain(one) && one->asked_of != nullptr) {
      one->asked_of->paused_in = nullptr;
      one->asked_of = nullptr;
    }
    const bool opens = !pauses && is_plain(one);
    if (opens) set_gate(one, true);
    is_over &= opens;
  }
  set_has_gates(!is_over);
  if (__atomic_load_n(&all.leaves_at, __ATOMIC_SEQ_CST) != 0) open_gates();
}
inline bool is_tending() { return can_pause() || here().has_gates; }
// Somebody asked for the end of all launches: what is left of paused ones runs, and is stopped with the others.
__cuinstr_once void wake_resting() {
  for (u32 index = 0; index < here().queue_count; ++index) {
    queue* one = here().queues[index];
    if (one->phase != resting) continue;
    here().cuda.set_context(one->home->handle);
    launch_rest(one);
  }
}

// What it takes to launch the same once more. In `configuration`, the driver's or the runtime's: two extents, shared memory, a stream, and attributes of 72 bytes.
__cuinstr_once repeat describe(const launch_call& call) {
  repeat it = {};
  it.grid = call.grid;
  it.block = call.block;
  it.shared = u32(call.shared);
  if (call.is_cooperative) it.why = "it is a cooperative launch";
  const char* const configuration = (const char*)call.attributes;
  if (configuration != nullptr) {
    __builtin_memcpy(&it.grid, configuration, 12);
    __builtin_memcpy(&it.block, configuration + 12, 12);
    __builtin_memcpy(&it.shared, configuration + 24, 4);
    const char* attributes = *(const char* const*)(configuration + 40);
    const u32 count = *(const u32*)(configuration + 48);
    for (u32 index = 0; index < count; ++index) {
      const u32* at = (const u32*)(attributes + 72ul * index);
      // None, hints, and what says only when the launch may begin.
      const bool is_plain = at[0] == 0 || at[0] == 1 || at[0] == 3 || at[0] == 6 || at[0] == 8 || at[0] == 14 || at[0] == 16;
      if (at[0] == 2 && at[2] != 0) it.why = "it is a cooperative launch";
      else if ((at[0] == 4 || at[0] == 11) && (at[2] > 1 || at[3] > 1 || at[4] > 1)) it.why = "it is launched in clusters";
      else if (!is_plain && at[0] != 2 && at[0] != 4 && at[0] != 5 && at[0] != 11 && it.why == nullptr) it.why = "it is launched with attributes that can't be repeated";
    }
  }
  const u64 rows = u64(it.grid.x) * it.grid.y, blocks = rows * it.grid.z;
  if ((rows > most_blocks || blocks > most_blocks) && it.why == nullptr) it.why = "its grid has more than 2^28 blocks";
  it.blocks = it.why == nullptr ? u32(blocks) : 0;
  return it;
}
// Finds out where a kernel's arguments lie in a buffer of all.
__cuinstr_once void learn_parts(kernel* of) {
  const driver& cuda = here().cuda;
  unsigned long offset = 0, size = 0;
  int answer = 801;
  while (cuda.parameter != nullptr && (answer = cuda.parameter(of->function, of->part_count, &offset, &size)) == 0) ++of->part_count;
  of->parts = of->part_count != 0 ? (kernel::part*)__cuinstr_c_calloc(of->part_count, sizeof(kernel::part)) : nullptr;
  // There is no such parameter: it has no more.
  of->unknown = answer != 1 || (of->part_count != 0 && of->parts == nullptr);
  for (u32 index = 0; index < of->part_count && !of->unknown; ++index) cuda.parameter(of->function, index, &of->parts[index].offset, &of->parts[index].size);
}
// Gets an image's pause block ready: no grid has no blocks, so none declines yet.
__cuinstr_once void learn_pauses(image* of) {
  const driver& cuda = here().cuda;
  unsigned long size = 0;
  of->unpausable = nullptr;
  if (!of->works) of->unpausable = "it is machine code without polls";
  else if (cuda.allocate == nullptr || cuda.parameter == nullptr || cuda.launch == nullptr) of->unpausable = "the driver is older than CUDA 12.4";
  else if (cuda.global(&of->pause_at, &size, of->handle, "cuinstr_pause_v1") != 0 || size != sizeof(pause_block)) of->unpausable = "it was compiled without --pausable";
  else if (cuda.allocate(&of->request, 64) != 0) of->unpausable = "there is no memory for a pause";
  if (of->unpausable != nullptr) return;
  const pause_block words = {0, 0, ~0u, 0, of->request, 0, 0, 0};
  const bool is_set = cuda.clear(of->request, 0, 16, of->home->stream) == 0 && cuda.to_device(of->pause_at, &words, sizeof words, of->home->stream) == 0 &&
      cuda.wait_stream(of->home->stream) == 0;
  if (!is_set) of->unpausable = "its pause block can't be written";
  // All its code is loaded now: that would wait for a paused launch later, and keep everything waiting.
  u32 count = 0;
  if (cuda.count_functions == nullptr || cuda.list_functions == nullptr || cuda.load_function == nullptr || cuda.count_functions(&count, of->handle) != 0) return;
  void** functions = (void**)__cuinstr_c_calloc(count, sizeof(void*));
  if (functions != nullptr && cuda.list_functions(functions, count, of->handle) == 0) {
    for (u32 index = 0; index < count; ++index) cuda.load_function(functions[index]);
  }
  __cuinstr_c_free(functions);
}
// Room for a bit of each block. What was there before is not given back: launches on their way may point to it.
__cuinstr_once void make_room(image* of, u32 blocks) {
  const driver& cuda = here().cuda;
  if (of->unpausable != nullptr || blocks <= of->room) return;
  u32 words = 32;
  while (words < (blocks + 31) / 32) words *= 2;
  address made[4] = {};
  for (address& one : made) {
    const bool is_made = cuda.allocate(&one, words * 4ul) == 0 && cuda.clear(one, 0, words, of->home->stream) == 0;
    if (!is_made || cuda.wait_stream(of->home->stream) != 0) return;
  }
  // Read and write; private, of nobody's file.
  void* staging = __cuinstr_c_mmap(nullptr, words * 4ul, 3, 0x22, -1, 0);
  if (staging == (void*)-1l || cuda.register_memory(staging, words * 4ul, 1) != 0) return;
  of->staging = (u32*)staging;
  __builtin_memcpy(of->bitmaps, made, sizeof made);
  of->room = words * 32;
}
// Keeps what it takes to launch it again, in the place of a launch that is over.
__cuinstr_once void keep(launched& it, const launch_call& call, const repeat& about, u32 number) {
  const kernel* what = it.what;
  if (it.again == nullptr) it.again = (repeat*)__cuinstr_c_calloc(1, sizeof(repeat));
  repeat* own = it.again;
  if (own == nullptr) return;
  unsigned char* const arguments = own->arguments;
  const u32 room = own->room;
  *own = about;
  own->arguments = arguments;
  own->room = room;
  own->number = number;
  const unsigned char* given = nullptr;
  unsigned long size = 0;
  for (void** one = call.extra; one != nullptr && *one != nullptr; one += 2) {
    if (*one == (void*)1) given = (const unsigned char*)one[1];
    else if (*one == (void*)2) size = *(const unsigned long*)one[1];
  }
  if (given == nullptr && what->part_count != 0 && !what->unknown) size = what->parts[what->part_count - 1].offset + what->parts[what->part_count - 1].size;
  if (own->why == nullptr && given == nullptr && what->unknown) own->why = "the driver does not say what its arguments are";
  // The driver refuses that, too.
  if (own->why == nullptr && given == nullptr && size != 0 && call.arguments == nullptr) own->why = "it has no arguments";
  if (size > own->room) {
    __cuinstr_c_free(own->arguments);
    own->arguments = (unsigned char*)__cuinstr_c_calloc(size, 1);
    own->room = own->arguments != nullptr ? u32(size) : 0;
  }
  if (size > own->room && own->why == nullptr) own->why = "there is no memory for its arguments";
  if (own->why != nullptr) {
    own->blocks = 0;
    return;
  }
  own->used = u32(size);
  if (given != nullptr) __builtin_memcpy(own->arguments, given, size);
  for (u32 index = 0; given == nullptr && index < what->part_count; ++index) {
    __builtin_memcpy(own->arguments + what->parts[index].offset, call.arguments[index], what->parts[index].size);
  }
}
