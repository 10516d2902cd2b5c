//! Leases between processes, and the look through NVML, over the stand-in for `libnvidia-ml.so.1`.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr_gpus::{Leases, Request, choose, look};
use cuinstr_stand_in::client;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Set for a child that takes a GPU, says which, and waits until it is killed or its input ends.
const HOLDER: &str = "CUINSTR_TEST_HOLDER";

/// Nothing by itself: the program of the children.
#[test]
fn holder() {
    if std::env::var_os(HOLDER).is_none() {
        return;
    }
    let answer = match choose(&Request::default(), &Leases::of_machine(), look) {
        Ok(choice) => {
            println!("GPU {}", choice.visible_devices());
            std::io::stdin().read_line(&mut String::new()).expect("the end of the input");
            return;
        }
        Err(error) => error,
    };
    println!("NONE {}", answer.to_string().lines().next().unwrap_or_default());
}

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(gpus: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        client::install(folder.path()).expect("the stand-in beside this program");
        std::fs::write(folder.path().join("gpus"), gpus).expect("the list");
        Self { folder }
    }

    /// Starts a holder, and gives the first word that it prints and the rest of the line.
    fn start(&self) -> (Child, String, String) {
        let path = |name: &str| self.folder.path().join(name);
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "holder", "--nocapture", "--quiet"])
            .env(HOLDER, "1")
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("CUINSTR_STAND_IN_GPUS", path("gpus"))
            .env("CUINSTR_LEASES", path("leases"))
            .env_remove("CUDA_VISIBLE_DEVICES")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        // The test harness prints lines of its own first.
        let told = lines.map_while(Result::ok).find(|line| line.starts_with("GPU ") || line.starts_with("NONE ")).expect("an answer");
        let (word, rest) = told.split_once(' ').expect("two words");
        (child, word.to_owned(), rest.to_owned())
    }
}

fn shared(gpus: usize) -> String {
    let line = |index| format!("GPU-{index:04}0000-aaaa 81920 80000 0 0 shared");
    (0..gpus).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn eight_starts_at_once_share_no_gpu() {
    for gpus in [1, 2, 4, 8] {
        let machine = Machine::new(&shared(gpus));
        let started: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| machine.start())).collect();
            threads.into_iter().map(|thread| thread.join().expect("a start")).collect()
        });
        let taken: Vec<&str> = started.iter().filter(|(_, word, _)| word == "GPU").map(|(_, _, uuid)| uuid.as_str()).collect();
        assert_eq!(taken.len(), gpus, "{started:?}");
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), gpus, "{taken:?}");
        for (mut child, ..) in started {
            drop(child.stdin.take());
            child.wait().expect("the child");
        }
    }
}

#[test]
fn no_lease_outlives_a_killed_holder() {
    let machine = Machine::new(&shared(1));
    let (mut first, word, _) = machine.start();
    assert_eq!(word, "GPU");
    let (mut second, word, why) = machine.start();
    assert_eq!((word.as_str(), why.as_str()), ("NONE", "no GPU is free"));
    second.wait().expect("the second");
    first.kill().expect("SIGKILL");
    first.wait().expect("the first");
    let (mut third, word, _) = machine.start();
    assert_eq!(word, "GPU");
    third.stdin.take().expect("its input").write_all(b"\n").expect("a line");
    third.wait().expect("the third");
}

#[test]
fn lost_prohibited_and_divided_gpus_are_told_apart() {
    let list = "GPU-0000aaaa-1 81920 80000 0 0 lost\n\
                GPU-1111aaaa-1 81920 80000 0 0 prohibited\n\
                GPU-2222aaaa-1 81920 80000 0 1 exclusive\n\
                GPU-3333aaaa-1 81920 80000 0 0 shared\n\
                MIG-4444aaaa-1 20480 20000 0 0 shared\n\
                MIG-5555aaaa-1 20480 19000 0 0 shared\n";
    let machine = Machine::new(list);
    let started = [machine.start(), machine.start(), machine.start()];
    let told: Vec<(&str, &str)> = started.iter().map(|(_, word, rest)| (word.as_str(), rest.as_str())).collect();
    assert_eq!(told, [("GPU", "MIG-4444aaaa-1"), ("GPU", "MIG-5555aaaa-1"), ("NONE", "no GPU is free")]);
    for (mut child, ..) in started {
        drop(child.stdin.take());
        child.wait().expect("the child");
    }
}

/// A machine without the library says what to do.
#[test]
fn no_nvml_is_a_clear_error() {
    if Path::new("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").exists() {
        cuinstr_trial::ignore("this machine has NVML");
    }
    let error = look().expect_err("no NVML here").to_string();
    assert!(error.contains("libnvidia-ml.so.1) comes with the driver"), "{error}");
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
