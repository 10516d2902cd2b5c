//! Paused launches of a ledger.

use super::fault::{Fault, Result};
use super::file::Saved;
use super::{Ledger, absent};
use crate::launch::{Remainder, Running};
use crate::limits::{Clock, Limits};
use cudarc::driver::LaunchConfig;
use std::sync::Arc;

impl Ledger {
    /// Takes over a paused launch under a new name. Its kernel is of a module of this ledger, its stream is one of this ledger's, and what its arguments lead to
    /// lies in this ledger's memory.
    ///
    /// The launch itself is over then, as if it was cancelled: what is queued behind it goes on, on the results of the blocks that are done.
    /// [`take_paused`](Self::take_paused) gives back what is left of it, here or where the ledger is restored.
    ///
    /// # Errors
    /// [`Fault::Name`] if the name is taken, or the kernel or the stream is not of this ledger. [`crate::Error::Order`] if the launch is not paused.
    pub fn put_paused(&self, name: &str, running: &mut Running) -> Result<()> {
        let remainder = running.remainder()?;
        let mut kept = self.kept();
        if kept.launches.contains_key(name) {
            return Err(Fault::Name(format!("there is a paused launch `{name}` already; take it, or give another name")));
        }
        let saved = kept.saved(name, &remainder)?;
        running.cancel()?;
        drop(running.wait()?);
        kept.launches.insert(name.to_owned(), (saved, remainder));
        Ok(())
    }

    /// What is left of the paused launch of this name, which the ledger holds no longer. [`Remainder::start`] runs it.
    ///
    /// # Errors
    /// [`Fault::Name`] if there is none.
    pub fn take_paused(&self, name: &str) -> Result<Remainder> {
        self.kept().launches.remove(name).map(|(_, remainder)| remainder).ok_or_else(|| absent("paused launch", name))
    }

    /// Makes a paused launch again, once modules are there.
    pub(super) fn restore_paused(&self, name: &str, saved: Saved, blocks: &[u8]) -> Result<()> {
        let stream = self.stream(&saved.stream)?;
        let mut prepared = self.module(&saved.module)?.kernel(&saved.kernel)?.prepare(&stream);
        saved.arguments.iter().for_each(|bytes| _ = prepared.bytes(bytes));
        prepared.limits(saved.limits()).pausable();
        let config = LaunchConfig { grid_dim: saved.grid, block_dim: saved.block, shared_mem_bytes: saved.shared };
        let blocks: Arc<[u32]> = blocks.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default())).collect();
        self.kept().launches.insert(name.to_owned(), (saved, Remainder { prepared, config, blocks }));
        Ok(())
    }
}

impl super::Kept {
    /// What a file says of a paused launch.
    fn saved(&self, name: &str, remainder: &Remainder) -> Result<Saved> {
        let Remainder { prepared, config, .. } = remainder;
        let foreign = |what: &str| Fault::Name(format!("the {what} of the paused launch `{name}` is not of this ledger"));
        let kernel = prepared.kernel();
        let module = self.modules.iter().find(|(_, (module, _))| module.has(kernel)).ok_or_else(|| foreign("kernel"))?.0.clone();
        let own = self.streams.iter().find(|(_, stream)| stream.cu_stream() == prepared.stream().cu_stream());
        let limits = prepared.given_limits();
        Ok(Saved {
            module,
            kernel: kernel.symbol().to_owned(),
            stream: own.ok_or_else(|| foreign("stream"))?.0.clone(),
            grid: config.grid_dim,
            block: config.block_dim,
            shared: config.shared_mem_bytes,
            arguments: prepared.argument_bytes(),
            timeout: limits.timeout,
            fuel: limits.fuel,
            budget_cycles: limits.budget_cycles,
            counts_fuel: limits.count_fuel,
            has_host_clock: limits.clock == Clock::Host,
            grace: limits.grace,
            begin_within: limits.begin_within,
        })
    }
}

impl Saved {
    /// A deadline, which is an instant, is not saved.
    fn limits(&self) -> Limits {
        Limits {
            timeout: self.timeout,
            fuel: self.fuel,
            budget_cycles: self.budget_cycles,
            count_fuel: self.counts_fuel,
            clock: if self.has_host_clock { Clock::Host } else { Clock::Device },
            grace: self.grace,
            begin_within: self.begin_within,
            ..Limits::UNTIL_CANCELLED
        }
    }
}
