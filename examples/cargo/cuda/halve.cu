extern "C" __global__ void halve(unsigned* numbers, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    while (numbers[i] != 1) numbers[i] /= 2;
}
