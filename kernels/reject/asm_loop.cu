//@ about: inline assembly branches to a label of its own
//@ code: CI013
//@ severity: warning

__global__ void wait(unsigned *flag) {
    asm volatile(
        "{\n\t"
        ".reg .pred done;\n\t"
        ".reg .u32 seen;\n\t"
        "again:\n\t"
        "ld.volatile.global.u32 seen, [%0];\n\t"
        "setp.ne.u32 done, seen, 0;\n\t"
        "@!done bra again;\n\t"
        "}" ::"l"(flag) : "memory");
}
