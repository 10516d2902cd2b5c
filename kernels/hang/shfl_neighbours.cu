//@ about: odd lanes loop while the even ones wait for them in __shfl_sync
//@ entry: exchange_pairs
//@ grid: 2
//@ block: 96
//@ arg: i32[192] mod 191
//@ arg: i32[192] zero
//@ tier: 1

__global__ void exchange_pairs(const int *in, volatile int *out)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    int v = in[tid];

    if (threadIdx.x & 1) {
        int wait = 1;
        while (wait != 0) { // HANG
            out[tid] = v;
            wait = out[tid] - v + 1;
        }
    }

    v = __shfl_xor_sync(0xffffffffu, v, 1);
    out[tid] = v;
}
