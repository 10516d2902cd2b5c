//@ about: hangs until a variable of the module changes that nobody changes; two instances of this module would not share it
//@ entry: keeps_state
//@ grid: 4
//@ block: 64
//@ arg: u32[256] zero

__device__ volatile unsigned door = 0;

extern "C" __global__ void keeps_state(volatile unsigned *turns)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    while (door == 0)
        turns[i] = turns[i] + 1;
}
