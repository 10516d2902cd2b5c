//! The same programs as one executable for a GPU: each is a kernel of one thread, and what it did is compared with what the host's plain
//! program did.

use super::batch::{self, Workshop};
use super::generate;
use super::lane::{self, Lane};
use super::program::{Mode, Program};
use crate::nvcc::Nvcc;
use rayon::prelude::*;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

const GPU_H: &str = include_str!("../../data/differential/gpu.h");
const GPU_CU: &str = include_str!("../../data/differential/gpu.cu");

/// Programs in one translation unit.
const BATCH: usize = 100;

/// Most iterations of a program: one thread of a GPU is slow.
const MOST_ITERATIONS: u32 = 20_000;

/// Sets of arguments.
const SETS: u32 = 2;

/// What was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Programs in it.
    pub programs: usize,
    /// Programs that are left out, each with why.
    pub left_out: Vec<String>,
}

/// Compiles the programs of these seeds into `differential` in a folder, with what is expected of them in `differential.expected` beside it.
///
/// # Errors
/// If the host's programs don't run, or nvcc refuses one.
pub fn build(nvcc: &Nvcc, seeds: Range<u64>, folder: &Path) -> Result<Built, String> {
    let told = |error: std::io::Error| error.to_string();
    let work = tempfile::Builder::new().prefix("cuinstr-differential-gpu-").tempdir().map_err(told)?;
    fs::create_dir_all(folder).map_err(told)?;
    for (name, text) in [("arguments.h", batch::ARGUMENTS_H), ("gpu.h", GPU_H), ("gpu.cu", GPU_CU)] {
        fs::write(work.path().join(name), text).map_err(told)?;
    }
    let workshop = Workshop::new()?;
    let programs: Vec<Program> = seeds.map(program).collect();
    // A thread's stack on a GPU is too small for a recursion that only its budget ends.
    let fits = |program: &&Program| !program.text(Mode::Plain).contains("unsigned int fall");
    let fitting: Vec<&Program> = programs.iter().filter(fits).collect();
    let batches: Vec<&[&Program]> = fitting.chunks(BATCH).collect();
    let lanes = lane::gpu_lanes();
    let jobs: Vec<(usize, &Lane)> = (0..batches.len()).flat_map(|index| lanes.iter().map(move |lane| (index, lane))).collect();
    let expected: Vec<String> = batches
        .par_iter()
        .map(|batch| workshop.run(batch, &lane::model(), SETS, None).map(|output| output.text).map_err(|broken| broken.why))
        .collect::<Result<_, _>>()?;
    let main = compile(nvcc, &work.path().join("gpu.cu"), &lanes[0]);
    let mut objects: Vec<PathBuf> = jobs
        .par_iter()
        .map(|(index, lane)| {
            let (text, _) = batch::unit(batches[*index], lane).map_err(|broken| format!("seed {:?}: {}", broken.seed, broken.why))?;
            let path = work.path().join(format!("{index}-{}.cu", lane.name));
            fs::write(&path, text).map_err(told)?;
            compile(nvcc, &path, lane)
        })
        .collect::<Result<_, _>>()?;
    objects.push(main?);
    let program = folder.join("differential");
    let linked = nvcc.run(
        [
            vec!["-gencode=arch=compute_90,code=sm_90".into(), "-o".into(), program.clone().into_os_string()],
            objects.into_iter().map(Into::into).collect(),
        ]
        .concat(),
    )?;
    if !linked.success() {
        return Err(linked.stderr.lines().take(6).collect::<Vec<_>>().join("\n"));
    }
    let wholes = expected.iter().flat_map(|text| text.lines()).filter(|line| line.contains(" whole "));
    let mut text = String::new();
    for line in wholes {
        let _ = writeln!(text, "{line}");
    }
    fs::write(folder.join("differential.expected"), text).map_err(told)?;
    Ok(Built { programs: fitting.len(), left_out: vec![format!("{} programs recurse", programs.len() - fitting.len())] })
}

fn program(seed: u64) -> Program {
    let program = generate::program(seed);
    Program { budget: program.budget.min(MOST_ITERATIONS), ..program }
}

fn compile(nvcc: &Nvcc, source: &Path, lane: &Lane) -> Result<PathBuf, String> {
    let object = source.with_extension("o");
    let mut arguments: Vec<std::ffi::OsString> = lane.flags.iter().map(Into::into).collect();
    arguments.extend(["-c".into(), "-o".into(), object.clone().into(), source.into()]);
    let finished = nvcc.run(arguments)?;
    if finished.success() {
        Ok(object)
    } else {
        Err(format!("{}: {}", source.display(), finished.stderr.lines().take(6).collect::<Vec<_>>().join("\n")))
    }
}
