//! Any bytes with any options: no panic, and the invariants that can be seen from outside.
//!
//! An input is the source followed by eight bytes that choose the options, so that a kernel file with a trailer of zeros, as
//! `scripts/fuzz` seeds them, is that file with the default options.

#![no_main]

use cuinstr::diagnostic::{Code, Severity};
use cuinstr::options::{AtExit, DeviceMacro, Limits, Options, Polls, Space, Waiver};
use libfuzzer_sys::{Corpus, fuzz_target};

/// Bytes at an input's end that choose the options.
const TRAILER: usize = 8;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((source, trailer)) = input.split_last_chunk::<TRAILER>() else { return Corpus::Reject };
    check(source, &options(*trailer));
    Corpus::Keep
});

fn check(source: &[u8], options: &Options) {
    let first = cuinstr::rewrite(source, options);
    assert_eq!(first, cuinstr::rewrite(source, options), "same bytes and options, another result");

    let refused = first.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert!(!(refused && first.output.is_some()), "an error, and an output all the same");
    for diagnostic in &first.diagnostics {
        for label in diagnostic.primary.iter().chain(&diagnostic.secondary) {
            assert!(label.span.start <= label.span.end && label.span.end <= source.len(), "{diagnostic:?} points outside the source");
        }
        assert!(diagnostic.severity != Severity::Warning || !options.strict, "a warning under `strict`: {diagnostic:?}");
    }
    let _ = first.sites.to_json();

    let original = first.original();
    let Some(output) = first.output else { return };
    let again = cuinstr::rewrite(&output, options);
    assert!(
        again.output.is_none() && again.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::OwnOutput),
        "own output taken as input"
    );
    assert_eq!(original.as_deref(), Some(source), "dropping our text does not give the input back");
}

/// Options that eight bytes choose; zeros are the defaults.
fn options([switches, marks, macros, alone, waiver, limits @ ..]: [u8; TRAILER]) -> Options {
    let on = |bits: u8, bit: u32| bits >> bit & 1 == 1;
    let limit = u64::from_be_bytes([0, 0, 0, limits[0], limits[1], limits[2], 0, 1]);
    let space = [Space::Kernel, Space::Device, Space::HostDevice][usize::from(marks) % 3];
    Options {
        path: if on(marks, 7) { "a \"b\\c\n.cu".into() } else { "kernel.cu".into() },
        site_path: if on(marks, 6) { "src/kernel.cu".into() } else { String::new() },
        polls: if on(switches, 0) { Polls::Each } else { Polls::Amortised },
        at_exit: if on(switches, 1) { AtExit::Gate } else { AtExit::Check },
        limits: Limits {
            timeout_ns: on(switches, 2).then_some(limit),
            budget_cycles: on(switches, 3).then_some(limit),
            fuel: on(switches, 4).then_some(limit.min(Limits::MAX_FUEL)),
        },
        device_macros: if on(switches, 5) { vec![DeviceMacro { name: word(macros).into(), space }] } else { Vec::new() },
        loop_macros: if on(switches, 6) { vec![word(macros).into()] } else { Vec::new() },
        leave_alone: if alone == 0 { Vec::new() } else { vec![word(alone).into()] },
        waivers: if waiver == 0 {
            Vec::new()
        } else {
            let code = Code::ALL[usize::from(waiver) % Code::ALL.len()];
            vec![Waiver { code, function: on(alone, 0).then(|| word(alone).into()), reason: "fuzzed".into(), shared: on(alone, 1) }]
        },
        strict: on(switches, 7),
    }
}

/// Names that sources have, and some that no list should hold.
fn word(choice: u8) -> &'static str {
    ["KERNEL", "DEVICE", "LOOP", "k", "f", "a", "", "for", "__global__", "SPIN", "saxpy", "operator()"][usize::from(choice) % 12]
}
