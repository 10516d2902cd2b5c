//@ about: one level of a breadth-first search, frontier in, frontier out
//@ entry: bfs_expand
//@ grid: 8192
//@ block: 128
//@ reset: yes
//@ arg: i32[4194305] csr 4194304 8
//@ arg: i32[33554432] mod 4194301
//@ arg: i32[1048576] mod 4194301
//@ arg: i32 1048576
//@ arg: i32 4
//@ arg: i32[4194304] const -1
//@ arg: i32[4194304] const -1 sorted
//@ arg: i32[1] zero
//@ long: grid 2112
//@ long: arg 0 i32[270337] csr 270336 7900
//@ long: arg 1 i32[2135654400] zero
//@ long: arg 2 i32[270336] mod 270323
//@ long: arg 3 i32 270336

// Whoever changes a node's depth from -1 owns it and appends it: each node enters the next frontier once.
__global__ void bfs_expand(const int *first_edge, const int *target,
                           const int *frontier, int frontier_size,
                           int depth,
                           int *node_depth, int *next_frontier, int *next_size)
{
    int f = blockIdx.x * blockDim.x + threadIdx.x;
    if (f >= frontier_size)
        return;

    const int node = frontier[f];
    for (int e = first_edge[node]; e < first_edge[node + 1]; e++) {
        const int other = target[e];
        if (node_depth[other] != -1)
            continue;
        if (atomicCAS(&node_depth[other], -1, depth) != -1)
            continue;
        next_frontier[atomicAdd(next_size, 1)] = other;
    }
}
