//! Ten faults of the PTX reader, each of which its own tests must notice: a slice of what `scripts/mutants` does with many. The faults are compiled
//! together, and a variable selects one.

use cuinstr_harness::process;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A file of the reader, an expression that stands once in it, and a wrong one.
const FAULTS: [(&str, &str, &str); 10] = [
    ("graph.rs", "begins[index] && index > first", "begins[index] || index > first"),
    (
        "graph.rs",
        "block.guarded || matches!(statement.flow, Flow::Next | Flow::Call)",
        "block.guarded && matches!(statement.flow, Flow::Next | Flow::Call)",
    ),
    ("function.rs", "statement.end <= offset", "statement.end > offset"),
    ("calls.rs", "*callee == name", "*callee != name"),
    ("calls.rs", "!fits.is_empty()", "fits.is_empty()"),
    ("token.rs", "byte == b'\"'", "byte != b'\"'"),
    ("token.rs", "self.at + length + 4", "self.at + length + 3"),
    ("token.rs", "self.byte(start + 1)", "self.byte(start - 1)"),
    ("components.rs", "component.len() > 1", "component.len() < 1"),
    ("code.rs", "self.access(statement) != Access::First", "self.access(statement) == Access::First"),
];

/// What each faulty text asks.
const SWITCH: &str = "
#[allow(warnings, clippy::all)]
pub(crate) fn __fault(number: usize) -> bool {
    static ACTIVE: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *ACTIVE.get_or_init(|| std::env::var(\"CUINSTR_FAULT\").ok().and_then(|text| text.parse().ok())) == Some(number)
}
";

/// A workspace with nothing but the reader, and the versions of this one. What it needs was fetched when this test was built.
fn copy(folder: &Path) {
    let workspace = cuinstr_harness::fixtures::workspace();
    let read = |name: &str| fs::read_to_string(workspace.join(name)).expect("a file of the workspace");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        // What is the same is not compiled again.
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return;
        }
        fs::write(path, text).expect("it can be written");
    };
    let root = read("Cargo.toml");
    let versions = root.find("[workspace.package]").expect("what all crates share");
    write("Cargo.toml", &format!("[workspace]\nresolver = \"3\"\nmembers = [\"instrument/ptx\"]\n\n{}", &root[versions..]));
    write("Cargo.lock", &read("Cargo.lock"));
    // Not the test against ptxas, nor what makes random texts for another one: that takes longer to compile than all else.
    let manifest = read("instrument/ptx/Cargo.toml");
    write("instrument/ptx/Cargo.toml", manifest.split("[[test]]").next().unwrap_or_default());
    let mut folders = vec![PathBuf::from("instrument/ptx/src"), PathBuf::from("instrument/ptx/tests/data")];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(workspace.join(&inner)).expect("a folder of the reader").flatten() {
            let name = inner.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(name);
                continue;
            }
            let name = name.to_str().expect("a name of UTF-8");
            write(name, &faulty(name, read(name)));
        }
    }
    for name in ["instrument/ptx/tests/reading.rs", "instrument/ptx/tests/flow.rs"] {
        write(name, &read(name));
    }
}

/// A file's text with its faults, each behind a question whether it is the one in force.
fn faulty(name: &str, mut text: String) -> String {
    for (number, (file, right, wrong)) in FAULTS.iter().enumerate() {
        if Path::new(name).parent().is_some_and(|folder| folder.ends_with("src")) && name.ends_with(&format!("/{file}")) {
            assert_eq!(text.matches(right).count(), 1, "{name}: {right}");
            text = text.replace(right, &format!("(if crate::__fault({number}) {{ {wrong} }} else {{ {right} }})"));
        }
    }
    if name.ends_with("/src/lib.rs") { text + SWITCH } else { text }
}

/// The reader's tests. Whether they pass, and what they print.
fn test(folder: &Path, fault: Option<usize>) -> (bool, String) {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--offline", "--lib", "--test", "reading", "--test", "flow"]).current_dir(folder);
    command.env("CARGO_TARGET_DIR", folder.join("target")).env("RUST_BACKTRACE", "0").env_remove("CUINSTR_FAULT");
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        command.env_remove(name);
    }
    if let Some(fault) = fault {
        command.env("CUINSTR_FAULT", fault.to_string());
    }
    let finished = process::run(&mut command, Duration::from_secs(900)).expect("Cargo starts");
    (finished.success(), finished.stdout + &finished.stderr)
}

#[test]
fn the_readers_tests_notice_faults_of_the_reader() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
    copy(&folder);
    let (passes, said) = test(&folder, None);
    assert!(passes, "{said}");
    let unnoticed: Vec<_> = FAULTS.iter().enumerate().filter(|(number, _)| test(&folder, Some(*number)).0).collect();
    assert!(unnoticed.is_empty(), "no test of cuinstr-ptx notices {unnoticed:?}");
}
