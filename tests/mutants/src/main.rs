//! Puts faults into the code by chance, one at a time, and tells which of them no test notices.
//!
//! The faults are those of cargo-mutants. They are compiled together, each behind a question whether it is the one in force, since two cores build
//! sixty faults at once as fast as one.

mod build;
mod listed;
mod suite;
mod weave;

use anyhow::{Context, Result, ensure};
use build::{Copy, Program, Ran};
use clap::Parser;
use listed::{Genre, Mutant};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use suite::Tests;
use weave::Edit;

/// Puts faults into the code by chance, one at a time, and tells which of them no test notices. The status is 0 if each was noticed, 1 if not.
#[derive(Parser)]
struct Arguments {
    /// A file of the code, or a folder, and how many faults; several pairs are built together.
    #[arg(required = true, num_args = 2.., value_names = ["PATH", "COUNT"])]
    pairs: Vec<String>,
    /// Which ones: the same seed chooses the same faults of the same code.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the tests that are run, and put no fault anywhere.
    #[arg(long)]
    list: bool,
}

/// A part of the code with its faults.
struct Part {
    path: String,
    suite: &'static [Tests],
    /// All that cargo-mutants knows of it.
    known: usize,
    chosen: Vec<(usize, Mutant)>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    ensure!(arguments.pairs.len().is_multiple_of(2), "a count is missing behind the last path");
    let mut parts = Vec::new();
    for pair in arguments.pairs.chunks(2) {
        let path = pair[0].trim_end_matches('/').to_owned();
        let suite = suite::of(&path).with_context(|| format!("no tests are named for {path}: see tests/mutants/src/suite.rs"))?;
        parts.push((path, pair[1].parse::<usize>().with_context(|| format!("{} is no count", pair[1]))?, suite));
    }
    if arguments.list {
        for test in parts.iter().flat_map(|(_, _, suite)| *suite) {
            println!("cargo test {} -- {}", test.build.join(" "), test.run.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut copy = Copy::new(&root)?;
    let mut edits = BTreeMap::new();
    let mut number = 0;
    let parts = parts.into_iter().map(|(path, count, suite)| {
        let mut all = listed::list(&root, &path)?;
        let known = all.len();
        all.retain(|mutant| mutant.genre != Genre::StructField);
        listed::shuffle(&mut all, arguments.seed);
        let chosen = choose(&mut copy, all, count, &mut number, &mut edits)?;
        Ok(Part { path, suite, known, chosen })
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;

    let mut tests: Vec<Tests> = Vec::new();
    for test in parts.iter().flat_map(|part| part.suite) {
        if !tests.contains(test) {
            tests.push(*test);
        }
    }
    let mut dropped = BTreeSet::new();
    let builds: Vec<&[&str]> = tests.iter().map(|test| test.build).collect();
    let programs = copy.build(&edits, &builds, &mut dropped)?;
    let mut runs = Vec::new();
    for (test, programs) in tests.iter().zip(&programs) {
        ensure!(!programs.is_empty(), "cargo test {} builds no program", test.build.join(" "));
        for program in programs {
            let since = Instant::now();
            let ran = build::run(program, test.run, 0, Duration::from_secs(600))?;
            ensure!(ran == Ran::Passed, "{} fails without a fault: {}", program.name, program.path.display());
            eprintln!("{:6.1} s  {} without a fault", since.elapsed().as_secs_f64(), program.name);
            runs.push(Run { test: *test, program, limit: since.elapsed() * 6 + Duration::from_secs(10) });
        }
    }
    let mut all_noticed = true;
    for part in &parts {
        all_noticed &= part.judge(&runs, &dropped, arguments.seed)?;
    }
    Ok(ExitCode::from(u8::from(!all_noticed)))
}

/// Takes the first of these faults that can be switched and lie in no other's text.
fn choose(
    copy: &mut Copy,
    all: Vec<Mutant>,
    count: usize,
    number: &mut usize,
    edits: &mut BTreeMap<String, Vec<Edit>>,
) -> Result<Vec<(usize, Mutant)>> {
    let mut chosen = Vec::new();
    let mut parsed: BTreeMap<String, syn::File> = BTreeMap::new();
    for mutant in all {
        if chosen.len() == count {
            break;
        }
        let text = copy.text(&mutant.file)?;
        if !parsed.contains_key(&mutant.file) {
            parsed.insert(mutant.file.clone(), syn::parse_file(text).with_context(|| mutant.file.clone())?);
        }
        let Some(edit) = weave::edit(&parsed[&mutant.file], text, &mutant, *number + 1) else { continue };
        let list: &mut Vec<Edit> = edits.entry(mutant.file.clone()).or_default();
        if list.iter().all(|other| other.range.end < edit.range.start || edit.range.end < other.range.start) {
            *number += 1;
            list.push(edit);
            chosen.push((*number, mutant));
        }
    }
    edits.retain(|_, edits| !edits.is_empty());
    Ok(chosen)
}

/// A test program with its arguments.
struct Run<'a> {
    test: Tests,
    program: &'a Program,
    limit: Duration,
}

impl Part {
    /// Runs its tests with one fault after the other. Whether all were noticed.
    fn judge(&self, runs: &[Run], dropped: &BTreeSet<usize>, seed: u64) -> Result<bool> {
        let (mut noticed, mut tried) = (0, 0);
        for (number, mutant) in self.chosen.iter().filter(|(number, _)| !dropped.contains(number)) {
            let mut by = None;
            for run in runs.iter().filter(|run| self.suite.contains(&run.test)) {
                match build::run(run.program, run.test.run, *number, run.limit)? {
                    Ran::Passed => continue,
                    Ran::Failed => by = Some(run.program.name.clone()),
                    Ran::TimedOut => by = Some(format!("{}, which does not end", run.program.name)),
                }
                break;
            }
            tried += 1;
            noticed += usize::from(by.is_some());
            match by {
                Some(by) => println!("noticed   {number:4}  {}  ({by})", mutant.name),
                None => println!("SURVIVES  {number:4}  {}", mutant.name),
            }
        }
        let broken = self.chosen.len() - tried;
        println!("{}: {noticed} of {tried} noticed, seed {seed}, {} known, {broken} that do not compile", self.path, self.known);
        Ok(noticed == tried)
    }
}
