//@ about: histogram whose bins are spread over the shared memory of a cluster of two blocks
//@ entry: cluster_histogram
//@ grid: 16
//@ block: 128
//@ cluster: 2
//@ min-arch: 90
//@ arg: u32[40000] mod 512
//@ arg: i32 40000
//@ arg: u32[512] zero

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int BINS = 512;
constexpr int BLOCKS = 2;
constexpr int OWN = BINS / BLOCKS;

__global__ void cluster_histogram(const unsigned *keys, int n, unsigned *histogram)
{
    __shared__ unsigned own[OWN];

    cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank();

    for (int b = threadIdx.x; b < OWN; b += blockDim.x)
        own[b] = 0;
    cluster.sync();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned key = keys[i] % BINS;
        unsigned *const bins = cluster.map_shared_rank(own, key / OWN);
        atomicAdd(bins + key % OWN, 1u);
    }
    cluster.sync();     // the other block may still add to ours

    for (int b = threadIdx.x; b < OWN; b += blockDim.x)
        atomicAdd(&histogram[rank * OWN + b], own[b]);
}
