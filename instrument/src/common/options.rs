//! The options of a rewrite.

use crate::common::diagnostic::Code;
use serde::{Deserialize, Serialize};

/// Where in a compilation polls are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Pass {
    /// Into the source, in front of the compiler ([`crate::rewrite`]).
    #[default]
    Source,
    /// Into the compiled PTX, behind the optimizer ([`crate::rewrite_ptx`]).
    Ptx,
}

/// Where the polls of a loop stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Polls {
    /// Whenever an allowance of iterations is used up, in the cheapest form that is sound for each loop: loops whose iterations can be told
    /// ahead run in strips of them, others in chunks of a constant number; loops that provably end soon have none.
    #[default]
    Amortised,
    /// The same, but each loop counts its allowance down in each iteration.
    CountDown,
    /// In every iteration of every loop.
    Each,
}

/// How far apart in time two polls of a thread should lie.
///
/// Loops follow the clock towards it; before a loop has read the clock, and for functions that the host may run too, their weight tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollGap {
    nanoseconds: u64,
}

impl PollGap {
    /// Least and most nanoseconds.
    pub const RANGE: std::ops::RangeInclusive<u64> = 2_000..=10_000_000;

    /// A gap of so many nanoseconds; none outside [`PollGap::RANGE`].
    #[must_use]
    pub fn from_nanoseconds(nanoseconds: u64) -> Option<Self> {
        Self::RANGE.contains(&nanoseconds).then_some(Self { nanoseconds })
    }

    /// In nanoseconds.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.nanoseconds
    }
}

impl Default for PollGap {
    /// 20 microseconds: a stop takes about as long, and a check of a microsecond is lost in it.
    fn default() -> Self {
        Self { nanoseconds: 20_000 }
    }
}

/// The action of a thread at its kernel's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AtExit {
    /// Asks once.
    #[default]
    Check,
    /// Waits, asleep and polling, until its whole block is done (experimental).
    Gate,
}

/// Where a thread that leaves tells those that it may release from a block's barrier.
///
/// Units that are linked with `-rdc=true` do so in global memory in any case: the checks of one read the marks of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum BarrierMarks {
    /// In global memory where the launch says how much shared memory there is, and may take all of it; else in shared memory.
    #[default]
    Auto,
    /// In 16 bytes of each block's shared memory.
    Shared,
    /// In one word of global memory, so that a block's shared memory is all the user's.
    Global,
}

impl BarrierMarks {
    /// What the word `auto`, `shared` or `global` stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "shared" => Some(Self::Shared),
            "global" => Some(Self::Global),
            _ => None,
        }
    }
}

/// Limits compiled in for hosts that arm nothing. Each is absent by default: a host that knows nothing never gets truncated results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Nanoseconds of `%globaltimer` from the entry of a thread's block.
    pub timeout_ns: Option<u64>,
    /// Cycles of the multiprocessor from the entry of a thread's block.
    pub budget_cycles: Option<u64>,
    /// Iterations of a thread; at most 2^40 - 2.
    pub fuel: Option<u64>,
}

impl Limits {
    /// The largest fuel that a thread's word has room for.
    pub const MAX_FUEL: u64 = (1 << 40) - 2;

    /// Whether any limit is compiled in.
    #[must_use]
    pub fn any(&self) -> bool {
        self.timeout_ns.is_some() || self.budget_cycles.is_some() || self.fuel.is_some()
    }
}

/// The effect of a macro in front of a function's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Space {
    /// `__global__`.
    Kernel,
    /// `__device__`.
    Device,
    /// `__host__ __device__`.
    HostDevice,
}

/// A macro that stands for function attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMacro {
    /// Its name.
    pub name: String,
    /// What it marks.
    pub space: Space,
}

/// A macro that stands for a value wherever it is defined, or a name in capitals that is no macro of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueMacro {
    /// Its name.
    pub name: String,
    /// Whether arguments follow it.
    pub takes_arguments: bool,
    /// Whether nothing that is done with it changes a variable which it names.
    pub harmless: bool,
    /// Whether it is a result of arithmetic, so that nothing which is done with it changes its arguments either.
    pub computed: bool,
    /// Whether it is one operand, whatever operators stand beside it, and asks no memory.
    pub whole: bool,
    /// Whether it is made of constants, and of the arguments that follow it: it reads no variable and no memory.
    pub constant: bool,
    /// Variables that it names.
    pub reads: Vec<String>,
    /// The number that it probably stands for. Nothing that has to be right may rest on it.
    pub likely: Option<i64>,
}

/// What all files of a translation unit, and its command line, say of a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitMacro {
    /// Its name.
    pub name: String,
    /// How often it is defined.
    pub definitions: usize,
    /// How often it is undefined.
    pub undefined: usize,
    /// Whether a text that gets no polls makes it repeat: one of the command line, or of a header that stays as it is.
    pub repeats: bool,
    /// Whether its text marks a function that a GPU may run.
    pub marks: bool,
    /// Whether it may change a variable of the function that uses it.
    pub changes: bool,
    /// Whether it leaves a loop, a turn of one, or a function.
    pub leaves: bool,
    /// Whether it holds a lambda's captures, and not its body.
    pub captures: bool,
    /// Labels that it jumps to.
    pub labels: Vec<String>,
    /// A loop that the compiler makes of its text.
    pub compiler_loop: Option<CompilerLoop>,
}

/// A loop that the compiler makes of a macro's text, which has none, and what decides how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompilerLoop {
    /// What to tell of it.
    pub message: &'static str,
    /// The place of the macro's parameter that says how often it repeats; absent: it is taken for long whatever the macro's use gives.
    pub parameter: Option<usize>,
    /// What that number is multiplied by.
    pub factor: i64,
}

/// A macro as the compiler's command line has it, which decides conditions (`#if`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenMacro {
    /// Its name.
    pub name: String,
    /// What it stands for; absent: no file and no option defines it.
    pub value: Option<String>,
}

/// A gap that a person has looked at and accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiver {
    /// Code of the diagnostic that it silences.
    pub code: Code,
    /// Function that it is limited to, or all of the file.
    pub function: Option<String>,
    /// Why the gap is harmless; listed in the site map.
    pub reason: String,
    /// Whether it speaks of other files too, so that nothing to accept in this one does not make it stale.
    pub shared: bool,
}

/// Everything that decides a rewrite beside the source text. Same text and options, same output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Path as the user spelled it; compilers will name it (`#line`).
    pub path: String,
    /// Path relative to the project's root, for the ids of sites; `path` if empty.
    pub site_path: String,
    /// Folder that the paths of PTX's source locations are made relative to where they begin with it; none if empty.
    pub source_folder: String,
    /// Where polls stand.
    pub polls: Polls,
    /// How far apart they should lie.
    pub poll_gap: PollGap,
    /// The action of a thread at its end.
    pub at_exit: AtExit,
    /// Where threads at barriers are told of those that have left.
    pub barrier_marks: BarrierMarks,
    /// Limits compiled in.
    pub limits: Limits,
    /// Whether blocks can decline to run, so that a host may pause a launch and have it continue.
    pub pausable: bool,
    /// Whether PTX notes a launch's begin by polls alone, and not where its kernel begins: for a host that knows when its launches begin. A guard needs
    /// the note. A kernel of a few microseconds is slower for it.
    pub begin_by_polls: bool,
    /// Macros that mark device functions, beside those the file defines and the known families.
    pub device_macros: Vec<DeviceMacro>,
    /// Macros that decide conditions. Code that these leave out is none.
    pub given_macros: Vec<GivenMacro>,
    /// Macros that open a loop, beside those the file defines and the known families.
    pub loop_macros: Vec<String>,
    /// Macros of other files that are known to open no loop and to jump nowhere, so that the text behind one is no loop's body.
    pub plain_macros: Vec<String>,
    /// Macros of all files of the translation unit that stand for values; if there are none, nothing is known of other files than this one.
    pub value_macros: Vec<ValueMacro>,
    /// Macros of the translation unit whose names stand in this file.
    pub unit_macros: Vec<UnitMacro>,
    /// Where bodies of functions begin, with the ends of lines joined, that functions of other files call and that lead back there.
    pub entered: Vec<usize>,
    /// Whether another file may include this one within a device function, so that it holds statements.
    pub is_piece: bool,
    /// Whether the files that this one includes are rewritten with it. If not, a header that may hold device code is a gap.
    pub in_unit: bool,
    /// Paths of further files that are rewritten, as they may be named in `#include`.
    pub rewritten_too: Vec<String>,
    /// Includes, as they are spelled with quotes or angle brackets, that are found in folders of the user's: these are none of the system's.
    pub own_headers: Vec<String>,
    /// Includes, spelled in the same way, whose headers need no polls.
    pub harmless_headers: Vec<String>,
    /// Names that device code in other files of the translation unit uses: functions of these names are device code, marked or not.
    pub device_names: Vec<String>,
    /// Device functions that other files of the translation unit define.
    pub device_functions: Vec<String>,
    /// Functions that are left as they are.
    pub leave_alone: Vec<String>,
    /// Gaps that are accepted.
    pub waivers: Vec<Waiver>,
    /// Whether a gap is an error.
    pub strict: bool,
    /// Name by which the output includes the prelude ([`crate::source::emit::prelude::body`]); absent: the prelude stands in the output itself.
    pub prelude: Option<String>,
}

impl Options {
    /// The path of a source location, relative to [`Options::source_folder`] if it lies there.
    pub(crate) fn relative(&self, path: &str) -> String {
        let folder = self.source_folder.trim_end_matches('/');
        let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).filter(|_| !folder.is_empty());
        inside.unwrap_or(path).to_owned()
    }
}
