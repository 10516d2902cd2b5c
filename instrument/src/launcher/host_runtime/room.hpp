// Shared memory that a kernel does not get because words of ours lie there.

// Of the least that these are, and with fuel, by docs/ABI.md and what hardware wants the user's own memory aligned to.
const long most_words = 1024, most_fuel = 8192;
// cudaFuncAttributes, in which more follows.
struct function_attributes {
  unsigned long declared, constant, local;
  int threads, registers, ptx, binary, cached, most_at_launch;
  char rest[512];
};
const int invalid_value = 1, largest_at_launch = 8, room_by_default = 8, room_if_asked = 97;

__cuinstr_once long room(int attribute) {
  int device = 0, bytes = 0;
  if (__cuinstr_r_cudaGetDevice(&device) != 0 || __cuinstr_r_cudaDeviceGetAttribute(&bytes, attribute, device) != 0) return 0;
  return bytes;
}
// Says so if a call that asks for so many bytes for a launch was refused for what lies there of ours. `sets` is for one that says what launches may ask for.
__cuinstr_once void explain_refusal(const void* what, unsigned long asked_for, bool sets) {
  static int told;
  const bool marks = compiled_with('m'), limits = compiled_with('l');
  function_attributes function = {};
  if ((!marks && !limits) || asked_for > 1ul << 30 || __cuinstr_r_cudaFuncGetAttributes(&function, what) != 0) return;
  const long ours = most_words + (compiled_with('f') ? most_fuel : 0), bytes = long(asked_for);
  // A launch may have what was set for the function, or what all have.
  const long all = room(sets ? room_if_asked : room_by_default), declared = long(function.declared);
  const long has = sets || function.most_at_launch < all - declared ? all - declared : function.most_at_launch;
  if (all == 0 || bytes <= has || bytes > has + (ours < declared ? ours : declared) || __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED) != 0) return;
  text message;
  message << "cuinstr: warning: a kernel asks for " << u64(bytes) << " bytes of shared memory, and words of cuinstr's leave it " << u64(has) << ": build it with ";
  if (marks) message << "CUINSTR_FLAGS=\"--barrier-marks global\"" << (limits ? " and " : "");
  if (limits) message << "no compiled-in limit, nor a gate (CUINSTR_TIMEOUT takes no shared memory)";
  message << "\n";
  message.write_to(2);
}
inline int explained(int result, const void* what, unsigned long asked_for, bool sets) {
  if (__builtin_expect(result == invalid_value, 0)) explain_refusal(what, asked_for, sets);
  return result;
}
