//@ about: cooperative launch: heat in a rod, a grid-wide barrier between steps
//@ entry: heat_steps
//@ grid: 32
//@ block: 128
//@ cooperative: yes
//@ arg: f32[10000] rand 26
//@ arg: f32[10000] rand 26
//@ arg: i32 10000
//@ arg: i32 41
//@ arg: f32 0.2

#include <cooperative_groups.h>

using namespace cooperative_groups;

__global__ void heat_steps(float *now, float *next, int n, int steps, float k)
{
    grid_group grid = this_grid();

    for (int s = 0; s < steps; ++s)
    {
        for (int i = 1 + (int)grid.thread_rank(); i < n - 1; i += (int)grid.num_threads())
        {
            next[i] = now[i] + k * (now[i - 1] - 2.0f * now[i] + now[i + 1]);
        }
        grid.sync();

        float *t = now;
        now = next;
        next = t;
    }
}
