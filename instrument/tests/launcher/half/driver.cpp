// Stands in for the driver and for the CUDA runtime, so that the host half can be tested where there is no GPU. A stream is a queue that a thread works
// off; kernels are known by their names and do what a rewritten kernel does by docs/ABI.md: `spin` and `deaf` run until they are stopped, `stubborn` for ever,
// all others for as many milliseconds as their grid has blocks, those that `fill` the GPU one after the other, and `burn` stops by itself for want of
// fuel. `lost` traps at once, and this driver never gives it back, nor lets the process end. `full` needs shared memory.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

struct Dim {
    unsigned x, y, z;
};
struct Control {
    uint32_t version, action, launch, count_fuel;
    uint64_t flag, timeout_ns, start_ns, budget_cycles, fuel, host_record, record;
    unsigned char own_record[1120];
};
struct Kernel {
    const void* host;
    std::string name;
};

namespace {
std::atomic<int> sticky;
struct Module {
    uint32_t flag = 0;
    Control control = {1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, {}};
};
Module all;
bool has_no_objects, has_many_modules;
// The streams' threads outlive the program's end, and what they use does, too.
std::map<const void*, Module>& modules = *new std::map<const void*, Module>;
std::map<const void*, Kernel>& kernels = *new std::map<const void*, Kernel>;
// All kernels are of one module, or each is of its own.
Module& module_of(const void* kernel) { return has_many_modules ? modules[kernel] : all; }
std::map<std::string, uint64_t>& sites = *new std::map<std::string, uint64_t>;

struct Stream {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool busy = false;
    Stream() {
        std::thread([this] {
            for (;;) {
                std::function<void()> next;
                {
                    std::unique_lock<std::mutex> held(lock);
                    changed.wait(held, [this] { return !work.empty(); });
                    next = work.front();
                    work.pop_front();
                    busy = true;
                }
                next();
                std::lock_guard<std::mutex> held(lock);
                busy = false;
                changed.notify_all();
            }
        }).detach();
    }
    void add(std::function<void()> one) {
        std::lock_guard<std::mutex> held(lock);
        work.push_back(std::move(one));
        changed.notify_all();
    }
    bool is_idle() {
        std::lock_guard<std::mutex> held(lock);
        return !busy && work.empty();
    }
    void wait() {
        std::unique_lock<std::mutex> held(lock);
        while ((busy || !work.empty()) && sticky == 0) changed.wait_for(held, std::chrono::milliseconds(1));
    }
};
// Odd handles are names of the ordinary stream: a program may have more streams than there can be threads.
Stream& stream_of(void* handle) {
    static Stream* const ordinary = new Stream;
    return handle == nullptr || (uint64_t(handle) & 1) != 0 ? *ordinary : *static_cast<Stream*>(handle);
}
// A graph that the ordinary stream is being captured into: none of its work is done, and what it keeps is told when it is gone.
struct Object {
    void* data;
    void (*release)(void*);
};
struct Graph {
    std::deque<Object*> kept;
};
Graph* captured;
bool is_captured(void* stream) { return captured != nullptr && &stream_of(stream) == &stream_of(nullptr); }
void* address(uint64_t at) { return reinterpret_cast<void*>(at); }
uint32_t load(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

// Launches that fill the GPU have their turns.
std::mutex& turns = *new std::mutex;
std::condition_variable& turn_changed = *new std::condition_variable;
std::atomic<unsigned> turns_given;
unsigned turn;
bool fills(const std::string& name) { return name.find("fill") != std::string::npos; }
std::atomic<bool> lost;

void stop(Module& of, uint64_t site, uint32_t why) {
    Control& control = of.control;
    struct Record {
        uint32_t claimed, published;
        uint64_t site;
        uint32_t why, late, block[3], thread[3];
        uint64_t start_ns, fuel_used, elapsed_ns, elapsed_cycles, reserved, unlisted, sites[64][2];
    };
    const uint32_t launch = control.launch;
    for (Record* record : {(Record*)control.own_record, (Record*)address(control.host_record)}) {
        if (record == nullptr) continue;
        record->claimed = launch;
        record->site = site;
        const uint64_t now = (uint64_t)std::chrono::steady_clock::now().time_since_epoch().count();
        const uint64_t start = __atomic_load_n(&control.start_ns, __ATOMIC_ACQUIRE);
        record->elapsed_ns = start == 0 ? 0 : now - start;
        record->why = why;
        record->block[0] = 3;
        record->thread[0] = 5;
        if (record == (Record*)control.own_record) {
            record->unlisted = 16;
            for (int slot : {5, 21}) record->sites[slot][0] = site, record->sites[slot][1] = 24;
        }
        __atomic_store_n(&record->published, launch, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&of.flag, launch, __ATOMIC_RELEASE);
    if (control.action == 0 && !lost) sticky = 719;
}
void run(Module& of, const std::string& name, unsigned blocks) {
    Control& control = of.control;
    if (sticky != 0) return;
    if (name.find("lost") != std::string::npos) {
        lost = true;
        stop(of, sites["spin"], 2);
        for (;;) pause();
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(blocks);
    const bool forever = name.find("spin") != std::string::npos || name.find("stubborn") != std::string::npos || name.find("deaf") != std::string::npos;
    if (name.find("burn") != std::string::npos) return stop(of, sites["burn"], 4);
    const bool polls = name.find("stubborn") == std::string::npos;
    // `deaf` is a kernel whose own clock is always set anew by others.
    const bool has_clock = name.find("deaf") == std::string::npos;
    while (sticky == 0 && (forever || std::chrono::steady_clock::now() < until)) {
        if (polls && load(&of.flag) == control.launch) return stop(of, sites["spin"], 1);
        const uint64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
        uint64_t start = 0;
        const uint64_t timeout = __atomic_load_n(&control.timeout_ns, __ATOMIC_ACQUIRE);
        const bool looks = polls && timeout != 0;
        if (looks && __atomic_compare_exchange_n(&control.start_ns, &start, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) && control.host_record != 0) {
            __atomic_store_n((uint64_t*)address(control.host_record + 48), now, __ATOMIC_RELEASE);
        }
        if (looks && has_clock && start != 0 && now - start >= timeout) return stop(of, sites["spin"], 2);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}
// A block's shared memory: what it may have, if the program asks for it, and if not; what `full` declares; and what launches of it may ask for.
const int room_if_asked = 232448, room_by_default = 49152, declared_by_full = 9216;
int most_at_launch = room_by_default - declared_by_full;
int enqueue(const void* what, Dim grid, size_t shared, void* stream) {
    if (sticky != 0) return sticky;
    const Kernel kernel = kernels[what];
    if (shared > size_t(kernel.name.find("full") == std::string::npos ? room_by_default : most_at_launch)) return 1;
    if (is_captured(stream)) return 0;
    Module* const of = &module_of(what);
    if (!fills(kernel.name)) {
        stream_of(stream).add([=] { run(*of, kernel.name, grid.x); });
        return 0;
    }
    const unsigned mine = turns_given++;
    stream_of(stream).add([=] {
        std::unique_lock<std::mutex> held(turns);
        turn_changed.wait(held, [=] { return turn == mine; });
        held.unlock();
        run(*of, kernel.name, grid.x);
        held.lock();
        ++turn;
        turn_changed.notify_all();
    });
    return 0;
}
__attribute__((destructor)) void end() {
    while (lost) pause();
}
}  // namespace

extern "C" {
// The driver.
int cuCtxGetCurrent(void** context) { return *context = &all, 0; }
int cuCtxGetId(void*, unsigned long long* id) { return *id = 7, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuKernelGetFunction(void** function, void* kernel) { return *function = kernel, 0; }
int cuFuncGetModule(void** module, void* function) { return *module = &module_of(function), 0; }
int cuFuncGetName(const char** name, void* function) { return *name = kernels[function].name.c_str(), 0; }
int cuModuleGetGlobal_v2(uint64_t* at, size_t* bytes, void* module, const char* name) {
    Module& of = *(Module*)module;
    const bool is_flag = std::strcmp(name, "cuinstr_flag_v1") == 0;
    *at = is_flag ? (uint64_t)&of.flag : (uint64_t)&of.control;
    *bytes = is_flag ? sizeof of.flag : sizeof of.control;
    of.control.flag = (uint64_t)&of.flag;
    return 0;
}
int cuMemHostRegister_v2(void*, size_t, unsigned) { return 0; }
int cuMemHostGetDevicePointer_v2(uint64_t* at, void* memory, unsigned) { return *at = (uint64_t)memory, 0; }
int cuCtxGetStreamPriorityRange(int* lowest, int* highest) { return *lowest = 0, *highest = -5, 0; }
int cuStreamCreateWithPriority(void** stream, unsigned, int) { return *stream = new Stream, 0; }
int cuStreamSynchronize(void* stream) { return stream_of(stream).wait(), sticky.load(); }
int cuStreamQuery(void* stream) { return sticky != 0 ? sticky.load() : stream_of(stream).is_idle() ? 0 : 600; }
int cuStreamIsCapturing(void* stream, int* status) { return *status = is_captured(stream), sticky.load(); }
int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long*, void** graph, const void**, size_t*) {
    return *status = is_captured(stream), *graph = captured, 0;
}
int cuUserObjectCreate(void** object, void* data, void (*release)(void*), unsigned count, unsigned flags) {
    if (has_no_objects || count != 1 || flags != 1) return 801;
    return *object = new Object{data, release}, 0;
}
int cuUserObjectRelease(void* object, unsigned) { return delete (Object*)object, 0; }
int cuGraphRetainUserObject(void* graph, void* object, unsigned count, unsigned flags) {
    if (graph != captured || count != 1 || flags != 1) return 1;
    return captured->kept.push_back((Object*)object), 0;
}
int cuThreadExchangeStreamCaptureMode(int*) { return 0; }
int cuStreamWriteValue32_v2(void* stream, uint64_t at, uint32_t value, unsigned) {
    if (sticky != 0) return sticky;
    stream_of(stream).add([=] { __atomic_store_n((uint32_t*)address(at), value, __ATOMIC_RELEASE); });
    return 0;
}
struct Write {
    uint32_t kind, unused;
    uint64_t to, value;
    uint32_t flags, unused_;
    uint64_t alias, rest;
};
int cuStreamBatchMemOp_v2(void* stream, unsigned count, const Write* writes, unsigned) {
    if (sticky != 0) return sticky;
    for (unsigned index = 0; index < count && !is_captured(stream); ++index) {
        const Write one = writes[index];
        stream_of(stream).add([=] {
            if (sticky != 0) return;
            if (one.kind == 5) __atomic_store_n((uint64_t*)address(one.to), one.value, __ATOMIC_RELEASE);
            else __atomic_store_n((uint32_t*)address(one.to), (uint32_t)one.value, __ATOMIC_RELEASE);
        });
    }
    return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void*) { return std::memcpy(address(to), from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void*) { return std::memcpy(to, address(from), bytes), 0; }
int cuMemsetD32Async(uint64_t at, unsigned, size_t words, void*) { return std::memset(address(at), 0, words * 4), 0; }

// The runtime, as far as a program of the tests needs it.
static thread_local Dim pushed_grid, pushed_block;
static thread_local size_t pushed_shared;
static thread_local void* pushed_stream;
unsigned __cudaPushCallConfiguration(Dim grid, Dim block, size_t shared, void* stream) {
    pushed_grid = grid, pushed_block = block, pushed_shared = shared, pushed_stream = stream;
    return 0;
}
int __cudaPopCallConfiguration(Dim* grid, Dim* block, size_t* shared, void* stream) {
    *grid = pushed_grid, *block = pushed_block, *shared = pushed_shared, *(void**)stream = pushed_stream;
    return 0;
}
void** __cudaRegisterFatBinary(void*) {
    static void* handle;
    // Sites of the program's own rows: the loops of `spin` and of `burn`.
    const auto program_rows = (const char* (*)(size_t*))dlsym(nullptr, "program_rows");
    size_t length = 0;
    const char* begin = program_rows != nullptr ? program_rows(&length) : "";
    const std::string rows(begin, length);
    for (const char* name : {"spin", "burn"}) {
        // Of source by its word, of PTX by its whole name.
        size_t found = rows.find(std::string("while\t") + name + "\n");
        if (found == std::string::npos) found = rows.find(std::string("loop\t") + (name == std::string("spin") ? "scope::spin<int>" : name) + "\n");
        const size_t line = found == std::string::npos ? found : rows.rfind('\n', found);
        if (line != std::string::npos) sites[name] = std::stoull(rows.substr(line + 1, 16), nullptr, 16);
    }
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) { kernels[host] = {host, name}; }
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
int __cudaGetKernel(void** kernel, const void* host) { return *kernel = (void*)host, 0; }
int __cudaLaunchKernel(const void* what, Dim grid, Dim, void**, size_t shared, void* stream) { return enqueue(what, grid, shared, stream); }
int __cudaLaunchKernel_ptsz(const void* what, Dim grid, Dim, void**, size_t shared, void* stream) { return enqueue(what, grid, shared, stream); }
int cudaLaunchKernel(const void* what, Dim grid, Dim, void**, size_t shared, void* stream) { return enqueue(what, grid, shared, stream); }
int cudaLaunchKernel_ptsz(const void* what, Dim grid, Dim, void**, size_t shared, void* stream) { return enqueue(what, grid, shared, stream); }
int cudaLaunchCooperativeKernel(const void* what, Dim grid, Dim, void**, size_t shared, void* stream) { return enqueue(what, grid, shared, stream); }
int cudaLaunchCooperativeKernel_ptsz(const void* what, Dim grid, Dim, void**, size_t shared, void* stream) { return enqueue(what, grid, shared, stream); }
int cudaLaunchKernelExC(const void* all, const void* what, void**) { 
    return enqueue(what, *(const Dim*)all, *(const size_t*)((const char*)all + 24), *(void* const*)((const char*)all + 32));
 }
int cudaLaunchKernelExC_ptsz(const void* all, const void* what, void** more) { return cudaLaunchKernelExC(all, what, more); }
int cudaGetFuncBySymbol(void** function, const void* host) { return *function = (void*)host, 0; }
int cudaFree(void*) { return 0; }
int cudaFreeHost(void*) { return 0; }
int cudaMemcpy(void*, const void*, size_t, int) { return 0; }
int cudaMemcpy2D(void*, size_t, const void*, size_t, size_t, size_t, int) { return 0; }
int cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, int) { return 0; }
int cudaMemcpyFromSymbol(void*, const void*, size_t, size_t, int) { return 0; }
int cudaStreamCreateWithFlags(void** stream, unsigned) { return *stream = new Stream, 0; }
int cudaStreamCreateWithPriority(void** stream, unsigned, int) { return *stream = new Stream, 0; }
int cudaGraphLaunch(void*, void*) { return 0; }
int cudaGraphLaunch_ptsz(void*, void*) { return 0; }
int cudaGetDevice(int* device) { return *device = 0, 0; }
int cudaDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 97 ? room_if_asked : attribute == 8 ? room_by_default : 0, 0; }
struct FunctionAttributes {
    size_t declared, constant, local;
    int threads, registers, ptx, binary, cached, most_at_launch;
};
int cudaFuncGetAttributes(FunctionAttributes* function, const void*) {
    *function = {size_t(declared_by_full), 0, 0, 0, 0, 0, 0, 0, most_at_launch};
    return 0;
}
int cudaFuncSetAttribute(const void*, int attribute, int value) {
    if (attribute != 8 || value + declared_by_full > room_if_asked) return 1;
    most_at_launch = value;
    return 0;
}
int cudaStreamBeginCapture(void*, int) { return captured = new Graph, 0; }
int cudaStreamEndCapture(void*, void** graph) { return *graph = captured, captured = nullptr, 0; }
int cudaGraphDestroy(void* graph) {
    for (Object* one : ((Graph*)graph)->kept) one->release(one->data), delete one;
    return delete (Graph*)graph, 0;
}
void stand_in_without_objects() { has_no_objects = true; }
void stand_in_with_many_modules() { has_many_modules = true; }
int cudaStreamCreate(void** stream) { return *stream = new Stream, 0; }
int cudaStreamSynchronize(void* stream) { return stream_of(stream).wait(), sticky.load(); }
int cudaDeviceSynchronize() { return stream_of(nullptr).wait(), sticky.load(); }
}
