//@ about: __syncthreads in one arm, a named barrier for the whole block in the other: neither fills up
//@ entry: split_roles
//@ grid: 3
//@ block: 128
//@ arg: f32[384] rand 7
//@ arg: f32[384] zero
//@ tier: 2

__global__ void split_roles(const float *in, float *out)
{
    __shared__ float tile[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (threadIdx.x < 64) {
        tile[threadIdx.x] = in[i];
        __syncthreads(); // HANG
    } else {
        tile[threadIdx.x] = 2.0f * in[i];
        asm volatile("bar.sync 3, 128;" ::: "memory");
    }

    out[i] = tile[threadIdx.x ^ 64];
}
