//@ about: an extended device lambda from host code is the kernel's last argument (it captures one float)
//@ entry: transform_kernel
//@ flags: --extended-lambda
//@ grid: 32
//@ block: 128
//@ arg: f32[30000] rand 27
//@ arg: f32[30000] zero
//@ arg: i32 30000
//@ arg: f32 3.25

template <typename F>
__global__ void transform_kernel(const float *in, float *out, int n, F f)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = f(in[i]);
}

// a * sqrt(x) by Newton's iteration, a fixed number of times
void scaled_roots(const float *in, float *out, int n, float a)
{
    transform_kernel<<<32, 128>>>(in, out, n, [a] __device__ (float x) {
        float r = 0.5f * (1.0f + x);
        for (int i = 0; i < 6; ++i) r = 0.5f * (r + x / r);
        return a * r;
    });
}
