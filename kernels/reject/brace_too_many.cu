//@ about: one brace more than were opened
//@ code: CI005
//@ severity: error

__global__ void spin(volatile int *flag) {
    while (*flag == 0) {
    }
}
}
