// What scripts/ptx-forms runs beside the benchmarks: buffers are filled and compared on the device, as tests/harness/src/buffer.rs does it on the host.

enum Fill { ZERO, CONST, IOTA, MOD, CSR, RAND, LOWER };
enum Type { U8, I32, U32, F32, I64, U64, F64, BF16 };

__device__ unsigned long long mixed(unsigned long long seed, unsigned long long index)
{
    unsigned long long word = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return word ^ (word >> 31);
}

__device__ void put(void *out, unsigned long long at, int type, unsigned long long whole)
{
    switch (type) {
        case U8: ((unsigned char *)out)[at] = whole; break;
        case F32: ((float *)out)[at] = whole; break;
        case F64: ((double *)out)[at] = whole; break;
        case BF16: ((unsigned short *)out)[at] = __float_as_uint((float)whole) >> 16; break;
        case I64:
        case U64: ((unsigned long long *)out)[at] = whole; break;
        default: ((unsigned *)out)[at] = whole;
    }
}

extern "C" __global__ void fill(void *out, unsigned long long count, int type, int how, unsigned long long a, unsigned long long b, unsigned long long c)
{
    for (unsigned long long at = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; at < count; at += gridDim.x * (unsigned long long)blockDim.x) {
        const unsigned long long word = mixed(a, at);
        if (how == RAND && type == F32) ((float *)out)[at] = (word >> 40) / 16777216.0f;
        else if (how == RAND && type == F64) ((double *)out)[at] = (word >> 11) / 9007199254740992.0;
        else if (how == RAND && type == BF16) ((unsigned short *)out)[at] = __float_as_uint((word >> 56) / 256.0f) >> 16;
        else if (how == RAND) put(out, at, type, word);
        else if (how == CONST && type == F32) ((unsigned *)out)[at] = a;
        else if (how == CONST && type == F64) ((unsigned long long *)out)[at] = a;
        else if (how == CONST && type == BF16) ((unsigned short *)out)[at] = a;
        else if (how == CONST) put(out, at, type, a);
        else if (how == IOTA) put(out, at, type, at);
        else if (how == MOD) put(out, at, type, at * 2654435761ull % a);
        else if (how == CSR) put(out, at, type, at * a);
        else if (how == LOWER) {
            const unsigned long long row = at / a, back = b + mixed(b, at) % c;
            put(out, at, type, row - (row < back ? row : back));
        } else put(out, at, type, 0);
    }
}

// Puts keys into a hash table with linear probing.
extern "C" __global__ void table(unsigned *out, unsigned long long slots, unsigned long long keys)
{
    for (unsigned long long at = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; at < keys; at += gridDim.x * (unsigned long long)blockDim.x) {
        const unsigned key = (unsigned)(at + 1) * 2654435761u;
        unsigned hash = (key ^ key >> 16) * 0x85ebca6bu;
        hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
        unsigned slot = (hash ^ hash >> 16) & (unsigned)(slots - 1);
        while (atomicCAS(&out[slot], 0u, key) != 0u) slot = (slot + 1) & (unsigned)(slots - 1);
    }
}

// Counts bytes that differ.
extern "C" __global__ void differ(const unsigned char *left, const unsigned char *right, unsigned long long bytes, unsigned long long *count)
{
    unsigned long long found = 0;
    for (unsigned long long at = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; at < bytes; at += gridDim.x * (unsigned long long)blockDim.x)
        found += left[at] != right[at];
    if (found) atomicAdd(count, found);
}

extern "C" __global__ void empty(int *out)
{
    if (out) *out = 1;
}
