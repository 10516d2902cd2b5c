//@ about: the barrier, and behind it what the prelude of today asks: two words of shared memory
//@ entry: experiment
//@ grid: 1056
//@ block: 256
//@ arg: i32 2048
//@ arg: i32 0
//@ arg: i32 0
//@ arg: i32[270336] zero

#define PREPARE                                                                                              \
    __shared__ __align__(16) volatile unsigned long long words[2];                                           \
    const unsigned where = (unsigned)__cvta_generic_to_shared((const void *)words);                          \
    if (t == 0) words[1] = 0ull;                                                                             \
    words[0] = 0x100000001ull
#define BARRIER                                                                                              \
    __syncthreads();                                                                                         \
    asm volatile("{\n\t.reg .pred stays;\n\t.reg .b64 left, awaited;\n\t"                                    \
                 "ld.volatile.shared.v2.b64 {awaited, left}, [%0];\n\tsetp.ne.b64 stays, left, awaited;\n\t" \
                 "@stays bra passed;\n\texit;\n\tpassed:\n\t}" ::"r"(where)                                  \
                 : "memory")

#include "rounds.cuh"
