//@ about: connected components of an image by one block, union-find with atomics
//@ entry: label_components
//@ block: 1024
//@ arg: u8[12288] rand 41
//@ arg: i32[12288] zero
//@ arg: i32 96
//@ arg: i32 128
//@ arg: i32[1] zero

__device__ int find_root(const volatile int *label, int i)
{
    int parent;
    while ((parent = label[i]) != i)
        i = parent;
    return i;
}

// Hangs the larger root below the smaller one, and goes on with whatever was there before.
__device__ void unite(int *label, int a, int b)
{
    bool done;
    do
    {
        a = find_root(label, a);
        b = find_root(label, b);
        if (a == b)
            break;
        if (a < b)
        {
            const int t = a;
            a = b;
            b = t;
        }
        const int old = atomicMin(&label[a], b);
        done = old == a;
        a = old;
    } while (!done);
}

__global__ void label_components(const unsigned char *image, int *label, int width, int height, int *components)
{
    const int n = width * height;

    for (int i = threadIdx.x; i < n; i += blockDim.x)
        label[i] = i;
    __syncthreads();

    for (int i = threadIdx.x; i < n; i += blockDim.x)
    {
        const bool bright = image[i] < 150;
        if (i % width > 0 && (image[i - 1] < 150) == bright)
            unite(label, i, i - 1);
        if (i >= width && (image[i - width] < 150) == bright)
            unite(label, i, i - width);
    }
    __syncthreads();

    // Every root is the least index of its component by now. Writing over a label keeps the path's end.
    for (int i = threadIdx.x; i < n; i += blockDim.x)
    {
        const int root = find_root(label, i);
        label[i] = root;
        if (root == i)
            atomicAdd(components, 1);
    }
}
