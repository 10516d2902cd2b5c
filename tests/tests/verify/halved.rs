//! Loops that end because a register becomes shorter in each round, and their twins that don't.

use crate::report;

/// `for (; x > 0; x >>= 1)` of any number, as compilers write it: what is shifted is asked before.
const HALVED: &str = "\tld.global.u32 %r1, [%rd9];
\tsetp.eq.s32 %p1, %r1, 0;
\t@%p1 bra $O;
$L:
\tand.b32 %r2, %r1, 1;
\tst.global.u32 [%rd9], %r2;
\tshr.u32 %r3, %r1, 1;
\tsetp.gt.u32 %p2, %r1, 1;
\tmov.u32 %r1, %r3;
\t@%p2 bra $L;
$O:
\tret;";

#[test]
fn a_register_of_32_bits_is_halved_32_times() {
    for (from, to) in [
        ("", ""),
        ("shr.u32 %r3, %r1, 1", "shr.u32 %r3, %r1, 5"),
        ("shr.u32 %r3, %r1, 1", "div.u32 %r3, %r1, 3"),
        ("setp.gt.u32 %p2, %r1, 1", "setp.gt.u32 %p2, %r3, 0"),
        // Longer each time in one way of two, but only where it is short.
        ("mov.u32 %r1, %r3", "min.u32 %r1, %r3, 1000"),
    ] {
        let text = HALVED.replace(from, to);
        let held = report(&text);
        assert!(held.holds(), "{from} -> {to}: {:#?}", held.loops);
    }
    for (from, to) in [
        // Zero comes round.
        ("setp.gt.u32 %p2, %r1, 1", "setp.ge.u32 %p2, %r1, 0"),
        ("setp.gt.u32 %p2, %r1, 1", "setp.ne.s32 %p2, %r1, 1"),
        // It does not become shorter, or not always.
        ("shr.u32 %r3, %r1, 1", "shr.u32 %r3, %r1, 0"),
        ("shr.u32 %r3, %r1, 1", "shr.s32 %r3, %r1, 1"),
        ("shr.u32 %r3, %r1, 1", "div.u32 %r3, %r1, %r9"),
        ("shr.u32 %r3, %r1, 1", "shr.u32 %r3, %r1, 1;\n\tor.b32 %r3, %r3, 4"),
        ("shr.u32 %r3, %r1, 1", "shr.u32 %r3, %r1, 1;\n\tmax.u32 %r3, %r3, 2"),
        ("mov.u32 %r1, %r3", "@%p9 mov.u32 %r1, %r3"),
        ("mov.u32 %r1, %r3", "mov.u32 %r1, %r3;\n\t@%p9 add.s32 %r1, %r3, %r3"),
        ("mov.u32 %r1, %r3", "mov.u32 %r1, %r9"),
    ] {
        let text = HALVED.replace(from, to);
        assert_ne!(text, HALVED, "{from}");
        assert!(!report(&text).holds(), "{from} -> {to}");
    }
}
