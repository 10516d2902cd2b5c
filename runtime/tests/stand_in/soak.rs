//! Random launches from several threads, with stops, refusals, captured launches, guards and contexts that come and go. Every outcome is the one that its
//! launch must have, and what the driver holds does not grow.

use crate::Case;
use crate::world::{LONG, World, command, guarded, start, until};
use cuinstr_runtime::cudarc::driver::CudaStream;
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Clock, Error, FlagMemory, Launch, Outcome, Running};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) const CASES: &[Case] =
    &[("random launches all end as they should", soak), ("random launches in one context take no more memory", flat)];

/// Launches; `CUINSTR_SOAK` names another number.
const LAUNCHES: u64 = 1500;
const THREADS: u64 = 3;
/// Launches of a thread after which its context is left, so that contexts come and go.
const STAY: u64 = 100;
const BRIEF: Duration = Duration::from_micros(500);

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Completed,
    Deadline,
    Cancelled,
    Fuel,
}

fn check(wanted: Wanted, outcome: &Outcome, seed: u64) {
    let is_right = match outcome {
        Outcome::Completed { .. } => wanted == Wanted::Completed,
        Outcome::Stopped { why: Cause::Deadline, .. } => wanted == Wanted::Deadline,
        Outcome::Stopped { why: Cause::Cancelled, .. } => wanted == Wanted::Cancelled,
        Outcome::Stopped { why: Cause::Fuel, .. } => wanted == Wanted::Fuel,
        _ => false,
    };
    assert!(is_right, "seed {seed}: {wanted:?}, but {outcome:?}");
}

/// Kinds of launches. The last is one that another host makes, from a module that it loads for that.
const KINDS: u64 = 10;

fn one(world: &World, stream: &Arc<CudaStream>, dice: &mut Dice, seed: u64, kinds: u64) -> Option<(Wanted, Running)> {
    let flag = [FlagMemory::Device, FlagMemory::Device, FlagMemory::Pinned, FlagMemory::Managed][dice.below(4) as usize];
    let launch = |name: &str, set: &dyn Fn(&mut Launch<'_>)| {
        start(&world.kernel(name), stream, |launch| {
            set(launch.flag(flag));
        })
    };
    let (wanted, running) = match dice.below(kinds) {
        0 => {
            let refused = launch("refuse", &|launch| _ = launch.until_cancelled());
            assert!(matches!(refused, Err(Error::Arguments { .. })), "seed {seed}: {refused:?}");
            return None;
        }
        1 => {
            // A launch that nobody watches.
            let kernel = world.kernel("empty");
            // SAFETY: the stand-in's kernels touch no memory of ours.
            unsafe { kernel.unguarded(stream).expect("a bare launch").launch(crate::world::ONE) }.expect("a bare launch");
            return None;
        }
        9 => {
            let limits = Limits::timeout(BRIEF);
            let guard = guarded(&world.context, "spin", stream, &limits).expect("a guard").expect("a launch");
            guard.launched().expect("it was launched");
            let outcome = guard.wait_for(LONG).expect("no error").expect("an outcome");
            check(Wanted::Deadline, &outcome, seed);
            return None;
        }
        3 => (Wanted::Cancelled, launch("spin", &|launch| _ = launch.until_cancelled())),
        4 => (Wanted::Fuel, launch("spin", &|launch| _ = launch.timeout(LONG).fuel(9))),
        5 => (Wanted::Deadline, launch("spin", &|launch| _ = launch.timeout(BRIEF).clock(Clock::Host))),
        2 | 6 => (Wanted::Deadline, launch("spin", &|launch| _ = launch.timeout(BRIEF))),
        _ => (Wanted::Completed, launch("empty", &|launch| _ = launch.timeout(LONG))),
    };
    let running = running.unwrap_or_else(|error| panic!("seed {seed}: {wanted:?}: {error}"));
    if wanted == Wanted::Cancelled {
        running.cancel().expect("a cancel");
    }
    Some((wanted, running))
}

/// What one thread does, in a context that it shares with others as long as they have one.
fn stay(seed: u64, launches: u64) {
    let mut dice = Dice(seed);
    let world = loop {
        match World::open() {
            // Another thread's launch has no end of its own: nothing is loaded beside it.
            Err(Error::InFlight { .. }) => thread::sleep(BRIEF),
            world => break world.expect("the stand-in has a device"),
        }
    };
    let streams: Vec<_> = (0..3).map(|_| world.stream()).collect();
    let mut flying: VecDeque<(Wanted, Running)> = VecDeque::new();
    for _ in 0..launches {
        let stream = &streams[dice.below(3) as usize];
        flying.extend(one(&world, stream, &mut dice, seed, KINDS));
        // Guards and bare launches share no order with what is in flight, so little of that is left.
        while flying.len() > dice.below(4) as usize {
            let Some((wanted, mut running)) = flying.pop_front() else { break };
            let outcome = running.wait().unwrap_or_else(|error| panic!("seed {seed}: {wanted:?}: {error}"));
            check(wanted, &outcome, seed);
        }
    }
    for (wanted, mut running) in flying {
        check(wanted, &running.wait().unwrap_or_else(|error| panic!("seed {seed}: {wanted:?}: {error}")), seed);
    }
}

/// What the driver holds for a process that makes launches for long.
fn flat() {
    let world = World::new();
    let streams: Vec<_> = (0..3).map(|_| world.stream()).collect();
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut flying: VecDeque<(Wanted, Running)> = VecDeque::new();
    let mut make = |launches: u64| {
        for _ in 0..launches {
            flying.extend(one(&world, &streams[dice.below(3) as usize], &mut dice, 0, KINDS - 1));
            while flying.len() > 12 {
                let Some((wanted, mut running)) = flying.pop_front() else { break };
                check(wanted, &running.wait().expect("an outcome"), 0);
            }
        }
        ["device", "pinned", "managed", "streams", "events", "modules"].map(|kind| command(&format!("live {kind}")))
    };
    let [mut before, mut after] = [1000, 1200].map(&mut make);
    // A slot's flag in managed memory is made when it is first needed: a word for each of 32 slots at most, and when is a matter of time.
    let managed = [before[2], after[2]];
    assert!(managed.iter().all(|bytes| (4..=4 * 32).contains(bytes)), "{managed:?}");
    (before[2], after[2]) = (0, 0);
    assert_eq!(after, before);
    for (wanted, mut running) in flying {
        check(wanted, &running.wait().expect("an outcome"), 0);
    }
}

fn soak() {
    let launches = std::env::var("CUINSTR_SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(LAUNCHES);
    let mut rounds = 0;
    while rounds * STAY * THREADS < launches {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(1 + rounds * THREADS + thread);
                scope.spawn(move || stay(seed, STAY));
            }
        });
        rounds += 1;
        until("all is given back", || ["live contexts", "live device", "live pinned", "live modules"].map(command) == [0; 4]);
    }
}
