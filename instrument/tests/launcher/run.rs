//! `cuinstr run` over the stand-in for the driver: programs that know nothing of us. `scripts/gpu-run` shows the same on a GPU.

use crate::project::{BINARY, Project, expect, text};
use crate::toolkit::nvcc;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

mod compilers;
mod fuel;
mod lookups;
mod pauses;
mod random;
mod sockets;
mod tools;

const PROGRAM: &str = include_str!("run/program.c");

/// The program, linked with the stand-in.
struct World {
    project: Project,
}

/// The library that cargo built for these tests.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("a test is a program");
    let folder = program.parent().expect("it lies in a folder");
    folder.join("libcuinstr_interpose.so")
}

impl World {
    fn new() -> Self {
        Self::of("program.c", PROGRAM)
    }

    /// With a program of that text.
    fn of(name: &str, text: &str) -> Self {
        let project = Project::new(&[(name, text)]);
        fs::create_dir(project.path().join("fake")).expect("a folder");
        fs::create_dir(project.path().join("runtime")).expect("a folder");
        cuinstr_stand_in::client::install(&project.path().join("fake")).expect("the stand-in beside this program");
        let mut command = project.command("cc");
        expect(command.args(["-O1", "-o", "program", name]).args("-Lfake -lcuda -ldl -lpthread".split(' ')), 0);
        Self { project }
    }

    fn command(&self, options: &str, does: &str) -> Command {
        // A hang of the program's own fails the test.
        let mut command = self.project.command("timeout");
        command.args(["-s", "KILL", "60", BINARY, "run"]).args(options.split_whitespace()).arg("--").arg("./program").args(does.split(' '));
        command.env("LD_LIBRARY_PATH", "fake").env("XDG_RUNTIME_DIR", self.project.path().join("runtime")).env_remove("LD_PRELOAD");
        command.env("XDG_CACHE_HOME", self.project.path().join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The file for which grids wait.
    fn gate(&self) -> PathBuf {
        self.project.path().join("go")
    }

    /// What the program says under these options, and what we say.
    fn run(&self, options: &str, does: &str, status: i32) -> (String, String) {
        let output: Output = self.command(options, does).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{options} -- {does}\n{}{}", text(&output.stdout), text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }
}

#[test]
fn a_hang_ends_at_its_deadline_whichever_way_the_program_finds_the_driver() {
    let world = World::new();
    for way in ["plt", "dlsym", "ask"] {
        let (said, told) = world.run("--timeout 100ms --on-stop leave", &format!("{way} done spin done"), 124);
        assert_eq!(said, "done: 0 0\nspin: 0 0\ndone: 0 0\n", "{way}: {told}");
        assert!(told.contains("cuinstr: kernel `spin` was stopped: its deadline (100 ms) passed"), "{way}: {told}");
        assert!(told.contains("2 kernels with polls, 3 launches; 0 kernels without, 0 launches"), "{way}: {told}");
    }
    // The same from the cache, and where an entry of it is damaged.
    let cached =
        || fs::read_dir(world.project.path().join("cache/cuinstr/polled")).expect("a cache").map(|entry| entry.expect("a file").path());
    let entry = cached().next().expect("one text was rewritten");
    let whole = fs::read(&entry).expect("a file");
    fs::write(&entry, &whole[..whole.len() / 2]).expect("a file");
    assert_eq!(world.run("--timeout 100ms --on-stop leave", "plt spin", 124).0, "spin: 0 0\n");
    assert_eq!((cached().count(), fs::read(&entry).expect("a file")), (1, whole));
    let (said, told) = world.run("--timeout 100ms", "plt spin done", 124);
    assert!(said.starts_with("spin: 0 719\n"), "{said}{told}");
    // The stream has gone on to launches of another module when the stop is seen.
    let (_, told) = world.run("--timeout 100ms,done=10s --on-stop leave", "plt behind", 124);
    assert!(told.contains("kernel `spin` was stopped: its deadline (100 ms) passed"), "{told}");
    let (said, _) = world.run("--timeout 100ms --on-stop leave", "plt library", 124);
    assert_eq!(said, "library: 0 0 0 0\n");
}

#[test]
fn a_pointer_is_ours_only_where_a_wrapper_has_that_signature() {
    let world = World::new();
    let answers = "cuLaunchKernel 4000 0: 0 ours\ncuLaunchKernel 13000 0: 0 ours\ncuLaunchKernel 13000 2: 0 ours\ncuLaunchKernelEx 12000 2: 0 ours\n\
                   cuLaunchKernelEx 11000 0: 500 none\ncuGetProcAddress 11030 0: 0 ours\ncuGetProcAddress 13000 0: 0 ours\n\
                   cuMemAlloc 13000 0: 0 the driver's\ncuLibraryLoadData 12000 0: 0 ours\ncuLibraryLoadData 11080 0: 500 none\n\
                   cuStreamSynchronize 13000 2: 0 the driver's\nagain: ours\n";
    for version in ["12040", "12090", "13000", "13050"] {
        let mut command = world.command("--quiet", "dlsym pointers");
        let output = command.env("CUINSTR_STAND_IN", format!("version {version}")).output().expect("it starts");
        assert_eq!(text(&output.stdout), answers, "{version}: {}", text(&output.stderr));
    }
    let local = "#define _GNU_SOURCE\n#include <dlfcn.h>\nint cuOnlyHere(void) { return 7; }\n\
                 int cuProbe(void) { int (*own)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, \"cuOnlyHere\"); return own ? own() : 0; }\n";
    world.project.write("local.c", local);
    expect(world.project.command("cc").args("-shared -fPIC -o liblocal.so local.c -ldl".split(' ')), 0);
    assert_eq!(world.run("--quiet", "dlsym local", 0).0, "local: 7\n");
    // Next to the program itself comes what was loaded in front of the others.
    assert_eq!(world.run("--quiet", "dlsym next", 0).0, "next: ours, puts found\n");
}

#[test]
fn a_gpu_is_chosen_and_leased_for_the_program_and_its_children() {
    let world = World::new();
    let file = |name: &str| world.project.path().join(name);
    fs::write(file("gpus"), "GPU-aaaa-1 1000 100 0 0 shared\nGPU-bbbb-2 1000 900 0 0 shared\n").expect("a file");
    let start = |options: &str, program: &[&str]| {
        let mut command = world.project.command("timeout");
        command.args(["-s", "KILL", "60", BINARY, "run", "--quiet"]).args(options.split_whitespace()).arg("--").args(program);
        command.env("LD_LIBRARY_PATH", "fake").env("XDG_RUNTIME_DIR", file("runtime")).env("XDG_CACHE_HOME", file("cache"));
        command.env("CUINSTR_STAND_IN_GPUS", file("gpus")).env("CUINSTR_LEASES", file("leases")).env_remove("CUDA_VISIBLE_DEVICES");
        command.stdin(Stdio::null()).output().expect("it starts")
    };
    let shows = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"];
    assert_eq!(text(&start("--gpu auto", &shows).stdout), "GPU-bbbb-2\n");
    assert_eq!(text(&start("--gpu 0", &shows).stdout), "GPU-aaaa-1\n");
    assert_eq!(text(&start("--gpu auto --gpu-count 2", &shows).stdout), "GPU-bbbb-2,GPU-aaaa-1\n");
    // What the program leaves behind holds the lease, until it ends.
    fs::write(file("stays"), "").expect("a file");
    let leaves = "while [ -e stays ]; do sleep 0.05; done >/dev/null 2>&1 & echo $CUDA_VISIBLE_DEVICES";
    let left = start("--gpu auto", &["sh", "-c", leaves]);
    assert_eq!(text(&left.stdout), "GPU-bbbb-2\n");
    assert_eq!(text(&start("--gpu auto", &shows).stdout), "GPU-aaaa-1\n");
    let refused = start("--gpu GPU-bbbb", &shows);
    assert!(text(&refused.stderr).contains("1: stand-in, GPU-bbbb-2: leased"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(3));
    let ends = std::thread::spawn({
        let stays = file("stays");
        move || {
            std::thread::sleep(Duration::from_millis(300));
            fs::remove_file(stays).expect("it is there");
        }
    });
    let waited = start("--gpu GPU-bbbb --wait 40s", &shows);
    ends.join().expect("no panic");
    assert_eq!(text(&waited.stdout), "GPU-bbbb-2\n", "{}", text(&waited.stderr));
    assert!(text(&start("--gpu 7", &shows).stderr).contains("no GPU is called `7`"));
}

#[test]
fn processes_threads_streams_and_modules_that_come_and_go() {
    let world = World::new();
    let (said, told) = world.run("--timeout 100ms --on-stop leave --report all.jsonl", "dlsym fork fork done", 124);
    assert_eq!(said, "child: 0 0\nchild: 0 0\ndone: 0 0\n", "{told}");
    let report = fs::read_to_string(world.project.path().join("all.jsonl")).expect("a report");
    let events: Vec<serde_json::Value> = report.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let stops: Vec<_> = events.iter().filter(|event| event["event"] == "stopped").collect();
    assert_eq!(stops.len(), 2, "{report}");
    assert!(stops[0]["unix_ms"].as_u64() <= stops[1]["unix_ms"].as_u64() && stops[0]["process"] != stops[1]["process"], "{report}");
    assert_eq!(world.run("--quiet --timeout 5s", "dlsym exec", 0).0, "done: 0 0\n");
    assert_eq!(world.run("--quiet --timeout 5s", "plt threads", 0).0, "threads: 0\n");
    assert_eq!(world.run("--quiet --timeout 5s", "plt reload", 0).0, "reload: 0\n");
    assert_eq!(world.run("--quiet --timeout 150ms --on-stop leave", "plt streams", 124).0, "streams: 0 0 0\n");
}

/// The watch looks at times of its own, and at no module that is gone.
#[test]
fn a_stop_is_told_though_its_module_is_unloaded_at_once() {
    let world = World::new();
    let (said, told) = world.run("--timeout 100ms --on-stop leave", "plt unload", 124);
    assert_eq!(said, "unload: 0\n", "{told}");
    assert_eq!(told.matches("kernel `spin` was stopped: its deadline (100 ms) passed").count(), 8, "{told}");
}

#[test]
fn limits_by_name_collectives_and_names_of_nothing() {
    let world = World::new();
    let (said, told) = world.run("--timeout 10s,spin=100ms --on-stop leave", "plt _Z4workm spin", 124);
    assert_eq!(said, "_Z4workm: 0 0\nspin: 0 0\n", "{told}");
    assert!(told.contains("its deadline (100 ms) passed"), "{told}");
    let (_, told) = world.run("--timeout 10s,wrok=100ms", "plt _Z4workm", 2);
    assert!(told.contains("error: --timeout names the kernel `wrok`, and none of that name was launched; did you mean `work`?"), "{told}");
    // A collective waits for others, so it has no limit but one of its own name.
    let (_, told) = world.run("--timeout 10s,nccl_spin=100ms --on-stop leave", "plt nccl_spin", 124);
    assert!(told.contains("kernel `nccl_spin` was stopped"), "{told}");
}

#[test]
fn machine_code_runs_as_ever_and_a_hang_in_it_ends_the_process() {
    let world = World::new();
    let (said, told) = world.run("--timeout 10s --list", "plt code", 0);
    assert_eq!(said, "code: 0 0 0\n", "{told}");
    assert!(told.contains("no polls  sound_code: it is machine code"), "{told}");
    let (_, told) = world.run("--strict", "plt done code", 1);
    assert!(told.contains("no polls  sound_code"), "{told}");
    world.run("--strict", "plt done", 0);
    let (_, told) = world.run("--timeout 200ms", "plt deaf", 124);
    assert!(
        told.contains("kernel `deaf_code` can't be stopped: its deadline (200 ms) passed, and it is machine code without polls"),
        "{told}"
    );
}

#[test]
fn the_programs_status_is_ours_and_what_can_not_be_reached_is_said_at_once() {
    let project = Project::new(&[("still.c", "int main(void) { return 0; }\n")]);
    expect(project.command("cc").args("-static -o still still.c".split(' ')), 0);
    let run = |words: &[&str]| project.command(BINARY).args(["run", "--quiet", "--"]).args(words).output().expect("it starts");
    for (words, status, said) in [
        (&["sh", "-c", "exit 7"][..], 7, ""),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
        (&["no-such-program"], 127, "there is no program `no-such-program`"),
        (&["./still"], 2, "it is linked statically"),
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(said), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn ps_lists_what_runs_and_stop_and_signals_end_it() {
    let world = World::new();
    let ask = |words: &[&str]| {
        let mut command = world.project.command(BINARY);
        text(&command.args(words).env("XDG_RUNTIME_DIR", world.project.path().join("runtime")).output().expect("it starts").stdout)
    };
    // The second hang is there for the signal, which comes when the first one's kernel has ended.
    for (way, does) in [("stop", "plt spin done"), ("signal", "plt spin spin")] {
        let mut child = world.command("--on-stop leave --quiet", does).spawn().expect("it starts");
        let since = Instant::now();
        let process = loop {
            let listed = ask(&["ps", "--json"]);
            let first = listed.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            match first.filter(|first| first["running"][0]["kernel"] == "spin") {
                Some(first) => break first["process"].to_string(),
                None => assert!(since.elapsed() < Duration::from_secs(50), "{listed}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(ask(&["ps"]).contains("`spin` has run for"), "{}", ask(&["ps"]));
        if way == "stop" {
            assert_eq!(ask(&["stop", &process]), "stopped: `spin`\n");
        } else {
            // To the parent: the kernel ends first, and the program, which does not handle the signal, then.
            let parent = fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
            let parent = parent.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)).expect("a parent").to_owned();
            expect(world.project.command("kill").arg(parent), 0);
        }
        let status = child.wait().expect("it ends");
        let (mut said, mut told) = (String::new(), String::new());
        child.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
        assert!(told.contains("cuinstr: kernel `spin` was stopped: somebody asked for that"), "{way}: {told}");
        if way == "stop" {
            assert_eq!((status.code(), said.as_str()), (Some(0), "spin: 0 0\ndone: 0 0\n"), "{told}");
        } else {
            assert_eq!(status.code(), Some(143), "{told}");
        }
        assert_eq!(ask(&["ps"]), "no process of yours is watched: start one with `cuinstr run`\n");
    }
}

/// A program under `cuinstr run`, and what other commands see of it.
struct Watched<'a> {
    world: &'a World,
    child: std::process::Child,
    process: String,
}

impl<'a> Watched<'a> {
    /// Starts it, and waits until a kernel of this name runs.
    fn start(world: &'a World, command: Command, kernel: &str) -> Self {
        Self::start_when(world, command, |first| (first["running"][0]["kernel"] == kernel).then(|| first["process"].to_string()))
    }

    /// Starts it, and waits until its process can be told from what `ps` lists first. Its grids stand until a pause is asked for, or until they may go on.
    fn start_when(world: &'a World, mut command: Command, process: impl Fn(&serde_json::Value) -> Option<String>) -> Self {
        cuinstr_stand_in::client::close_gate(&mut command, &world.gate());
        let child = command.spawn().expect("it starts");
        let mut watched = Self { world, child, process: String::new() };
        watched.process = watched.until(process);
        watched
    }

    /// Its grids run on from now on.
    fn go(&self) {
        fs::write(self.world.gate(), "").expect("a file");
    }

    /// The `cuinstr run` that it was started by.
    fn parent(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process)).expect("it lives");
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)).expect("a parent").to_owned()
    }

    fn ask(&self, words: &str) -> (i32, String) {
        let mut command = self.world.project.command(BINARY);
        command.args(words.replace("PID", &self.process).split(' ')).env("XDG_RUNTIME_DIR", self.world.project.path().join("runtime"));
        command.env("LD_LIBRARY_PATH", self.world.project.path().join("fake"));
        command.env("CUINSTR_STAND_IN", format!("processes {}", self.world.project.path().join("known").display()));
        let output = command.output().expect("it starts");
        (output.status.code().expect("it ends"), text(&[output.stdout, output.stderr].concat()))
    }

    /// Waits until something is true of what `ps` tells first.
    fn until<T>(&self, holds: impl Fn(&serde_json::Value) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            let (_, listed) = self.ask("ps --json");
            let first = listed.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            if let Some(found) = first.as_ref().and_then(&holds) {
                return found;
            }
            if since.elapsed() >= Duration::from_secs(50) {
                let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
                let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
                panic!("this is all that `ps` lists: {listed}\nthe state of `cuinstr run`: {state:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the program said, and its status.
    fn end(mut self) -> (Option<i32>, String, String) {
        let status = self.child.wait().expect("it ends");
        let (mut said, mut told) = (String::new(), String::new());
        self.child.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut told).expect("text");
        (status.code(), said, told)
    }
}

#[test]
fn a_paused_process_launches_nothing_until_it_is_resumed() {
    let world = World::new();
    let mut command = world.command("--on-stop leave --quiet", "plt spin done");
    command.env("CUINSTR_STAND_IN", "log calls");
    let watched = Watched::start(&world, command, "spin");
    let launches = || fs::read_to_string(world.project.path().join("calls")).expect("a log").matches("cuLaunchKernel\n").count();
    let (status, said) = watched.ask("where PID");
    assert!(
        status == 0 && said.contains("`spin` has run for") && said.contains("in this loop, its only one") && said.contains(": loop"),
        "{said}"
    );
    let (status, said) = watched.ask("pause PID");
    assert!(
        status == 0 && said.starts_with("paused: later launches wait\n`spin` has run for") && said.contains("runs on to its end"),
        "{said}"
    );
    assert_eq!(watched.ask("pause PID").0, 0, "pausing twice is pausing once");
    assert!(watched.ask("ps").1.contains("(paused: launches wait)"));
    assert_eq!(watched.ask("stop PID"), (0, "stopped: `spin`\n".to_owned()));
    watched.until(|first| (first["running"] == serde_json::json!([]) && first["paused"] == true).then_some(()));
    assert_eq!(watched.ask("where PID"), (0, "nothing runs\n".to_owned()));
    // Its next launch is not made, as far as a little while shows.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(launches(), 1);
    assert_eq!(watched.ask("resume PID"), (0, "resumed\n".to_owned()));
    let (status, said, told) = watched.end();
    assert_eq!((status, said.as_str()), (Some(0), "spin: 0 0\ndone: 0 0\n"), "{told}");
    assert_eq!(launches(), 2);
}

#[test]
fn a_process_may_end_while_it_is_paused() {
    let world = World::new();
    let watched = Watched::start(&world, world.command("--on-stop leave --quiet", "plt spin done"), "spin");
    watched.ask("pause PID");
    watched.ask("stop PID");
    watched.until(|first| (first["running"] == serde_json::json!([])).then_some(()));
    expect(world.project.command("kill").arg(&watched.process), 0);
    let gone = watched.process.clone();
    let (status, _, told) = watched.end();
    assert_eq!(status, Some(143), "{told}");
    let mut resume = world.project.command(BINARY);
    let resume = resume.args(["resume", &gone]).env("XDG_RUNTIME_DIR", world.project.path().join("runtime")).output().expect("it starts");
    let said = text(&resume.stderr);
    assert!(resume.status.code() == Some(1) && said.contains("is not watched"), "{said}");
}

#[test]
fn a_process_whose_kernel_does_not_end_is_checkpointed_all_the_same() {
    let world = World::new();
    let known = world.project.path().join("known");
    fs::create_dir(&known).expect("a folder");
    let start = |options: &str, does: &str, kernel: &str| {
        let mut command = world.command(options, does);
        command.env("CUINSTR_STAND_IN", format!("processes {}", known.display()));
        let watched = Watched::start(&world, command, kernel);
        fs::write(known.join(&watched.process), "bytes 1048576\n").expect("a file");
        watched
    };
    let watched = start("--on-stop leave --quiet", "plt spin done", "spin");
    let (status, said) = watched.ask("checkpoint suspend --pid PID --lock-timeout 200ms");
    assert!(status == 1 && said.contains("is busy") && said.contains("is running now"), "{said}");
    // A kernel that does not end is no use to wait for: it runs on, and launches wait no more.
    let (status, said) = watched.ask("checkpoint suspend --pid PID --lock-timeout 200ms --then pause");
    assert!(status == 1 && said.contains("is busy") && said.contains("is running now"), "{said}");
    watched.until(|first| (first["paused"] == false && first["running"][0]["kernel"] == "spin").then_some(()));
    let (status, said) = watched.ask("checkpoint suspend --pid PID --lock-timeout 20s --then stop");
    assert_eq!((status, said.as_str()), (0, "checkpointed\n"));
    // It answers though each of its calls of the driver waits.
    let first = watched.until(|first| (first["paused"] == false).then(|| first.clone()));
    assert_eq!((&first["suspended"], &first["running"]), (&true.into(), &serde_json::json!([])));
    assert!(watched.ask("ps").1.contains("(suspended: it has no GPU)"));
    for (request, answer) in [("where PID", "nothing runs\n"), ("pause PID", "paused: later launches wait\n"), ("resume PID", "resumed\n")]
    {
        assert_eq!(watched.ask(request), (0, answer.to_owned()));
    }
    assert_eq!(watched.ask("checkpoint resume --pid PID"), (0, "running\n".to_owned()));
    let (status, said, told) = watched.end();
    assert_eq!((status, said.as_str()), (Some(0), "spin: 0 0\ndone: 0 0\n"), "{told}");
    assert!(told.contains("kernel `spin` was stopped: somebody asked for that"), "{told}");
    // Nothing is left to save of a process whose kernels trap.
    let watched = start("--quiet", "plt spin", "spin");
    let (status, said) = watched.ask("checkpoint suspend --pid PID --lock-timeout 200ms --then stop");
    assert!(status == 1 && said.contains("trap when they are stopped") && said.contains("is running now"), "{said}");
    watched.ask("stop PID");
    watched.end();
}

/// A stand-in for CRIU.
const CRIU: &str = include_str!("../../../tests/data/criu");

#[test]
fn a_program_is_saved_while_it_runs_and_started_again_from_there() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let file = |name: &str| world.project.path().join(name);
    fs::create_dir(file("known")).expect("a folder");
    fs::create_dir(file("bin")).expect("a folder");
    fs::write(file("bin/criu"), CRIU).expect("a file");
    expect(world.project.command("chmod").args(["+x", "bin/criu"]), 0);
    let with_criu = |mut command: Command| {
        command.env("CUINSTR_STAND_IN", format!("processes {}", file("known").display()));
        command.env("PATH", format!("{}:{}", file("bin").display(), std::env::var("PATH").unwrap_or_default()));
        command
    };
    let checkpoints = || {
        let entries = fs::read_dir(file("saved")).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> =
            entries.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.parse::<u32>().is_ok()).collect();
        names.sort();
        names
    };
    let command = with_criu(world.command("--quiet --checkpoint saved --every 200ms --keep 2 --on-signal USR1", "plt done idle"));
    let watched = Watched::start_when(&world, command, |first| first["process"].as_u64().map(|process| process.to_string()));
    // Until the stand-in knows the process, each try fails, and the program runs on.
    std::thread::sleep(Duration::from_millis(500));
    fs::write(file("known").join(&watched.process), "bytes 1048576\n").expect("a file");
    let since = Instant::now();
    while checkpoints().last().is_none_or(|last| last.as_str() < "000003") {
        assert!(since.elapsed() < Duration::from_secs(40), "{:?}", checkpoints());
        std::thread::sleep(Duration::from_millis(20));
    }
    let parent = watched.parent();
    expect(world.project.command("kill").args(["-USR1", &parent]), 0);
    let process = watched.process.clone();
    let (status, said, told) = watched.end();
    assert_eq!((status, said.as_str()), (Some(75), "done: 0 0\n"), "{told}");
    assert!(told.contains("no checkpoint was made, and the program runs on") && told.contains("the program is saved"), "{told}");
    assert_eq!(checkpoints().len(), 2);
    // The latest is damaged: the one before it is taken.
    let last = checkpoints().pop().expect("two");
    fs::write(file("saved").join(last).join("images/pages.img"), "1").expect("a file");
    let mut command = world.project.command("timeout");
    command.args(["-s", "KILL", "60", BINARY, "run", "--restart", "saved"]).env("LD_LIBRARY_PATH", "fake");
    command.env("XDG_RUNTIME_DIR", file("runtime")).env_remove("LD_PRELOAD");
    let mut child = with_criu(command).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let since = Instant::now();
    let is_resumed = || fs::read_to_string(file("known").join(&process)).is_ok_and(|text| text.contains("state 0"));
    while !is_resumed() && child.try_wait().expect("a child").is_none() {
        assert!(since.elapsed() < Duration::from_secs(50), "it is not restored");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The program ends, and so does its parent.
    let _ = world.project.command("kill").arg(&process).status();
    let output = child.wait_with_output().expect("it ends");
    let told = text(&output.stderr);
    assert!(output.status.success() && told.contains("this file is missing, or another"), "{told}");
    assert!(told.contains(&format!("process {process} goes on from")), "{told}");
}

#[test]
fn a_process_that_nobody_watches_is_not_asked_to_make_room() {
    let world = World::new();
    let known = world.project.path().join("known");
    fs::create_dir(&known).expect("a folder");
    let target = cuinstr_stand_in::targets::Target::unknown();
    fs::write(known.join(target.pid().to_string()), "busy 1\n").expect("a file");
    let mut command = world.project.command(BINARY);
    command.args(["checkpoint", "suspend", "--lock-timeout", "50ms", "--then", "stop", "--pid", &target.pid().to_string()]);
    command.env("LD_LIBRARY_PATH", "fake").env("CUINSTR_STAND_IN", format!("processes {}", known.display()));
    let output = command.env("XDG_RUNTIME_DIR", world.project.path().join("runtime")).output().expect("it starts");
    let said = text(&output.stderr);
    assert!(said.contains("is busy") && said.contains("it does not run under `cuinstr run`"), "{said}");
}

/// NVIDIA's own runtime, linked in either way, asks for some hundred functions by name, version and flags. Its tables that nothing documents are not there,
/// so it starts no kernel here, and says the same with the library in front as without.
#[test]
fn cudas_own_runtime_finds_what_it_asks_for() {
    let nvcc = nvcc();
    let world = World::new();
    world.project.write(
        "asks.cu",
        "#include <cstdio>\nint main() { int n = -1; int e = cudaGetDeviceCount(&n); std::printf(\"%d %d\\n\", e, n); }\n",
    );
    for kind in ["static", "shared"] {
        let mut compile = world.project.command(&nvcc);
        expect(compile.args(["-arch=sm_90", "-cudart", kind, "-o", kind, "asks.cu"]), 0);
        let libraries = format!("fake:{}", nvcc.parent().and_then(Path::parent).expect("a toolkit").join("lib64").display());
        let run = |front: &[&str]| {
            let log = world.project.path().join("calls");
            let _ = fs::remove_file(&log);
            let words: Vec<String> = front.iter().map(|word| (*word).to_owned()).chain([format!("./{kind}")]).collect();
            let mut command = world.project.command("timeout");
            command.arg("60").args(words).env("LD_LIBRARY_PATH", &libraries).env("CUINSTR_STAND_IN", "log calls");
            (text(&command.output().expect("it starts").stdout), fs::read_to_string(log).unwrap_or_default())
        };
        let (plain, asked) = run(&["env"]);
        let (ours, asked_by_both) = run(&[BINARY, "run", "--quiet", "--timeout", "5s", "--"]);
        let count = |calls: &str| calls.matches("cuGetProcAddress_v2").count();
        assert_eq!(ours, plain, "{kind}");
        assert!(count(&asked) > 100 && count(&asked_by_both) >= count(&asked), "{kind}: {} {}", count(&asked), count(&asked_by_both));
    }
}

/// The typedefs of `cuGetProcAddress` are what its answers have to be called by.
#[test]
fn each_wrapper_has_the_signature_that_cuda_declares_for_its_version() {
    let nvcc = nvcc();
    let include = nvcc.parent().and_then(Path::parent).expect("a toolkit").join("include");
    let ask = "#include <dlfcn.h>\n#include <stdio.h>\nint main(int count, char** words) {\n  void* library = dlopen(words[1], RTLD_NOW);\n  \
               return fputs(((char* (*)(void))dlsym(library, \"cuinstr_signatures\"))(), stdout) < 0;\n}\n";
    let project = Project::new(&[("ask.c", ask)]);
    expect(project.command("cc").args("-o ask ask.c -ldl".split(' ')), 0);
    let signatures = text(&project.command("./ask").arg(library()).output().expect("it runs").stdout);
    assert!(signatures.lines().count() > 20, "{signatures}");
    let mut source = String::from(
        "#include <cstdio>\n#define __CUDA_API_VERSION_INTERNAL\n#include <cudaTypedefs.h>\n#include <type_traits>\n\
         template <class T> void one() { if (std::is_pointer<T>::value) std::printf(\" p\"); else std::printf(\" %d\", int(sizeof(T))); }\n\
         template <class R, class... A> void shape(const char* name, R (*)(A...)) { static_assert(sizeof(R) == 4, \"\"); std::printf(\"%s:\", name); \
         int all[] = {0, (one<A>(), 0)...}; (void)all; std::printf(\"\\n\"); }\nint main() {\n",
    );
    for line in signatures.lines() {
        let name = line.split(':').next().expect("a name");
        writeln!(source, "  shape(\"{name}\", (PFN_{name})nullptr);").expect("a text takes it");
    }
    source.push_str("}\n");
    project.write("shapes.cpp", &source);
    expect(project.command("g++").args(["-std=c++17", "-o", "shapes", "shapes.cpp", "-I"]).arg(include), 0);
    let declared = project.command(project.path().join("shapes")).output().expect("it runs");
    assert_eq!(text(&declared.stdout), signatures);
}

/// The time that the library adds to a program's start; printed, and bounded loosely: on a busy machine, the least of many is what tells.
#[test]
fn a_program_that_runs_no_kernel_starts_as_fast_as_ever() {
    let least = |preload: &str| {
        let times = (0..41).map(|_| {
            let since = Instant::now();
            let status = Command::new("/bin/true").env("LD_PRELOAD", preload).status().expect("it starts");
            assert!(status.success());
            since.elapsed()
        });
        times.min().expect("some")
    };
    let (plain, ours) = (least(""), least(&library().to_string_lossy()));
    println!("start of /bin/true: {plain:?} plain, {ours:?} with the library in front");
    assert!(ours.saturating_sub(plain) < Duration::from_millis(50), "{plain:?} plain, {ours:?} with the library");
}
