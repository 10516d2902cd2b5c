//! The same programs for a GPU: each is a kernel of one thread, and what it did is compared with what the host's plain program did.
//!
//! Their sources are written here and compiled where the GPU is, which mostly has more cores: `tests/data/differential/gpu-run` does that.

use super::batch::{self, Workshop};
use super::generate;
use super::lane::{self, Lane};
use super::program::{Item, Mode, Program};
use rayon::prelude::*;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;

const GPU_H: &str = include_str!("../data/gpu.h");
const GPU_CU: &str = include_str!("../data/gpu.cu");
const GPU_RUN: &str = include_str!("../data/gpu-run");

/// Programs in one translation unit: nvcc takes a second for the unit and a tenth for each program.
const BATCH: usize = 50;

/// Most iterations of a program, since one thread of a GPU is slow: more than may lie between two looks.
const MOST_ITERATIONS: u32 = 100_000;

/// Batches that are compiled with something broken, too: some of their programs have what is broken.
const BROKEN: usize = 3;

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
            for lane in lanes.iter().filter(|lane| lane.sabotage.is_none() || index < BROKEN) {
                let (_, programs) = split(batch, lane)?;
                let text = format!("#include \"{}.h\"\n{programs}", name_of(lane));
                fs::write(units.join(format!("{index:04}-{}.cu", name_of(lane))), text).map_err(told)?;
            }
            expected(&workshop, batch)
        })
        .collect::<Result<_, String>>()?;
    fs::write(folder.join("expected"), expected.concat()).map_err(told)?;
    Ok(Written { programs: fitting.len(), recursive: programs.len() - fitting.len() })
}

/// The lines that the host's plain programs print, of whole runs.
///
/// Where a narrow number with a sign goes round, the host's compiler has it go round and nvcc takes for granted that it does not, though its
/// kind of narrowing is the compiler's to define and not the programmer's to avoid. So each program is run with wide ones in their places, too:
/// a run that differs hangs on that, and counts as undefined.
fn expected(workshop: &Workshop, batch: &[&Program]) -> Result<String, String> {
    let run = |programs: &[&Program]| {
        let output =
            workshop.run(programs, &lane::model(), SETS, None).map_err(|broken| format!("seed {:?}: {}", broken.seed, broken.why))?;
        Ok::<_, String>(batch::parse(&output.text))
    };
    let wide: Vec<Program> = batch.iter().filter_map(|program| widened(program)).collect();
    let wide = if wide.is_empty() { batch::Runs::new() } else { run(&wide.iter().collect::<Vec<_>>())? };
    Ok(run(batch)?.iter().filter(|((.., what, _), _)| what == "whole").fold(String::new(), |mut text, (key, run)| {
        let (seed, set, ..) = key;
        let same = wide.get(key).is_none_or(|wide| (&wide.status, &wide.hash, wide.ticks) == (&run.status, &run.hash, run.ticks));
        let status = if same { &run.status } else { "undefined0" };
        let _ = writeln!(text, "{seed} {set} whole 0 {status} {} {}", run.hash, run.ticks);
        text
    }))
}

/// The program with `int` in the place of each narrow type with a sign, if it has any.
fn widened(program: &Program) -> Option<Program> {
    let words = |text: &str| {
        let kept = ["unsigned char", "unsigned short int", "unsigned short", "uint8_t", "uint16_t"];
        let hidden = kept.iter().enumerate().fold(text.to_owned(), |text, (index, word)| text.replace(word, &format!("\u{1f}{index}")));
        let wide = ["signed char", "char", "int8_t", "int16_t", "short"].iter().fold(hidden, |text, word| text.replace(word, "int"));
        kept.iter().enumerate().fold(wide, |text, (index, word)| text.replace(&format!("\u{1f}{index}"), word))
    };
    let items = respelled(&program.items, &words);
    (items != program.items).then(|| Program { items, ..program.clone() })
}

fn respelled(items: &[Item], words: &dyn Fn(&str) -> String) -> Vec<Item> {
    let one = |item: &Item| match item {
        Item::Line(text) => Item::Line(words(text)),
        Item::Block { head, body, tail } => Item::Block { head: words(head), body: respelled(body, words), tail: words(tail) },
    };
    items.iter().map(one).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_numbers_with_a_sign_become_wide_and_others_stay() {
        let text =
            "signed char a = (char)1; unsigned char b; int8_t c; uint8_t d; unsigned short int e; short f; uint16_t g; int16_t h; int i;";
        let program = Program::written(1, text, 1);
        let wide = widened(&program).expect("it has some").text(Mode::Plain);
        let expected = "int a = (int)1; unsigned char b; int c; uint8_t d; unsigned short int e; int f; uint16_t g; int h; int i;\n";
        assert_eq!(wide, expected);
        assert_eq!(widened(&Program::written(1, "uint8_t d; unsigned char b;", 1)), None);
    }
}
