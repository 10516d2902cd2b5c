//@ about: while (true) whose break is never reached
//@ entry: relax_until_stable
//@ grid: 2
//@ block: 32
//@ arg: f32[64] rand 3
//@ arg: f32 -1.0
//@ tier: 1

__global__ void relax_until_stable(volatile float *x, float tolerance)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    while (true) // HANG
    {
        const float old = x[i];
        const float now = 0.5f * (old + 1.0f);
        x[i] = now;
        if (fabsf(now - old) < tolerance)
            break;
    }
}
