//! What the report says of cycles of calls, and of callees that are out of sight.

use crate::{kernel, poll};
use cuinstr::verify::{Report, verify_ptx};
use std::fmt::Write as _;

/// The report on a kernel that calls `f`, and on `f` with this body.
fn check(kernel_body: &str, body: &str) -> Report {
    let function = format!(".func f()\n{{\n\t.reg .pred %p<40>;\n\t.reg .b32 %r<40>;\n\t.reg .b64 %rd<40>;\n{body}\tret;\n}}\n");
    let report = verify_ptx(&kernel(kernel_body).replace(".visible .entry", &(function + ".visible .entry")));
    assert_eq!(report.faults, []);
    report
}

#[test]
fn a_cycle_of_calls_is_listed_with_its_kernels() {
    let report = check("\tcall.uni f, ();\n\tret;", &format!("{}\t@%p7 bra $R;\n\tcall.uni f, ();\n$R:\n", poll(1)));
    assert!(report.holds() && report.loops[0].recursion, "{report:#?}");
    assert_eq!(report.loops[0].kernels, ["k"]);
}

#[test]
fn a_callee_that_is_out_of_sight_is_named() {
    let report = check("\tcall.uni elsewhere, ();\n\tret;", "");
    assert_eq!(report.unknown.iter().map(|call| call.callee.as_str()).collect::<Vec<_>>(), ["elsewhere"]);
    assert!(!report.holds());
}

/// The text of a function that asks, and then returns.
fn asks(number: usize) -> String {
    let registers = ".reg .pred %p<40>;\n\t.reg .b32 %r<40>;\n\t.reg .b64 %rd<40>;";
    format!(".func f{number}()\n{{\n\t{registers}\n{}\tret;\n}}\n", poll(1))
}

/// The report on a kernel of that body with these functions in front of it.
fn behind(functions: &str, body: &str) -> Report {
    let report = verify_ptx(&kernel(body).replace(".visible .entry", &format!("{functions}.visible .entry")));
    assert_eq!(report.faults, []);
    report
}

/// A kernel that calls a function for ever. That calls another one, and so on: the last of so many asks.
fn chain(functions: usize) -> Report {
    let mut text = String::new();
    for number in 0..functions {
        let _ = writeln!(text, ".func f{number}();");
    }
    for number in 1..functions {
        let _ = writeln!(text, ".func f{number}()\n{{\n\tcall.uni f{}, ();\n\tret;\n}}", number - 1);
    }
    behind(&(text + &asks(0)), &format!("$L:\n\tcall.uni f{}, ();\n\tbra $L;", functions - 1))
}

#[test]
fn calls_are_followed_32_deep() {
    assert!(chain(32).holds() && !chain(33).holds());
}

#[test]
fn any_number_of_functions_may_be_asked_about_one_after_the_other() {
    let (mut functions, mut loops) = (String::new(), String::new());
    for number in 0..40 {
        functions.push_str(&asks(number));
        let _ = writeln!(loops, "$L{number}:\n\tcall.uni f{number}, ();\n\t@%p7 bra $L{number};");
    }
    let report = behind(&functions, &(loops + "\tret;"));
    assert!(report.holds() && report.loops.len() == 40, "{report:#?}");
}
