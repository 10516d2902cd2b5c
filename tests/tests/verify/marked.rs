//! Marked calls: which calls of a module need a poll.

/// A text with a change.
fn changed(text: &str, from: &str, to: &str) -> String {
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text, "{from}");
    changed
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
