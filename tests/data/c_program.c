/* What a C program sees of the library on any machine: rewriting, statuses, messages, bad use, several threads. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "cuinstr.h"

static const char source[] = "__global__ void wait(volatile int* flag) { while (*flag == 0) { } }\n";

static void says(cuinstr_status status, cuinstr_status expected, const char *word) {
    if (status != expected || strstr(cuinstr_message(), word) == NULL) {
        printf("%s, not %s with `%s`: %s\n", cuinstr_status_name(status), cuinstr_status_name(expected), word, cuinstr_message());
        assert(0);
    }
}

static void *rewrite_many(void *unused) {
    for (int round = 0; round < 20; ++round) {
        cuinstr_rewritten rewritten;
        const char *text;
        assert(cuinstr_rewrite(source, strlen(source), NULL, &rewritten) == CUINSTR_OK);
        assert(cuinstr_rewritten_text(rewritten, &text, NULL) == CUINSTR_OK && strstr(text, "__cuinstr_") != NULL);
        assert(cuinstr_rewritten_release(rewritten) == CUINSTR_OK);
        says(cuinstr_rewritten_release(rewritten), CUINSTR_BAD_HANDLE, "was released");
    }
    return unused;
}

int main(void) {
    assert(cuinstr_api_version() == CUINSTR_API_VERSION && cuinstr_message()[0] == 0 && strlen(cuinstr_release_name()) >= 5);
    assert(strcmp(cuinstr_status_name(CUINSTR_NOT_LAUNCHED), "CUINSTR_NOT_LAUNCHED") == 0);
    assert(strcmp(cuinstr_status_name(-1), "unknown status") == 0);

    cuinstr_rewrite_options options = CUINSTR_REWRITE_OPTIONS_INIT;
    options.path = "wait.cu";
    options.fuel = 1000;
    cuinstr_rewritten rewritten;
    assert(cuinstr_rewrite(source, strlen(source), &options, &rewritten) == CUINSTR_OK);
    const char *text, *sites, *diagnostics;
    size_t length, none;
    assert(cuinstr_rewritten_text(rewritten, &text, &length) == CUINSTR_OK && strlen(text) == length);
    assert(strstr(text, "#line 1 \"wait.cu\"") && strstr(text, "#define __cuinstr_fuel 1000ull"));
    assert(cuinstr_rewritten_sites(rewritten, &sites, NULL) == CUINSTR_OK && strstr(sites, "\"function\":\"wait\""));
    assert(cuinstr_rewritten_diagnostics(rewritten, &diagnostics, &none) == CUINSTR_OK && none == strlen(diagnostics));

    cuinstr_rewritten again;
    says(cuinstr_rewrite(text, length, NULL, &again), CUINSTR_REFUSED, "CI004");
    says(cuinstr_rewrite(NULL, 0, NULL, &again), CUINSTR_BAD_ARGUMENT, "`source` is null");
    says(cuinstr_rewrite(source, 3, NULL, NULL), CUINSTR_BAD_ARGUMENT, "`rewritten` is null");
    options.size = 0;
    says(cuinstr_rewrite(source, strlen(source), &options, &again), CUINSTR_BAD_ARGUMENT, "size is 0");
    options.size = sizeof options;
    options.device_macros = "MY_KERNEL=kernel OTHER=both";
    says(cuinstr_rewrite(source, strlen(source), &options, &again), CUINSTR_BAD_ARGUMENT, "OTHER=both");
    options.device_macros = NULL;
    options.leave_alone = "wait";
    assert(cuinstr_rewrite(source, strlen(source), &options, &again) == CUINSTR_OK);
    assert(cuinstr_rewritten_text(again, &text, NULL) == CUINSTR_OK && strstr(text, "while (*flag == 0) { } }") != NULL);
    assert(cuinstr_rewritten_release(again) == CUINSTR_OK);
    options.leave_alone = NULL;
    /* A program compiled when the struct ended behind `path`. */
    options.size = offsetof(cuinstr_rewrite_options, timeout_ns);
    assert(cuinstr_rewrite(source, strlen(source), &options, &again) == CUINSTR_OK);
    assert(cuinstr_rewritten_text(again, &text, NULL) == CUINSTR_OK && strstr(text, "#define __cuinstr_fuel 0ull"));
    assert(cuinstr_rewritten_release(again) == CUINSTR_OK && cuinstr_message()[0] == 0);
    options.size = sizeof options;
    options.fuel = UINT64_MAX;
    says(cuinstr_rewrite(source, strlen(source), &options, &again), CUINSTR_BAD_ARGUMENT, "fuel");
    options.fuel = 0;
    options.path = "\xff";
    says(cuinstr_rewrite(source, strlen(source), &options, &again), CUINSTR_BAD_ARGUMENT, "UTF-8");

    cuinstr_module module = {7777777};
    cuinstr_guard guard = {8888888};
    cuinstr_limits limits = CUINSTR_LIMITS_INIT;
    cuinstr_outcome outcome = CUINSTR_OUTCOME_INIT;
    says(cuinstr_attach_module(NULL, NULL, &module), CUINSTR_BAD_HANDLE, "null");
    says(cuinstr_attach_control(0, NULL, &module), CUINSTR_BAD_HANDLE, "null");
    says(cuinstr_attach_function(NULL, NULL, NULL), CUINSTR_BAD_ARGUMENT, "`module` is null");
    says(cuinstr_arm(module, NULL, NULL, &guard), CUINSTR_BAD_ARGUMENT, "`limits` is null");
    says(cuinstr_arm(module, NULL, &limits, &guard), CUINSTR_BAD_HANDLE, "no module 7777777");
    says(cuinstr_launched(guard), CUINSTR_BAD_HANDLE, "no guard 8888888");
    says(cuinstr_wait(guard, 1000000000, &outcome), CUINSTR_BAD_HANDLE, "never was one");
    says(cuinstr_poll(guard, NULL), CUINSTR_BAD_HANDLE, "never was one");
    outcome.size = 3;
    says(cuinstr_poll(guard, &outcome), CUINSTR_BAD_ARGUMENT, "size is 3");
    says(cuinstr_cancel(guard), CUINSTR_BAD_HANDLE, "never was one");
    guard.id = rewritten.id;
    says(cuinstr_release(guard), CUINSTR_BAD_HANDLE, "no guard");
    says(cuinstr_detach(module), CUINSTR_BAD_HANDLE, "no module");

    pthread_t threads[4];
    for (int index = 0; index < 4; ++index) assert(pthread_create(&threads[index], NULL, rewrite_many, NULL) == 0);
    for (int index = 0; index < 4; ++index) assert(pthread_join(threads[index], NULL) == 0);
    assert(cuinstr_rewritten_sites(rewritten, &sites, NULL) == CUINSTR_OK);
    assert(cuinstr_rewritten_release(rewritten) == CUINSTR_OK);
    puts("all as it should be");
    return 0;
}
