//! What is left of a paused launch that another host made.

use super::{Attached, Guard, Stage};
use crate::error::{Error, Result};
use crate::limits::Limits;
use std::sync::Arc;
use std::time::Duration;

/// What is left of a paused launch that a guard was around: its limits, its grid, and which blocks have not run. Made by [`Guard::left`]. Kernel and
/// arguments are the host's to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the blocks run when it is armed and launched"]
pub struct Left {
    /// The launch's own, with what is left of its timeout.
    pub(crate) limits: Limits,
    pub(crate) grid: [u32; 3],
    /// A bit for each block of the grid.
    pub(crate) blocks: Arc<[u32]>,
}

impl Left {
    /// How many blocks are left.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Time that it is given to leave once it is told to.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.limits.grace
    }

    /// The grid that is launched again, in x, y and z.
    #[must_use]
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }
}

impl Guard {
    /// What is left of a paused launch, to be kept apart from it: [`Attached::arm_left`] arms those blocks. This launch stays paused.
    ///
    /// # Errors
    /// If the launch is not paused.
    pub fn left(&self) -> Result<Left> {
        let stage = self.stage();
        let Stage::Flying(running) = &*stage else { return Err(Error::Order("only a launch that is paused leaves blocks")) };
        let (slot, number) = running.slot();
        let left = self.grid.zip(slot.left(number));
        let (grid, (blocks, timeout)) = left.ok_or(Error::Order("only a launch that is paused leaves blocks"))?;
        // An instant of this process means nothing elsewhere.
        Ok(Left { limits: Limits { timeout, deadline: None, ..self.limits }, grid, blocks: blocks.into() })
    }
}

impl Attached {
    /// Arms the module for the blocks that are left of a paused launch, with what was left of its timeout. The caller launches the same kernel on the
    /// stream, with the same grid and arguments. It can be paused in its turn.
    ///
    /// # Safety
    /// As for [`Attached::arm`]. The blocks run once more with each launch: arm them once, and drop the guard that they are from.
    ///
    /// # Errors
    /// As for [`Attached::arm_pausable`].
    pub unsafe fn arm_left(&self, stream: usize, left: &Left) -> Result<Guard> {
        self.arm_blocks(stream, &left.limits, left.grid, Some(&left.blocks))
    }
}
