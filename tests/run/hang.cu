// A kernel that never ends, then more work in the same context.
#include <cstdio>
#include <cstring>

__global__ void spin(volatile int* flag, int* out) {
  while (*flag == 0) {  // the hang
  }
  out[threadIdx.x] = 1;
}

__global__ void scale(float* x, float f, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= f;
}

int main(int count, char** words) {
  int *flag, *out;
  cudaMalloc(&flag, 4);
  cudaMemset(flag, 0, 4);
  cudaMalloc(&out, 4096);
  cudaStream_t stream = nullptr;
  if (count > 1 && !strcmp(words[1], "stream")) cudaStreamCreate(&stream);
  spin<<<64, 128, 0, stream>>>(flag, out);
  const cudaError_t done = cudaDeviceSynchronize();
  printf("hang %s\n", cudaGetErrorName(done));
  float *x, h[4] = {1, 2, 3, 4};
  cudaMalloc(&x, 16);
  cudaMemcpy(x, h, 16, cudaMemcpyHostToDevice);
  scale<<<1, 4>>>(x, 10.f, 4);
  const cudaError_t after = cudaMemcpy(h, x, 16, cudaMemcpyDeviceToHost);
  printf("after %s %g %g %g %g\n", cudaGetErrorName(after), h[0], h[1], h[2], h[3]);
  return done != 0;
}
