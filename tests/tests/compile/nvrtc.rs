//! NVRTC takes the same text that nvcc takes, plain and inside `extern "C"`, and what it makes of it is proved.

use crate::verify::judge;
use crate::{Checks, Tools, kernels, slice};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::{Compiled, Nvrtc, Unit};

/// Kernels that NVRTC takes as they are. All that C linkage allows are compiled inside `extern "C"`; these it does not, but for the first.
const PLAIN: &[&str] = &["saxpy", "constexpr_loop", "template_unroll", "cxx11", "hang/template_kernel"];

/// Files that NVRTC does not take inside `extern "C"` beside those that nvcc does not take: headers are not on its path, and it compiles no
/// host functions, which lambdas without a mark are to it; nor what a launch from device code needs.
const NOT_IN_EXTERN_C: &[&str] = &["saxpy_stride", "hang/mbarrier_wait", "lambda_generic", "probe/launches_child"];

/// With lines, by which the proof says where a loop is written.
const LINES: &[&str] = &["--generate-line-info"];

pub(crate) fn add(fixtures: &[Fixture], checks: &mut Checks) {
    for name in PLAIN {
        checks.add(format!("nvrtc: {name} compiles"), |tools| {
            let unit = Unit::plain(tools.fixture(name)?)?;
            let compiled = compile(tools, name, &unit.rewrite(&Options::default())?, LINES)?.expect_clean()?;
            judge(name, &compiled.text()).map(drop)
        });
    }
    for fixture in slice(fixtures) {
        let name = fixture.name.clone();
        checks.add(format!("nvrtc: {name} compiles inside extern \"C\""), move |tools| inside_extern_c(tools, &name));
    }
    checks.add("nvrtc: loops up to and by constants with a name compile", constants);
    for std in ["11", "14", "17", "20"] {
        checks.add(format!("nvrtc: cxx11 compiles as C++{std} with all limits"), move |tools| standard(tools, std));
    }
}

/// NVRTC can't be asked whether a name stands for a constant.
fn constants(tools: &Tools) -> Result<(), String> {
    let text = "constexpr int TILE = 32;\n\
                __global__ void k(int *p, int n) {\n\
                \x20   for (int i = 0; i < n; i += TILE) p[i] = 0;\n\
                \x20   for (int i = threadIdx.x; i < TILE; i += blockDim.x) p[i] = 1;\n\
                }\n";
    let unit = Unit::new("constants.cu", text);
    compile(tools, "saxpy", &unit.rewrite(&Options::default())?, &[])?.expect_clean().map(drop)
}

fn standard(tools: &Tools, std: &str) -> Result<(), String> {
    let limits = Limits { timeout_ns: Some(1_000_000), budget_cycles: Some(1), fuel: Some(5) };
    let mut unit = Unit::plain(tools.fixture("cxx11")?)?.rewrite(&Options { limits, polls: Polls::Each, ..Options::default() })?;
    unit.needs = vec![format!("-std=c++{std}")];
    for args in [&[][..], &["--device-debug"]] {
        compile(tools, "cxx11", &unit, args)?.expect_clean()?;
    }
    let relocatable = compile(tools, "cxx11", &unit, &["--relocatable-device-code=true"])?;
    if matches!(std, "17" | "20") {
        return relocatable.expect_clean().map(drop);
    }
    // Only `inline` variables are merged by nvlink under a name of ours. They are C++17; nvcc takes them earlier, NVRTC does not.
    let told = "cuinstr: NVRTC with relocatable device code needs C++17";
    if !relocatable.accepted && relocatable.said.contains(told) {
        Ok(())
    } else {
        Err(format!("NVRTC does not say `{told}`: {}", relocatable.said))
    }
}

fn nvrtc(tools: &Tools) -> Result<&Nvrtc, String> {
    tools.nvrtc.as_ref().map_err(Clone::clone)
}

fn compile(tools: &Tools, name: &str, unit: &Unit, args: &[&str]) -> Result<Compiled, String> {
    let arch = format!("--gpu-architecture=compute_{}", tools.fixture(name)?.header.min_arch);
    let mut all = vec![arch.as_str()];
    all.extend(args);
    unit.nvrtc(nvrtc(tools)?, &all)
}

fn inside_extern_c(tools: &Tools, name: &str) -> Result<(), String> {
    let plain = Unit::plain(tools.fixture(name)?)?;
    if kernels::NOT_IN_EXTERN_C.contains(&name) || NOT_IN_EXTERN_C.contains(&name) {
        let accepted = compile(tools, name, &plain.in_extern_c(), &[])?.accepted;
        return if accepted { Err("it compiles inside extern \"C\" as it is: take it off the list".to_owned()) } else { Ok(()) };
    }
    let text = compile(tools, name, &plain.rewrite(&Options::default())?.in_extern_c(), LINES)?.expect_clean()?.text();
    let entry = format!(".entry {}(", tools.fixture(name)?.header.entry);
    if !text.contains(&entry) {
        return Err(format!("the PTX has no `{entry}`"));
    }
    // The proof is of kernels: what a probe is for is told in its file.
    if name.starts_with("probe/") { Ok(()) } else { judge(name, &text).map(drop) }
}
