//@ about: comments and white space, no token
//@ code: CI003
//@ severity: error

/* __global__ void k(int *p) { while (*p == 0) { } } */

// for (;;) { }
