//@ about: three kernels and a namespace in one file, one of them launched (Game of Life on a torus)
//@ entry: life_step
//@ grid: 10
//@ block: 128
//@ arg: u8[20480] rand 40
//@ arg: u8[20480] const 7
//@ arg: i32 128
//@ arg: i32 160

namespace life {

__device__ int alive_around(const unsigned char *cells, int x, int y, int width, int height)
{
    int alive = 0;
    for (int dy = height - 1; dy <= height + 1; ++dy)
        for (int dx = width - 1; dx <= width + 1; ++dx)
            alive += cells[(y + dy) % height * width + (x + dx) % width] & 1;
    return alive - (cells[y * width + x] & 1);
}

__global__ void life_seed(unsigned char *cells, int n, unsigned seed)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned h = seed ^ i;
        for (int round = 0; round < 4; ++round)
            h = (h ^ h >> 15) * 0x2c1b3c6du;
        cells[i] = h >> 31;
    }
}

__global__ void life_step(const unsigned char *now, unsigned char *next, int width, int height)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < width * height; i += gridDim.x * blockDim.x) {
        const int around = alive_around(now, i % width, i / width, width, height);
        next[i] = around == 3 || (around == 2 && (now[i] & 1));
    }
}

__global__ void life_census(const unsigned char *cells, int n, unsigned *alive)
{
    unsigned count = 0;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) {
        count += cells[i];
        i += gridDim.x * blockDim.x;
    }
    atomicAdd(alive, count);
}

}   // namespace life
