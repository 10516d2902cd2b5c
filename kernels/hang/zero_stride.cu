//@ about: a step that is an argument, and 0
//@ entry: sample_rows
//@ grid: 2
//@ block: 64
//@ arg: f32[4096] rand 2
//@ arg: f32[128] zero
//@ arg: i32 4096
//@ arg: i32 0
//@ tier: 1

__global__ void sample_rows(const float *in, volatile float *sums, int n, int step)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;

    for (int i = tid; i < n; i += step)     // HANG
    {
        sums[tid] = sums[tid] + in[i];
    }
}
