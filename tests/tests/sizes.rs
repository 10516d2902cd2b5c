//! The rewriter's time grows like its input, for each shape of `scripts/rewrite-sizes`.

use cuinstr::options::Options;
use cuinstr::rewrite;
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

fn seconds(shape: &str, size: usize) -> Duration {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/rewrite-sizes");
    let made = Command::new("python3").arg(script).args([shape, &size.to_string()]).output().expect("python3 starts");
    assert!(made.status.success(), "{shape}: {}", String::from_utf8_lossy(&made.stderr));
    let since = Instant::now();
    let done = rewrite(&made.stdout, &Options { path: "a.cu".to_owned(), ..Options::default() });
    assert!(done.output.is_some(), "{shape}: {:?}", done.diagnostics);
    since.elapsed()
}

/// Sixteen times the input may take eighty times the time beside other tests; squared it would be 256. What takes less than two seconds is as good.
#[test]
fn time_grows_like_the_input() {
    for (shape, size) in SHAPES {
        let (small, large) = (seconds(shape, *size), seconds(shape, 16 * size));
        assert!(large < (80 * small).max(Duration::from_secs(2)), "{shape}: {small:?}, and for 16 times as much {large:?}");
        println!("{shape}: {small:?}, {large:?}");
    }
}
