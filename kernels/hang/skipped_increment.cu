//@ about: continue jumps over the increment
//@ entry: compact_positive
//@ grid: 2
//@ block: 64
//@ arg: i32[4096] mod 50
//@ arg: i32[4096] const -1
//@ arg: i32 32
//@ tier: 1

__global__ void compact_positive(const int *in, volatile int *out, int per_thread)
{
    const int base = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
    int i = 0, kept = 0;

    while (i < per_thread)      // HANG
    {
        out[base + kept] = in[base + i];
        if (in[base + i] < 25)
            continue;
        ++kept;
        ++i;
    }
}
