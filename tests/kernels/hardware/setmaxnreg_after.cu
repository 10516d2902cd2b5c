//@ about: warp groups have given registers to each other (setmaxnreg), then threads leave
//@ entry: experiment
//@ grid: 528
//@ block: 384
//@ shared: 16384

#include "leaving.cuh"

// The first group gives registers away, the two others wait until there are enough of them.
extern "C" __global__ void __launch_bounds__(384, 1)
experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    }
    LEAVE(leaving);
    note(report, true);
}
