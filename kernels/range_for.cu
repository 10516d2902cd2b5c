//@ about: range-for over a small array struct, over an array and over an initializer
//@ entry: erode
//@ grid: 13 10
//@ block: 16 8
//@ arg: u8[16000] rand 34
//@ arg: u8[16000] zero
//@ arg: i32[16000] zero
//@ arg: i32 200
//@ arg: i32 80

template <typename T, int Capacity>
struct SmallVector
{
    T items[Capacity];
    int count = 0;

    __device__ void push(T v) { items[count++] = v; }
    __device__ const T *begin() const { return items; }
    __device__ const T *end() const { return items + count; }
};

__global__ void erode(const unsigned char *in, unsigned char *out, int *spread, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;

    SmallVector<int, 9> neighbours;
    const int steps[] = { -1, 0, 1 };
    for (int dy : steps)
        for (int dx : steps)
            if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height)
                neighbours.push((y + dy) * width + x + dx);

    unsigned char lowest = 255;
    int highest = 0;
    for (const int &i : neighbours) {
        lowest = min(lowest, in[i]);
        highest = max(highest, int(in[i]));
    }

    out[y * width + x] = lowest;
    spread[y * width + x] = highest - lowest;
}
