//! What a driver that fails for a moment, or is slow, must not change.

use crate::Case;
use crate::pauses::Grid;
use crate::world::{LONG, PTX, SHORT, World, command, guarded, start, until};
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Error, Module, Outcome};
use std::thread;
use std::time::Duration;

pub(crate) const CASES: &[Case] = &[
    ("a linker is asked about PTX alone", linker),
    ("a guard writes the words that it needs", words),
    ("a record that can't be asked about for a moment is read", record),
    ("a context that can't be had for a moment loses no launch", context),
    ("what is left of a timeout counts from where the next part begins", next_part),
    ("a launch is given up whose blocks that declined can't run beside the others", lost_beside),
];

/// A fat binary with this one entry of PTX.
fn fat_binary(ptx: &[u8]) -> Vec<u8> {
    let padded = ptx.len().next_multiple_of(8);
    let mut entry = [1_u16.to_le_bytes(), 0x101_u16.to_le_bytes()].concat();
    entry.extend(64_u32.to_le_bytes());
    entry.extend((padded as u64).to_le_bytes());
    entry.extend([0; 12]);
    entry.extend(80_u32.to_le_bytes());
    entry.resize(64, 0);
    entry.extend(ptx);
    entry.resize(64 + padded, 0);
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend([1_u16.to_le_bytes(), 16_u16.to_le_bytes()].concat());
    bytes.extend((entry.len() as u64).to_le_bytes());
    bytes.extend(entry);
    bytes
}

fn linker() {
    let world = World::new();
    for (image, asked, code) in [(PTX.as_bytes().to_vec(), 1, 801), (fat_binary(PTX.as_bytes()), 0, 209)] {
        let before = command("calls cuLinkCreate_v2");
        command("fail cuModuleLoadData 1 209");
        let error = Module::load(&world.context, &image).expect_err("the driver refuses it");
        assert!(matches!(&error, Error::Module { fault, .. } if fault.code == code), "{error:?}");
        assert_eq!(command("calls cuLinkCreate_v2") - before, asked);
        Module::load(&world.context, &image).expect("the driver takes it");
    }
}

/// Each word costs the GPU time: behind the launch's number and its limit come only those that differ from what an earlier launch left.
fn words() {
    let world = World::new();
    let stream = world.stream();
    let before = command("written");
    let guard = guarded(&world.context, "empty", &stream, &Limits::timeout(LONG)).expect("a guard").expect("a launch");
    let armed = command("written");
    guard.launched().expect("it was launched");
    assert_eq!((armed - before, command("written") - armed), (7, 4));
    assert!(guard.wait_for(LONG).expect("no error").expect("an outcome").is_completed());
}

fn record() {
    for nth in 1..=4 {
        let world = World::new();
        let stream = world.stream();
        command("busy 1");
        let stopped = start(&world.kernel("spin"), &stream, |launch| {
            launch.timeout(SHORT);
        });
        let mut stopped = stopped.expect("a launch");
        until("it is stopped", || command("begun") == nth && command("running") == 0);
        command(&format!("fail cuEventQuery {nth} 2"));
        thread::sleep(SHORT);
        command("busy 0");
        let stopped = stopped.wait().expect("an outcome");
        assert!(matches!(&stopped, Outcome::Stopped { why: Cause::Deadline, report, .. } if report.threads == 64), "{stopped:?}");
        command("forget");
    }
}

fn context() {
    let world = World::new();
    let stream = world.stream();
    let launch = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT * 5);
    });
    let mut launch = launch.expect("a launch");
    until("it runs", || command("running") == 1);
    // From here on only the timer calls.
    command("fail cuCtxGetCurrent 1 2");
    command("fail cuCtxSetCurrent 1 2");
    until("the timer has tried, and tries again", || command("running") == 0);
    let stopped = launch.wait().expect("an outcome");
    assert!(matches!(stopped, Outcome::Stopped { why: Cause::Deadline, .. }), "{stopped:?}");
}

fn next_part() {
    let world = World::new();
    let stream = world.stream();
    let timeout = SHORT * 10;
    let mut grid = Grid::new(&world, &stream, (40_000, 1, 1), 4, Duration::from_millis(2));
    grid.prepared.timeout(timeout);
    let mut running = grid.start();
    assert!(matches!(running.pause(LONG).expect("an outcome"), Outcome::Paused { .. }));
    command("hold 1");
    running.resume(&stream).expect("it goes on");
    assert_eq!(running.wait_for(timeout * 2).expect("no error"), None);
    command("blocks 0");
    command("hold 0");
    assert!(running.wait().expect("an outcome").is_completed(), "it was stopped before it began");
}

/// A block that was passed over may have told only those that never run.
fn lost_beside() {
    let world = World::new();
    let stream = world.stream();
    for call in ["cuLaunchKernel", "cuEventRecord"] {
        let grid = Grid::new(&world, &stream, (600, 1, 1), 3, Duration::from_millis(2));
        command("stuck 1");
        let mut running = grid.start();
        until("blocks run", || grid.counted().iter().sum::<u32>() > 2);
        assert!(matches!(running.pause(Duration::from_millis(20)), Err(Error::NotPaused { .. })));
        command(&format!("fail {call} 1 2"));
        let error = running.go_on().expect_err("the driver refuses");
        command("forget");
        command("stuck 0");
        assert!(error.to_string().contains(call), "{error}");
        let outcome = running.wait().expect("an outcome");
        assert!(matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, .. }), "{call}: {outcome}");
    }
}
