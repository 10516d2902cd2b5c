// The sites that this program was compiled with.

// Every object has some, if only an empty one.
extern "C" {
extern const char __start_cuinstr_rows[] __attribute__((visibility("hidden")));
extern const char __stop_cuinstr_rows[] __attribute__((visibility("hidden")));
}
inline u32 length_to(const char* at, const char* end, char stop) {
  const char* from = at;
  while (at < end && *at != stop && *at != '\n') ++at;
  return u32(at - from);
}
__cuinstr_once u64 number_at(const char* at, u32 length, u32 base) {
  u64 value = 0;
  for (; length > 0; ++at, --length) value = value * base + u64(*at <= '9' ? *at - '0' : *at - 'a' + 10);
  return value;
}
// Rows are `:FILE<tab>LIMITS`, then for each site of that file `ID<tab>LINE<tab>COLUMN<tab>KIND<tab>FUNCTION`, each with a line's end.
inline const char* first_row() { return __start_cuinstr_rows; }
// Reads the next site into `row`, which keeps the file meanwhile. Answers where to go on; null if there is none.
__cuinstr_once const char* next_row(const char* at, site_row& row) {
  const char* end = __stop_cuinstr_rows;
  while (at < end) {
    if (*at == 0 || *at == '\n') {
      ++at;
    } else if (*at == ':') {
      row.file = at + 1;
      row.file_length = length_to(row.file, end, '\t');
      at = row.file + length_to(row.file, end, '\n');
    } else {
      u32 length = length_to(at, end, '\t');
      row.id = number_at(at, length, 16);
      at += length + 1;
      length = length_to(at, end, '\t');
      row.line = u32(number_at(at, length, 10));
      at += length + 1;
      length = length_to(at, end, '\t');
      row.column = u32(number_at(at, length, 10));
      row.kind = at + length + 1;
      row.kind_length = length_to(row.kind, end, '\t');
      row.function = row.kind + row.kind_length + 1;
      row.function_length = length_to(row.function, end, '\t');
      row.known = true;
      return row.function + length_to(row.function, end, '\n');
    }
  }
  return nullptr;
}
__cuinstr_once site_row find_site(u64 id) {
  site_row row = {};
  for (const char* at = first_row(); (at = next_row(at, row)) != nullptr;) {
    if ((row.id | 1) == (id | 1)) return row;
  }
  return site_row();
}
// Whether some unit of this program was compiled with that limit: a letter behind the name of its file.
__cuinstr_once bool compiled_with(char limit) {
  for (const char* at = __start_cuinstr_rows; at < __stop_cuinstr_rows; ++at) {
    if (*at != ':' || (at != __start_cuinstr_rows && at[-1] != '\n' && at[-1] != 0)) continue;
    for (at += length_to(at, __stop_cuinstr_rows, '\t'); at < __stop_cuinstr_rows && *at != '\n'; ++at) {
      if (*at == limit) return true;
    }
  }
  return false;
}
// How reports name what they can't name better.
const char* const some_caller = "a call of the CUDA runtime";
const char* const after_leaving = "the process ends with status 124 unless the program asks cuinstr_stopped_launches()";
const char* const after_trapping = "CUINSTR_ON_STOP=leave keeps the GPU's state";
