//@ about: 7-point Jacobi sweep in three dimensions, each thread marches along z
//@ entry: stencil3d
//@ grid: 16 64
//@ block: 32 8
//@ arg: f32[67108864] iota
//@ arg: f32[67108864] zero
//@ arg: i32 512
//@ arg: i32 512
//@ arg: i32 256
//@ long: grid 8 64
//@ long: arg 0 f32[2097152000] zero
//@ long: arg 1 f32[2097152000] zero
//@ long: arg 4 i32 8000

__global__ void stencil3d(const float *__restrict__ in, float *__restrict__ out, int nx, int ny, int nz)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1) return;       // the rim is fixed

    const size_t plane = (size_t)nx * ny;
    size_t at = (size_t)y * nx + x;
    float below = in[at];
    float here  = in[at + plane];

    for (int z = 1; z < nz - 1; ++z)
    {
        at += plane;
        const float above = in[at + plane];
        out[at] = 0.4f * here + 0.1f * (below + above + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]);
        below = here;
        here  = above;
    }
}
