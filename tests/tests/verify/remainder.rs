//! Loops whose bound is the remainder of a division by a constant, written as compilers write it, and twins whose remainder is none.

use crate::report;

/// `for (int k = 0; k < x % 5; ++k)`, of any x.
const SIGNED: &str = "\tld.global.u32 %r6, [%rd9];
\tmul.hi.s32 %r1, %r6, 1717986919;
\tshr.u32 %r2, %r1, 31;
\tshr.s32 %r3, %r1, 1;
\tadd.s32 %r4, %r3, %r2;
\tmul.lo.s32 %r5, %r4, 5;
\tsub.s32 %r7, %r6, %r5;
\tsetp.lt.s32 %p1, %r7, 1;
\t@%p1 bra $O;
\tneg.s32 %r8, %r7;
$L:
\tst.global.u32 [%rd9], %r8;
\tadd.s32 %r8, %r8, 1;
\tsetp.ne.s32 %p2, %r8, 0;
\t@%p2 bra $L;
$O:
\tret;";

/// What makes the quotient there.
const QUOTIENT: &str = "\tmul.hi.s32 %r1, %r6, 1717986919;
\tshr.u32 %r2, %r1, 31;
\tshr.s32 %r3, %r1, 1;
\tadd.s32 %r4, %r3, %r2;
";

#[test]
fn a_loop_runs_as_often_as_a_remainder_says() {
    let unsigned = SIGNED.replace(QUOTIENT, "\tmul.hi.u32 %r1, %r6, -858993459;\n\tshr.u32 %r4, %r1, 2;\n");
    let sums_first = SIGNED.replace("add.s32 %r4, %r3, %r2", "add.s32 %r4, %r2, %r3");
    let at_once = SIGNED.replace("\tmul.lo.s32 %r5, %r4, 5;\n\tsub.s32 %r7, %r6, %r5;", "\tmad.lo.s32 %r7, %r4, -5, %r6;");
    // By three there is nothing to shift.
    let by_three = SIGNED.replace(QUOTIENT, "\tmul.hi.s32 %r1, %r6, 1431655766;\n\tshr.u32 %r2, %r1, 31;\n\tadd.s32 %r4, %r1, %r2;\n");
    let by_three = by_three.replace("%r4, 5", "%r4, 3");
    let between = SIGNED.replace("\tmul.lo", "\tadd.s32 %r20, %r6, 1;\n\tst.global.u32 [%rd9], %r20;\n\tmul.lo");
    for text in [SIGNED, &unsigned, &sums_first, &at_once, &by_three, &between] {
        let found = report(text);
        assert!(found.holds(), "{text}\n{:#?}", found.loops);
    }
}

#[test]
fn what_only_looks_like_a_remainder_is_none() {
    for (from, to) in [
        // Another factor, another number of bits, another multiple: right for small numbers, at most.
        ("1717986919", "1717986918"),
        ("1717986919", "1717986920"),
        ("%r3, %r1, 1;", "%r3, %r1, 2;"),
        ("%r4, 5;", "%r4, 6;"),
        ("%r4, 5;", "%r4, -5;"),
        // Other bits as its sign, or none.
        ("shr.u32 %r2, %r1, 31", "shr.u32 %r2, %r1, 30"),
        ("shr.u32 %r2, %r1, 31", "shr.s32 %r2, %r1, 31"),
        ("shr.u32 %r2, %r1, 31", "shr.u32 %r2, %r9, 31"),
        ("add.s32 %r4, %r3, %r2", "mov.u32 %r4, %r3"),
        ("add.s32 %r4, %r3, %r2", "add.s32 %r4, %r3, %r3"),
        ("mul.hi.s32", "mul.hi.u32"),
        // Of another number.
        ("sub.s32 %r7, %r6, %r5", "sub.s32 %r7, %r9, %r5"),
        ("sub.s32 %r7, %r6, %r5", "sub.s32 %r7, %r5, %r6"),
        ("\tsub.s32 %r7", "\tadd.s32 %r6, %r6, 7;\n\tsub.s32 %r7"),
        ("\tsub.s32 %r7", "\t@%p9 mov.u32 %r6, %r9;\n\tsub.s32 %r7"),
        // Not always, or of another passage.
        ("\tshr.s32", "\t@%p9 shr.s32"),
        ("\tsub.s32 %r7", "\t@%p9 sub.s32 %r7"),
        ("\tsub.s32 %r7", "\tmov.u32 %r5, %r9;\n\tsub.s32 %r7"),
        ("\tsub.s32 %r7", "\t@%p9 bra $M;\n\tmov.u32 %r6, %r9;\n$M:\n\tsub.s32 %r7"),
        ("\tmul.hi", "\t@%p9 bra $M;\n\tmul.hi"),
    ] {
        let mut text = SIGNED.replace(from, to);
        assert_ne!(text, SIGNED, "{from}");
        if to.ends_with("mul.hi") {
            text = text.replace("\tmul.lo", "$M:\n\tmul.lo");
        }
        assert!(!report(&text).holds(), "{from} -> {to}");
    }
}
