//@ about: one level of a breadth-first search, frontier in, frontier out
//@ entry: bfs_expand
//@ grid: 4
//@ block: 128
//@ arg: i32[8193] csr 8192 9
//@ arg: i32[73728] mod 8179
//@ arg: i32[300] mod 8179
//@ arg: i32 300
//@ arg: i32 4
//@ arg: i32[8192] const -1
//@ arg: i32[8192] const -1 sorted
//@ arg: i32[1] zero

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
