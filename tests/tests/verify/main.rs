//! `cuinstr::verify` on PTX written by hand (`files`) and by chance. What compilers make goes through it in `compile`.

mod abi;
mod call_graphs;
mod calls;
mod corpus;
mod files;
mod functions;
mod graphs;
mod injected;
mod input;
mod marked;
mod mutated;
mod program;
mod record;
mod removed;
mod samples;

use cuinstr::verify::{Report, verify_ptx};

/// A module with one kernel whose body this is. `%p`, `%r`, `%rs` and `%rd` are declared, and the control block is.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 cuinstr_control_v1[1192];\n\
         .visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n\t.reg .pred %p<40>;\n\t.reg .b16 %rs<20>;\n\t.reg .b32 %r<40>;\n\t.reg .b64 %rd<40>;\n{body}\n}}\n"
    )
}

/// The report on a kernel of that body, which must be PTX that can be read.
fn report(body: &str) -> Report {
    let report = verify_ptx(&kernel(body));
    assert_eq!(report.faults, [], "{body}");
    report
}

/// A poll with these numbers on its labels and registers: if the flag holds the launch's number, the thread leaves.
fn poll(number: usize) -> String {
    format!(
        "\tld.global.u64 %rd30, [cuinstr_control_v1+16];\n\tld.relaxed.sys.u32 %r30, [%rd30];\n\tld.global.u32 %r31, [cuinstr_control_v1+8];\n\
         \tsetp.ne.s32 %p30, %r30, %r31;\n\t@%p30 bra $P{number};\n\texit;\n$P{number}:\n"
    )
}
