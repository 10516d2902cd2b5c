//! A driver that refuses PTX with polls no sooner than where something of it is needed.

use super::World;
use crate::project::text;
use std::fs;

const PROGRAM: &str = include_str!("lookups.c");

struct Ran {
    said: String,
    told: String,
    report: String,
    status: Option<i32>,
}

impl Ran {
    /// Whether each kernel that was launched is named as one without polls, and why.
    fn is_told(&self) -> bool {
        let kernels = self.report.lines().filter(|line| line.contains("\"symbol\""));
        let known = |line: &str| line.contains("\"polled\":false") && line.contains("the driver refuses its PTX with polls (error 218)");
        self.told.contains("cuinstr: 0 kernels with polls, 0 launches;") && kernels.clone().count() > 0 && kernels.clone().all(known)
    }
}

fn world() -> World {
    let world = World::of("lookups.c", PROGRAM);
    let code = PROGRAM.split_once("code[] =").and_then(|(_, rest)| rest.split_once(";\nstatic")).expect("the program's code").0;
    let code: String = code.split('"').skip(1).step_by(2).collect();
    world.project.write("code.ptx", &code.replace("\\n", "\n"));
    world
}

fn run(world: &World, options: &str, does: &str, commands: &str) -> Ran {
    let path = world.project.path().join("all.jsonl");
    let _ = fs::remove_file(&path);
    let output = world.command(&format!("--timeout 20s --report all.jsonl {options}"), does).env("CUINSTR_STAND_IN", commands).output();
    let output = output.expect("it starts");
    let report = fs::read_to_string(path).unwrap_or_default();
    Ran { said: text(&output.stdout), told: text(&output.stderr), report, status: output.status.code() }
}

/// What the program says without us.
fn plain(world: &World, does: &str) -> String {
    let mut command = world.project.command("timeout");
    command.args(["60", "./program", does]).env("LD_LIBRARY_PATH", "fake").env_remove("LD_PRELOAD");
    text(&command.output().expect("it starts").stdout)
}

#[test]
fn what_the_driver_refuses_when_it_is_needed_runs_without_polls() {
    let world = world();
    for does in ["library", "file", "early", "module", "again"] {
        let without = plain(&world, does);
        assert!(without.contains("live 0\n"), "{does}: {without}");
        let good = run(&world, "", does, "late 0");
        assert_eq!((&good.said, good.status), (&without, Some(0)), "{does}: {}", good.told);
        assert!(good.told.contains("; 0 kernels without, 0 launches"), "{does}: {}", good.told);
        // Said when it is compiled, or not before the program's own look-up.
        for commands in ["late 218", "late 218;fail cuLibraryGetGlobal 1 201"] {
            let refused = run(&world, "", does, commands);
            assert_eq!((&refused.said, refused.status), (&without, Some(0)), "{does} {commands}: {}", refused.told);
            assert!(refused.is_told() && !refused.told.contains("already uses"), "{does} {commands}: {}{}", refused.told, refused.report);
        }
    }
    assert_eq!(run(&world, "--strict", "library", "late 218").status, Some(1));
    // Any other error is no matter of polls.
    let lost = run(&world, "", "library", "late 700");
    assert!(lost.said.contains("kernel 700\n") && !lost.told.contains("refuses"), "{}{}", lost.said, lost.told);
}

#[test]
fn a_library_of_which_the_program_has_a_variable_keeps_its_error_and_that_is_said() {
    let world = world();
    let warning = "cuinstr: warning: the driver refuses a library with polls (error 218) that the program already uses: this call fails\n  \
                   = help: if the program uses several GPUs, give it one (`cuinstr run --gpu auto`); else run it without `cuinstr run`\n";
    // The driver has compiled it, or could not be asked and has given the variable all the same.
    for commands in ["late 0", "fail cuLibraryGetGlobal 1 201"] {
        let ran = run(&world, "", "variable", commands);
        assert_eq!(ran.said, "load 0\nvariable 0\nkernel 218\nkernel 218\nunload 0\nlive 0\n", "{commands}: {}", ran.told);
        assert_eq!(ran.told.matches(warning).count(), 1, "{commands}: {}", ran.told);
    }
}

#[test]
fn threads_that_look_up_at_once_get_one_library() {
    let world = world();
    let ran = run(&world, "", "threads", "late 218");
    assert_eq!(ran.said, "threads 0\ndone 0\nloaded 2\nunload 0\nlive 0\n", "{}", ran.told);
    assert!(ran.is_told() && ran.told.contains("1 kernel without, 8 launches"), "{}{}", ran.told, ran.report);
}
