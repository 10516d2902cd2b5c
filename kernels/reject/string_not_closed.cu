//@ about: a raw string swallows the end of the file
//@ code: CI005
//@ severity: error

__global__ void spin(volatile int *flag) {
    const char *text = R"x(while (*flag == 0) { } );
    while (*flag == 0) {
    }
}
