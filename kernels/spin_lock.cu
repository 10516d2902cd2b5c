//@ about: statistics behind a correct spin lock, one holder for each block
//@ entry: locked_stats
//@ grid: 64
//@ block: 128
//@ arg: u32[1] zero
//@ arg: i32[50000] mod 65521
//@ arg: i32 50000
//@ arg: i64[4] zero

class SpinLock
{
public:
    __device__ explicit SpinLock(unsigned *word) : word_(word)
    {
        while (atomicCAS(word_, 0u, 1u) != 0u)
            __nanosleep(50);
        __threadfence();
    }

    __device__ ~SpinLock()
    {
        __threadfence();
        atomicExch(word_, 0u);
    }

    SpinLock(const SpinLock &) = delete;
    SpinLock &operator=(const SpinLock &) = delete;

private:
    unsigned *word_;
};

// stats: count, sum, sum of squares, largest
__global__ void locked_stats(unsigned *mutex, const int *values, int n, volatile long long *stats)
{
    __shared__ long long sum[128], squares[128];
    __shared__ int largest[128];
    const unsigned t = threadIdx.x;

    sum[t] = squares[t] = 0;
    largest[t] = 0;
    int count = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) {
        const long long v = values[i];
        sum[t] += v;
        squares[t] += v * v;
        largest[t] = max(largest[t], values[i]);
        ++count;
    }
    count = __syncthreads_count(count > 0);     // the threads that had work

    if (t != 0)
        return;

    for (unsigned i = 1; i < blockDim.x; ++i) {
        sum[0] += sum[i];
        squares[0] += squares[i];
        largest[0] = max(largest[0], largest[i]);
    }

    SpinLock guard(mutex);
    stats[0] = stats[0] + count;
    stats[1] = stats[1] + sum[0];
    stats[2] = stats[2] + squares[0];
    if (largest[0] > stats[3])
        stats[3] = largest[0];
}
