//! Files that include the prelude instead of holding it compile as the others do.

use crate::verify::judge;
use crate::{Checks, Tools};
use cuinstr::options::{Limits, Options};
use cuinstr::prelude;
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::{STRICT, Unit};

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("prelude: a file that includes it compiles with nvcc and NVRTC to what the file with the prelude in it does", included);
}

fn included(tools: &Tools) -> Result<(), String> {
    let limits = Limits { timeout_ns: Some(2_000_000_000), budget_cycles: None, fuel: None };
    let options = Options { prelude: Some("cuinstr.cuh".to_owned()), limits, ..Options::default() };
    let plain = Unit::plain(tools.fixture("gemm_tiled")?)?;
    let mut unit = plain.rewrite(&options)?;
    unit.beside.push(("cuinstr.cuh".to_owned(), prelude::body().into_bytes()));
    let ours = unit.nvcc(&tools.nvcc, &[STRICT, &["-ptx", "-arch=sm_90"]].concat())?.expect_clean()?;
    unit.nvrtc(tools.nvrtc.as_ref()?, &["--gpu-architecture=compute_90", "--include-path=."])?.expect_clean()?;
    let whole = plain.rewrite(&Options { prelude: None, ..options })?;
    let other = whole.nvcc(&tools.nvcc, &[STRICT, &["-ptx", "-arch=sm_90"]].concat())?.expect_clean()?;
    // The module's own number, which is in some names, goes by the text.
    let instructions = |ptx: &str| ptx.lines().filter(|line| line.trim_end().ends_with(';')).count();
    judge("gemm_tiled", &ours.text())?;
    match (instructions(&ours.text()), instructions(&other.text())) {
        (ours, other) if ours == other => Ok(()),
        (ours, other) => Err(format!("{ours} lines of PTX, where the file with the prelude in it has {other}")),
    }
}
