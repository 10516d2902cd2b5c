//! Every kernel rewritten compiles without a warning that the plain one does not give, and a few in every configuration.

use crate::{Checks, Tools, pairs, slice};
use cuinstr::options::{AtExit, Limits, Options, Polls};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::{STRICT, Unit};

/// Kernels of many shapes, for what is too slow to try on all.
const VARIED: &[&str] =
    &["gemm_tiled", "macro_statement", "one_liners", "lambda_extended", "recursion", "template_unroll", "cg_tiles", "goto_probe"];

const LIMITS: Limits = Limits { timeout_ns: Some(2_000_000_000), budget_cycles: Some(1 << 40), fuel: Some(1_000_000) };

pub(crate) fn add(fixtures: &[Fixture], checks: &mut Checks) {
    for fixture in fixtures {
        let name = fixture.name.clone();
        checks.add(format!("kernel: {name} compiles"), move |tools| compiled_is_clean(tools, &name, &Options::default(), &[]));
    }
    // Inside `extern "C"` each other one is compiled for the oldest architecture that it asks for.
    let is_left = |fixture: &&Fixture| NOT_IN_EXTERN_C.contains(&fixture.name.as_str()) && fixture.header.min_arch < 90;
    for fixture in slice(&fixtures.iter().filter(is_left).collect::<Vec<_>>()) {
        let name = fixture.name.clone();
        checks.add(format!("kernel: {name} compiles for sm_{}", fixture.header.min_arch), move |tools| {
            compiles(tools, &name, &Options::default(), &["-ptx"])
        });
    }
    for name in slice(VARIED) {
        let each = || Options { polls: Polls::Each, ..Options::default() };
        checks.add(format!("config: {name} compiles with a poll in each iteration"), move |tools| {
            compiled_is_clean(tools, name, &each(), &[])
        });
        checks.add(format!("config: {name} compiles with debug information"), move |tools| {
            compiled_is_clean(tools, name, &Options::default(), &["-G"])
        });
    }
    for (name, (what, options, args)) in pairs(VARIED, &configurations()) {
        checks.add(format!("config: {name} compiles with {what}"), move |tools| compiles(tools, name, &options, args));
    }
    for fixture in slice(fixtures) {
        let name = fixture.name.clone();
        checks.add(format!("extern C: {name} compiles inside extern \"C\""), move |tools| inside_extern_c(tools, &name));
    }
}

fn configurations() -> Vec<(&'static str, Options, &'static [&'static str])> {
    let default = Options::default();
    let each = Options { polls: Polls::Each, ..Options::default() };
    let limited = Options { limits: LIMITS, ..Options::default() };
    let both = Options { polls: Polls::Each, limits: LIMITS, ..Options::default() };
    let gate = Options { at_exit: AtExit::Gate, ..Options::default() };
    let gate_limited = Options { at_exit: AtExit::Gate, limits: LIMITS, ..Options::default() };
    vec![
        ("a gate", gate, &["-ptx"]),
        ("a gate and all limits", gate_limited, &["-ptx"]),
        ("all limits compiled in", limited.clone(), &["-ptx"]),
        ("a poll in each iteration and all limits", both, &["-ptx"]),
        ("relocatable code", default.clone(), &["-rdc=true", "-ptx"]),
        ("relocatable code and all limits", limited, &["-rdc=true", "-ptx"]),
        ("a cubin for sm_90 and a poll in each iteration", each, &["-cubin", "-arch=sm_90"]),
        ("its host half", default.clone(), &["-c"]),
        ("its host half and relocatable code", default, &["-rdc=true", "-c"]),
    ]
}

/// The architecture that a fixture asks for, unless the arguments name one.
fn arguments<'a>(args: &[&'a str], arch: &'a str) -> Vec<&'a str> {
    let named = args.iter().any(|arg| arg.starts_with("-arch"));
    STRICT.iter().chain(args).copied().chain((!named).then_some(arch)).collect()
}

/// The same of a compilation that the proof's tests look at, too.
pub(crate) fn compiled_is_clean(tools: &Tools, name: &str, options: &Options, args: &[&str]) -> Result<(), String> {
    let compiled = tools.ptx(name, Some(options), args)?;
    if compiled.clean() {
        return if compiled.image.is_empty() { Err("nothing was written".to_owned()) } else { Ok(()) };
    }
    let plain = tools.ptx(name, None, args)?.expect_clean();
    let plain = plain.map_or_else(|why| format!("as its author wrote it: {why}"), |_| "as its author wrote it: no warning".to_owned());
    Err(compiled.expect_clean().err().unwrap_or_default() + "\n" + &plain)
}

fn compiles(tools: &Tools, name: &str, options: &Options, args: &[&str]) -> Result<(), String> {
    let fixture = tools.fixture(name)?;
    let arch = format!("-arch=sm_{}", fixture.header.min_arch);
    unit_compiles(tools, &Unit::plain(fixture)?, options, &arguments(args, &arch))
}

/// A unit compiles without a word once it is rewritten; where it does not, what is said of it as it is.
pub(crate) fn unit_compiles(tools: &Tools, plain: &Unit, options: &Options, args: &[&str]) -> Result<(), String> {
    let compiled = plain.rewrite(options)?.nvcc(&tools.nvcc, args)?;
    if compiled.clean() {
        return if compiled.image.is_empty() { Err("nothing was written".to_owned()) } else { Ok(()) };
    }
    let plain = plain.nvcc(&tools.nvcc, args)?.expect_clean();
    let plain = plain.map_or_else(|why| format!("as its author wrote it: {why}"), |_| "as its author wrote it: no warning".to_owned());
    Err(compiled.expect_clean().err().unwrap_or_default() + "\n" + &plain)
}

/// Files that C linkage does not allow, as their author wrote them: templates, their own or a header's, and a byte order mark that is no
/// longer first.
pub(crate) const NOT_IN_EXTERN_C: &[&str] = &[
    "collatz",
    "constexpr_loop",
    "cxx11",
    "cxx20",
    "typed_sizes",
    "lambda_extended",
    "range_for",
    "hadamard",
    "template_unroll",
    "tridiagonal",
    "hang/header_function",
    "hang/template_kernel",
    "cg_grid_sync",
    "cg_tiles",
    "cluster_histogram",
    "softmax_rows",
    "hang/cluster_neighbour",
    "hang/grid_sync",
    "hang/grid_sync_early_return",
];

fn inside_extern_c(tools: &Tools, name: &str) -> Result<(), String> {
    let fixture = tools.fixture(name)?;
    let arch = format!("-arch=sm_{}", fixture.header.min_arch);
    let args = arguments(&["-ptx"], &arch);
    let plain = Unit::plain(fixture)?;
    if NOT_IN_EXTERN_C.contains(&name) {
        let accepted = plain.in_extern_c().nvcc(&tools.nvcc, &args)?.accepted;
        return if accepted { Err("it compiles inside extern \"C\" as it is: take it off the list".to_owned()) } else { Ok(()) };
    }
    let compiled = plain.rewrite(&Options::default())?.in_extern_c().nvcc(&tools.nvcc, &args)?.expect_clean()?;
    // C linkage reaches through the prelude to the kernel behind it.
    let entry = format!(".entry {}(", fixture.header.entry);
    if compiled.text().contains(&entry) { Ok(()) } else { Err(format!("the PTX has no `{entry}`")) }
}
