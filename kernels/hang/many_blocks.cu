//@ about: a grid of far more blocks than fit, all of them in the loop
//@ entry: flood
//@ grid: 4096 8
//@ block: 256
//@ arg: u32[4096] zero
//@ arg: u32 12345
//@ tier: 1

__global__ void flood(unsigned *cells, unsigned seed)
{
    unsigned x = seed + blockIdx.y * gridDim.x + blockIdx.x;
    // A xorshift generator never returns 0 from a state other than 0.
    while (x != 0) { // HANG
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        atomicOr(&cells[x % 4096], threadIdx.x);
    }
}
