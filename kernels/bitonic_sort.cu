//@ about: bitonic sort of a chunk for each block, in shared memory
//@ entry: bitonic_sort
//@ grid: 16
//@ block: 256
//@ arg: i32[8192] rand 18

constexpr unsigned N = 512;     // twice the block

__global__ void __launch_bounds__(N / 2) bitonic_sort(int *data)
{
    __shared__ int keys[N];

    int *chunk = data + blockIdx.x * N;
    keys[threadIdx.x] = chunk[threadIdx.x];
    keys[threadIdx.x + N / 2] = chunk[threadIdx.x + N / 2];

    for (unsigned size = 2; size <= N; size *= 2)
        for (unsigned stride = size / 2; stride > 0; stride /= 2)
        {
            __syncthreads();
            const unsigned pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            const bool up = (threadIdx.x & (size / 2)) == 0;

            const int a = keys[pos], b = keys[pos + stride];
            if ((a > b) == up)
            {
                keys[pos] = b;
                keys[pos + stride] = a;
            }
        }

    __syncthreads();
    chunk[threadIdx.x] = keys[threadIdx.x];
    chunk[threadIdx.x + N / 2] = keys[threadIdx.x + N / 2];
}
