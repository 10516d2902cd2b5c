//@ about: saxpy in a grid-stride loop
//@ entry: saxpy_stride
//@ grid: 1056
//@ block: 256
//@ arg: u64 67108864
//@ arg: f32 -0.75
//@ arg: f32[67108864] const 1.5
//@ arg: f32[67108864] const 2.25
//@ long: arg 0 u64 2147483648
//@ long: arg 2 f32[2147483648] zero
//@ long: arg 3 f32[2147483648] zero

// Works for any launch shape: each thread walks the array in steps of the whole grid.
__global__ void saxpy_stride(size_t n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    const size_t stride = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] += a * x[i];
}
