//! Which tests can see which part of the code.

/// Tests that are built and run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tests {
    /// What follows `cargo test --no-run`.
    pub(crate) build: &'static [&'static str],
    /// What each program is given.
    pub(crate) run: &'static [&'static str],
}

const fn tests(build: &'static [&'static str], run: &'static [&'static str]) -> Tests {
    Tests { build, run }
}

const PROOF: &[Tests] = &[tests(&["-p", "cuinstr-verify", "--lib"], &[]), tests(&["-p", "cuinstr-tests", "--test", "verify"], &[])];
const READER: &[Tests] = &[tests(&["-p", "cuinstr-ptx", "--lib", "--test", "reading", "--test", "mutated"], &[])];
const PASS: &[Tests] = &[tests(&["-p", "cuinstr", "--lib"], &["polls"]), tests(&["-p", "cuinstr-tests", "--test", "polls"], &[])];
const PLAN: &[Tests] = &[
    tests(&["-p", "cuinstr", "--lib"], &[]),
    tests(&["-p", "cuinstr-tests", "--test", "snapshots", "--test", "invariants", "--test", "differential"], &[]),
];
const ABI: &[Tests] =
    &[tests(&["-p", "cuinstr-abi"], &[]), tests(&["-p", "cuinstr-runtime", "--features", "worker", "--lib", "--test", "report"], &[])];
const IMAGE: &[Tests] = &[tests(&["-p", "cuinstr-image"], &[])];
const RUNTIME: &[Tests] = &[
    tests(&["-p", "cuinstr-runtime", "--features", "worker", "--lib", "--test", "report"], &[]),
    tests(&["-p", "cuinstr-runtime", "--features", "worker", "--test", "stand_in"], &["--skip", "harm", "--test-threads", "4"]),
    tests(&["-p", "cuinstr-runtime", "--features", "worker", "--test", "worker"], &["--test-threads", "4"]),
];
const JOURNAL: &[Tests] = &[tests(&["-p", "cuinstr-evaluate"], &[])];
const LAUNCHER: &[Tests] =
    &[tests(&["-p", "cuinstr", "--lib"], &["launcher"]), tests(&["-p", "cuinstr", "--test", "launcher"], &["headers"])];

/// The longest beginning of a path decides.
const SUITES: &[(&str, &[Tests])] = &[
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

/// The tests of a path, if there are any.
pub(crate) fn of(path: &str) -> Option<&'static [Tests]> {
    let fits = SUITES.iter().filter(|(beginning, _)| path.starts_with(beginning));
    fits.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tests)| *tests)
}
