//! Loops that pay for their rounds from an allowance that stops at zero, and their twins that don't.

use crate::{poll, report};

/// `while (unbroken && (left == 0 ? look : nothing, true) && more) pay for a strip`: the look stands at the head, where the allowance that
/// was paid from last may be zero.
const AT_THE_HEAD: &str = "\tmov.u32 %r1, 1024;
$H:
\tsetp.ne.s32 %p1, %r1, 0;
\t@%p1 bra $M;
POLL
\tmov.u32 %r1, 16384;
$M:
\tld.global.u32 %r2, [%rd9];
\tsetp.eq.s32 %p2, %r2, 0;
\t@%p2 bra $O;
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tshl.b32 %r4, %r3, 6;
\tmax.u32 %r5, %r1, %r4;
\tsub.s32 %r1, %r5, %r4;
\tbra $H;
$O:
\tret;";

/// The same by a branch, as compilers write it that do not optimise.
fn by_a_branch(text: &str) -> String {
    text.replace(
        "\tmax.u32 %r5, %r1, %r4;\n\tsub.s32 %r1, %r5, %r4;\n",
        "\tsetp.gt.u32 %p3, %r1, %r4;\n\tmov.u32 %r6, 0;\n\t@!%p3 bra $J;\n\tsub.s32 %r6, %r1, %r4;\n$J:\n\tmov.u32 %r1, %r6;\n",
    )
}

#[test]
fn rounds_that_begin_with_nothing_left_look() {
    let text = AT_THE_HEAD.replace("POLL", &poll(1));
    for text in [text.clone(), by_a_branch(&text)] {
        let held = report(&text);
        assert!(held.holds(), "{text}\n{:#?}", held.loops);
        for (from, to) in [
            // Zero comes round without a look, or by one that reads a cache.
            ("setp.ne.s32 %p1, %r1, 0", "setp.ne.s32 %p1, %r1, 1"),
            ("@%p1 bra $M", "bra $M"),
            ("ld.relaxed.sys.u32", "ld.global.u32"),
            ("@%p30 bra", "@%p31 bra"),
            // A payment of nothing, or of what is not taken off.
            ("max.u32 %r3, %r2, 1", "shr.u32 %r3, %r2, 1"),
            ("shl.b32 %r4, %r3, 6", "shl.b32 %r4, %r3, 30"),
            ("bra $H;\n$O", "mov.u32 %r1, 5;\n\tbra $H;\n$O"),
            ("bra $H;\n$O", "add.s32 %r1, %r1, 64;\n\tbra $H;\n$O"),
            ("bra $H;\n$O", "@%p9 mov.u32 %r1, 64;\n\tbra $H;\n$O"),
        ] {
            let other = text.replace(from, to);
            assert_ne!(other, text, "{from}");
            assert!(!report(&other).holds(), "{from} -> {to}\n{other}");
        }
    }
    let signed = by_a_branch(&text).replace("setp.gt.u32 %p3", "setp.gt.s32 %p3").replace("\tmin.u32 %r3, %r3, 16384;\n", "");
    assert!(!report(&signed).holds(), "less than nothing may be taken off a signed price");
    // What is below zero then is more than any price, and the round after that begins with nothing.
    let other_way = by_a_branch(&text).replace("setp.gt.u32 %p3", "setp.lt.u32 %p3");
    assert!(report(&other_way).holds(), "it becomes shorter");
    let other_way = other_way.replace("mov.u32 %r6, 0;\n\t@!%p3", "mov.u32 %r6, %r1;\n\t@!%p3");
    assert!(!report(&other_way).holds(), "it goes below zero and stays there");
}

/// Two at a time, what is odd first: `(n & 1) == 1 ^ false`.
const BY_TWOS: &str = "$L:
POLL
\tld.global.u32 %r1, [%rd9];
\tmax.u32 %r2, %r1, 2;
\tmin.u32 %r2, %r2, 16384;
\tand.b32 %r3, %r2, 1;
\tsetp.eq.b32 %p1, %r3, 1;
\tmov.pred %p2, 0;
\txor.pred %p3, %p1, %p2;
\tnot.pred %p4, %p3;
\tmov.u32 %r4, %r2;
\t@%p4 bra $E;
\tadd.s32 %r4, %r2, -1;
$E:
\tadd.s32 %r4, %r4, -2;
\tsetp.ne.s32 %p5, %r4, 0;
\t@%p5 bra $E;
\tbra $L;";

#[test]
fn a_predicate_and_one_that_is_known_say_the_same() {
    let text = BY_TWOS.replace("POLL", &poll(1));
    let held = report(&text);
    assert!(held.holds(), "{:#?}", held.loops);
    for (from, to) in [
        ("mov.pred %p2, 0", "mov.pred %p2, 1"),
        ("mov.pred %p2, 0", "mov.pred %p2, %p9"),
        ("not.pred %p4, %p3", "mov.pred %p4, %p3"),
        ("and.b32 %r3, %r2, 1", "and.b32 %r3, %r2, 2"),
        ("add.s32 %r4, %r2, -1", "add.s32 %r4, %r2, -2"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text, "{from}");
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
    // Both turned round is the same again.
    let turned = text.replace("mov.pred %p2, 0", "mov.pred %p2, 1").replace("not.pred %p4, %p3", "mov.pred %p4, %p3");
    assert!(report(&turned).holds());
}

/// A loop whose own bound is all that its proof needs, and which pays from an allowance on the way; then one that goes on with what is left of
/// that, and has nothing else. How the allowance is bounded shows only by a branch.
const ONE_AFTER_THE_OTHER: &str = "\tmov.u32 %r1, 1024;
\tmov.u32 %r2, %tid.x;
$A:
\tsetp.lt.u32 %p1, %r2, 256;
\t@!%p1 bra $B;
\tsetp.gt.u32 %p2, %r1, 66;
\t@!%p2 bra $Q;
\tsub.s32 %r1, %r1, 66;
\tbra $N;
$Q:
POLL1
\tmov.u64 %rd3, %clock64;
\tcvt.u32.u64 %r3, %rd3;
\tsetp.gt.u32 %p3, %r3, 16384;
\t@!%p3 bra $K;
\tmov.u32 %r3, 16384;
$K:
\tmov.u32 %r1, %r3;
$N:
\tadd.s32 %r2, %r2, 1;
\tbra $A;
$B:
\tsetp.gt.u32 %p4, %r1, 64;
\t@!%p4 bra $R;
\tsub.s32 %r1, %r1, 64;
\tbra $S;
$R:
POLL2
\tmov.u32 %r1, 16384;
$S:
\tld.global.u32 %r4, [%rd9];
\tsetp.ne.s32 %p5, %r4, 0;
\t@%p5 bra $B;
\tret;";

#[test]
fn a_loop_goes_on_with_what_an_earlier_one_has_left() {
    let text = ONE_AFTER_THE_OTHER.replace("POLL1", &poll(1)).replace("POLL2", &poll(2));
    let held = report(&text);
    assert!(held.holds(), "{:#?}", held.loops);
    for (from, to) in [
        // What the first loop leaves may be anything.
        ("@!%p3 bra $K", "bra $K"),
        ("setp.gt.u32 %p3", "setp.lt.u32 %p3"),
        ("mov.u32 %r1, %r3", "mov.u32 %r1, %r9"),
        ("mov.u32 %r1, 1024", "ld.global.u32 %r1, [%rd9]"),
        // Or the second gets more than that.
        ("$B:\n", "\tld.global.u32 %r1, [%rd9];\n$B:\n"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text, "{from}");
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
}
