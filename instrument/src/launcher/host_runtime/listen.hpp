// The socket by which `cuinstr ps`, `stop`, `pause`, `resume` and `where` ask a program (runtime/abi/src/sockets.rs has the requests and answers).

struct socket_address {
  unsigned short family;
  char path[108];
};
struct listening {
  int file, process;
  socket_address at;
};
template <class unused>
struct held_listening {
  static listening value;
};
template <class unused>
listening held_listening<unused>::value;

// Binds a socket of this process. Each half has one. A name that somebody listens at is a half's of another release.
__cuinstr_once bool bind_socket(listening& own) {
  text folder;
  name_folder(folder);
  if (folder.used == 0) return false;
  for (u32 number = next_socket(); number < 64; number = next_socket()) {
    text path = folder;
    path << "/" << u64(__cuinstr_c_getpid());
    if (number != 0) path << "." << number;
    path << ".sock";
    if (path.used >= sizeof own.at.path) return false;
    own.at.family = 1;
    __builtin_memcpy(own.at.path, path.data, path.used);
    own.at.path[path.used] = 0;
    // Closed in programs that this one starts.
    const int probe = __cuinstr_c_socket(1, 1 | 02000000, 0);
    const bool is_taken = __cuinstr_c_connect(probe, &own.at, sizeof own.at) == 0;
    __cuinstr_c_close(probe);
    if (is_taken) continue;
    // One of an earlier process of this number is gone.
    __cuinstr_c_unlink(own.at.path);
    own.file = __cuinstr_c_socket(1, 1 | 02000000, 0);
    if (own.file >= 0 && __cuinstr_c_bind(own.file, &own.at, sizeof own.at) == 0 && __cuinstr_c_listen(own.file, 16) == 0) return true;
    if (own.file >= 0) __cuinstr_c_close(own.file);
    return false;
  }
  return false;
}
__cuinstr_once void append_launch(text& out, const seen_launch& seen) {
  const kernel* what = seen.what;
  out << "{\"kernel\":";
  out.json(what->name) << ",\"polled\":" << (what->home->works ? "true" : "false") << ",\"ran_ns\":" << seen.ran_ns << ",\"timeout_ns\":" << what->timeout_ns;
  if (seen.phase == resting) {
    out << ",\"pause\":{\"paused\":{\"done\":" << seen.done << ",\"left\":" << seen.left << "}}";
  } else if (seen.runs_on != nullptr) {
    out << ",\"pause\":{\"runs-on\":{\"why\":";
    out.json(seen.runs_on) << "}}";
  } else if (can_pause()) {
    out << ",\"pause\":\"asked\"";
  }
  out << "}";
}
__cuinstr_once void append_running(void* data, const seen_launch& seen) {
  text& out = *(text*)data;
  append_launch(out, seen);
  out << "\n";
}
__cuinstr_once void append_polled(void* data, const seen_launch& seen) {
  if (seen.what->home->works) append_running(data, seen);
}
__cuinstr_once void append_whereabouts(void* data, const seen_launch& seen) {
  const kernel* what = seen.what;
  if (seen.phase == resting) return;
  text& out = *(text*)data;
  out << "{\"launch\":";
  append_launch(out, seen);
  out << ",\"loops\":[";
  bool is_first = true;
  site_row row = {};
  for (const char* at = first_row(); (at = next_row(at, row)) != nullptr;) {
    const named_limit function = {row.function, row.function_length, 0, 0};
    const cut kind(row.kind, row.kind_length);
    if (!is_loop(kind.data) || !names(function, what->mangled, what->name)) continue;
    out << (is_first ? "" : ",") << "{\"file\":";
    out.json(cut(row.file, row.file_length).data) << ",\"line\":" << row.line << ",\"column\":" << row.column << ",\"kind\":";
    out.json(kind.data) << "}";
    is_first = false;
  }
  out << "]}\n";
}
// Whether somebody asks for the end of a session of `cuinstr run` that this process belongs to.
__cuinstr_once bool stops_session(const char* request) {
  const char* session = __cuinstr_c_getenv("CUINSTR_RUN");
  const char word[] = "stop ";
  for (u32 at = 0; word[at] != 0; ++at) {
    if (request[at] != word[at]) return false;
  }
  return session != nullptr && same(request + sizeof word - 1, session);
}
__cuinstr_once void answer(int file) {
  const long patience[2] = {2, 0};
  __cuinstr_c_setsockopt(file, 1, 20, patience, sizeof patience);
  __cuinstr_c_setsockopt(file, 1, 21, patience, sizeof patience);
  char request[4096];
  u32 used = 0;
  while (used + 1 < sizeof request && (used == 0 || request[used - 1] != '\n')) {
    const long got = __cuinstr_c_read(file, request + used, sizeof request - 1 - used);
    if (got <= 0) return;
    used += u32(got);
  }
  request[used == 0 || request[used - 1] != '\n' ? used : used - 1] = 0;
  text out;
  const bool stops = same(request, "stop") || stops_session(request);
  if (same(request, "list")) {
    each_running(append_running, &out);
  } else if (stops) {
    each_running(append_polled, &out);
  } else if (same(request, "pause") || same(request, "pause blocks")) {
    hold(same(request, "pause") ? 1 : 2);
    each_running(append_running, &out);
  } else if (same(request, "resume")) {
    hold(0);
  } else if (same(request, "state")) {
    out << "{\"paused\":" << (is_held() ? "true" : "false") << ",\"leaves\":" << (asked().leave ? "true" : "false") << "}\n";
  } else if (same(request, "where")) {
    each_running(append_whereabouts, &out);
  }
  // One who went away sends no signal.
  for (u32 sent = 0; sent < out.used;) {
    const long put = __cuinstr_c_send(file, out.data + sent, out.used - sent, 0x4000);
    if (put <= 0) break;
    sent += u32(put);
  }
  // The process may end as soon as they have stopped. One who asks hears then that the answer is over.
  if (stops) stop_all();
}
__cuinstr_once void* serve(void* data) {
  const listening* own = (const listening*)data;
  for (;;) {
    const int file = __cuinstr_c_accept4(own->file, nullptr, nullptr, 02000000);
    // What keeps one from being heard may keep all, as too many open files do.
    if (file < 0) {
      sleep_ns(100000000ull);
      continue;
    }
    answer(file);
    __cuinstr_c_close(file);
  }
}
// What keeps it from listening keeps nothing else from working.
__cuinstr_once void begin_listening() {
  listening& own = held_listening<void>::value;
  if (own.process == __cuinstr_c_getpid()) return;
  here().is_counted = true;
  __atomic_add_fetch(&shared().halves, 1, __ATOMIC_SEQ_CST);
  if (!bind_socket(own)) return;
  own.process = __cuinstr_c_getpid();
  begin_thread(serve, &own);
}
__cuinstr_once void end_listening() {
  const listening& own = held_listening<void>::value;
  if (own.process == __cuinstr_c_getpid()) __cuinstr_c_unlink(own.at.path);
}
