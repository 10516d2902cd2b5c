//@ about: 2D convolution, filter of run-time width in shared memory, clamped edges
//@ entry: convolve
//@ grid: 10 13
//@ block: 16 8
//@ shared: 196
//@ arg: f32[15000] rand 20
//@ arg: f32[15000] zero
//@ arg: i32 150
//@ arg: i32 100
//@ arg: f32[49] rand 21
//@ arg: i32 7

__device__ int clamp_index(int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

__global__ void
convolve(const float *image, float *result, int width, int height, const float *filter, int filter_width)
{
  extern __shared__ float weights[];

  const int threads = blockDim.x * blockDim.y;
  for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < filter_width * filter_width; i += threads)
    weights[i] = filter[i];
  __syncthreads();

  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;

  const int r = filter_width / 2;
  float sum = 0.f;
  for (int dy = -r; dy <= r; ++dy) {
    const float *line = image + clamp_index(y + dy, height) * width;
    const float *w = weights + (dy + r) * filter_width;
    for (int dx = -r; dx <= r; ++dx)
      sum += line[clamp_index(x + dx, width)] * *w++;
  }
  result[y * width + x] = sum;
}
