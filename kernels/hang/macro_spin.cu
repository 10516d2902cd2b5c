//@ about: a statement macro that holds the whole loop
//@ entry: drain_queue
//@ block: 64
//@ arg: i32[1] const 1
//@ arg: u32[64] zero
//@ tier: 1

#define SPIN_UNTIL(condition, counter) do { while (!(condition)) ++(counter); } while (0)

__global__ void drain_queue(const volatile int *pending, volatile unsigned *spins)
{
    unsigned mine = 0;
    SPIN_UNTIL(*pending == 0, mine); // HANG
    spins[threadIdx.x] = mine;
}
