//@ about: saxpy in a grid-stride loop; the file has no final newline
//@ entry: saxpy_strided
//@ grid: 60
//@ block: 128
//@ arg: u64 200001
//@ arg: f32 -0.75
//@ arg: f32[200001] rand 3
//@ arg: f32[200001] rand 4

#include <cstddef>

// Works for any launch shape: each thread walks the array in steps of the whole grid.
__global__ void saxpy_strided(std::size_t n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    const std::size_t stride = std::size_t(gridDim.x) * blockDim.x;
    for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] += a * x[i];
}