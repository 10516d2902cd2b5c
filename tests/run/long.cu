// A grid of many blocks that takes some seconds, and work that is queued behind it: each block must run once, and the sums must not change.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void work(int rounds, unsigned* counts, double* sums) {
  double sum = threadIdx.x + 1;
  for (int round = 0; round < rounds; ++round) sum = sum * 0.999 + blockIdx.x % 7;
  __shared__ double part[256];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  sums[blockIdx.x] = part[0];
  atomicAdd(&counts[blockIdx.x], 1u);
}

// A block waits until the one before it has run, as a scan by the blocks' numbers does.
__global__ void chain(int rounds, unsigned* counts, double* sums) {
  double sum = 1;
  for (int round = 0; round < rounds; ++round) sum = sum * 0.999 + threadIdx.x % 3;
  if (threadIdx.x != 0) return;
  if (blockIdx.x > 0) {
    while (*(volatile unsigned*)&counts[blockIdx.x - 1] == 0) {
    }
  }
  sums[blockIdx.x] += sum;
  __threadfence();
  atomicAdd(&counts[blockIdx.x], 1u);
}

int main(int count, char** words) {
  // Short blocks, so that a pause is soon there, and many of them.
  const int blocks = 1 << 20, rounds = count > 1 ? atoi(words[1]) : 150000;
  unsigned *counts, *links;
  double* sums;
  cudaMalloc(&counts, blocks * 4);
  cudaMalloc(&links, blocks * 4);
  cudaMalloc(&sums, blocks * 8);
  cudaMemset(counts, 0, blocks * 4);
  cudaMemset(links, 0, blocks * 4);
  work<<<blocks, 256>>>(rounds, counts, sums);
  chain<<<blocks, 256>>>(rounds / 2, links, sums);
  std::vector<unsigned> ran(blocks), linked(blocks);
  std::vector<double> found(blocks);
  cudaMemcpy(ran.data(), counts, blocks * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(linked.data(), links, blocks * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(found.data(), sums, blocks * 8, cudaMemcpyDeviceToHost);
  int once = 0, never = 0, again = 0;
  double sum = 0;
  for (int block = 0; block < blocks; ++block) {
    for (unsigned times : {ran[block], linked[block]}) {
      once += times == 1;
      never += times == 0;
      again += times > 1;
    }
    sum += found[block];
  }
  printf("result %d of %d once, %d never, %d again, %.17g %s\n", once, 2 * blocks, never, again, sum, cudaGetErrorName(cudaGetLastError()));
  return 0;
}
