//@ about: an unknown macro in front of a block in device code
//@ code: CI010
//@ severity: warning

#include "loops.h"

__global__ void scale(float *data, float factor, int n) {
    FOR_EACH_INDEX(i, n) {
        data[i] *= factor;
    }
}
