// What all halves of a process share. A program and each of its libraries may have one, and `cuinstr run` brings one. A pause must hold for all of them at once: a
// call by way of one half that waits for the GPU would keep the driver from launching what another half has paused.

struct process_words {
  // Whether launches wait until somebody lets them go on (1), and those that run pause at block boundaries (2).
  int held;
  // Halves whose gates may be closed; threads in a call of the driver that may wait for the GPU; whether the process launches graphs; numbers of sockets that were given.
  u32 gated, inside, launches_graphs, sockets;
  // Halves that tell at their end what was stopped, and have not come to it; whether the process ends with status 124 when all have.
  u32 halves, is_stopped;
};
struct membership {
  lock joining;
  int process;
  process_words* words;
  // Where there is no file for them.
  process_words own;
  char path[160];
};
template <class unused>
struct held_membership {
  static membership value;
};
template <class unused>
membership held_membership<unused>::value;

// The folder that only this user may enter, made if it is not there. Empty if there is none.
__cuinstr_once void name_folder(text& path) {
  const char* runtime = __cuinstr_c_getenv("XDG_RUNTIME_DIR");
  const char* temporary = __cuinstr_c_getenv("TMPDIR");
  if (runtime != nullptr && *runtime == '/') path << runtime << "/cuinstr";
  else path << (temporary != nullptr && *temporary == '/' ? temporary : "/tmp") << "/" << "cuinstr-run-" << __cuinstr_c_geteuid();
  path.data[path.used] = 0;
  __cuinstr_c_mkdir(path.data, 0700);
  // `struct statx`, in which the owner is the sixth word and the mode half of the eighth: of what is no link.
  u32 about[64] = {};
  const bool is_known = &__cuinstr_c_statx != nullptr && __cuinstr_c_statx(-100, path.data, 0x100, 1 | 2 | 8, about) == 0;
  const u32 mode = about[7] & 0xffff;
  if (!is_known || about[5] != __cuinstr_c_geteuid() || (mode & 0170000) != 0040000 || (mode & 077) != 0) path.used = 0;
}
// When this process began, in ticks since the machine did; 0 if that is not known. With it, a number of a process stands for one process alone.
__cuinstr_once u64 began_at() {
  char about[2048];
  const int file = __cuinstr_c_open("/proc/self/stat", 02000000);
  const long size = file >= 0 ? __cuinstr_c_read(file, about, sizeof about - 1) : 0;
  if (file >= 0) __cuinstr_c_close(file);
  about[size > 0 ? size : 0] = 0;
  // The second word is a name in brackets, which may hold anything, and this is the twenty-second.
  const char* at = about;
  for (const char* one = about; *one != 0; ++one) {
    if (*one == ')') at = one;
  }
  for (int word = 2; word < 22 && *at != 0; ++at) word += *at == ' ';
  u64 ticks = 0;
  for (; *at >= '0' && *at <= '9'; ++at) ticks = 10 * ticks + u64(*at - '0');
  return ticks;
}
// The words in a file beside the process's sockets; null if there can be none.
__cuinstr_once process_words* map_words(membership& own) {
  own.path[0] = 0;
  text path;
  const u64 began = began_at();
  name_folder(path);
  if (path.used == 0 || began == 0) return nullptr;
  path << "/" << u64(__cuinstr_c_getpid()) << "." << began << ".words";
  path.data[path.used] = 0;
  if (path.used >= sizeof own.path) return nullptr;
  // To be read and written, made if it is not there, and closed in programs that this one starts.
  const int file = __cuinstr_c_open(path.data, 2 | 0100 | 02000000, 0600);
  if (file < 0) return nullptr;
  // A place that is full says so here, and not at the first write.
  const bool has_room = __cuinstr_c_fallocate(file, 0, sizeof(process_words)) == 0;
  void* words = has_room ? __cuinstr_c_mmap(nullptr, sizeof(process_words), 3, 1, file, 0) : (void*)-1l;
  __cuinstr_c_close(file);
  if (words == (void*)-1l) return nullptr;
  __builtin_memcpy(own.path, path.data, path.used + 1);
  return (process_words*)words;
}
// Finds the words of this process, which may have been forked.
__cuinstr_once process_words& join_process() {
  membership& own = held_membership<void>::value;
  const int process = __cuinstr_c_getpid();
  if (__atomic_load_n(&own.process, __ATOMIC_ACQUIRE) == process) return *own.words;
  // A lock that another thread held at the fork is nobody's.
  if (own.process != 0) own.joining.held = 0;
  own.joining.take();
  if (own.process != process) {
    process_words* found = map_words(own);
    if (found == nullptr) {
      own.own = process_words();
      found = &own.own;
    }
    __atomic_store_n(&own.words, found, __ATOMIC_RELEASE);
    __atomic_store_n(&own.process, process, __ATOMIC_RELEASE);
  }
  own.joining.give();
  return *own.words;
}
// The same for those who know that this process has joined.
inline process_words& shared() {
  process_words* words = __atomic_load_n(&held_membership<void>::value.words, __ATOMIC_ACQUIRE);
  return words != nullptr ? *words : join_process();
}
// A number for a socket of this process, which no other half gets.
__cuinstr_once u32 next_socket() { return __atomic_fetch_add(&join_process().sockets, 1, __ATOMIC_SEQ_CST); }
__cuinstr_once void leave_process() {
  const membership& own = held_membership<void>::value;
  if (own.process == __cuinstr_c_getpid() && own.path[0] != 0) __cuinstr_c_unlink(own.path);
}
