//@ about: all threads but one are done; that one waits in asm for an arrival that never comes
//@ entry: last_one_waits
//@ grid: 16
//@ block: 128
//@ min-arch: 80
//@ arg: i32[2048] mod 2039
//@ arg: i32[16] zero
//@ tier: 2
//@ stuck: yes

__global__ void last_one_waits(const int *in, int *sum)
{
    __shared__ unsigned long long done;
    const unsigned bar = (unsigned)__cvta_generic_to_shared(&done);

    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "r"(blockDim.x) : "memory");
    __syncthreads();

    atomicAdd(&sum[blockIdx.x], in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x != 77)
        return;     // without an arrival

    asm volatile("{\n\t" // HANG
                 ".reg .pred complete;\n\t"
                 "WAIT:\n\t"
                 "mbarrier.test_wait.parity.shared.b64 complete, [%0], 0;\n\t"
                 "@complete bra DONE;\n\t"
                 "bra WAIT;\n\t"
                 "DONE:\n\t"
                 "}" :: "r"(bar) : "memory");
    sum[blockIdx.x] = -sum[blockIdx.x];
}
