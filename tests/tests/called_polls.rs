//! Functions with many loops: their polls are calls of one function.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::options::{Limits, Options, PollGap};
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_differential::simulated::run;
use cuinstr_harness::header::{Header, Place};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::sass;
use cuinstr_trial::or_ignore;
use std::fmt::Write as _;

/// How a poll calls.
const CALL: &str = "call (__cuinstr_fresh), __cuinstr_poll, (__cuinstr_site, __cuinstr_keeps, __cuinstr_has);";

/// A kernel with so many loops behind each other, of 20 statements each. Each third one has no bound that is known.
fn kernel(loops: usize) -> String {
    let mut text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u32 a, .param .u32 b)\n{\n\
                    .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<3>;\nld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.u32 %r2, [b]; mov.u32 %r5, 1;\n"
        .to_owned();
    for nth in 0..loops {
        let _ = writeln!(text, "mov.u32 %r3, %r1;\n$L{nth}:");
        for step in 0..17 {
            let _ = writeln!(text, "\tmad.lo.s32 %r5, %r5, {}, %r3;", 2 * step + nth + 3);
        }
        let _ = match nth % 3 {
            0 => writeln!(text, "\tadd.s32 %r3, %r3, 1; mul.lo.s32 %r7, %r3, %r3; setp.lt.s32 %p1, %r7, %r2; @%p1 bra $L{nth};"),
            _ => writeln!(text, "\tadd.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra $L{nth};"),
        };
    }
    text + "st.global.u32 [%rd1], %r5;\nret;\n}\n"
}

fn polled(text: &str, options: &Options) -> String {
    let rewrite = rewrite_ptx(text.as_bytes(), options);
    String::from_utf8(rewrite.output.unwrap_or_else(|| panic!("{:?}\n{text}", rewrite.diagnostics))).expect("it is text")
}

fn options() -> Options {
    Options { path: "many.ptx".to_owned(), ..Options::default() }
}

#[test]
fn each_poll_of_a_function_with_many_loops_is_a_call() {
    let calls = |loops: usize, options: &Options| {
        let text = polled(&kernel(loops), options);
        let functions = text.matches(") __cuinstr_poll(").count();
        let calls = text.matches(CALL).count();
        assert!(verify_ptx(&text).holds(), "{text}");
        (functions, calls)
    };
    assert_eq!(calls(40, &options()), (1, 40));
    // Such a function has many statements, too.
    assert_eq!(calls(11, &options()), (0, 0));
    assert_eq!(calls(20, &options()), (0, 0));
    // What limits count from stands in each function.
    let limits = Limits { timeout_ns: Some(1_000_000), ..Limits::default() };
    assert_eq!(calls(40, &Options { limits, ..options() }), (0, 0));
}

#[test]
fn the_proof_objects_without_any_of_these_calls() {
    let text = polled(&kernel(40), &options());
    let calls: Vec<usize> = text.match_indices(CALL).map(|(at, _)| at).collect();
    for at in calls {
        let without = format!("{}{}", &text[..at], &text[at + CALL.len()..]);
        let open = verify_ptx(&without).loops.iter().filter(|found| !found.verdict.holds()).count();
        assert_eq!(open, 1, "{at}");
    }
}

#[test]
fn what_they_give_back_is_clamped() {
    let text = polled(&kernel(40), &options()).replace("min.u32 %__cuinstr_left, %__cuinstr_left, 8192;", "");
    assert!(!verify_ptx(&text).holds());
}

#[test]
fn the_kernel_does_the_same() {
    let text = kernel(40);
    let gaps = [None, Some(2_000)].map(|gap| match gap {
        Some(gap) => Options { poll_gap: PollGap::from_nanoseconds(gap).expect("a gap within the range"), ..options() },
        None => options(),
    });
    for (a, b) in [(0, 9), (3, 90), (7, 2), (-40, 400)] {
        let header = format!(
            "//@ about: loops\n//@ entry: k\n//@ grid: 1\n//@ block: 1\n//@ arg: u32[1] zero\n//@ arg: i32 {a}\n//@ arg: i32 {b}\n"
        );
        let header = Header::parse(&header, Place::Kernel).expect("a header");
        let left = |text: &str| run(text, &header, 1, 4_000_000).unwrap_or_else(|why| panic!("{why}"));
        let before = left(&text);
        for options in &gaps {
            let after = left(&polled(&text, options));
            assert_eq!((&after.outcome, &after.buffers), (&before.outcome, &before.buffers), "{a} {b}");
        }
    }
}

#[test]
fn ptxas_takes_them() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let text = polled(&kernel(40), &options());
    sass::assemble(&nvcc, &text, "k").unwrap_or_else(|why| panic!("{why}\n{text}"));
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
