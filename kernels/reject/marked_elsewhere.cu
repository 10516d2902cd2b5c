//@ about: the macro that marks the kernel is defined in a header that is not in sight
//@ code: CI006
//@ severity: error

#include "platform.h"

PLATFORM_ENTRY void scale(float *data, float factor, int n) {
    for (int i = 0; i < n; i++) {
        data[i] *= factor;
    }
}
