//@ about: the same in one piece of assembly
//@ entry: experiment
//@ grid: 1056
//@ block: 256
//@ arg: i32 2048
//@ arg: i32 0
//@ arg: i32 0
//@ arg: i32[270336] zero

#define PREPARE
#define BARRIER                                                                                            \
    asm volatile("{\n\t.reg .pred some, all;\n\tsetp.ne.u32 some, %0, 0;\n\tbarrier.red.or.pred.aligned all, 0, some;\n\t" \
                 "@!all bra passed;\n\texit;\n\tpassed:\n\t}" ::"r"(stay)                                                  \
                 : "memory")

#include "rounds.cuh"
