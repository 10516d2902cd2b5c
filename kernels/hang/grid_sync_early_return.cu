//@ about: one block returns before grid.sync, where the others wait for it
//@ entry: two_sweeps
//@ grid: 8
//@ block: 32
//@ cooperative: yes
//@ arg: f32[256] rand 4
//@ arg: f32[256] zero
//@ arg: i32 224
//@ tier: 2

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void two_sweeps(const float *in, float *out, int n)
{
    cg::grid_group grid = cg::this_grid();
    const int i = (int)grid.thread_rank();

    if (i >= n)
        return;     // the whole last block

    out[i] = 2.0f * in[i];
    grid.sync();    // HANG
    if (i > 0 && i < n - 1)
        out[i] += in[i - 1] + in[i + 1];
}
