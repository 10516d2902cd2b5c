//@ about: hash table with linear probing, written with goto forwards and backwards
//@ entry: insert_keys
//@ grid: 12
//@ block: 128
//@ arg: u32[1500] mod 1201
//@ arg: i32 1500
//@ arg: u32[2048] const 4294967295 sorted
//@ arg: i32 2048
//@ arg: i32[2] zero

#define FREE_SLOT 0xffffffffu

__device__ unsigned mix(unsigned h)
{
    h ^= h >> 16; h *= 0x85ebca6bu;
    h ^= h >> 13; h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

__global__ void insert_keys(const unsigned *keys, int n, unsigned *table, int slots, int *counts)
{
    unsigned key, slot, seen;
    int tries = 0;

    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        goto out;

    key = keys[i];
    slot = mix(key) & (slots - 1);

probe:
    seen = atomicCAS(&table[slot], FREE_SLOT, key);
    if (seen == FREE_SLOT)
        goto inserted;
    if (seen == key)
        goto duplicate;
    slot = (slot + 1) & (slots - 1);
    if (++tries < slots)
        goto probe;
    goto out;       // the table is full

inserted:
    atomicAdd(&counts[0], 1);
    goto out;

duplicate:
    atomicAdd(&counts[1], 1);

out:
    return;
}
