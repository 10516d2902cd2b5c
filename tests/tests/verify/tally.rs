//! Nests that run for nothing until a register has come to a bound, and pay from then on: their loops are counted together (`verify/tally.rs`).

use crate::{poll, report};
use cuinstr::verify::report::Verdict;

/// It runs 1024 units for nothing: both of its loops add to one register and ask whether it is beyond.
const NEST: &str = "\tmov.u32 %r1, 1024;
\tmov.u32 %r2, 0;
$A:
\tadd.s32 %r2, %r2, 1;
\tsetp.gt.u32 %p1, %r2, 1024;
\t@!%p1 bra $B;
\tsetp.gt.u32 %p2, %r1, 1;
\t@%p2 bra $M;
POLL1
\tmov.u32 %r1, 16385;
$M:
\tadd.s32 %r1, %r1, -1;
$B:
\tld.global.u32 %r3, [%rd9];
\tsetp.eq.s32 %p3, %r3, 0;
\t@%p3 bra $A;
\tadd.s32 %r4, %r2, 9;
\tsetp.lt.u32 %p4, %r4, 1025;
\t@%p4 bra $E;
\tsetp.gt.u32 %p5, %r1, 10;
\t@%p5 bra $N;
POLL2
\tmov.u32 %r1, 16394;
$N:
\tadd.s32 %r1, %r1, -10;
$E:
\tadd.s32 %r2, %r2, 10;
\tbra $B;";

#[test]
fn a_nest_that_is_free_at_first_is_counted_as_a_whole() {
    let text = NEST.replace("POLL1", &poll(1)).replace("POLL2", &poll(2));
    let held = report(&text);
    assert!(held.holds(), "{:#?}", held.loops);
    // Not the product of what both may run.
    assert!(held.loops.iter().all(|found| matches!(found.verdict, Verdict::Polled { rounds: 1..=1_000_000 })), "{:#?}", held.loops);
    for (from, to) in [
        // The register does not go on, or begins again.
        ("add.s32 %r2, %r2, 10", "mov.u32 %r5, %r2"),
        ("add.s32 %r2, %r2, 10", "add.s32 %r2, %r2, -10"),
        ("add.s32 %r2, %r2, 10", "mov.u32 %r2, 10"),
        ("$A:\n\tadd.s32 %r2, %r2, 1", "$A:\n\tmov.u32 %r2, 1"),
        ("add.s32 %r2, %r2, 10", "add.s32 %r2, %r2, %r9"),
        // Some way round does not ask, or is free beyond the bound.
        ("@%p4 bra $E", "bra $E"),
        ("setp.lt.u32 %p4, %r4, 1025", "setp.lt.u32 %p4, %r9, 1025"),
        ("setp.lt.u32 %p4, %r4, 1025", "setp.gt.u32 %p4, %r4, 1025"),
        // Nothing is paid, or it is given back.
        ("add.s32 %r1, %r1, -10", "mov.u32 %r5, %r1"),
        ("\tadd.s32 %r2, %r2, 10", "\tadd.s32 %r1, %r1, 10;\n\tadd.s32 %r2, %r2, 10"),
        ("@%p5 bra $N", "bra $N"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text, "{from}");
        assert!(!report(&other).holds(), "{from} -> {to}");
    }
}

/// The same with a third loop, which asks for itself.
fn with_a_third() -> String {
    let third = "$E:\n\tadd.s32 %r2, %r2, 10;\n$C:\n\tadd.s32 %r2, %r2, 2;\n\tsetp.gt.u32 %p6, %r2, 1024;\n\t@!%p6 bra $F;\n\tsetp.gt.u32 %p7, %r1, 2;\n\
        \t@%p7 bra $Q;\nPOLL3\n\tmov.u32 %r1, 16386;\n$Q:\n\tadd.s32 %r1, %r1, -2;\n$F:\n\tld.global.u32 %r6, [%rd9];\n\
        \tsetp.eq.s32 %p8, %r6, 0;\n\t@%p8 bra $C;\n";
    let text = NEST.replace("$E:\n\tadd.s32 %r2, %r2, 10;\n", third);
    (1..=3).fold(text, |text, number| text.replace(&format!("POLL{number}"), &poll(number)))
}

#[test]
fn as_many_loops_as_ask_are_counted() {
    let text = with_a_third();
    let held = report(&text);
    assert!(
        held.holds() && held.loops.iter().filter(|found| matches!(found.verdict, Verdict::Polled { .. })).count() == 3,
        "{:#?}",
        held.loops
    );
    for (from, to, why) in [
        ("setp.gt.u32 %p6, %r2, 1024", "setp.gt.u32 %p6, %r9, 1024", "the third asks for another register"),
        ("\t@!%p6 bra $F", "\tbra $F", "the third never pays"),
        ("add.s32 %r1, %r1, -2", "add.s32 %r1, %r1, 0", "the third pays nothing"),
        ("$C:\n\tadd.s32 %r2, %r2, 2", "$C:\n\tadd.s32 %r2, %r2, 0", "the third stands still"),
        ("@%p7 bra $Q", "bra $Q", "what the third pays with never ends"),
    ] {
        let other = text.replace(from, to);
        assert_ne!(other, text, "{from}");
        assert!(!report(&other).holds(), "{why}: {from} -> {to}");
    }
}

/// A loop inside that neither adds nor asks has rounds of its own in each of theirs, though it ends by itself.
#[test]
fn a_loop_inside_that_does_not_ask_is_not_counted_with_them() {
    let text = NEST.replace("POLL1", &poll(1)).replace("POLL2", &poll(2));
    let inside = |rounds: u32| {
        let counted = format!("\tmov.u32 %r7, 0;\n$I:\n\tadd.s32 %r7, %r7, 1;\n\tsetp.lt.u32 %p9, %r7, {rounds};\n\t@%p9 bra $I;\n");
        text.replace("$B:\n", &format!("$B:\n{counted}"))
    };
    assert!(!report(&inside(60_000)).holds(), "about 17,000 times 60,000 rounds are too many");
    // However few they are, they are not as few as the nest's own.
    let few = report(&inside(1000));
    let most = few.loops.iter().filter_map(|found| match found.verdict {
        Verdict::Polled { rounds } => Some(rounds),
        _ => None,
    });
    assert!(!few.holds() || most.max() > Some(1_000_000), "{:#?}", few.loops);
}

/// What is moved so far that it comes by everything that is paid for is never beyond the bound when it is asked.
#[test]
fn a_register_that_goes_all_the_way_round_pays_for_nothing() {
    let text = NEST.replace("POLL1", &poll(1)).replace("POLL2", &poll(2));
    // Both loops move it by 2^30, and both are free up to 3 * 2^30: it is 2^30, 2^31, 3 * 2^30, 0, and so on.
    let round = text
        .replace("add.s32 %r2, %r2, 10", "add.s32 %r2, %r2, 1073741824")
        .replace("add.s32 %r4, %r2, 9", "add.s32 %r4, %r2, 1073741823")
        .replace("$A:\n\tadd.s32 %r2, %r2, 1;", "$A:\n\tadd.s32 %r2, %r2, 1073741824;")
        .replace("setp.gt.u32 %p1, %r2, 1024", "setp.gt.u32 %p1, %r2, 3221225472")
        .replace("setp.lt.u32 %p4, %r4, 1025", "setp.lt.u32 %p4, %r4, 3221225473");
    assert!(!report(&round).holds());
    // Back by as much as it went, spelled as a way forward.
    let back = text.replace("add.s32 %r2, %r2, 10", "add.s32 %r2, %r2, 4294967295");
    assert!(!report(&back).holds());
}
