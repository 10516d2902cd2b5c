//! A launch that can be paused: blocks that have not begun decline to run, and the launch is repeated for them.
//!
//! The host closes the gate behind the launch, then asks. Blocks that decline set their bits. When the launch has
//! drained, the host counts the bits. If there are any, the launch is paused. What waits behind the gate stays there
//! until later parts of the launch have run all blocks.

use super::{LaunchSlot, State};
use crate::context::state::{ContextState, GATES};
use crate::driver::{self, PinnedWords};
use crate::error::Error;
use crate::fault::DriverFault;
use crate::limits::Clock;
use crate::outcome::Outcome;
use crate::timer::Timer;
use cudarc::driver::sys;
use cuinstr_abi::control::{PauseBlock, StopRecord};
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A launch that can be paused, as its plan says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pausable {
    /// Address of the module's pause block.
    pub(crate) block: u64,
    /// Blocks of the grid.
    pub(crate) blocks: u64,
}

/// What is known of a launch that can be paused.
#[derive(Debug)]
pub(super) struct Pausing {
    pub(super) of: Pausable,
    pub(super) phase: Phase,
    /// Blocks that declined, by the latest count.
    pub(super) left: u64,
    /// The first and the last of them.
    range: (u32, u32),
    /// Which of the two bitmaps takes the blocks that decline in this part.
    pub(super) turn: usize,
    pub(super) is_resumed: bool,
    /// The blocks that had declined when they were launched beside those that still run.
    pub(super) beside: Option<Vec<u32>>,
    /// The blocks of this part then, if it is a later one: others ran in an earlier part.
    pub(super) part: Option<Vec<u32>>,
    /// Whether the end of those is marked in their stream.
    pub(super) is_beside_submitted: bool,
    /// Whether the host's copy of what is left is newer than the device's.
    is_masked: bool,
    /// Which gate stands behind the launch.
    gate: u32,
    is_gate_closed: bool,
    /// What earlier parts took, as the host saw it, and from the beginning of each on the device.
    pub(super) spent: Duration,
    ran: Duration,
    /// The timeout of all parts together.
    pub(super) timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No pause was asked for.
    Runs,
    /// Somebody has, then.
    Asked(Instant),
    /// It has drained, and the bitmap is on its way to the host.
    Counting(Instant),
    /// Blocks are left; the request took so long.
    Paused(Duration),
    /// No block is left, or those that are left will not run.
    Over,
}

/// The bitmaps of a slot: two in device memory that take turns, one for blocks that are passed over, one for blocks that run beside others, and what the host
/// reads them into.
pub(super) struct Bitmaps {
    device: u64,
    pub(super) host: PinnedWords,
    /// How many of the first two's first words may hold bits of an earlier part.
    pub(super) dirty: [usize; 2],
    /// The gate of the next launch.
    gate: u32,
}

impl Pausing {
    /// A launch that was not asked to pause, in front of this gate.
    pub(super) fn new(of: Pausable, gate: u32, timeout: Option<Duration>) -> Self {
        Self {
            of,
            phase: Phase::Runs,
            left: 0,
            range: (0, u32::MAX),
            turn: 0,
            is_resumed: false,
            beside: None,
            part: None,
            is_beside_submitted: false,
            is_masked: false,
            gate,
            is_gate_closed: false,
            spent: Duration::ZERO,
            ran: Duration::ZERO,
            timeout,
        }
    }

    /// Words of a bitmap of its grid.
    pub(super) fn words(&self) -> usize {
        self.of.blocks.div_ceil(32) as usize
    }

    /// What is left of the timeout.
    fn rest(&self) -> Option<Duration> {
        Some(self.timeout?.saturating_sub(self.ran).max(Duration::from_nanos(1)))
    }

    /// Whether blocks that had declined were launched beside others.
    pub(super) fn is_beside(&self) -> bool {
        self.beside.is_some()
    }
}

impl Bitmaps {
    /// Room for so many blocks. What was there before is too small, and is not given back: that would wait for every kernel of the context.
    fn grow(room: &mut Option<Self>, blocks: u64, stream: sys::CUstream) -> Result<(), DriverFault> {
        let words = blocks.div_ceil(32) as usize;
        if room.as_ref().is_some_and(|room| room.host.len() >= words) {
            return Ok(());
        }
        let words = words.next_power_of_two().max(32);
        let host = PinnedWords::zeroed(words)?;
        let device = driver::allocate(16 * words)?;
        for half in 0..2 {
            driver::upload_words(stream, device + half * 4 * words as u64, &host, words)?;
        }
        *room = Some(Self { device, host, dirty: [0; 2], gate: room.as_ref().map_or(0, |room| room.gate) });
        Ok(())
    }

    pub(super) fn at(&self, turn: usize) -> u64 {
        self.device + (turn * 4 * self.host.len()) as u64
    }
}

/// What became of a launch that has drained.
pub(super) enum Settled {
    /// That is being counted.
    Soon,
    /// Blocks are left.
    Paused,
    /// It is over.
    Over,
}

impl LaunchSlot {
    /// Gets a launch ready that can be paused, or one that can't.
    pub(super) fn make_pausable(
        &self,
        state: &mut State,
        plan: Option<Pausable>,
        blocks: Option<&[u32]>,
        timeout: Option<Duration>,
        context: &ContextState,
    ) -> Result<(), Error> {
        if let Some(Pausable { blocks, .. }) = plan {
            if state.bitmaps.is_none() {
                (0..u64::from(GATES / 32))
                    .try_for_each(|word| driver::write_word(context.copy_stream(), self.gates() + 4 * word, u32::MAX))?;
            }
            Bitmaps::grow(&mut state.bitmaps, blocks, context.copy_stream())?;
            context.drain_copies(Duration::from_secs(2))?;
        }
        let bitmaps_gate = state.bitmaps.as_ref().map_or(0, |bitmaps| bitmaps.gate);
        state.pausing = plan.map(|of| Pausing::new(of, bitmaps_gate, timeout));
        if let (Some(blocks), Some(pausing), Some(bitmaps)) = (blocks, &mut state.pausing, &mut state.bitmaps) {
            let words = pausing.words();
            bitmaps.host.words_mut()[..words].copy_from_slice(&blocks[..words]);
            bitmaps.dirty[1 - pausing.turn] = words;
            (pausing.left, pausing.range) = count(blocks);
            (pausing.is_resumed, pausing.is_masked) = (true, true);
        }
        Ok(())
    }

    /// The blocks that are left of a paused launch, a bit for each, and what is left of its timeout.
    pub(crate) fn left(&self, number: u32) -> Option<(Vec<u32>, Option<Duration>)> {
        let state = self.state();
        let is_paused = self.number() == number && state.paused().is_some();
        let (Some(pausing), Some(bitmaps)) = (state.pausing.as_ref().filter(|_| is_paused), &state.bitmaps) else { return None };
        Some((bitmaps.host.words()[..pausing.words()].to_vec(), pausing.rest()))
    }

    /// Writes the pause block, in the stream's order.
    pub(crate) fn send_pause(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        let mut state = self.state();
        let State { pausing: Some(pausing), bitmaps: Some(bitmaps), .. } = &mut *state else { return Ok(()) };
        let declined = bitmaps.at(pausing.turn);
        let dirty = bitmaps.dirty[pausing.turn];
        if dirty > 0 {
            driver::clear(stream, declined, 4 * dirty)?;
            bitmaps.dirty[pausing.turn] = 0;
        }
        if std::mem::take(&mut pausing.is_masked) {
            driver::upload_words(stream, bitmaps.at(1 - pausing.turn), &bitmaps.host, pausing.words())?;
        }
        let (first, last) = pausing.range;
        let words = PauseBlock {
            launch: self.number(),
            first,
            span: last - first,
            blocks: pausing.of.blocks as u32,
            asked: self.asked(),
            missing: if pausing.is_resumed { bitmaps.at(1 - pausing.turn) } else { 0 },
            declined,
            seen: 0,
        };
        driver::send(stream, pausing.of.block, &words)?;
        if pausing.is_resumed { driver::write_word(stream, self.asked(), 0) } else { Ok(()) }
    }

    /// What comes behind the launch in this stream waits until the gate is open. It is, unless a pause was asked for.
    pub(crate) fn hold(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        let gate = self.state().pausing.as_ref().map(|pausing| pausing.gate);
        gate.map_or(Ok(()), |gate| driver::wait_bit(stream, self.gates() + u64::from(gate / 32) * 4, 1 << (gate % 32)))
    }

    /// Opens a gate, or closes it; all others are open.
    fn set_gate(&self, context: &ContextState, gate: u32, is_open: bool) -> Result<(), DriverFault> {
        let word = if is_open { u32::MAX } else { !(1 << (gate % 32)) };
        driver::write_word(context.flag_stream(), self.gates() + u64::from(gate / 32) * 4, word)
    }

    /// Asks the launch to pause, if it is still this one and it was not asked before.
    pub(crate) fn ask_to_pause(&self, number: u32) -> Result<(), Error> {
        let mut state = self.state();
        if self.number() != number || state.outcome.is_some() || state.told.is_some() {
            return Ok(());
        }
        let (Some(context), Some(kernel)) = (state.context.clone(), state.subject.as_ref().map(|subject| subject.kernel.to_string()))
        else {
            return Ok(());
        };
        let State { pausing: Some(pausing), bitmaps: Some(bitmaps), .. } = &mut *state else {
            return Err(Error::NotPausable { kernel, why: "say .pausable() when it is prepared" });
        };
        // A request that was taken back is made once more, unless blocks that had declined run by now.
        if pausing.is_beside() || !matches!(pausing.phase, Phase::Runs | Phase::Asked(_)) {
            return Ok(());
        }
        context.bind()?;
        // In this order: a block that finds the request finds the gate closed.
        pausing.is_gate_closed = true;
        self.set_gate(&context, pausing.gate, false)?;
        bitmaps.dirty[pausing.turn] = bitmaps.dirty[pausing.turn].max(pausing.words());
        driver::write_word(context.flag_stream(), self.asked(), number)?;
        let now = Instant::now();
        if pausing.phase == Phase::Runs {
            pausing.phase = Phase::Asked(now);
        }
        if let Some(key) = state.timer {
            let next = Self::next_look(&state, now);
            Timer::of_process().map_err(Error::Environment)?.hasten(key, next);
        }
        self.changed.notify_all();
        Ok(())
    }

    /// The launch has drained at this moment: are blocks left?
    pub(super) fn settle(&self, state: &mut State, at: Instant) -> Result<Settled, DriverFault> {
        let is_told = state.told.is_some() || self.host_record().get::<u32>(offset_of!(StopRecord, published)) == self.number();
        let State { pausing: Some(pausing), bitmaps: Some(bitmaps), context: Some(context), launched, began, .. } = state else {
            return Ok(Settled::Over);
        };
        let words = pausing.words();
        match pausing.phase {
            Phase::Asked(since) => {
                driver::download_words(context.copy_stream(), &bitmaps.host, bitmaps.at(pausing.turn), words)?;
                self.listed.record(context.copy_stream())?;
                pausing.phase = Phase::Counting(since);
                return Ok(Settled::Soon);
            }
            Phase::Counting(since) => {
                if !self.listed.is_reached()? {
                    return Ok(Settled::Soon);
                }
                // Those have run.
                if let Some(beside) = pausing.beside.take() {
                    bitmaps.host.words_mut().iter_mut().zip(&beside).for_each(|(left, ran)| *left &= !ran);
                    // Both launches pass over what ran in an earlier part, too.
                    let part = pausing.part.iter().flatten();
                    bitmaps.host.words_mut().iter_mut().zip(part).for_each(|(left, part)| *left &= part);
                    pausing.is_masked = true;
                }
                (pausing.left, pausing.range) = count(&bitmaps.host.words()[..words]);
                if pausing.left > 0 && !is_told {
                    pausing.phase = Phase::Paused(at.saturating_duration_since(since));
                    pausing.spent += at.saturating_duration_since(*launched);
                    pausing.ran += began.map_or(Duration::ZERO, |began| at.saturating_duration_since(began));
                    return Ok(Settled::Paused);
                }
            }
            // No pause was asked for, so no block has declined in this part.
            Phase::Runs => pausing.left = 0,
            Phase::Paused(_) | Phase::Over => {}
        }
        self.open(pausing, bitmaps, context)?;
        pausing.phase = Phase::Over;
        Ok(Settled::Over)
    }

    /// Opens the gate if it is closed. The next launch has another one, since a stream may be late to see this.
    fn open(&self, pausing: &mut Pausing, bitmaps: &mut Bitmaps, context: &ContextState) -> Result<(), DriverFault> {
        if pausing.is_gate_closed {
            self.set_gate(context, pausing.gate, true)?;
            pausing.is_gate_closed = false;
            bitmaps.gate = (pausing.gate + 1) % GATES;
        }
        Ok(())
    }

    /// Opens the gate if it is closed, for a launch that is given up. The driver may be lost, and what waits there with it.
    pub(super) fn open_gate(&self, state: &mut State) {
        if let State { pausing: Some(pausing), bitmaps: Some(bitmaps), context: Some(context), .. } = state
            && std::mem::take(&mut pausing.is_gate_closed)
        {
            let _ = context.bind().and_then(|()| self.set_gate(context, pausing.gate, true));
            bitmaps.gate = (pausing.gate + 1) % GATES;
        }
    }

    /// Lets what waits behind a paused launch go on. Its next part gets another gate.
    pub(crate) fn let_streams_go(&self, number: u32) -> Result<(), Error> {
        let mut guard = self.state();
        let state = &mut *guard;
        if self.number() != number || state.paused().is_none() {
            return Err(Error::Order("only the streams of a launch that is paused can be let go"));
        }
        if let State { pausing: Some(pausing), bitmaps: Some(bitmaps), context: Some(context), .. } = state {
            context.bind()?;
            self.open(pausing, bitmaps, context)?;
            pausing.gate = bitmaps.gate;
        }
        Ok(())
    }

    /// Gets the next part of a paused launch ready.
    pub(crate) fn rearm(&self, number: u32) -> Result<(), Error> {
        let mut guard = self.state();
        let state = &mut *guard;
        let is_this = self.number() == number && state.outcome.is_none() && state.told.is_none();
        let Some(pausing) = state.pausing.as_mut().filter(|pausing| is_this && matches!(pausing.phase, Phase::Paused(_))) else {
            return Err(Error::Order("only a launch that is paused can be resumed"));
        };
        pausing.turn = 1 - pausing.turn;
        pausing.is_resumed = true;
        pausing.part = None;
        pausing.phase = Phase::Runs;
        let now = Instant::now();
        let timeout = pausing.rest();
        let mut orders = self.orders();
        orders.start_ns = 0;
        if let Some(limits) = &mut state.limits {
            limits.timeout = timeout;
            if let (Some(timeout), Clock::Device) = (timeout, limits.clock) {
                orders.timeout_ns = timeout.as_nanos() as u64;
            }
        }
        self.shared.set(offset_of!(super::Shared, orders), orders);
        self.host_record().set(offset_of!(StopRecord, start_ns), 0_u64);
        (state.launched, state.submitted, state.is_submitted) = (now, now, false);
        (state.ended, state.began, state.trouble) = (None, None, None);
        if let Some(key) = state.timer {
            let next = Self::next_look(state, now);
            Timer::of_process().map_err(Error::Environment)?.hasten(key, next);
        }
        Ok(())
    }

    /// The next part was not launched after all: the launch is paused as before.
    pub(crate) fn disarm(&self) {
        let mut state = self.state();
        if let Some(pausing) = &mut state.pausing {
            pausing.turn = 1 - pausing.turn;
            pausing.phase = Phase::Paused(Duration::ZERO);
        }
    }

    /// Number of the launch while it is paused.
    pub(crate) fn is_paused(&self, number: u32) -> bool {
        self.number.load(Ordering::Acquire) == number && self.state().paused().is_some()
    }
}

impl State {
    /// The outcome of a launch that is paused.
    pub(super) fn paused(&self) -> Option<Outcome> {
        let pausing = self.pausing.as_ref().filter(|_| self.told.is_none())?;
        let Phase::Paused(latency) = pausing.phase else { return None };
        Some(Outcome::Paused { done: pausing.of.blocks - pausing.left, left: pausing.left, latency })
    }

    /// Whether nothing of it is on the device, because it is paused or was until it was told to stop.
    pub(super) fn is_at_rest(&self) -> bool {
        self.pausing.as_ref().is_some_and(|pausing| matches!(pausing.phase, Phase::Paused(_)))
    }

    /// Whether a pause was asked for and has not come.
    pub(super) fn is_pausing(&self) -> Option<Instant> {
        match self.pausing.as_ref()?.phase {
            Phase::Asked(since) | Phase::Counting(since) => Some(since),
            _ => None,
        }
    }
}

/// How many bits are set, and the first and the last of them.
fn count(words: &[u32]) -> (u64, (u32, u32)) {
    let left = words.iter().map(|word| u64::from(word.count_ones())).sum();
    let first = words.iter().position(|word| *word != 0).map_or(0, |at| 32 * at as u32 + words[at].trailing_zeros());
    let last = words.iter().rposition(|word| *word != 0).map_or(0, |at| 32 * at as u32 + 31 - words[at].leading_zeros());
    (left, (first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_left_are_counted_and_lie_between_the_first_and_the_last() {
        let of_bits = |bits: &[u32]| {
            let mut words = [0_u32; 4];
            for bit in bits {
                words[(bit / 32) as usize] |= 1 << (bit % 32);
            }
            count(&words)
        };
        assert_eq!(of_bits(&[]), (0, (0, 0)));
        for bits in [[0, 0, 0], [5, 5, 5], [31, 32, 33], [40, 77, 126], [96, 100, 127], [64, 65, 66]] {
            let mut each = bits.to_vec();
            each.dedup();
            assert_eq!(of_bits(&bits), (each.len() as u64, (bits[0], bits[2])), "{bits:?}");
        }
    }

    #[test]
    fn a_grid_has_a_bit_for_each_block_and_a_part_what_is_left_of_the_timeout() {
        let ms = Duration::from_millis;
        let pausing = |blocks, timeout| Pausing::new(Pausable { block: 0, blocks }, 0, timeout);
        for (blocks, words) in [(1, 1), (31, 1), (32, 1), (33, 2), (64, 2), (65, 3)] {
            assert_eq!(pausing(blocks, None).words(), words);
        }
        assert_eq!(pausing(1, None).rest(), None);
        for (ran, rest) in [(ms(0), ms(9)), (ms(4), ms(5)), (ms(9), Duration::from_nanos(1)), (ms(10), Duration::from_nanos(1))] {
            assert_eq!(Pausing { ran, ..pausing(1, Some(ms(9))) }.rest(), Some(rest));
        }
    }
}
