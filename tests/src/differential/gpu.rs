//! The same programs for a GPU: each is a kernel of one thread, and what it did is compared with what the host's plain program did.
//!
//! Their sources are written here and compiled where the GPU is, which mostly has more cores: `tests/data/differential/gpu-run` does that.

use super::batch::{self, Workshop};
use super::generate;
use super::lane::{self, Lane};
use super::program::{Mode, Program};
use rayon::prelude::*;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;

const GPU_H: &str = include_str!("../../data/differential/gpu.h");
const GPU_CU: &str = include_str!("../../data/differential/gpu.cu");
const GPU_RUN: &str = include_str!("../../data/differential/gpu-run");

/// Programs in one translation unit: nvcc takes a second for the unit and a tenth for each program.
const BATCH: usize = 50;

/// Most iterations of a program, since one thread of a GPU is slow: more than may lie between two looks.
const MOST_ITERATIONS: u32 = 100_000;

/// Sets of arguments.
const SETS: u32 = 2;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Programs in it.
    pub programs: usize,
    /// Programs that recurse, which are left out: a thread's stack on a GPU is too small for a recursion that only its budget ends.
    pub recursive: usize,
}

/// Writes the sources of these seeds' programs into a folder, in batches, each in every lane; with them what compiles and runs them, and
/// what the host's plain programs did.
///
/// # Errors
/// If the host's programs don't run, the rewriter refuses one, or the folder can't be written.
pub fn write(seeds: Range<u64>, folder: &Path) -> Result<Written, String> {
    let told = |error: std::io::Error| error.to_string();
    let units = folder.join("units");
    fs::create_dir_all(&units).map_err(told)?;
    let files = [("arguments.h", batch::ARGUMENTS_H), ("gpu.h", GPU_H), ("gpu.cu", GPU_CU), ("gpu-run", GPU_RUN)];
    for (name, text) in files {
        fs::write(folder.join(name), text).map_err(told)?;
    }
    let programs: Vec<Program> = seeds.map(program).collect();
    let fitting: Vec<&Program> = programs.iter().filter(|program| !program.text(Mode::Plain).contains("unsigned int fall")).collect();
    let batches: Vec<&[&Program]> = fitting.chunks(BATCH).collect();
    let lanes = lane::gpu_lanes();
    for lane in &lanes {
        // The same in front of all programs of a lane, so it is written once.
        let (prelude, _) = split(fitting.get(..1).ok_or("there is no program")?, lane)?;
        fs::write(folder.join(format!("{}.h", name_of(lane))), prelude).map_err(told)?;
    }
    let workshop = Workshop::new()?;
    let expected: Vec<String> = batches
        .par_iter()
        .enumerate()
        .map(|(index, batch)| {
            for lane in lanes.iter().filter(|lane| lane.sabotage.is_none() || index == 0) {
                let (_, programs) = split(batch, lane)?;
                let text = format!("#include \"{}.h\"\n{programs}", name_of(lane));
                fs::write(units.join(format!("{index:04}-{}.cu", name_of(lane))), text).map_err(told)?;
            }
            let output = workshop.run(batch, &lane::model(), SETS, None).map_err(|broken| broken.why)?;
            Ok(output.text.lines().filter(|line| line.contains(" whole ")).fold(String::new(), |mut text, line| {
                let _ = writeln!(text, "{line}");
                text
            }))
        })
        .collect::<Result<_, String>>()?;
    fs::write(folder.join("expected"), expected.concat()).map_err(told)?;
    Ok(Written { programs: fitting.len(), recursive: programs.len() - fitting.len() })
}

fn program(seed: u64) -> Program {
    let program = generate::program(seed);
    Program { budget: program.budget.min(MOST_ITERATIONS), ..program }
}

/// A lane's name as that of a file.
fn name_of(lane: &Lane) -> String {
    lane.name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

/// What stands in front of the programs of a translation unit, and the rest.
fn split(programs: &[&Program], lane: &Lane) -> Result<(String, String), String> {
    let (text, _) = batch::unit(programs, lane).map_err(|broken| format!("seed {:?}: {}", broken.seed, broken.why))?;
    let at = text.find(batch::LANE_BEGINS).ok_or("a translation unit has no lane")?;
    Ok((text[..at].to_owned(), text[at..].to_owned()))
}
