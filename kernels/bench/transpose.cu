//@ about: tiled transpose with a padded tile
//@ entry: transpose
//@ grid: 256 256
//@ block: 32 8
//@ arg: f32[67108864] iota
//@ arg: f32[67108864] zero
//@ arg: i32 8192
//@ arg: i32 8192
//@ brief: a thread moves four elements, so that a grid that fits the device is done within microseconds

constexpr int kTile = 32;
constexpr int kRows = 8;

// in is height x width, out is width x height.
__global__ void transpose(const float *in, float *out, int width, int height)
{
    __shared__ float tile[kTile][kTile + 1];    // the extra column avoids bank conflicts

    int x = blockIdx.x * kTile + threadIdx.x;
    int y = blockIdx.y * kTile + threadIdx.y;

    for (int j = 0; j < kTile; j += kRows)
        if (x < width && y + j < height)
            tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];

    __syncthreads();

    x = blockIdx.y * kTile + threadIdx.x;
    y = blockIdx.x * kTile + threadIdx.y;

    for (int j = 0; j < kTile; j += kRows)
    {
        if (x < height && y + j < width)
            out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
    }
}
