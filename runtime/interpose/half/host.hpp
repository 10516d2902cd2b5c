// The host that stands between a program and the driver.

__cuinstr_once void* open_driver() { return here().memory != nullptr ? (void*)here().memory : (void*)&here(); }
__cuinstr_once void* driver_function(void*, const char* name) { return cuinstr_driver_function(name); }
// Programs launch functions, and kernels of libraries as if they were functions.
__cuinstr_once int function_of(const launch_call& call, void** function) {
  *function = (void*)call.what;
  return cuinstr_is_kernel(call.what) ? here().cuda.kernel_function(function, (void*)call.what) : 0;
}
// The driver launches nothing without one, and says so to the program.
__cuinstr_once void make_context() {}
// Collectives wait for other processes: a limit of theirs would end those that wait, and not the one that hangs.
__cuinstr_once bool is_collective(const char* name) {
  static const char* const beginnings[] = {"nccl", "_Z15ncclDevKernel", "_Z10ncclKernel", "nvshmem", "_Z11nvshmem"};
  for (const char* beginning : beginnings) {
    const char* at = name;
    while (*beginning != 0 && *at == *beginning) ++at, ++beginning;
    if (*beginning == 0) return true;
  }
  return false;
}
__cuinstr_once void meet(kernel* met) {
  const settings& set = asked();
  int limit = -1;
  for (u32 index = 0; index < set.limit_count; ++index) {
    if (names(set.limits[index], met->mangled, met->name)) limit = int(index);
  }
  if (limit < 0 && (is_collective(met->name) || is_collective(met->mangled))) met->timeout_ns = 0;
  const image* of = met->home;
  const cuinstr_met_kernel told = {met->key, of->handle, met->mangled, met->name, of->works ? nullptr : of->reason, met->timeout_ns, of->works, limit};
  met->launches = cuinstr_met(&told);
}
inline bool watches_unpolled() { return true; }

// What the GPU stopped of a module that goes is told before: the watch has not looked yet where a program ends right behind a launch, and looks at no
// module that is gone.
__cuinstr_once void tell_of_module(void* handle) {
  state& at = here();
  if (at.fails || at.finished || !at.watching.try_for(drain_ns)) return;
  for (image* of = at.images; of != nullptr; of = of->next) {
    if ((handle != nullptr && of->handle != handle) || !of->works || of->told) continue;
    if (__atomic_load_n(&at.memory->records[of->index].published, __ATOMIC_ACQUIRE) == 0) continue;
    void* before = nullptr;
    at.cuda.context(&before);
    at.cuda.set_context(of->home->handle);
    tell_record(of, nullptr);
    at.cuda.set_context(before);
  }
  at.watching.give();
}
// A module is about to go: what is known of it must not be taken for the next one at its address.
__cuinstr_once void forget_module(void* handle) {
  state& at = here();
  tell_of_module(handle);
  at.setting_up.take();
  for (auto& head : at.kernels) {
    for (kernel** link = &head; *link != nullptr;) {
      if (handle == nullptr || (*link)->home->handle == handle) *link = (*link)->next;
      else link = &(*link)->next;
    }
  }
  for (image* of = at.images; of != nullptr; of = of->next) {
    if (handle != nullptr && of->handle != handle) continue;
    of->handle = nullptr;
    of->works = false;
  }
  at.setting_up.give();
}
// This host listens by itself (src/control.rs).
inline void begin_listening() {}
struct listener {
  void (*tell)(void*, const cuinstr_seen_launch*);
  void* data;
};
__cuinstr_once void pass_on(void* data, const seen_launch& seen) {
  const listener* to = (const listener*)data;
  const kernel* what = seen.what;
  const int pause = seen.phase == resting ? 2 : seen.runs_on != nullptr ? 3 : can_pause() ? 1 : 0;
  const cuinstr_seen_launch told = {what->name, seen.runs_on, seen.ran_ns, what->timeout_ns, what->home->works, pause, seen.done, seen.left};
  to->tell(to->data, &told);
}
struct driver_call {
  int (*run)(void*);
  void* data;
};
int run_driver(const launch_call& call) {
  const driver_call* at = (const driver_call*)call.configuration;
  return at->run(at->data);
}
}
extern "C" {
// Launches by `run(data)`, with what this host does before and after. `stream` is 0 or 1 for the legacy and 2 for the thread's default stream.
int cuinstr_launch(const void* what, void* stream, const cuinstr_shape* shape, int (*run)(void*), void* data) {
  using namespace __cuinstr_half_@HASH@;
  if (is_off()) return run(data);
  const driver_call it = {run, data};
  launch_call call = {run_driver, what, true, shape->grid, shape->block, shape->arguments, shape->shared, stream, &it, shape->configuration, shape->extra,
                      shape->is_cooperative != 0};
  return launch(call);
}
// Around calls of the driver that may wait for the GPU.
void cuinstr_enter_driver() {
  using namespace __cuinstr_half_@HASH@;
  if (!is_off() && asked().pausable) enter_waiting();
}
// Around copies that the caller waits for.
void cuinstr_enter_copy() {
  using namespace __cuinstr_half_@HASH@;
  if (!is_off() && asked().pausable) enter_copy();
}
void cuinstr_leave_driver() {
  using namespace __cuinstr_half_@HASH@;
  if (!is_off() && asked().pausable) leave_driver();
}
void cuinstr_forget(void* module) {
  using namespace __cuinstr_half_@HASH@;
  if (here().process == __cuinstr_c_getpid()) forget_module(module);
}
// Has every launch that runs and polls stop.
void cuinstr_stop_all() { __cuinstr_half_@HASH@::stop_all(); }
// Nothing is held (0), launches wait from now on (1), or wait while those that run pause at block boundaries (2).
void cuinstr_hold(int how) { __cuinstr_half_@HASH@::hold(how); }
int cuinstr_is_held() { return __cuinstr_half_@HASH@::is_held(); }
unsigned int cuinstr_next_socket() { return __cuinstr_half_@HASH@::next_socket(); }
void cuinstr_launches_graph() { __cuinstr_half_@HASH@::launches_graph(); }
// Whether a kernel that is stopped leaves.
int cuinstr_leaves() { return __cuinstr_half_@HASH@::asked().leave; }
// Calls `tell` for each launch that runs or is paused.
void cuinstr_running(void (*tell)(void*, const cuinstr_seen_launch*), void* data) {
  using namespace __cuinstr_half_@HASH@;
  const listener to = {tell, data};
  each_running(pass_on, (void*)&to);
}
void cuinstr_end() {
  using namespace __cuinstr_half_@HASH@;
  leave_process();
  end_watch();
}
}
#pragma GCC visibility pop
