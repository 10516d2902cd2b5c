
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
extern "C" {
void* cuinstr_driver_function(const char* name);
int cuinstr_find_site(unsigned long long id, cuinstr_site* found);
char* cuinstr_signature(const char* mangled, char*, unsigned long*, int* status);
unsigned long long* cuinstr_met(const cuinstr_met_kernel* met);
int cuinstr_is_kernel(const void* handle);
}
static char* __cuinstr_c_demangle(const char*, char*, unsigned long*, int*) __attribute__((weakref("cuinstr_signature")));
