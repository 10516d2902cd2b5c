//@ about: Floyd-Warshall, the step through one node, distances and predecessors
//@ entry: relax_through
//@ grid: 4 24
//@ block: 32 4
//@ arg: i32[40000] mod 997
//@ arg: i32[40000] const -1
//@ arg: i32 200
//@ arg: i32 41

// With no negative weights, row k and column k stay as they are in step k, so the step works in place.
__global__ void relax_through(int *dist, int *via, int n, int k)
{
    for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < n; i += gridDim.y * blockDim.y) {
        const int to_k = dist[i * n + k];
        for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += gridDim.x * blockDim.x) {
            const int detour = to_k + dist[k * n + j];
            if (detour < dist[i * n + j]) {
                dist[i * n + j] = detour;
                via[i * n + j] = k;
            }
        }
    }
}
