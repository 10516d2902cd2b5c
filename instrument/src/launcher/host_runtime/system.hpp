// SPDX-License-Identifier: 0BSD
// The host half of cuinstr: how a program that knows nothing of it obeys CUINSTR_TIMEOUT and its kin (docs/PROJECTS.md). Two hosts share it: programs that
// `cuinstr nvcc` compiles (cudart.hpp, rows.hpp, room.hpp, listen.hpp, stand_in.hpp), and the library that `cuinstr run` loads in front of any program
// (runtime/interpose). It may stand in front of the text that nvcc hands to the host's compiler, which has its headers in it already. So it includes nothing, and takes what it needs of the system under
// names of its own. All of it is in groups that linkers keep once, and hidden: each program and each shared library has one copy, with its own state.
#define __cuinstr_shown inline __attribute__((used, noinline, visibility("hidden")))
#define __cuinstr_once inline __attribute__((noinline, cold))
extern "C" {
// Gives nothing to a program that runs with more rights than its user has (set-user-id): its environment is that user's.
char* __cuinstr_c_getenv(const char*) __asm__("secure_getenv");
int __cuinstr_c_open(const char*, int, ...) __asm__("open");
long __cuinstr_c_write(int, const void*, unsigned long) __asm__("write");
int __cuinstr_c_close(int) __asm__("close");
void* __cuinstr_c_mmap(void*, unsigned long, int, int, int, long) __asm__("mmap");
void* __cuinstr_c_calloc(unsigned long, unsigned long) __asm__("calloc");
void __cuinstr_c_free(void*) __asm__("free");
int __cuinstr_c_getpid() __asm__("getpid");
int __cuinstr_c_gethostname(char*, unsigned long) __asm__("gethostname");
int __cuinstr_c_clock_gettime(int, long*) __asm__("clock_gettime");
int __cuinstr_c_nanosleep(const long*, long*) __asm__("nanosleep");
int __cuinstr_c_sched_yield() __asm__("sched_yield");
long __cuinstr_c_syscall(long, ...) __asm__("syscall");
int __cuinstr_c_fflush(void*) __asm__("fflush");
void __cuinstr_c_exit(int) __asm__("_exit") __attribute__((noreturn));
char* __cuinstr_c_strerror(int) __asm__("strerror");
int* __cuinstr_c_errno() __asm__("__errno_location");
unsigned int __cuinstr_c_geteuid() __asm__("geteuid");
int __cuinstr_c_mkdir(const char*, unsigned int) __asm__("mkdir");
int __cuinstr_c_unlink(const char*) __asm__("unlink");
int __cuinstr_c_fallocate(int, long, long) __asm__("posix_fallocate");
long __cuinstr_c_read(int, void*, unsigned long) __asm__("read");
int __cuinstr_c_socket(int, int, int) __asm__("socket");
int __cuinstr_c_connect(int, const void*, unsigned int) __asm__("connect");
int __cuinstr_c_bind(int, const void*, unsigned int) __asm__("bind");
int __cuinstr_c_listen(int, int) __asm__("listen");
int __cuinstr_c_accept4(int, void*, void*, int) __asm__("accept4");
int __cuinstr_c_setsockopt(int, int, int, const void*, unsigned int) __asm__("setsockopt");
long __cuinstr_c_send(int, const void*, unsigned long, int) __asm__("send");
extern char** __cuinstr_c_environ __asm__("environ");
}
// Libraries of older systems that a program need not be linked with: where they are missing, nothing is armed, and a message says so.
static int __cuinstr_c_pthread_create(unsigned long*, const void*, void* (*)(void*), void*) __attribute__((weakref("pthread_create")));
static int __cuinstr_c_pthread_detach(unsigned long) __attribute__((weakref("pthread_detach")));
static int __cuinstr_c_pthread_sigmask(int, const void*, void*) __attribute__((weakref("pthread_sigmask")));
static void* __cuinstr_c_dlopen(const char*, int) __attribute__((weakref("dlopen")));
static void* __cuinstr_c_dlsym(void*, const char*) __attribute__((weakref("dlsym")));
static int __cuinstr_c_dladdr(const void*, void*) __attribute__((weakref("dladdr")));
static int __cuinstr_c_statx(int, const char*, int, unsigned int, void*) __attribute__((weakref("statx")));
static int __cuinstr_c_on_exit(void (*)(int, void*), void*) __attribute__((weakref("on_exit")));
