/* A counter in GPU memory that outlives its process: each run counts one further, from the file that the run before left.
 *
 *     cc snapshot.c -lcuinstr -lcuda -o snapshot && ./snapshot counter.snapshot && ./snapshot counter.snapshot */
#include <cuda.h>
#include <cuinstr.h>
#include <stdio.h>
#define MUST(call) do { if ((call) != 0) { fprintf(stderr, "failed: %s: %s\n", #call, cuinstr_message()); return 1; } } while (0)

int main(int argc, char **argv) {
    cuinstr_ledger ledger;
    CUcontext context;
    CUdeviceptr address;
    uint64_t place;
    size_t bytes;
    unsigned count = 0;
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    MUST(argc != 2 || cuInit(0));
    if (file) {
        MUST(fclose(file) || cuinstr_snapshot_restore(0, argv[1], &ledger));
        MUST(cuinstr_snapshot_memory(ledger, "count", &place, &bytes));
    } else {
        MUST(cuinstr_snapshot_new(0, &ledger) || cuinstr_snapshot_allocate(ledger, "count", sizeof count, &place));
    }
    MUST(cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context));
    address = (CUdeviceptr)place;
    MUST(cuMemcpyDtoH(&count, address, sizeof count));
    count += 1;
    MUST(cuMemcpyHtoD(address, &count, sizeof count));
    MUST(cuinstr_snapshot_save(ledger, argv[1], 5000000000) || cuinstr_snapshot_release(ledger));
    printf("%u at %#llx\n", count, (unsigned long long)place);
    return 0;
}
