/* `processes FOLDER HELPER`: suspends and resumes this very process, over the stand-in driver, which knows of it by a file in FOLDER. */
#include "cuinstr.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void expect(cuinstr_status found, cuinstr_status wanted, int line) {
    if (found == wanted) return;
    fprintf(stderr, "line %d: %s, not %s: %s\n", line, cuinstr_status_name(found), cuinstr_status_name(wanted), cuinstr_message());
    exit(1);
}
#define EXPECT(call, wanted) expect(call, wanted, __LINE__)

static void know(const char *folder, const char *facts) {
    char path[4096];
    FILE *file;
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    file = fopen(path, "w");
    if (!file || fputs(facts, file) < 0 || fclose(file) != 0) exit(2);
}

static uint32_t state(cuinstr_process process) {
    uint32_t now = 99;
    EXPECT(cuinstr_process_state(process, &now), CUINSTR_OK);
    return now;
}

int main(int count, char **arguments) {
    cuinstr_process process;
    cuinstr_gpu_pair stays = { { 0 }, { 0 } };
    cuinstr_gpu_pair absent = { { 0 }, { 9 } };
    int32_t thread = 0;
    if (count != 3) return 2;
    know(arguments[1], "bytes 4096\n");
    EXPECT(cuinstr_process_open(0, arguments[2], &process), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_process_open(2147483647, arguments[2], &process), CUINSTR_NO_PROCESS);
    EXPECT(cuinstr_process_open(getpid(), arguments[2], NULL), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_process_open(getpid(), arguments[2], &process), CUINSTR_OK);
    EXPECT(cuinstr_process_restore_thread_id(process, &thread), CUINSTR_OK);
    EXPECT(cuinstr_process_unlock(process), CUINSTR_WRONG_STATE);
    EXPECT(cuinstr_process_lock(process, 100), CUINSTR_OK);
    if (state(process) != CUINSTR_PROCESS_LOCKED) return 3;
    EXPECT(cuinstr_process_checkpoint(process), CUINSTR_OK);
    if (state(process) != CUINSTR_PROCESS_CHECKPOINTED) return 4;
    EXPECT(cuinstr_process_restore(process, &absent, 1), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_process_restore(process, NULL, 1), CUINSTR_BAD_ARGUMENT);
    EXPECT(cuinstr_process_restore(process, &stays, 1), CUINSTR_OK);
    EXPECT(cuinstr_process_unlock(process), CUINSTR_OK);
    EXPECT(cuinstr_process_suspend(process, 100), CUINSTR_OK);
    EXPECT(cuinstr_process_resume(process, NULL, 0), CUINSTR_OK);
    if (state(process) != CUINSTR_PROCESS_RUNNING) return 5;
    know(arguments[1], "busy 1\n");
    EXPECT(cuinstr_process_suspend(process, 20), CUINSTR_PROCESS_BUSY);
    know(arguments[1], "managed 1\n");
    EXPECT(cuinstr_process_suspend(process, 20), CUINSTR_NOT_CHECKPOINTABLE);
    EXPECT(cuinstr_process_close(process), CUINSTR_OK);
    EXPECT(cuinstr_process_unlock(process), CUINSTR_BAD_HANDLE);
    puts("all as it should be");
    return 0;
}
