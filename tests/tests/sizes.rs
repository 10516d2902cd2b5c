//! The time of both passes grows like their input, for each shape of `scripts/rewrite-sizes` and for most of `scripts/ptx-sizes`.

use cuinstr::options::Options;
use cuinstr::{rewrite, rewrite_ptx};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Each shape, with the smaller of its two sizes.
const SHAPES: &[(&str, usize)] = &[
    ("macros", 1000),
    ("macros_up", 1000),
    ("macros_used", 1000),
    ("values", 1000),
    ("gotos", 1000),
    ("gotos_nested", 1000),
    ("loops", 250),
    ("loops_constant", 250),
    ("loops_flat", 500),
    ("lambdas", 250),
    ("lambdas_flat", 250),
    ("parentheses", 1000),
    ("braces", 1000),
    ("functions", 500),
    ("host", 500),
    ("arms", 1000),
    ("arms_flat", 500),
    ("bulk", 500),
    ("classes", 500),
    ("makers", 500),
    ("pasted", 500),
];

/// Shapes of PTX. Those with cycles of several ways in within each other are left out: each is looked for in what is left of the one around it.
const PTX_SHAPES: &[&str] = &[
    "constant",
    "counted",
    "own",
    "down",
    "remainders",
    "joined",
    "side",
    "loaded",
    "chased",
    "pairs",
    "nests",
    "irreducible",
    "mixed",
    "cold",
    "deep",
    "deep_calls",
    "latches",
    "breaks",
    "table",
    "threaded",
    "threaded_loop",
    "returned",
    "pointers",
    "launches",
    "chain",
    "straight",
    "branches",
    "returns",
    "files",
    "one_line",
];

/// The smaller size of each of them.
const PTX_SIZE: usize = 1000;

fn made(script: &str, shape: &str, size: usize) -> Vec<u8> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(script);
    let made = Command::new("python3").arg(script).args([shape, &size.to_string()]).output().expect("python3 starts");
    assert!(made.status.success(), "{shape}: {}", String::from_utf8_lossy(&made.stderr));
    made.stdout
}

/// What this thread has spent on cores, where the system says so: other tests do not count.
fn on_core() -> Option<Duration> {
    let words = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    words.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Sixteen times the input may take eighty times the time beside other tests; squared it would be 256. What takes less than two seconds is as good.
fn grows_like_the_input(shape: &str, size: usize, seconds: impl Fn(&str, usize) -> Duration) {
    let (small, large) = (seconds(shape, size), seconds(shape, 16 * size));
    assert!(large < (80 * small).max(Duration::from_secs(2)), "{shape}: {small:?}, and for 16 times as much {large:?}");
    println!("{shape}: {small:?}, {large:?}");
}

#[test]
fn time_grows_like_the_input() {
    for (shape, size) in SHAPES {
        grows_like_the_input(shape, *size, |shape, size| {
            let source = made("rewrite-sizes", shape, size);
            let since = Instant::now();
            let done = rewrite(&source, &Options { path: "a.cu".to_owned(), ..Options::default() });
            assert!(done.output.is_some(), "{shape}: {:?}", done.diagnostics);
            since.elapsed()
        });
    }
}

#[test]
fn time_grows_like_the_ptx() {
    for shape in PTX_SHAPES {
        grows_like_the_input(shape, PTX_SIZE, |shape, size| {
            let text = made("ptx-sizes", shape, size);
            let since = (Instant::now(), on_core());
            let done = rewrite_ptx(&text, &Options { path: "a.ptx".to_owned(), ..Options::default() });
            assert!(done.output.is_some(), "{shape}: {:?}", done.diagnostics);
            on_core().zip(since.1).map_or(since.0.elapsed(), |(now, before)| now.saturating_sub(before))
        });
    }
}
