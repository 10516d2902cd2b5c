//@ about: a switch with fallthrough, and Duff's device
//@ entry: xor_fold
//@ grid: 5
//@ block: 100
//@ arg: u32[25000] rand 31
//@ arg: u32[500] zero
//@ arg: i32 50

// xor of n words, the loop entered through the switch; n > 0
__device__ unsigned fold(const unsigned *from, int n)
{
    unsigned x = 0;
    int rounds = (n + 7) / 8;
    switch (n % 8) {
    case 0: do { x ^= *from++;
    case 7:      x ^= *from++;
    case 6:      x ^= *from++;
    case 5:      x ^= *from++;
    case 4:      x ^= *from++;
    case 3:      x ^= *from++;
    case 2:      x ^= *from++;
    case 1:      x ^= *from++;
            } while (--rounds > 0);
    }
    return x;
}

// the tail of MurmurHash3
__device__ unsigned tail(unsigned x, unsigned h)
{
    switch (x & 3) {
    case 3:
        h ^= (x >> 16 & 0xff) << 16;
        [[fallthrough]];
    case 2:
        h ^= (x >> 8 & 0xff) << 8;
        [[fallthrough]];
    case 1:
        h ^= x & 0xff;
        h *= 0xcc9e2d51u;
        break;
    default:
        for (int i = 0; i < 3; ++i)
            h = h << 13 | h >> 19;
    }
    return h;
}

__global__ void xor_fold(const unsigned *words, unsigned *folded, int stride)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    const int n = 1 + tid % stride;

    const unsigned x = fold(words + tid * stride, n);
    folded[tid] = tail(x, x + n);
}
