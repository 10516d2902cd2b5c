//@ about: a mutated sign: the index walks away from its bound, in 64 bits
//@ entry: count_up
//@ grid: 2
//@ block: 128
//@ arg: u32[1024] zero
//@ arg: i64 1000000
//@ tier: 1

__global__ void count_up(volatile unsigned *hits, long long n)
{
	const long long stride = (long long)gridDim.x * blockDim.x;

	for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i -= stride)	// HANG
	{
		hits[i & 1023] = (unsigned)i;
	}
}
