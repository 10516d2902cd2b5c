//! Several threads at one launch, in an order that random pauses decide.

use crate::Case;
use crate::pauses::Grid;
use crate::world::{LONG, World, guarded};
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Outcome};
use std::thread;
use std::time::Duration;

pub(crate) const CASES: &[Case] = &[
    ("threads that wait for a launch and cancel it all see one outcome", waiters),
    ("threads that pause and cancel a launch while it is resumed lose no block", pausers),
];

/// Rounds; more under `CUINSTR_SOAK`.
fn rounds() -> u64 {
    std::env::var("CUINSTR_SOAK").ok().and_then(|count| count.parse::<u64>().ok()).map_or(40, |count| count / 20)
}

/// Pauses that look random, the same for the same seed.
struct Pauses(u64);

impl Pauses {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % most
    }

    /// Nothing, a few turns of other threads, or up to some hundred microseconds.
    fn rest(&mut self) {
        match self.below(3) {
            0 => {}
            1 => (0..self.below(20)).for_each(|_| thread::yield_now()),
            _ => thread::sleep(Duration::from_micros(self.below(400))),
        }
    }
}

fn waiters() {
    let world = World::new();
    let stream = world.stream();
    for round in 0..rounds() {
        let guard = guarded(&world.context, "spin", &stream, &Limits::UNTIL_CANCELLED).expect("a guard").expect("a launch");
        guard.launched().expect("it was launched");
        let wait = |seed: u64| {
            let mut pauses = Pauses(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(4 * round + seed + 1) | 1);
            loop {
                pauses.rest();
                if let Some(outcome) = guard.wait_for(Duration::from_micros(pauses.below(600))).expect("no error") {
                    return outcome;
                }
            }
        };
        let outcomes: Vec<Outcome> = thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|seed| scope.spawn(move || wait(seed))).collect();
            let mut pauses = Pauses(0x2545_f491_4f6c_dd1d_u64.wrapping_mul(round + 1) | 1);
            for _ in 0..2 {
                pauses.rest();
                guard.cancel().expect("a cancel");
            }
            waiting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(matches!(outcomes[0], Outcome::Stopped { why: Cause::Cancelled, .. }), "round {round}: {outcomes:?}");
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "round {round}: {outcomes:?}");
        assert_eq!(guard.wait_for(LONG).expect("no error").as_ref(), Some(&outcomes[0]));
    }
}

fn pausers() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (300, 1, 1), 16, Duration::from_micros(50));
    for round in 0..rounds() {
        let is_cancelled = round % 4 == 3;
        let before = grid.counted();
        let mut running = grid.start();
        let (pauser, canceller) = (running.pauser(), running.canceller());
        let outcome = thread::scope(|scope| {
            for seed in 0..2 {
                let pauser = pauser.clone();
                scope.spawn(move || {
                    let mut pauses = Pauses(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(2 * round + seed + 1) | 1);
                    for _ in 0..6 {
                        pauses.rest();
                        pauser.pause().expect("a request");
                    }
                });
            }
            if is_cancelled {
                let mut pauses = Pauses(round + 1);
                scope.spawn(move || {
                    (0..3).for_each(|_| pauses.rest());
                    canceller.cancel().expect("a cancel");
                });
            }
            loop {
                match running.wait().expect("an outcome") {
                    Outcome::Paused { .. } => {
                        // A cancel may come first.
                        let resumed = running.resume(&stream);
                        assert!(resumed.is_ok() || is_cancelled, "round {round}: {resumed:?}");
                    }
                    outcome => break outcome,
                }
            }
        });
        let ran: Vec<u32> = grid.counted().iter().zip(&before).map(|(after, before)| after - before).collect();
        match outcome {
            Outcome::Completed { .. } => assert!(ran.iter().all(|times| *times == 1), "round {round}: {ran:?}"),
            Outcome::Stopped { why: Cause::Cancelled, .. } => assert!(is_cancelled && ran.iter().all(|times| *times < 2), "{ran:?}"),
            other => panic!("round {round}: {other:?}"),
        }
    }
}
