// What is printed and written of a stop.

// What came of a launch.
enum ending { stopped, stuck };
struct stop {
  ending how;
  const kernel* what;
  place where;
  u64 ran_ns;
  const stop_record* record;
  u64 threads;
};
struct cut {
  char data[1000];
  cut(const char* from, u32 length) {
    if (length >= sizeof data) length = sizeof data - 1;
    __builtin_memcpy(data, from, length);
    data[length] = 0;
  }
};
__cuinstr_once void append_place(text& out, const place& where) {
  if (where.line != 0) out << where.file << ":" << where.line;
  else out << some_caller;
}
__cuinstr_once void append_three(text& out, const u32* three, const char* open, const char* close) {
  out << open << three[0] << ", " << three[1] << ", " << three[2] << close;
}
inline bool is_requested(const stop& it) { return it.what != nullptr && it.what->home->is_requested; }
__cuinstr_once const char* reason(u32 why) {
  return why == 3 ? "cycle budget" : why == 4 ? "fuel" : "deadline";
}
__cuinstr_once void sentence(text& out, const stop& it) {
  const settings& set = asked();
  const u32 why = it.record != nullptr ? it.record->why : 0;
  const char* name = it.what != nullptr && it.what->name != nullptr ? it.what->name : "?";
  out << "cuinstr: kernel `" << name << "` ";
  if (it.how == stuck) {
    out << "can't be stopped: its deadline (";
    out.time(it.what->timeout_ns) << ") passed, and " << (it.what->home->works ? "threads of it did not come to a poll in time" : "it is machine code without polls") << "\n";
  } else if (why == 3) {
    out << "was stopped: its cycle budget is used up\n";
  } else if (why == 4) {
    out << "was stopped: its fuel is used up\n";
  } else if (why == 1 && is_requested(it)) {
    out << "was stopped: somebody asked for that\n";
  } else if (why == 1 || (it.what != nullptr && it.what->timeout_ns != 0)) {
    out << "was stopped: its deadline (";
    out.time(it.what != nullptr ? it.what->timeout_ns : set.timeout_ns) << ") passed\n";
  } else {
    out << "was stopped: the deadline that it was compiled with passed\n";
  }
}
// Those of PTX, and those of source by their words.
__cuinstr_once bool is_loop(const char* kind) { return same(kind, "loop") || same(kind, "for") || same(kind, "range-for") || same(kind, "while") || same(kind, "do"); }
__cuinstr_once void print(const stop& it) {
  text out;
  sentence(out, it);
  if (it.record != nullptr) {
    const site_row row = find_site(it.record->site);
    if (row.known) {
      const cut file(row.file, row.file_length), kind(row.kind, row.kind_length), function(row.function, row.function_length);
      out << " --> " << file.data << ":" << row.line << ":" << row.column << ": the first thread stopped at ";
      if (same(kind.data, "loop")) out << "this loop in `";
      else if (is_loop(kind.data)) out << "this `" << kind.data << "` loop in `";
      else out << "the `" << kind.data << "` of `";
      out << function.data << "`\n";
    } else {
      out << " --> site 0x";
      out.hex(it.record->site) << ", which nothing in this program names\n";
    }
  }
  out << "  = note: launched by ";
  append_place(out, it.where);
  out << ", stopped after ";
  out.time(it.ran_ns) << "\n";
  if (it.record != nullptr) {
    out << "  = note: block ";
    append_three(out, it.record->block, "(", ")");
    out << ", thread ";
    append_three(out, it.record->thread, "(", ")");
    if (it.threads != 0) out << "; " << it.threads << (it.threads == 1 ? " thread left" : " threads left");
    out << "\n";
  }
  if (it.how == stuck) out << "  = note: the process ends here with status 124\n";
  else if (asked().leave) out << "  = note: its results are half written; " << after_leaving << "\n";
  else out << "  = note: it trapped: the program sees cudaErrorLaunchFailure (" << after_trapping << ")\n";
  out.write_to(2);
}
__cuinstr_once void append_json(text& out, const stop& it) {
  out << "{\"cuinstr\":1,\"event\":\"" << (it.how == stuck ? "stuck" : "stopped") << "\",\"unix_ms\":" << now_ns(0) / 1000000ull
      << ",\"process\":" << u64(__cuinstr_c_getpid()) << ",\"kernel\":";
  out.json(it.what != nullptr ? it.what->name : nullptr) << ",\"symbol\":";
  out.json(it.what != nullptr ? it.what->mangled : nullptr) << ",\"launched_by\":";
  if (it.where.line != 0) {
    out << "{\"file\":";
    out.json(it.where.file) << ",\"line\":" << it.where.line << "}";
  } else {
    out << "null";
  }
  out << ",\"action\":\"" << (asked().leave ? "leave" : "trap") << "\",\"timeout_ns\":" << (it.what != nullptr ? it.what->timeout_ns : 0)
      << ",\"ran_ns\":" << it.ran_ns;
  if (it.record != nullptr) {
    out << ",\"why\":\"" << (it.record->why == 1 && is_requested(it) ? "request" : reason(it.record->why));
    // Whose clock it was: the launch's own, or that of the host's thread.
    if (it.record->why == 1 || it.record->why == 2) out << "\",\"clock\":\"" << (it.record->why == 2 ? "gpu" : "host");
    out << "\",\"site\":\"0x";
    out.hex(it.record->site) << "\",\"loop\":";
    const site_row row = find_site(it.record->site);
    if (row.known) {
      out << "{\"file\":";
      out.json(cut(row.file, row.file_length).data) << ",\"line\":" << row.line << ",\"column\":" << row.column << ",\"kind\":";
      out.json(cut(row.kind, row.kind_length).data) << ",\"function\":";
      out.json(cut(row.function, row.function_length).data) << "}";
    } else {
      out << "null";
    }
    append_three(out, it.record->block, ",\"block\":[", "]");
    append_three(out, it.record->thread, ",\"thread\":[", "]");
    if (it.threads != 0) out << ",\"threads\":" << it.threads;
  }
  out << "}\n";
}
#if defined(__aarch64__)
const int no_follow = 0100000;
#else
const int no_follow = 0400000;
#endif
const int is_link = 40;
// Opens the report. In a folder that others may write to, a link of theirs could lead to any file of this user's: only links of this user and of root are
// followed.
__cuinstr_once int open_report(const char* name) {
  // Write only, make it, append, wait for no reader of a pipe, not for programs that this one starts.
  const int how = 01 | 0100 | 02000 | 04000 | 02000000;
  const int file = __cuinstr_c_open(name, how | no_follow, 0666);
  if (file >= 0 || *__cuinstr_c_errno() != is_link) return file;
  // `struct statx`, in which the owner is the sixth word: of the link itself.
  u32 about[64] = {};
  const bool is_known = &__cuinstr_c_statx != nullptr && __cuinstr_c_statx(-100, name, 0x100, 8, about) == 0;
  if (is_known && (about[5] == 0 || about[5] == __cuinstr_c_geteuid())) return __cuinstr_c_open(name, how, 0666);
  *__cuinstr_c_errno() = is_link;
  return -1;
}
// One line to the report, whole: a file that several processes write to stays readable.
__cuinstr_once void write_report(const text& line) {
  const char* name = asked().report;
  if (name == nullptr || same(name, "stderr")) {
    line.write_to(2);
    return;
  }
  name = expand(name);
  const int file = open_report(name);
  if (file < 0) {
    const int error = *__cuinstr_c_errno();
    text message;
    message << "cuinstr: error: can't write CUINSTR_REPORT `" << name
            << "`: " << (error == is_link ? "it is another user's link: name a file" : __cuinstr_c_strerror(error)) << "\n";
    for (u32 at = 0; at < line.used; ++at) message.put(line.data[at]);
    message.write_to(2);
    return;
  }
  line.write_to(file);
  __cuinstr_c_close(file);
}
__cuinstr_once void tell(const stop& it) {
  const char* name = asked().report;
  // Whoever has the lines on standard error reads no sentences there.
  if (name == nullptr || !same(name, "stderr")) print(it);
  if (name == nullptr) return;
  text line;
  append_json(line, it);
  write_report(line);
}
