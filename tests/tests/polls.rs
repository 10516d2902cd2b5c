//! The PTX pass: every cycle of every shape is polled, which the proof confirms, and nothing else changes.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::diagnostic::{Code, Severity};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr::site::{Form, Kind};
use cuinstr::verify::verify_ptx;
use cuinstr::{Rewrite, rewrite_ptx};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::process;
use cuinstr_harness::sass;
use cuinstr_trial::or_ignore;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CLOCKS: Limits = Limits { timeout_ns: Some(1_000_000), budget_cycles: Some(5_000), fuel: None };
const ALL: Limits = Limits { fuel: Some(1 << 20), ..CLOCKS };
const REGISTERS: &str = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;";

fn options(polls: Polls) -> Options {
    Options { path: "a.ptx".to_owned(), polls, ..Options::default() }
}

fn module(body: &str) -> String {
    format!(".version 9.0\n.target sm_90\n.address_size 64\n{body}\n")
}

fn kernel(body: &str) -> String {
    module(&format!(".visible .entry k(.param .u64 k_0, .param .u32 k_1)\n{{\n{REGISTERS}\n{body}\n}}"))
}

/// Bodies of kernels, each with the number of its loops.
fn bodies() -> Vec<(&'static str, String)> {
    let loads = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; ld.global.u32 %r3, [%rd1]; mov.b32 %r1, 0;";
    let shapes = [
        ("counted up", "$L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;"),
        (
            "counted up by three, 64 bits",
            "cvt.s64.s32 %rd2, %r2; mov.b64 %rd3, 0; $L: add.s64 %rd3, %rd3, 3; setp.lt.s64 %p1, %rd3, %rd2; @%p1 bra $L;",
        ),
        ("up to and with the bound", "$L: add.s32 %r1, %r1, 4; setp.le.u32 %p1, %r1, %r2; @%p1 bra $L;"),
        ("counted down", "$L: add.s32 %r2, %r2, -4; setp.ne.s32 %p1, %r2, 0; @%p1 bra $L;"),
        ("down to the bound", "$L: add.s32 %r2, %r2, -1; setp.ge.s32 %p1, %r2, %r3; @%p1 bra $L;"),
        ("the bound first", "$L: add.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r2, %r1; @%p1 bra $L;"),
        ("tested in front of the step", "$L: setp.lt.s32 %p1, %r1, %r2; add.s32 %r1, %r1, 1; @%p1 bra $L;"),
        ("a copy of the counter", "$L: add.s32 %r4, %r1, 1; setp.lt.s32 %p1, %r4, %r2; mov.b32 %r1, %r4; @%p1 bra $L;"),
        ("left in front of the branch back", "$L: add.s32 %r1, %r1, 1; setp.eq.s32 %p1, %r1, %r2; @%p1 bra $X; bra.uni $L; $X:"),
        ("a negated guard", "$L: ld.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 7; @!%p1 bra $L;"),
        ("for ever", "$L: bra $L;"),
        ("a while loop", "$L: ld.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 7; @%p1 bra $X; add.s32 %r1, %r1, 1; bra $L; $X:"),
        ("two ways back", "$L: ld.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 7; @%p1 bra $L; setp.eq.s32 %p2, %r3, 8; @%p2 bra $L;"),
        (
            "a way back into the loop's middle",
            "$L: ld.global.u32 %r3, [%rd1]; setp.eq.s32 %p1, %r3, 7; @%p1 bra $L; add.s32 %r1, %r1, 1; setp.ne.s32 %p2, %r1, %r3; @%p2 bra $L; bra $L;",
        ),
        ("falls into its header", "bra $M; $H: add.s32 %r1, %r1, 1; $N: setp.lt.s32 %p1, %r1, %r2; @!%p1 bra $X; bra $H; $M: bra $N; $X:"),
        (
            "a nest",
            "$O: mov.b32 %r5, 0; $L: add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, %r3; @%p1 bra $L; add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %r2; @%p2 bra $O;",
        ),
        (
            "an inner loop's way out is the outer one's way back",
            "$O: mov.b32 %r5, 0; $L: add.s32 %r5, %r5, 1; setp.eq.s32 %p1, %r5, %r3; @%p1 bra $O; bra.uni $L;",
        ),
        (
            "one header, two loops",
            "$L: add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, %r3; @%p1 bra $L; add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %r2; @%p2 bra $L;",
        ),
        ("two loops, one in braces", "$L: { $M: ld.global.u32 %r3, [%rd1]; setp.ne.u32 %p1, %r3, 7; @%p1 bra $M; } @!%p1 bra $L;"),
        (
            "irreducible",
            "setp.eq.s32 %p1, %r2, 0; @%p1 bra $B; $A: ld.global.u32 %r3, [%rd1]; setp.eq.s32 %p2, %r3, 7; @%p2 bra $X; $B: add.s32 %r1, %r1, 1; setp.ne.s32 %p3, %r1, %r2; @%p3 bra $A; $X:",
        ),
        (
            "an indexed branch",
            "$L: ld.global.u32 %r3, [%rd1]; $T: .branchtargets $L, $M, $X; brx.idx %r3, $T; $M: add.s32 %r1, %r1, 1; bra $L; $X:",
        ),
        (
            "scopes with equal names",
            "{ .reg .pred p; wait: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.s32 p, %r3, 1; @!p bra wait; } { .reg .pred p; wait: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.s32 p, %r3, 2; @!p bra wait; }",
        ),
        (
            "names like those of polls",
            "{ .reg .b32 late, where, stays; mov.b32 late, 0; L: add.s32 late, late, 1; setp.lt.s32 %p1, late, %r2; @%p1 bra L; }",
        ),
        ("waits in hardware", "mov.b32 %r4, 0; $L: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0; @!%p1 bra $L;"),
        ("comments and pragmas", "$L: // here\n.pragma \"nounroll\"; add.s32 %r1, %r1, 1; // ;\nsetp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;"),
        (
            "a step of one or two, which may jump over the bound",
            "and.b32 %r4, %r2, 1; add.s32 %r5, %r4, 1; $L: add.s32 %r1, %r1, %r5; setp.ne.s32 %p1, %r1, 7; @%p1 bra $L;",
        ),
        (
            "a loop behind a brief nest",
            "neg.s32 %r4, %r2; mov.b32 %r5, %r4; $O: mov.b32 %r6, %r4; $L: add.s32 %r1, %r1, %r6; add.s32 %r6, %r6, 1; setp.le.s32 %p1, %r6, %r2; @%p1 bra $L; \
             add.s32 %r5, %r5, 1; setp.le.s32 %p2, %r5, %r2; @%p2 bra $O; $M: ld.volatile.global.u32 %r7, [%rd1]; setp.ne.s32 %p3, %r7, 0; @%p3 bra $M;",
        ),
        (
            "deeper",
            "$A: mov.b32 %r5, 0; $B: mov.b32 %r6, 0; $C: mov.b32 %r7, 0; $D: add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, %r2; @%p1 bra $D; add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r3; @%p2 bra $C; add.s32 %r5, %r5, 1; setp.ne.s32 %p3, %r5, %r3; @%p3 bra $B; ld.global.u32 %r8, [%rd1]; setp.ne.s32 %p4, %r8, 0; @%p4 bra $A;",
        ),
    ];
    shapes.into_iter().map(|(name, body)| (name, kernel(&format!("{loads} {body} st.global.u32 [%rd1], %r1; ret;")))).collect()
}

/// Modules whose cycles are calls.
fn modules() -> Vec<(&'static str, String)> {
    let recursive = ".func f(.param .b32 n) { .reg .b32 r; .reg .pred p; .param .b32 a; ld.param.b32 r, [n]; setp.eq.b32 p, r, 0; @p bra $X; st.param.b32 [a], r; call f, (a); $X: ret; }";
    let call = ".visible .entry k() { .param .b32 a; st.param.b32 [a], 3; call f, (a); ret; }";
    let pointer =
        ".func f() { .reg .b64 %a; mov.u64 %a, f; P: .callprototype ()_ (); call %a, (), P; ret; } .visible .entry k() { call f; ret; }";
    let mut tree = String::new();
    for number in 0..30 {
        let next = if number == 0 { String::new() } else { format!("call f{0}; call f{0};", number - 1) };
        let _ = writeln!(tree, ".func f{number}() {{ {next} ret; }}");
    }
    tree.push_str(".visible .entry k() { call f29; ret; }");
    let mut looping = String::new();
    for number in 0..5 {
        let next = if number == 0 { String::new() } else { format!("call f{};", number - 1) };
        let round = format!("{next} ld.global.u32 r, [a]; setp.ne.u32 p, r, 0; @p bra $L;");
        let _ = writeln!(looping, ".func f{number}() {{ .reg .pred p; .reg .b32 r; .reg .b64 a; mov.u64 a, 8; $L: {round} ret; }}");
    }
    looping.push_str(".visible .entry k() { call f4; ret; }");
    let setmaxnreg = ".visible .entry k() .maxntid 128 { .reg .pred p; .reg .b32 r; setmaxnreg.dec.sync.aligned.u32 40; mov.b32 r, 0; $L: add.s32 r, r, 1; setp.ne.s32 p, r, 0; @p bra $L; ret; }";
    let light = "$L: add.s32 s, s, 1; setp.lt.s32 p, s, r; @p bra $L;";
    let callee = format!(".func g(.param .b32 n) {{ .reg .b32 r, s; .reg .pred p; ld.param.b32 r, [n]; {light} ret; }}");
    let unwinds =
        |behind: &str| module(&format!("{callee}\n{}\n{call}", recursive.replace("$X:", behind).replace(".b32 r;", ".b32 r, s;")));
    // The same with a counter of 64 bits.
    let wide = "cvt.u64.u32 y, r; $L: add.s64 x, x, 2; setp.lt.s64 p, x, y; @p bra $L;";
    vec![
        ("recursion", module(&format!("{recursive}\n{call}"))),
        ("a loop behind a recursion", unwinds(&format!("{light} $X:"))),
        ("a wide loop behind a recursion", unwinds(&format!(".reg .b64 x, y; mov.b64 x, 0; {wide} $X:"))),
        ("calls of loops behind a recursion", unwinds("call g, (a); call g, (a); $X:")),
        ("a call through a pointer", module(pointer)),
        ("a tree of calls", module(&tree)),
        ("a tree of calls with a loop at each level", module(&looping)),
        ("no function may be called", module(setmaxnreg).replace("sm_90", "sm_90a")),
    ]
}

fn output(text: &str, polls: Polls) -> (Rewrite, String) {
    let rewrite = rewrite_ptx(text.as_bytes(), &options(polls));
    let output = rewrite.output.clone().unwrap_or_else(|| panic!("refused: {:?}\n{text}", rewrite.diagnostics));
    (rewrite, String::from_utf8(output).expect("ASCII stays ASCII"))
}

#[test]
fn every_cycle_of_every_shape_is_polled() {
    for (name, text) in bodies().into_iter().chain(modules()) {
        for polls in [Polls::Amortised, Polls::CountDown, Polls::Each] {
            let (rewrite, output) = output(&text, polls);
            assert!(!verify_ptx(&text).holds(), "{name}: there is nothing to poll in it");
            let report = verify_ptx(&output);
            assert!(report.holds(), "{name}, {polls:?}: {:?}\n{output}", report.loops);
            assert_eq!(rewrite.original().as_deref(), Some(text.as_bytes()), "{name}");
            assert_eq!(rewrite_ptx(text.as_bytes(), &options(polls)), rewrite, "{name}: the same text gives the same output");
            let again = rewrite_ptx(output.as_bytes(), &options(polls));
            assert!(again.diagnostics.iter().any(|found| found.code == Code::OwnOutput), "{name}: its own output is refused");
        }
    }
}

#[test]
fn loops_with_few_constant_trips_are_left_alone() {
    let form = |body: &str| {
        let (rewrite, output) = output(&kernel(&format!("mov.b32 %r2, 3; {body} ret;")), Polls::Amortised);
        assert!(verify_ptx(&output).holds(), "{body}");
        rewrite.summary.bounded
    };
    assert_eq!(form("mov.b32 %r1, 0; $L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 16; @%p1 bra $L;"), 1);
    assert_eq!(
        form(
            "$O: mov.b32 %r1, 64; $L: add.s32 %r1, %r1, -4; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L; add.s32 %r2, %r2, 1; setp.ne.s32 %p2, %r2, %r3; @%p2 bra $O;"
        ),
        1
    );
    // Without a sign, steps down end above zero if the bound is a step above it at least.
    let down = |bound: u32| form(&format!("mov.b32 %r1, 40; $L: add.s32 %r1, %r1, -3; setp.gt.u32 %p1, %r1, {bound}; @%p1 bra $L;"));
    assert_eq!([2, 3, 4].map(down), [0, 1, 1]);
    // The start is not written anew, the bound is jumped over, or there are too many.
    assert_eq!(form("mov.b32 %r1, 0; $O: $L: add.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 16; @%p1 bra $L; bra $O;"), 0);
    assert_eq!(form("mov.b32 %r1, 0; $L: add.s32 %r1, %r1, 3; setp.ne.s32 %p1, %r1, 16; @%p1 bra $L;"), 0);
    assert_eq!(form("mov.b32 %r1, 0; $L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 1000; @%p1 bra $L;"), 0);
}

#[test]
fn strips_of_wide_steps_are_not_computed() {
    // So many steps as one allowance pays for must not pass 32 bits.
    for (step, form) in [(1 << 16, Form::Strip), ((1 << 16) + 1, Form::Chunk)] {
        let body =
            format!("ld.param.u32 %r2, [k_1]; mov.b32 %r1, 0; $L: add.s32 %r1, %r1, {step}; setp.lt.u32 %p1, %r1, %r2; @%p1 bra $L; ret;");
        let sites = output(&kernel(&body), Polls::Amortised).0.sites.sites;
        assert_eq!(sites.iter().find(|site| site.kind == Kind::Loop).map(|site| site.form), Some(form), "{step}");
    }
}

#[test]
fn what_is_left_of_an_unrolled_loop_is_left_alone() {
    let form = |body: &str| {
        let front = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1];";
        let (rewrite, output) = output(&kernel(&format!("{front} {body} $X: st.global.u32 [%rd1], %r3; ret;")), Polls::Amortised);
        assert!(verify_ptx(&output).holds(), "{body}");
        rewrite.summary.bounded
    };
    let repeats = "$L: add.s32 %r3, %r3, 7; add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;";
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; setp.eq.s32 %p2, %r1, 0; @%p2 bra $X; {repeats}")), 1);
    assert_eq!(form(&format!("and.b32 %r1, %r2, 7; mov.b32 %r3, 0; setp.ne.s32 %p2, %r1, 0; @!%p2 bra $X; {repeats}")), 1);
    let nest = "setp.ne.s32 %p3, %r3, %r2; @%p3 bra $O;";
    assert_eq!(form(&format!("$O: and.b32 %r1, %r2, 3; setp.eq.s32 %p2, %r1, 0; @%p2 bra $X; {repeats} {nest}")), 1);
    // Nothing says that they are not zero; another number was asked, not always, or to no effect; they are made once, and used up; they are too many.
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; {repeats}")), 0);
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; setp.eq.s32 %p2, %r2, 0; @%p2 bra $X; {repeats}")), 0);
    let both_ways = "setp.eq.s32 %p2, %r1, 0; @%p2 bra $Z; add.s32 %r3, %r3, 1; bra $M; $Z: add.s32 %r3, %r3, 2; $M:";
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; {both_ways} {repeats}")), 0);
    let not_always = "setp.ne.s32 %p3, %r2, 9; setp.eq.s32 %p2, %r2, 8; @%p3 setp.eq.s32 %p2, %r1, 0; @%p2 bra $X;";
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; {not_always} {repeats}")), 0);
    assert_eq!(form(&format!("setp.eq.s32 %p2, %r1, 0; and.b32 %r1, %r2, 3; @%p2 bra $X; {repeats}")), 0);
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; setp.eq.s32 %p2, %r1, 1; @%p2 bra $X; {repeats}")), 0);
    assert_eq!(form(&format!("and.b32 %r1, %r2, 3; setp.eq.s32 %p2, %r1, 0; @%p2 bra $X; $O: {repeats} {nest}")), 0);
    assert_eq!(form(&format!("and.b32 %r1, %r2, 1023; setp.eq.s32 %p2, %r1, 0; @%p2 bra $X; {repeats}")), 0);
    // Up from the opposite of what was asked.
    let rises = "$L: add.s32 %r3, %r3, 7; add.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;";
    let bits = "and.b32 %r4, %r2, 3;";
    let guard = "setp.eq.s32 %p2, %r4, 0; @%p2 bra $X;";
    assert_eq!(form(&format!("{bits} {guard} neg.s32 %r1, %r4; {rises}")), 1);
    assert_eq!(form(&format!("{bits} neg.s32 %r1, %r4; {guard} {rises}")), 1);
    assert_eq!(form(&format!("$O: {bits} {guard} neg.s32 %r1, %r4; {rises} {nest}")), 1);
    assert_eq!(form(&format!("{bits} $O: {guard} neg.s32 %r1, %r4; {rises} {nest}")), 1);
    // It is no opposite, or of another number; it is made once, and used up; they are too many, or were asked before they were made.
    assert_eq!(form(&format!("{bits} {guard} mov.b32 %r1, %r4; {rises}")), 0);
    assert_eq!(form(&format!("{bits} {guard} neg.s32 %r1, %r4; {repeats}")), 0);
    assert_eq!(form(&format!("{bits} {guard} neg.s32 %r1, %r2; {rises}")), 0);
    assert_eq!(form(&format!("{bits} neg.s32 %r1, %r4; {rises}")), 0);
    assert_eq!(form(&format!("{bits} {guard} neg.s32 %r1, %r4; $O: {rises} {nest}")), 0);
    assert_eq!(form(&format!("and.b32 %r4, %r2, 1023; {guard} neg.s32 %r1, %r4; {rises}")), 0);
    assert_eq!(form(&format!("{guard} {bits} neg.s32 %r1, %r4; {rises}")), 0);
    assert_eq!(form(&format!("{bits} {guard} add.s32 %r4, %r4, 4; neg.s32 %r1, %r4; {rises}")), 0);
    assert_eq!(form(&format!("{bits} {guard} @%p3 neg.s32 %r1, %r4; {rises}")), 0);
}

#[test]
fn the_rest_of_what_may_be_negative_or_shifted_by_anything_is_polled() {
    let form = |start: &str| {
        let repeats = "$L: add.s32 %r3, %r3, 7; add.s32 %r1, %r1, -1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;";
        // %r4 is from 0 to 7, %r5 from -3 to 4, %r6 from -1 to 6.
        let front = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; and.b32 %r4, %r2, 7; add.s32 %r5, %r4, -3; add.s32 %r6, %r4, -1;";
        let guard = "setp.eq.s32 %p2, %r1, 0; @%p2 bra $X;";
        let text = kernel(&format!("{front} {start} {guard} {repeats} $X: st.global.u32 [%rd1], %r3; ret;"));
        let (rewrite, output) = output(&text, Polls::Amortised);
        assert!(verify_ptx(&output).holds(), "{start}");
        rewrite.summary.bounded
    };
    // As numbers without a sign, those below zero are the largest.
    assert_eq!(form("max.u32 %r1, %r4, 0;"), 1);
    assert_eq!(form("max.u32 %r1, %r5, 0;"), 0);
    assert_eq!(form("max.u32 %r1, 0, %r5;"), 0);
    assert_eq!(form("min.u32 %r1, %r4, 5;"), 1);
    assert_eq!(form("min.u32 %r1, %r5, 5; add.s32 %r1, %r1, 0;"), 0);
    assert_eq!(form("shr.u32 %r1, %r4, 1;"), 1);
    assert_eq!(form("shr.u32 %r7, %r6, 1; add.s32 %r1, %r7, 1;"), 0);
    assert_eq!(form("shl.b32 %r1, %r4, 2;"), 1);
    assert_eq!(form("shl.b32 %r7, %r6, 1; add.s32 %r1, %r7, 2;"), 0);
    assert_eq!(form("and.b32 %r7, %r2, 255; shl.b32 %r1, %r7, 2;"), 0);
    // Shifted by more than the least.
    assert_eq!(form("add.s32 %r7, %r4, 1; shr.u32 %r8, %r7, 0; add.s32 %r1, %r8, -1;"), 1);
    assert_eq!(form("add.s32 %r7, %r4, 1; shr.u32 %r8, %r7, %r4; add.s32 %r1, %r8, -1;"), 0);
    assert_eq!(form("and.b32 %r7, %r2, 31; shl.b32 %r1, %r4, %r7;"), 0);
    assert_eq!(form("shl.b32 %r1, %r4, 32;"), 0);
}

#[test]
fn a_threads_own_share_is_left_alone() {
    let form = |body: &str| {
        let (rewrite, output) = output(&kernel(&format!("ld.param.u32 %r2, [k_1]; {body} ret;")), Polls::Amortised);
        assert!(verify_ptx(&output).holds(), "{body}");
        rewrite.summary.bounded
    };
    let by = |step: &str, bound: &str| format!("$L: add.s32 %r1, %r1, {step}; setp.lt.s32 %p1, %r1, {bound}; @%p1 bra $L;");
    let nest = "add.s32 %r5, %r5, 1; setp.lt.s32 %p2, %r5, %r2; @%p2 bra $O;";
    assert_eq!(form(&format!("mov.u32 %r1, %tid.x; {}", by("128", "2048"))), 1);
    assert_eq!(form(&format!("mov.u32 %r4, %ntid.x; mov.u32 %r1, %tid.x; {}", by("%r4", "2048"))), 1);
    assert_eq!(
        form(&format!("mov.b32 %r5, 0; mov.u32 %r6, %tid.x; shr.u32 %r7, %r6, 2; $O: mov.b32 %r1, %r7; {} {nest}", by("64", "512"))),
        1
    );
    // It goes on where it was; its start or its step may be anything; it may wrap; there are too many.
    assert_eq!(form(&format!("mov.b32 %r5, 0; mov.u32 %r1, %tid.x; $O: {} {nest}", by("64", "512"))), 0);
    assert_eq!(form(&format!("mov.b32 %r1, %r2; {}", by("128", "2048"))), 0);
    assert_eq!(form(&format!("mov.u32 %r1, %tid.x; {}", by("%r2", "2048"))), 0);
    assert_eq!(form(&format!("mov.u32 %r1, %tid.x; {}", by("128", "2147483647"))), 0);
    assert_eq!(form("mov.u32 %r1, %tid.x; $L: add.s32 %r1, %r1, -3; setp.gt.u32 %p1, %r1, 0; @%p1 bra $L;"), 0);
    assert_eq!(form(&format!("mov.u32 %r1, %tid.x; {}", by("1", "2048"))), 0);
}

#[test]
fn a_brief_nest_stands_twice() {
    let text = |body: &str| kernel(&format!("ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; {body} ret;"));
    let twice = |body: &str| {
        let (_, output) = output(&text(body), Polls::Amortised);
        assert!(verify_ptx(&output).holds(), "{body}");
        output.contains("$__cuinstr_brief")
    };
    let nest = |start: &str, bound: &str| {
        format!(
            "neg.s32 %r1, %r2; $O: {start} $L: add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, {bound}; @%p1 bra $L; add.s32 %r1, %r1, 1; \
             setp.lt.s32 %p2, %r1, %r2; @%p2 bra $O;"
        )
    };
    let brief = nest("neg.s32 %r5, %r2;", "%r2");
    assert!(twice(&brief));
    assert!(twice(&nest("sub.s32 %r5, 3, %r2;", "9")));
    // A bound or start that changes with the nest, too many iterations, a declaration that would stand there twice, another loop around it.
    assert!(!twice(&nest("ld.global.u32 %r6, [%rd1]; mov.b32 %r5, 0;", "%r6")));
    assert!(!twice(&nest("", "%r2")));
    assert!(!twice(&nest("mov.b32 %r5, 0;", "9999")));
    assert!(!twice(&nest(".reg .b32 %x; neg.s32 %r5, %r2;", "%r2")));
    assert!(!twice(&format!("$Z: {brief} bra $Z;")));
    assert!(!twice(&nest("@%p3 bra $R; neg.s32 %r5, %r2;", "%r2").replace("@%p2 bra $O;", "@%p2 bra $O; st.global.u32 [%rd1], %r5; $R: ")));
    // Control jumps into it; each round polls; each counts.
    assert!(!twice(&format!("bra $O; {brief}")));
    assert!(!output(&text(&brief), Polls::Each).1.contains("$__cuinstr_brief"));
    let limits = Limits { fuel: Some(1 << 20), ..Limits::default() };
    let rewrite = rewrite_ptx(text(&brief).as_bytes(), &Options { limits, ..options(Polls::Amortised) });
    assert!(!String::from_utf8(rewrite.output.expect("it is PTX")).expect("it is text").contains("$__cuinstr_brief"));
}

#[test]
fn no_poll_can_be_taken_out() {
    // The proof accepts more calls in a row than the pass leaves without a poll.
    for (name, text) in bodies().into_iter().chain(modules()).filter(|(name, _)| !name.starts_with("a tree of calls")) {
        let (rewrite, output) = output(&text, Polls::Amortised);
        // What a kernel asks where it begins is for its late blocks.
        let is_poll = |text: &str| text.contains("setp.eq.b32 asked") && !text.contains("$__cuinstr_armed");
        let polls = rewrite.inserted.iter().filter(|range| is_poll(&output[(*range).clone()]));
        let mut count = 0;
        for range in polls.skip_while(|range| range.start == rewrite.inserted[0].start) {
            // The flag is compared with a number that no launch has.
            let poll = output[range.clone()].replace("setp.eq.b32 asked, flag, launch", "setp.eq.b32 asked, flag, 0");
            let without = format!("{}{poll}{}", &output[..range.start], &output[range.end..]);
            assert!(!verify_ptx(&without).holds(), "{name}: nobody misses the poll at {range:?}\n{without}");
            count += 1;
        }
        assert!(count > 0, "{name} has no poll\n{output}");
    }
}

#[test]
fn compiled_in_limits_are_proved_and_take_no_shared_memory() {
    for (name, text) in bodies().into_iter().chain(modules()) {
        for (limits, polls) in [(CLOCKS, Polls::Amortised), (ALL, Polls::Amortised), (ALL, Polls::Each)] {
            let rewrite = rewrite_ptx(text.as_bytes(), &Options { limits, ..options(polls) });
            let Some(output) = &rewrite.output else {
                // A function that repeats does not see what its kernel has used.
                let refused = rewrite.diagnostics.iter().any(|found| found.code == Code::NotInPtx);
                assert!(refused && limits.fuel.is_some() && text.contains(".func"), "{name}: {:?}", rewrite.diagnostics);
                continue;
            };
            let output = std::str::from_utf8(output).expect("ASCII stays ASCII");
            assert_eq!(output.matches(".shared").count(), text.matches(".shared").count(), "{name}");
            let report = verify_ptx(output);
            assert!(report.holds(), "{name}, {limits:?}, {polls:?}: {:?}\n{output}", report.loops);
            assert_eq!(rewrite.original().as_deref(), Some(text.as_bytes()), "{name}");
        }
    }
}

#[test]
fn what_is_no_ptx_is_refused() {
    let refused = |text: &[u8], code: Code| {
        let rewrite = rewrite_ptx(text, &options(Polls::Amortised));
        assert!(rewrite.output.is_none());
        let errors: Vec<Code> =
            rewrite.diagnostics.iter().filter(|found| found.severity == Severity::Error).map(|found| found.code).collect();
        assert!(errors.contains(&code), "{errors:?}");
    };
    refused(b"", Code::Empty);
    refused(b"  \n", Code::Empty);
    refused(b"\x7fELF\x02\x01\xff", Code::UnsoundPtx);
    refused(b"__global__ void f() {}", Code::UnsoundPtx);
    refused(b".version 9.0 .target sm_90 .entry k() { bra $L; }", Code::UnsoundPtx);
    refused(b".version 9.0 .target sm_60 .entry k() { ret; }", Code::UnsoundPtx);
    refused(b".version 9.0 .target sm_90 .global .b32 cuinstr_flag_v1;", Code::OwnOutput);
}

#[test]
fn other_bytes_stay_and_files_without_code_do_too() {
    let text = ".version 9.0\r\n.target sm_90\r\n// nothing here";
    let (rewrite, output) = output(text, Polls::Amortised);
    assert_eq!((output.as_str(), rewrite.sites.sites.len()), (text, 0));
}

/// Where the host knows when launches begin, a kernel that needs no poll is the plain one.
#[test]
fn a_kernel_that_polls_nowhere_stays_as_it_is() {
    let body = kernel("setp.eq.u32 %p1, %r1, %r2; @%p1 bra $R; st.global.u32 [%rd1], 7; $R: ret;");
    let text = format!(
        "{body}.visible .entry polled() {{\n{REGISTERS}\n$L: ld.volatile.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra $L; ret; }}\n"
    );
    for (text, sites, pieces) in [(&body, 0, 1), (&text, 2, 3)] {
        let rewrite = rewrite_ptx(text.as_bytes(), &Options { begin_by_polls: true, ..options(Polls::Amortised) });
        let output = String::from_utf8(rewrite.output.expect("it is PTX")).expect("it is text");
        let plain = body.split_once(".visible").expect("a kernel").1;
        assert!(output.contains(plain) && output.contains("cuinstr_control_v1") && verify_ptx(&output).holds(), "{output}");
        assert_eq!((rewrite.sites.sites.len(), rewrite.inserted.len() >= pieces), (sites, true), "{output}");
    }
    // A guard has to see that a kernel was launched in it.
    assert!(output(&body, Polls::Amortised).1.contains("$__cuinstr_begun_by_another"));
}

fn assembled(nvcc: &Nvcc, text: &str, kernel: &str) -> sass::Code {
    sass::assemble(nvcc, text, kernel).unwrap_or_else(|why| panic!("{why}"))
}

/// The innermost loops of a kernel.
fn loops(nvcc: &Nvcc, text: &str, kernel: &str) -> Vec<sass::Loop> {
    assembled(nvcc, text, kernel).innermost
}

/// A text in a version of PTX that the toolkit knows: an older one if that is of CUDA 12.
fn known(nvcc: &Nvcc, text: &str) -> String {
    if nvcc.release.starts_with("12.") { text.replacen(".version 9.0", ".version 8.4", 1) } else { text.to_owned() }
}

/// What each loop of plain code does in a round, it does with polls in about as many instructions.
fn compare(nvcc: &Nvcc, name: &str, plain: &str, kernel: &str) {
    let plain = known(nvcc, plain);
    let (_, polled) = output(&plain, Polls::Amortised);
    let after = loops(nvcc, &polled, kernel);
    for one in loops(nvcc, &plain, kernel).iter().filter(|one| one.work != sass::Work::default()) {
        let is_kept = after.iter().any(|other| other.work == one.work && other.round <= one.round + one.round / 8 + 4);
        assert!(is_kept, "{name}: {one:?} in the plain code, and with polls only {after:?}");
    }
}

#[test]
fn ptxas_unrolls_loops_with_polls_as_it_does_without() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let front = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; mov.u32 %r9, %tid.x; mul.wide.u32 %rd2, %r9, 4; add.u64 %rd1, %rd1, %rd2; \
                 mov.b32 %r1, 0; mov.b32 %r8, 0; shl.b32 %r7, %r9, 2; setp.lt.s32 %p1, %r2, 1; @%p1 bra $X;";
    let step = "add.u64 %rd1, %rd1, 512; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;";
    for (name, body) in [
        ("loads", "ld.global.u32 %r3, [%rd1]; add.u32 %r8, %r8, %r3;"),
        ("barriers", "ld.shared.u32 %r3, [%r7]; bar.sync 0; add.u32 %r8, %r8, %r3; st.shared.u32 [%r7], %r8; bar.sync 0;"),
        ("shuffles", "ld.global.u32 %r3, [%rd1]; shfl.sync.bfly.b32 %r3, %r3, 1, 31, -1; add.u32 %r8, %r8, %r3;"),
        ("atomics", "red.global.add.u32 [%rd1], %r8; add.u32 %r8, %r8, 3;"),
    ] {
        let body = format!(".shared .align 4 .b8 sm[4096]; {front} $L: {body} {step} $X: st.global.u32 [%rd1], %r8; ret;");
        compare(&nvcc, name, &kernel(&body), "k");
    }
}

#[test]
fn ptxas_unrolls_the_benchmarks_as_it_does_without() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    // Loops in strips, and one that pays for eight iterations at once. Light ones of the latter are unrolled where the plain ones are not.
    for name in ["gemm_tiled", "smith_waterman", "spmv_csr", "bfs"] {
        let (text, kernel) = benchmark(&nvcc, name);
        compare(&nvcc, name, &text, &kernel);
    }
}

#[test]
fn ptxas_makes_of_a_brief_nest_what_it_makes_of_the_users() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let (text, kernel) = benchmark(&nvcc, "convolve2d");
    let (_, polled) = output(&text, Polls::Amortised);
    let after = loops(&nvcc, &polled, &kernel);
    for one in loops(&nvcc, &text, &kernel) {
        assert!(after.iter().any(|other| (&other.work, other.round) == (&one.work, one.round)), "{one:?}, and with polls only {after:?}");
    }
}

/// The PTX of a kernel of `kernels/bench`, and its name there.
fn benchmark(nvcc: &Nvcc, name: &str) -> (String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/bench").join(name).with_extension("cu");
    let mut command = Command::new(&nvcc.path);
    command.args(["-arch=sm_90", "-O3", "-std=c++17", "-ptx"]).arg(&path).args(["-o", "-"]);
    let done = process::run(&mut command, Duration::from_secs(120)).expect("nvcc starts");
    assert!(done.success(), "{}", done.stderr);
    let kernel = done.stdout.split(".entry").nth(1).and_then(|rest| rest.split('(').next()).expect("a kernel").trim().to_owned();
    (done.stdout, kernel)
}

/// The names that polls declare, but for those that begin as our own do.
fn declared(output: &str, own: &str) -> BTreeSet<String> {
    let names = output.split([';', ')', '(', '{']).filter_map(|part| {
        let at = part.find(".reg .").or_else(|| part.find(".param ."))?;
        Some(part[at..].split([',', ' ', '\t']).filter(|word| !word.starts_with(['.', '%'])).map(str::to_owned).collect::<Vec<_>>())
    });
    names.flatten().filter(|name| !name.is_empty() && !own.contains(name.as_str()) && !name.contains("cuinstr_")).collect()
}

/// A parameter of a kernel is seen in all of its blocks, and hides a block's own parameter of its name.
#[test]
fn names_of_a_kernels_parameters_are_its_own() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let body = "ld.param.u64 %rd1, [k_0]; $L: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.s32 %p1, %r3, 7; @%p1 bra $L; ret;";
    let text = known(&nvcc, &kernel(body));
    for (limits, polls, begin_by_polls) in [
        (Limits::default(), Polls::Amortised, false),
        (Limits::default(), Polls::Each, true),
        (CLOCKS, Polls::Amortised, false),
        (ALL, Polls::Amortised, true),
        (ALL, Polls::Each, false),
    ] {
        let output = |text: &str| {
            let rewrite = rewrite_ptx(text.as_bytes(), &Options { limits, begin_by_polls, ..options(polls) });
            String::from_utf8(rewrite.output.expect("an output")).expect("ASCII stays ASCII")
        };
        let mut names = declared(&output(&text), &text);
        assert!(names.contains("site") && names.contains("launch"), "{names:?}");
        names.extend(["a", "b", "c", "at"].map(str::to_owned));
        let parameters = names.into_iter().collect::<Vec<_>>().join(", .param .u64 ");
        let taken = text.replace(".param .u32 k_1", &format!(".param .u64 {parameters}"));
        assembled(&nvcc, &output(&taken), "k");
    }
}

/// ptxas takes a loop with a strong load for one that waits for another thread of its warp. Its threads then run on apart.
#[test]
fn ptxas_keeps_the_threads_of_a_warp_together_behind_loops() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let (text, kernel) = benchmark(&nvcc, "hash_probe");
    let yields = |text: &str| assembled(&nvcc, text, &kernel).yields;
    assert_eq!(yields(&text), 0);
    // Those of `__cuinstr_stop` and `__cuinstr_last`, which nothing comes behind. ptxas 13.4 and newer ones put two more where the kernel begins.
    let release: Vec<u32> = nvcc.release.split('.').filter_map(|number| number.parse().ok()).collect();
    let at_begin = if release >= vec![13, 4] { 2 } else { 0 };
    assert_eq!(yields(&output(&text, Polls::Amortised).1), 4 + at_begin);
    // Older GPUs have polls with strong loads.
    let older = text.replace(".target sm_90", ".target sm_80");
    assert!(yields(&output(&older, Polls::Amortised).1) > 4);
}

/// The device linker gives a kernel as many registers as any function that it calls may use.
#[test]
fn linked_kernels_need_few_registers_for_their_ends() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let registers = |text: &str| -> u32 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [source, object, linked] = ["k.ptx", "k.o", "k.cubin"].map(|name| folder.path().join(name));
        std::fs::write(&source, text).expect("a file");
        let run = |tool: &str, words: &[&str], from: &Path, to: &Path| {
            let mut command = Command::new(nvcc.path.with_file_name(tool));
            command.arg("-arch=sm_90").args(words).arg(from).arg("-o").arg(to);
            let done = process::run(&mut command, Duration::from_secs(120)).expect("it starts");
            assert!(done.success(), "{tool}: {}", done.stderr);
            done.stdout + &done.stderr
        };
        run("ptxas", &["-c"], &source, &object);
        let said = run("nvlink", &["-v"], &object, &linked);
        let count = said.split("used ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
        count.unwrap_or_else(|| panic!("no registers: {said}"))
    };
    for name in ["hash_probe", "mandelbrot", "collatz"] {
        let text = benchmark(&nvcc, name).0;
        let version = text.lines().find(|line| line.starts_with(".version")).expect("PTX has a version");
        let mut older = text.clone();
        if !version.starts_with(".version 8") {
            let (plain, polled) = (registers(&text), registers(&output(&text, Polls::Amortised).1));
            assert!(polled <= plain.max(32), "{name}: {plain} registers, {polled} with polls");
            older = text.replacen(version, ".version 8.8", 1);
        }
        // Older PTX can't say that the function keeps none for its callers.
        assert!(registers(&output(&older, Polls::Amortised).1) > 40, "{name}");
    }
}

/// A product that may be under way where a thread leaves has ptxas wait for each before the next (C7518).
#[test]
fn ptxas_keeps_products_of_warp_groups_under_way() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd2, %rd2, 1, 1, 1, 0, 0;";
    let body = format!(
        ".reg .f32 %f<4>; ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; mov.b64 %rd2, 0; mov.b32 %r1, 0; mov.f32 %f0, 0f00000000; \
         mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; wgmma.fence.sync.aligned; $L: {product} wgmma.commit_group.sync.aligned; \
         wgmma.wait_group.sync.aligned 1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L; wgmma.wait_group.sync.aligned 0; \
         st.global.v4.f32 [%rd1], {{%f0, %f1, %f2, %f3}}; ret;"
    );
    let (_, polled) = output(&known(&nvcc, &kernel(&body)).replace("sm_90", "sm_90a"), Polls::Amortised);
    // ptxas 12.4 does not say so.
    let is_asked = !nvcc.release.starts_with("12.");
    let waits = "\twgmma.wait_group.sync.aligned 0;\n\tbra.uni $__cuinstr_leaves;";
    for (text, is_serial) in [(polled.clone(), false), (polled.replace(waits, "\tbra.uni $__cuinstr_leaves;"), is_asked)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = folder.path().join("k.ptx");
        std::fs::write(&source, text).expect("a file");
        let words = ["-arch=sm_90a", "-v", "-o"];
        let ptxas = nvcc.path.with_file_name("ptxas");
        let done = process::run(Command::new(ptxas).args(words).arg(folder.path().join("k.cubin")).arg(source), Duration::from_secs(60));
        let done = done.expect("ptxas starts");
        assert!(done.success(), "{}", done.stderr);
        assert_eq!((done.stdout + &done.stderr).contains("C7518"), is_serial);
    }
}

#[test]
fn ptxas_takes_every_shape() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    for (_, text) in bodies() {
        loops(&nvcc, &output(&known(&nvcc, &text), Polls::Amortised).1, "k");
    }
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
