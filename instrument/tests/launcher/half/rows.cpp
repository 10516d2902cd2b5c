// The sites that the program carries, for the driver that plays the GPU's part.
#include <cstddef>
extern "C" {
extern const char __start_cuinstr_rows[] __attribute__((visibility("hidden")));
extern const char __stop_cuinstr_rows[] __attribute__((visibility("hidden")));
const char* program_rows(size_t* length) {
    *length = (size_t)(__stop_cuinstr_rows - __start_cuinstr_rows);
    return __start_cuinstr_rows;
}
}
