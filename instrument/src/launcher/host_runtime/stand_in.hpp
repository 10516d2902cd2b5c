// What the source's own launches reach. The names that objects ask the linker for are changed, and no text of the source is.
template <int (*real)(const void*, grid_size, grid_size, void**, unsigned long, void*)>
inline int run_sized(const launch_call& call) {
  return explained(real(call.what, call.grid, call.block, call.arguments, call.shared, call.stream), call.what, call.shared, false);
}
template <int (*real)(const void*, const void*, void**)>
inline int run_configured(const launch_call& call) {
  // Behind two sizes of three words.
  const unsigned long shared = *(const unsigned long*)((const char*)call.configuration + 24);
  return explained(real(call.configuration, call.what, call.arguments), call.what, shared, false);
}
__cuinstr_once void* open_driver() { return __cuinstr_c_dlopen("libcuda.so.1", 1); }
// The library of `cuinstr run` stands between the program and the driver. What the half itself asks for passes it by: a pause holds up the program's calls, and not
// those that end the pause.
__cuinstr_once void* driver_function(void* library, const char* name) {
  void* const past = __cuinstr_c_dlsym(nullptr, "cuinstr_driver_function");
  return past != nullptr ? ((void* (*)(const char*))past)(name) : __cuinstr_c_dlsym(library, name);
}
__cuinstr_once int function_of(const launch_call& call, void** function) {
  return call.handle ? here().cuda.kernel_function(function, (void*)call.what) : __cuinstr_r_cudaGetFuncBySymbol(function, call.what);
}
__cuinstr_once void make_context() { __cuinstr_r_cudaFree(nullptr); }
__cuinstr_once void meet(kernel* met) {
  image* of = met->home;
  if (of->works || of->told) return;
  of->told = true;
  text message;
  message << "cuinstr: warning: the unit of kernel `" << met->name << "` " << of->reason << ": its launches have no limit\n";
  message.write_to(2);
}
inline bool watches_unpolled() { return false; }
// Half a result is no success.
__cuinstr_once void finish() {
  const settings& set = asked();
  state& at = here();
  end_listening();
  leave_process();
  if (!end_watch()) return;
  for (u32 index = 0; index < set.limit_count; ++index) {
    const named_limit& limit = set.limits[index];
    if (limit.used != 0) continue;
    text message;
    message << "cuinstr: warning: CUINSTR_TIMEOUT names the kernel `" << cut(limit.name, limit.length).data << "`, and none of that name was launched\n";
    message.write_to(2);
  }
  if (!at.is_counted) return;
  process_words& words = shared();
  if (set.leave && at.stops > at.stops_read) __atomic_store_n(&words.is_stopped, 1, __ATOMIC_SEQ_CST);
  // The last half ends the process, so that each has told what it knows.
  if (__atomic_sub_fetch(&words.halves, 1, __ATOMIC_SEQ_CST) == 0 && __atomic_load_n(&words.is_stopped, __ATOMIC_SEQ_CST) != 0) {
    __cuinstr_c_fflush(nullptr);
    __cuinstr_c_exit(124);
  }
}
// A copy of what redirect.hpp passes.
struct written_at {
  const char* file;
  int line;
};
}
#define __cuinstr_sized(name, is_handle, own, cooperative)                                                                                        \
  extern "C" __cuinstr_shown int __cuinstr_@HASH@_##name(const void* what, __cuinstr_grid_@HASH@ grid, __cuinstr_grid_@HASH@ block, \
                                                        void** arguments, unsigned long shared, void* stream) {                     \
    using namespace __cuinstr_half_@HASH@;                                                                                          \
    if (is_off()) return explained(__cuinstr_r_##name(what, grid, block, arguments, shared, stream), what, shared, false);          \
    void* const in = own && stream == nullptr ? (void*)own_stream : stream;                                                         \
    launch_call call = {run_sized<__cuinstr_r_##name>, what, is_handle, grid, block, arguments, shared, in, nullptr, nullptr,      \
                        nullptr, cooperative};                                                                                      \
    return launch(call);                                                                                                            \
  }
#define __cuinstr_configured(name, own)                                                                                             \
  extern "C" __cuinstr_shown int __cuinstr_@HASH@_##name(const void* configuration, const void* what, void** arguments) {           \
    using namespace __cuinstr_half_@HASH@;                                                                                          \
    /* Behind two sizes of three words, and behind that. */                                                                         \
    const unsigned long shared = *(const unsigned long*)((const char*)configuration + 24);                                          \
    if (is_off()) return explained(__cuinstr_r_##name(configuration, what, arguments), what, shared, false);                        \
    void* const stream = *(void* const*)((const char*)configuration + 32);                                                          \
    void* const in = own && stream == nullptr ? (void*)own_stream : stream;                                                         \
    launch_call call = {run_configured<__cuinstr_r_##name>, what, false, {}, {}, arguments, 0, in, configuration, configuration,    \
                        nullptr, false};                                                                                            \
    return launch(call);                                                                                                            \
  }
__cuinstr_sized(stub, true, false, false)
__cuinstr_sized(stub_ptsz, true, true, false)
__cuinstr_sized(kernel, false, false, false)
__cuinstr_sized(kernel_ptsz, false, true, false)
__cuinstr_sized(cooperative, false, false, true)
__cuinstr_sized(cooperative_ptsz, false, true, true)
__cuinstr_configured(extended, false)
__cuinstr_configured(extended_ptsz, true)
// Calls that a pause comes before or behind: the driver waits in them for the GPU, or does not come back beside a held stream.
#define __cuinstr_outside(name, real, parameters, given) __cuinstr_entered(enter_waiting, name, real, parameters, given)
#define __cuinstr_entered(enter, name, real, parameters, given)                 \
  extern "C" __cuinstr_shown int __cuinstr_@HASH@_##name parameters {          \
    using namespace __cuinstr_half_@HASH@;                                     \
    if (is_off() || !asked().pausable) return __cuinstr_r_##real given;         \
    enter();                                                                    \
    const int result = __cuinstr_r_##real given;                                \
    leave_driver();                                                             \
    return result;                                                              \
  }
__cuinstr_outside(free, cudaFree, (void* memory), (memory))
__cuinstr_outside(free_host, cudaFreeHost, (void* memory), (memory))
__cuinstr_outside(stream, stream, (void** made), (made))
__cuinstr_outside(stream_flags, stream_flags, (void** made, unsigned int flags), (made, flags))
__cuinstr_outside(stream_priority, stream_priority, (void** made, unsigned int flags, int priority), (made, flags, priority))
__cuinstr_entered(enter_copy, copy, copy, (void* to, const void* from, unsigned long bytes, int kind), (to, from, bytes, kind))
__cuinstr_entered(enter_copy, copy_rows, copy_rows,
                  (void* to, unsigned long to_pitch, const void* from, unsigned long from_pitch, unsigned long width, unsigned long height, int kind),
                  (to, to_pitch, from, from_pitch, width, height, kind))
__cuinstr_entered(enter_copy, copy_to, copy_to, (const void* to, const void* from, unsigned long bytes, unsigned long offset, int kind), (to, from, bytes, offset, kind))
__cuinstr_entered(enter_copy, copy_from, copy_from, (void* to, const void* from, unsigned long bytes, unsigned long offset, int kind), (to, from, bytes, offset, kind))
extern "C" __cuinstr_shown int __cuinstr_@HASH@_graph(void* graph, void* stream) {
  using namespace __cuinstr_half_@HASH@;
  if (!is_off()) launches_graph();
  return __cuinstr_r_graph(graph, stream);
}
extern "C" __cuinstr_shown int __cuinstr_@HASH@_graph_ptsz(void* graph, void* stream) {
  using namespace __cuinstr_half_@HASH@;
  if (!is_off()) launches_graph();
  return __cuinstr_r_graph_ptsz(graph, stream);
}
extern "C" __cuinstr_shown unsigned int __cuinstr_@HASH@_push(__cuinstr_half_@HASH@::written_at at, __cuinstr_grid_@HASH@ grid,
                                                             __cuinstr_grid_@HASH@ block, unsigned long shared, void* stream) {
  using namespace __cuinstr_half_@HASH@;
  if (!is_off()) {
    written().file = at.file;
    written().line = at.line;
  }
  return __cuinstr_r_push(grid, block, shared, stream);
}
extern "C" __cuinstr_shown int __cuinstr_@HASH@_attribute(const void* what, int attribute, int value) {
  using namespace __cuinstr_half_@HASH@;
  const int result = __cuinstr_r_attribute(what, attribute, value);
  return attribute == largest_at_launch && value > 0 ? explained(result, what, (unsigned long)value, true) : result;
}
// How many launches of this program or library were stopped. A program that asks has read it: what it does about it is its own affair then.
extern "C" __attribute__((weak, used, visibility("hidden"))) unsigned long long cuinstr_stopped_launches() {
  using namespace __cuinstr_half_@HASH@;
  if (is_off() || here().process != __cuinstr_c_getpid() || here().fails) return 0;
  here().watching.take();
  look_at_all();
  here().stops_read = here().stops;
  const unsigned long long stops = here().stops;
  here().watching.give();
  return stops;
}
extern "C" __cuinstr_shown void __cuinstr_@HASH@_finish() { __cuinstr_half_@HASH@::finish(); }
#undef __cuinstr_sized
#undef __cuinstr_outside
#undef __cuinstr_configured
#pragma GCC visibility pop
