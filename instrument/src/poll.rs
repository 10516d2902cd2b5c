//! The text of polls: the one place that knows how a form is spelled. `prelude.cuh` defines what is named here.

use crate::options::Polls;
use crate::site::Form;
use std::fmt::Write as _;

/// Iterations, by weight, between the first looks of an activation, and between all looks of a function that the host may run too.
pub(crate) const CHUNK: u32 = 1024;

/// Most iterations, by weight, between two looks, however fast they are.
pub(crate) const MOST: u32 = 1 << 16;

/// Nanoseconds that two looks of an activation should lie apart.
pub(crate) const GAP_NS: u32 = 20_000;

/// How polls of a function are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) polls: Polls,
    /// The host, or the compiler, may run the function too.
    pub(crate) host_too: bool,
}

impl Spelling {
    fn suffix(self) -> &'static str {
        if self.host_too { "_hd" } else { "" }
    }

    /// The poll of a loop, an expression of type `void`.
    pub(crate) fn repeat(self, site: u64, weight: u32) -> String {
        match self.polls {
            Polls::Each => format!("__cuinstr_poll{}({site:#x}ull)", self.suffix()),
            Polls::Amortised => format!("__cuinstr_tick{}(__cuinstr_left, {weight}u, {site:#x}ull)", self.suffix()),
        }
    }

    /// How a loop's poll appears in the site map.
    pub(crate) fn form(self) -> Form {
        match self.polls {
            Polls::Each => Form::Each,
            Polls::Amortised => Form::CountDown,
        }
    }

    /// The poll behind a barrier.
    pub(crate) fn barrier(self, site: u64) -> String {
        format!("__cuinstr_barrier{}({site:#x}ull)", self.suffix())
    }

    /// What stands first in a body.
    pub(crate) fn opening(self, opening: &Opening) -> String {
        let mut text = String::new();
        if let Some((entry, exit)) = opening.kernel {
            let _ = write!(text, " __cuinstr_kernel __cuinstr_guard({entry:#x}ull, {exit:#x}ull);");
        }
        if let Some(site) = opening.recursion {
            let _ = write!(text, " __cuinstr_call{}({site:#x}ull);", self.suffix());
        }
        if opening.allowance {
            // A literal type where the compiler may evaluate the function; elsewhere one that keeps pace with the clock.
            text.push_str(if self.host_too {
                " unsigned int __cuinstr_left = __cuinstr_chunk;"
            } else {
                " __cuinstr_allowance __cuinstr_left;"
            });
        }
        text
    }
}

/// What a body's opening brace is followed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Opening {
    /// Entry and exit sites of a kernel.
    pub(crate) kernel: Option<(u64, u64)>,
    /// The site of a recursive function.
    pub(crate) recursion: Option<u64>,
    /// Whether a loop of this activation counts down.
    pub(crate) allowance: bool,
}
