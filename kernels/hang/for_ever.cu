//@ about: for (;;) on one line, its only effect a volatile store
//@ entry: tick
//@ block: 32
//@ arg: u32[32] zero
//@ tier: 1

extern "C" __global__ void tick(volatile unsigned *clock) { for (;;) clock[threadIdx.x] = clock[threadIdx.x] + 1; } // HANG
