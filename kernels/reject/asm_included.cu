//@ about: a file that is included makes the text of inline assembly
//@ code: CI013
//@ severity: warning

__global__ void wait(unsigned *flag) {
    asm volatile(
#include "wait.inc"
        ::"l"(flag) : "memory");
    asm volatile("st.volatile.global.u32 [%0], 1;" ::
#include "operands.inc"
    );
}
