//! The plan's decisions about text: each insertion and its place. `emit` spells them.

use crate::common::options::Polls;
use crate::common::site::Form;
use crate::source::analysis::block_share::BlockShare;
use crate::source::analysis::foldable::{Extent, Nest};
use crate::source::plan::brief_nest::BriefNest;
use crate::source::plan::loop_form::LoopForm;
use crate::source::plan::placement::{LoopOffsets, Place};
use crate::source::plan::weight::Weight;
use std::ops::Range;

/// Which of the prelude's functions a function's polls call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollStyle {
    pub(crate) polls: Polls,
    /// The host, or the compiler, may run the function too.
    pub(crate) host_too: bool,
    /// It is declared `constexpr`, so that the compiler may be asked whether it evaluates the function.
    pub(crate) evaluated: bool,
    /// It is a lambda or a local class's method in a function of the device, whose poll interval it must not name.
    pub(crate) inner: bool,
    /// Where the text may stand in a constexpr function of one return, as C++11 demands it.
    pub(crate) one_return: OneReturn,
}

/// Whether a body is one `return`, which no statement may precede in C++11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OneReturn {
    No,
    /// The text stands in front of the value.
    Value,
    /// The value is a list in braces, which nothing can precede: the text is a statement, from C++14 on.
    List,
}

impl PollStyle {
    /// How a loop's poll appears in the site map.
    pub(crate) fn form(self) -> Form {
        match self.polls {
            Polls::Each => Form::Each,
            Polls::Amortised | Polls::CountDown => Form::CountDown,
        }
    }

    /// How a loop of that form appears in the site map.
    pub(crate) fn form_of(self, form: &LoopForm) -> Form {
        match form {
            LoopForm::Strip(..) => Form::Strip,
            LoopForm::Chunk(..) => Form::Chunk,
            LoopForm::Foldable(_) | LoopForm::Shared(_) => Form::Foldable,
            LoopForm::CountDown => self.form(),
        }
    }
}

/// The poll of a loop or jump, asked each time round.
#[derive(Debug, Clone)]
pub(crate) struct Poll {
    pub(crate) style: PollStyle,
    pub(crate) site: u64,
    /// The units that each iteration takes from the budget.
    pub(crate) weight: Weight,
    pub(crate) kind: PollKind,
}

/// Which poll it is.
#[derive(Debug, Clone)]
pub(crate) enum PollKind {
    /// The budget is counted down.
    Counted,
    /// The loop counts in its nest, and the compiler may know how often it runs.
    InNest(Nest, Option<Extent>),
    /// The threads of a block share the loop.
    Shared(BlockShare),
}

/// The check behind a barrier.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    pub(crate) style: PollStyle,
    pub(crate) site: u64,
    /// The barrier stands in a kernel's own body.
    pub(crate) in_kernel: bool,
}

/// A loop in strips or chunks.
#[derive(Debug, Clone)]
pub(crate) struct Reshaped {
    pub(crate) offsets: LoopOffsets,
    pub(crate) form: LoopForm,
    pub(crate) weight: Weight,
    /// A free variable of the loop's activation, which counts its chunks.
    pub(crate) index: usize,
    pub(crate) site: u64,
}

/// Something inserted. Places are offsets.
#[derive(Debug, Clone)]
pub(crate) enum Insertion {
    /// Behind the opening brace of a body.
    Opening {
        at: usize,
        style: PollStyle,
        opening: Opening,
    },
    /// The declaration of a kernel's last poll, which stands on every way out behind it.
    LastPoll {
        at: usize,
        site: u64,
    },
    /// A request to unroll the loop whose keyword stands there.
    Unroll {
        at: usize,
    },
    /// A statement with which the count of a nest begins.
    NestBegins {
        at: usize,
        index: usize,
    },
    /// A poll that each way round passes.
    Poll {
        place: Place,
        poll: Poll,
    },
    Reshaped(Box<Reshaped>),
    /// A poll in front of the jump that these bytes are.
    Goto {
        statement: Range<usize>,
        poll: Poll,
    },
    /// A check behind the barrier that these bytes are.
    Barrier {
        call: Range<usize>,
        check: Check,
    },
    /// A check behind a loop, for the barriers in it.
    BehindLoop {
        at: usize,
        check: Check,
    },
    /// A nest that stands there twice; the insertions go into its second text.
    Brief {
        nest: BriefNest,
        inside: Vec<Insertion>,
    },
}

impl Insertion {
    /// Where it begins.
    pub(crate) fn at(&self) -> usize {
        match self {
            Self::Opening { at, .. }
            | Self::LastPoll { at, .. }
            | Self::Unroll { at }
            | Self::NestBegins { at, .. }
            | Self::BehindLoop { at, .. } => *at,
            Self::Poll { place, .. } => place.at(),
            Self::Reshaped(reshaped) => reshaped.offsets.keyword.start,
            Self::Goto { statement: span, .. } | Self::Barrier { call: span, .. } => span.start,
            Self::Brief { nest, .. } => nest.span.start,
        }
    }
}

/// The text behind a body's opening brace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Opening {
    /// The entry site of a kernel.
    pub(crate) entry: Option<u64>,
    /// The exit site of a kernel whose last poll is declared here.
    pub(crate) exit: Option<u64>,
    /// The site of a recursive function.
    pub(crate) recursion: Option<u64>,
    /// Members of its object that are all that it calls on, if they have the types of values.
    pub(crate) parts: Vec<String>,
    /// Operands and types that make it recursive, if one of them is no number.
    pub(crate) unless_numbers: Vec<String>,
    /// Of a kernel in which nothing polls but its end, whether it may wait.
    pub(crate) short: Option<bool>,
    /// Whether a kernel's blocks can decline to run.
    pub(crate) pausable: bool,
    /// Whether a kernel has barriers of its own.
    pub(crate) barriers: bool,
    /// Whether a loop of this activation counts down.
    pub(crate) budget: bool,
    /// How many loops count their chunks.
    pub(crate) chunk_counters: usize,
    /// How many nests of loops count their units.
    pub(crate) nests: usize,
}
