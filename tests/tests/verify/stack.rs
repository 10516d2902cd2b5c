//! What a compiler that does not optimise makes of a counter: a word of the thread's own stack.

use crate::{poll, report};

/// Forty rounds at most between two polls, counted in a word of the stack.
const COUNTED: &str = "\t.local .align 8 .b8 depot[32];
\tmov.u64 %rd20, depot;
\tcvta.local.u64 %rd21, %rd20;
\tmov.u32 %r1, 40;
\tst.u32 [%rd21+8], %r1;
$L:
\tld.u32 %r2, [%rd21+8];
\tsetp.gt.u32 %p1, %r2, 1;
\t@!%p1 bra $Q;
\tld.u32 %r3, [%rd21+8];
\tsub.s32 %r4, %r3, 1;
\tst.u32 [%rd21+8], %r4;
BODY
\tbra $L;
$Q:
POLL
\tmov.u32 %r5, 40;
\tst.u32 [%rd21+8], %r5;
\tbra $L;";

fn counted(body: &str) -> String {
    COUNTED.replace("POLL", &poll(1)).replace("BODY", body)
}

#[test]
fn a_word_of_the_stack_counts_like_a_register() {
    let report = report(&counted(""));
    assert!(report.holds(), "{:#?}", report.loops);
    // Other words, and other memory, are none of its business.
    for body in [
        "\tst.u32 [%rd21+12], %r9;",
        "\tst.u32 [%rd21+4], %r9;",
        "\tst.u64 [%rd21+16], %rd9;",
        "\tst.v2.u32 [%rd21+16], {%r9, %r10};",
        "\tst.u32 [%rd9], %r9;",
        "\tst.local.u32 [%rd20+12], %r9;",
        // By addresses at fixed distances, which may be copied, and kept in words of their own.
        "\tadd.u64 %rd22, %rd21, 8;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tst.u32 [%rd22], 40;\n\tatom.add.u32 %r9, [%rd9], 1;",
        "\tmov.b64 %rd22, %rd21;\n\tst.u32 [%rd22+4], 40;\n\tadd.u64 %rd23, %rd22, 16;\n\tst.u64 [%rd23+-16], 40;",
        "\tadd.u64 %rd22, %rd21, 12;\n\tst.u64 [%rd21+16], %rd22;\n\tld.u64 %rd23, [%rd21+16];\n\tst.u32 [%rd23], 40;",
        "\tadd.u64 %rd22, %rd21, 24;\n\tst.u64 [%rd21+16], %rd22;\n\tst.u64 [%rd21+24], %rd22;\n\tld.u64 %rd23, [%rd21+16];\n\tld.u64 %rd24, [%rd23];\n\tst.u64 [%rd24+-24], 1;",
    ] {
        let report = crate::report(&counted(body));
        assert!(report.holds(), "{body}\n{:#?}", report.loops);
    }
}

#[test]
fn a_word_that_something_else_may_write_does_not_count() {
    for body in [
        // Written over, in whole or in part.
        "\tst.u32 [%rd21+8], 40;",
        "\tst.local.u32 [%rd20+8], 40;",
        "\tst.u8 [%rd21+9], %rs1;",
        "\tst.u64 [%rd21+8], %rd9;",
        "\tst.u64 [%rd21+4], %rd9;",
        "\tst.v4.u32 [%rd21], {%r9, %r9, %r9, %r9};",
        "\tatom.add.u32 %r9, [%rd21+8], 1;",
        "\tred.add.u32 [%rd21+8], 1;",
        // By an address that was computed, kept, or handed on.
        "\tadd.s64 %rd22, %rd21, 8;\n\tst.u32 [%rd22], 40;",
        "\tmov.u64 %rd22, %rd21;\n\tst.u32 [%rd22+8], 40;",
        "\tmov.u64 %rd22, depot;\n\tadd.s64 %rd22, %rd22, 8;\n\tst.local.u32 [%rd22], 40;",
        "\tst.u64 [%rd21+16], %rd21;\n\tld.u64 %rd22, [%rd21+16];\n\tst.u32 [%rd22+8], 40;",
        "\tst.local.u32 [depot+8], 40;",
        "\tadd.s64 %rd22, %rd21, %rd9;\n\tst.u32 [%rd22], 40;",
        "\tadd.s64 %rd22, %rd21, 4;\n\tadd.s64 %rd22, %rd22, 4;\n\tst.u32 [%rd22], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\t@%p5 add.s64 %rd22, %rd21, 8;\n\tst.u32 [%rd22], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tmov.u64 %rd22, %rd9;\n\tst.u32 [%rd22], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tld.global.u64 %rd22, [%rd9];\n\tst.u32 [%rd22], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tst.global.u64 [%rd9], %rd22;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tst.param.b64 [param0], %rd22;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tselp.b64 %rd23, %rd22, %rd9, %p5;\n\tst.u32 [%rd23], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tsub.s64 %rd23, %rd22, 4;\n\tst.u32 [%rd23], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tst.u32 [%rd22+-4], 40;",
        "\tadd.s64 %rd22, %rd21, 12;\n\tcvt.u32.u64 %r9, %rd22;",
        // By one that is kept in a word, of which other words may be read, too, or that something else is put into.
        "\tadd.u64 %rd22, %rd21, 8;\n\tst.u64 [%rd21+16], %rd22;\n\tld.u64 %rd23, [%rd21+16];\n\tst.u32 [%rd23], 40;",
        "\tadd.u64 %rd22, %rd21, 8;\n\tst.u64 [%rd21+16], %rd22;\n\tld.volatile.u64 %rd23, [%rd21+16];\n\tst.u32 [%rd23], 40;",
        "\tadd.u64 %rd22, %rd21, 8;\n\tst.u64 [%rd21+16], %rd22;\n\t@%p5 ld.u64 %rd23, [%rd21+16];\n\tst.u32 [%rd23], 40;",
        "\tadd.u64 %rd22, %rd21, 8;\n\tst.u64 [%rd21+16], %rd22;\n\tld.v2.u32 {%r9, %r10}, [%rd21+16];",
        "\tadd.u64 %rd22, %rd21, 8;\n\tst.u64 [%rd21+16], %rd22;\n\tld.u32 %r9, [%rd21+20];",
        "\tadd.u64 %rd22, %rd21, 8;\n\t@%p5 st.u64 [%rd21+16], %rd22;\n\tld.u64 %rd23, [%rd21+16];\n\tst.u32 [%rd23], 40;",
        "\tadd.u64 %rd22, %rd21, 24;\n\tst.u64 [%rd21+16], %rd22;\n\tst.u64 [%rd21+16], %rd9;",
        "\tadd.u64 %rd22, %rd21, 24;\n\tst.u64 [%rd21+16], %rd22;\n\tst.u32 [%rd21+20], %r9;",
        "\tadd.u64 %rd22, %rd21, 24;\n\tst.u64 [%rd21+16], %rd22;\n\tst.u64 [%rd21+16], %rd21;",
        "\tadd.u64 %rd22, %rd21, 24;\n\tst.v2.u64 [%rd21+16], {%rd22, %rd9};",
        "\tnew.unknown.op [%rd21+8], %r9;",
        "\tcp.async.bulk.shared::cta [%rd21+8], [%rd9], 4;",
        // The register stands for another address by then.
        "\tadd.s64 %rd21, %rd21, 4;",
        "\tmov.u64 %rd21, %rd9;",
        "\t@%p5 mov.u64 %rd21, depot;",
    ] {
        let report = report(&counted(body));
        assert!(!report.holds(), "{body}\n{:#?}", report.loops);
    }
    // Only of the thread's own stack is it known that nobody else writes there.
    let shared = counted("").replace(".local .align", ".shared .align").replace("cvta.local", "cvta.shared");
    assert!(!report(&shared).holds());
    // What was never written may be anything.
    assert!(!report(&counted("\tld.u32 %r6, [%rd21+16];\n\tst.u32 [%rd21+8], %r6;")).holds());
}

/// A loop whose round asks a word of the stack at 0 or 1 whether to go on: `more` is 1 in the way that is paid for.
fn by_flag(then: &str) -> String {
    format!(
        "\tmov.u32 %r1, 100;\n$L:\n\tld.global.u32 %r9, [%rd9];\n\tsetp.ne.s32 %p5, %r9, 0;\n\tmov.u32 %r2, 0;\n\tmov.u16 %rs1, 0;\n\t@%p5 bra $J;\n\
         \tmov.u32 %r2, {then};\n\tmov.u16 %rs1, 1;\n$J:\n\tsetp.ne.s16 %p6, %rs1, 0;\n\tselp.u16 %rs2, 1, 0, %p6;\n\tand.b16 %rs3, %rs2, 255;\n\
         \tsetp.eq.s16 %p7, %rs3, 0;\n\t@%p7 bra $O;\n\tsub.s32 %r1, %r1, %r2;\n\tsetp.gt.s32 %p8, %r1, 0;\n\t@%p8 bra $L;\n$O:\n\tret;"
    )
}

#[test]
fn a_value_that_goes_with_a_flag_is_told_apart_by_it() {
    let held = report(&by_flag("4"));
    assert!(held.holds(), "{:#?}", held.loops);
    // Nothing is taken off where the flag says to go on.
    assert!(!report(&by_flag("0")).holds());
    assert!(!report(&by_flag("4").replace("setp.eq.s16 %p7, %rs3, 0", "setp.ne.s16 %p7, %rs3, 0")).holds());
    assert!(!report(&by_flag("4").replace("selp.u16 %rs2, 1, 0", "selp.u16 %rs2, 1, 2")).holds());
    assert!(!report(&by_flag("4").replace("setp.ne.s16 %p6, %rs1, 0", "setp.ne.s16 %p6, %rs1, 7")).holds());
    assert!(!report(&by_flag("4").replace("and.b16 %rs3, %rs2, 255", "xor.b16 %rs3, %rs2, 1")).holds());
}

/// A strip up to an end that was added up in 64 bits.
const WIDE: &str = "$L:
POLL
\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tcvt.s64.s32 %rd1, %r1;
\tcvt.u64.u32 %rd2, %r3;
\tmul.lo.s64 %rd3, %rd2, 1;
\tadd.s64 %rd4, %rd1, %rd3;
\tcvt.u32.u64 %r4, %rd4;
\tmov.u32 %r5, %r1;
$I:
\tmov.u32 %r6, %r5;
\tmov.u32 %r7, %r4;
\tsetp.ne.s32 %p2, %r6, %r7;
\t@!%p2 bra $L;
\tadd.s32 %r8, %r6, 1;
\tmov.u32 %r5, %r8;
\tbra $I;";

#[test]
fn the_lower_half_of_a_sum_is_the_sum_of_the_lower_halves() {
    let wide = WIDE.replace("POLL", &poll(1));
    let held = report(&wide);
    assert!(held.holds(), "{:#?}", held.loops);
    for (from, to) in [
        ("mul.lo.s64 %rd3, %rd2, 1", "mul.lo.s64 %rd3, %rd2, -1"),
        ("mul.lo.s64 %rd3, %rd2, 1", "mul.hi.s64 %rd3, %rd2, 1"),
        ("add.s64 %rd4, %rd1, %rd3", "sub.s64 %rd4, %rd1, %rd3"),
        ("add.s64 %rd4, %rd1, %rd3", "add.s64 %rd4, %rd1, %rd9"),
        ("cvt.u32.u64 %r4, %rd4", "cvt.u16.u64 %rs4, %rd4;\n\tcvt.u32.u16 %r4, %rs4"),
        ("add.s32 %r8, %r6, 1", "add.s32 %r8, %r6, 2"),
        ("mov.u32 %r5, %r1", "mov.u32 %r5, %r2"),
        ("mov.u32 %r5, %r8", "mov.u32 %r5, %r8;\n\tadd.s32 %r4, %r4, 1"),
        ("mov.u32 %r7, %r4", "ld.global.u32 %r7, [%rd9]"),
        ("min.u32 %r3, %r3, 16384", "max.u32 %r3, %r3, 16384"),
    ] {
        let text = wide.replace(from, to);
        assert_ne!(text, wide, "{from}");
        assert!(!report(&text).holds(), "{from} -> {to}");
    }
}
