//@ about: a waiver for a code that does not exist
//@ code: CI032
//@ severity: error

__global__ void wait(unsigned n) {
    // cuinstr: allow(CI999) nobody knows what this was
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "again:\n\t"
        "setp.ne.u32 p, %0, 0;\n\t"
        "@p bra again;\n\t"
        "}" ::"r"(n));
}
