//@ about: the first block loops in the kernel's own code; the others wait in grid.sync's loop, in a system header
//@ entry: ordered_phases
//@ grid: 8
//@ block: 64
//@ cooperative: yes
//@ arg: u32[512] zero
//@ arg: i32[1] zero
//@ tier: 2

#include <cooperative_groups.h>

__global__ void ordered_phases(unsigned *phase, const volatile int *input_ready)
{
    const auto grid = cooperative_groups::this_grid();

    if (blockIdx.x == 0) {
        while (*input_ready == 0)
            phase[0]++;
    }

    grid.sync();    // HANG
    phase[grid.thread_rank()] = 2;
}
