//! Cycles with several ways in: with polls they have one, in PTX and in machine code.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr::diagnostic::Code;
use cuinstr::options::{Limits, Options, Polls};
use cuinstr::verify::verify_ptx;
use cuinstr::{Rewrite, rewrite_ptx};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::random::Random;
use cuinstr_harness::sass;
use cuinstr_ptx::Graph;
use cuinstr_trial::or_ignore;
use std::fmt::Write as _;

fn kernel(body: &str) -> String {
    let registers = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;";
    let loads = "ld.param.u64 %rd1, [k_0]; ld.param.u32 %r2, [k_1]; mov.u32 %r3, %tid.x; mov.b32 %r1, 0;";
    let head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_0, .param .u32 k_1)\n";
    format!("{head}{{\n{registers}\n{loads}\n{body}\nst.global.u32 [%rd1], %r1; ret;\n}}\n")
}

/// Forms of polls.
fn forms() -> [Options; 3] {
    let options = Options { path: "a.ptx".to_owned(), ..Options::default() };
    let limits = Limits { timeout_ns: Some(1 << 30), ..Limits::default() };
    [options.clone(), Options { polls: Polls::Each, ..options.clone() }, Options { limits, ..options }]
}

fn polled(text: &str, options: &Options) -> (Rewrite, String) {
    let rewrite = rewrite_ptx(text.as_bytes(), options);
    let output = String::from_utf8(rewrite.output.clone().unwrap_or_default()).expect("it is text");
    assert!(!output.is_empty(), "{:?}\n{text}", rewrite.diagnostics);
    assert_eq!(rewrite.original().as_deref(), Some(text.as_bytes()));
    (rewrite, output)
}

/// Back edges of a text's functions whose cycles need not be entered where they lead to.
fn several_ways_in(text: &str) -> usize {
    let module = cuinstr_ptx::parse(text);
    assert!(module.faults.is_empty(), "{:?}\n{text}", module.faults);
    let mut found = 0;
    for graph in module.functions.iter().map(Graph::new) {
        let place = graph.reverse_postorder();
        let reaches = |block: u32, without: u32| {
            let (mut seen, mut work) = (vec![false; graph.blocks.len()], vec![0]);
            seen[without as usize] = true;
            while let Some(at) = work.pop() {
                if !std::mem::replace(&mut seen[at as usize], true) {
                    work.extend(graph.edges(at).map(|edge| edge.to));
                }
            }
            block != without && seen[block as usize]
        };
        for from in (0..graph.blocks.len() as u32).filter(|from| place[*from as usize] != u32::MAX) {
            let back = graph.edges(from).filter(|edge| place[edge.to as usize] <= place[from as usize]);
            found += back.filter(|edge| reaches(from, edge.to)).count();
        }
    }
    found
}

/// Kernels whose counter, the second parameter, goes down in each round.
fn cycles() -> Vec<(&'static str, String)> {
    let entry = "and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0;";
    let load = "add.u64 %rd2, %rd1, 64; ld.volatile.global.u32 %r5, [%rd2]; add.s32 %r1, %r1, %r5;";
    let counts = "add.s32 %r2, %r2, -1; setp.gt.s32 %p2, %r2, 0;";
    let leaves = "and.b32 %r6, %r1, 63; setp.eq.u32 %p3, %r6, 5; @%p3 exit;";
    let inner = "mov.b32 %r7, 0; $I: add.s32 %r1, %r1, %r7; add.s32 %r7, %r7, 1; setp.lt.u32 %p4, %r7, %r3; @%p4 bra $I;";
    [
        ("a load", format!("{entry} @%p1 bra $B; $A: {load} $B: add.s32 %r1, %r1, 3; {counts} @%p2 bra $A;")),
        ("a load and an exit", format!("{entry} @%p1 bra $B; $A: {load} $B: {leaves} {counts} @%p2 bra $A;")),
        ("a loop inside", format!("{entry} @%p1 bra $B; $A: {load} $B: {inner} {counts} @%p2 bra $A;")),
        ("a loop at an entry", format!("{entry} @!%p1 bra.uni $B; $A: {load} $B:{counts} setp.eq.u32 %p4, %r2, 9; @%p4 bra $B; @%p2 bra $A;")),
        ("in a loop", format!("$O: {entry} @%p1 bra $B;$A: {load} $B: {counts} @%p2 bra $A; setp.ne.s32 %p3, %r1, 7; @%p3 bra $O;")),
        ("out of a loop", format!("$O: {load} setp.eq.s32 %p1, %r5, 1; @%p1 bra $B; setp.eq.s32 %p4, %r5, 2; @%p4 bra $O; $A: {load} $B: {counts} @%p2 bra $A;")),
        ("in another one", format!("{entry} @%p1 bra $B; $A: @%p5 bra $D; $C: {load} $D: {counts} @%p2 bra $C; $B: {leaves} setp.ne.s32 %p6, %r1, 9; @%p6 bra $A;")),
        ("three ways in", format!("{entry} @%p1 bra $B; @%p5 bra $C; $A: {load} $B: {leaves} $C: {counts} @%p2 bra $A; @%p6 bra $B;")),
        (
            "by a table",
            format!("$T: .branchtargets $L<2>, $X, $L1; @%p7 brx.idx.uni %r3, $T; $L0: {load} $L1: {leaves} {counts} @%p2 brx.idx %r1, $T; @%p6 bra $L0; $X:"),
        ),
        (
            "in a nest from -n to n",
            format!("neg.s32 %r8, %r2; mov.b32 %r9, %r8; $O: mov.b32 %r10, %r8; $N: @%p1 bra $B; $A: {load} $B: setp.eq.s32 %p2, %r5, 1; @%p2 bra $A; \
                     add.s32 %r10, %r10, 1; setp.le.s32 %p3, %r10, %r2; @%p3 bra $N; add.s32 %r9, %r9, 1; setp.le.s32 %p4, %r9, %r2; @%p4 bra $O;"),
        ),
    ]
    .map(|(name, body)| (name, kernel(&body)))
    .into()
}

#[test]
fn a_cycle_with_several_ways_in_gets_one() {
    for (name, text) in cycles() {
        assert!(several_ways_in(&text) > 0, "{name}");
        for options in forms() {
            let (rewrite, output) = polled(&text, &options);
            assert_eq!(several_ways_in(&output), 0, "{name}\n{output}");
            let report = verify_ptx(&output);
            assert!(report.holds(), "{name}: {:?}\n{output}", report.loops);
            assert!(rewrite.diagnostics.iter().all(|one| one.code != Code::SeveralWaysIn), "{name}");
        }
    }
}

/// The function's beginning is one of the ways in.
#[test]
fn a_function_may_begin_with_such_a_cycle() {
    let body = "$A: add.s32 %r1, %r1, 1; @%p1 bra $C; $B: @%p2 bra $A; ret; $C: @%p3 bra $B; @%p4 bra $D; bra $A; $D: ret;";
    let cycle = "$A:@%p1 bra $C;$B:@%p2 bra $E;bra $B;$E:@%p3 bra $C;ret;$C:@%p4 bra $B;@%p5 bra $A;ret;";
    for (body, blank) in [(body, ""), (body, " "), (cycle, "")] {
        let registers = ".reg .pred %p<9>; .reg .b32 %r<9>;";
        let head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n";
        let text = format!("{head}{{{registers}{blank}{body}}}\n");
        for options in forms() {
            let (_, output) = polled(&text, &options);
            assert!(several_ways_in(&output) == 0 && verify_ptx(&output).holds(), "{text}\n{output}");
        }
    }
}

/// Blocks that lead anywhere.
fn random(random: &mut Random) -> String {
    let count = 3 + random.below(8);
    let mut body = String::new();
    let table: Vec<String> = (0..2 + random.below(3)).map(|_| format!("$L{}", random.below(count))).collect();
    let _ = write!(body, "$T: .branchtargets {}, $L<2>, $X;", table.join(", "));
    for block in 0..count {
        let (p, to) = (1 + random.below(8), random.below(count));
        let blank = random.of(&["", " ", "\n\t"]);
        let _ = write!(body, "{blank}$L{block}:{blank}add.s32 %r1, %r1, {block};{blank}");
        let _ = match random.below(12) {
            0..6 => write!(body, "@%p{p} bra $L{to};"),
            6 | 7 => write!(body, "@!%p{p} bra $L{to};{blank}bra.uni $L{};", random.below(count)),
            8 => write!(body, "bra $L{to};"),
            9 => write!(body, "@%p{p} bra $X;"),
            10 if random.percent(30) => write!(body, "brx.idx %r1, $T;"),
            10 if random.percent(50) => write!(body, "@%p{p} brx.idx %r1, $T;"),
            _ => Ok(()),
        };
    }
    kernel(&format!("{body} $X:"))
}

#[test]
fn no_graph_has_a_cycle_with_several_ways_in_once_it_has_polls() {
    let (mut irreducible, mut dice) = (0, Random::new(26));
    for nth in 0..600 {
        let text = random(&mut dice);
        irreducible += usize::from(several_ways_in(&text) > 0);
        let (_, output) = polled(&text, &forms()[nth % 3]);
        assert_eq!(several_ways_in(&output), 0, "{nth}: {text}\n{output}");
        // Where no loop counts, the proof does not depend on what is known of predicates.
        assert!(nth % 3 != 1 || verify_ptx(&output).holds(), "{nth}: {text}\n{output}");
    }
    assert!(irreducible > 200, "{irreducible}");
}

/// A label between braces is seen nowhere else.
#[test]
fn what_can_not_be_joined_is_told() {
    let text = kernel("@%p1 bra $A; $O: { $B: add.s32 %r1, %r1, 1; @%p2 bra $B; } $A: @%p3 bra $O;");
    let options = Options { strict: true, ..forms()[0].clone() };
    for (text, is_told) in [(text.clone(), true), (text.replace("{ $B:", "$B: {"), false)] {
        let (rewrite, output) = polled(&text, &forms()[0]);
        let told = rewrite.diagnostics.iter().filter(|one| one.code == Code::SeveralWaysIn).count();
        assert_eq!((told, several_ways_in(&output) > 0), (usize::from(is_told), is_told), "{output}");
        assert!(verify_ptx(&output).holds());
        assert_eq!(rewrite_ptx(text.as_bytes(), &options).output.is_none(), is_told);
    }
}

/// ptxas takes a value that all threads of a warp count alike for the warp's own, and goes wrong where threads come into the cycle apart.
#[test]
fn ptxas_sees_one_way_into_each_cycle() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let mut plain = 0;
    for (name, text) in cycles() {
        plain += assembled(&nvcc, &text).irreducible;
        for options in forms() {
            assert_eq!(assembled(&nvcc, &polled(&text, &options).1).irreducible, 0, "{name}");
        }
    }
    assert!(plain > 0, "ptxas copies each of them");
}

fn assembled(nvcc: &Nvcc, text: &str) -> sass::Code {
    sass::assemble(nvcc, text, "k").unwrap_or_else(|why| panic!("{why}"))
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
