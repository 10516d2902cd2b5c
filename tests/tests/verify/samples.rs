//! PTX that compilers made, kept as text: `tests/data/ptx`. How each was made stands in the source beside it, or in its first lines.

use cuinstr::verify::report::{Bound, Loop, Verdict};
use cuinstr::verify::verify_ptx;

const STRIPS: &str = include_str!("../../data/ptx/strips.ptx");

fn failing(text: &str) -> Vec<Loop> {
    let report = verify_ptx(text);
    assert_eq!(report.faults, []);
    report.loops.into_iter().filter(|found| !found.verdict.holds()).collect()
}

#[test]
fn loops_in_strips_are_proved_however_the_compiler_rewrote_their_exit_tests() {
    assert_eq!(failing(STRIPS), []);
    let report = verify_ptx(STRIPS);
    assert!(report.holds());
    assert_eq!(report.kernels.len(), 13);
    // The loops around are polled, the strips end by themselves: their rounds together are what the allowance pays for.
    let polled = report.loops.iter().filter(|found| matches!(found.verdict, Verdict::Polled { .. })).count();
    assert!(polled >= 13, "{polled}");
    for found in &report.loops {
        let (Verdict::Polled { rounds } | Verdict::Bounded { by: Bound::Rounds(rounds) }) = &found.verdict else {
            panic!("{found:#?}");
        };
        assert!(*rounds <= 1 << 20, "{found:#?}");
    }
}

#[test]
fn a_strip_that_is_not_what_it_seems_is_not_proved() {
    for (from, to, why) in [
        ("ld.relaxed.sys.u32", "ld.global.u32", "the flag is not read past the caches"),
        ("max.u32", "min.u32", "the allowance does not stop at 0"),
        (", -4;", ", -3;", "a counter steps over its end"),
        (", 4;\n\tsetp.ne.s32", ", 3;\n\tsetp.ne.s32", "a counter steps over its end"),
        ("min.u32", "max.u32", "a strip is as long as the distance"),
    ] {
        let text = STRIPS.replace(from, to);
        assert_ne!(text, STRIPS, "{from}");
        let found = failing(&text);
        assert!(!found.is_empty(), "{why}: {from} -> {to}");
    }
    // Each look that is lost is noticed in its own kernel.
    for (at, _) in STRIPS.match_indices("ld.relaxed.sys.u32") {
        let mut text = STRIPS.to_owned();
        text.replace_range(at..at + "ld.relaxed.sys.u32".len(), "ld.global.u32");
        let kernel = STRIPS[..at].rfind(".entry ").and_then(|entry| STRIPS[entry + 7..].split('(').next()).unwrap_or_default();
        let found = failing(&text);
        assert!(!found.is_empty() && found.iter().all(|found| found.function == kernel), "{kernel}: {found:#?}");
    }
}

#[test]
fn what_other_compilers_made_is_read_the_same_way() {
    let clang = verify_ptx(include_str!("../../data/ptx/clang.ptx"));
    let of = |kernel: &str| clang.loops.iter().find(|found| found.function == kernel).expect("the kernel has a loop");
    assert_eq!(clang.faults, []);
    assert_eq!(of("polled").verdict, Verdict::Polled { rounds: 0 });
    let endless = of("endless");
    assert!(matches!(endless.verdict, Verdict::NotPolled { .. }));
    assert_eq!(endless.place.as_ref().map(|place| (place.file.as_str(), place.line)), Some(("clang.cu", 24)));

    let triton = verify_ptx(include_str!("../../data/ptx/triton.ptx"));
    assert_eq!(triton.faults, []);
    assert_eq!(triton.loops.len(), 1);
    assert!(matches!(triton.loops[0].verdict, Verdict::NotPolled { .. }));
    let place = triton.loops[0].place.as_ref().expect("the PTX has lines");
    assert_eq!((place.file.as_str(), place.line), ("made_by_triton.py", 13));
}
