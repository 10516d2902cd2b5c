//! Programs that `cuinstr nvcc` compiled with `--pausable`, linked with the stand-in driver: they pause as programs under `cuinstr run` do.

use crate::project::{BINARY, Project, expect, text};
use crate::toolkit::nvcc;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

const PROGRAM: &str = include_str!("paused.cu");

struct Built {
    project: Project,
}

impl Built {
    fn new(flags: &str) -> Self {
        let nvcc = nvcc();
        let project = Project::new(&[("paused.cu", PROGRAM)]);
        for folder in ["fake", "runtime"] {
            fs::create_dir(project.path().join(folder)).expect("a folder");
        }
        cuinstr_stand_in::client::install(&project.path().join("fake")).expect("the stand-in beside this program");
        let mut command = project.command(BINARY);
        // The stand-in reads PTX in a fat binary, where it is not compressed.
        let words = "-cudart none -gencode arch=compute_90,code=compute_90 -no-compress paused.cu -o program -Lfake -lcuda -ldl -lpthread";
        expect(command.env("CUINSTR_FLAGS", flags).arg(nvcc).args(words.split(' ')), 0);
        Self { project }
    }

    fn ask(&self, words: &str) -> String {
        let mut command = self.project.command(BINARY);
        let output =
            command.args(words.split(' ')).env("XDG_RUNTIME_DIR", self.project.path().join("runtime")).output().expect("it starts");
        text(&[output.stdout, output.stderr].concat())
    }

    /// Pauses and resumes it while its kernel runs, so many times. Gives what `pause` said each time, and what the program said.
    fn run(&self, does: &str, pauses: usize) -> (Vec<String>, String) {
        let mut command = self.project.command("timeout");
        command.args(["-s", "KILL", "60", "./program", does]).env("LD_LIBRARY_PATH", "fake").env("CUINSTR_PAUSABLE", "1");
        command
            .env("XDG_RUNTIME_DIR", self.project.path().join("runtime"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        let since = Instant::now();
        let process = loop {
            let listed = self.ask("ps --json");
            match listed.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
                Some(first) if first["running"][0]["kernel"] == "blocks" => break first["process"].to_string(),
                _ => assert!(since.elapsed() < Duration::from_secs(40), "{listed}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let pauses = (0..pauses).map(|_| {
            let said = self.ask(&format!("pause {process} --within 1s"));
            assert_eq!(self.ask(&format!("resume {process}")), "resumed\n");
            std::thread::sleep(Duration::from_millis(60));
            said
        });
        let pauses = pauses.collect();
        let output = child.wait_with_output().expect("it ends");
        (pauses, text(&[output.stdout, output.stderr].concat()))
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
