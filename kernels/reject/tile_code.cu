//@ about: a kernel of CUDA Tile C++
//@ code: CI015
//@ severity: warning

__tile_global__ void scale(float *data, int n) {
    for (int i = 0; i < n; i++) {
        data[i] *= 2;
    }
}

__global__ void clear(float *data) {
    data[threadIdx.x] = 0;
}
