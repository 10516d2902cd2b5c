//@ about: a waiver for a code that is an error
//@ code: CI032
//@ severity: error

// cuinstr: allow(CI006) it is CUDA all the same
__global__ void spin(volatile int *flag) {
    while (*flag == 0) {
    }
}
