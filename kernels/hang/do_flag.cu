//@ about: do ... while on a volatile flag that stays 0
//@ entry: wait_for_host
//@ grid: 4
//@ block: 64
//@ arg: i32[1] zero
//@ arg: u32[256] zero
//@ tier: 1

__global__ void wait_for_host(const volatile int *ready, unsigned *polls)
{
    unsigned count = 0;
    do { // HANG
        ++count;
    } while (*ready == 0);
    polls[blockIdx.x * blockDim.x + threadIdx.x] = count;
}
