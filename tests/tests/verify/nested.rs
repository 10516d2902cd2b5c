//! Loops within loops that one allowance pays for, in the ways that compilers which do not optimise write them.

use crate::{poll, report, verdicts};
use cuinstr::verify::report::{Bound, Verdict};

/// Strips within strips, each of 16384 rounds at most: multiplied they were 2^56, but one allowance pays for all of them.
const STRIPS: &str = "\tmov.u32 %r1, 1024;
\tld.global.u32 %r7, [%rd9];
\tand.b32 %r8, %r7, 15;
$A:
\tsetp.ne.s32 %p1, %r1, 0;
\t@%p1 bra $M;
POLL1
\tmov.u32 %r1, 16384;
$M:
\tld.global.u32 %r2, [%rd9];
\tsetp.eq.s32 %p2, %r2, 0;
\t@%p2 bra $O;
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tshl.b32 %r4, %r3, %r8;
\tmax.u32 %r5, %r1, %r4;
\tsub.s32 %r1, %r5, %r4;
$C:
\tmov.u32 %r17, 0;
$B:
\tsetp.ne.s32 %p4, %r1, 0;
\t@%p4 bra $N;
POLL2
\tmov.u32 %r1, 16384;
$N:
\tld.global.u32 %r12, [%rd9];
\tsetp.eq.s32 %p5, %r12, 0;
\t@%p5 bra $D;
\tmax.u32 %r13, %r12, 1;
\tmin.u32 %r13, %r13, 16384;
\tshl.b32 %r14, %r13, %r8;
\tmax.u32 %r15, %r1, %r14;
\tsub.s32 %r1, %r15, %r14;
$E:
\tadd.s32 %r13, %r13, -1;
\tsetp.ne.s32 %p6, %r13, 0;
\t@%p6 bra $E;
\tbra $B;
$D:
\tadd.s32 %r3, %r3, -1;
\tsetp.ne.s32 %p7, %r3, 0;
\t@%p7 bra $C;
\tbra $A;
$O:
\tret;";

#[test]
fn strips_within_strips_are_paid_for_together() {
    let text = STRIPS.replace("POLL1", &poll(1)).replace("POLL2", &poll(2));
    let held = report(&text);
    assert!(held.holds(), "{:#?}", held.loops);
    for (from, to) in [
        // Nobody pays for the inner rounds, or with what is not known.
        ("sub.s32 %r1, %r15, %r14", "mov.u32 %r16, %r15"),
        ("and.b32 %r8, %r7, 15", "mov.u32 %r8, %r7"),
        ("and.b32 %r8, %r7, 15", "and.b32 %r8, %r7, 31"),
        ("shl.b32 %r14, %r13, %r8", "mov.u32 %r14, %r8"),
        // What was paid is given back.
        ("\tbra $B;\n$D", "\tmov.u32 %r1, 16384;\n\tbra $B;\n$D"),
        ("\t@%p7 bra $C", "\tadd.s32 %r1, %r1, 1;\n\t@%p7 bra $C"),
        // The inner look is none.
        ("@%p4 bra $N", "bra $N"),
        ("min.u32 %r13, %r13, 16384", "mov.u32 %r13, %r12"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text, "{from}");
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
}

#[test]
fn a_counter_that_doubles_ends() {
    let text = |step: &str, start: &str| {
        format!(
            "\tmov.u32 %r1, {start};\n$L:\n\tmov.u32 %r2, %r1;\n\tsetp.lt.s32 %p1, %r2, 32;\n\t@!%p1 bra $O;\n\t{step};\n\tmov.u32 %r1, %r3;\n\
             \tbra $L;\n$O:\n\tret;"
        )
    };
    for step in ["mul.lo.s32 %r3, %r2, 2", "shl.b32 %r3, %r2, 1", "mul.lo.s32 %r3, %r2, 3"] {
        let found = verdicts(&text(step, "1"));
        assert!(matches!(found[..], [Verdict::Bounded { by: Bound::Rounds(1..=64) }]), "{step}: {found:?}");
        // Twice nothing is nothing.
        assert!(!verdicts(&text(step, "0"))[0].holds(), "{step}");
        assert!(!verdicts(&text(step, "%r9"))[0].holds(), "{step}");
    }
    assert!(!verdicts(&text("mul.lo.s32 %r3, %r2, 1", "1"))[0].holds());
    assert!(!verdicts(&text("mul.lo.s32 %r3, %r2, %r9", "1"))[0].holds());
}

/// A strip ends where a copy of its counter meets its end, behind a loop inside.
const COPIED: &str = "$A:
POLL
\tld.global.u32 %r1, [%rd9];
\tld.global.u32 %r2, [%rd9];
\tmax.u32 %r3, %r2, 1;
\tmin.u32 %r3, %r3, 16384;
\tadd.s32 %r4, %r1, %r3;
\tmov.u32 %r5, %r1;
$B:
\tmov.u32 %r6, %r5;
\tsetp.ne.s32 %p1, %r6, %r4;
\t@!%p1 bra $A;
\tmov.u32 %r8, 10;
$C:
\tmov.u32 %r9, %r8;
\tadd.s32 %r8, %r9, -1;
\tsetp.ne.s32 %p2, %r8, 0;
\t@%p2 bra $C;
\tadd.s32 %r7, %r6, 1;
\tmov.u32 %r5, %r7;
\tbra $B;";

#[test]
fn what_two_registers_hold_stays_the_same_around_a_loop_inside() {
    let text = COPIED.replace("POLL", &poll(1));
    let held = report(&text);
    assert!(held.holds(), "{:#?}", held.loops);
    for (from, to) in [
        ("add.s32 %r7, %r6, 1", "add.s32 %r7, %r6, 2"),
        ("add.s32 %r7, %r6, 1", "mov.u32 %r7, %r6"),
        ("\tadd.s32 %r7, %r6, 1", "\tmov.u32 %r6, %r10;\n\tadd.s32 %r7, %r6, 1"),
        ("\tsetp.ne.s32 %p2, %r8, 0", "\tadd.s32 %r6, %r6, 1;\n\tsetp.ne.s32 %p2, %r8, 0"),
        ("\tsetp.ne.s32 %p2, %r8, 0", "\tmov.u32 %r5, %r8;\n\tmov.u32 %r6, %r5;\n\tsetp.ne.s32 %p2, %r8, 0"),
        ("\tsetp.ne.s32 %p2, %r8, 0", "\tmov.u32 %r4, %r8;\n\tsetp.ne.s32 %p2, %r8, 0"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text, "{from}");
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
}

/// A loop that is entered in the middle, each way with a count of its own.
const ENTERED: &str = "\tsetp.eq.s32 %p1, %r9, 0;
\t@%p1 bra $I;
\tmov.u32 %r1, 40;
\tbra $L;
$I:
\tmov.u32 %r2, 40;
\tbra $M;
$L:
\tmov.u32 %r2, %r1;
$M:
\tadd.s32 %r3, %r2, -1;
\tmov.u32 %r1, %r3;
\tsetp.gt.s32 %p2, %r3, 0;
\t@%p2 bra $L;
\tret;";

#[test]
fn each_way_into_a_loop_has_its_own_start() {
    assert!(report(ENTERED).holds(), "{:#?}", report(ENTERED).loops);
    for (from, to) in [("mov.u32 %r1, 40", "mov.u32 %r4, 40"), ("mov.u32 %r2, 40", "mov.u32 %r4, 40"), ("%r2, -1", "%r2, 0")] {
        let other = ENTERED.replacen(from, to, 1);
        assert_ne!(other, ENTERED);
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
}

/// A counter that is made 64 bits wide for an address, and taken back from there.
const WIDENED: &str = "\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, %ntid.x;
\tmov.u64 %rd1, 0;
$L:
\tcvt.s64.s32 %rd1, %r1;
\tshl.b64 %rd2, %rd1, 2;
\tadd.s64 %rd3, %rd9, %rd2;
\tld.global.u32 %r9, [%rd3];
\tsetp.eq.s32 %p3, %r9, 0;
\t@%p3 bra $N;
\tst.global.u32 [%rd3], %r8;
$N:
\tcvt.u32.u64 %r3, %rd1;
\tadd.s32 %r1, %r3, %r2;
\tsetp.lt.s32 %p1, %r1, 256;
\t@%p1 bra $L;
\tret;";

#[test]
fn the_lower_half_of_a_counter_that_was_widened_is_the_counter() {
    assert!(report(WIDENED).holds(), "{:#?}", report(WIDENED).loops);
    for (from, to, why) in [
        ("$L:\n\tcvt.s64.s32 %rd1, %r1;", "\tcvt.s64.s32 %rd1, %r1;\n$L:", "it begins anew in each round"),
        ("\tcvt.s64.s32 %rd1, %r1;", "\t@%p4 cvt.s64.s32 %rd1, %r1;", "it may begin anew"),
        ("cvt.s64.s32 %rd1, %r1", "cvt.s64.s32 %rd1, %r4", "another register's"),
        ("cvt.u32.u64 %r3, %rd1", "cvt.u32.u64 %r3, %rd2", "four times as much may be zero"),
        ("cvt.u32.u64 %r3, %rd1", "add.s64 %rd1, %rd1, -1024;\n\tcvt.u32.u64 %r3, %rd1", "it goes back"),
        ("cvt.u32.u64 %r3, %rd1", "shr.u64 %rd1, %rd1, 32;\n\tcvt.u32.u64 %r3, %rd1", "the upper half"),
        ("mov.u32 %r2, %ntid.x", "mov.u32 %r2, %ctaid.x", "it may stand still"),
    ] {
        let other = WIDENED.replace(from, to);
        assert_ne!(other, WIDENED, "{from}");
        assert!(!report(&other).holds(), "{why}: {from} -> {to}");
    }
}
