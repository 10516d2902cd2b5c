//! Loops that are written in unusual ways: with polls they compute the same, ptxas takes them, and each cycle polls or is bounded.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::options::{Limits, Options, PollGap, Polls};
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_differential::simulated::run;
use cuinstr_harness::header::{Header, Place};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::sass;
use cuinstr_simulate::Outcome;
use cuinstr_trial::or_ignore;

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// A kernel that counts in `%r5` and `%r6`, from the numbers `%r1`, `%r2` and `%r4`.
fn kernel(body: &str) -> String {
    let parameters = ".param .u64 out, .param .u32 a, .param .u32 b, .param .u32 c";
    let loads =
        "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b]; ld.param.u32 %r4, [c]; mov.u32 %r5, 0; mov.u32 %r6, 0;";
    let stores = "st.global.u32 [%rd1], %r5; st.global.u32 [%rd1+4], %r6;";
    format!(
        "{HEAD}.visible .entry k({parameters})\n{{\n.reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<3>;\n{loads}\n{body}\n{stores}\nret;\n}}\n"
    )
}

/// What is odd about each loop, and its text.
const LOOPS: [(&str, &str); 52] = [
    (
        "the variable is a copy that each iteration takes first, as nvcc writes it where the old value is asked for behind the loop",
        "mov.u32 %r3, 0; mov.u32 %r7, %r1;\n$L: mov.u32 %r3, %r7; mad.lo.s32 %r5, %r5, 3, %r3; add.s32 %r7, %r3, 1; setp.lt.s32 %p1, %r7, %r2; @%p1 bra $L;\n\
         xor.b32 %r6, %r3, %r7;",
    ),
    (
        "the same, and the copy is tested",
        "mov.u32 %r7, %r1; mov.u32 %r3, 0;\n$L: mov.u32 %r3, %r7; add.s32 %r7, %r3, 1; add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r3, 100; @%p1 bra $L;",
    ),
    (
        "the same in a loop that stands twice",
        "$O: mov.u32 %r7, %r4; mov.u32 %r3, %r1;\n$L: mov.u32 %r3, %r7; add.s32 %r7, %r3, 1; add.s32 %r5, %r5, 1; setp.ne.s32 %p1, %r7, %r2; @%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, 9; @%p1 bra $O;",
    ),
    (
        "the test is of the next value, in front of the step",
        "mov.u32 %r3, 0; mov.u32 %r7, %r4;\n$L: setp.lt.s32 %p1, %r7, %r2; add.s32 %r5, %r5, 1; add.s32 %r7, %r3, 1; mov.u32 %r3, %r7; @%p1 bra $L;",
    ),
    (
        "the next value is moved behind the step, in front of the test and behind it",
        "mov.u32 %r3, %r1;\n$L: add.s32 %r5, %r5, %r3; add.s32 %r7, %r3, 1; mov.u32 %r3, %r7; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L;\nmov.u32 %r3, %r1;\n\
         $M: add.s32 %r6, %r6, %r3; add.s32 %r7, %r3, 1; setp.lt.s32 %p1, %r3, %r2; mov.u32 %r3, %r7; @%p1 bra $M;",
    ),
    (
        "a way out of the inner loop begins the outer one's next iteration",
        "$O: mov.u32 %r3, %r1; add.s32 %r6, %r6, 1;\n$L: add.s32 %r5, %r5, %r3; and.b32 %r7, %r5, 63; setp.eq.s32 %p3, %r7, %r4; @%p3 bra $O; add.s32 %r3, %r3, 1;\n\
         setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L;",
    ),
    (
        "a comment stands between a way out and its guard",
        "$L: add.s32 %r5, %r5, %r1; setp.gt.s32 %p2, %r5, 700; @%p2 // found\n bra $E; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;\n$E:",
    ),
    (
        "a comment stands between a way into a cycle with several and its guard",
        "setp.lt.s32 %p3, %r4, 5; @%p3 // into the middle\n bra $B;\n$A: add.s32 %r5, %r5, 1;\n$B: add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r2; @%p1 bra $A;",
    ),
    (
        "a comment in the guard of a return has an exclamation mark",
        "$L: add.s32 %r5, %r5, %r1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;\nsetp.lt.s32 %p2, %r5, 7; @%p2 /* small! */ bra $E;\n\
         st.global.u32 [%rd1+8], %r1; bra.uni $F;\n$E: ret;\n$F:",
    ),
    (
        "a comment in the comparison has commas",
        "$L: add.s32 %r5, %r5, %r1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1 /* a, b, 700, */, %r1, 30; @%p1 bra $L;",
    ),
    (
        "the bound is octal",
        "$O: and.b32 %r3, %r1, 31;\n$L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, 1; setp.ne.s32 %p1, %r3, 0100; @%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra $O;",
    ),
    (
        "a table's labels are counted in hexadecimal",
        "and.b32 %r7, %r4, 1;\nT: .branchtargets B<0x2>;\nbrx.idx %r7, T;\nB0: add.s32 %r5, %r5, 1;\nB1: add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r2; @%p1 bra B0;",
    ),
    (
        "a label of a loop that stands twice is named like an opcode",
        "$O: mov.u32 %r3, %r1;\nadd: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r4; @%p1 bra add;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra $O;",
    ),
    (
        "a loop in front of it, which adds to its variable, stands in another loop",
        "mov.u32 %r3, 0; mov.u32 %r7, 0;\n$Q: mov.u32 %r8, 0;\n$R: add.s32 %r3, %r3, 1; add.s32 %r8, %r8, 1; setp.lt.s32 %p1, %r8, 8; @%p1 bra $R;\n\
         add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, %r2; @%p1 bra $Q;\n$L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, -1; setp.gt.s32 %p1, %r3, 0; @%p1 bra $L;",
    ),
    (
        "it counts down without a sign, from where it may begin below its step",
        "and.b32 %r3, %r1, 7; add.s32 %r3, %r3, %r2;\n$L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, -4; setp.gt.u32 %p1, %r3, 8; @%p1 bra $L;",
    ),
    (
        "the loop goes on by the second predicate of its comparison, which says the opposite",
        "mov.u32 %r3, %r2;\n$L: add.s32 %r5, %r5, %r3; add.s32 %r3, %r3, 1; setp.lt.s32 %p1|%p2, %r3, 100; @%p2 bra $L;",
    ),
    (
        "the same where it would end soon by the first one",
        "and.b32 %r3, %r1, 15;\n$L: add.s32 %r5, %r5, %r3; add.s32 %r3, %r3, 1; setp.lt.s32 %p1|%p2, %r3, 10; @%p2 bra $L;",
    ),
    (
        "the test in front of what an unrolled loop leaves asks by the second predicate",
        "and.b32 %r3, %r1, 7; setp.eq.s32 %p1|%p2, %r3, 0; @%p2 bra $X;\n\
         $L: add.s32 %r5, %r5, %r3; add.s32 %r3, %r3, -1; setp.ne.s32 %p3, %r3, 0; @%p3 bra $L;\n$X:",
    ),
    (
        "it counts up to zero as what an unrolled loop leaves, by steps that differ",
        "and.b32 %r7, %r1, 7; and.b32 %r8, %r2, 3; add.s32 %r9, %r8, 1; setp.eq.s32 %p1, %r7, 0; @%p1 bra $X; neg.s32 %r3, %r7;\n\
         $L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, %r9; setp.ne.s32 %p2, %r3, 0; @%p2 bra $L;\n$X:",
    ),
    (
        "it begins at the upper half of a number",
        "mov.u64 %rd2, 6; mov.b64 {%r7, %r3}, %rd2;\n$L: add.s32 %r5, %r5, 1; setp.gt.s32 %p2, %r5, %r2; @%p2 bra $E;\n\
         add.s32 %r3, %r3, 4; setp.ne.s32 %p1, %r3, 10; @%p1 bra $L;\n$E:",
    ),
    (
        "a loop in front of it has come so far that the next step goes round",
        "mov.u32 %r3, 1073741822; and.b32 %r7, %r1, 3; setp.eq.s32 %p1, %r7, 0; @%p1 bra $L;\n\
         $R: add.s32 %r3, %r3, 357913941; add.s32 %r7, %r7, -1; setp.ne.s32 %p1, %r7, 0; @%p1 bra $R;\n\
         $L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, 2; setp.lt.s32 %p2, %r3, 100; @%p2 bra $L;",
    ),
    (
        "a table stands in a loop that could stand twice, and is asked for behind it",
        "$O: mov.u32 %r3, %r1;\n$L: add.s32 %r5, %r5, %r3;\nT: .branchtargets $A, $B;\nadd.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r4; @%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra $O;\nand.b32 %r7, %r5, 1; brx.idx %r7, T;\n$A: add.s32 %r6, %r6, 1;\n$B:",
    ),
    (
        "a nest begins where a loop in front of it has been in an earlier round",
        "mov.u32 %r3, 0; mov.u32 %r9, 0;\n$P: shl.b32 %r6, %r1, 4; sub.s32 %r6, %r9, %r6; xor.b32 %r7, %r6, %r9; setp.eq.s32 %p3, %r9, 1; @!%p3 bra $S; mov.u32 %r3, %r7;\n\
         $S: add.s32 %r9, %r9, 1; setp.lt.s32 %p3, %r9, %r4; @%p3 bra $P;\n$O: mov.u32 %r8, 0;\n\
         $L: add.s32 %r5, %r5, %r3; add.s32 %r8, %r8, 1; setp.lt.s32 %p1, %r8, 3; @%p1 bra $L;\n\
         add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 10; @%p2 bra $O;",
    ),
    (
        "a cycle with several ways in, inside of it, counts",
        "mov.u32 %r3, %r1;\n$L: and.b32 %r7, %r6, 1; setp.eq.s32 %p2, %r7, 0; @%p2 bra $B;\n$A: add.s32 %r6, %r6, 3; bra $C;\n$B: add.s32 %r6, %r6, 1;\n\
         $C: mad.lo.s32 %r5, %r5, 31, %r6; add.s32 %r3, %r3, 1; and.b32 %r8, %r5, 3; setp.eq.s32 %p3, %r8, 1; @%p3 bra $A; setp.eq.s32 %p3, %r8, 2; @%p3 bra $B;\n\
         setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L;",
    ),
    (
        "a cycle with several ways in, around it, does not begin it anew",
        "mov.u32 %r3, 0; setp.lt.s32 %p3, %r4, 5; @%p3 bra $B;\n$A: add.s32 %r6, %r6, 1;\n$B: add.s32 %r5, %r5, 7; setp.gt.s32 %p2, %r6, 0; @%p2 bra $E;\n\
         $L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, 4; setp.ne.s32 %p2, %r3, 16; @%p2 bra $L;\nadd.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r2; @%p1 bra $A;\n$E:",
    ),
    (
        "it is tested between braces, and what they hold has another's name",
        "{ .reg .b32 t; mov.u32 t, 7; mov.u32 %r3, %r1;\n$L: { .reg .b32 t; add.s32 t, %r3, 1; add.s32 %r5, %r5, %r3; setp.lt.s32 %p1, t, %r2; mov.u32 %r3, t; }\n@%p1 bra $L; }",
    ),
    (
        "the same, and nothing has the name where it ends",
        "mov.u32 %r3, %r1;\n$L: { .reg .b32 t; add.s32 t, %r3, 1; add.s32 %r5, %r5, %r3; setp.lt.s32 %p1, t, %r2; mov.u32 %r3, t; }\n@%p1 bra $L;",
    ),
    (
        "what its test is joined with has another's name where it ends",
        "mov.u32 %r3, %r1;\n$L: add.s32 %r3, %r3, 1; add.s32 %r5, %r5, 3; setp.lt.s32 %p1, %r3, %r2; setp.ne.s32 %p2, %r5, 30; and.pred %p3, %p1, %p2;\n\
         { .reg .pred %p2; setp.eq.s32 %p2, %r3, -1; @%p3 bra $L; }",
    ),
    (
        "the same, and the other is declared behind the test",
        "mov.u32 %r3, %r1; {\n$L: add.s32 %r3, %r3, 1; add.s32 %r5, %r5, 3; setp.lt.s32 %p1, %r3, %r2; setp.ne.s32 %p2, %r5, 30; and.pred %p3, %p1, %p2;\n\
         .reg .pred %p2; setp.eq.s32 %p2, %r3, -1; @%p3 bra $L; }",
    ),
    (
        "a brace stands between the label of a loop that could stand twice and its first statement",
        "$O: mov.u32 %r3, %r1;\n$L: { add.s32 %r5, %r5, %r3; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r4; @%p1 bra $L; }\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra $O;",
    ),
    (
        "a loop in front of it, which adds to its variable, does so in a cycle with several ways in",
        "mov.u32 %r3, 0;\n$R: mov.u32 %r7, 0; setp.gt.s32 %p3, %r6, %r4; @%p3 bra $B;\n$A: add.s32 %r3, %r3, 1; add.s32 %r7, %r7, 1;\n\
         $B: setp.lt.s32 %p2, %r7, %r2; @%p2 bra $A; add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, 8; @%p1 bra $R;\n\
         $L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, -1; setp.gt.s32 %p1, %r3, 0; @%p1 bra $L;",
    ),
    (
        "a loop that could stand twice compares the bits of floats, and another one's bound is such a register",
        ".reg .f32 f, g, h; mov.f32 f, 0f00000000; mov.f32 g, 0f40000000; mov.b32 h, %r2;\n$O: mov.u32 %r3, %r1;\n\
         $L: setp.eq.b32 %p3, f, g; @%p3 add.s32 %r5, %r5, 100; add.f32 f, f, 0f3F800000; add.s32 %r5, %r5, %r3; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r4; @%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.ne.b32 %p2, %r6, h; @%p2 bra $O;\n$M: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, 1; setp.ne.b32 %p2, %r3, h; @%p2 bra $M;",
    ),
    (
        "a loop around it waits in each round",
        "$O: nanosleep.u32 20; mov.u32 %r3, %r1;\n$L: mad.lo.s32 %r5, %r5, 3, %r3; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r4; @%p2 bra $O;",
    ),
    (
        "the same with one that pays between the two",
        "$O: nanosleep.u32 20; mov.u32 %r3, 0;\n$M: mov.u32 %r7, %r1; add.s32 %r3, %r3, 1;\n\
         $L: mad.lo.s32 %r5, %r5, 3, %r7; add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, %r2; @%p1 bra $L; setp.lt.s32 %p1, %r3, %r4; @%p1 bra $M;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, 5; @%p2 bra $O;",
    ),
    (
        "a table that leads into a cycle with several ways in lists a label, and another has that name where it is asked for",
        "$T: .branchtargets $A, $B, $E; setp.lt.s32 %p3, %r4, 5; and.b32 %r7, %r1, 1; @%p3 mov.u32 %r7, 2;\n{ brx.idx %r7, $T;\n$E: add.s32 %r6, %r6, 100; bra $F; }\n\
         $A: add.s32 %r5, %r5, 1;\n$B: add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r2; @%p1 bra $A;\n$E: add.s32 %r6, %r6, 1;\n$F:",
    ),
    ("its step is in a register", "$L: mad.lo.s32 %r5, %r5, 3, %r1; add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;"),
    (
        "a branch leads to a loop with a step in a register, past what stands in front of it",
        "mov.u32 %r3, %r1; setp.lt.s32 %p1, %r1, 3; @%p1 bra $L;\nadd.s32 %r3, %r3, 5;\n$L: mad.lo.s32 %r5, %r5, 3, %r3; add.s32 %r3, %r3, %r4;\n\
         setp.lt.s32 %p2, %r3, %r2; @%p2 bra $L;\nxor.b32 %r6, %r3, %r5;",
    ),
    (
        "the same four times, as compilers write it",
        "$L: add.s32 %r5, %r5, %r1; add.s32 %r3, %r1, %r4; add.s32 %r5, %r5, %r3; add.s32 %r7, %r4, %r3; add.s32 %r8, %r7, %r4; xor.b32 %r6, %r6, %r8;\n\
         add.s32 %r1, %r8, %r4; setp.le.u32 %p1, %r1, %r2; @%p1 bra $L;",
    ),
    (
        "its step is in a register of 64 bits",
        ".reg .b64 i, n, s; cvt.u64.u32 i, %r1; cvt.u64.u32 n, %r2; cvt.u64.u32 s, %r4;\n\
         $L: cvt.u32.u64 %r3, i; mad.lo.s32 %r5, %r5, 3, %r3; add.s64 i, i, s; setp.lt.u64 %p1, i, n; @%p1 bra $L;",
    ),
    (
        "the same, and the step is beyond 32 bits",
        ".reg .b64 i, n, s; cvt.u64.u32 i, %r1; cvt.u64.u32 n, %r2; shl.b64 n, n, 40; cvt.u64.u32 s, %r4; shl.b64 s, s, 38; add.s64 s, s, 1;\n\
         $L: cvt.u32.u64 %r3, i; mad.lo.s32 %r5, %r5, 3, %r3; add.s64 i, i, s; setp.le.s64 %p1, i, n; @%p1 bra $L;",
    ),
    (
        "its step leads away from the bound, and goes round",
        "shl.b32 %r3, %r4, 26; neg.s32 %r3, %r3; add.s32 %r3, %r3, -1;\n$L: add.s32 %r5, %r5, 1; xor.b32 %r6, %r6, %r1; add.s32 %r1, %r1, %r3; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
    ),
    (
        "its step is half of all numbers, and some",
        "add.s32 %r3, %r4, -2147483648; add.s32 %r1, %r1, -2147483648;\n\
         $L: add.s32 %r5, %r5, 1; xor.b32 %r6, %r6, %r1; add.s32 %r1, %r1, %r3; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
    ),
    (
        "its bound is as far away as may be",
        "shl.b32 %r3, %r4, 27; add.s32 %r1, %r1, -2147483648;\n$L: add.s32 %r5, %r5, 1; xor.b32 %r6, %r6, %r1; add.s32 %r1, %r1, %r3; setp.lt.s32 %p1, %r1, 1879048192; @%p1 bra $L;",
    ),
    (
        "the loop with such a step is left in front of its test",
        "$L: add.s32 %r5, %r5, %r1; setp.gt.s32 %p2, %r5, 300; @%p2 bra $E; add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;\n$E:",
    ),
    (
        "it lies in another loop",
        "$O: mov.u32 %r3, %r1;\n$L: mad.lo.s32 %r5, %r5, 3, %r3; add.s32 %r3, %r3, %r4; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, 9; @%p2 bra $O;",
    ),
    (
        "the same, and a way out of it begins the outer one's next iteration",
        "$O: mov.u32 %r3, %r1; add.s32 %r6, %r6, 1; setp.gt.s32 %p2, %r6, 90; @%p2 bra $E;\n\
         $L: add.s32 %r5, %r5, %r3; and.b32 %r7, %r5, 7; setp.eq.s32 %p3, %r7, 1; @%p3 bra $O; add.s32 %r3, %r3, %r4; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L;\n$E:",
    ),
    (
        "another one with such a step stands directly behind it",
        "mov.u32 %r3, %r1;\n$L: mad.lo.s32 %r5, %r5, 3, %r1; add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;\
         $M: mad.lo.s32 %r6, %r6, 5, %r3; add.s32 %r3, %r3, %r4; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $M;",
    ),
    (
        "a tiny loop in another adds until it is not below zero",
        "$O: mul.lo.s32 %r3, %r6, -7; sub.s32 %r3, %r3, %r1;\n$L: mov.u32 %r7, %r3; add.s32 %r3, %r7, %r4; setp.lt.s32 %p1, %r7, 0; @%p1 bra $L;\n\
         mad.lo.s32 %r5, %r5, 3, %r7; add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra $O;",
    ),
    (
        "the same, and it is left where its predicate holds",
        "$O: mov.u32 %r3, %r6;\n$L: shr.u32 %r3, %r3, %r4; add.s32 %r5, %r5, 1; setp.eq.s32 %p1, %r3, 0; @!%p1 bra $L;\n\
         add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r2; @%p2 bra $O;",
    ),
    (
        "it halves a number",
        "mov.u32 %r3, %r2;\n$L: mad.lo.s32 %r5, %r5, 3, %r3; shr.u32 %r3, %r3, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra $L;",
    ),
    (
        "it halves a number with a sign, and asks for it before",
        "sub.s32 %r3, %r1, %r2;\n$L: mad.lo.s32 %r5, %r5, 3, %r3; shr.u32 %r7, %r3, 31; add.s32 %r8, %r3, %r7; shr.s32 %r9, %r8, 1; setp.ne.s32 %p1, %r9, 0; mov.u32 %r3, %r9;\n\
         @%p1 bra $L;",
    ),
    (
        "it doubles a number up to the lanes of a warp",
        "mov.u32 %r3, 1; mov.u32 %r7, WARP_SZ;\n$L: mad.lo.s32 %r5, %r5, 3, %r3; add.s32 %r5, %r5, %r1; shl.b32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r7; @%p1 bra $L;",
    ),
];

/// Forms of polls.
fn forms() -> Vec<Options> {
    let options = Options { path: "odd.ptx".to_owned(), ..Options::default() };
    let limits = Limits { fuel: Some(1 << 40), ..Limits::default() };
    let poll_gap = PollGap::from_nanoseconds(2_000).expect("a gap within the range");
    vec![
        options.clone(),
        Options { polls: Polls::Each, ..options.clone() },
        Options { limits, ..options.clone() },
        Options { poll_gap, ..options },
    ]
}

fn polled(text: &str, options: &Options) -> String {
    let rewrite = rewrite_ptx(text.as_bytes(), options);
    String::from_utf8(rewrite.output.unwrap_or_else(|| panic!("{:?}\n{text}", rewrite.diagnostics))).expect("it is text")
}

#[test]
fn loops_do_the_same_with_polls() {
    for (what, body) in LOOPS {
        let text = kernel(body);
        let polled: Vec<String> = forms().iter().map(|options| polled(&text, options)).collect();
        let mut completed = 0;
        for (a, b, c) in [(0, 9, 40), (5, 9, 3), (3, 90, 2), (7, 200, 0), (2, 4_000, 7)] {
            let header = format!(
                "//@ about: a loop\n//@ entry: k\n//@ grid: 1\n//@ block: 1\n//@ arg: u32[3] zero\n//@ arg: i32 {a}\n//@ arg: i32 {b}\n//@ arg: i32 {c}\n"
            );
            let header = Header::parse(&header, Place::Kernel).expect("a header");
            let left = |text: &str, steps: u64| run(text, &header, 1, steps).unwrap_or_else(|why| panic!("{what}: {why}"));
            let before = left(&text, 100_000);
            if before.outcome != Some(Outcome::Completed) {
                continue;
            }
            completed += 1;
            for text in &polled {
                let after = left(text, 4_000_000);
                assert_eq!((&after.outcome, &after.buffers), (&before.outcome, &before.buffers), "{what}: {a} {b} {c}\n{text}");
            }
        }
        assert!(completed > 1, "{what}");
    }
}

/// Loops that wait in each round, in front of what one that pays has left of its allowance, and around it.
const WAITS: [&str; 2] = [
    "$L: add.s32 %r5, %r5, 1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;\n\
     $O: nanosleep.u32 20; add.s32 %r6, %r6, 1; st.global.u32 [%rd1+8], %r6; bra $O;",
    "$O: nanosleep.u32 20; add.s32 %r6, %r6, 1; st.global.u32 [%rd1+8], %r6; and.b32 %r3, %r6, 3;\n\
     $L: add.s32 %r5, %r5, 1; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L; bra $O;",
];

#[test]
fn fuel_ends_in_the_same_round_however_far_polls_are_apart() {
    let header = "//@ about: a loop\n//@ entry: k\n//@ grid: 1\n//@ block: 1\n//@ arg: u32[3] zero\n//@ arg: i32 0\n//@ arg: i32 2\n//@ arg: i32 0\n";
    let header = Header::parse(header, Place::Kernel).expect("a header");
    for body in WAITS {
        let rounds = [2_000, 20_000, 1_000_000].map(|gap| {
            let limits = Limits { fuel: Some(100), ..Limits::default() };
            let poll_gap = PollGap::from_nanoseconds(gap).expect("a gap within the range");
            let text = polled(&kernel(body), &Options { path: "odd.ptx".to_owned(), limits, poll_gap, ..Options::default() });
            let after = run(&text, &header, 1, 1_000_000).unwrap_or_else(|why| panic!("{why}\n{text}"));
            assert!(after.outcome.is_some(), "it runs on:\n{text}");
            after.buffers
        });
        assert!(rounds[0] == rounds[1] && rounds[1] == rounds[2] && rounds[0] != [[0; 12]], "{body}: {rounds:?}");
    }
}

/// The caller of a function writes its parameters.
const PARAMETER: &str = ".func (.reg .b32 %ret) f(.reg .b32 %n, .reg .b32 %x)\n{\n.reg .pred %p<3>; .reg .b32 %i;\nmov.u32 %i, 0; setp.lt.s32 %p2, %x, 5; @%p2 bra $L; mov.u32 %n, 1;\n\
    $L: add.s32 %i, %i, %n; setp.lt.s32 %p1, %i, 100; @%p1 bra $L;\nmov.u32 %ret, %i;\nret;\n}\n\
    .visible .entry k(.param .u64 out, .param .u32 a)\n{\n.reg .b32 %r<3>; .reg .b64 %d<2>;\nld.param.u64 %d1, [out]; ld.param.u32 %r1, [a];\n\
    call (%r2), f, (%r1, %r1);\nst.global.u32 [%d1], %r2;\nret;\n}\n";

#[test]
fn each_cycle_polls_or_is_bounded() {
    let holds = |what: &str, text: &str, options: &Options| {
        let polled = polled(text, options);
        let report = verify_ptx(&polled);
        assert!(report.holds(), "{what}: {:#?}\n{polled}", report.loops);
    };
    for options in forms() {
        for (what, body) in LOOPS {
            holds(what, &kernel(body), &options);
        }
        // Fuel is not counted in functions.
        if options.limits.fuel.is_none() {
            holds("a parameter is a register", &format!("{HEAD}{PARAMETER}"), &options);
        }
    }
}

#[test]
fn ptxas_takes_what_the_pass_makes_of_them() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    for (what, body) in LOOPS {
        for options in forms() {
            let polled = polled(&kernel(body), &options);
            sass::assemble(&nvcc, &polled, "k").unwrap_or_else(|why| panic!("{what}: {why}\n{polled}"));
        }
    }
}

/// A loop whose step stands behind its test, or in front of it.
fn looped(start: &str, (test, step): (&str, &str), tests_first: bool) -> String {
    let [one, two] = if tests_first { [test, step] } else { [step, test] };
    kernel(&format!(".reg .b64 d, d2, d3, d4; {start}\n$L: add.s32 %r5, %r5, 7; {one} {two} @%p1 bra $L;"))
}

/// A register, others for what lies between, one that holds any number, and one for a bound.
const NAMES: [(u32, [&str; 5]); 2] = [(32, ["%r3", "%r7", "%r8", "%r1", "%r9"]), (64, ["d", "d2", "d3", "%rd1", "d4"])];

/// Loops that halve a number.
fn halvings() -> Vec<String> {
    let mut all = Vec::new();
    for (width, [one, sign, sum, any, next]) in NAMES {
        let starts = [
            format!("mov.b{width} {one}, {any};"),
            format!("mov.s{width} {one}, -1000;"),
            format!("mov.u{width} {one}, 1000;"),
            format!("and.b{width} {one}, {any}, 255;"),
        ];
        let half = format!("shr.u{width} {sign}, {one}, {}; add.s{width} {sum}, {one}, {sign}; shr.s{width}", width - 1);
        let steps = [
            format!("shr.u{width} {one}, {one}, 1;"),
            format!("shr.s{width} {one}, {one}, 1;"),
            format!("shr.b{width} {one}, {one}, 4;"),
            format!("{half} {one}, {sum}, 1;"),
            format!("{half} {next}, {sum}, 1; mov.b{width} {one}, {next};"),
        ];
        for test in ["ne.s", "gt.s", "gt.u", "ge.s", "ge.u"] {
            let bounds: &[u32] = if test == "ne.s" { &[0] } else { &[0, 1, 3] };
            for bound in bounds {
                let test = format!("setp.{test}{width} %p1, {one}, {bound};");
                for (start, step) in starts.iter().flat_map(|start| steps.iter().map(move |step| (start, step))) {
                    all.extend([false, true].map(|tests_first| looped(start, (&test, step), tests_first)));
                }
            }
        }
    }
    all
}

/// Loops that double a number.
fn doublings() -> Vec<String> {
    let mut all = Vec::new();
    for (width, [one, other, _, any, bound]) in NAMES {
        let starts = ["mov.u{w} {one}, 1;", "mov.u{w} {one}, 3;", "and.b{w} {one}, {any}, 7; add.s{w} {one}, {one}, 1;"];
        let bounds = [
            (String::new(), "32"),
            (String::new(), "5000"),
            (format!("mov.u{width} {bound}, WARP_SZ;"), bound),
            (format!("and.b{width} {bound}, {any}, 255;"), bound),
            (format!("and.b{width} {bound}, {any}, 8191;"), bound),
            // What a register of 32 bits holds, as it is or half of it.
            if width == 64 {
                ("mov.u32 %r8, WARP_SZ; cvt.u64.u32 d4, %r8;".to_owned(), bound)
            } else {
                ("mov.u32 %r8, %ntid.x; shr.u32 %r9, %r8, 1;".to_owned(), bound)
            },
        ];
        for (start, (made, bound), by) in
            starts.iter().flat_map(|start| bounds.iter().flat_map(move |bound| [1, 4, 7].map(|by| (start, bound, by))))
        {
            let start = format!("{made} {start}").replace("{w}", &width.to_string()).replace("{one}", one).replace("{any}", any);
            let steps =
                [format!("shl.b{width} {one}, {one}, {by};"), format!("shl.b{width} {other}, {one}, {by}; mov.b{width} {one}, {other};")];
            for (test, step) in ["lt.s", "lt.u", "le.s"].iter().flat_map(|test| steps.iter().map(move |step| (test, step))) {
                let test = format!("setp.{test}{width} %p1, {one}, {bound};");
                all.extend([false, true].map(|tests_first| looped(&start, (&test, step), tests_first)));
            }
        }
    }
    all
}

/// Loops that add a number, or one of a few.
fn sums() -> Vec<String> {
    let mut all = Vec::new();
    for (width, [one, two, by, any, _]) in NAMES {
        let mut add = |start: &str, test: &str, by: &str| {
            let (test, step) = (format!("setp.{test};"), format!("add.s{width} {one}, {one}, {by};"));
            all.extend([false, true].map(|tests_first| looped(start, (&test, &step), tests_first)));
        };
        for (step, bound, order) in [1, 3, 16, 64].iter().flat_map(|step| {
            let tests = [10, 64, 1000].map(|bound| [(step, bound, "lt.u"), (step, bound, "le.s")]);
            tests.into_iter().flatten()
        }) {
            add(&format!("mov.u{width} {one}, 5;"), &format!("{order}{width} %p1, {one}, {bound}"), &step.to_string());
            let order = order.replace('l', "g").replace('u', "s");
            add(&format!("mov.u{width} {one}, 659;"), &format!("{order}{width} %p1, {one}, {}", 10 - bound), &format!("-{step}"));
        }
        for bound in [64, 200] {
            let start = format!("and.b{width} {two}, {any}, 1; add.s{width} {by}, {two}, 64; mov.u{width} {one}, 0;");
            add(&start, &format!("le.s{width} %p1, {one}, {bound}"), by);
        }
    }
    all
}

#[test]
fn what_ends_soon_by_the_pass_does_so_by_the_proof() {
    for (forms, least) in [(halvings(), 350), (doublings(), 350), (sums(), 60)] {
        let mut alone = 0;
        for text in &forms {
            let polled = polled(text, &Options { path: "odd.ptx".to_owned(), ..Options::default() });
            alone += usize::from(!polled.contains("asked, late;"));
            let report = verify_ptx(&polled);
            assert!(report.holds(), "{:#?}\n{polled}", report.loops);
        }
        assert!(alone >= least, "of {} loops only {alone} are left alone", forms.len());
    }
}

/// As compilers write them: each is left alone.
const USUAL: [&str; 8] = [
    // for (s = n / 2; s > 0; s >>= 1)
    "shr.u32 %r3, %r1, 1;\n$L: add.s32 %r5, %r5, %r3; shr.u32 %r7, %r3, 1; setp.gt.u32 %p1, %r3, 1; mov.u32 %r3, %r7; @%p1 bra $L;",
    "mov.u32 %r3, %ntid.x;\n$L: add.s32 %r5, %r5, %r3; setp.gt.u32 %p1, %r3, 3; shr.u32 %r3, %r3, 1; @%p1 bra $L;",
    "mov.u32 %r3, %ntid.x;\n$L: add.s32 %r5, %r5, %r3; shr.u32 %r3, %r3, 1; setp.ne.s32 %p1, %r3, 0; @%p1 bra $L;",
    // The same beside what is doubled.
    "shr.u32 %r3, %r1, 1; mov.u32 %r7, 1; setp.eq.s32 %p1, %r3, 0; @%p1 bra $X;\n\
     $L: setp.ge.u32 %p2, %r2, %r3; @%p2 bra $N; mul.lo.s32 %r8, %r7, %r4; add.s32 %r9, %r8, %r7; xor.b32 %r5, %r5, %r9;\n\
     $N: shl.b32 %r7, %r7, 1; shr.u32 %r3, %r3, 1; setp.ne.s32 %p3, %r3, 0; @%p3 bra $L;\n$X:",
    // The same with a sign.
    "mov.u32 %r3, %r1;\n$L: shr.u32 %r7, %r3, 31; add.s32 %r8, %r3, %r7; shr.s32 %r9, %r8, 1; add.s32 %r5, %r5, %r9; setp.gt.s32 %p1, %r3, 3; mov.u32 %r3, %r9;\n\
     @%p1 bra $L;",
    "mov.u32 %r3, %r1;\n$L: add.s32 %r5, %r5, %r3; shr.s32 %r7, %r3, 1; setp.gt.s32 %p1, %r3, 1; mov.u32 %r3, %r7; @%p1 bra $L;",
    // for (o = 1; o < 32; o <<= 1)
    "mov.u32 %r3, 1;\n$L: add.s32 %r5, %r5, %r3; shl.b32 %r7, %r3, 1; setp.lt.u32 %p1, %r3, 16; mov.u32 %r3, %r7; @%p1 bra $L;",
    "mov.u32 %r3, 1; mov.u32 %r7, WARP_SZ;\n$L: add.s32 %r5, %r5, %r3; shl.b32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r7; @%p1 bra $L;",
];

#[test]
fn usual_loops_that_halve_or_double_have_no_poll() {
    for body in USUAL {
        let polled = polled(&kernel(body), &Options { path: "odd.ptx".to_owned(), ..Options::default() });
        assert!(!polled.contains("asked, late;"), "{polled}");
        assert!(verify_ptx(&polled).holds(), "{polled}");
    }
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
