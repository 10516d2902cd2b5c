//@ about: the source brings the control block's own symbol
//@ code: CI004
//@ severity: error

extern "C" __device__ int cuinstr_control_v1[64];

__global__ void spin(volatile int *flag) {
    while (*flag == 0) {
    }
}
