/* `paused save|restore FILE`: a launch that is paused in one process and goes on in another, over the stand-in driver. */
#include "cuinstr.h"

#include <stdio.h>
#include <string.h>

struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuModuleLoadData(struct CUmod_st **module, const void *image);
int cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name);
int cuStreamCreate(struct CUstream_st **stream, unsigned flags);
int cuLaunchKernel(struct CUfunc_st *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned, struct CUstream_st *stream, void **arguments, void **extra);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);

enum { BLOCKS = 60 };
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 8 .b8 cuinstr_control_v1[1192];\n.visible .global .align 4 .u32 cuinstr_flag_v1;\n"
    ".visible .global .align 16 .b8 cuinstr_pause_v1[48];\n"
    ".visible .entry blocks(.param .u64 slots, .param .u64 nanoseconds, .param .u64 counts) { ret; }\n";
static const uint64_t long_ns = 60000000000;

#define MUST(call) \
    do { \
        if ((call) != 0) return fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, cuinstr_message()), 1; \
    } while (0)

int main(int count, char **words) {
    cuinstr_ledger ledger;
    cuinstr_module module;
    cuinstr_guard guard, other;
    cuinstr_limits limits = CUINSTR_LIMITS_INIT;
    cuinstr_outcome outcome = CUINSTR_OUTCOME_INIT;
    struct CUmod_st *cu_module;
    struct CUfunc_st *kernel;
    struct CUstream_st *stream;
    void *context, *arguments[3];
    uint64_t slots = 4, ns, counts, ran = 0;
    size_t bytes;
    uint32_t found[BLOCKS];
    const int saves = count == 3 && strcmp(words[1], "save") == 0;
    if (count != 3) return 2;
    ns = saves ? 200000000 : 1000000;
    if (saves) MUST(cuinstr_snapshot_new(0, &ledger) || cuinstr_snapshot_allocate(ledger, "counts", sizeof found, &counts));
    else MUST(cuinstr_snapshot_restore(0, words[2], &ledger) || cuinstr_snapshot_memory(ledger, "counts", &counts, &bytes));
    MUST(cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&cu_module, ptx) || cuModuleGetFunction(&kernel, cu_module, "blocks") || cuStreamCreate(&stream, 1));
    MUST(cuinstr_attach_module(cu_module, NULL, &module));
    arguments[0] = &slots, arguments[1] = &ns, arguments[2] = &counts;
    if (saves) {
        limits.timeout_ns = long_ns;
        limits.flags = CUINSTR_PAUSABLE;
        limits.grid[0] = BLOCKS;
        MUST(cuinstr_arm(module, stream, &limits, &guard));
        MUST(cuinstr_snapshot_put_paused(ledger, "long", guard) == CUINSTR_OK);
    } else {
        MUST(cuinstr_snapshot_arm(ledger, "none", module, stream, &guard) != CUINSTR_BAD_ARGUMENT);
        MUST(cuinstr_snapshot_arm(ledger, "long", module, stream, NULL) != CUINSTR_BAD_ARGUMENT);
        MUST(cuinstr_snapshot_arm(ledger, "long", module, stream, &guard));
        MUST(cuinstr_snapshot_arm(ledger, "long", module, stream, &other) != CUINSTR_BAD_ARGUMENT);
    }
    MUST(cuLaunchKernel(kernel, BLOCKS, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
    MUST(cuinstr_launched(guard));
    if (saves) {
        MUST(cuinstr_pause(guard, long_ns) || cuinstr_poll(guard, &outcome) || outcome.kind != CUINSTR_PAUSED);
        printf("%d blocks are left\n", (int)outcome.blocks_left);
        MUST(cuinstr_snapshot_put_paused(ledger, NULL, guard) != CUINSTR_BAD_ARGUMENT);
        MUST(cuinstr_snapshot_put_paused(ledger, "long", guard));
        MUST(cuinstr_snapshot_save(ledger, words[2], long_ns));
    } else {
        MUST(cuinstr_wait(guard, long_ns, &outcome) || outcome.kind != CUINSTR_COMPLETED);
        MUST(cuMemcpyDtoH_v2(found, counts, sizeof found));
        for (count = 0; count < BLOCKS; ++count) ran += found[count] == 1;
        printf("%d blocks have run once\n", (int)ran);
    }
    return cuinstr_release(guard) || cuinstr_snapshot_release(ledger);
}
