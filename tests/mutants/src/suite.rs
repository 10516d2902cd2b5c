//! Which tests can see which part of the code.

use serde::{Deserialize, Serialize};

/// A test program, and what it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tests {
    pub(crate) package: String,
    /// Its name; `lib` for the tests that the library holds.
    pub(crate) target: String,
    pub(crate) arguments: Vec<String>,
}

type Entry = (&'static str, &'static str, &'static [&'static str]);

const PROOF: &[Entry] = &[("cuinstr-verify", "lib", &[]), ("cuinstr-tests", "verify", &[]), ("cuinstr-tests", "polls", &[])];
const READER: &[Entry] = &[
    ("cuinstr-ptx", "lib", &[]),
    ("cuinstr-ptx", "reading", &[]),
    ("cuinstr-ptx", "flow", &[]),
    ("cuinstr-ptx", "declared", &[]),
    ("cuinstr-ptx", "details", &[]),
    ("cuinstr-ptx", "mutated", &[]),
    ("cuinstr-verify", "lib", &[]),
    ("cuinstr-tests", "polls", &[]),
    ("cuinstr-tests", "verify", &[]),
];
const PASS: &[Entry] = &[
    ("cuinstr", "lib", &["polls"]),
    ("cuinstr-tests", "polls", &[]),
    ("cuinstr-tests", "simulated", &[]),
    ("cuinstr-tests", "verify", &[]),
];
const PLAN: &[Entry] = &[
    ("cuinstr", "lib", &[]),
    ("cuinstr-tests", "snapshots", &[]),
    ("cuinstr-tests", "invariants", &[]),
    ("cuinstr-tests", "differential", &[]),
];
const ABI: &[Entry] = &[
    ("cuinstr-abi", "lib", &[]),
    ("cuinstr-runtime", "lib", &[]),
    ("cuinstr-runtime", "report", &[]),
    ("cuinstr-tests", "snapshots", &[]),
    ("cuinstr-runtime", "stand_in", &["--skip", "harm"]),
];
const IMAGE: &[Entry] =
    &[("cuinstr-image", "lib", &[]), ("cuinstr-runtime", "lib", &[]), ("cuinstr-runtime", "stand_in", &["--skip", "harm"])];
const RUNTIME: &[Entry] = &[
    ("cuinstr-runtime", "lib", &[]),
    ("cuinstr-runtime", "report", &[]),
    // A machine that has a GPU has a device to open.
    ("cuinstr-runtime", "worker", &["--skip", "can't open a device"]),
    ("cuinstr-runtime", "stand_in", &["--skip", "harm"]),
];
const JOURNAL: &[Entry] = &[("cuinstr-evaluate", "lib", &[]), ("cuinstr-tests", "evaluate", &[])];
const LAUNCHER: &[Entry] = &[
    ("cuinstr", "lib", &["launcher"]),
    ("cuinstr", "launcher", &["headers"]),
    // This program takes one filter at a time.
    ("cuinstr", "launcher", &["arguments"]),
    ("cuinstr", "launcher", &["coverage"]),
    ("cuinstr", "launcher", &["failures"]),
    ("cuinstr", "launcher", &["hook"]),
    ("cuinstr", "launcher", &["quotes"]),
    ("cuinstr", "launcher", &["unlucky"]),
    ("cuinstr", "launcher", &["project"]),
    ("cuinstr", "launcher", &["toolkit"]),
    ("cuinstr", "launcher", &["recursion"]),
    ("cuinstr", "launcher", &["half"]),
];

/// The longest beginning of a path decides.
const SUITES: &[(&str, &[Entry])] = &[
    ("instrument/verify", PROOF),
    ("instrument/ptx", READER),
    ("instrument/src/polls", PASS),
    ("instrument/src/launcher", LAUNCHER),
    ("instrument/src", PLAN),
    ("runtime/abi", ABI),
    ("runtime/image", IMAGE),
    ("runtime/src", RUNTIME),
    ("evaluate", JOURNAL),
];

/// Features of crates that tests need beside the usual ones.
pub(crate) const FEATURES: &str = "cuinstr-runtime/snapshot,cuinstr-runtime/worker";

/// Packages that are, or need, those crates.
pub(crate) const WITH_FEATURES: [&str; 2] = ["cuinstr-runtime", "cuinstr-tests"];

/// The tests of a path, the fastest first; none if the path belongs to no part.
pub(crate) fn of(path: &str) -> Option<Vec<Tests>> {
    let fits = SUITES.iter().filter(|(beginning, _)| path.starts_with(beginning));
    let (_, entries) = fits.max_by_key(|(beginning, _)| beginning.len())?;
    let tests = entries.iter().map(|(package, target, arguments)| Tests {
        package: (*package).to_owned(),
        target: (*target).to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
    });
    Some(tests.collect())
}
