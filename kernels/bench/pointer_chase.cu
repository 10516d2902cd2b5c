//@ about: each thread follows a list of its own through memory that no cache holds
//@ entry: pointer_chase
//@ grid: 1056
//@ block: 256
//@ arg: u32[67108859] mod 67108859
//@ arg: u32 67108859
//@ arg: i32 128
//@ arg: u32[270336] zero
//@ long: arg 2 i32 100000000

__global__ void pointer_chase(const unsigned *next, unsigned count, int steps, unsigned *last)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned at = (tid * 2654435761u) % count;
    for (int i = 0; i < steps; i++) {
        at = next[at];
    }
    last[tid] = at;
}
