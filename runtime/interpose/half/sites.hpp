// Sites, as the images tell that were rewritten in this process.

__cuinstr_once site_row find_site(u64 id) {
  site_row row = {};
  cuinstr_site found = {};
  row.known = cuinstr_find_site(id, &found) != 0;
  row.line = found.line;
  row.column = found.column;
  row.kind = found.kind;
  row.kind_length = found.kind_length;
  row.function = found.function;
  row.function_length = found.function_length;
  row.file = found.file;
  row.file_length = found.file_length;
  return row;
}
// What counts no fuel is named at the end.
inline bool compiled_with(char) { return true; }
const char* const some_caller = "a call of the driver";
const char* const after_leaving = "`cuinstr run` ends with status 124";
const char* const after_trapping = "--on-stop leave keeps the GPU's state";
