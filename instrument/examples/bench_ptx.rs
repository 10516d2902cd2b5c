//! How fast polls are put into PTX, in how much memory, and whether any text makes the pass panic.
//!
//! Run it by `scripts/bench-ptx`. A speed is the median of the rounds, and in brackets their range. Its seconds are those that the process spent on
//! its core. Memory is the peak of the resident set (`VmHWM`) less what was resident before, so that the text itself does not count and its copies do.

#![expect(clippy::cast_precision_loss, reason = "byte counts far below 2^52")]

use cuinstr::options::Options;
use cuinstr::rewrite_ptx;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

const ROUNDS: usize = 11;
const LARGE: [usize; 3] = [1_000_000, 10_000_000, 100_000_000];

/// Words that a reader of PTX goes by.
const WORDS: [&str; 24] = [
    "{",
    "}",
    ";",
    ":",
    "@%p1 ",
    "bra ",
    "$L",
    ".entry ",
    ".func ",
    ".reg .b32 %x;",
    ".loc 1 2 3\n",
    ".version 6.0\n",
    "brx.idx ",
    "call ",
    "ret;",
    "exit;",
    "setp.ne.s32 ",
    "add.s32 ",
    "%r1, ",
    "-1",
    "0x",
    "\"",
    "/*",
    ".target sm_90\n",
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mutants = match arguments.iter().position(|word| word == "--mutants") {
        Some(at) => arguments.drain(at..).nth(1).and_then(|count| count.parse::<u64>().ok()),
        None => None,
    };
    let folder = arguments.first().map_or("tests/data/ptx", String::as_str);
    let texts = texts(Path::new(folder));
    if texts.is_empty() {
        eprintln!("bench_ptx: no .ptx file in {folder} that the pass takes");
        return ExitCode::FAILURE;
    }
    match mutants {
        Some(count) => mutate(&texts, count),
        None => bench(&texts),
    }
    ExitCode::SUCCESS
}

/// PTX files of a folder and those below it, but those that hold polls.
fn texts(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|ending| ending == "ptx")
            && let Ok(text) = fs::read_to_string(&path)
            && rewrite_ptx(text.as_bytes(), &options()).output.is_some()
        {
            found.insert(path, text);
        }
    }
    found
}

fn options() -> Options {
    Options { path: "bench.ptx".to_owned(), ..Options::default() }
}

fn bench(texts: &BTreeMap<PathBuf, String>) {
    println!("| input | MB | MB/s | peak / input | output / input |\n| --- | ---: | ---: | ---: | ---: |");
    let bytes: usize = texts.values().map(String::len).sum();
    row(&format!("{} files, one by one", texts.len()), bytes, ROUNDS, || {
        texts.values().map(|text| rewrite_ptx(text.as_bytes(), &options()).output.map_or(0, |output| output.len())).sum()
    });
    for size in LARGE {
        let text = joined(texts, size);
        let rounds = if size > 10_000_000 { 3 } else { ROUNDS };
        row("the same, joined", text.len(), rounds, || rewrite_ptx(text.as_bytes(), &options()).output.map_or(0, |output| output.len()));
    }
}

/// What this process has spent on cores, where the system says so.
fn on_core() -> Option<Duration> {
    let words = fs::read_to_string("/proc/self/schedstat").ok()?;
    words.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn row(name: &str, bytes: usize, rounds: usize, run: impl Fn() -> usize) {
    // Begins the peak anew.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = resident("VmRSS");
    let mut speeds = Vec::new();
    let mut output = 0;
    for _ in 0..rounds {
        let begun = (Instant::now(), on_core());
        output = run();
        let wall = begun.0.elapsed();
        let spent = on_core().zip(begun.1).map_or(wall, |(now, before)| now.saturating_sub(before));
        speeds.push(bytes as f64 / 1e6 / spent.as_secs_f64());
    }
    speeds.sort_by(f64::total_cmp);
    let grown = resident("VmHWM").saturating_sub(before) as f64 / bytes as f64;
    println!(
        "| {name} | {:.1} | {:.0} ({:.0} to {:.0}) | {grown:.1} | {:.2} |",
        bytes as f64 / 1e6,
        speeds[rounds / 2],
        speeds[0],
        speeds[rounds - 1],
        output as f64 / bytes as f64
    );
}

/// One module of at least so many bytes: the files' functions again and again, under other names.
fn joined(texts: &BTreeMap<PathBuf, String>, size: usize) -> String {
    let mut text = String::from(".version 9.0\n.target sm_90a\n.address_size 64\n");
    for number in 0.. {
        for one in texts.values() {
            let body = one.split_once(".address_size 64").map_or("", |(_, body)| body);
            // What line information adds at the end is the module's alone.
            let body = body.split("\n\t.file").next().unwrap_or_default();
            for line in body.lines().filter(|line| !line.trim_start().starts_with(".loc") && !line.trim_start().starts_with(".file")) {
                let at = line.find(['(', '\t']).filter(|_| line.contains(".entry "));
                let (name, rest) = line.split_at(at.unwrap_or(line.len()));
                text.push_str(name);
                if at.is_some() {
                    let _ = write!(text, "_{number}_{}", text.len());
                }
                text.push_str(rest);
                text.push('\n');
            }
            if text.len() >= size {
                return text;
            }
        }
    }
    text
}

/// A line of `/proc/self/status`, in bytes.
fn resident(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok()).map_or(0, |kilobytes| kilobytes * 1024)
}

/// Changes texts by chance, and has each rewritten: nothing panics, and what was inserted can be taken out again.
fn mutate(texts: &BTreeMap<PathBuf, String>, count: u64) {
    let texts: Vec<&[u8]> = texts.values().map(String::as_bytes).filter(|text| text.len() < 8192).collect();
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let begun = Instant::now();
    let mut taken = 0_u64;
    for _ in 0..count {
        let mut text = texts[random(texts.len())].to_vec();
        for _ in 0..=random(4) {
            let at = random(text.len());
            let end = (at + random(40)).min(text.len());
            match random(5) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece = text[at..end].to_vec();
                    let to = random(text.len());
                    text.splice(to..to, piece);
                }
                2 if !text.is_empty() => text[at] = random(256) as u8,
                3 => text.truncate(text.len() - random(60).min(text.len())),
                _ => drop(text.splice(at..at, WORDS[random(WORDS.len())].bytes())),
            }
        }
        let rewrite = rewrite_ptx(&text, &options());
        if rewrite.output.is_some() {
            taken += 1;
            assert!(rewrite.original().as_deref() == Some(&text[..]), "the input is not what is left without the polls");
        }
    }
    println!("{count} changed texts, {taken} of them rewritten, no panic, {:.0} s", begun.elapsed().as_secs_f64());
}
