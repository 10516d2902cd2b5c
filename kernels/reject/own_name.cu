//@ about: the source brings a name that only cuinstr inserts
//@ code: CI004
//@ severity: error

__device__ void __cuinstr_poll() {}

__global__ void spin(volatile int *flag) {
    while (*flag == 0) {
        __cuinstr_poll();
    }
}
