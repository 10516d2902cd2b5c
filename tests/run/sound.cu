// Kernels that end, launched directly and by a graph: their results, and the time of a launch.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void saxpy(int n, float a, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

__global__ void dot(int n, const float* x, const float* y, double* out) {
  __shared__ double part[256];
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) sum += double(x[i]) * y[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}

__global__ void empty() {}

static double micros(std::chrono::steady_clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

int main(int count, char** words) {
  const int n = 1 << 22;
  float *x, *y;
  double *out, first, second;
  cudaMalloc(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMalloc(&out, 8);
  std::vector<float> h(n);
  for (int i = 0; i < n; ++i) h[i] = float(i % 1000) * 0.5f;
  cudaMemcpy(x, h.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(y, h.data(), n * 4, cudaMemcpyHostToDevice);
  for (int k = 0; k < 10; ++k) saxpy<<<512, 256>>>(n, 1.5f, x, y);
  dot<<<1, 256>>>(n, x, y, out);
  cudaMemcpy(&first, out, 8, cudaMemcpyDeviceToHost);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t runs;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  for (int k = 0; k < 3; ++k) saxpy<<<512, 256, 0, stream>>>(n, 0.25f, x, y);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&runs, graph, 0);
  for (int k = 0; k < 5; ++k) cudaGraphLaunch(runs, stream);
  cudaStreamSynchronize(stream);
  dot<<<1, 256>>>(n, x, y, out);
  cudaMemcpy(&second, out, 8, cudaMemcpyDeviceToHost);
  printf("result %.17g %.17g %s\n", first, second, cudaGetErrorName(cudaGetLastError()));
  const int launches = count > 1 ? atoi(words[1]) : 20000;
  for (int round = 0; round < 5; ++round) {
    cudaDeviceSynchronize();
    const auto since = std::chrono::steady_clock::now();
    for (int k = 0; k < launches; ++k) empty<<<1, 32>>>();
    cudaDeviceSynchronize();
    printf("TIME launch %.3f\n", micros(std::chrono::steady_clock::now() - since) / launches);
  }
}
