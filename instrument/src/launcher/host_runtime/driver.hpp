// The driver, which a program that runs kernels has loaded. Its functions are asked for by name, so that no object needs more libraries than before.

typedef unsigned long long address;
typedef __cuinstr_grid_@HASH@ grid_size;
struct driver {
  int (*context)(void**);
  int (*context_id)(void*, u64*);
  int (*set_context)(void*);
  int (*kernel_function)(void**, void*);
  int (*function_module)(void**, void*);
  int (*function_name)(const char**, void*);
  int (*global)(address*, unsigned long*, void*, const char*);
  int (*register_memory)(void*, unsigned long, u32);
  int (*device_pointer)(address*, void*, u32);
  int (*priorities)(int*, int*);
  int (*make_stream)(void**, u32, int);
  int (*wait_stream)(void*);
  int (*query_stream)(void*);
  int (*is_capturing)(void*, int*);
  int (*capture_mode)(int*);
  // Of CUDA 11.3 and later: by these a captured launch tells that its graph is gone.
  int (*capture_info)(void*, int*, u64*, void**, const void**, unsigned long*);
  int (*make_object)(void**, void*, void (*)(void*), u32, u32);
  int (*release_object)(void*, u32);
  int (*keep_object)(void*, void*, u32, u32);
  int (*write)(void*, address, u32, u32);
  int (*write_all)(void*, u32, const struct memory_write*, u32);
  int (*to_device)(address, const void*, unsigned long, void*);
  int (*to_host)(void*, address, unsigned long, void*);
  int (*clear)(address, u32, unsigned long, void*);
  // What a pause at block boundaries needs; of CUDA 12.4 and later.
  int (*allocate)(address*, unsigned long);
  int (*parameter)(void*, unsigned long, unsigned long*, unsigned long*);
  int (*launch)(void*, u32, u32, u32, u32, u32, u32, u32, void*, void**, void**);
  int (*count_functions)(u32*, void*);
  int (*list_functions)(void**, u32, void*);
  int (*load_function)(void*);
  int (*make_event)(void**, u32);
  int (*record_event)(void*, void*);
  int (*wait_event)(void*);
  int (*free_event)(void*);
};

// CUstreamBatchMemOpParams: a word of 32 bits (2) or of 64 (5) is written, or bits of one are waited for (1).
struct memory_write {
  u32 kind, unused;
  address to;
  u64 value;
  u32 flags, unused_;
  address alias;
  u64 rest;
};
static_assert(sizeof(memory_write) == 48, "cuda.h");
inline memory_write write_of(address to, u64 value, u32 kind) {
  memory_write one = {kind, 0, to, value, 0, 0, 0, 0};
  return one;
}
inline memory_write wait_for(address at) {
  memory_write one = {1, 0, at, 1, 2, 0, 0, 0};
  return one;
}

const u32 word_count = 1u << 14;
const u32 record_count = 700;
const u32 ring_length = 1024;

// The words of docs/ABI.md that the host shares.
struct stop_record {
  u32 claimed, published;
  u64 site;
  u32 why, late, block[3], thread[3];
  u64 start_ns, fuel_used, elapsed_ns, elapsed_cycles, reserved, unlisted;
  struct {
    u64 site, threads;
  } sites[64];
};
struct control {
  u32 version, action, launch, count_fuel;
  address flag;
  u64 timeout_ns, start_ns, budget_cycles, fuel;
  address host_record, record;
};
struct pause_block {
  u32 launch, first, span, blocks;
  address asked, missing, declined, seen;
};
static_assert(sizeof(stop_record) == 1120 && sizeof(control) == 72 && sizeof(pause_block) == 48, "docs/ABI.md");

// Memory of ours that the GPU writes to, and that is there still when the process has lost the GPU. It is shared, so that a fork does not take the pages from
// under the GPU.
struct shared_memory {
  // What came last in a stream, or in one node of a graph: a launch began (its number), or it is done (that, and the highest bit). The watch takes it out.
  u32 words[word_count];
  stop_record records[record_count];
  // Where each stream waits behind each launch, where launches can be paused: 1 lets it go on.
  u32 gates[word_count];
  // The launch of each stream that declined blocks were launched beside, once those are over.
  u32 besides[word_count];
  // What was read of an image's control block: a copy into other memory waits for the program's own copies.
  control words_of_image;
  // Written to see whether anything gets past the running kernels.
  u32 probe;
};
const u32 done_bit = 0x80000000u;

const u32 beside_count = 4;
struct context {
  u64 id;
  void* handle;
  // Gets through while kernels hang in all other streams.
  void* stream;
  // The first half takes the rest of paused launches, and the second half what runs beside others of its launch. They are made before any stream is held:
  // a driver that has 32 streams beside a held one does not come back from making another.
  void* beside[2 * beside_count];
  address memory;
  context* next;
};
struct image {
  void* handle;
  context* home;
  address control_at, flag;
  u32 launch, index;
  bool works, told, stopping;
  // Whether a record of the shared memory is its own.
  bool has_record;
  // Whether another host arms its launches: a host half of the program's own, or a guard.
  bool is_foreign;
  // Whether somebody asked for its end, and no limit.
  bool is_requested;
  // Why its launches have no limit, unless it works.
  const char* reason;
  // Who launches it: one queue, or several; and the longest limit of what was launched, if all have one.
  const struct queue* only;
  bool several, unlimited;
  u64 longest_ns;
  // Why its launches can't be paused; null if they can. Its pause block, the word by which blocks are asked to decline, and bitmaps with room for so many
  // blocks. Two take turns for blocks that decline: launches begin with the first one, which is clear. Two are for blocks that run beside others, and those that
  // both launches pass over. The grid that the pause block was last told. Pinned memory that bitmaps are copied through.
  const char* unpausable;
  address pause_at, request, bitmaps[4];
  u32 room, shown_blocks;
  u32* staging;
  // Where one of its launches is paused or comes back: until that is over, other launches would take its pause block for theirs.
  struct queue* paused_in;
  // Threads that are about to launch one of its kernels, and have not written down which launch that is.
  u32 users;
  image* next;
  // One clock serves all launches of an image, so it is off where launches with and without a limit may overlap.
  bool has_no_clock() const { return several && unlimited; }
};
struct kernel {
  const void* key;
  u64 context_id;
  image* home;
  const char* mangled;
  const char* name;
  u64 timeout_ns;
  // Where its launches are counted, if anybody counts.
  u64* launches;
  // The driver's function, and where its arguments lie in a buffer of all; `unknown` if the driver does not say.
  void* function;
  struct part {
    unsigned long offset, size;
  }* parts;
  u32 part_count;
  bool unknown;
  kernel* next;
};
// Where a launch stands in the source; the line is 0 where that is not known.
struct place {
  const char* file;
  u32 line;
};
// What it takes to launch a kernel once more, or why that can't be done.
struct repeat {
  u32 number;
  grid_size grid, block;
  // `word` is the request that its blocks obey, which no other launch has.
  u32 blocks, shared, used, room, word;
  address bitmaps[4];
  unsigned char* arguments;
  const char* why;
};
// What a launch through any of the runtime's functions is.
struct launch_call {
  int (*run)(const launch_call&);
  const void* what;
  // Whether that is a handle, and not the address of a host function.
  bool handle;
  grid_size grid, block;
  void** arguments;
  unsigned long shared;
  void* stream;
  const void* configuration;
  // In place of extents and shared memory, where it is not null.
  const void* attributes;
  // Arguments in one buffer, as the driver takes them.
  void** extra;
  bool is_cooperative;
};
struct launched {
  kernel* what;
  place where;
  // Which launch of the process it is.
  u64 order;
  // Null where launches can't be paused.
  repeat* again;
};
// What a pause has come to in a queue: nothing was asked of its launch, its blocks shall decline, or blocks are left and nothing of it runs.
enum pause_phase { unasked, declining, resting };
// A stream, or a launch that a graph repeats.
struct queue {
  lock handing_over;
  context* home;
  const void* stream;
  const void* thread;
  u32 index, number, length;
  // Threads that are on their way to launch in it.
  u32 users;
  launched* ring;
  // The next stream, or the next captured launch whose graph is gone.
  queue* next;
  // The watch's own.
  bool runs, asked;
  u32 running;
  u64 began, ran_ns;
  // Which launch was stopped last.
  u32 halted;
  // Of the launch that is or was the last to run: what a pause has come to, whether what runs is its rest, whether the request was taken back, and whether blocks
  // that had declined run beside others; if so, whether the others are over.
  pause_phase phase;
  bool is_rest, is_taken_back, is_beside, is_first_over;
  // Why it runs on, the launch that was asked, and its image.
  const char* runs_on;
  u32 asked_number;
  image* asked_of;
  // Since when the driver has not said what has become of the pause.
  u64 unknown_since;
  // How many blocks are left, the first and the last of them, and a bit for each; all bits if there is no list. Those that run beside others. Which bitmap its blocks
  // decline in.
  u32 left, first, last, turn;
  u32 *part, *beside_part;
};

struct state {
  // `looking` is for what is known of queues. A thread may call the driver while it holds `watching`, and none while it holds `looking`.
  lock setting_up, watching, looking, releasing;
  int process;
  bool fails, finished, is_full;
  // Whether it is one of the halves that tell at their end what was stopped.
  bool is_counted;
  // Whether a gate may be closed, and whether it was asked what gets past the running kernels.
  bool has_gates, is_probed;
  u32 queue_count, stream_count, image_count, rests;
  // How often others asked for the end of all launches, and what the watch has seen to of that.
  u32 stops_wanted, stops_made;
  u64 stops, stops_read, launches;
  // Since when a launch has trapped, and since when the process is at its end; whether the driver knows that its GPU is lost; what the program ends with.
  u64 trapped_at, leaves_at;
  int lost, status;
  shared_memory* memory;
  driver cuda;
  context* contexts;
  image* images;
  kernel* kernels[1024];
  queue* queues[word_count];
  queue* streams;
  queue* released;
  u64 last_look;
};
template <class unused>
struct held_state {
  static state value;
};
template <class unused>
state held_state<unused>::value;
inline state& here() { return held_state<void>::value; }

__cuinstr_once void complain(const char* what) {
  text message;
  message << "cuinstr: warning: " << what << ": launches of this process have no limit but those compiled in\n";
  message.write_to(2);
  here().fails = true;
}
// The driver's library, and a function of it, as the host finds them.
void* open_driver();
void* driver_function(void* library, const char* name);
template <class function>
inline bool find(void* library, function*& place, const char* name) {
  place = (function*)driver_function(library, name);
  return place != nullptr;
}
__cuinstr_once bool load_driver(driver& cuda) {
  if (&__cuinstr_c_dlopen == nullptr || &__cuinstr_c_dlsym == nullptr || &__cuinstr_c_pthread_create == nullptr) {
    complain("the program is linked without libdl or libpthread");
    return false;
  }
  void* library = open_driver();
  const bool all = library != nullptr && find(library, cuda.context, "cuCtxGetCurrent") && find(library, cuda.set_context, "cuCtxSetCurrent") &&
      find(library, cuda.context_id, "cuCtxGetId") && find(library, cuda.kernel_function, "cuKernelGetFunction") &&
      find(library, cuda.function_module, "cuFuncGetModule") && find(library, cuda.global, "cuModuleGetGlobal_v2") &&
      find(library, cuda.register_memory, "cuMemHostRegister_v2") && find(library, cuda.device_pointer, "cuMemHostGetDevicePointer_v2") &&
      find(library, cuda.priorities, "cuCtxGetStreamPriorityRange") && find(library, cuda.make_stream, "cuStreamCreateWithPriority") &&
      find(library, cuda.wait_stream, "cuStreamSynchronize") && find(library, cuda.query_stream, "cuStreamQuery") &&
      find(library, cuda.is_capturing, "cuStreamIsCapturing") && find(library, cuda.capture_mode, "cuThreadExchangeStreamCaptureMode") &&
      find(library, cuda.write, "cuStreamWriteValue32_v2") &&
      find(library, cuda.write_all, "cuStreamBatchMemOp_v2") && find(library, cuda.to_device, "cuMemcpyHtoDAsync_v2") &&
      find(library, cuda.to_host, "cuMemcpyDtoHAsync_v2") && find(library, cuda.clear, "cuMemsetD32Async");
  if (!all) {
    complain("the driver is missing, or older than CUDA 12");
    return false;
  }
  find(library, cuda.function_name, "cuFuncGetName");
  find(library, cuda.capture_info, "cuStreamGetCaptureInfo_v2");
  find(library, cuda.make_object, "cuUserObjectCreate");
  find(library, cuda.release_object, "cuUserObjectRelease");
  find(library, cuda.keep_object, "cuGraphRetainUserObject");
  find(library, cuda.allocate, "cuMemAlloc_v2");
  find(library, cuda.parameter, "cuFuncGetParamInfo");
  find(library, cuda.launch, "cuLaunchKernel");
  find(library, cuda.count_functions, "cuModuleGetFunctionCount");
  find(library, cuda.list_functions, "cuModuleEnumerateFunctions");
  find(library, cuda.load_function, "cuFuncLoad");
  find(library, cuda.make_event, "cuEventCreate");
  find(library, cuda.record_event, "cuEventRecord");
  find(library, cuda.wait_event, "cuEventSynchronize");
  find(library, cuda.free_event, "cuEventDestroy_v2");
  return true;
}
