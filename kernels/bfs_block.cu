//@ about: a whole breadth-first search by one block, until no depth changes
//@ entry: bfs_one_block
//@ block: 512
//@ arg: i32[3001] csr 3000 2
//@ arg: i32[6000] mod 2999
//@ arg: i32[3000] const -1
//@ arg: i32 3000
//@ arg: i32 17
//@ arg: i32[1] zero

__global__ void bfs_one_block(const int *first_edge, const int *target, int *depth_of, int nodes, int source, int *levels)
{
    __shared__ bool changed;
    int depth = 0;

    if (threadIdx.x == 0)
        depth_of[source] = 0;

    do
    {
        __syncthreads();
        if (threadIdx.x == 0)
            changed = false;
        __syncthreads();

        for (int node = threadIdx.x; node < nodes; node += blockDim.x)
        {
            if (depth_of[node] != depth) continue;

            for (int e = first_edge[node], end = first_edge[node + 1]; e < end; ++e)
            {
                // Several threads may find the same node: all of them write the same depth.
                if (depth_of[target[e]] < 0)
                {
                    depth_of[target[e]] = depth + 1;
                    changed = true;
                }
            }
        }

        ++depth;
        __syncthreads();
    }
    while (changed);

    if (threadIdx.x == 0)
        *levels = depth;
}
