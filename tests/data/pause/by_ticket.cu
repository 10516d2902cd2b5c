//@ about: a scan over blocks in the order of their tickets
//@ entry: by_ticket
//@ grid: 4000
//@ block: 256
//@ arg: u32[1] zero
//@ arg: u32[4000] zero
//@ arg: u32[4000] zero
//@ arg: u64 30000
//@ brief: it has no long launch

// A scan over blocks in the order of their tickets: each waits for the one that drew the number before.
extern "C" __global__ void by_ticket(unsigned* ticket, volatile unsigned* sums, unsigned* out, unsigned long long ns) {
  __shared__ unsigned mine;
  if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
  __syncthreads();
  const long long begin = clock64(), cycles = 2 * ns;
  while (clock64() - begin < cycles) { }
  if (threadIdx.x == 0) {
    unsigned before = 0;
    if (mine > 0)
      while ((before = sums[mine - 1]) == 0) { }
    sums[mine] = before + mine + 1;
    __threadfence();
    out[mine] = before + mine + 1;
  }
}
