//@ about: a waiver where nothing needs one
//@ code: CI030
//@ severity: error

__global__ void spin(volatile int *flag) {
    // cuinstr: allow(CI013) there was assembly here once
    while (*flag == 0) {
    }
}
