//@ about: a scan over blocks in the order of their indices, some of which begin late
//@ entry: by_index
//@ grid: 4000
//@ block: 256
//@ arg: u32[4000] zero
//@ arg: u32[4000] zero
//@ arg: u64 30000
//@ brief: it has no long launch

// A scan over blocks in the order of their indices. Some begin late, so that blocks which they keep waiting may have begun before them.
extern "C" __global__ void by_index(volatile unsigned* sums, unsigned* out, unsigned long long ns) {
  const long long begin = clock64(), cycles = 2 * (blockIdx.x % 7 == 3 ? 4 * ns : ns);
  while (clock64() - begin < cycles) { }
  if (threadIdx.x == 0) {
    unsigned before = 0;
    if (blockIdx.x > 0)
      while ((before = sums[blockIdx.x - 1]) == 0) { }
    sums[blockIdx.x] = before + blockIdx.x + 1;
    __threadfence();
    out[blockIdx.x] = before + blockIdx.x + 1;
  }
}
