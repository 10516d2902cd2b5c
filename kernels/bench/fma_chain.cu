//@ about: four chains of dependent multiply-adds: the shortest loop there is
//@ entry: fma_chain
//@ grid: 1056
//@ block: 256
//@ arg: f32[270336] rand 17
//@ arg: i32 8192
//@ arg: f32 0.99999
//@ arg: f32 0.00001
//@ long: arg 1 i32 2000000000

__global__ void fma_chain(float *values, int iterations, float scale, float offset)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    float a = values[tid], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;

    for (int i = 0; i < iterations; ++i) {
        a = a * scale + offset;
        b = b * scale + offset;
        c = c * scale + offset;
        d = d * scale + offset;
    }
    values[tid] = (a + b) + (c + d);
}
