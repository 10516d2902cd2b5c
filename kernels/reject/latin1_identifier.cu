//@ about: an identifier holds Latin-1
//@ code: CI001
//@ severity: error

__global__ void sum(const int *in, int *out, int n) {
    int größe = 0;
    for (int i = 0; i < n; i++) größe += in[i];
    *out = größe;
}
