//@ about: tiled transpose with a padded tile; the file has CRLF line ends
//@ entry: transpose_tile
//@ grid: 7 10
//@ block: 32 8
//@ arg: f32[60000] rand 13
//@ arg: f32[60000] zero
//@ arg: i32 200
//@ arg: i32 300

namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;

}  // namespace

// in is height x width, out is width x height.
__global__ void transpose_tile(const float *in, float *out, int width, int height)
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
