//@ about: counts the words in which two arrays differ
//@ entry: compare
//@ grid: 1056
//@ block: 256
//@ arg: u32[4096] iota
//@ arg: u32[4096] mod 4096
//@ arg: u64 4096
//@ arg: u64[1] zero

__global__ void compare(const unsigned *left, const unsigned *right, unsigned long long count, unsigned long long *differing)
{
    unsigned long long mine = 0;
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        mine += left[i] != right[i];
    if (mine != 0)
        atomicAdd(differing, mine);
}
