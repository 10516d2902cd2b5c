//@ about: launches a grid from device code that loops until a word changes that nobody changes
//@ entry: launches_child
//@ grid: 1
//@ block: 1
//@ flags: -rdc=true
//@ arg: i32[1] zero
//@ arg: u32[256] zero

__global__ void child(const volatile int *word, volatile unsigned *turns)
{
    while (*word == 0)
        turns[threadIdx.x] = turns[threadIdx.x] + 1;
}

extern "C" __global__ void launches_child(const volatile int *word, volatile unsigned *turns)
{
    child<<<2, 64>>>(word, turns);
}
