//@ about: 5-point Jacobi sweep, each thread marches down a column
//@ entry: jacobi5
//@ grid: 3 8
//@ block: 128
//@ arg: f32[98304] rand 19
//@ arg: f32[98304] zero
//@ arg: i32 384
//@ arg: i32 256

__global__ void jacobi5(const float *__restrict__ in, float *__restrict__ out, int nx, int ny)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < 1 || x >= nx - 1) return;       // the rim is fixed

    const int rows = (ny - 2 + gridDim.y - 1) / gridDim.y;
    const int y0 = 1 + blockIdx.y * rows;
    const int y1 = min(y0 + rows, ny - 1);

    if (y0 >= y1) return;

    float north = in[(y0 - 1) * nx + x];
    float here  = in[y0 * nx + x];

    for (int y = y0; y < y1; ++y)
    {
        const float south = in[(y + 1) * nx + x];
        const float west  = in[y * nx + x - 1];
        const float east  = in[y * nx + x + 1];

        out[y * nx + x] = 0.2f * (here + north + south + west + east);

        north = here;
        here  = south;
    }
}
