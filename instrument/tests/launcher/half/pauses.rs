//! Programs that `cuinstr nvcc` compiled with `--pausable`, linked with the stand-in driver: they pause as programs under `cuinstr run` do.

use crate::project::{BINARY, Project, expect, text};
use crate::toolkit::nvcc;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = include_str!("paused.cu");
/// The stand-in reads PTX in a fat binary, where it is not compressed.
const AS_PTX: &str = "-cudart none -gencode arch=compute_90,code=compute_90 -no-compress";

struct Built {
    project: Project,
}

/// A program that runs.
struct Started<'a> {
    built: &'a Built,
    child: Child,
    process: String,
}

impl Built {
    fn empty(files: &[(&str, &str)]) -> Self {
        let project = Project::new(files);
        for folder in ["fake", "runtime"] {
            fs::create_dir(project.path().join(folder)).expect("a folder");
        }
        cuinstr_stand_in::client::install(&project.path().join("fake")).expect("the stand-in beside this program");
        Self { project }
    }

    fn new(flags: &str) -> Self {
        let built = Self::empty(&[("paused.cu", PROGRAM)]);
        built.compile(flags, "paused.cu -o program");
        built
    }

    /// A program that is linked with two libraries, which have a half each.
    fn of_two_libraries() -> Self {
        let built = Self::empty(&[("library.cu", include_str!("library.cu")), ("libraries.c", include_str!("libraries.c"))]);
        for name in ["one", "two"] {
            built.compile("--pausable", &format!("-DNAME={name} -shared -Xcompiler -fPIC -Xlinker -Bsymbolic library.cu -o lib{name}.so"));
        }
        let words = "-o program libraries.c -L. -lone -ltwo -Lfake -lcuda -lpthread -Wl,-rpath,$ORIGIN";
        expect(built.project.command("cc").args(words.split(' ')), 0);
        built
    }

    fn compile(&self, flags: &str, words: &str) {
        let nvcc = nvcc();
        let mut command = self.project.command(BINARY);
        command.env("CUINSTR_FLAGS", flags).arg(nvcc).args(AS_PTX.split(' ')).args(words.split(' '));
        expect(command.args(["-Lfake", "-lcuda", "-ldl", "-lpthread"]), 0);
    }

    fn ask(&self, words: &str) -> String {
        let mut command = self.project.command(BINARY);
        let output =
            command.args(words.split(' ')).env("XDG_RUNTIME_DIR", self.project.path().join("runtime")).output().expect("it starts");
        text(&[output.stdout, output.stderr].concat())
    }

    /// The file for which grids wait, unless a pause is asked for.
    fn gate(&self) -> PathBuf {
        self.project.path().join("go")
    }

    /// Starts it with words in front, and waits until so many of its kernels run.
    fn start(&self, front: &[&str], does: &str, variables: &[(&str, &str)], kernels: usize) -> Started<'_> {
        let mut command = self.project.command("timeout");
        command.args(["-s", "KILL", "60"]).args(front).args(["./program", does]);
        command.env("LD_LIBRARY_PATH", "fake").env("CUINSTR_PAUSABLE", "1").envs(variables.iter().copied());
        command.env("XDG_RUNTIME_DIR", self.project.path().join("runtime")).env("XDG_CACHE_HOME", self.project.path().join("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        cuinstr_stand_in::client::close_gate(&mut command, &self.gate());
        let child = command.spawn().expect("it starts");
        let mut started = Started { built: self, child, process: String::new() };
        started.process = started.until(|first| {
            let running = first["running"].as_array()?;
            let all = running.len() >= kernels && running.iter().all(|launch| launch["kernel"] == "blocks");
            all.then(|| first["process"].to_string())
        });
        started
    }

    /// Pauses and resumes it while its kernel runs, so many times. Gives what `pause` said each time, and what the program said.
    fn run(&self, does: &str, pauses: usize) -> (Vec<String>, String) {
        let started = self.start(&[], does, &[], 1);
        let pauses = (0..pauses).map(|_| {
            let said = started.ask("pause PID --within 1s");
            assert_eq!(started.ask("resume PID"), "resumed\n");
            std::thread::sleep(Duration::from_millis(60));
            said
        });
        (pauses.collect(), started.end())
    }
}

impl Started<'_> {
    fn ask(&self, words: &str) -> String {
        self.built.ask(&words.replace("PID", &self.process))
    }

    /// Waits until something is true of what `ps` tells first.
    fn until<T>(&self, holds: impl Fn(&serde_json::Value) -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            let listed = self.built.ask("ps --json");
            let first = listed.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            if let Some(found) = first.as_ref().and_then(&holds) {
                return found;
            }
            assert!(since.elapsed() < Duration::from_secs(40), "{listed}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops what is paused, and sees that nothing is left of it while later launches still wait.
    fn stop_while_paused(&self, said: &str) {
        assert_eq!(self.ask("stop PID"), said);
        self.until(|first| (first["running"] == serde_json::json!([]) && first["paused"] == true).then_some(()));
        assert_eq!(self.ask("resume PID"), "resumed\n");
    }

    /// What the program said when it has come to its end.
    fn end(self) -> String {
        fs::write(self.built.gate(), "").expect("a file");
        let output = self.child.wait_with_output().expect("it ends");
        let said = text(&[output.stdout, output.stderr].concat());
        // That the half does not know the stand-in's variable is no matter here.
        said.split_inclusive('\n').filter(|line| !line.contains("nothing reads the variable CUINSTR_STAND_IN;")).collect()
    }
}

#[test]
fn a_program_of_the_launcher_pauses_at_block_boundaries() {
    for flags in ["--pausable", "--pausable --pass ptx"] {
        let built = Built::new(flags);
        let (pauses, said) = built.run("b", 2);
        assert!(pauses.iter().all(|said| said.contains(" blocks have run, ")), "{flags}: {pauses:?}");
        assert_eq!(said, "waited: 0, 96 once\n", "{flags}");
        for (does, why) in [("c", "it is a cooperative launch"), ("g", "the process launches graphs, whose kernels can't be told apart")] {
            let (pauses, said) = built.run(does, 1);
            assert!(pauses[0].contains(&format!("runs on to its end: {why}")), "{flags} {does}: {pauses:?}");
            assert_eq!(said, "waited: 0, 96 once\n", "{flags} {does}");
        }
    }
    let built = Built::new("");
    let (pauses, said) = built.run("b", 1);
    assert!(pauses[0].contains("runs on to its end: it was compiled without --pausable"), "{pauses:?}");
    assert_eq!(said, "waited: 0, 96 once\n");
}

/// Whichever half is asked, all of the process pauses, is stopped and is resumed.
#[test]
fn two_libraries_of_one_program_pause_together() {
    let built = Built::of_two_libraries();
    let slow = ("CUINSTR_STAND_IN", "blocks 80000000");
    let started = built.start(&[], "b", &[slow], 2);
    let first = started.ask("pause PID");
    assert_eq!(first.matches("and is paused: ").count(), 2, "{first}");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(started.ask("pause PID"), first);
    started.ask("resume PID");
    assert!(started.end().starts_with("96 96\n"));
    // A stop.
    let started = built.start(&[], "b", &[("CUINSTR_ON_STOP", "leave"), slow], 2);
    started.ask("pause PID");
    assert_eq!(started.ask("stop PID"), "stopped: `blocks`, `blocks`\n");
    started.ask("resume PID");
    let said = started.end();
    // Each half reports its own, though the process ends at once.
    assert!(said.matches("kernel `blocks` was stopped").count() == 2 && !said.contains("96"), "{said}");
    // A call by way of one, which the driver does not come back from, and which keeps it from launching: it waits for what the other one runs.
    let started = built.start(&[], "f", &[("CUINSTR_STAND_IN", "exclusive 1;blocks 150000000")], 1);
    std::thread::sleep(Duration::from_secs(1));
    let said = started.ask("pause PID --within 50ms");
    assert!(said.contains("runs on to its end: a call of the program waits for it"), "{said}");
    started.ask("resume PID");
    assert!(started.end().starts_with("96 0\n"));
    let left: Vec<_> = fs::read_dir(built.project.path().join("runtime/cuinstr")).expect("the folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The library of `cuinstr run` stands in front of the driver, and must not hold up what the program's half does there.
#[test]
fn a_program_with_a_half_pauses_under_run() {
    let built = Built::new("--pausable");
    let front = [BINARY, "run", "--quiet", "--pausable", "--on-stop", "leave", "--"];
    let started = built.start(&front, "b", &[], 1);
    assert!(started.ask("pause PID").contains(" blocks have run, "));
    started.ask("resume PID");
    assert_eq!(started.end(), "waited: 0, 96 once\n");
    let started = built.start(&front, "b", &[], 1);
    assert!(started.ask("pause PID").contains(" blocks have run, "));
    started.stop_while_paused("stopped: `blocks`\n");
    let said = started.end();
    assert!(said.contains("kernel `blocks` was stopped") && !said.contains("96 once"), "{said}");
}
