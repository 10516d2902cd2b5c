//@ about: never ends and stores in each iteration; eight blocks fill a multiprocessor with 2048 threads
//@ entry: spin_store
//@ block: 256
//@ arg: i32[1] zero
//@ arg: u32[65536] zero

extern "C" __global__ void __launch_bounds__(256, 8) spin_store(const volatile int *word, volatile unsigned *turns)
{
    unsigned turn = 0;
    while (*word == 0)
        turns[blockIdx.x % 65536] = ++turn;
}
