//! The PTX pass: every cycle of every shape is polled, which the proof confirms, and nothing else changes.

#[macro_use]
extern crate cuinstr_trial;

mod machine_code;

use cuinstr::diagnostic::{Code, Severity};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr::site::{Form, Kind};
use cuinstr::verify::verify_ptx;
use cuinstr::{Rewrite, rewrite_ptx};
use std::fmt::Write as _;

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

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
