//@ about: one block of each cluster loops while the other waits in cluster.sync
//@ entry: hand_over
//@ grid: 8
//@ block: 64
//@ cluster: 2
//@ min-arch: 90
//@ arg: i32[512] zero
//@ arg: i32[1] zero
//@ tier: 1

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void hand_over(int *out, const volatile int *source)
{
    cg::cluster_group cluster = cg::this_cluster();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (cluster.block_rank() == 1)
        while ((out[i] = *source) == 0) { }    // HANG

    cluster.sync();
    if (cluster.block_rank() == 0)
        out[i] = out[i + blockDim.x] + 1;
}
