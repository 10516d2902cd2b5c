//@ about: 2D convolution, 7 by 7, width known at run time only, clamped edges
//@ entry: convolve2d
//@ grid: 128 256
//@ block: 16 8
//@ arg: f32[4194304] rand 21
//@ arg: f32[4194304] zero
//@ arg: i32 2048
//@ arg: i32 2048
//@ arg: f32[49] rand 22
//@ arg: i32 7
//@ long: grid 44 48
//@ long: arg 2 i32 704
//@ long: arg 3 i32 384
//@ long: arg 4 f32[64016001] zero
//@ long: arg 5 i32 8001

__device__ int clamp_index(int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

__global__ void
convolve2d(const float *image, float *result, int width, int height, const float *filter, int filter_width)
{
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;

  const int r = filter_width / 2;
  float sum = 0.f;
  for (int dy = -r; dy <= r; ++dy) {
    const float *line = image + clamp_index(y + dy, height) * width;
    const float *w = filter + (dy + r) * filter_width;
    for (int dx = -r; dx <= r; ++dx)
      sum += line[clamp_index(x + dx, width)] * *w++;
  }
  result[y * width + x] = sum;
}
