//@ about: saxpy, one element for each thread
//@ entry: saxpy
//@ grid: 262144
//@ block: 256
//@ arg: i32 67108864
//@ arg: f32 2.5
//@ arg: f32[67108864] const 1.5
//@ arg: f32[67108864] const 2.25
//@ brief: a thread does one element, so that a grid that fits the device is done within microseconds

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
