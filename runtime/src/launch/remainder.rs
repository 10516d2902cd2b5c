//! What is left of a paused launch, apart from the launch.

use super::prepared::Prepared;
use super::running::Running;
use crate::error::{Error, Result};
use cudarc::driver::LaunchConfig;
use std::sync::Arc;

/// What is left of a launch that was paused: its kernel, arguments and limits, its grid, and which blocks have not run. Made by [`Running::remainder`].
#[derive(Debug, Clone)]
#[must_use = "the blocks run when it is started"]
pub struct Remainder {
    pub(crate) prepared: Prepared,
    pub(crate) config: LaunchConfig,
    /// A bit for each block of the grid.
    pub(crate) blocks: Arc<[u32]>,
}

impl Running {
    /// What is left of a paused launch, to be kept apart from it: [`Remainder::start`] runs those blocks. This launch stays paused.
    ///
    /// # Errors
    /// If the launch is not paused.
    pub fn remainder(&self) -> Result<Remainder> {
        let left = self.again.as_ref().zip(self.slot.left(self.number));
        let (again, (blocks, timeout)) = left.ok_or(Error::Order("only a launch that is paused has a remainder"))?;
        let mut prepared = again.prepared.clone();
        prepared.given.limits.timeout = timeout;
        Ok(Remainder { prepared, config: again.config, blocks: blocks.into() })
    }
}

impl Remainder {
    /// How many blocks are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.blocks.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Launches the kernel for the blocks that are left, in the stream of the paused launch, and with what was left of its timeout. It can be paused in its turn.
    ///
    /// # Safety
    /// As for [`Prepared::start`]. The blocks run once more with each start: start it once, and drop the paused launch that it was made from.
    ///
    /// # Errors
    /// As for [`Prepared::start`].
    pub unsafe fn start(&self) -> Result<Running> {
        // SAFETY: the caller's promise.
        unsafe { self.prepared.start_blocks(self.config, Some(&self.blocks)) }
    }
}
