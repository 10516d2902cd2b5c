//@ about: neither arm of an #if closes the function
//@ code: CI005
//@ severity: error

__global__ void spin(volatile int *flag) {
#ifdef FAST
    while (*flag == 0) {
#else
    do {
#endif
    }
