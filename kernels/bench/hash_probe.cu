//@ about: look-ups in a hash table with linear probing, half of them misses
//@ entry: hash_probe
//@ grid: 1056
//@ block: 256
//@ arg: u32[16777216] table 8388608
//@ arg: u32[16777216] iota
//@ arg: u32 16777215
//@ arg: u32[16777216] mod 4294967296
//@ arg: i32 16777216
//@ arg: u32[16777216] zero
//@ long: arg 0 u32[16777216] const 1

__device__ unsigned hash(unsigned key)
{
    key ^= key >> 16;
    key *= 0x85ebca6bu;
    key ^= key >> 13;
    key *= 0xc2b2ae35u;
    key ^= key >> 16;
    return key;
}

// A slot without a key holds 0. A table without an empty slot is a mistake: a key that is not in it is looked for without end.
__global__ void hash_probe(const unsigned *keys, const unsigned *values, unsigned mask, const unsigned *wanted, int count, unsigned *found)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned key = wanted[i];
        unsigned slot = hash(key) & mask, value = 0xffffffffu;
        while (true) {
            const unsigned there = keys[slot];
            if (there == key) {
                value = values[slot];
                break;
            }
            if (there == 0)
                break;
            slot = (slot + 1) & mask;
        }
        found[i] = value;
    }
}
