//@ about: a hand-made grid barrier in a grid of more blocks than any GPU holds at once
//@ entry: exchange_through_barrier
//@ grid: 60000
//@ block: 1024
//@ arg: u32[1] zero
//@ arg: u32[60000] zero
//@ tier: 1

__device__ void grid_barrier(unsigned *arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived < gridDim.x)   // HANG
            ;
        __threadfence();
    }
    __syncthreads();
}

__global__ void exchange_through_barrier(unsigned *arrived, volatile unsigned *block_value)
{
    if (threadIdx.x == 0)
        block_value[blockIdx.x] = blockIdx.x + 1;
    grid_barrier(arrived);
    if (threadIdx.x == 0 && blockIdx.x == 0)
        block_value[0] = block_value[gridDim.x - 1];
}
