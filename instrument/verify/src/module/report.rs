//! The report about a module.

use crate::domain::value::MOST_TICKS;
use crate::module::call_trees::CallWeight;
use crate::rank::weight::Weight;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

/// What was found in one module of PTX.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `.target`, if there is one.
    pub target: Option<String>,
    /// Kernels, in the order of the text.
    pub kernels: Vec<String>,
    /// Loops and cycles of calls, in the order of the text.
    pub loops: Vec<Loop>,
    /// Calls of functions that are not in sight.
    pub unknown: Vec<UnknownCall>,
    /// What is wrong with the text. A module with faults is not proved, whatever its loops say.
    pub faults: Vec<Fault>,
    /// What is taken for granted of this module, beside what `docs/VERIFY.md` assumes of every module.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<Assumption>,
    /// What programs that it is linked into are told of its functions.
    #[serde(skip)]
    pub(crate) links: Vec<Linkage>,
    /// Whether its control block is one that other units do not see.
    #[serde(skip)]
    pub(crate) has_own_control: bool,
    /// Sites of all calls that are marked in it, if each can be told.
    #[serde(skip)]
    pub(crate) marked: Option<BTreeSet<u64>>,
}

impl Report {
    /// Whether every loop is polled or bounded, every callee is in sight, and the text is sound.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults.is_empty() && self.unknown.is_empty() && self.loops.iter().all(|found| found.verdict.holds())
    }

    /// Sites of marked calls, and those among them that need a poll: a loop or a cycle of calls passes them that neither is polled nor ends. None where that
    /// can't be told, since something is out of sight.
    #[must_use]
    pub fn calls(&self) -> Option<(BTreeSet<u64>, BTreeSet<u64>)> {
        let marked = self.marked.clone().filter(|_| self.faults.is_empty() && self.unknown.is_empty())?;
        // Where threads trap for a loop's own poll, calls inside have nothing to add.
        let open = self.loops.iter().filter(|found| !found.verdict.holds() && found.verdict != Verdict::TrapOnly);
        Some((marked, open.flat_map(|found| &found.marked).copied().collect()))
    }
}

/// A loop, or functions that call each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loop {
    /// Function it lies in; for a cycle of calls the first of them.
    pub function: String,
    /// Kernels that reach it, the first few; empty if none of this module does.
    pub kernels: Vec<String>,
    /// What is proved.
    pub verdict: Verdict,
    /// Line of the PTX, from 1, at which its rounds begin.
    pub line: usize,
    /// Where in the source its rounds end, if the PTX says so.
    pub place: Option<Place>,
    /// Every line of sources that its blocks come from: file and line.
    pub lines: Vec<(String, u32)>,
    /// Labels of its blocks; blocks without one by their line in the PTX (`line 17`). For a cycle of calls, the functions.
    pub blocks: Vec<String>,
    /// How many loops are around it in its function.
    pub depth: usize,
    /// Whether it is a cycle of calls.
    pub recursion: bool,
    /// Whether it is a tree of calls: nothing in it repeats for ever, but a function makes more calls than the proof lets pass.
    pub call_tree: bool,
    /// Sites of the calls that are marked in it, and in what it calls.
    #[serde(skip)]
    pub(crate) marked: Vec<u64>,
}

impl Loop {
    /// What is found of it, in one line. The function has this name for the reader.
    #[must_use]
    pub fn sentence(&self, function: &str) -> String {
        let what = if self.call_tree { "a tree of calls" } else { "a loop" };
        format!("{what} in `{function}` {}", self.verdict.predicate())
    }
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Code {
    /// A loop that nothing stops.
    #[serde(rename = "CI050")]
    NotStoppable,
    /// A loop whose threads go on under `leave`.
    #[serde(rename = "CI051")]
    TrapsOnly,
    /// A loop that waits for a barrier in hardware.
    #[serde(rename = "CI052")]
    WaitsInHardware,
    /// PTX that makes no sense.
    #[serde(rename = "CI054")]
    UnsoundPtx,
    /// Loops or calls that take too long without a poll.
    #[serde(rename = "CI061")]
    TooManyRounds,
    /// A store to the control block.
    #[serde(rename = "CI062")]
    ControlWritten,
}

impl Code {
    /// The stable name, such as `CI050`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::NotStoppable => "CI050",
            Self::TrapsOnly => "CI051",
            Self::WaitsInHardware => "CI052",
            Self::UnsoundPtx => "CI054",
            Self::TooManyRounds => "CI061",
            Self::ControlWritten => "CI062",
        }
    }
}

/// What is proved of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Once the flag says stop, at most so many rounds of it and the loops inside go on: 0 if each asks.
    Polled {
        /// Most further rounds.
        rounds: u64,
    },
    /// It ends by itself.
    Bounded {
        /// By what.
        by: Bound,
    },
    /// Each round waits for a barrier in hardware, which can't ask.
    WaitsInHardware,
    /// Nothing shows that it can be stopped.
    NotPolled {
        /// Why not.
        why: String,
    },
    /// Each loop ends, but they and calls multiply: together they take longer without a poll than the proof lets pass.
    TooMany {
        /// Iterations and calls, at most.
        rounds: u64,
        /// Seconds by the clock, at most, rounded up.
        seconds: u64,
    },
    /// Threads that must stop trap under `trap`; under `leave` they say so and go on.
    TrapOnly,
}

/// What ends a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At most so many iterations each time it is entered, those of loops inside and of callees included.
    Rounds(u64),
    /// A clock, after a second or 10^9 cycles at most, loops around it included.
    Clock,
}

impl Verdict {
    /// What is said of what may take too long without a poll.
    pub(crate) fn too_many(weight: Weight) -> Self {
        Self::TooMany { rounds: weight.rounds, seconds: weight.ticks.div_ceil(MOST_TICKS) }
    }

    /// Whether it lets a module pass.
    #[must_use]
    pub fn holds(&self) -> bool {
        matches!(self, Self::Polled { .. } | Self::Bounded { .. })
    }

    /// The code of the finding, if it is one.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Polled { .. } | Self::Bounded { .. } => None,
            Self::NotPolled { .. } => Some(Code::NotStoppable),
            Self::TooMany { .. } => Some(Code::TooManyRounds),
            Self::TrapOnly => Some(Code::TrapsOnly),
            Self::WaitsInHardware => Some(Code::WaitsInHardware),
        }
    }

    /// In a few words that may stand behind a loop's name.
    fn predicate(&self) -> String {
        match self {
            Self::WaitsInHardware | Self::TrapOnly => self.text(),
            _ => format!("is {}", self.text()),
        }
    }

    /// In a few words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Polled { rounds: 0 } => "polled".to_owned(),
            Self::Polled { rounds } => format!("polled (within {rounds} rounds)"),
            Self::Bounded { by: Bound::Rounds(0 | 1) } => "bounded (never repeats)".to_owned(),
            Self::Bounded { by: Bound::Rounds(rounds) } => format!("bounded (at most {rounds} rounds)"),
            Self::Bounded { by: Bound::Clock } => "bounded (by the clock)".to_owned(),
            Self::WaitsInHardware => "waits in hardware".to_owned(),
            Self::NotPolled { why } => format!("not polled: {why}"),
            Self::TooMany { rounds, seconds } if *seconds > 1 => {
                format!(
                    "too long: with the loops around it, inside it and what it calls, {seconds} seconds and {rounds} rounds may pass without a poll"
                )
            }
            Self::TooMany { rounds, .. } => {
                format!("too many rounds: with the loops inside it and what it calls, {rounds} may pass without a poll")
            }
            Self::TrapOnly => "traps only: under `leave` its threads go on".to_owned(),
        }
    }
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// As the compiler spelled it.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
    /// Where it was inlined, from the inside out.
    pub inlined: Vec<Frame>,
}

/// A call that was inlined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The function that was inlined, as the linker knows it; empty if the PTX does not say.
    pub function: String,
    /// Where it was called.
    pub file: String,
    /// Line of the call, from 1.
    pub line: u32,
    /// Column of the call, from 1; 0 if unknown.
    pub column: u32,
}

/// A call that leads out of sight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownCall {
    /// Function that calls.
    pub function: String,
    /// Function that is called; empty for a pointer.
    pub callee: String,
    /// Line of the PTX, from 1.
    pub line: usize,
    /// Where in the source, if the PTX says so.
    pub place: Option<Place>,
}

/// What is taken for granted, since the module does not show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// The function that it is about.
    pub function: String,
    /// Line of the PTX, from 1.
    pub line: usize,
    /// What is taken for granted.
    pub message: String,
}

/// What is wrong with the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Line of the PTX, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
    /// Its code.
    pub code: Code,
}

/// What a program is told of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linkage {
    pub(crate) function: String,
    /// Whether other units see it.
    pub(crate) is_shared: bool,
    /// What a call weighs where the flag is set.
    pub(crate) weight: CallWeight,
    /// What all that it does weighs, with what lies behind polls of its callees.
    pub(crate) whole: CallWeight,
    /// Whether something is counted by `whole` alone, behind a poll.
    pub(crate) polls: bool,
    /// Functions of other units that it calls, itself or through others of its unit, and how often at most.
    pub(crate) calls: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_told_in_seconds_where_there_are_several() {
        let of = |seconds: u64, rounds: u64| Verdict::TooMany { rounds, seconds }.text();
        let rounds = "too many rounds: with the loops inside it and what it calls, 700 may pass without a poll";
        assert_eq!([of(0, 700), of(1, 700)], [rounds; 2]);
        let seconds = "too long: with the loops around it, inside it and what it calls, 2 seconds and 700 rounds may pass without a poll";
        assert_eq!(of(2, 700), seconds);
        assert_eq!(of(3, 700), seconds.replace("2 seconds", "3 seconds"));
        // Of ticks, less than a whole second counts as one.
        let text = |ticks: u64| Verdict::too_many(Weight { ticks, rounds: 700 }).text();
        assert_eq!([text(MOST_TICKS), text(MOST_TICKS + 1)], [rounds, seconds]);
    }
}
