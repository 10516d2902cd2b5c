//@ about: a backward goto: the retry succeeds only if a word changes that nobody changes
//@ entry: claim_slot
//@ grid: 3
//@ block: 32
//@ arg: u32[8] const 1
//@ arg: i32[96] const -1
//@ tier: 1

__global__ void claim_slot(unsigned *taken, int *slot)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;
    int at = tid & 7;

again:
    if (atomicCAS(&taken[at], 0u, 1u) != 0u) {
        at = (at + 1) & 7;
        goto again; // HANG
    }
    slot[tid] = at;
}
