//! The ways in which each program is compiled.

use cuinstr::options::{Limits, Options, Polls};

/// One way.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Its name in messages.
    pub name: &'static str,
    /// How it is rewritten, unless it is not.
    pub options: Option<Options>,
    /// Whether the plain text counts its back edges.
    pub counts_edges: bool,
    /// Whether it is compiled for a GPU.
    pub gpu: bool,
    /// What the compiler is told.
    pub flags: &'static [&'static str],
    /// What is done to the prelude and to the rewritten text, which once was the plain one, before they are compiled: tests break them on
    /// purpose.
    pub sabotage: Option<fn(&mut String, &mut String, &str)>,
}

/// Fuel that is compiled in; each run arms its own.
const FUEL: u64 = 1_000_000_007;

/// What the host's own programs must not do, each a trap that the runner takes for the end of the comparison: a program whose behaviour is
/// undefined may do anything once it is rewritten. Without optimisation, which drops what nobody reads and the check with it.
const TRAPS: &[&str] = &["-O0", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];

/// The plain program, with a count of its back edges: what the others are compared with.
#[must_use]
pub fn model() -> Lane {
    Lane { name: "model", options: None, counts_edges: true, gpu: false, flags: TRAPS, sabotage: None }
}

/// With an optimiser. GCC 12's choice of induction variables takes `i += 1u`, by which an `int` goes round, for a signed sum that does not, in the
/// plain program as well (seed 8863 at -O1, right by Clang and by `-fwrapv`): it is left out.
const OPTIMISED: &[&str] = &["-O1", "-fno-ivopts"];

fn rewritten(name: &'static str, polls: Polls, fuel: bool, flags: &'static [&'static str]) -> Lane {
    let limits = Limits { fuel: fuel.then_some(FUEL), ..Limits::default() };
    Lane { name, options: Some(Options { polls, limits, ..Options::default() }), counts_edges: false, gpu: false, flags, sabotage: None }
}

/// The rewritten forms of every program.
#[must_use]
pub fn rewritten_lanes() -> Vec<Lane> {
    vec![
        rewritten("count-down", Polls::CountDown, false, &["-O0"]),
        rewritten("default", Polls::Amortised, false, OPTIMISED),
        rewritten("default with fuel", Polls::Amortised, true, &["-O0"]),
        rewritten("each with fuel", Polls::Each, true, &["-O0"]),
        rewritten("each", Polls::Each, false, &["-O0"]),
    ]
}

/// What is compiled for a slice of the programs only: with checks for undefined behaviour in all that is inserted, and as the optimiser
/// would have it.
#[must_use]
pub fn rare_lanes() -> Vec<Lane> {
    const CHECKED: &[&str] = &["-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"];
    vec![
        rewritten("default, sanitized", Polls::Amortised, false, CHECKED),
        rewritten("default with fuel, sanitized", Polls::Amortised, true, CHECKED),
        rewritten("default, optimised", Polls::Amortised, false, &["-O3", "-fno-ivopts"]),
    ]
}

/// What is compiled for a GPU: the plain programs, and all forms without fuel. The default form with another
/// computation in it, and the one with strips that are too long, must be found to differ.
#[must_use]
pub fn gpu_lanes() -> Vec<Lane> {
    let plain = Lane { name: "plain", counts_edges: false, ..model() };
    let broken = rewritten(BROKEN, Polls::Amortised, false, &[]);
    let lanes = [
        plain,
        rewritten("count-down", Polls::CountDown, false, &[]),
        rewritten("default", Polls::Amortised, false, &[]),
        rewritten("each", Polls::Each, false, &[]),
        Lane { sabotage: Some(|_, text, _| *text = text.replace("acc * 31u", "acc * 33u")), ..broken },
        Lane {
            sabotage: Some(|prelude, _, _| {
                *prelude = replaced(
                    prelude,
                    "return __ci_distance - __ci_times * __ci_step >= __ci_step ? __ci_times + 1u : __ci_times;",
                    "return __ci_times + 1u;",
                );
            }),
            ..rewritten("broken strides", Polls::Amortised, false, &[])
        },
        Lane {
            sabotage: Some(|prelude, _, _| *prelude = replaced(prelude, "trips % __cuinstr_length == 0u && ", "")),
            ..rewritten("broken strips", Polls::Amortised, false, &[])
        },
    ];
    lanes.into_iter().map(|lane| Lane { gpu: true, flags: &[], ..lane }).collect()
}

/// The prelude with a piece of it replaced.
///
/// # Panics
/// If the piece is not there any more: what it was broken by needs another.
#[must_use]
pub fn replaced(prelude: &str, from: &str, to: &str) -> String {
    assert!(prelude.contains(from), "the prelude says `{from}` no more");
    prelude.replace(from, to)
}

/// The lane of a GPU that is broken on purpose; its programs say so.
const BROKEN: &str = "broken on purpose";
