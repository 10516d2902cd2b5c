//! Random functions, simulated: no loop iterates more often than the proof says. `tests/data/functions/functions.cpp` makes and simulates them.
//!
//! `CUINSTR_FUNCTIONS` asks for more than a test run has time for, and `CUINSTR_FUNCTIONS_SEED` for others: modules of 50 functions are numbered from it.
//! `scripts/proof-long` makes ten million.

use cuinstr::verify::report::{Bound, Verdict};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::workspace;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Functions of one module.
const IN_ONE: usize = 50;

fn run(program: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output().expect("the program was just compiled");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn no_simulated_function_iterates_more_often_than_is_claimed() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<usize>().ok());
    let count = number("CUINSTR_FUNCTIONS").unwrap_or(150);
    let first = number("CUINSTR_FUNCTIONS_SEED").unwrap_or(1);
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let program = folder.path().join("functions");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let source = workspace().join("tests/data/functions/functions.cpp");
    let build = Command::new(compiler).args(["-std=c++17", "-O2", "-w", "-o"]).arg(&program).arg(&source).status();
    assert!(build.is_ok_and(|status| status.success()), "a host C++ compiler is needed");
    let claims = folder.path().join("claims");
    let mut proved = 0;
    for seed in first..first + count / IN_ONE {
        let arguments = [seed.to_string(), IN_ONE.to_string()];
        let (_, text) = run(&program, &[&arguments[0], &arguments[1]]);
        let report = verify_ptx(&text);
        assert_eq!(report.faults, [], "seed {seed}");
        let mut claimed = String::new();
        for found in &report.loops {
            if let Verdict::Bounded { by: Bound::Rounds(rounds) } = found.verdict {
                let _ = writeln!(claimed, "{} {rounds}", found.line);
                proved += 1;
            }
        }
        std::fs::write(&claims, claimed).expect("the folder can be written");
        let (is_right, said) = run(&program, &[&arguments[0], &arguments[1], &claims.to_string_lossy()]);
        assert!(is_right, "seed {seed}: {said}");
    }
    eprintln!("{count} functions, {proved} loops proved");
    assert!(proved * 10 > count, "{proved} loops of {count} functions are proved: too few to say anything");
}
