//! Random functions, simulated: no loop may iterate more often than the proof says. `tests/data/functions/functions.cpp` makes and simulates them.

use cuinstr::verify::report::{Bound, Verdict};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::workspace;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Functions of one module.
pub const IN_ONE: u64 = 50;

/// The program that makes and simulates modules. It runs for many of them, since its start takes as long as one does.
#[derive(Debug)]
pub struct Functions {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What came of one module.
#[derive(Debug)]
pub struct Simulated {
    /// Its PTX.
    pub text: String,
    /// How many of its loops the proof bounds.
    pub proved: u64,
    /// Which loop iterates more often than was claimed, or what else is wrong.
    pub wrong: Option<String>,
}

/// Compiles the program into a folder, with `CXX` or `c++`.
///
/// # Errors
/// If there is no such compiler, or it fails.
pub fn compile(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("functions");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let source = workspace().join("tests/data/functions/functions.cpp");
    let build = Command::new(&compiler).args(["-std=c++17", "-O2", "-w", "-o"]).arg(&program).arg(&source).status();
    if build.is_ok_and(|status| status.success()) { Ok(program) } else { Err(format!("{compiler} does not compile {}", source.display())) }
}

impl Functions {
    /// Starts the program.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(program: &Path) -> Result<Self, String> {
        let started = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{}: {error}", program.display()))?;
        let (asks, answers) = child.stdin.take().zip(child.stdout.take()).ok_or("the program has no pipes")?;
        Ok(Self { child, asks, answers: BufReader::new(answers) })
    }

    /// Makes the module of that number, and simulates it against what the proof says of its loops. `claim` may change the numbers of iterations.
    ///
    /// # Errors
    /// If the program does not answer.
    pub fn simulate(&mut self, seed: u64, claim: impl Fn(u64) -> u64) -> io::Result<Simulated> {
        writeln!(self.asks, "{seed} {IN_ONE}")?;
        let mut text = vec![0; self.line()?.parse().map_err(io::Error::other)?];
        self.answers.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        let report = verify_ptx(&text);
        let (mut claims, mut proved) = (String::new(), 0);
        for found in &report.loops {
            if let Verdict::Bounded { by: Bound::Rounds(rounds) } = found.verdict {
                let _ = writeln!(claims, "{} {}", found.line, claim(rounds));
                proved += 1;
            }
        }
        writeln!(self.asks, "{claims}.")?;
        let said = self.line()?;
        let wrong = match report.faults.first() {
            Some(fault) => Some(format!("{fault:?}")),
            None => (said != "right").then_some(said),
        };
        Ok(Simulated { text, proved, wrong })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
