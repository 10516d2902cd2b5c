//! What a call hands on, and what the callee makes of it: a look whose function stops only for a reason that is none of zero.

use cuinstr::verify::report::Verdict;

/// A function that does not come back with a reason, under `trap`; and a kernel that calls it in each round once the flag says stop.
const STOP: &str = "\tld.param.u64 %rd1, [stop_0];\n\tld.param.u32 %r1, [stop_1];\n\tsetp.eq.s32 %p1, %r1, 0;\n\t@%p1 bra $D;\n\
    \tld.global.u32 %r2, [cuinstr_control_v1+4];\n\tsetp.ne.s32 %p2, %r2, 0;\n\t@%p2 bra $D;\n\ttrap;\n$D:\n\tret;";
const LOOK: &str = "$L:\n\tld.global.u64 %rd1, [cuinstr_control_v1+16];\n\tld.relaxed.sys.u32 %r1, [%rd1];\n\
    \tld.global.u32 %r2, [cuinstr_control_v1+8];\n\tsetp.eq.s32 %p1, %r1, %r2;\n\tselp.b32 %r3, 2, %r7, %p1;\n\tsetp.eq.s32 %p2, %r3, 0;\n\
    \t@%p2 bra $L;\n\t{\n\t.param .b64 param0;\n\tst.param.b64 [param0+0], 5;\n\t.param .b32 param1;\n\tst.param.b32 [param1+0], %r3;\n\
    \tcall.uni stop, (param0, param1);\n\t}\n\tbra $L;";

/// What is proved of the loop.
#[track_caller]
fn verdict(stop: &str, look: &str) -> Verdict {
    let text = crate::kernel(look).replace(
        ".visible .entry",
        &format!(
            ".func stop(\n\t.param .b64 stop_0,\n\t.param .b32 stop_1\n)\n{{\n\t.reg .pred %p<40>;\n\t.reg .b32 %r<40>;\n\
             \t.reg .b64 %rd<40>;\n{stop}\n}}\n.visible .entry"
        ),
    );
    let report = cuinstr::verify::verify_ptx(&text);
    assert!(report.faults.is_empty() && report.loops.len() == 1, "{report:#?}");
    report.loops[0].verdict.clone()
}

/// One of both texts with a change that is one.
fn changed(text: &str, from: &str, to: &str) -> String {
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text, "{from}");
    changed
}

#[test]
fn a_reason_that_is_not_zero_is_followed_into_the_function_that_stops() {
    assert_eq!(verdict(STOP, LOOK), Verdict::TrapOnly);
    // A number, another spelling of the types, results in front.
    assert_eq!(verdict(STOP, &changed(LOOK, "[param1+0], %r3", "[param1], 2")), Verdict::TrapOnly);
    assert_eq!(verdict(STOP, &changed(LOOK, "st.param.b32", "st.param.u32")), Verdict::TrapOnly);
    assert_eq!(verdict(&changed(STOP, "ld.param.u32", "ld.param.b32"), LOOK), Verdict::TrapOnly);
    // Without asking for the action the thread ends under `leave`, too.
    let ends = changed(STOP, "\tsetp.ne.s32 %p2, %r2, 0;\n\t@%p2 bra $D;\n\ttrap;", "\texit;");
    assert!(verdict(&ends, LOOK).holds());
}

#[test]
fn a_reason_that_may_be_zero_stops_nobody() {
    for (from, to) in [
        // Another register, one that has changed since, no number, zero.
        ("[param1+0], %r3", "[param1+0], %r7"),
        ("\tcall.uni", "\tmov.u32 %r3, %r8;\n\tcall.uni"),
        ("\tcall.uni", "\tnew.unknown.op %r8, %r3;\n\tcall.uni"),
        ("[param1+0], %r3", "[param1+0], 0"),
        ("[param1+0], %r3", "[param1+0], 0x100000000"),
        // There may be none, or what is asked is something else.
        ("2, %r7, %p1", "%r8, %r7, %p1"),
        ("\t@%p2 bra $L;\n", "\t@%p3 bra $L;\n"),
        // A part of the word, another word, a word that is written again, or may not be written.
        ("st.param.b32 [param1+0]", "st.param.b16 [param1+0]"),
        ("[param1+0]", "[param1+4]"),
        ("[param1+0]", "[param0+0]"),
        ("\tcall.uni", "\tst.param.b8 [param1+1], %r8;\n\tcall.uni"),
        ("\tcall.uni", "\tst.param.b32 [param1+0], %r8;\n\tcall.uni"),
        ("\tst.param.b32", "\t@%p4 st.param.b32"),
        ("\tst.param.b32 [param1+0], %r3", "\tst.param.v2.b32 [param1+0], {%r8, %r3}"),
        // Of another scope, of another block, to the other parameter.
        ("\tst.param.b32 [param1+0], %r3;\n", "\t{\n\t.param .b32 param1;\n\tst.param.b32 [param1+0], %r3;\n\t}\n"),
        ("\tcall.uni", "$M:\n\t@%p5 bra $M2;\n\tst.param.b32 [param1+0], %r8;\n$M2:\n\tcall.uni"),
        ("(param0, param1)", "(param1, param0)"),
        ("(param0, param1)", "(param0)"),
    ] {
        let verdict = verdict(STOP, &changed(LOOK, from, to));
        assert!(matches!(verdict, Verdict::NotPolled { .. }), "{from} → {to}: {verdict:?}");
    }
    for (from, to) in [
        // Another parameter, a part of one, one that is written, or lost.
        ("[stop_1]", "[stop_0]"),
        ("[stop_1]", "[stop_1+4]"),
        ("ld.param.u32", "ld.param.u16"),
        ("\tld.param.u32", "\tst.param.b32 [stop_1], 0;\n\tld.param.u32"),
        ("\tld.param.u32", "\tmov.b64 %rd2, stop_1;\n\tst.local.u32 [%rd2], 0;\n\tld.param.u32"),
        ("\tsetp.eq.s32", "\tmov.u32 %r1, %r9;\n\tsetp.eq.s32"),
        ("\tld.param.u32", "\t@%p7 ld.param.u32"),
        // Compared with something else.
        ("%r1, 0;", "%r1, 1;"),
        ("%r1, 0;", "%r1, %r9;"),
        ("%p2, %r2, 0", "%p2, %r2, 1"),
        ("\ttrap;", "\tbra $D;"),
    ] {
        let verdict = verdict(&changed(STOP, from, to), LOOK);
        assert!(matches!(verdict, Verdict::NotPolled { .. }), "{from} → {to}: {verdict:?}");
    }
}

/// A nest whose first rounds are free, and which then goes on an allowance, with a look that traps.
const FREE: &str = "\tmov.u32 %r10, 0;\n\tmov.u32 %r11, 1024;\n$L:\n\tadd.s32 %r10, %r10, 9;\n\tsetp.lt.u32 %p5, %r10, 1025;\n\t@%p5 bra $N;\n\
    \tsetp.gt.u32 %p6, %r11, 9;\n\t@%p6 bra $P;\n\
    \tld.global.u64 %rd1, [cuinstr_control_v1+16];\n\tld.relaxed.sys.u32 %r1, [%rd1];\n\tld.global.u32 %r2, [cuinstr_control_v1+8];\n\
    \tsetp.ne.s32 %p1, %r1, %r2;\n\t@%p1 bra $M;\n\tld.global.u32 %r3, [cuinstr_control_v1+4];\n\tsetp.ne.s32 %p2, %r3, 0;\n\t@%p2 bra $M;\n\ttrap;\n\
    $M:\n\tmov.u32 %r11, 1024;\n\tbra $N;\n$P:\n\tadd.s32 %r11, %r11, -9;\n$N:\n\tld.global.u32 %r12, [%rd2];\n\tsetp.ne.s32 %p9, %r12, 0;\n\t@%p9 bra $L;\n\tret;";

#[test]
fn free_rounds_are_told_from_those_that_trap() {
    let verdict = |body: &str| match &crate::verdicts(body)[..] {
        [verdict] => verdict.clone(),
        others => panic!("{others:?}"),
    };
    assert_eq!(verdict(FREE), Verdict::TrapOnly);
    for (from, to) in [
        // Rounds are free for ever, cost nothing, or give back what they cost.
        ("$N:\n", "$N:\n\tmov.u32 %r10, 0;\n"),
        ("%r10, 9", "%r10, 0"),
        ("%r11, -9", "%r11, 0"),
        ("%r11, -9", "%r11, 9"),
        ("$N:\n", "$N:\n\tadd.s32 %r11, %r11, 9;\n"),
        ("$N:\n", "$N:\n\tmov.u32 %r11, %r12;\n"),
        // Nobody traps.
        ("\ttrap;\n", ""),
        ("%p1, %r1, %r2", "%p1, %r1, %r4"),
        ("%p2, %r3, 0", "%p2, %r3, 1"),
    ] {
        let verdict = verdict(&changed(FREE, from, to));
        assert!(matches!(verdict, Verdict::NotPolled { .. }), "{from} → {to}: {verdict:?}");
    }
}

#[test]
fn marked_calls_are_needed_on_cycles_alone() {
    let mark =
        |site: u64| format!("\tmov.b64 %rd{site}, {site};\n\t{{\n\t.reg .b64 cuinstr_call;\n\tmov.b64 cuinstr_call, %rd{site};\n\t}}\n");
    let function = |name: &str, body: &str| {
        format!(".func {name}()\n{{\n\t.reg .pred %p<9>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<40>;\n{body}\tret;\n}}\n")
    };
    let module =
        |functions: &[String], kernel: &str| crate::kernel(kernel).replace(".visible .entry", &(functions.concat() + ".visible .entry"));
    let calls = |text: &str| {
        let report = cuinstr::verify::verify_ptx(text);
        assert_eq!(report.faults, []);
        report.calls().map(|(all, needed)| (Vec::from_iter(all), Vec::from_iter(needed)))
    };
    let jump = "\t@%p1 bra $L;\n";
    // One that calls itself, what it calls, and one that is only called in a loop that ends.
    let functions = [
        function("leaf", &mark(2)),
        function("own", &format!("{}\tcall.uni own, ();\n\tcall.uni leaf, ();\n", mark(1))),
        function("other", &mark(3)),
    ];
    let counted = "\tmov.u32 %r1, 0;\n$L:\n\tcall.uni other, ();\n\tadd.s32 %r1, %r1, 1;\n\tsetp.lt.u32 %p1, %r1, 9;\n";
    let kernel = format!("{}\tcall.uni own, ();\n{counted}{jump}\tret;", mark(4));
    let text = module(&functions, &kernel);
    assert_eq!(calls(&text), Some((vec![1, 2, 3, 4], vec![1, 2])));
    // In a loop without a poll, as of a call that has become one, and in what that calls; behind a poll, nothing.
    let open = |inside: &str| format!("{}$L:\n{inside}{}{jump}\tret;", mark(6), mark(5));
    assert_eq!(calls(&module(&functions[2..], &open("\tcall.uni other, ();\n"))), Some((vec![3, 5, 6], vec![3, 5])));
    assert_eq!(calls(&module(&[], &open(&crate::poll(1)))), Some((vec![5, 6], vec![])));
    // Of no number, of one that is written again, out of sight.
    for (from, to) in [
        ("mov.b64 %rd4, 4", "mov.b64 %rd4, %rd5"),
        ("mov.b64 %rd4, 4;", "mov.b64 %rd4, 4;\n\tadd.s64 %rd4, %rd4, 1;"),
        ("call.uni other", "call.uni far"),
    ] {
        assert_eq!(calls(&changed(&text, from, to)), None, "{from}");
    }
    // Each calls the next twice: no cycle, and no end.
    let doubles: Vec<String> = (0..30)
        .map(|depth| {
            let next = if depth == 0 { mark(7) } else { format!("\tcall.uni f{}, ();\n", depth - 1).repeat(2) };
            function(&format!("f{depth}"), &next)
        })
        .collect();
    assert_eq!(calls(&module(&doubles, "\tcall.uni f9, ();\n\tret;")), None);
    assert_eq!(calls(&module(&doubles[..10], "\tcall.uni f9, ();\n\tret;")), Some((vec![7], vec![])));
}
