//@ about: the loop is in a header: bisection to a width below the spacing of floats
//@ entry: find_roots
//@ also: bisection.cuh
//@ grid: 2
//@ block: 64
//@ arg: f32[128] zero
//@ arg: i32[128] zero
//@ arg: f32 0.000000001
//@ tier: 1

#include "bisection.cuh"

__global__ void find_roots(float *root, volatile int *evaluations, float width)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float target = 4096.5f + i;
    int count = 0;

    root[i] = bisect([&](float x) { evaluations[i] = ++count; return x - target; }, 1.0f, 10000.0f, width);
}
