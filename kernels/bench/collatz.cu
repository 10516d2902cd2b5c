//@ about: Collatz steps and peaks, as long as the data say
//@ entry: collatz
//@ grid: 16384
//@ block: 128
//@ arg: u64[2097152] iota
//@ arg: u64 1000001
//@ arg: i32[2097152] zero
//@ arg: u64[2097152] zero
//@ long: grid 2112
//@ long: arg 0 u64[270336] zero
//@ long: arg 1 u64 0

// Steps until the sequence n/2 or 3n+1 reaches 1, and its peak.
__global__ void collatz(const unsigned long long *start, unsigned long long offset, int *steps, unsigned long long *peak)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long n = start[tid] + offset, top = n;
    int count = 0;

    while (n != 1)
    {
        n = (n & 1) ? 3 * n + 1 : n >> 1;
        if (n > top) top = n;
        ++count;
    }

    steps[tid] = count;
    peak[tid]  = top;
}
