//@ about: inclusive scan of each block's chunk, work-efficient (Blelloch)
//@ entry: scan_chunks
//@ grid: 40
//@ block: 128
//@ arg: i32[10240] mod 1009
//@ arg: i32[10240] zero
//@ arg: i32[40] zero

constexpr int THREADS = 128;
constexpr int CHUNK = 2 * THREADS;

__global__ __launch_bounds__(THREADS) void scan_chunks(const int* in, int* out, int* totals) {
  __shared__ int tree[CHUNK];

  const int tid = threadIdx.x;
  const int base = blockIdx.x * CHUNK;

  tree[2 * tid] = in[base + 2 * tid];
  tree[2 * tid + 1] = in[base + 2 * tid + 1];

  // Up-sweep: build partial sums in place.
  int offset = 1;
  for (int d = CHUNK >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (tid < d) {
      const int a = offset * (2 * tid + 1) - 1;
      const int b = offset * (2 * tid + 2) - 1;
      tree[b] += tree[a];
    }
    offset *= 2;
  }

  if (tid == 0) {
    totals[blockIdx.x] = tree[CHUNK - 1];
    tree[CHUNK - 1] = 0;
  }

  // Down-sweep: turn them into an exclusive scan.
  for (int d = 1; d < CHUNK; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (tid < d) {
      const int a = offset * (2 * tid + 1) - 1;
      const int b = offset * (2 * tid + 2) - 1;
      const int t = tree[a];
      tree[a] = tree[b];
      tree[b] += t;
    }
  }
  __syncthreads();

  // Adding the input back makes it inclusive.
  out[base + 2 * tid] = tree[2 * tid] + in[base + 2 * tid];
  out[base + 2 * tid + 1] = tree[2 * tid + 1] + in[base + 2 * tid + 1];
}
