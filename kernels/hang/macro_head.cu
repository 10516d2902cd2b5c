//@ about: the loop is in a macro, and its body undoes the step
//@ entry: clip_and_count
//@ grid: 2
//@ block: 128
//@ arg: f32[5000] rand 5
//@ arg: i32[5000] zero
//@ arg: i32 5000
//@ tier: 1

#define CUDA_KERNEL_LOOP(i, n)                                          \
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n);        \
         i += blockDim.x * gridDim.x)

__global__ void clip_and_count(const float *x, volatile int *count, int n)
{
    CUDA_KERNEL_LOOP(index, n) { // HANG
        count[index] = count[index] + 1;
        if (x[index] < 2.0f)
            index -= blockDim.x * gridDim.x;    // look at it again
    }
}
