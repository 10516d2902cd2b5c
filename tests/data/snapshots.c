/* `snapshots FOLDER`: what keeps a snapshot from being made or restored, over the stand-in driver. runtime/c/examples/snapshot.c has the rest. */
#include "cuinstr.h"

#include <stdio.h>
#include <stdlib.h>

int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);

static void expect(cuinstr_status found, cuinstr_status wanted, int line) {
    if (found == wanted) return;
    fprintf(stderr, "line %d: %s, not %s: %s\n", line, cuinstr_status_name(found), cuinstr_status_name(wanted), cuinstr_message());
    exit(1);
}
#define EXPECT(call, wanted) expect(call, wanted, __LINE__)

int main(int count, char **arguments) {
    cuinstr_ledger ledger, other;
    uint64_t first = 0, second = 0;
    size_t bytes = 0;
    char path[4096];
    void *context = NULL;
    FILE *file;
    if (count != 2) return 2;
    snprintf(path, sizeof path, "%s/state.snapshot", arguments[1]);
    EXPECT(cuinstr_snapshot_new(-1, &ledger), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_new(0, NULL), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_new(0, &ledger), CUINSTR_OK);
    /* The thread has no context, as before. */
    if (cuCtxGetCurrent(&context) != 0 || context != NULL) return 3;
    EXPECT(cuinstr_snapshot_allocate(ledger, "one", 4096, &first), CUINSTR_OK);
    EXPECT(cuinstr_snapshot_allocate(ledger, "one", 4096, &second), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_allocate(ledger, NULL, 4096, &second), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_allocate(ledger, "two", 4096, NULL), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_memory(ledger, "two", &second, &bytes), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_allocate(ledger, "two", 10, &second), CUINSTR_OK);
    EXPECT(cuinstr_snapshot_memory(ledger, "two", &first, &bytes), CUINSTR_OK);
    if (first != second || bytes != 10) return 4;
    EXPECT(cuinstr_snapshot_free(ledger, "two"), CUINSTR_OK);
    EXPECT(cuinstr_snapshot_free(ledger, "two"), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_save(ledger, "/no/such/folder/file", 1000000000), CUINSTR_FILE);
    EXPECT(cuinstr_snapshot_save(ledger, NULL, 1000000000), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_snapshot_save(ledger, path, 1000000000), CUINSTR_OK);
    /* Here its memory is in its own way. */
    EXPECT(cuinstr_snapshot_restore(0, path, &other), CUINSTR_ADDRESS_TAKEN);
    EXPECT(cuinstr_snapshot_restore(0, arguments[1], &other), CUINSTR_FILE);
    file = fopen(path, "r+b");
    if (!file || fseek(file, 100, SEEK_SET) != 0 || fputc(7, file) == EOF || fclose(file) != 0) return 5;
    EXPECT(cuinstr_snapshot_free(ledger, "one"), CUINSTR_OK);
    EXPECT(cuinstr_snapshot_restore(0, path, &other), CUINSTR_NOT_A_SNAPSHOT);
    EXPECT(cuinstr_snapshot_release(ledger), CUINSTR_OK);
    EXPECT(cuinstr_snapshot_save(ledger, path, 0), CUINSTR_BAD_HANDLE);
    if (cuCtxGetCurrent(&context) != 0 || context != NULL) return 6;
    puts("all as it should be");
    return 0;
}
