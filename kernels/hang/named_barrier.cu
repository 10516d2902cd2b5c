//@ about: two warps meet at two named barriers in opposite order
//@ entry: ping_pong
//@ grid: 2
//@ block: 64
//@ arg: i32[128] zero
//@ tier: 2

__device__ __forceinline__ void meet(int barrier)
{
    asm volatile("bar.sync %0, 64;" :: "r"(barrier) : "memory"); // HANG
}

__global__ void ping_pong(int *out)
{
    __shared__ int box[2];
    const int warp = threadIdx.x / 32;

    box[warp] = warp + 1;
    meet(1 + warp);
    const int other = box[warp ^ 1];
    meet(2 - warp);

    out[blockIdx.x * blockDim.x + threadIdx.x] = other;
}
