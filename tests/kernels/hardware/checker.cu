//@ about: what is launched next: as much shared memory as there is, and a sum of known value
//@ entry: checker
//@ grid: 264
//@ block: 1024
//@ shared: 229376

#include "leaving.cuh"

// A report as that of an experiment: all threads end, nothing is wrong, nothing is stray.
extern "C" __global__ void checker(unsigned *report)
{
    extern __shared__ __align__(128) unsigned shared[];
    for (unsigned i = threadIdx.x; i < 229376 / 4; i += blockDim.x) shared[i] = pattern(i ^ blockIdx.x);
    __syncthreads();
    const unsigned long long since = now();
    while (now() - since < 20000ull) {
    }
    unsigned stray = 0;
    for (unsigned i = threadIdx.x; i < 229376 / 4; i += blockDim.x) stray += shared[i] != pattern(i ^ blockIdx.x);
    if (stray) atomicAdd(&report[STRAY], stray);
    __syncthreads();
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    if (shared[0] != 1024 * 1023 / 2) atomicAdd(&report[WRONG], 1u);
    atomicAdd(&report[ENDED], 1u);
}
