//! Every file of `tests/data/ptx/attacks`: PTX that once passed though it may run far too long, or that no test told from its sound twin.
//! The first line of each says what the proof says of it: `//@ holds`, or `//@ fails` and a code that is among its findings.

use cuinstr::verify::{Report, verify_ptx};
use cuinstr_harness::fixtures::workspace;
use std::collections::BTreeSet;

/// The codes of all that is found.
fn codes(report: &Report) -> BTreeSet<&'static str> {
    let loops = report.loops.iter().filter_map(|found| found.verdict.code()).map(cuinstr::diagnostic::Code::from);
    let calls = report.unknown.iter().map(|_| cuinstr::diagnostic::Code::UnknownCallee);
    loops.chain(calls).chain(report.faults.iter().map(|fault| fault.code.into())).map(cuinstr::diagnostic::Code::id).collect()
}

#[test]
fn each_attack_is_found_and_its_sound_twin_holds() {
    let folder = workspace().join("tests/data/ptx/attacks");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the attacks are there").map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    let mut wrong = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path).expect("it is text");
        let report = verify_ptx(&text);
        let found = codes(&report);
        let is_right = match text.lines().next().and_then(|line| line.strip_prefix("//@ ")) {
            Some("holds") => report.holds() && found.is_empty(),
            Some(fails) => fails.strip_prefix("fails ").is_some_and(|code| found.contains(code)) && !report.holds(),
            None => false,
        };
        if !is_right {
            wrong.push(format!("{}: {found:?}", path.display()));
        }
    }
    assert!(files.len() > 20, "{files:?}");
    assert_eq!(wrong, Vec::<String>::new());
}
