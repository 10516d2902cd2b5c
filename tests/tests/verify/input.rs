//! Input that is cut short, foreign, newer than known, or large.

use crate::{kernel, poll};
use cuinstr::options::Options;
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures;
use cuinstr_harness::process::processor_time;
use shapes::{SHAPES, Shape};
use std::fmt::Write;
use std::fs;
use std::time::Duration;

#[path = "../../../instrument/verify/examples/bench_verify/shapes.rs"]
mod shapes;

#[test]
fn what_is_no_ptx_is_a_fault() {
    for text in [
        "",
        "hello",
        "\u{7f}ELF\u{0}\u{1}",
        "#include <cuda.h>\n__global__ void k() { for (;;); }\n",
        ".version",
        "}}}}",
        ".entry k() { $L: bra $L; }",
    ] {
        assert!(!verify_ptx(text).holds(), "{text}");
    }
}

#[test]
fn a_text_that_is_cut_anywhere_is_never_proved_and_never_a_panic() {
    let whole = kernel(&format!("$L:\n{}\t@%p5 bra $L;\n\tret;", poll(1)));
    assert!(verify_ptx(&whole).holds());
    let begins = whole.find("$L:").expect("the loop is there");
    for end in 0..whole.trim_end().len() {
        let report = verify_ptx(&whole[..end]);
        assert!(end < begins || !report.holds(), "{}", &whole[..end]);
    }
}

#[test]
fn labels_that_are_not_there_and_stray_bytes_are_faults() {
    for body in ["\tbra $Nowhere;", "\tbrx.idx %r1, $Nowhere;", "\t@%p1 bra;", "\t)\n", "\t{\n$In:\n\tnop;\n\t}\n\tbra $In;"] {
        let report = verify_ptx(&kernel(body));
        assert!(!report.faults.is_empty() && !report.holds(), "{body}");
    }
}

#[test]
fn instructions_of_a_newer_isa_do_not_disturb_the_graph() {
    let body = format!(
        "\tfuture.op.x7::y {{%r1, %r2}}, [%rd1 + 16], {{%r3, _}}, 0f3F800000;\n$L:\n\t@%p3 warp.teleport.sync %r1|%p2, %r4, {{%rd2}};\n{}\tbra $L;",
        poll(1)
    );
    let text = kernel(&body).replace(".version 9.0", ".version 99.7").replace("sm_90", "sm_999a");
    assert!(verify_ptx(&text).holds(), "{:#?}", verify_ptx(&text));
    assert!(!verify_ptx(&text.replace("setp.ne.s32", "setp.eq.s32")).holds());
}

/// Processor time that the proof takes for so many blocks.
fn cost(name: &str, block: Shape, count: usize) -> Duration {
    let mut body = String::new();
    for at in 0..count {
        block(&mut body, at);
    }
    let _ = write!(body, "$B{count}:\n\tret;");
    let text = kernel(&body);
    let begun = processor_time();
    let report = verify_ptx(&text);
    let took = processor_time().saturating_sub(begun);
    assert_eq!(report.holds(), name == "a chain", "{name}");
    took
}

/// Many blocks, in shapes that are bad for a proof that looks at each more than a few times.
#[test]
fn many_blocks_take_no_longer_than_their_number() {
    for (name, block) in SHAPES {
        // Eight times as many take about ten times as long, and where each looked at all others, sixty-four times.
        let (few, many) = (cost(name, block, 400), cost(name, block, 3_200));
        // The system counts in ticks of some milliseconds.
        assert!(many < 30 * few.max(Duration::from_millis(20)), "{name}: {few:?}, and eight times as many blocks {many:?}");
    }
}

/// Processor time for a loop whose bound is a sum of so many, each of the one before with itself, behind more blocks than are walked for a value.
fn cost_of_sums(count: usize) -> Duration {
    let mut body = "ld.global.u32 %r1, [%rd1];\n".to_owned();
    for at in 0..3_000 {
        let _ = writeln!(body, "setp.eq.u32 %p1, %r2, {at};\n@%p1 bra $F{at};\nadd.u32 %r2, %r2, 1;\n$F{at}:");
    }
    body.push_str(&"mad.lo.u32 %r1, %r1, %r1, %r1;\n".repeat(count));
    body.push_str("mov.u32 %r3, 0;\n$L:\nadd.u32 %r3, %r3, 1;\nsetp.ne.u32 %p1, %r3, %r1;\n@%p1 bra $L;\nret;\n");
    let begun = processor_time();
    assert!(!verify_ptx(&kernel(&body)).holds());
    processor_time().saturating_sub(begun)
}

#[test]
fn operands_that_meet_again_are_looked_at_once() {
    let (few, many) = (cost_of_sums(1), cost_of_sums(14));
    assert!(many < 10 * few.max(Duration::from_millis(20)), "one sum {few:?}, fourteen {many:?}");
}

/// A kernel with so many loops in one that asks its own way, by fours or so within others. Each ends at one of so many registers, which are all kept.
fn many_loops(loops: usize, ends: usize, inside: usize) -> String {
    let mut body = String::from(".reg .b32 %i, %j;\n");
    let _ = writeln!(body, ".reg .b32 %e<{ends}>;");
    for at in 0..ends {
        let _ = writeln!(body, "ld.global.u32 %e{at}, [%rd1+{}];", 4 * at);
    }
    body.push_str("$Outer:\n");
    for at in 0..loops {
        let end = at % ends;
        if at % inside == 0 {
            let _ = writeln!(body, "mov.u32 %j, 0;\n$M{at}:");
        }
        let _ = writeln!(body, "mov.u32 %i, 0;\n$L{at}:\nst.global.u32 [%rd2], %i;\nadd.u32 %i, %i, 1;");
        let _ = writeln!(body, "setp.lt.u32 %p1, %i, %e{end};\n@%p1 bra $L{at};");
        if at % inside == inside - 1 {
            let _ = writeln!(body, "add.u32 %j, %j, 1;\nsetp.lt.u32 %p1, %j, %e{end};\n@%p1 bra $M{};", at + 1 - inside);
        }
    }
    body.push_str("ld.volatile.global.u32 %r1, [%rd2];\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra $Outer;\nret;");
    kernel(&body).replace(".global .align 8 .b8 cuinstr_control_v1[1192];\n", "")
}

/// The first needs registers without sums, the second more looks, since most before were worth them.
#[test]
fn loops_of_a_large_set_that_has_polls_are_proved() {
    for (loops, ends, inside) in [(100, 10, 4), (200, 100, 4)] {
        let output = rewrite_ptx(many_loops(loops, ends, inside).as_bytes(), &Options::default()).output.expect("polls are put in");
        let report = verify_ptx(&String::from_utf8(output).expect("it is text"));
        assert!(report.holds(), "{loops} loops, {ends} ends");
    }
}

#[test]
fn more_than_a_thousand_loops_are_paid_for_together() {
    let text = fs::read_to_string(fixtures::workspace().join("tests/data/ptx/proof/strips_within_strips.ptx")).expect("it is there");
    let mut more = String::new();
    for at in 0..1_100 {
        let _ = writeln!(more, "mov.u32 %r20, 0;\n$T{at}:\nadd.u32 %r20, %r20, 1;\nsetp.ne.u32 %p8, %r20, 3;\n@%p8 bra $T{at};");
    }
    assert!(verify_ptx(&text.replace("\tbra $A;\n", &format!("{more}\tbra $A;\n"))).holds());
}

/// The findings of a kernel that makes an address in front of 5,000 blocks, and stores by it behind them.
fn stored_far_behind(before: &str, amid: &str, store: &str) -> bool {
    let mut body = format!("{before}\n");
    for at in 0..2_500 {
        let _ = writeln!(body, "setp.eq.u32 %p1, %r2, {at};\n@%p1 bra $F{at};\nadd.u32 %r2, %r2, 1;\n$F{at}:");
    }
    let _ = write!(body, "@%p2 bra $G;\n{amid}\n$G:\n{store}\nret;");
    verify_ptx(&kernel(&body)).holds()
}

#[test]
fn stores_far_behind_what_their_addresses_are_made_of_are_judged() {
    let address = "mov.u64 %rd1, cuinstr_control_v1;\nmov.u64 %rd2, k_other;\nadd.u64 %rd3, %rd1, 32;";
    let holds = |amid: &str, store: &str| stored_far_behind(address, amid, store);
    assert!(holds("", "st.global.u64 [%rd3], %rd9;"));
    assert!(holds("", "st.global.u64 [%rd1+32], %rd9;"));
    assert!(holds("mov.u64 %rd2, %rd9;", "st.global.u64 [%rd2], %rd9;"));
    assert!(!holds("", "st.global.u64 [%rd1+16], %rd9;"));
    assert!(!holds("", "st.global.u64 [%rd3+8], %rd9;"));
    assert!(!holds("add.u64 %rd3, %rd3, 8;", "st.global.u64 [%rd3], %rd9;"));
    assert!(!holds("mov.u64 %rd2, %rd1;", "st.global.u64 [%rd2], %rd9;"));
    assert!(!holds("mov.u64 %rd2, %rd1;\nmov.u64 %rd4, %rd2;", "st.global.u64 [%rd4+16], %rd9;"));
}

#[test]
fn deep_chains_of_scopes_calls_and_expressions_are_no_deep_recursion() {
    let depth = 100_000;
    let scopes = format!("{}$L:\n\tbra $L;\n{}", "{\n".repeat(depth), "}\n".repeat(depth));
    assert!(!verify_ptx(&kernel(&scopes)).holds());
    let mut text = String::from(".version 9.0\n.target sm_90\n");
    for at in 0..depth {
        let _ = write!(text, ".func f{at}()\n{{\n$L:\n\tcall f{}, ();\n\tbra $L;\n}}\n", at + 1);
    }
    let _ = write!(text, ".func f{depth}()\n{{\n\tret;\n}}\n");
    assert!(!verify_ptx(&text).holds());
}

#[test]
fn a_loop_that_needs_sums_is_proved_in_a_set_of_any_size() {
    // Its end is its start and a number. In 2,000 blocks and more, sums are followed for loops alone that nothing else has proved.
    for blocks in [0, 200, 2_000] {
        let inner = "\tld.global.u32 %r1, [%rd9];\n\tld.global.u32 %r2, [%rd9];\n\tand.b32 %r3, %r1, 8191;\n\tadd.s32 %r3, %r3, 1;\n\tadd.s32 %r4, %r2, %r3;\n\
                     $I:\n\tadd.s32 %r2, %r2, 1;\n\tsetp.ne.s32 %p4, %r2, %r4;\n\t@%p4 bra $I;\n";
        let text = kernel(&format!("$O:\n{}{inner}{}\tbra $O;", poll(1), "\t@%p9 bra $O;\n".repeat(blocks)));
        assert!(verify_ptx(&text).holds(), "{blocks}");
        assert!(!verify_ptx(&text.replace("%r2, 1;", "%r2, 2;")).holds(), "{blocks}");
    }
}
