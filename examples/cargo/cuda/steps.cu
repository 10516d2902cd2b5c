#include "collatz.cuh"

__global__ void all_steps(unsigned* numbers, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] = collatz(numbers[i]);
}

extern "C" unsigned steps_to_one(unsigned number) { return collatz(number); }

// What a program would call: its kernel stops after two seconds, whatever the numbers are.
extern "C" int all_steps_to_one(unsigned* numbers, int count) {
  all_steps<<<(count + 255) / 256, 256>>>(numbers, count);
  return cudaDeviceSynchronize();
}
