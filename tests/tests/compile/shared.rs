//! What is ours in shared memory leaves the user's where hardware wants it: copies by hardware ask for 128 bytes, products of matrices for 1024, and
//! kernels take for granted that memory whose size the launch says begins where the block's does.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr_tests::fixtures::Fixture;
use cuinstr_tests::unit::Unit;

/// How the kernel declares its memory, the architecture, and what our word is aligned to there, and takes.
const DECLARED: &[(&str, &str, u32)] = &[
    ("extern __shared__ int tile[];", "sm_90", 1024),
    ("__shared__ extern int tile[];", "sm_90", 1024),
    ("extern __shared__ int tile[];", "sm_80", 128),
    ("__shared__ int tile[256];", "sm_90", 16),
];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("shared memory: what the launch sizes begins as it did", each);
}

fn each(tools: &Tools) -> Result<(), String> {
    for (declared, arch, apart) in DECLARED {
        let text = format!(
            "__global__ void k(int *p, int n) {{ {declared} for (int i = 0; i < n; ++i) {{ tile[threadIdx.x] += i; __syncthreads(); p[i] = tile[0]; }} }}\n"
        );
        let unit = Unit { needs: vec![format!("-arch={arch}")], ..Unit::new("shared.cu", text) };
        let ptx = unit.rewrite(&Options::default())?.nvcc(&tools.nvcc, &["-ptx"])?.text();
        let ours = ptx.lines().find(|line| line.contains(".shared") && line.contains("this_block")).unwrap_or_default();
        if !ours.contains(&format!(".align {apart} ")) || !ours.contains(&format!("[{apart}]")) {
            return Err(format!("{declared} for {arch}: {ours}, not {apart}"));
        }
    }
    Ok(())
}
