//@ about: never ends and asks the memory for nothing; eight blocks fill a multiprocessor with 2048 threads
//@ entry: spin_count
//@ block: 256
//@ arg: u32[1] zero

extern "C" __global__ void __launch_bounds__(256, 8) spin_count(unsigned *last)
{
    unsigned x = threadIdx.x | 1;
    while (x != 2)
        x = x * 1664525 + 1013904224;
    *last = x;
}
