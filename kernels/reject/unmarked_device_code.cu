//@ about: a function that uses threadIdx bears no mark that is known
//@ code: CI014
//@ severity: warning

#include "platform.h"

PLATFORM_INLINE void zero(float *data, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        data[i] = 0;
    }
}

__global__ void clear(float *data, int n) {
    zero(data, n);
}
