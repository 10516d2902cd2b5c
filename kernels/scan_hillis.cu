//@ about: inclusive scan of a row by one block (Hillis-Steele, two buffers), carried over chunks
//@ entry: scan_rows
//@ grid: 24
//@ block: 128
//@ shared: 1024
//@ arg: u32[24000] rand 7
//@ arg: u32[24000] zero
//@ arg: i32 1000

__global__ void scan_rows(const unsigned int *rows, unsigned int *sums, int width)
{
    extern __shared__ unsigned int buffers[];   // two of blockDim.x
    const unsigned int n = blockDim.x, tid = threadIdx.x;
    const unsigned int *src = rows + (size_t)blockIdx.x * width;
    unsigned int *dst = sums + (size_t)blockIdx.x * width;
    unsigned int carry = 0;

    for (int start = 0; start < width; start += n)
    {
        unsigned int *now = buffers, *next = buffers + n;
        const int col = start + tid;

        now[tid] = col < width ? src[col] : 0u;
        __syncthreads();

        for (unsigned int step = 1; step < n; step <<= 1)
        {
            next[tid] = tid >= step ? now[tid] + now[tid - step] : now[tid];
            __syncthreads();

            unsigned int *t = now;
            now = next;
            next = t;
        }

        if (col < width)
            dst[col] = carry + now[tid];
        carry += now[n - 1];
        __syncthreads();
    }
}
