//@ about: each block says that it ran, and takes its time
//@ entry: marks
//@ grid: 20000
//@ block: 256
//@ arg: u32[20000] zero
//@ arg: u64 20000
//@ brief: what it runs is a matter of time

extern "C" __global__ void marks(unsigned* count, unsigned long long ns) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) atomicAdd(count + block, 1u);
  // By the multiprocessor's own clock, at 2 cycles a nanosecond: the warps of all blocks would queue for the device's timer.
  const long long begin = clock64(), cycles = 2 * ns;
  while (clock64() - begin < cycles) { }
}
