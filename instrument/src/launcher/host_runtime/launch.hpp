// Launches, on their way through: marked in their stream before and after.

// As the source said it; kept for the thread that goes on to launch.
struct launch_place {
  const char* file;
  int line;
};
inline launch_place& written() {
  static __thread launch_place place;
  return place;
}
const long legacy_stream = 1, own_stream = 2;
// What hosts do in their own ways: the driver's function of what is launched; the context that a first launch makes; word of a kernel that is launched
// for the first time.
int function_of(const launch_call& call, void** function);
void make_context();
void meet(kernel* met);
// Others may ask this process something from now on.
void begin_listening();
// Whether launches of machine code without polls are watched, too: nothing but the process's end ends those.
bool watches_unpolled();

__cuinstr_once bool ends_like(const char* name, u32 length, const named_limit& limit) {
  if (length != limit.length) return false;
  for (u32 at = 0; at < length; ++at) {
    if (name[at] != limit.name[at]) return false;
  }
  return true;
}
// Whether the limit names the kernel: by its symbol, by its name as C++ writes it, with or without scopes and template arguments.
__cuinstr_once bool names(const named_limit& limit, const char* mangled, const char* name) {
  u32 length = 0;
  while (mangled[length] != 0) ++length;
  if (ends_like(mangled, length, limit)) return true;
  u32 end = 0, last = 0, open = 0;
  int depth = 0;
  for (; name[end] != 0; ++end) {
    depth += (name[end] == '<') - (name[end] == '>');
    if (name[end] == '<' && depth == 1) open = end;
    if (depth == 0 && name[end] == ':') last = end + 1;
  }
  const u32 bare = open > last ? open : end;
  return ends_like(name, end, limit) || ends_like(name + last, end - last, limit) || ends_like(name, bare, limit) ||
      ends_like(name + last, bare - last, limit);
}
// `scope::name<arguments>` of what the compiler calls it: without a type in front and parameters behind.
__cuinstr_once const char* readable(const char* mangled) {
  int status = 1;
  char* name = &__cuinstr_c_demangle != nullptr ? __cuinstr_c_demangle(mangled, nullptr, nullptr, &status) : nullptr;
  if (name == nullptr) return mangled;
  const char anonymous[] = "(anonymous namespace)";
  char* from = name;
  int depth = 0;
  for (char* at = name; *at != 0; ++at) {
    u32 same_to = 0;
    while (at[same_to] != 0 && at[same_to] == anonymous[same_to]) ++same_to;
    if (same_to == sizeof anonymous - 1) at += same_to - 1;
    else if (*at == '<') ++depth;
    else if (*at == '>') --depth;
    else if (depth == 0 && *at == ' ') from = at + 1;
    else if (depth == 0 && *at == '(') *at-- = 0, at += 1;
    if (*at == 0) break;
  }
  return from;
}
__cuinstr_once bool set_up_memory() {
  state& at = here();
  if (at.memory != nullptr) return true;
  // Read and write; shared, of nobody's file.
  void* memory = __cuinstr_c_mmap(nullptr, sizeof(shared_memory), 3, 0x21, -1, 0);
  if (memory == (void*)-1l) {
    complain("there is no memory for the control of launches");
    return false;
  }
  at.memory = (shared_memory*)memory;
  // A library that is closed must not take the watch's text along. Now or later, loaded already, never unloaded.
  struct {
    const char* path;
    void* base;
    const char* symbol;
    void* place;
  } self = {};
  if (&__cuinstr_c_dladdr != nullptr && __cuinstr_c_dladdr(&held_state<void>::value, &self) != 0 && self.path != nullptr) {
    __cuinstr_c_dlopen(self.path, 1 | 4 | 0x1000);
  }
  return begin_watch();
}
__cuinstr_once context* find_context() {
  driver& cuda = here().cuda;
  void* handle = nullptr;
  u64 id = 0;
  if (cuda.context(&handle) != 0 || handle == nullptr || cuda.context_id(handle, &id) != 0) return nullptr;
  for (context* at = here().contexts; at != nullptr; at = at->next) {
    if (at->id == id) return at;
  }
  context* made = (context*)__cuinstr_c_calloc(1, sizeof(context));
  if (made == nullptr) return nullptr;
  made->id = id;
  made->handle = handle;
  int lowest = 0, highest = 0;
  cuda.priorities(&lowest, &highest);
  // For all contexts of the process; one that has it already says 712.
  const int registered = cuda.register_memory(here().memory, sizeof(shared_memory), 1 | 2);
  if ((registered != 0 && registered != 712) || cuda.device_pointer(&made->memory, here().memory, 0) != 0 ||
      cuda.make_stream(&made->stream, 1, highest) != 0) {
    complain("the driver refuses memory or a stream");
    return nullptr;
  }
  for (void*& beside : made->beside) {
    if (asked().pausable && cuda.make_stream(&beside, 1, lowest) != 0) complain("the driver refuses a stream");
  }
  made->next = here().contexts;
  here().contexts = made;
  return made;
}
// The place of a record that no image has; that of one whose module is gone rather than a new one.
__cuinstr_once u32 free_record() {
  state& at = here();
  for (image* of = at.images; of != nullptr; of = of->next) {
    if (of->handle != nullptr || !of->has_record) continue;
    of->has_record = false;
    __builtin_memset(&at.memory->records[of->index], 0, sizeof(stop_record));
    return of->index;
  }
  return at.image_count;
}
__cuinstr_once image* find_image(void* handle, context* home) {
  state& at = here();
  for (image* of = at.images; of != nullptr; of = of->next) {
    if (of->handle == handle && of->home == home) return of;
  }
  image* made = (image*)__cuinstr_c_calloc(1, sizeof(image));
  if (made == nullptr) return nullptr;
  made->handle = handle;
  made->home = home;
  unsigned long size = 0;
  driver& cuda = at.cuda;
  control& words = at.memory->words_of_image;
  made->reason = "was compiled without polls";
  made->works = cuda.global(&made->control_at, &size, handle, "cuinstr_control_v1") == 0 && size == 1192 &&
      cuda.global(&made->flag, &size, handle, "cuinstr_flag_v1") == 0 &&
      cuda.to_host(&words, made->control_at, sizeof words, home->stream) == 0 && cuda.wait_stream(home->stream) == 0 && words.version == 1;
  if (made->works && words.host_record != 0) {
    made->works = false;
    made->is_foreign = true;
    made->reason = "is armed by somebody else";
  }
  if (made->works) made->index = free_record();
  if (made->works && made->index == record_count) {
    made->works = false;
    made->reason = "came after 700 others of this process, and no more are watched";
  }
  const settings& set = asked();
  if (made->works) {
    // A launch with the number 1 is one that nobody armed: a kernel's two ends pass it by.
    if (words.launch == 1) words.launch = 2;
    made->launch = words.launch;
    words.action = set.leave ? 1 : 0;
    if (set.fuel != 0) words.fuel = set.fuel;
    words.host_record = home->memory + address((char*)&at.memory->records[made->index] - (char*)at.memory);
    made->works = cuda.to_device(made->control_at, &words, sizeof words, home->stream) == 0 && cuda.wait_stream(home->stream) == 0;
    made->has_record = true;
    if (made->index == at.image_count) ++at.image_count;
  }
  if (set.pausable) learn_pauses(made);
  made->next = at.images;
  __atomic_store_n(&at.images, made, __ATOMIC_RELEASE);
  return made;
}
inline kernel** bucket(const void* key) { return &here().kernels[((unsigned long)key >> 4) * 0x9e3779b97f4a7c15ull >> 54]; }
__cuinstr_once kernel* find_kernel(const launch_call& call, context* home) {
  for (kernel* one = *bucket(call.what); one != nullptr; one = one->next) {
    if (one->key == call.what && one->context_id == home->id) return one;
  }
  driver& cuda = here().cuda;
  void *function = nullptr, *handle = nullptr;
  if (function_of(call, &function) != 0 || cuda.function_module(&handle, function) != 0) return nullptr;
  image* of = find_image(handle, home);
  kernel* made = (kernel*)__cuinstr_c_calloc(1, sizeof(kernel));
  if (of == nullptr || made == nullptr) return nullptr;
  made->key = call.what;
  made->context_id = home->id;
  made->home = of;
  made->mangled = "?";
  if (cuda.function_name != nullptr) cuda.function_name(&made->mangled, function);
  made->name = readable(made->mangled);
  made->function = function;
  settings& set = asked();
  if (set.pausable) learn_parts(made);
  made->timeout_ns = set.timeout_ns;
  for (u32 index = 0; index < set.limit_count; ++index) {
    if (!names(set.limits[index], made->mangled, made->name)) continue;
    made->timeout_ns = set.limits[index].timeout_ns;
    set.limits[index].used = 1;
  }
  meet(made);
  made->next = *bucket(call.what);
  *bucket(call.what) = made;
  return made;
}
// A queue in which nothing is on its way, of a stream that launches no more, perhaps: if it does, it gets another one.
__cuinstr_once queue* idle_stream() {
  state& at = here();
  queue* found = nullptr;
  // At the process's end the lock is never given back.
  if (at.finished || !at.watching.try_for(drain_ns)) return nullptr;
  const u64 now = now_ns();
  for (queue* one = at.streams; one != nullptr && found == nullptr; one = one->next) {
    look(one, now);
    if (__atomic_load_n(&one->users, __ATOMIC_ACQUIRE) == 0 && !one->runs && one->running == one->number && is_plain(one)) found = one;
  }
  at.watching.give();
  return found;
}
// Of a captured launch whose graph is gone, and with it all that was made of the graph.
__cuinstr_once queue* released_queue() {
  state& at = here();
  at.releasing.take();
  queue* found = at.released;
  if (found != nullptr) at.released = found->next;
  at.releasing.give();
  return found;
}
// The driver calls this, and may be called by nothing here.
__cuinstr_once void release_queue(void* data) {
  queue* one = (queue*)data;
  state& at = here();
  at.releasing.take();
  one->next = at.released;
  at.released = one;
  at.releasing.give();
}
// Has the graph that the stream is being captured into tell when it is gone.
__cuinstr_once void await_release(queue* one, void* stream) {
  const driver& cuda = here().cuda;
  if (cuda.capture_info == nullptr || cuda.make_object == nullptr || cuda.keep_object == nullptr || cuda.release_object == nullptr) return;
  int status = 0;
  u64 id = 0;
  void *graph = nullptr, *object = nullptr;
  if (cuda.capture_info(stream, &status, &id, &graph, nullptr, nullptr) != 0 || graph == nullptr) return;
  // It is told of by a call that holds up nobody, and the graph takes our hold of it over.
  if (cuda.make_object(&object, one, release_queue, 1, 1) != 0) return;
  if (cuda.keep_object(graph, object, 1, 1) != 0) cuda.release_object(object, 1);
}
__cuinstr_once queue* new_queue(u32 length) {
  state& at = here();
  queue* made = at.queue_count < word_count ? (queue*)__cuinstr_c_calloc(1, sizeof(queue)) : nullptr;
  if (made == nullptr) return nullptr;
  made->length = length;
  made->ring = (launched*)__cuinstr_c_calloc(length, sizeof(launched));
  if (made->ring == nullptr) return nullptr;
  made->index = at.queue_count;
  set_gate(made, true);
  at.queues[made->index] = made;
  __atomic_store_n(&at.queue_count, made->index + 1, __ATOMIC_RELEASE);
  return made;
}
// So many streams have queues of their own before those of idle ones are used again.
const u32 many_streams = 256;
__cuinstr_once queue* find_queue(void* stream, context* home, bool capturing) {
  state& at = here();
  const void* thread = stream == (void*)own_stream ? &written() : nullptr;
  for (queue* one = at.streams; one != nullptr && !capturing; one = one->next) {
    if (one->stream == stream && one->thread == thread && one->home == home) return one;
  }
  queue* found = capturing ? released_queue() : at.stream_count >= many_streams ? idle_stream() : nullptr;
  queue* const made = found == nullptr ? new_queue(capturing ? 1 : ring_length) : nullptr;
  if (made != nullptr) found = made;
  else if (found == nullptr && !capturing) found = idle_stream();
  if (found == nullptr) {
    if (!at.is_full) {
      text message;
      message << "cuinstr: warning: " << word_count << " streams and captured launches are watched, and no more can be: launches in others have no limit\n";
      message.write_to(2);
    }
    at.is_full = true;
    return nullptr;
  }
  found->home = home;
  found->stream = stream;
  found->thread = thread;
  if (capturing) {
    await_release(found, stream);
  } else if (made != nullptr) {
    found->next = at.streams;
    at.streams = found;
    ++at.stream_count;
  }
  return found;
}
// In a process that was forked nothing of its parent's is left but the memory.
__cuinstr_once void begin_process() {
  state& at = here();
  const int process = __cuinstr_c_getpid();
  if (at.process != 0) __builtin_memset((void*)&at, 0, sizeof at);
  at.process = process;
  if (asked().fuel != 0 && !compiled_with('f')) {
    text message;
    message << "cuinstr: warning: CUINSTR_FUEL has no effect: nothing in this program is compiled with --fuel\n";
    message.write_to(2);
  }
  join_process();
  if (!load_driver(at.cuda) || !set_up_memory()) return;
  if (&__cuinstr_c_on_exit != nullptr) __cuinstr_c_on_exit(note_end, nullptr);
  begin_listening();
}
struct way {
  kernel* what;
  queue* where;
};
// What the image's one clock must allow for.
__cuinstr_once void count_in(image* of, const way& on) {
  if (of->only == nullptr) of->only = on.where;
  of->several |= of->only != on.where;
  of->unlimited |= on.what->timeout_ns == 0;
  if (on.what->timeout_ns > of->longest_ns) of->longest_ns = on.what->timeout_ns;
}
// A process that is paused launches nothing: the program notices only time. A child that was forked is not paused.
inline void wait_while_held() {
  while (__builtin_expect(__atomic_load_n(&shared().held, __ATOMIC_SEQ_CST), 0) != 0 && here().process == __cuinstr_c_getpid()) sleep_ns(1000000ull);
}
// Takes the lock under which launches are prepared. A pause that comes later sees a thread that has it and finds nothing held.
__cuinstr_once void begin_to_set_up() {
  lock& setting_up = here().setting_up;
  for (setting_up.take(); __atomic_load_n(&shared().held, __ATOMIC_SEQ_CST) != 0; setting_up.take()) {
    setting_up.give();
    wait_while_held();
  }
}
// In a queue that takes launches, what a pause needs to know of this one.
__cuinstr_once void prepare_pause(const way& on, bool capturing, repeat& about) {
  image* of = on.what->home;
  if (capturing && of->unpausable == nullptr) of->unpausable = "its module is part of a graph";
  if (on.where == nullptr && of->unpausable == nullptr) of->unpausable = "more streams run its module than are watched";
  if (capturing || of->unpausable != nullptr) return;
  make_room(of, about.blocks);
  if (of->room < about.blocks && about.why == nullptr) about.why = "there is no memory for a pause";
  __builtin_memcpy(about.bitmaps, of->bitmaps, sizeof about.bitmaps);
}
__cuinstr_once way prepare(const launch_call& call, repeat& about) {
  state& at = here();
  way on = {};
  if (at.process != __cuinstr_c_getpid()) {
    // A lock that another thread held at the fork is nobody's.
    if (at.process != 0) at.setting_up.held = 0;
    at.setting_up.take();
    if (at.process != __cuinstr_c_getpid()) begin_process();
    at.setting_up.give();
  }
  if (at.fails) return on;
  begin_to_set_up();
  // What is set up here is no part of a graph that a stream is recording.
  int mode = 2, status = 0;
  void* context_handle = nullptr;
  at.cuda.context(&context_handle);
  // The first launch makes the context anyway.
  if (context_handle == nullptr) make_context();
  at.cuda.capture_mode(&mode);
  context* home = find_context();
  if (home != nullptr && at.cuda.is_capturing(call.stream, &status) == 0) {
    on.what = find_kernel(call, home);
    if (on.what != nullptr && (on.what->home->works || (watches_unpolled() && !on.what->home->is_foreign && (on.what->timeout_ns != 0 || asked().pausable)))) on.where = find_queue(call.stream, home, status != 0);
    if (on.what != nullptr && asked().pausable) prepare_pause(on, status != 0, about);
    if (on.where != nullptr) {
      count_in(on.what->home, on);
      __atomic_add_fetch(&on.where->users, 1, __ATOMIC_RELAXED);
      __atomic_add_fetch(&on.what->home->users, 1, __ATOMIC_SEQ_CST);
    }
  }
  at.cuda.capture_mode(&mode);
  at.setting_up.give();
  return on;
}
// So many launches of a stream are handed over at a time, where they can be paused: a stream that is full keeps the driver from launching the rest of one that is
// paused.
const u32 most_on_the_way = 128;
__cuinstr_once void wait_for_room(queue* at, void* stream) {
  state& all = here();
  for (;; sleep_ns(50000ull)) {
    all.looking.take();
    const sight seen = sight_of(at, 0);
    all.looking.give();
    if (at->number - seen.running <= most_on_the_way || at->number < seen.running || all.cuda.query_stream(stream) != 600) return;
  }
}
// Writes around a launch, in its stream's order.
struct around {
  memory_write before[7], after[3];
  u32 before_count, after_count;
};
__cuinstr_once around writes_around(const way& on, u32 number, u32 blocks, const repeat& about) {
  around it = {};
  const queue* at = on.where;
  image* of = on.what->home;
  const address word = at->home->memory + at->index * 4u, control_at = of->control_at;
  // The launch's own clock stops it if nothing else runs that began later, and needs no driver for it: one that is busy with a full stream, or with
  // loading a kernel while another one hangs, lets nobody through. What a launch that goes around us finds is no clock.
  // Machine code without polls has no control block: its launches are only marked.
  if (of->works) {
    const stop_record* record = &here().memory->records[of->index];
    const address begin_at = at->home->memory + address((char*)&record->start_ns - (char*)here().memory);
    it.before[it.before_count++] = write_of(control_at + 32, 0, 5);
    it.before[it.before_count++] = write_of(control_at + 24, limit_of(on.what), 5);
    it.before[it.before_count++] = write_of(begin_at, 0, 5);
    it.after[it.after_count++] = write_of(control_at + 24, 0, 5);
  }
  const bool pauses = asked().pausable && at->length != 1;
  // Where several streams run the image, another one may have told the pause block something else meanwhile.
  if (pauses && of->unpausable == nullptr) it.before[it.before_count++] = write_of(of->pause_at, about.word, 2);
  if (pauses && of->unpausable == nullptr && (of->several || blocks != of->shown_blocks)) {
    it.before[it.before_count++] = write_of(of->pause_at + 12, blocks, 2);
    it.before[it.before_count++] = write_of(of->pause_at + 32, about.bitmaps[0], 5);
    of->shown_blocks = blocks;
  }
  it.before[it.before_count++] = write_of(word, number, 2);
  it.after[it.after_count++] = write_of(word, number | done_bit, 2);
  if (pauses) it.after[it.after_count++] = wait_for(at->home->memory + address((char*)gate_of(at) - (char*)here().memory));
  return it;
}
inline bool is_paused_elsewhere(const way& on) {
  const queue* in = __atomic_load_n(&on.what->home->paused_in, __ATOMIC_ACQUIRE);
  return in != nullptr && in != on.where && here().process == __cuinstr_c_getpid();
}
__cuinstr_once int launch(launch_call& call) {
  wait_while_held();
  const launch_place place = written();
  written().line = 0;
  const bool pausable = asked().pausable;
  repeat about = {};
  if (pausable) about = describe(call);
  const way on = prepare(call, about);
  if (on.what != nullptr && on.what->launches != nullptr) __atomic_add_fetch(on.what->launches, 1, __ATOMIC_RELAXED);
  // Its blocks would take the rest of a paused launch for theirs.
  while (pausable && on.what != nullptr && is_paused_elsewhere(on)) sleep_ns(50000ull);
  if (on.where == nullptr) return call.run(call);
  // What comes after a stop that has been seen is none of it.
  if (asked().leave && on.what->home->works && __atomic_load_n(&here().memory->records[on.what->home->index].published, __ATOMIC_ACQUIRE) != 0) {
    here().watching.take();
    look_at_all();
    here().watching.give();
  }
  driver& cuda = here().cuda;
  queue* at = on.where;
  at->handing_over.take();
  const u32 number = at->number + 1 < done_bit ? at->number + 1 : 1;
  launched& it = at->ring[number % at->length];
  it.what = on.what;
  it.where.file = place.file;
  it.where.line = u32(place.line);
  it.order = __atomic_add_fetch(&here().launches, 1, __ATOMIC_RELAXED);
  const bool keeps = pausable && at->length != 1;
  about.word = request_to(it.order);
  if (keeps) keep(it, call, about, number);
  __atomic_store_n(&at->number, number, __ATOMIC_RELEASE);
  __atomic_sub_fetch(&on.what->home->users, 1, __ATOMIC_SEQ_CST);
  if (keeps) wait_for_room(at, call.stream);
  if (pausable) enter_driver(false);
  const around writes = writes_around(on, number, keeps && it.again != nullptr ? it.again->blocks : 0, about);
  const int refused = cuda.write_all(call.stream, writes.before_count, writes.before, 0);
  // A driver for some virtual GPUs says that it has no such writes.
  if (refused == 801) complain("the driver can't write in the order of a stream");
  const int result = call.run(call);
  if (refused == 0) cuda.write_all(call.stream, writes.after_count, writes.after, 0);
  if (pausable) leave_driver();
  at->handing_over.give();
  __atomic_sub_fetch(&at->users, 1, __ATOMIC_RELEASE);
  return result;
}
