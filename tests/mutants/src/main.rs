//! Puts faults into the code by chance, one at a time, and tells which of them no test notices.
//!
//! The faults are those of cargo-mutants. They are compiled together, each behind a question whether it is the one in force, since two cores build
//! sixty faults at once as fast as one.

mod build;
mod judge;
mod listed;
mod manifest;
mod suite;
mod weave;

use anyhow::{Context, Result, ensure};
use build::Copy;
use clap::Parser;
use judge::{Pace, judge};
use listed::{Genre, Mutant};
use manifest::{Manifest, Numbered, Part, Runnable};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use suite::Tests;
use weave::Edit;

/// Puts faults into the code by chance, one at a time, and tells which of them no test notices. The status is 0 if each was noticed, 1 if not.
#[derive(Parser)]
struct Arguments {
    /// Files or folders of the code, joined by commas, and how many faults; several pairs are built together.
    #[arg(num_args = 2.., value_names = ["PATH", "COUNT"], required_unless_present = "run")]
    pairs: Vec<String>,
    /// Which ones: the same seed chooses the same faults of the same code.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the faults whose names are lines of this file: survivors of an earlier count, say.
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    only: Option<PathBuf>,
    /// Only so many test programs of each part, the fastest.
    #[arg(long, value_name = "COUNT", conflicts_with = "run")]
    programs: Option<usize>,
    /// Print the tests that are run, and put no fault anywhere.
    #[arg(long)]
    list: bool,
    /// Build only, and put all that another machine needs into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "run")]
    prepare: Option<PathBuf>,
    /// Judge what was built, from such a folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "pairs")]
    run: Option<PathBuf>,
    /// How many faults are judged at once.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// After so many seconds no further fault is judged.
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u64>,
    /// The file that each verdict goes to; verdicts that it holds are taken from there.
    #[arg(long, default_value = "target/mutants/verdicts.jsonl")]
    results: PathBuf,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let pace = Pace { jobs: arguments.jobs.max(1), end: arguments.limit.map(|seconds| Instant::now() + Duration::from_secs(seconds)) };
    let manifest = if let Some(folder) = &arguments.run {
        Manifest::unpack(folder)?
    } else {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let mut wanted = wanted(&arguments.pairs)?;
        wanted.iter_mut().for_each(|wanted| wanted.tests.truncate(arguments.programs.unwrap_or(usize::MAX)));
        if arguments.list {
            for tests in wanted.iter().flat_map(|wanted| &wanted.tests) {
                println!("{} {} {}", tests.package, tests.target, tests.arguments.join(" "));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let only = arguments.only.as_ref().map(|file| fs::read_to_string(file).with_context(|| file.display().to_string())).transpose()?;
        // Where nothing is judged now, old verdicts do not matter.
        let results = arguments.prepare.is_none().then_some(arguments.results.as_path());
        let (manifest, others) = build(&root, wanted, arguments.seed, only.as_deref(), results)?;
        if let Some(folder) = &arguments.prepare {
            manifest.pack(folder, others)?;
            return Ok(ExitCode::SUCCESS);
        }
        manifest
    };
    if let Some(folder) = arguments.results.parent() {
        fs::create_dir_all(folder)?;
    }
    let verdicts = judge(&manifest, pace, &arguments.results)?;
    print!("{}", manifest.table(&verdicts));
    Ok(ExitCode::from(u8::from(verdicts.iter().any(|verdict| verdict.by.is_none()))))
}

/// A part of the code that was asked for.
struct Wanted {
    name: String,
    paths: Vec<String>,
    count: usize,
    tests: Vec<Tests>,
}

fn wanted(pairs: &[String]) -> Result<Vec<Wanted>> {
    ensure!(pairs.len().is_multiple_of(2), "a count is missing behind the last path");
    let part = |pair: &[String]| {
        let paths: Vec<String> = pair[0].split(',').map(|path| path.trim_end_matches('/').to_owned()).collect();
        let tests = paths.first().and_then(|path| suite::of(path));
        let tests = tests.with_context(|| format!("no tests are named for {}: see tests/mutants/src/suite.rs", pair[0]))?;
        Ok(Wanted { name: pair[0].clone(), paths, count: pair[1].parse().with_context(|| format!("{} is no count", pair[1]))?, tests })
    };
    pairs.chunks(2).map(part).collect()
}

/// Builds the copy with its faults, unless the file of verdicts holds those of others. Answers what else its programs need, too.
fn build(root: &Path, wanted: Vec<Wanted>, seed: u64, only: Option<&str>, results: Option<&Path>) -> Result<(Manifest, BTreeSet<PathBuf>)> {
    let mut copy = Copy::new(root)?;
    let (mut edits, mut number, mut parts) = (BTreeMap::new(), 0, Vec::new());
    let mut tests: Vec<Tests> = Vec::new();
    let paths: Vec<String> = wanted.iter().flat_map(|part| part.paths.clone()).collect();
    let listed = listed::list(root, &paths)?;
    for part in wanted {
        let is_below = |mutant: &&Mutant| part.paths.iter().any(|path| Path::new(&mutant.file).starts_with(path));
        let mut all: Vec<Mutant> = listed.iter().filter(is_below).cloned().collect();
        let known = all.len();
        ensure!(known > 0, "cargo mutants knows of no fault in {}", part.name);
        all.retain(|mutant| only.is_none_or(|names| names.lines().any(|name| name.trim() == mutant.name)));
        listed::shuffle(&mut all, seed);
        let (mutants, without_form) = choose(&mut copy, all, part.count, &mut number, &mut edits)?;
        for new in part.tests.iter().filter(|new| !tests.contains(new)).cloned().collect::<Vec<_>>() {
            tests.push(new);
        }
        let own = part.tests.iter().filter_map(|own| tests.iter().position(|tests| tests == own)).collect();
        parts.push(Part { name: part.name, known, without_form, broken: 0, mutants, tests: own });
    }
    let digest = digest(&parts);
    if let Some(results) = results {
        judge::read(results, &digest)?;
    }
    // What did not compile before is not tried again.
    let kept = root.join("target/mutants/broken.json");
    let mut broken: BTreeSet<String> = fs::read(&kept).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let all = || parts.iter().flat_map(|part| &part.mutants);
    let mut dropped = all().filter(|mutant| broken.contains(&mutant.name)).map(|mutant| mutant.number).collect();
    let built = copy.build(&edits, &tests, &mut dropped)?;
    broken.extend(all().filter(|mutant| dropped.contains(&mutant.number)).map(|mutant| mutant.name.clone()));
    fs::write(&kept, serde_json::to_vec(&broken)?)?;
    for part in &mut parts {
        let chosen = part.mutants.len();
        part.mutants.retain(|mutant| !dropped.contains(&mutant.number));
        part.broken = chosen - part.mutants.len();
    }
    let runnable = |tests: Tests| {
        let program = built.programs.get(&(tests.package.clone(), tests.target.clone()));
        let program = program.with_context(|| format!("{} has no test program {}", tests.package, tests.target))?.clone();
        Ok(Runnable { tests, program })
    };
    let tests = tests.into_iter().map(runnable).collect::<Result<Vec<_>>>()?;
    Ok((Manifest { digest, seed, tree: copy.tree, tests, parts }, built.others))
}

/// Of all faults that were chosen, with those that will not compile: so it is known before the build.
fn digest(parts: &[Part]) -> String {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        part.mutants.iter().for_each(|mutant| (mutant.number, &mutant.name).hash(&mut hasher));
    }
    format!("{:016x}", hasher.finish())
}

/// Takes the first of these faults that can be switched and lie in no other's text. Answers how many on the way can't be switched, too.
fn choose(
    copy: &mut Copy,
    all: Vec<Mutant>,
    count: usize,
    number: &mut usize,
    edits: &mut BTreeMap<String, Vec<Edit>>,
) -> Result<(Vec<Numbered>, usize)> {
    let (mut chosen, mut without_form) = (Vec::new(), 0);
    let mut parsed: BTreeMap<String, syn::File> = BTreeMap::new();
    for mutant in all {
        if chosen.len() == count {
            break;
        }
        let text = copy.text(&mutant.file)?;
        if !parsed.contains_key(&mutant.file) {
            parsed.insert(mutant.file.clone(), syn::parse_file(text).with_context(|| mutant.file.clone())?);
        }
        let edit = Some(&mutant).filter(|mutant| mutant.genre != Genre::StructField);
        let Some(edit) = edit.and_then(|mutant| weave::edit(&parsed[&mutant.file], text, mutant, *number + 1)) else {
            without_form += 1;
            continue;
        };
        let list: &mut Vec<Edit> = edits.entry(mutant.file.clone()).or_default();
        if list.iter().all(|other| other.range.end < edit.range.start || edit.range.end < other.range.start) {
            *number += 1;
            list.push(edit);
            chosen.push(Numbered { number: *number, name: mutant.name });
        }
    }
    edits.retain(|_, edits| !edits.is_empty());
    Ok((chosen, without_form))
}
