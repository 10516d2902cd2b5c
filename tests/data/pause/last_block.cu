//@ about: the last block to be done adds up what all have left
//@ entry: last_block
//@ grid: 4000
//@ block: 256
//@ arg: u32[1024000] iota
//@ arg: u32[4000] zero
//@ arg: u32[1] zero
//@ arg: u32[1] zero
//@ arg: u64 30000
//@ brief: it has no long launch

// The last block to be done adds up what all blocks have left, as a reduction with __threadfence does.
extern "C" __global__ void last_block(const unsigned* in, unsigned* parts, unsigned* done, unsigned* out, unsigned long long ns) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * blockDim.x + threadIdx.x]);
  const long long begin = clock64(), cycles = 2 * ns;
  while (clock64() - begin < cycles) { }
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    if (atomicAdd(done, 1u) == gridDim.x - 1) {
      unsigned all = 0;
      for (unsigned block = 0; block < gridDim.x; ++block) all += ((volatile unsigned*)parts)[block];
      out[0] = all;
      *done = 0;
    }
  }
}
