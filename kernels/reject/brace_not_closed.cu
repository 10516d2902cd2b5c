//@ about: a loop's brace is not closed
//@ code: CI005
//@ severity: error

__global__ void spin(volatile int *flag) {
    while (*flag == 0) {
        if (*flag == 2) {
            break;
    }
}
