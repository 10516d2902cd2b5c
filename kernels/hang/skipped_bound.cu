//@ about: a bound tested with != that the step jumps over, for ever
//@ entry: odd_places
//@ block: 128
//@ arg: u32[128] zero
//@ arg: u32 1000
//@ tier: 1

__global__ void odd_places(volatile unsigned *last, unsigned n)
{
    for (unsigned i = 1; i != n; i += 2) { last[threadIdx.x] = i; } // HANG
}
