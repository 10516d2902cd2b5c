//! What is ours in shared memory leaves the user's where hardware wants it (copies by hardware ask for 128 bytes, products of matrices for 1024, and
//! kernels take for granted that memory whose size the launch says begins where the block's does), and where the launch may take all of it, there is
//! nothing of ours.

use crate::verify::judge;
use crate::{Checks, Tools};
use cuinstr::options::{BarrierMarks, Limits, Options};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::unit::{STRICT, Unit};

const LAUNCH_SIZES: &str = "extern __shared__ int tile[];";
const FIXED: &str = "__shared__ int tile[256];";

/// How the kernel declares its memory, nvcc's words, where the marks shall be, and what our words are aligned to there, and take.
const DECLARED: &[(&str, &[&str], BarrierMarks, Option<u32>)] = &[
    (LAUNCH_SIZES, &["-arch=sm_90"], BarrierMarks::Shared, Some(1024)),
    ("__shared__ extern int tile[];", &["-arch=sm_90"], BarrierMarks::Shared, Some(1024)),
    (LAUNCH_SIZES, &["-arch=sm_80"], BarrierMarks::Shared, Some(128)),
    (FIXED, &["-arch=sm_90"], BarrierMarks::Auto, Some(16)),
    (LAUNCH_SIZES, &["-arch=sm_90"], BarrierMarks::Auto, None),
    ("__shared__ extern int tile[];", &["-arch=sm_75"], BarrierMarks::Auto, None),
    (FIXED, &["-arch=sm_90"], BarrierMarks::Global, None),
    // Units that are linked agree, whatever each of them was told.
    (FIXED, &["-arch=sm_90", "-rdc=true"], BarrierMarks::Auto, None),
    (LAUNCH_SIZES, &["-arch=sm_90", "-rdc=true"], BarrierMarks::Shared, None),
];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("shared memory: what the launch sizes begins as it did, and may be all there is", each);
    checks.add("shared memory: a kernel that fills it compiles with its marks in global memory", full);
}

fn each(tools: &Tools) -> Result<(), String> {
    for (declared, words, marks, apart) in DECLARED {
        let text = format!(
            "__global__ void k(int *p, int n) {{ {declared} for (int i = 0; i < n; ++i) {{ tile[threadIdx.x] += i; __syncthreads(); p[i] = tile[0]; }} }}\n"
        );
        let unit = Unit { needs: words.iter().map(|word| (*word).to_owned()).collect(), ..Unit::new("shared.cu", text) };
        let rewritten = unit.rewrite(&Options { barrier_marks: *marks, ..Options::default() })?;
        let ptx = rewritten.nvcc(&tools.nvcc, &["-ptx"])?.text();
        let case = format!("{declared} {words:?} {marks:?}");
        let ours = ptx.lines().find(|line| line.contains(".shared") && line.contains("this_block"));
        let is_right = match apart {
            Some(apart) => ours.is_some_and(|line| line.contains(&format!(".align {apart} ")) && line.contains(&format!("[{apart}]"))),
            None => ours.is_none() && ptx.contains(", [cuinstr_left_v1]"),
        };
        if !is_right {
            return Err(format!("{case}: {ours:?}, not {apart:?}"));
        }
        if judge("shared", &ptx).map_err(|why| format!("{case}: {why}"))? != 0 {
            return Err(format!("{case} is not proved"));
        }
    }
    Ok(())
}

/// 48 KiB, which is all that a kernel may declare.
fn full(tools: &Tools) -> Result<(), String> {
    let text = "__global__ void k(int *p, int n) {\n  __shared__ int tile[12288];\n  for (int i = 0; i < n; ++i) { tile[i] = p[i]; __syncthreads(); p[i] = tile[n - i]; }\n}\n";
    let unit = Unit { needs: vec!["-arch=sm_90".to_owned()], ..Unit::new("full.cu", text) };
    let compiled = |options: &Options| unit.rewrite(options)?.nvcc(&tools.nvcc, &[STRICT, &["-cubin"]].concat());
    let marks = |barrier_marks| Options { barrier_marks, ..Options::default() };
    let global = compiled(&marks(BarrierMarks::Global))?;
    if !global.accepted {
        return Err(global.said);
    }
    // The controls: with a word of ours there it has no room.
    for options in
        [marks(BarrierMarks::Shared), Options { limits: Limits { fuel: Some(9), ..Limits::default() }, ..marks(BarrierMarks::Global) }]
    {
        let compiled = compiled(&options)?;
        if compiled.accepted || !compiled.said.contains("too much shared data") {
            return Err(format!("it compiles: {}", compiled.said));
        }
    }
    Ok(())
}
