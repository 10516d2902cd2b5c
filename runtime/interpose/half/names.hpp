
// What Rust does for this host (src/half.rs).
struct __cuinstr_grid_@HASH@ {
  unsigned int x, y, z;
};
struct cuinstr_site {
  unsigned int line, column, kind_length, function_length, file_length;
  const char *kind, *function, *file;
};
struct cuinstr_met_kernel {
  const void* key;
  void* module;
  const char *symbol, *name, *reason;
  unsigned long long timeout_ns;
  int is_polled, limit;
};
// A launch as the driver's functions take it: what a configuration says is not said again.
struct cuinstr_shape {
  __cuinstr_grid_@HASH@ grid, block;
  unsigned int shared;
  int is_cooperative;
  void **arguments, **extra;
  const void* configuration;
};
// `pause` is 1 if it was asked for, 2 if it has come, and 3 if the launch runs on.
struct cuinstr_seen_launch {
  const char *name, *runs_on;
  unsigned long long ran_ns, timeout_ns;
  int is_polled, pause;
  unsigned int done, left;
};
extern "C" {
void* cuinstr_driver_function(const char* name);
int cuinstr_find_site(unsigned long long id, cuinstr_site* found);
char* cuinstr_signature(const char* mangled, char*, unsigned long*, int* status);
unsigned long long* cuinstr_met(const cuinstr_met_kernel* met);
int cuinstr_is_kernel(const void* handle);
}
static char* __cuinstr_c_demangle(const char*, char*, unsigned long*, int*) __attribute__((weakref("cuinstr_signature")));
