//@ about: per-row sum, minimum and bitwise or with the warp reduction instructions
//@ entry: row_stats
//@ grid: 32
//@ block: 32 8
//@ min-arch: 80
//@ arg: u32[51200] rand 6
//@ arg: i32 256
//@ arg: i32 200
//@ arg: u32[768] zero

// One warp a row (threadIdx.y picks it), three words out a row.
__global__ void row_stats(const unsigned *__restrict__ m, int rows, int cols, unsigned *__restrict__ stats)
{
	const int row = blockIdx.x * blockDim.y + threadIdx.y;
	if (row >= rows) return;

	unsigned sum = 0, low = ~0u, any = 0;
	for (int c = threadIdx.x; c < cols; c += 32)
	{
		unsigned v = m[row * cols + c];
		sum += v; low = min(low, v); any |= v >> 3;
	}

	sum = __reduce_add_sync(0xffffffff, sum);
	low = __reduce_min_sync(0xffffffff, low);
	any = __reduce_or_sync(0xffffffff, any);

	if (threadIdx.x != 0) return;
	stats[3 * row]     = sum;
	stats[3 * row + 1] = low;
	stats[3 * row + 2] = any;
}
