//@ about: loops behind CUDA_KERNEL_LOOP and another loop-head macro
//@ entry: max_pool
//@ grid: 18
//@ block: 256
//@ arg: i32 9600
//@ arg: f32[38400] rand 29
//@ arg: i32 80
//@ arg: i32 60
//@ arg: f32[9600] zero
//@ arg: i32[9600] const -1

#define CUDA_KERNEL_LOOP(i, n) \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

#define FOR_RANGE(i, from, to) for (int i = (from), i##_end = (to); i < i##_end; ++i)

// 2 x 2 windows with stride 2 over planes of 2 height x 2 width
__global__ void max_pool(int count, const float *bottom, int width, int height, float *top, int *where)
{
    CUDA_KERNEL_LOOP(index, count) {
        const int px = index % width;
        const int py = index / width % height;
        const int plane = index / width / height;
        const float *in = bottom + plane * 4 * width * height;

        float best = -1.0f;
        int at = -1;
        FOR_RANGE(y, 2 * py, 2 * py + 2)
            FOR_RANGE(x, 2 * px, 2 * px + 2)
                if (in[y * 2 * width + x] > best) {
                    at = y * 2 * width + x;
                    best = in[at];
                }
        top[index] = best;
        where[index] = at;
    }
}
