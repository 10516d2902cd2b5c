//@ about: a mutated step: i += 0
//@ entry: scale_in_place
//@ grid: 4
//@ block: 128
//@ arg: f32[1000] rand 1
//@ arg: i32 1000
//@ tier: 1

__global__ void scale_in_place(volatile float *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += 0) // HANG
        x[i] = x[i] * 0.5f;
}
