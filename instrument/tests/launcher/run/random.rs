//! Programs that launch random grids are paused, resumed, stopped and killed at random instants.

use super::{Watched, World};
use std::time::{Duration, Instant};

const PROGRAM: &str = include_str!("random.c");

/// Random numbers (xorshift), the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }
}

/// What was done to a program: how many kernels were paused, and so on.
#[derive(Default)]
struct Done {
    pauses: usize,
    stops: usize,
    is_killed: bool,
}

/// Pauses and resumes it until it ends, and now and then does worse.
fn disturb(watched: &mut Watched<'_>, random: &mut Random, seed: u64) -> Done {
    let since = Instant::now();
    let (may_stop, may_kill) = (seed % 4 == 1, seed % 11 == 5);
    let mut done = Done::default();
    while watched.child.try_wait().expect("a child").is_none() {
        assert!(since.elapsed() < Duration::from_secs(50), "seed {seed} does not end: {}", watched.ask("ps").1);
        if watched.process.is_empty() {
            let (_, listed) = watched.ask("ps --json");
            let first = listed.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            watched.process = first.map(|first| first["process"].to_string()).unwrap_or_default();
            continue;
        }
        std::thread::sleep(Duration::from_millis(if random.below(2) == 0 { 0 } else { random.below(50) }));
        match random.below(8) {
            0..=3 => {
                let (_, said) = watched.ask(&format!("pause PID --within {}ms", 1 + random.below(150)));
                done.pauses += said.matches(" and is paused: ").count();
            }
            4 if may_stop => {
                watched.ask("stop PID");
                done.stops += 1;
            }
            5 if may_kill && since.elapsed() > Duration::from_millis(300) => {
                done.is_killed = true;
                // It may have come to its end.
                let _ = watched.world.project.command("kill").args(["-KILL", &watched.process]).output().expect("it starts");
                break;
            }
            _ => {
                watched.ask("resume PID");
            }
        }
        // However it is left, it goes on in the end.
        if since.elapsed() > Duration::from_secs(6) {
            watched.ask("resume PID");
        }
    }
    done
}

#[test]
fn each_block_of_random_grids_runs_once_or_the_stop_is_reported() {
    let world = World::of("random.c", PROGRAM);
    let count = std::env::var("CUINSTR_PAUSES").ok().and_then(|count| count.parse().ok()).unwrap_or(20);
    let (mut pauses, mut stops, mut left, mut killed) = (0, 0, 0, 0);
    for seed in 0..count {
        let mut random = Random((seed + 1_u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Blocks that take long do not drain before the resume, and those that begin late are passed over by what runs beside them.
        let habits = ["", "exclusive 1", "pace 300000", "depth 40", "blocks 40000000;pace 600000", "lazy 1", "exclusive 1;lazy 1"]
            [random.below(7) as usize];
        let mut command = world.command("--pausable --on-stop leave", &seed.to_string());
        command.env("CUINSTR_STAND_IN", habits);
        let child = command.spawn().expect("it starts");
        let mut watched = Watched { world: &world, child, process: String::new() };
        let done = disturb(&mut watched, &mut random, seed);
        let (status, said, told) = watched.end();
        let about = format!("seed {seed}, {habits:?}, {} pauses, {} stops: {status:?} {said}{told}", done.pauses, done.stops);
        let numbers: Vec<usize> = said.split(|at: char| !at.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        pauses += done.pauses;
        stops += done.stops;
        match numbers[..] {
            [_, parts, often, early] => {
                // Only a grid that was stopped is not whole. One report is for all launches of a module that the stop has reached.
                let is_reported = told.contains("was stopped: somebody asked for that");
                assert!(often == 0 && (is_reported || parts + early == 0) && (done.stops > 0 || !is_reported), "{about}");
                assert_eq!(status, Some(0), "{about}");
            }
            // It ended by itself, or it was ended, before it could tell.
            [] if done.is_killed => killed += 1,
            [] if seed % 7 == 6 => left += 1,
            _ => panic!("{about}"),
        }
    }
    println!("{count} programs: {pauses} pauses of kernels, {stops} stops, {left} ended while blocks were left, {killed} killed");
    assert!(pauses as u64 >= count, "only {pauses} pauses of kernels in {count} programs");
}
