//@ about: bisection for header_function.cu

#pragma once

// The root of f in [low, high], as narrow as `width`.
template <typename F>
__device__ float bisect(F f, float low, float high, float width)
{
    while (high - low > width) {    // HANG
        const float middle = 0.5f * (low + high);
        if (f(middle) < 0.0f)
            low = middle;
        else
            high = middle;
    }
    return low;
}
