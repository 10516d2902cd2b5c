//! `cuinstr run --pausable` over the stand-in driver: what runs pauses at block boundaries.

use super::{Watched, World};
use crate::project::expect;
use std::fs;
use std::time::Duration;

/// A program whose grid runs, under these options.
fn start<'a>(world: &'a World, options: &str, does: &str) -> Watched<'a> {
    Watched::start(world, world.command(&format!("--quiet {options}"), does), "blocks")
}

impl Watched<'_> {
    /// Pauses, and gives how many blocks have run and how many wait.
    fn pause(&self) -> (u64, u64) {
        let (status, said) = self.ask("pause PID");
        assert!(status == 0 && said.starts_with("paused: later launches wait\n"), "{said}");
        let numbers = |text: &str| text.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).collect::<Vec<_>>();
        match said.lines().nth(1).and_then(|line| line.split_once("is paused: ")).map(|(_, rest)| numbers(rest)).as_deref() {
            Some([done, left]) => (*done, *left),
            _ => panic!("{said}"),
        }
    }

    /// Pauses, and sees that the launch runs on for that reason.
    fn runs_on(&self, why: &str) {
        let (status, said) = self.ask("pause PID --within 50ms");
        assert!(status == 0 && said.contains(&format!("runs on to its end: {why}")), "{why}: {said}");
    }

    /// What the program said when it has come to its end by itself.
    fn said(self) -> String {
        self.go();
        let (status, said, told) = self.end();
        assert_eq!(status, Some(0), "{said}{told}");
        said
    }
}

#[test]
fn blocks_that_have_not_begun_wait_and_each_runs_once() {
    let world = World::new();
    for (way, letter) in [("plt", 'o'), ("dlsym", 'p'), ("ask", 'o'), ("plt", 'x')] {
        let watched = start(&world, "--pausable", &format!("{way} blocks-{letter}"));
        let mut before = 0;
        for _ in 0..3 {
            let (done, left) = watched.pause();
            assert!(done + left == 96 && done > before && left > 0, "{letter}: {done} and {left} after {before}");
            before = done;
            // Nothing changes while it is paused, and pausing twice is pausing once.
            std::thread::sleep(Duration::from_millis(150));
            assert_eq!(watched.pause(), (done, left));
            assert!(watched.ask("ps").1.contains("(paused: launches wait)"));
            assert!(watched.ask("ps").1.contains(&format!("is paused: {done} blocks have run, {left} wait")));
            assert_eq!(watched.ask("where PID"), (0, "nothing runs\n".to_owned()));
            assert_eq!(watched.ask("resume PID"), (0, "resumed\n".to_owned()));
            std::thread::sleep(Duration::from_millis(60));
        }
        // To resume what runs changes nothing.
        assert_eq!(watched.ask("resume PID"), (0, "resumed\n".to_owned()));
        assert_eq!(watched.said(), format!("blocks-{letter}: 0 0 0 once\n"));
    }
}

#[test]
fn what_is_queued_behind_waits_too() {
    let world = World::new();
    let watched = start(&world, "--pausable", "plt blocks-m");
    for _ in 0..2 {
        let (done, left) = watched.pause();
        assert_eq!(done + left, 96);
        watched.until(|first| (first["running"].as_array().is_some_and(|running| running.len() == 1)).then_some(()));
        watched.ask("resume PID");
        std::thread::sleep(Duration::from_millis(100));
    }
    // The grids behind it, too, as far as they are reached.
    watched.go();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        watched.ask("pause PID");
        watched.ask("resume PID");
    }
    assert_eq!(watched.said(), "blocks-m: 0 0 0 once\n");
    // A copy behind it finds the results of all blocks.
    let watched = start(&world, "--pausable", "plt blocks-h");
    for _ in 0..2 {
        watched.pause();
        std::thread::sleep(Duration::from_millis(100));
        watched.ask("resume PID");
        watched.until(|first| (first["paused"] == false && first["running"][0]["kernel"] == "blocks").then_some(()));
    }
    assert_eq!(watched.said(), "behind: 96\nblocks-h: 0 0 0 once\n");
    // A graph waits too, since its kernels would take the rest for theirs.
    let watched = start(&world, "--pausable", "plt blocks-G");
    watched.pause();
    std::thread::sleep(Duration::from_millis(900));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "graph behind: 96\nblocks-G: 0 0 0 once\n");
    // More launches than a stream holds, so that the program waits in the middle of them.
    let watched = start(&world, "--pausable", "plt blocks-q");
    watched.go();
    for _ in 0..8 {
        watched.ask("pause PID");
        watched.ask("resume PID");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(watched.said(), "blocks-q: 0 0 0 once\n");
}

#[test]
fn a_limit_stands_still_while_a_launch_is_paused() {
    let world = World::new();
    let watched = start(&world, "--pausable --timeout 4s --on-stop leave", "plt blocks-o");
    watched.pause();
    std::thread::sleep(Duration::from_secs(5));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-o: 0 0 0 once\n");
    // What ran before the pause counts.
    let watched = start(&world, "--pausable --timeout 2s --on-stop leave", "plt blocks-o");
    watched.pause();
    watched.ask("resume PID");
    let (status, said, told) = watched.end();
    assert_eq!((status, said.as_str()), (Some(124), "blocks-o: 0 0 0 not all\n"), "{told}");
}

#[test]
fn a_launch_is_stopped_while_its_blocks_come_to_their_ends() {
    let world = World::new();
    let mut command = world.command("--quiet --pausable --timeout 3s --on-stop leave", "plt blocks-o");
    command.env("CUINSTR_STAND_IN", "blocks 9000000000");
    let watched = Watched::start(&world, command, "blocks");
    assert!(watched.ask("pause PID --within 10ms").1.contains("the blocks that have begun still run"));
    watched.until(|first| (first["running"] == serde_json::json!([]) && first["paused"] == true).then_some(()));
    watched.ask("resume PID");
    let (status, said, told) = watched.end();
    assert_eq!((status, said.as_str()), (Some(124), "blocks-o: 0 0 0 not all\n"), "{told}");
    // One that traps takes its context with it.
    let watched = start(&world, "--pausable", "plt blocks-o");
    watched.pause();
    assert_eq!(watched.ask("stop PID"), (0, "stopped: `blocks`\n".to_owned()));
    let (_, said, told) = watched.end();
    assert_eq!(said, "blocks-o: 0 719 719 not all\n", "{told}");
}

#[test]
fn a_paused_launch_is_stopped_and_a_process_ends_while_it_is_paused() {
    let world = World::new();
    let watched = start(&world, "--pausable --on-stop leave", "plt blocks-o");
    watched.pause();
    assert_eq!(watched.ask("stop PID"), (0, "stopped: `blocks`\n".to_owned()));
    watched.until(|first| (first["running"] == serde_json::json!([]) && first["paused"] == true).then_some(()));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-o: 0 0 0 not all\n");
    let watched = start(&world, "--pausable", "plt blocks-e");
    watched.pause();
    assert_eq!(watched.said(), "");
    // Its context is lost meanwhile: a graph that it launches next waits for nothing.
    let watched = start(&world, "--pausable", "plt blocks-d graph");
    watched.pause();
    std::thread::sleep(Duration::from_millis(1200));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-d: 0 700 700 not all\ngraph: 0\n");
    let watched = start(&world, "--pausable", "plt blocks-o");
    watched.pause();
    expect(world.project.command("kill").arg(&watched.process), 0);
    assert_eq!(watched.end().0, Some(143));
}

/// Half a result is no success.
#[test]
fn a_rest_that_the_driver_refuses_ends_the_process() {
    let world = World::new();
    // The program's own two launches come first.
    let mut command = world.command("--quiet --pausable", "plt blocks-o");
    command.env("CUINSTR_STAND_IN", "fail cuLaunchKernel 3 701");
    let watched = Watched::start(&world, command, "blocks");
    watched.pause();
    watched.ask("resume PID");
    let (status, said, told) = watched.end();
    assert_eq!((status, said.as_str()), (Some(124), "blocks-o: 0"), "{told}");
    assert!(told.contains("error: kernel `blocks` was paused, and the driver refuses to launch its rest (error 701)"), "{told}");
}

#[test]
fn what_can_not_pause_runs_on_and_says_why() {
    let world = World::new();
    for (options, does, why) in [
        ("--pausable", "blocks-c", "it is a cooperative launch"),
        ("--pausable", "blocks-k", "it is launched in clusters"),
        ("--pausable", "blocks-t", "its module runs in several streams"),
        ("--pausable", "capture blocks-o", "its module is part of a graph"),
        ("--pausable", "graph blocks-o", "the process launches graphs, whose kernels can't be told apart"),
        ("--pausable", "blocks-f", "a call of the program waits for it"),
    ] {
        let watched = start(&world, options, &format!("plt {does}"));
        watched.runs_on(why);
        watched.ask("resume PID");
        let said = watched.said();
        assert!(said.ends_with(": 0 0 0 once\n"), "{said}");
    }
    // The program's own memory is the first.
    for (fault, why) in [
        ("fail cuMemAlloc_v2 2 2", "there is no memory for a pause"),
        ("fail cuMemAlloc_v2 5 2", "there is no memory for a pause"),
        ("fail cuFuncGetParamInfo always 801", "the driver does not say what its arguments are"),
    ] {
        let mut command = world.command("--quiet --pausable", "plt blocks-o");
        command.env("CUINSTR_STAND_IN", fault);
        let watched = Watched::start(&world, command, "blocks");
        watched.runs_on(why);
        watched.ask("resume PID");
        assert_eq!(watched.said(), "blocks-o: 0 0 0 once\n", "{fault}");
    }
    let watched = start(&world, "--timeout 50s", "plt blocks-o");
    let (_, said) = watched.ask("pause PID");
    assert!(said.ends_with("limit 50s, and runs on to its end\n"), "{said}");
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-o: 0 0 0 once\n");
}

/// A block that runs waits for one that declined, so the launch never drains: the blocks that declined run beside it.
#[test]
fn what_does_not_drain_ends_when_it_is_resumed() {
    let world = World::new();
    for pauses in [1, 2] {
        let mut command = world.command("--quiet --pausable", "plt blocks-s");
        command.env("CUINSTR_STAND_IN", "stuck 1");
        let watched = Watched::start(&world, command, "blocks");
        for _ in 0..pauses {
            let (status, said) = watched.ask("pause PID --within 200ms");
            assert!(status == 0 && said.contains("and the blocks that have begun still run"), "{said}");
            watched.ask("resume PID");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(watched.said(), "blocks-s: 0 0 0 once\n");
    }
    // Blocks that take long are waited for, and none is launched beside them.
    let mut command = world.command("--quiet --pausable", "plt blocks-o");
    command.env("CUINSTR_STAND_IN", "blocks 60000000");
    let watched = Watched::start(&world, command, "blocks");
    for _ in 0..8 {
        watched.ask("pause PID --within 1ms");
        watched.ask("resume PID");
    }
    assert_eq!(watched.said(), "blocks-o: 0 0 0 once\n");
}

/// Blocks begin slowly, so that some have not begun when those that declined are launched beside them: in the first part, and in later ones.
#[test]
fn blocks_that_begin_late_run_once() {
    let world = World::new();
    for rest in [0, 1, 2, 3] {
        let mut command = world.command("--quiet --pausable", "plt blocks-o");
        command.env("CUINSTR_STAND_IN", "pace 6000000");
        let watched = Watched::start(&world, command, "blocks");
        for _ in 0..rest {
            watched.pause();
            watched.ask("resume PID");
        }
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(40));
            watched.ask("pause PID --within 30ms");
            watched.ask("resume PID");
        }
        assert_eq!(watched.said(), "blocks-o: 0 0 0 once\n", "{rest}");
    }
}

#[test]
fn a_module_that_is_paused_in_one_stream_is_launched_in_no_other() {
    let world = World::new();
    let watched = start(&world, "--pausable", "plt blocks-l");
    watched.pause();
    // The program comes to the other stream, where it waits.
    std::thread::sleep(Duration::from_millis(500));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-l: 0 0 0 once\n");
}

/// The driver lets nobody launch or copy while it frees memory, which waits for all streams.
#[test]
fn memory_is_freed_when_nothing_is_left_of_paused_launches() {
    let world = World::new();
    let mut command = world.command("--quiet --pausable", "plt blocks-F");
    command.env("CUINSTR_STAND_IN", "exclusive 1");
    let watched = Watched::start(&world, command, "blocks");
    watched.pause();
    // The program comes to the call, and waits there.
    std::thread::sleep(Duration::from_millis(900));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-F: 0 0 0 once\n");
}

#[test]
fn polls_with_and_without_the_decision_lie_apart_in_the_cache() {
    let world = World::new();
    for options in ["", "--pausable"] {
        assert_eq!(world.run(&format!("--timeout 50s {options}"), "plt done", 0).0, "done: 0 0\n");
    }
    let cached = fs::read_dir(world.project.path().join("cache/cuinstr/polled")).expect("a cache");
    let texts: Vec<String> = cached.map(|entry| fs::read_to_string(entry.expect("a file").path()).expect("a text")).collect();
    assert_eq!((texts.len(), texts.iter().filter(|text| text.contains("cuinstr_pause_v1")).count()), (2, 1));
}

#[test]
fn a_copy_of_the_program_that_waits_holds_up_no_pause() {
    let world = World::new();
    let mut command = world.command("--quiet --pausable", "plt blocks-H");
    command.env("CUINSTR_STAND_IN", "exclusive 1");
    let watched = Watched::start(&world, command, "blocks");
    for _ in 0..2 {
        watched.pause();
        watched.ask("resume PID");
        std::thread::sleep(Duration::from_millis(40));
    }
    assert_eq!(watched.said(), "behind: 96\nblocks-H: 0 0 0 once\n");
}

#[test]
fn code_that_is_loaded_behind_a_launch_loses_no_block() {
    let world = World::new();
    let start = |does: &str| {
        let mut command = world.command("--quiet --pausable", does);
        command.env("CUINSTR_STAND_IN", "lazy 1");
        Watched::start(&world, command, "blocks")
    };
    // All code of its module is loaded in front of it.
    let watched = start("plt blocks-o");
    let (done, left) = watched.pause();
    assert_eq!(done + left, 96);
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-o: 0 0 0 once\n");
    // Nothing gets past the launch if that of another module is loaded behind it.
    let watched = start("plt blocks-M");
    watched.runs_on("the driver loads code, which waits for it");
    watched.ask("resume PID");
    watched.runs_on("the driver loads code, which waits for it");
    std::thread::sleep(Duration::from_secs(1));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-M: 0 0 0 once\n");
}

/// A request stays where it was written. Here it comes when all blocks of the first grid have begun, or when they have ended, and the second grid finds it.
#[test]
fn a_request_to_one_launch_is_not_obeyed_by_the_next() {
    let world = World::new();
    // The first such write looks whether anything gets through. The second is the request.
    for (rule, held_up) in [("", 0), ("block cuStreamWriteValue32_v2 2", 1)] {
        let mut command = world.command("--quiet --pausable", "plt blocks-L");
        command.env("CUINSTR_STAND_IN", rule);
        let watched = Watched::start(&world, command, "blocks");
        assert_eq!(watched.ask("pause PID"), (0, "paused: later launches wait\n".to_owned()), "{rule}");
        watched.ask("resume PID");
        assert_eq!(watched.said(), format!("held up: {held_up}\nblocks-L: 0 0 0 once\n"), "{rule}");
    }
    // A graph's kernel comes with no number of its own.
    let watched = start(&world, "--pausable", "plt blocks-R");
    assert_eq!(watched.ask("pause PID"), (0, "paused: later launches wait\n".to_owned()));
    watched.ask("resume PID");
    assert_eq!(watched.said(), "blocks-R: 0 0 0 once\n");
}
