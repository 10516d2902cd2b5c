//@ about: a waiver that does not say why
//@ code: CI031
//@ severity: error

__global__ void wait(unsigned n) {
    // cuinstr: allow(CI013)
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "again:\n\t"
        "setp.ne.u32 p, %0, 0;\n\t"
        "@p bra again;\n\t"
        "}" ::"r"(n));
}
