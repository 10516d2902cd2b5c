//! Units that are linked into one program.

use cuinstr::verify::report::Verdict;
use cuinstr::verify::{Program, verify_ptx};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn unit(functions: &str) -> cuinstr::verify::Report {
    let report = verify_ptx(&format!("{HEAD}{functions}"));
    assert_eq!(report.faults, []);
    report
}

fn program(units: &[&str]) -> Program {
    let mut program = Program::default();
    for text in units {
        program.add(&unit(text));
    }
    program
}

/// A function whose loop runs so often, and calls another each time.
fn calls(name: &str, times: u32, callee: &str) -> String {
    format!(
        ".visible .func {name}()\n{{\n.reg .b32 %r<2>; .reg .pred %p<2>;\nmov.u32 %r1, 0;\n$L:\n{callee}add.u32 %r1, %r1, 1;\n\
         setp.lt.u32 %p1, %r1, {times};\n@%p1 bra $L;\nret;\n}}\n"
    )
}

#[test]
fn a_call_leads_to_another_unit_of_the_program() {
    let outside = calls("f", 10, "call g;\n");
    assert_eq!(unit(&outside).unknown.len(), 1);
    let linked = program(&[&outside, &calls("g", 10, "")]);
    assert!(linked.defines("g") && !linked.defines("h"));
    assert_eq!(linked.findings(), []);
}

#[test]
fn weights_multiply_across_units_and_cycles_are_found() {
    let far = program(&[&calls("f", 60_000, "call g;\n"), &calls("g", 60_000, "")]);
    let [found] = &far.findings()[..] else { panic!("{:#?}", far.findings()) };
    assert!(found.function == "f" && matches!(found.verdict, Verdict::TooMany { rounds: 3_600_000_000.., .. }), "{found:#?}");
    let round = program(&[&calls("f", 2, "call g;\n"), &calls("g", 2, "call f;\n")]);
    let found = round.findings();
    assert!(found.iter().any(|found| found.recursion && !found.verdict.holds()), "{found:#?}");
}
