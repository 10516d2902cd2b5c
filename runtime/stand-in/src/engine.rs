//! How the device works: each stream's operations in their order, and what a kernel does. What a kernel's name contains says
//! what the kernel does:
//!
//! - `spin`: runs until its flag, its timeout or its fuel stops it.
//! - `work`: runs for as many nanoseconds as its first parameter says, or until it is stopped.
//! - `deaf`: runs until the command `end`.
//! - `late`: ends at once, and says that a reason to stop had arisen.
//! - `silent`: ends at once and says nothing of its start, as a kernel that was not rewritten.
//! - `fault`: ends its context with error 700.
//! - `refuse`: the launch call refuses it, with error 701.
//! - `wrong`: writes a zero where its first parameter points.
//! - `blocks`: its blocks run in a random order. Its first two parameters say how many run at a time, and for how many
//!   nanoseconds. Each block adds 1 to its word where the third parameter points.
//! - anything else: ends at once.
//!
//! A second kernel named `stand_in_NAME` in a module has all kernels of the module do what that name says. Candidates of an
//! evaluation need this, since they share one name. A kernel with a control block in its module obeys that, as docs/ABI.md
//! says.

use crate::blocks::{Blocks, Habits};
use crate::machine::{Machine, Stream, changed, code};
use crate::raw;
use cuinstr_abi::control::{Action, ControlBlock, SITE_SLOTS, SiteCount, StopRecord, UNLIMITED, Why};
use std::mem::offset_of;

/// How long the runtime's clock kernel waits for a question.
const CLOCK_NS: u64 = 2_000_000;

/// What a stream holds.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Put {
        to: u64,
        bytes: Vec<u8>,
    },
    Record {
        event: usize,
        generation: u64,
    },
    Wait {
        event: usize,
        generation: u64,
    },
    WaitBits {
        at: u64,
        bits: u32,
    },
    /// Code is loaded: what came before is done first, in all streams.
    Load(u64),
    Launch(Launched),
}

/// A kernel's launch.
#[derive(Debug, Clone)]
pub(crate) struct Launched {
    pub(crate) name: String,
    pub(crate) control: Option<u64>,
    pub(crate) pause: Option<u64>,
    pub(crate) words: Vec<u64>,
    pub(crate) threads: u64,
    pub(crate) blocks: Blocks,
    /// The device's time when it began.
    pub(crate) begun: Option<u64>,
    /// How often `end` had been said by then.
    pub(crate) ends: u64,
}

/// What became of a kernel.
enum Look {
    Runs,
    Ends,
    Faults(u32),
}

impl Machine {
    /// Does what can be done now.
    pub(crate) fn step(&mut self) {
        let streams: Vec<usize> = self.streams.keys().copied().collect();
        let mut moved = true;
        while moved {
            moved = false;
            for handle in &streams {
                while self.step_stream(*handle) {
                    moved = true;
                }
            }
            if moved {
                changed();
            }
        }
    }

    /// Does the next operation of a stream, if that is possible.
    fn step_stream(&mut self, handle: usize) -> bool {
        let Some(stream) = self.streams.get_mut(&handle) else { return false };
        if let Some(mut kernel) = stream.running.take() {
            let context = stream.context;
            match self.look(&mut kernel) {
                Look::Runs => {
                    if let Some(stream) = self.streams.get_mut(&handle) {
                        stream.running = Some(kernel);
                    }
                    return false;
                }
                Look::Ends => {}
                Look::Faults(error) => self.lose(context, error),
            }
            return true;
        }
        let is_open = |event: &usize, generation: &u64| self.events.get(event).is_some_and(|event| event.open.contains(generation));
        match stream.queue.front() {
            None => return false,
            Some(Op::Wait { event, generation }) if is_open(event, generation) => return false,
            Some(Op::WaitBits { at, bits }) if raw::load::<u32>(*at) & *bits == 0 => return false,
            Some(Op::Launch(_)) if self.is_held => return false,
            Some(Op::Copy { .. }) if self.is_busy => return false,
            Some(Op::Load(id)) => {
                let id = *id;
                return self.load(id);
            }
            Some(_) => {}
        }
        match stream.queue.pop_front() {
            None | Some(Op::Wait { .. } | Op::WaitBits { .. } | Op::Load(_)) => {}
            Some(Op::Copy { to, from, bytes }) => raw::copy(to, from, bytes),
            Some(Op::Put { to, bytes }) => match *bytes.as_slice() {
                // What is as long as a word is written as one.
                [a, b, c, d] => raw::store(to, u32::from_le_bytes([a, b, c, d])),
                _ => raw::copy(to, bytes.as_ptr().expose_provenance() as u64, bytes.len()),
            },
            Some(Op::Record { event, generation }) => {
                let now = self.clock.now_ns();
                if let Some(event) = self.events.get_mut(&event) {
                    event.open.remove(&generation);
                    event.at_ns = now;
                }
            }
            Some(Op::Launch(kernel)) => {
                self.begun += u64::from(!kernel.name.starts_with("cuinstr_"));
                stream.running = Some(kernel);
            }
        }
        true
    }

    /// Loads code, if all streams have come so far.
    fn load(&mut self, id: u64) -> bool {
        let is_load = |op: &Op| matches!(op, Op::Load(other) if *other == id);
        let is_there = |stream: &Stream| stream.running.is_none() && stream.queue.front().is_some_and(is_load);
        let is_next = self.streams.values().all(|stream| is_there(stream) || !stream.queue.iter().any(is_load));
        for stream in self.streams.values_mut().filter(|stream| is_next && is_there(stream)) {
            stream.queue.pop_front();
        }
        is_next
    }

    fn look(&self, kernel: &mut Launched) -> Look {
        let now = self.clock.now_ns();
        let is_first = kernel.begun.is_none();
        let begun = *kernel.begun.get_or_insert(now);
        if is_first {
            kernel.ends = self.ends;
        }
        let name = kernel.name.as_str();
        match name {
            "cuinstr_clock" => return clock(kernel, now, begun),
            "cuinstr_watchdog" => {
                return match kernel.words.first().map(|word| raw::load::<u32>(*word)) {
                    Some(1) => Look::Ends,
                    Some(2) => Look::Faults(code::LAUNCH_FAILED),
                    _ => Look::Runs,
                };
            }
            _ => {}
        }
        let does = |word: &str| name.contains(word);
        if does("fault") {
            return Look::Faults(code::ILLEGAL_ADDRESS);
        }
        if let (true, Some(place)) = (does("wrong"), kernel.words.first()) {
            raw::store(*place, 0_u32);
        }
        let control = kernel.control.filter(|_| !does("silent")).map(Control);
        if let Some(control) = control.filter(|_| is_first) {
            control.begin(now, does("late"));
        }
        let is_over = if does("blocks") {
            let [slots, ns, counts] = kernel.words[..] else { return Look::Ends };
            let stands = self.gate.as_ref().is_some_and(|gate| !gate.exists());
            let habits = Habits { ns: self.block_ns.unwrap_or(ns), stuck: self.stuck_blocks, pace: self.block_pace, stands };
            kernel.blocks.advance(kernel.pause, now, slots, habits, counts)
        } else if does("spin") {
            false
        } else if does("deaf") {
            self.ends > kernel.ends
        } else if does("work") {
            now.saturating_sub(begun) >= kernel.words.first().copied().unwrap_or(0)
        } else {
            true
        };
        if is_over {
            return Look::Ends;
        }
        let Some(control) = control.filter(|_| !does("deaf")) else { return Look::Runs };
        match control.reason(now) {
            None => Look::Runs,
            Some(why) if control.stop(why, now, kernel.threads, self.site) => Look::Ends,
            Some(_) => Look::Faults(code::LAUNCH_FAILED),
        }
    }
}

/// The runtime's own kernel that answers each question with the time.
fn clock(kernel: &mut Launched, now: u64, begun: u64) -> Look {
    let [question, answer, left] = kernel.words[..] else { return Look::Ends };
    // The third word counts down; the question counts up from 1.
    let round = kernel.threads;
    if now - begun > CLOCK_NS || round > left {
        return Look::Ends;
    }
    if raw::load::<u64>(question) >= round {
        raw::store(answer, now);
        kernel.threads += 1;
    }
    Look::Runs
}

/// A module's control block.
#[derive(Clone, Copy)]
struct Control(u64);

impl Control {
    fn word<T: Copy>(self, offset: usize) -> T {
        raw::load(self.0 + offset as u64)
    }

    fn begin(self, now: u64, is_late: bool) {
        if self.word::<u64>(offset_of!(ControlBlock, start_ns)) == 0 {
            raw::store(self.0 + offset_of!(ControlBlock, start_ns) as u64, now);
        }
        let (launch, host) = (self.word::<u32>(offset_of!(ControlBlock, launch)), self.word::<u64>(offset_of!(ControlBlock, host_record)));
        if host != 0 {
            raw::store(host + offset_of!(StopRecord, start_ns) as u64, self.word::<u64>(offset_of!(ControlBlock, start_ns)));
        }
        let fuel = u64::from(self.word::<u32>(offset_of!(ControlBlock, count_fuel))) * 7;
        if fuel != 0 {
            raw::store(self.record() + offset_of!(StopRecord, fuel_used) as u64, fuel);
        }
        for record in [self.record(), host].into_iter().filter(|record| is_late && *record != 0) {
            raw::store(record + offset_of!(StopRecord, late) as u64, launch);
        }
    }

    fn record(self) -> u64 {
        match self.word(offset_of!(ControlBlock, record)) {
            0 => self.0 + offset_of!(ControlBlock, own_record) as u64,
            record => record,
        }
    }

    fn reason(self, now: u64) -> Option<Why> {
        let limit = |offset| Some(self.word::<u64>(offset)).filter(|limit| *limit != 0 && *limit != UNLIMITED);
        let launch: u32 = self.word(offset_of!(ControlBlock, launch));
        let start: u64 = self.word(offset_of!(ControlBlock, start_ns));
        if raw::load::<u32>(self.word(offset_of!(ControlBlock, flag))) == launch {
            return Some(Why::Flag);
        }
        if limit(offset_of!(ControlBlock, timeout_ns)).is_some_and(|timeout| now.saturating_sub(start) >= timeout) {
            return Some(Why::Deadline);
        }
        // Any fuel that a test gives is soon used up; what only counts is more than that.
        limit(offset_of!(ControlBlock, fuel)).filter(|fuel| *fuel < 1 << 39).map(|_| Why::Fuel)
    }

    /// All threads stop. False if they trap.
    fn stop(self, why: Why, now: u64, threads: u64, site: u64) -> bool {
        let launch: u32 = self.word(offset_of!(ControlBlock, launch));
        let start: u64 = self.word(offset_of!(ControlBlock, start_ns));
        let mut told = StopRecord { claimed: launch, published: launch, site, why: why as u32, ..StopRecord::EMPTY };
        told.elapsed_ns = now.saturating_sub(start);
        told.start_ns = start;
        let host = self.word::<u64>(offset_of!(ControlBlock, host_record));
        if host != 0 {
            let late = raw::load::<StopRecord>(host).late;
            raw::store(host, StopRecord { late, published: 0, ..told });
            raw::store(host + offset_of!(StopRecord, published) as u64, launch);
        }
        let record = self.record();
        let before = raw::load::<StopRecord>(record);
        // A record holds what its first launch wrote until the host clears it.
        if before.claimed == 0 {
            let mut sites = [SiteCount { site: 0, threads: 0 }; SITE_SLOTS];
            sites[0] = SiteCount { site, threads };
            raw::store(record, StopRecord { start_ns: 0, late: before.late, fuel_used: before.fuel_used, sites, ..told });
        }
        self.word::<u32>(offset_of!(ControlBlock, action)) == Action::Leave as u32
    }
}
