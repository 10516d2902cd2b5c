//@ about: Mandelbrot set, one pixel for each thread
//@ entry: mandelbrot
//@ grid: 128 256
//@ block: 16 8
//@ arg: i32[4194304] zero
//@ arg: i32 2048
//@ arg: i32 2048
//@ arg: i32 500
//@ arg: f32 -2
//@ arg: f32 -1.25
//@ arg: f32 0.00122
//@ long: grid 32 32
//@ long: arg 1 i32 512
//@ long: arg 2 i32 256
//@ long: arg 3 i32 2000000000
//@ long: arg 4 f32 -0.2
//@ long: arg 5 f32 -0.2
//@ long: arg 6 f32 0.0005

__global__ void mandelbrot(int *image, int width, int height, int limit, float left, float top, float step)
{
    const int px = blockIdx.x * blockDim.x + threadIdx.x;
    const int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;

    const float cx = left + step * px, cy = top + step * py;
    float x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < limit && x * x + y * y <= 4.0f)
    {
        const float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        ++n;
    }
    image[py * width + px] = n;
}
