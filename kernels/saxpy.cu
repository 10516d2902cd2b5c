//@ about: saxpy, one element for each thread
//@ entry: saxpy
//@ grid: 254
//@ block: 256
//@ arg: i32 65000
//@ arg: f32 2.5
//@ arg: f32[65000] rand 1
//@ arg: f32[65000] rand 2

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
