/* A hang, its report, and the next launch in the same context on the same memory, in plain C with the CUDA driver.
 *
 *     cuinstr halve.cu -o halve.inst.cu && nvcc -cubin -arch=native halve.inst.cu -o halve.cubin
 *     cc stop_a_hang.c -lcuinstr -lcuda -o stop_a_hang && ./stop_a_hang halve.cubin */
#include <cuda.h>
#include <cuinstr.h>
#include <stdio.h>
#define MUST(call) do { if ((call) != 0) { fprintf(stderr, "failed: %s: %s\n", #call, cuinstr_message()); return 1; } } while (0)

int main(int argc, char **argv) {
    unsigned numbers[2][3] = {{7, 1000, 0}, {7, 1000, 4}}; /* the zero hangs */
    static char image[1 << 20];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    cuinstr_about about = CUINSTR_ABOUT_INIT; /* for the line in the report */
    int count = 3;
    CUdevice device; CUcontext context; CUmodule module; CUfunction halve; CUdeviceptr memory;
    MUST(file == NULL || (about.image_size = fread(image, 1, sizeof image, file)) == 0 || cuInit(0) || cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) || cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&halve, module, "halve") || cuMemAlloc(&memory, sizeof numbers[0]));
    cuinstr_module attached;
    about.image = image, about.folder = ".";
    MUST(cuinstr_attach_function(halve, &about, &attached));
    for (int round = 0; round < 2; ++round) {
        void *arguments[] = {&memory, &count};
        MUST(cuMemcpyHtoD(memory, numbers[round], sizeof numbers[round]));
        cuinstr_limits limits = CUINSTR_LIMITS_INIT;
        limits.timeout_ns = 100000000;
        cuinstr_guard guard;
        cuinstr_outcome outcome = CUINSTR_OUTCOME_INIT;
        MUST(cuinstr_arm(attached, NULL, &limits, &guard));
        MUST(cuLaunchKernel(halve, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
        MUST(cuinstr_launched(guard) || cuinstr_wait(guard, 5000000000, &outcome));
        MUST(cuMemcpyDtoH(numbers[round], memory, sizeof numbers[round]));
        puts(outcome.kind == CUINSTR_STOPPED ? outcome.report : "completed");
        printf("%u %u %u, line %u\n", numbers[round][0], numbers[round][1], numbers[round][2], outcome.line);
        MUST(cuinstr_release(guard) || (outcome.kind != (round == 0 ? CUINSTR_STOPPED : CUINSTR_COMPLETED)));
    }
    return cuinstr_detach(attached) || numbers[1][2] != 1;
}
