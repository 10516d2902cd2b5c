//@ about: inline PTX: 256-bit additions with carry, bit tricks, special registers
//@ entry: wide_add
//@ grid: 10
//@ block: 64
//@ arg: u32[5120] rand 36
//@ arg: u32[5120] rand 37
//@ arg: u32[5120] zero
//@ arg: u32[640] zero
//@ arg: i32 33

__device__ __forceinline__ unsigned lane_id()
{
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// a += b over eight words; the carry lives in the condition code, so it must stay in one asm statement
__device__ void add256(unsigned (&a)[8], const unsigned (&b)[8])
{
    asm volatile(
        "add.cc.u32  %0, %0, %8;\n\t"
        "addc.cc.u32 %1, %1, %9;\n\t"
        "addc.cc.u32 %2, %2, %10;\n\t"
        "addc.cc.u32 %3, %3, %11;\n\t"
        "addc.cc.u32 %4, %4, %12;\n\t"
        "addc.cc.u32 %5, %5, %13;\n\t"
        "addc.cc.u32 %6, %6, %14;\n\t"
        "addc.u32    %7, %7, %15;"
        : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]), "+r"(a[4]), "+r"(a[5]), "+r"(a[6]), "+r"(a[7])
        : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

__global__ void wide_add(const unsigned *x, const unsigned *y, unsigned *sums, unsigned *top_bits, int times)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a[8], b[8];

    for (int w = 0; w < 8; ++w) { a[w] = x[8 * i + w]; b[w] = y[8 * i + w]; }

    for (int t = 0; t < times; ++t)
        add256(a, b);

    unsigned top;
    asm volatile("{\n\t"
                 ".reg .u32 t;\n\t"
                 "xor.b32 t, %1, %2;\n\t"
                 "bfind.u32 %0, t;\n\t"
                 "}" : "=r"(top) : "r"(a[7]), "r"(lane_id()));
    asm volatile("" ::: "memory");

    for (int w = 0; w < 8; ++w) sums[8 * i + w] = a[w];
    top_bits[i] = top;
}
