//@ about: a parenthesis is closed by a square bracket
//@ code: CI005
//@ severity: error

__global__ void fill(int *out, int n) {
    for (int i = 0; i < n; i++) {
        out[i) = 0;
    }
}
