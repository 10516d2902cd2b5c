//@ about: binary search whose lower bound is set to the middle, not past it: the range never gets empty
//@ entry: upper_bound
//@ grid: 8
//@ block: 128
//@ arg: i32[4096] iota
//@ arg: i32 4096
//@ arg: i32[1024] mod 4096
//@ arg: i32[1024] zero
//@ arg: i32[1024] zero
//@ tier: 1

__global__ void upper_bound(const int *sorted, int n, const int *keys, int *found, volatile int *probes)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    const int key = keys[tid];
    int low = 0, high = n;

    while (low < high) {    // HANG
        const int middle = low + (high - low) / 2;
        probes[tid] = middle;
        if (sorted[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    found[tid] = low;
}
