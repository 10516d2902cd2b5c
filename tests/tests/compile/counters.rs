//! Plain loops as anybody writes them, rewritten: each is proved to be polled, whatever its counter's type and step are, and however many of them one
//! kernel holds.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::Unit;
use std::fmt::Write as _;

/// A kernel with seventeen loops.
const LARGE: &str = include_str!("../../data/large_kernel.cu");

const TYPES: [&str; 4] = ["int", "unsigned", "long long", "size_t"];
/// What stands between the counter and its bound, and in front of the `=` of its step.
const ORDERS: [(&str, char); 4] = [("<", '+'), ("<=", '+'), (">", '-'), (">=", '-')];
const STEPS: [&str; 5] = ["1", "3", "4", "12", "n"];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("proof: seventeen plain loops of one kernel", |tools| all_hold(tools, LARGE.to_owned()));
    checks.add("proof: loops over counters of each type, towards each kind of bound, by steps of many sizes", grid);
}

fn grid(tools: &Tools) -> Result<(), String> {
    let mut text = String::new();
    for (number, kind) in TYPES.into_iter().enumerate() {
        for (nth, (order, sign)) in ORDERS.into_iter().enumerate() {
            for (index, step) in STEPS.into_iter().enumerate() {
                let _ = writeln!(
                    text,
                    "extern \"C\" __global__ void k{number}_{nth}_{index}(const int *a, int *c, {kind} from, {kind} to, {kind} n)\n\
                     {{\n    int s = 0;\n    for ({kind} i = from; i {order} to; i {sign}= {step}) s += a[i];\n    c[0] = s;\n}}"
                );
            }
        }
    }
    all_hold(tools, text)
}

/// All loops of a source are proved, and there is a loop in each of its kernels.
fn all_hold(tools: &Tools, text: String) -> Result<(), String> {
    let unit = Unit { needs: vec!["-std=c++17".into(), "-arch=sm_90".into(), "-lineinfo".into()], ..Unit::new("counters.cu", text) };
    let ptx = unit.rewrite(&Options::default())?.nvcc(&tools.nvcc, &["-ptx"])?.expect_clean()?.text();
    let report = verify_ptx(&ptx);
    let idle: Vec<&String> = report.kernels.iter().filter(|kernel| report.loops.iter().all(|found| found.function != **kernel)).collect();
    if report.kernels.is_empty() || !idle.is_empty() {
        return Err(format!("no loop is left in {idle:?}"));
    }
    let open = report.loops.iter().filter(|found| !found.verdict.holds());
    let open: Vec<String> = open
        .map(|found| format!("{} line {:?}: {:?}", found.function, found.place.as_ref().map(|place| place.line), found.verdict))
        .collect();
    if open.is_empty() && report.faults.is_empty() && report.unknown.is_empty() {
        return Ok(());
    }
    Err(format!("{open:#?} {:?} {:?}", report.faults, report.unknown))
}
