/* cuinstr: stops CUDA kernels that do not end, and keeps the context.
 *
 * A kernel is rewritten (cuinstr_rewrite or cuinstr_rewrite_ptx, or the command `cuinstr`), compiled and loaded by the caller's own means. Then
 *
 *     cuinstr_module module;
 *     cuinstr_attach_module(cu_module, NULL, &module);                  once a module
 *
 *     cuinstr_limits limits = CUINSTR_LIMITS_INIT;
 *     limits.timeout_ns = 2000000000;
 *     cuinstr_guard guard;
 *     cuinstr_arm(module, stream, &limits, &guard);                     before each launch
 *     cuLaunchKernel(..., stream, ...);                                 as ever: also <<<...>>>, several in a row, cooperative ones
 *     cuinstr_launched(guard);                                          right after it
 *     cuinstr_outcome outcome = CUINSTR_OUTCOME_INIT;
 *     cuinstr_wait(guard, 3000000000, &outcome);
 *     if (outcome.kind == CUINSTR_STOPPED) puts(outcome.report);
 *     cuinstr_release(guard);
 *
 * RULES
 * - Each call returns a status. What went wrong is said by cuinstr_message(), for the calling thread.
 * - No call throws, unwinds, or ends the process. None blocks without a bound: attaching gives up after 10 s, waiting after the limit that it is
 *   given, releasing after the grace time, calls for processes as cuinstr_process_open says. Snapshots copy memory, and wait for the
 *   driver and the disk. All others return at once.
 * - All calls may come from several threads at the same time. Handles are numbers that are never given twice: one that was released, or that
 *   never was one, is answered with CUINSTR_BAD_HANDLE. The driver's own handles are the caller's word: they must be alive.
 * - The calling thread's current context is the same after a call as before.
 * - A module must stay loaded while it is attached and its guarded launches run; a stream until its guard is released.
 * - Texts are UTF-8, end with a zero, and live until the handle they came with is released.
 *
 * STABILITY
 * Within CUINSTR_API_VERSION 1 nothing below changes its name, number, type or place. Later releases may add functions and statuses, and fields at
 * the ends of structs: each struct begins with the size that the caller knows, and what lies beyond it counts as zero, or is not written. The
 * library's soname is libcuinstr.so.1.
 *
 * Licensed under MIT or Apache-2.0, at your option.
 */
#ifndef CUINSTR_H
#define CUINSTR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUINSTR_API_VERSION 1

/* The driver's types, as cuda.h declares them. */
struct CUmod_st;
struct CUlib_st;
struct CUfunc_st;
struct CUkern_st;
struct CUstream_st;

typedef int32_t cuinstr_status;
enum {
    CUINSTR_OK = 0,
    CUINSTR_PENDING = 1,          /* no error: the outcome is not known yet */
    CUINSTR_BAD_ARGUMENT = 2,     /* a null pointer, a size, a limit or a text that makes no sense */
    CUINSTR_BAD_HANDLE = 3,       /* a handle of ours that was released or never was one; a null or unknown handle of the driver's */
    CUINSTR_REFUSED = 4,          /* the source can't be rewritten; the message has each reason on a line */
    CUINSTR_NO_DRIVER = 5,        /* no driver, or one that is too old */
    CUINSTR_NO_CONTEXT = 6,       /* the thread has no current context */
    CUINSTR_OTHER_CONTEXT = 7,    /* a module or stream of another context */
    CUINSTR_NOT_INSTRUMENTED = 8, /* the module was not rewritten */
    CUINSTR_OTHER_ABI = 9,        /* the module was rewritten by another version */
    CUINSTR_CAPTURING = 10,       /* the stream is being captured into a graph */
    CUINSTR_ALREADY_ARMED = 11,   /* the module is armed for a launch that has not come */
    CUINSTR_BAD_ORDER = 12,       /* launched twice, waited for before it was launched */
    CUINSTR_NOT_LAUNCHED = 13,    /* no kernel of the module ran in the stream between arm and launched */
    CUINSTR_NOT_BEGUN = 14,       /* the GPU has not begun it in time; wait again */
    CUINSTR_UNDRAINED = 15,       /* it was told to stop and still runs: a loop or wait without a poll; wait again */
    CUINSTR_POISONED = 16,        /* an earlier kernel ended the context */
    CUINSTR_CONTEXT_BUSY = 17,    /* attaching waits for running kernels and gave up */
    CUINSTR_OUT_OF_MEMORY = 18,
    CUINSTR_DRIVER_ERROR = 19,    /* another answer of the driver */
    CUINSTR_MACHINE = 20,         /* something that this machine should do and does not */
    CUINSTR_INTERNAL = 21,        /* a fault of the library's; please report its message */
    /* of processes that are checkpointed */
    CUINSTR_NO_PROCESS = 22,
    CUINSTR_NO_PERMISSION = 23,      /* it is another user's */
    CUINSTR_NOT_CUDA = 24,           /* it does not use CUDA, or has not initialised it */
    CUINSTR_WRONG_STATE = 25,
    CUINSTR_PROCESS_BUSY = 26,       /* its kernels did not end within the lock's timeout; it runs on */
    CUINSTR_NOT_CHECKPOINTABLE = 27, /* MIG, MPS, aarch64, managed memory, memory shared by IPC */
    CUINSTR_NO_ROOM = 28,            /* on the GPU, or in host memory; nothing was touched */
    CUINSTR_PROCESS_LOST = 29,       /* the driver failed half way; end the process */
    CUINSTR_BLOCKED = 30,            /* a call of the driver did not return; its helper was killed */
    /* of launches that are paused */
    CUINSTR_NOT_PAUSABLE = 31,    /* the module or the launch was not made so that it can be paused */
    CUINSTR_NOT_PAUSED = 32,      /* blocks that had begun still run; the request stands, wait or cancel */
    /* of snapshots */
    CUINSTR_FILE = 33,            /* a file can't be read or written, or the disk has no room */
    CUINSTR_NOT_A_SNAPSHOT = 34,  /* the file is no snapshot, is damaged, or of a format of another release */
    CUINSTR_OTHER_GPU = 35,       /* the snapshot is of another model of GPU */
    CUINSTR_ADDRESS_TAKEN = 36    /* this process has something else at an address of the snapshot */
};

/* Handles. Zero is none. */
typedef struct cuinstr_rewritten { uint64_t id; } cuinstr_rewritten;
typedef struct cuinstr_module { uint64_t id; } cuinstr_module;
typedef struct cuinstr_guard { uint64_t id; } cuinstr_guard;

/* CUINSTR_API_VERSION of the library that is running. */
uint32_t cuinstr_api_version(void);
/* Its release, such as "0.1.0". Lives for ever. */
const char *cuinstr_release_name(void);
/* Why the last call of this thread did not return CUINSTR_OK; empty if it did. Lives until the thread's next call. */
const char *cuinstr_message(void);
/* The name of a status as above. Lives for ever. */
const char *cuinstr_status_name(cuinstr_status status);

/* ---- Rewriting. Needs no GPU. */

typedef struct cuinstr_rewrite_options {
    uint32_t size;          /* sizeof this struct */
    uint32_t polls_each;    /* 1: a poll in every iteration of every loop */
    const char *path;       /* what compilers and reports call the source; "kernel.cu" if null */
    uint64_t timeout_ns;    /* limits compiled in for hosts that arm nothing; 0 is none */
    uint64_t budget_cycles; /* also what makes cuinstr_limits.budget_cycles possible */
    uint64_t fuel;          /* also what makes cuinstr_limits.fuel possible */
    uint32_t strict;        /* 1: a gap that no poll covers is an error */
    uint32_t reserved;      /* 0 */
    /* Names separated by spaces; null is none. What cuinstr.toml says for the command is said here. */
    const char *loop_macros;   /* macros from headers that open a loop: "FOR_EACH_CELL FOREVER" */
    const char *device_macros; /* macros that mark functions, and as what: "MY_KERNEL=kernel MY_FUNCTION=device MY_BOTH=host-device" */
    const char *leave_alone;   /* functions to leave as they are */
    const char *barrier_marks; /* "auto" if null, "shared" or "global": the memory in which threads at barriers learn that others have left */
    uint64_t pausable;         /* 1: launches can be paused (cuinstr_pause) */
} cuinstr_rewrite_options;
#define CUINSTR_REWRITE_OPTIONS_INIT { sizeof(cuinstr_rewrite_options), 0, NULL, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 0 }

/* Rewrites CUDA source of `length` bytes; `options` may be null. This process's modules compiled from it are known by it: their reports show its
 * lines without an image or a file. */
cuinstr_status cuinstr_rewrite(const char *source, size_t length, const cuinstr_rewrite_options *options, cuinstr_rewritten *rewritten);
/* Puts polls into PTX of `length` bytes, as nvcc, NVRTC, clang and Triton make it; "kernel.ptx" if it has no path. Of the options, macros and
 * barrier_marks mean nothing here. */
cuinstr_status cuinstr_rewrite_ptx(const char *ptx, size_t length, const cuinstr_rewrite_options *options, cuinstr_rewritten *rewritten);
/* The rewritten source or PTX. `length`, which may be null here and below, gets its bytes without the zero at its end. */
cuinstr_status cuinstr_rewritten_text(cuinstr_rewritten rewritten, const char **text, size_t *length);
/* Its sites, one JSON object. */
cuinstr_status cuinstr_rewritten_sites(cuinstr_rewritten rewritten, const char **json, size_t *length);
/* What the rewriter has to say, gaps above all: one JSON object a line, or nothing. */
cuinstr_status cuinstr_rewritten_diagnostics(cuinstr_rewritten rewritten, const char **json_lines, size_t *length);
cuinstr_status cuinstr_rewritten_release(cuinstr_rewritten rewritten);

/* ---- Attaching, in the context that is current. */

typedef struct cuinstr_about {
    uint32_t size;      /* sizeof this struct */
    uint32_t reserved;  /* 0 */
    const void *image;  /* the PTX, cubin or fat binary of the module, for the lines in reports; may be null */
    size_t image_size;  /* its bytes; those of PTX end before its zero */
    const char *kernel; /* what reports call the kernel; may be null */
    const char *folder; /* what the paths of sources are relative to, to show their lines; null: no file is read */
} cuinstr_about;
#define CUINSTR_ABOUT_INIT { sizeof(cuinstr_about), 0, NULL, 0, NULL, NULL }

/* `about` may be null. The first call in a context waits for the kernels that run there, up to 10 s. Attaching twice gives two handles to one. */
cuinstr_status cuinstr_attach_module(struct CUmod_st *cu_module, const cuinstr_about *about, cuinstr_module *module);
cuinstr_status cuinstr_attach_library(struct CUlib_st *cu_library, const cuinstr_about *about, cuinstr_module *module);
/* The module of a function: also what cudaGetFuncBySymbol gives for a kernel of the CUDA runtime. */
cuinstr_status cuinstr_attach_function(struct CUfunc_st *cu_function, const cuinstr_about *about, cuinstr_module *module);
cuinstr_status cuinstr_attach_kernel(struct CUkern_st *cu_kernel, const cuinstr_about *about, cuinstr_module *module);
/* By the device address of cuinstr_control_v1, which cudaGetSymbolAddress gives in the rewritten source's own translation unit. */
cuinstr_status cuinstr_attach_control(uint64_t address, const cuinstr_about *about, cuinstr_module *module);
/* Guards of it that are not released work on. */
cuinstr_status cuinstr_detach(cuinstr_module module);

/* ---- Guarding a launch. */

enum {
    CUINSTR_UNTIL_CANCELLED = 1, /* no timeout is meant */
    CUINSTR_COUNT_FUEL = 2,      /* tell fuel_used, where fuel is compiled in */
    CUINSTR_PAUSABLE = 4         /* one launch, of `grid` blocks, which can be paused; the module was rewritten so */
};

typedef struct cuinstr_limits {
    uint32_t size;            /* sizeof this struct */
    uint32_t flags;           /* of those above */
    uint64_t timeout_ns;      /* from the moment that the kernel begins */
    uint64_t fuel;            /* iterations of a thread, where fuel is compiled in; 0: none but what is compiled in */
    uint64_t budget_cycles;   /* cycles of a block, where a budget is compiled in; 0 likewise */
    uint64_t grace_ns;        /* time to leave once it was told to; 0: 100 ms */
    uint64_t begin_within_ns; /* time that the GPU may take to begin it; 0: a minute */
    uint32_t grid[3];         /* blocks of what is launched, x, y, z, for reports, which then say of how many threads; zeros: not known */
    uint32_t block[3];        /* threads of a block likewise */
} cuinstr_limits;
#define CUINSTR_LIMITS_INIT { sizeof(cuinstr_limits), 0, 0, 0, 0, 0, 0, { 0, 0, 0 }, { 0, 0, 0 } }

enum { CUINSTR_COMPLETED = 1, CUINSTR_STOPPED = 2, CUINSTR_FAULTED = 3, CUINSTR_PAUSED = 4 };
enum { CUINSTR_CANCELLED = 1, CUINSTR_DEADLINE = 2, CUINSTR_BUDGET = 3, CUINSTR_FUEL = 4 };

typedef struct cuinstr_outcome {
    uint32_t size;           /* sizeof this struct */
    uint32_t kind;           /* CUINSTR_COMPLETED: every thread did all its work; _STOPPED: threads left, the context lives; _FAULTED: it does not; _PAUSED: blocks wait */
    uint32_t cause;          /* of a stop */
    uint32_t late;           /* completed, but a reason to stop had arisen by then */
    uint64_t elapsed_ns;     /* completed: from arming until the end was seen */
    uint64_t latency_ns;     /* stopped or paused: from the reason until every thread had left */
    uint64_t fuel_used;      /* completed: most iterations of a thread, if counted */
    uint64_t threads;        /* stopped: how many left */
    uint32_t block[3];       /* stopped: blockIdx of the first */
    uint32_t thread[3];      /* and its threadIdx */
    uint32_t line;           /* and its line, from 1; 0 if no site map is known */
    uint32_t column;         /* in bytes, from 1 */
    uint32_t driver_error;   /* faulted: CUresult */
    uint32_t reserved;
    const char *kernel;      /* its name; empty if not known */
    const char *file;        /* where it was stopped; empty if not known */
    const char *function;
    const char *report;      /* stopped or faulted: all of it for people, several lines */
    const char *json;        /* all of it for programs; empty if paused */
    uint64_t blocks_done;    /* paused: blocks that have run */
    uint64_t blocks_left;    /* and blocks that have not */
} cuinstr_outcome;
#define CUINSTR_OUTCOME_INIT \
    { sizeof(cuinstr_outcome), 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0 }, { 0, 0, 0 }, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/* Arms the module for what is launched next on the stream: NULL or 1 is the legacy default stream, 2 the thread's own. A module serves one launch
 * at a time: on another stream the next one is made to wait for the one before. Give a timeout, or CUINSTR_UNTIL_CANCELLED. */
cuinstr_status cuinstr_arm(cuinstr_module module, struct CUstream_st *stream, const cuinstr_limits *limits, cuinstr_guard *guard);
/* The launch was made. Several launches between the two calls share limits and outcome. */
cuinstr_status cuinstr_launched(cuinstr_guard guard);
/* Waits at most `limit_ns` for the outcome: CUINSTR_OK, with `outcome` filled unless it is null, or CUINSTR_PENDING, or an error. An outcome that
 * is known is told again by each call; its texts live until the guard is released. */
cuinstr_status cuinstr_wait(cuinstr_guard guard, uint64_t limit_ns, cuinstr_outcome *outcome);
cuinstr_status cuinstr_poll(cuinstr_guard guard, cuinstr_outcome *outcome);
/* Tells it to stop, from any thread, as often as you like; it never hits a later launch. Wait for what comes of it. */
cuinstr_status cuinstr_cancel(cuinstr_guard guard);
/* Has blocks that have not begun decline to run, and waits at most `within_ns` until those that have are over: CUINSTR_OK if the launch is paused, or is
 * over by then, which cuinstr_poll tells. What the stream holds behind the launch waits. */
cuinstr_status cuinstr_pause(cuinstr_guard guard, uint64_t within_ns);
/* Arms the next part of a paused launch in another stream than its own. Launch the same kernel there, with the same grid and arguments, and call
 * cuinstr_launched. */
cuinstr_status cuinstr_resume(cuinstr_guard guard, struct CUstream_st *stream);
/* Gives the guard back. What is in flight is cancelled and waited for, up to the grace time. */
cuinstr_status cuinstr_release(cuinstr_guard guard);

/* ---- Processes that are suspended and resumed by their pid. They need no code of ours, and no context here. */

typedef struct cuinstr_process { uint64_t id; } cuinstr_process;

/* States. A newer driver may have others. */
enum {
    CUINSTR_PROCESS_RUNNING = 0,
    CUINSTR_PROCESS_LOCKED = 1,       /* its calls of CUDA wait */
    CUINSTR_PROCESS_CHECKPOINTED = 2, /* its GPU memory is in host memory, and it holds no GPU */
    CUINSTR_PROCESS_FAILED = 3
};

/* A GPU that a process was on, and the one that takes its place: 16 bytes of the UUID that `nvidia-smi -L` prints. */
typedef struct cuinstr_gpu_pair {
    uint8_t old_uuid[16];
    uint8_t new_uuid[16];
} cuinstr_gpu_pair;

/* A process that is there, the caller's own too. Each call of the driver is made by a child process, the program `helper`, and given up when it does
 * not return: after ten minutes if it moves memory, 30 s and the timeout otherwise. `helper` is the path of cuinstr-checkpoint or of cuinstr; null:
 * the one on the search path. */
cuinstr_status cuinstr_process_open(int64_t pid, const char *helper, cuinstr_process *process);
cuinstr_status cuinstr_process_state(cuinstr_process process, uint32_t *state);
cuinstr_status cuinstr_process_restore_thread_id(cuinstr_process process, int32_t *thread);
/* The four steps, each in the state that the one before leaves. A timeout of 0 is none; no pairs are no mapping. */
cuinstr_status cuinstr_process_lock(cuinstr_process process, uint32_t timeout_ms);
cuinstr_status cuinstr_process_checkpoint(cuinstr_process process);
cuinstr_status cuinstr_process_restore(cuinstr_process process, const cuinstr_gpu_pair *pairs, size_t count);
cuinstr_status cuinstr_process_unlock(cuinstr_process process);
/* Two steps in one. What fails half way is undone, and the message says where the process stands. */
cuinstr_status cuinstr_process_suspend(cuinstr_process process, uint32_t timeout_ms);
cuinstr_status cuinstr_process_resume(cuinstr_process process, const cuinstr_gpu_pair *pairs, size_t count);
/* Lets go of the handle. The process stays as it is. */
cuinstr_status cuinstr_process_close(cuinstr_process process);

/* ---- Snapshots: GPU memory by name, saved to a file and restored in another process at the same addresses. No privileges, no CRIU. */

typedef struct cuinstr_ledger { uint64_t id; } cuinstr_ledger;

/* An empty ledger in the primary context of a device, counted from 0. */
cuinstr_status cuinstr_snapshot_new(int32_t device, cuinstr_ledger *ledger);
/* The ledger of a file, on a GPU of the same model. Call it before other memory is allocated. What fails leaves nothing behind. */
cuinstr_status cuinstr_snapshot_restore(int32_t device, const char *path, cuinstr_ledger *ledger);
/* Memory of zeroes under a new name. It stays until its context ends, or cuinstr_snapshot_free. */
cuinstr_status cuinstr_snapshot_allocate(cuinstr_ledger ledger, const char *name, size_t bytes, uint64_t *address);
cuinstr_status cuinstr_snapshot_memory(cuinstr_ledger ledger, const char *name, uint64_t *address, size_t *bytes);
/* No kernel that runs or will run may use the memory. */
cuinstr_status cuinstr_snapshot_free(cuinstr_ledger ledger, const char *name);
/* Takes over a paused launch under a new name. What its arguments lead to lies in the ledger's memory. The launch is over then, as if it was
 * cancelled: what is queued behind it goes on, on the results of the blocks that are done. */
cuinstr_status cuinstr_snapshot_put_paused(cuinstr_ledger ledger, const char *name, cuinstr_guard guard);
/* Arms the module for the blocks that are left of such a launch, here or where the ledger is restored; the ledger holds it no longer. Launch the same
 * kernel on the stream, with the same grid and arguments, and call cuinstr_launched. */
cuinstr_status cuinstr_snapshot_arm(cuinstr_ledger ledger, const char *name, cuinstr_module module, struct CUstream_st *stream, cuinstr_guard *guard);
/* Saves memory and paused launches once the context's default stream has no work left, which is waited for at most `within_ns`: CUINSTR_CONTEXT_BUSY after that.
 * Work in other streams is the caller's to wait for. The file takes the place of one of that name when it is whole. */
cuinstr_status cuinstr_snapshot_save(cuinstr_ledger ledger, const char *path, uint64_t within_ns);
/* Lets go of the handle. The memory stays. */
cuinstr_status cuinstr_snapshot_release(cuinstr_ledger ledger);

#ifdef __cplusplus
}
#endif
#endif
