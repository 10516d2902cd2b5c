//@ about: an #if splits the header of a loop
//@ code: CI012
//@ severity: warning

__global__ void fill(int *out, int n) {
    for (int i = 0;
#ifdef BACKWARD
         i > -n; i--) {
#else
         i < n; i++) {
#endif
        out[i] = 0;
    }
}
