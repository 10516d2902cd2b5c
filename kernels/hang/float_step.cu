//@ about: a float step too small to change the sum
//@ entry: integrate
//@ grid: 2
//@ block: 64
//@ arg: f32[128] zero
//@ arg: f32 1.0
//@ arg: f32 2.0
//@ tier: 1

__global__ void integrate(volatile float *area, float from, float to)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    const float dx = 1e-9f;

    for (float x = from; x < to; x += dx)   // HANG
        area[tid] = area[tid] + x * x * dx;
}
