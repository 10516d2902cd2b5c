//@ about: four blocks for each multiprocessor of an H200, all looping until a word changes that nobody changes
//@ entry: spin_grid
//@ grid: 528
//@ block: 256
//@ arg: i32[1] zero
//@ arg: u32[528] zero

extern "C" __global__ void spin_grid(const volatile int *word, volatile unsigned *turns)
{
    unsigned turn = 0;
    while (*word == 0)
        turns[blockIdx.x] = ++turn;
}
