//@ about: warp products (mma.sync, ldmatrix), some lanes of the warp gone
//@ entry: experiment
//@ grid: 1056
//@ block: 128
//@ shared: 16384

#include "leaving.cuh"

// All operands are ones, so that each sum is the number of its terms.
extern "C" __global__ void experiment(int who, unsigned *report, const unsigned *source, unsigned *sink, unsigned words)
{
    extern __shared__ __align__(128) unsigned shared[];
    if (is_later(report, shared)) return;
    const bool leaving = leaves(who);

    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) shared[i] = 0x3f803f80u;
    __syncthreads();
    float d[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    for (int round = 0; round < 64; ++round) {
        if (round == 32) LEAVE(leaving);
        unsigned a[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                     : "r"(address_of(shared) + threadIdx.x % 32 * 16)
                     : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%4, %5}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
    }
    bool right = who != NOBODY;
    for (int i = 0; who == NOBODY && i < 4; ++i) right = d[i] == 16.0f * 64;
    note(report, right);
}
