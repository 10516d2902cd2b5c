//! A launch that does not pause in time: the blocks that declined run beside those that still do.
//!
//! Blocks that run may wait for blocks that declined. So the request is taken back, and the kernel is launched once
//! more for the blocks that have declined by then. Both launches share the pause block. So both may pass over a block
//! of the first launch that begins now. The bitmap `seen` (docs/ABI.md) shows such a block. It is left when both
//! launches have drained, unless it ran in an earlier part.

use super::pause::Phase;
use super::{LaunchSlot, State};
use crate::driver;
use crate::error::Result;
use cudarc::driver::sys;
use cuinstr_abi::control::PauseBlock;
use std::mem::offset_of;
use std::time::Duration;

/// Longest that copies past the running kernel may take.
const PATIENCE: Duration = Duration::from_secs(2);

impl LaunchSlot {
    /// Takes a request back, and gets the blocks that have declined ready to be launched. Whether there are any.
    pub(crate) fn take_back(&self, number: u32) -> Result<bool> {
        let mut state = self.state();
        let is_this = self.number() == number && state.outcome.is_none() && state.ended.is_none();
        let State { pausing: Some(pausing), bitmaps: Some(bitmaps), context: Some(context), .. } = &mut *state else {
            return Ok(false);
        };
        if !is_this || !matches!(pausing.phase, Phase::Asked(_)) || pausing.is_beside() {
            return Ok(false);
        }
        context.bind()?;
        driver::write_word(context.flag_stream(), self.asked(), 0)?;
        let words = pausing.words();
        // Blocks that begin now still read the bitmap of their part.
        let (declined, seen, missing) = (bitmaps.at(pausing.turn), bitmaps.at(2), bitmaps.at(3));
        if pausing.is_resumed && pausing.part.is_none() {
            pausing.part = Some(bitmaps.host.words()[..words].to_vec());
        }
        driver::download_words(context.copy_stream(), &bitmaps.host, declined, words)?;
        context.drain_copies(PATIENCE)?;
        let beside = bitmaps.host.words()[..words].to_vec();
        driver::upload_words(context.copy_stream(), missing, &bitmaps.host, words)?;
        context.drain_copies(PATIENCE)?;
        bitmaps.host.words_mut().fill(0);
        driver::upload_words(context.copy_stream(), seen, &bitmaps.host, words)?;
        context.drain_copies(PATIENCE)?;
        let has_blocks = beside.iter().any(|word| *word != 0);
        if has_blocks {
            // In this order: a block that is passed over finds where to say so.
            let place = |offset: usize, address: u64| (offset / 8, address);
            let words = [place(offset_of!(PauseBlock, seen), seen), place(offset_of!(PauseBlock, missing), missing | 1)];
            driver::write_words(context.flag_stream(), pausing.of.block, &words)?;
        }
        pausing.is_beside_submitted = false;
        pausing.beside = has_blocks.then_some(beside);
        Ok(has_blocks)
    }

    /// The blocks that had declined were launched in this stream, or not.
    pub(crate) fn launched_beside(&self, stream: sys::CUstream, is_launched: bool) -> Result<()> {
        // A block that was passed over may have told only `seen`: without the second launch it is lost, and with it the launch.
        let recorded = if is_launched { self.beside_end.record(stream) } else { Ok(()) };
        if !is_launched || recorded.is_err() {
            self.cancel(self.number())?;
        }
        if let Some(pausing) = &mut self.state().pausing {
            pausing.is_beside_submitted = true;
        }
        Ok(recorded?)
    }
}
