//@ about: the barrier, and behind it one word of 32 bits against zero
//@ entry: experiment
//@ grid: 1056
//@ block: 256
//@ arg: i32 2048
//@ arg: i32 0
//@ arg: i32 0
//@ arg: i32[270336] zero

#define PREPARE                                                                     \
    __shared__ volatile unsigned word;                                              \
    const unsigned where = (unsigned)__cvta_generic_to_shared((const void *)&word); \
    if (t == 0) word = 0u
#define BARRIER                                                                                \
    __syncthreads();                                                                           \
    asm volatile("{\n\t.reg .pred stays;\n\t.reg .b32 left;\n\tld.volatile.shared.b32 left, [%0];\n\t" \
                 "setp.eq.b32 stays, left, 0;\n\t@stays bra passed;\n\texit;\n\tpassed:\n\t}" ::"r"(where) \
                 : "memory")

#include "rounds.cuh"
