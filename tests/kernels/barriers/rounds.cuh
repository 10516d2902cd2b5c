#pragma once
// What the builds of this folder share: threads of a block that hand values on to their neighbours, a barrier a round. `BARRIER` is what
// they differ in, `PREPARE` what it needs to have been declared.

template <int work>
__device__ int rounds_of(int rounds, int stay)
{
    __shared__ int row[2][256];
    const int t = threadIdx.x;
    int best = 0, left = t;
    row[0][t] = row[1][t] = t;
    PREPARE;
    __syncthreads();
#pragma unroll 4
    for (int s = 0; s < rounds; ++s) {
        const int now = s & 1, before = now ^ 1;
        int value = row[before][(t + 255) & 255];
#pragma unroll
        for (int i = 0; i < work; ++i) value = max(value - left, value + i) ^ s;
        best = max(best, value);
        left = value;
        row[now][t] = value;
        BARRIER;
    }
    return best;
}

// `stay` is zero: what threads vote, where nobody is asked to leave.
extern "C" __global__ void experiment(int rounds, int work, int stay, int *sink)
{
    sink[blockIdx.x * blockDim.x + threadIdx.x] = work ? rounds_of<12>(rounds, stay) : rounds_of<0>(rounds, stay);
}
