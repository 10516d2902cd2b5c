//@ about: a wait for an mbarrier at which nobody arrives; the loop is inside the asm text
//@ entry: wait_for_copy
//@ grid: 2
//@ block: 64
//@ min-arch: 90
//@ arg: u32[128] zero
//@ tier: 2

__global__ void wait_for_copy(unsigned *out)
{
    __shared__ unsigned long long full;
    const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&full));

    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    __syncthreads();

    asm volatile( // HANG
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
        "@!done bra again;\n"
        "}\n"
        :: "r"(bar) : "memory");

    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
