//@ about: half of the block is done at once, the other half spins in asm on a word that nobody sets
//@ entry: wait_in_asm
//@ grid: 2
//@ block: 64
//@ arg: u32[1] zero
//@ arg: u32[128] zero
//@ tier: 2
//@ stuck: yes

__global__ void wait_in_asm(const unsigned *flag, unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = i;
    if (threadIdx.x < 32)
        return;

    asm volatile( // HANG
        "{\n"
        ".reg .pred unset;\n"
        ".reg .u32 seen;\n"
        "spin:\n"
        "ld.volatile.global.u32 seen, [%0];\n"
        "setp.eq.u32 unset, seen, 0;\n"
        "@unset bra spin;\n"
        "}\n"
        :: "l"(flag) : "memory");
    out[i] = 0;
}
