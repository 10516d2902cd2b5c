//! How fast a file is rewritten, against tree-sitter's own parse of the same text, and in how much memory.
//!
//! Run it by `scripts/bench-rewrite`, which pins it to one core; it prints a Markdown table. The two are timed in turn, in one process,
//! so that a change of clock hits both; a cell is the median and, in brackets, the range. Memory is taken in a fresh process per cell:
//! the peak of its resident set (`VmHWM`) less what was resident before the input was read, so the input itself counts.

#![expect(clippy::cast_precision_loss, reason = "byte counts far below 2^52")]

use cuinstr::options::Options;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs};

/// Sizes of the synthetic files, and how often each is timed.
const SYNTHETIC: [(usize, usize); 3] = [(100_000, 15), (1_000_000, 11), (10_000_000, 5)];
/// How often the kernels themselves are timed.
const ROUNDS_FOR_KERNELS: usize = 31;
/// First argument of a child that measures memory: `--peak rewrite FILE` or `--peak parse FILE`.
const PEAK: &str = "--peak";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [PEAK, work, file] => {
            println!("{}", grown_by(work, file));
            ExitCode::SUCCESS
        }
        [] => bench("kernels"),
        [folder] if !folder.starts_with('-') => bench(folder),
        _ => {
            eprintln!("usage: bench_rewrite [FOLDER OF KERNELS]");
            ExitCode::from(2)
        }
    }
}

fn bench(folder: &str) -> ExitCode {
    let kernels = kernels(Path::new(folder));
    if kernels.is_empty() {
        eprintln!("bench_rewrite: no .cu file in {folder} that cuinstr accepts");
        return ExitCode::FAILURE;
    }
    let bytes: usize = kernels.values().map(Vec::len).sum();

    let mut table = String::from(
        "| input | bytes | rewrite, MB/s | parse alone, MB/s | rewrite / parse | peak of rewrite / input | peak of parse / input |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let all: Vec<&[u8]> = kernels.values().map(Vec::as_slice).collect();
    let speeds = Speeds::of(&all, ROUNDS_FOR_KERNELS);
    row(&mut table, &format!("{} kernels, one by one", all.len()), bytes, &speeds, None);
    for (size, rounds) in SYNTHETIC {
        let text = synthetic(&kernels, size);
        if cuinstr::rewrite(&text, &options("synthetic.cu")).output.is_none() {
            eprintln!("bench_rewrite: the synthetic file of {size} bytes is refused; its row times a refusal");
        }
        let speeds = Speeds::of(&[&text], rounds);
        let peaks = peaks(&text);
        row(&mut table, &format!("synthetic, {} KB", size / 1000), text.len(), &speeds, peaks);
    }

    println!("`scripts/bench-rewrite`: {}, one core, {} {}\n", cpu(), env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    print!("{table}");
    println!("\nMedian and range. MB = 10^6 bytes. Peak: resident memory that a fresh process gained, the input included.");
    ExitCode::SUCCESS
}

/// Sources that the rewriter accepts, by path. What it refuses would time the refusal.
fn kernels(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "cu") {
                let text = fs::read(&path).expect("a file just listed can be read");
                if cuinstr::rewrite(&text, &options("kernel.cu")).output.is_some() {
                    found.insert(path, text);
                }
            }
        }
    }
    found
}

fn options(path: &str) -> Options {
    Options { path: path.into(), ..Options::default() }
}

/// All kernels over and over, each time with other names for their functions, until `size` bytes are full.
fn synthetic(kernels: &BTreeMap<PathBuf, Vec<u8>>, size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 100_000);
    for copy in 0.. {
        for kernel in kernels.values() {
            if text.len() >= size {
                return text;
            }
            renamed(kernel, copy, &mut text);
            text.push(b'\n');
        }
    }
    unreachable!("each round adds to the text")
}

/// Appends `source` with `_COPY` behind the name of each function that is defined outside braces.
fn renamed(source: &[u8], copy: usize, text: &mut Vec<u8>) {
    let words = words(source);
    let mut names: Vec<&[u8]> = Vec::new();
    for pair in words.windows(2) {
        let [before, word] = pair else { unreachable!("windows of two") };
        let name = &source[word.start..word.end];
        let typed = source[before.end..word.start].iter().all(|byte| byte.is_ascii_whitespace() || b"*&>".contains(byte));
        let called = source[word.end..].first() == Some(&b'(');
        if word.depth == 0 && typed && called && !name.starts_with(b"__") {
            names.push(name);
        }
    }
    let mut done = 0;
    for word in &words {
        if names.contains(&&source[word.start..word.end]) {
            text.extend_from_slice(&source[done..word.end]);
            text.extend_from_slice(format!("_{copy}").as_bytes());
            done = word.end;
        }
    }
    text.extend_from_slice(&source[done..]);
}

struct Word {
    start: usize,
    end: usize,
    /// Braces open around it.
    depth: usize,
}

/// Identifiers outside comments, strings and directives: no lexer of C++, only enough for the kernels.
fn words(source: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut at, mut depth, mut fresh_line) = (0, 0_usize, true);
    while at < source.len() {
        let rest = &source[at..];
        let until = |end: &[u8]| rest.windows(end.len()).position(|window| window == end).map_or(rest.len(), |found| found + end.len());
        let length = match rest[0] {
            b'/' if rest.starts_with(b"//") => until(b"\n"),
            b'/' if rest.starts_with(b"/*") => until(b"*/"),
            b'#' if fresh_line => until(b"\n"),
            quote @ (b'"' | b'\'') => {
                let mut end = 1;
                while end < rest.len() && rest[end] != quote && rest[end] != b'\n' {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                (end + 1).min(rest.len())
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
                let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
                words.push(Word { start: at, end: at + length, depth });
                length
            }
            b'{' => {
                depth += 1;
                1
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => 1,
        };
        fresh_line = rest[length - 1] == b'\n' || (fresh_line && rest[length - 1].is_ascii_whitespace());
        at += length;
    }
    words
}

/// Bytes a second, one figure for each round.
struct Speeds {
    rewrite: Vec<f64>,
    parse: Vec<f64>,
}

impl Speeds {
    fn of(texts: &[&[u8]], rounds: usize) -> Self {
        let bytes: f64 = texts.iter().map(|text| text.len() as f64).sum();
        let options = options("kernel.cu");
        let (mut rewrites, mut parses) = (Vec::new(), Vec::new());
        // The first round warms caches and allocator, and is not counted.
        for round in 0..=rounds {
            let rewrite = timed(texts, |text| drop(black_box(cuinstr::rewrite(text, &options))));
            let parse = timed(texts, parse);
            if round > 0 {
                rewrites.push(bytes / rewrite.as_secs_f64());
                parses.push(bytes / parse.as_secs_f64());
            }
        }
        Self { rewrite: rewrites, parse: parses }
    }
}

fn timed(texts: &[&[u8]], work: impl Fn(&[u8])) -> Duration {
    let start = Instant::now();
    for text in texts {
        work(black_box(text));
    }
    start.elapsed()
}

/// What is compared with: the grammar's own parse of the text, as it is.
fn parse(text: &[u8]) {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).expect("the grammar fits the parser");
    drop(black_box(parser.parse(text, None)));
}

fn row(table: &mut String, input: &str, bytes: usize, speeds: &Speeds, peaks: Option<(f64, f64)>) {
    let ratios: Vec<f64> = speeds.rewrite.iter().zip(&speeds.parse).map(|(rewrite, parse)| rewrite / parse).collect();
    let megabytes = |figures: &[f64]| cell(&figures.iter().map(|figure| figure / 1e6).collect::<Vec<_>>());
    let (rewrite_peak, parse_peak) =
        peaks.map_or(("–".into(), "–".into()), |(rewrite, parse)| (format!("{rewrite:.1}"), format!("{parse:.1}")));
    let (rewrite, parse, ratio) = (megabytes(&speeds.rewrite), megabytes(&speeds.parse), cell(&ratios));
    writeln!(table, "| {input} | {bytes} | {rewrite} | {parse} | {ratio} | {rewrite_peak} | {parse_peak} |").expect("a string takes all");
}

fn cell(figures: &[f64]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    format!("{:.2} ({:.2} to {:.2})", sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
}

/// Peak memory of a rewrite and of a parse as multiples of the input, each from a process of its own.
fn peaks(text: &[u8]) -> Option<(f64, f64)> {
    let file = env::temp_dir().join(format!("cuinstr-bench-{}.cu", std::process::id()));
    fs::write(&file, text).ok()?;
    let child = |work: &str| -> Option<f64> {
        let output = Command::new(env::current_exe().ok()?).args([PEAK, work]).arg(&file).output().ok()?;
        let grown: f64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
        Some(grown / text.len() as f64)
    };
    let both = child("rewrite").zip(child("parse"));
    let _ = fs::remove_file(&file);
    both
}

/// Bytes that the resident set grew by at its peak, from before the input was read.
fn grown_by(work: &str, file: &str) -> u64 {
    // Start-up code has run and is paged in before the baseline is taken; a small input does that for the rewriter's own.
    run(work, b"__global__ void k(int *a) { for (;;) a[0]++; }");
    let before = status("VmRSS:");
    let text = fs::read(file).expect("the parent wrote this file");
    run(work, &text);
    status("VmHWM:").saturating_sub(before)
}

fn run(work: &str, text: &[u8]) {
    match work {
        "parse" => parse(text),
        _ => drop(black_box(cuinstr::rewrite(text, &options("kernel.cu")))),
    }
}

/// A field of this process's status in bytes; 0 where there is no such file.
fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or_default() * 1024
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    name.unwrap_or("unknown CPU").trim().to_string()
}
