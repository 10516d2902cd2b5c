//@ about: Mandelbrot set; the loop is in a header
//@ entry: mandelbrot
//@ also: complex.cuh
//@ grid: 16 16
//@ block: 16 12
//@ arg: i32[49152] zero
//@ arg: i32 256
//@ arg: i32 192
//@ arg: i32 500

#include "complex.cuh"

__global__ void mandelbrot(int *image, int width, int height, int limit)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;

    Complex c(-2.0f + 3.0f * px / width, -1.125f + 2.25f * py / height);
    image[py * width + px] = escape_time(c, limit);
}
