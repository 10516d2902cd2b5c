//! Paused launches of a ledger: those that the runtime made, and those that another host made under a guard.

use super::fault::{Fault, Result};
use super::file::{Saved, SavedGuard, SavedLimits};
use super::{Ledger, absent};
use crate::guard::{Guard, Left};
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
        kept.has_no_launch(name)?;
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

    /// Takes over a paused launch that another host made under a guard, under a new name. What its arguments lead to lies in this ledger's memory. Its
    /// kernel and arguments stay the host's to know.
    ///
    /// The launch itself is over then, as in [`put_paused`](Self::put_paused). [`take_left`](Self::take_left) gives back what is left of it.
    ///
    /// # Errors
    /// [`Fault::Name`] if the name is taken. [`crate::Error::Order`] if the launch is not paused. [`Fault::Busy`] if its stream does not go on.
    pub fn put_left(&self, name: &str, guard: &Guard) -> Result<()> {
        let left = guard.left()?;
        let mut kept = self.kept();
        kept.has_no_launch(name)?;
        guard.cancel()?;
        let within = left.limits.held().grace;
        if guard.wait_for(within)?.is_none() {
            return Err(Fault::Busy { stream: "of the paused launch".into(), within });
        }
        kept.guarded.insert(name.to_owned(), left);
        Ok(())
    }

    /// What is left of the paused launch of this name, which the ledger holds no longer. [`Attached::arm_left`](crate::guard::Attached::arm_left) arms it.
    ///
    /// # Errors
    /// [`Fault::Name`] if there is none.
    pub fn take_left(&self, name: &str) -> Result<Left> {
        self.kept().guarded.remove(name).ok_or_else(|| absent("paused launch under a guard", name))
    }

    /// Gives back what [`take_left`](Self::take_left) took and the host did not launch, under that name.
    pub fn keep_left(&self, name: &str, left: Left) {
        self.kept().guarded.insert(name.to_owned(), left);
    }

    /// Makes what is left of a guarded launch again.
    pub(super) fn restore_left(&self, name: &str, saved: &SavedGuard, blocks: &[u8]) {
        let limits = Limits { extents: saved.extents, ..saved.limits.limits() };
        self.keep_left(name, Left { limits, grid: saved.grid, blocks: words(blocks) });
    }

    /// Makes a paused launch again, once modules are there.
    pub(super) fn restore_paused(&self, name: &str, saved: Saved, blocks: &[u8]) -> Result<()> {
        let stream = self.stream(&saved.stream)?;
        let mut prepared = self.module(&saved.module)?.kernel(&saved.kernel)?.prepare(&stream);
        saved.arguments.iter().for_each(|bytes| _ = prepared.bytes(bytes));
        prepared.limits(saved.limits.limits()).pausable();
        let config = LaunchConfig { grid_dim: saved.grid, block_dim: saved.block, shared_mem_bytes: saved.shared };
        self.kept().launches.insert(name.to_owned(), (saved, Remainder { prepared, config, blocks: words(blocks) }));
        Ok(())
    }
}

fn words(bytes: &[u8]) -> Arc<[u32]> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default())).collect()
}

impl super::Kept {
    fn has_no_launch(&self, name: &str) -> Result<()> {
        if self.launches.contains_key(name) || self.guarded.contains_key(name) {
            return Err(Fault::Name(format!("there is a paused launch `{name}` already; take it, or give another name")));
        }
        Ok(())
    }

    /// What a file says of a paused launch.
    fn saved(&self, name: &str, remainder: &Remainder) -> Result<Saved> {
        let Remainder { prepared, config, .. } = remainder;
        let foreign = |what: &str| Fault::Name(format!("the {what} of the paused launch `{name}` is not of this ledger"));
        let kernel = prepared.kernel();
        let module = self.modules.iter().find(|(_, (module, _))| module.has(kernel)).ok_or_else(|| foreign("kernel"))?.0.clone();
        let own = self.streams.iter().find(|(_, stream)| stream.cu_stream() == prepared.stream().cu_stream());
        Ok(Saved {
            module,
            kernel: kernel.symbol().to_owned(),
            stream: own.ok_or_else(|| foreign("stream"))?.0.clone(),
            grid: config.grid_dim,
            block: config.block_dim,
            shared: config.shared_mem_bytes,
            arguments: prepared.argument_bytes(),
            limits: SavedLimits::of(prepared.given_limits()),
        })
    }
}

impl SavedGuard {
    pub(super) fn of(left: &Left) -> Self {
        Self { grid: left.grid, extents: left.limits.extents, limits: SavedLimits::of(&left.limits) }
    }
}

impl SavedLimits {
    /// A deadline, which is an instant, is not saved.
    fn of(limits: &Limits) -> Self {
        Self {
            timeout: limits.timeout,
            fuel: limits.fuel,
            budget_cycles: limits.budget_cycles,
            counts_fuel: limits.count_fuel,
            has_host_clock: limits.clock == Clock::Host,
            grace: limits.grace,
            begin_within: limits.begin_within,
        }
    }

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
