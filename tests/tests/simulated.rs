//! Kernels on the interpreter: plain PTX and what the PTX pass makes of it compute the same, and a planted fault is noticed.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::options::{Limits, Options, PollGap, Polls};
use cuinstr::rewrite_ptx;
use cuinstr_differential::injection::base::{self, stop};
use cuinstr_differential::kernels;
use cuinstr_differential::polled::compare;
use cuinstr_differential::simulated::{Left, Recorded, recorded, run};
use cuinstr_harness::fixtures::{Fixture, all, workspace};
use cuinstr_harness::header::{Header, Place};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_simulate::{Outcome, Program};
use cuinstr_trial::or_ignore;
use std::ffi::OsStr;

/// Instructions that a launch may run.
const STEPS: u64 = 8_000_000;

/// Each kernel of `tests/data/ptx/plain` with the header of the kernel it was compiled from.
fn plain() -> Vec<(Fixture, String)> {
    let folder = workspace().join("tests/data/ptx/plain");
    let mut found = Vec::new();
    for fixture in all().expect("the kernels are sound") {
        if let Ok(text) = std::fs::read_to_string(folder.join(format!("{}.ptx", fixture.name))) {
            found.push((fixture, text));
        }
    }
    assert_eq!(found.len(), std::fs::read_dir(folder).expect("a folder").count(), "each file has its kernel");
    found
}

fn polled(text: &str, polls: Polls) -> String {
    let options = Options { path: "plain.ptx".to_owned(), polls, ..Options::default() };
    let rewrite = rewrite_ptx(text.as_bytes(), &options);
    String::from_utf8(rewrite.output.expect("it is PTX")).expect("it is text")
}

fn left(fixture: &Fixture, text: &str) -> Left {
    run(text, &fixture.header, 1, STEPS).unwrap_or_else(|why| panic!("{}: {why}", fixture.name))
}

#[test]
fn what_the_ptx_pass_makes_of_a_kernel_computes_the_same() {
    for (fixture, text) in plain() {
        let before = left(&fixture, &text);
        assert_eq!(before.outcome, Some(Outcome::Completed), "{}", fixture.name);
        for polls in [Polls::default(), Polls::Each] {
            let after = left(&fixture, &polled(&text, polls));
            assert_eq!((&after.outcome, after.buffers == before.buffers), (&before.outcome, true), "{}, {polls:?}", fixture.name);
        }
    }
}

#[test]
fn threads_of_a_polled_kernel_leave_soon_after_the_flag_is_written() {
    let mut stopped = 0;
    for (fixture, text) in plain() {
        let text = polled(&text, Polls::Each);
        let program = Program::read(&text).expect("it is PTX");
        let kernel = program.kernels().next().expect("a kernel").to_owned();
        let Ok(mut machine) = base::launch(&program, &text, &kernel, 4) else { continue };
        if machine.run(300, &mut |_| ()).is_some() {
            continue;
        }
        let mut unstopped = machine.clone();
        stop(&mut machine);
        let outcome = machine.run(6_000, &mut |_| ());
        assert_eq!(outcome, Some(Outcome::Completed), "{}", fixture.name);
        stopped += u32::from(unstopped.run(6_000, &mut |_| ()).is_none());
    }
    assert!(stopped > 3, "{stopped}");
}

/// Nanoseconds between polls: the shortest, the default, the longest.
const GAPS: [u64; 3] = [2_000, 20_000, 10_000_000];

fn limited(text: &str, limits: Limits, gap: u64, polls: Polls) -> Option<String> {
    let poll_gap = PollGap::from_nanoseconds(gap).expect("a gap within the range");
    let options = Options { path: "plain.ptx".to_owned(), polls, poll_gap, limits, ..Options::default() };
    rewrite_ptx(text.as_bytes(), &options).output.map(|output| String::from_utf8(output).expect("it is text"))
}

/// A nest that stands twice: each thread adds up what its inner loop comes by, from `-r` to `r`.
const NEST: &str = ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out, .param .u32 r) {
.reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [r]; mov.b32 %r4, 0; neg.s32 %r2, %r1;
$O: neg.s32 %r3, %r1; $L: mad.lo.s32 %r4, %r4, 31, %r3; add.s32 %r3, %r3, 2; setp.le.s32 %p1, %r3, %r1; @%p1 bra $L;
xor.b32 %r4, %r4, %r2; add.s32 %r2, %r2, 1; setp.le.s32 %p2, %r2, %r1; @%p2 bra $O; st.global.u32 [%rd1], %r4; ret; }";

#[test]
fn a_nest_that_stands_twice_does_the_same_by_either_way() {
    let sound = polled(NEST, Polls::default());
    // The copy stands first.
    let faulty = sound.replacen("xor.b32 %r4, %r4, %r2", "xor.b32 %r4, %r4, %r3", 1);
    assert!(sound.contains("$__cuinstr_brief") && faulty != sound);
    let mut by_copy = Vec::new();
    for reach in [-40, -3, 0, 1, 2, 3, 8, 16, 33, 100] {
        let header = format!("//@ about: a nest\n//@ entry: k\n//@ grid: 1\n//@ block: 1\n//@ arg: u32[1] zero\n//@ arg: i32 {reach}\n");
        let header = Header::parse(&header, Place::Kernel).expect("a header");
        let left = |text: &str| run(text, &header, 1, STEPS).expect("it is PTX");
        let before = left(NEST);
        assert_eq!(before.outcome, Some(Outcome::Completed));
        assert_eq!((left(&sound).outcome, left(&sound).buffers), (before.outcome, before.buffers.clone()), "{reach}");
        if left(&faulty).buffers != before.buffers {
            by_copy.push(reach);
        }
    }
    assert_eq!(by_copy, [-3, 0, 1, 2, 3, 8, 16]);
}

fn fuel(units: u64) -> Limits {
    Limits { fuel: Some(units), ..Limits::default() }
}

/// Words of the control block: offset, bytes, value.
const LEAVE: (u64, usize, u64) = (4, 4, 1);
const COUNT_FUEL: (u64, usize, u64) = (12, 4, 1);

#[test]
fn limits_that_nothing_comes_near_change_nothing() {
    for (fixture, text) in plain() {
        let before = left(&fixture, &text);
        let clocks = Limits { timeout_ns: Some(1 << 60), budget_cycles: Some(1 << 60), fuel: None };
        for (limits, polls) in
            [(clocks, Polls::default()), (Limits { fuel: Some(1 << 50), ..clocks }, Polls::default()), (clocks, Polls::Each)]
        {
            let Some(text) = limited(&text, limits, 20_000, polls) else { continue };
            let after = left(&fixture, &text);
            assert_eq!((&after.outcome, after.buffers == before.buffers), (&before.outcome, true), "{}, {limits:?}", fixture.name);
        }
    }
}

/// A thread that counts for ever what it does, in its buffer.
const ENDLESS: &str =
    ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out) { .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out]; mov.b32 %r1, 0; $L: add.s32 %r1, %r1, 1; st.volatile.global.u32 [%rd1], %r1; ld.volatile.global.u32 %r2, [%rd1];
setp.ne.s32 %p1, %r2, -1; @%p1 bra $L; ret; }";

fn one_number() -> Header {
    Header::parse("//@ about: counts\n//@ entry: k\n//@ grid: 1\n//@ block: 1\n//@ arg: u32[1] zero\n", Place::Kernel).expect("a header")
}

fn endless(limits: Limits, gap: u64, polls: Polls, words: &[(u64, usize, u64)]) -> (Recorded, u32) {
    let text = limited(ENDLESS, limits, gap, polls).expect("it is PTX");
    let words: Vec<_> = [LEAVE].into_iter().chain(words.iter().copied()).collect();
    let found = recorded(&text, &one_number(), 300_000, &words).expect("it is PTX");
    let rounds = u32::from_le_bytes(found.left.buffers[0][..4].try_into().expect("four bytes"));
    (found, rounds)
}

#[test]
fn each_compiled_in_limit_stops_a_launch_that_nobody_armed() {
    let (never, lifted) = (Limits::default(), u64::MAX);
    for polls in [Polls::Amortised, Polls::Each] {
        assert_eq!(endless(never, 20_000, polls, &[]).0.left.outcome, None, "it is endless");
        for (limits, why, word) in [
            (Limits { timeout_ns: Some(20_000), ..never }, 2, 24),
            (Limits { budget_cycles: Some(20_000), ..never }, 3, 40),
            (fuel(2_000), 4, 48),
        ] {
            let (found, _) = endless(limits, 2_000, polls, &[]);
            assert_eq!((&found.left.outcome, found.why), (&Some(Outcome::Completed), why), "{limits:?}, {polls:?}");
            assert_eq!(found.elapsed_cycles >= 20_000, why == 3, "{found:?}");
            // A host lifts a limit, or sets another.
            let (found, _) = endless(limits, 2_000, polls, &[(word, 8, lifted)]);
            assert_eq!(found.left.outcome, None, "{limits:?}, {polls:?}");
            let (sooner, rounds) = endless(limits, 2_000, polls, &[(word, 8, 100)]);
            assert_eq!(sooner.left.outcome, Some(Outcome::Completed), "{limits:?}, {polls:?}");
            assert!(rounds < endless(limits, 2_000, polls, &[]).1, "{limits:?}, {polls:?}");
        }
    }
}

/// Threads of a warp that found another begin may meet at a vote. One that found none yet is not late, whatever the others found.
#[test]
fn what_others_of_its_warp_saw_makes_no_thread_late() {
    let text = limited(ENDLESS, Limits::default(), 2_000, Polls::Amortised).expect("it is PTX");
    let vote = "activemask.b32 flag;\n\tvote.sync.any.pred asked, asked, flag;\n\t@asked bra.uni $__cuinstr_begun";
    let others = text.replace(vote, "mov.pred asked, 1;\n\t@asked bra.uni $__cuinstr_begun");
    assert_ne!(others, text);
    // The kernel's begin is not there yet.
    let begins = "st.relaxed.gpu.global.u64 [cuinstr_control_v1+32], now;";
    assert!(others.contains(begins));
    let others = others.replace(begins, "");
    let left = |start| {
        let words = [LEAVE, (8, 4, 7), (24, 8, 2), (32, 8, start)];
        recorded(&others, &one_number(), 300_000, &words).expect("it is PTX").left.outcome
    };
    assert_eq!(left(0), None);
    assert_eq!(left(1), Some(Outcome::Completed), "this launch began long ago");
}

/// Behind a poll the loop's test is made once more, which is another one where its operands have changed meanwhile.
#[test]
fn a_test_whose_operands_change_behind_it_is_made_once() {
    let head = ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out) { .reg .pred %p<6>; .reg .b32 %r<3>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [out]; mov.b32 %r2, 100; mov.b32 %r1, 0; setp.eq.u32 %p4, %r1, 0;
        $L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2;";
    // The first round goes on, the second does not.
    for between in [
        "and.pred %p3, %p1, %p4; not.pred %p4, %p4; @%p3 bra $L;",
        "and.pred %p3, %p1, %p4; mov.pred %p5, %p4; and.pred %p4, %p5, %p3; not.pred %p4, %p4; @%p3 bra $L;",
        "and.pred %p3, %p1, %p4; mov.b32 %r2, 0; @%p3 bra $L;",
    ] {
        let text = format!("{head} {between} st.global.u32 [%rd1], %r1; ret; }}");
        for gap in GAPS {
            let polled = limited(&text, Limits::default(), gap, Polls::Amortised).expect("it is PTX");
            let found = recorded(&polled, &one_number(), STEPS, &[LEAVE]).expect("it is PTX");
            assert_eq!(u32::from_le_bytes(found.left.buffers[0][..4].try_into().expect("four bytes")), 2, "{between}\n{polled}");
        }
    }
}

#[test]
fn fuel_runs_out_in_the_same_iteration_however_far_polls_are_apart() {
    for units in [1, 2, 63, 64, 65, 1_000, 5_000] {
        let rounds = GAPS.map(|gap| endless(fuel(units), gap, Polls::Amortised, &[]).1);
        assert!(rounds[0] > 0 && rounds.iter().all(|other| *other == rounds[0]), "{units}: {rounds:?}");
    }
    assert_eq!(endless(fuel(77), 20_000, Polls::Each, &[]).1, 77);
}

#[test]
fn the_fuel_that_a_kernel_uses_is_the_fuel_that_it_needs() {
    let mut counted = 0;
    for (fixture, text) in plain() {
        let used = GAPS.map(|gap| {
            let text = limited(&text, fuel(1 << 50), gap, Polls::Amortised)?;
            let found = recorded(&text, &fixture.header, STEPS, &[LEAVE, COUNT_FUEL]).expect("it is PTX");
            assert_eq!((found.left.outcome, found.why), (Some(Outcome::Completed), 0), "{}", fixture.name);
            Some(found.fuel_used)
        });
        // Functions that repeat have no fuel.
        let Some(units) = used[0] else { continue };
        assert_eq!(used, [Some(units); 3], "{}", fixture.name);
        if units == 0 {
            continue;
        }
        let stops = |units: u64| {
            let text = limited(&text, fuel(units.max(1)), 20_000, Polls::Amortised).expect("it was taken before");
            let found = recorded(&text, &fixture.header, STEPS, &[LEAVE]).expect("it is PTX");
            assert_eq!(found.left.outcome, Some(Outcome::Completed), "{}", fixture.name);
            found.why == 4
        };
        assert!(!stops(units + 1), "{}: {units}", fixture.name);
        // A loop that is over polls no more, so a short kernel may end before it is stopped.
        counted += u32::from(stops(units / 2));
    }
    assert!(counted > 3, "{counted}");
}

#[test]
fn a_kernel_says_when_the_launch_began_and_at_its_end_whether_a_thread_came_late() {
    let short = ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out) { .reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [out]; $L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 1; @%p1 bra $L; st.global.u32 [%rd1], 7; ret; }";
    let header = Header::parse("//@ about: short\n//@ entry: k\n//@ grid: 1\n//@ block: 40\n//@ arg: u32[1] zero\n", Place::Kernel);
    let (header, small) = (header.expect("a header"), polled(short, Polls::default()));
    // As if one block were many, and the first one of those that ask.
    let many = |text: &str| text.replace("setp.eq.u32 q, y, 31;\n\tsetp.ge.and.u32 q, x, 4096, q;", "setp.eq.u32 q, x, 0;");
    let large = many(&small);
    assert_ne!(large, small);
    // For a host that knows when its launches begin.
    let options = Options { path: "plain.ptx".to_owned(), begin_by_polls: true, ..Options::default() };
    let quiet = rewrite_ptx(short.as_bytes(), &options).output.and_then(|output| String::from_utf8(output).ok()).expect("it is PTX");
    let quiet_large = many(&quiet);
    let (leave, lifted, later) = (1, u64::MAX, 1 << 60);
    // Another launch's number stands in the record. The flag holds zero, so that is the number of a launch which is being stopped.
    for (what, action, launch, timeout, start, late) in [
        ("no host armed it", leave, 1, 2, 0, 5),
        ("it has no limit", leave, 7, 0, 0, 5),
        ("it began with its first block", leave, 7, 1 << 40, 0, 5),
        ("its deadline has passed", leave, 7, 2, 1, 7),
        ("its deadline has passed under `trap`", 0, 7, 2, 1, 5),
        ("its deadline is to come", leave, 7, 1 << 40, 1, 5),
        ("its limit is lifted", leave, 7, lifted, 1, 5),
        ("another clock is ahead", leave, 7, 2, later, 5),
        ("it is being stopped", leave, 0, lifted, 1, 0),
        ("it is being stopped, and has no limit", leave, 0, 0, 0, 0),
        ("it is being stopped under `trap`", 0, 0, lifted, 1, 5),
    ] {
        let words = [(4, 4, action), (8, 4, launch), (24, 8, timeout), (32, 8, start), (72 + 20, 4, 5)];
        for (text, late, notes) in [(&small, 5, true), (&large, late, true), (&quiet, 5, false), (&quiet_large, late, false)] {
            let found = recorded(text, &header, STEPS, &words).expect("it is PTX");
            assert_eq!((found.left.outcome, found.late), (Some(Outcome::Completed), late), "{what}");
            assert_eq!((found.start_ns != 0, found.start_ns == start), (notes || start != 0, start != 0 || !notes), "{what}");
        }
    }
}

#[test]
fn later_blocks_of_a_launch_that_is_being_left_leave_in_front_of_their_loop() {
    let text = ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out) { .reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [out]; $L: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 1; @%p1 bra $L; st.global.u32 [%rd1], 7; ret; }";
    let header = Header::parse("//@ about: short\n//@ entry: k\n//@ grid: 1\n//@ block: 40\n//@ arg: u32[1] zero\n", Place::Kernel)
        .expect("a header");
    // As if the first block were a later one, and launch 9 had been left.
    let edits = [("later, x, 4096;", "later, x, 0;"), (".b32 cuinstr_left_v1;", ".b32 cuinstr_left_v1 = 9;")];
    let later = edits.iter().fold(polled(text, Polls::default()), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    // The flag holds zero: as where the launch came late.
    for (launch, why, written) in [(9, 2, 0), (8, 0, 7)] {
        let found = recorded(&later, &header, STEPS, &[LEAVE, (8, 4, launch)]).expect("it is PTX");
        assert_eq!((found.left.outcome, found.why), (Some(Outcome::Completed), why), "launch {launch}");
        assert_eq!(found.left.buffers, [vec![written, 0, 0, 0]], "launch {launch}");
    }
}

/// A kernel, a statement of it, and what stands there instead.
const FAULTS: &[(&str, &str, &str)] = &[
    ("collatz", "add.s32 \t%r11, %r11, 1;", "add.s32 \t%r11, %r11, 2;"),
    ("collatz", "max.u64 \t%rd24, %rd23, %rd24;", "max.u64 \t%rd24, %rd23, %rd23;"),
    // An iteration fewer.
    ("collatz", "setp.ne.s64 \t%p3, %rd23, 1;", "setp.ne.s64 \t%p3, %rd23, 2;"),
    ("scan_hillis", "setp.lt.u32 \t%p5, %r50, %r1;", "setp.lt.u32 \t%p5, %r50, 2;"),
    ("recursion", "setp.lt.s32 \t%p1, %r8, 2;", "setp.lt.s32 \t%p1, %r8, 1;"),
    // A bound that is off by one.
    ("scan_hillis", "setp.lt.u32 \t%p4, %r2, %r50;", "setp.le.u32 \t%p4, %r2, %r50;"),
    // Swapped operands.
    ("do_while", "sub.s32 \t%r33, %r40, %r32;", "sub.s32 \t%r33, %r32, %r40;"),
    ("do_while", "sub.s32 \t%r37, %r30, %r38;", "sub.s32 \t%r37, %r38, %r30;"),
    ("spmv_csr", "sub.s32 \t%r17, %r3, %r2;", "sub.s32 \t%r17, %r2, %r3;"),
    ("scan_hillis", "sub.s32 \t%r34, %r2, %r50;", "sub.s32 \t%r34, %r50, %r2;"),
    ("quicksort", "setp.gt.s32 \t%p3, %r3, %r1;", "setp.gt.s32 \t%p3, %r1, %r3;"),
];

#[test]
fn each_planted_fault_is_noticed() {
    let kernels = plain();
    for (name, from, to) in FAULTS {
        let (fixture, text) = kernels.iter().find(|(fixture, _)| fixture.name == *name).expect("the kernel is there");
        let before = left(fixture, text);
        let sound = polled(text, Polls::default());
        let faulty = sound.replacen(from, to, 1);
        assert_ne!(faulty, sound, "{name}: {from}");
        let after = run(&faulty, &fixture.header, 1, 4 * before.steps + 100_000).expect("it is PTX");
        assert!(after.outcome != before.outcome || after.buffers != before.buffers, "{name}: {to}");
    }
}

/// Random programs as nvcc compiles them; `CUINSTR_PTX_PROGRAMS=100000` makes as many.
#[test]
fn random_programs_do_the_same_with_polls_in_their_ptx() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let count = std::env::var("CUINSTR_PTX_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(20);
    let compared = compare(&nvcc, 0..count, None).expect("they compile");
    println!("{} runs, {} left out, {} different", compared.runs, compared.left_out, compared.different.len());
    assert!(compared.different.is_empty(), "{:#?}", &compared.different[..compared.different.len().min(20)]);
    assert!(compared.runs > 10 * compared.left_out && compared.runs >= count, "{compared:?}");
    // Where a comparison can't fail, nothing was compared.
    for fault in [fewer_by_two as fn(&str) -> String, clobbers] {
        let found = compare(&nvcc, 0..count.min(10), Some(fault)).expect("they compile");
        assert!(!found.different.is_empty(), "a planted fault is not noticed");
    }
}

/// Counters of strips pass zero where a strip is odd.
fn fewer_by_two(text: &str) -> String {
    text.replace(", -1;\n\tsetp.ne.s32 %__cuinstr_q", ", -2;\n\tsetp.ne.s32 %__cuinstr_q")
}

/// A poll writes a register of the user's.
fn clobbers(text: &str) -> String {
    text.replace("b32 flag, [where];", "b32 flag, [where];\n\tadd.s32 %r1, %r1, 1;")
}

/// Kernels of random PTX that a test looks at.
const KERNELS: u64 = 60;

#[test]
fn random_kernels_do_the_same_with_polls() {
    let compared = kernels::compared::compare(0..KERNELS, None).expect("the pass takes them");
    assert_eq!((compared.runs, compared.different), (2 * KERNELS, Vec::new()));
    assert!(compared.ticks > 1000 * KERNELS, "{} iterations", compared.ticks);
    for fault in [fewer_by_two as fn(&str) -> String, clobbers_hash] {
        let found = kernels::compared::compare(0..20, Some(fault)).expect("the pass takes them");
        assert!(!found.different.is_empty(), "a planted fault is not noticed");
    }
}

/// Sound kernels that are not proved. In the first a loop shifts a register to zero, and is said to be unrolled past its end. In the second no round of a
/// strip is ever come to, and its counter is not bounded. In the third calls multiply to too many rounds.
const NOT_PROVED: [u64; 3] = [29, 133, 154];

#[test]
fn random_kernels_are_proved_once_they_have_polls() {
    for (polls, expected) in [(Polls::Amortised, &NOT_PROVED[..]), (Polls::Each, &[])] {
        let found = kernels::compared::not_proved(0..200, polls).expect("the pass takes them");
        let seeds: Vec<u64> = found.iter().map(|(seed, _)| *seed).collect();
        assert_eq!(seeds, expected, "{polls:?}: {found:#?}");
    }
}

#[test]
fn ptxas_takes_random_kernels_and_what_the_pass_makes_of_them() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let folder = tempfile::tempdir().expect("a folder");
    let (source, output) = (folder.path().join("kernels.ptx"), folder.path().join("kernels.cubin"));
    let plain = kernels::module(0..KERNELS);
    for text in [&plain, &polled(&plain, Polls::default())] {
        std::fs::write(&source, text).expect("a file");
        let words = ["-cubin", "-arch=sm_90", "-o"].map(OsStr::new);
        let done = nvcc.run(words.into_iter().chain([output.as_os_str(), source.as_os_str()])).expect("nvcc runs");
        assert!(done.success(), "{}", done.stderr);
    }
}

/// A poll writes what a kernel computes.
fn clobbers_hash(text: &str) -> String {
    let (functions, kernel) = text.split_at(text.find(".entry k").expect("a kernel"));
    let mixes = kernel.lines().find(|line| line.contains("mad.lo.u32") && line.contains("0x9e3779b1"));
    let hash = mixes.and_then(|line| line.rsplit("mad.lo.u32 ").next()?.split(',').next()).expect("a kernel's hash");
    let add = format!("b32 flag, [where];\n\tadd.s32 {hash}, {hash}, 1;");
    format!("{functions}{}", kernel.replacen("b32 flag, [where];", &add, 1))
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
