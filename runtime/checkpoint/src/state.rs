//! Where a process stands.

use serde::{Deserialize, Serialize};
use std::fmt;

/// `CUprocessState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// CUDA works as ever.
    Running,
    /// The process's calls of CUDA wait until it is unlocked.
    Locked,
    /// Its GPU memory is in host memory, and it holds no GPU.
    Checkpointed,
    /// The driver gave the process up during a checkpoint or a restore.
    Failed,
    /// A state of a driver newer than this crate, by its number.
    Other(u32),
}

impl From<u32> for State {
    fn from(number: u32) -> Self {
        match number {
            0 => Self::Running,
            1 => Self::Locked,
            2 => Self::Checkpointed,
            3 => Self::Failed,
            other => Self::Other(other),
        }
    }
}

impl From<State> for u32 {
    fn from(state: State) -> Self {
        match state {
            State::Running => 0,
            State::Locked => 1,
            State::Checkpointed => 2,
            State::Failed => 3,
            State::Other(number) => number,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Locked => f.write_str("locked"),
            Self::Checkpointed => f.write_str("checkpointed"),
            Self::Failed => f.write_str("failed"),
            Self::Other(number) => write!(f, "state-{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_a_state_and_leads_back() {
        for number in 0..9 {
            assert_eq!(u32::from(State::from(number)), number);
        }
        assert_eq!(State::from(7).to_string(), "state-7");
    }
}
