//! What the report says of cycles of calls, and of callees that are out of sight.

use crate::{kernel, poll};
use cuinstr::verify::{Report, verify_ptx};

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
