//@ about: the loop is two calls down, in a function that is not inlined
//@ entry: probe_table
//@ grid: 2
//@ block: 64
//@ arg: u32[256] const 9
//@ arg: u32[128] zero
//@ tier: 1

// A full table without the key: the walk goes round and round.
__device__ __noinline__ unsigned find_slot(const volatile unsigned *table, unsigned mask, unsigned key)
{
    unsigned slot = key * 2654435761u & mask;
    while (table[slot] != key && table[slot] != 0)   // HANG
        slot = (slot + 1) & mask;
    return slot;
}

struct Table
{
    const unsigned *slots;
    unsigned size;

    __device__ unsigned operator[](unsigned key) const { return find_slot(slots, size - 1, key); }
};

__global__ void probe_table(const unsigned *slots, unsigned *found)
{
    const Table table{ slots, 256 };
    const unsigned key = 1000 + blockIdx.x * blockDim.x + threadIdx.x;
    found[key - 1000] = table[key];
}
