//! A copy of the tree with faults in it, and its test programs.

use crate::weave::{Edit, weave};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What each faulty text asks.
const SWITCH: &str = "
#[doc(hidden)]
#[allow(warnings, clippy::all)]
pub fn __mutant(number: u32) -> bool {
    static ACTIVE: ::std::sync::OnceLock<u32> = ::std::sync::OnceLock::new();
    *ACTIVE.get_or_init(|| ::std::env::var(\"CUINSTR_MUTANT\").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == number
}
";

/// A test program, and where it runs.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
}

/// A copy of the tree.
pub(crate) struct Copy {
    root: PathBuf,
    pub(crate) tree: PathBuf,
    /// Files as they are without a fault.
    texts: BTreeMap<String, String>,
}

/// Writes what has changed only, so that nothing else is built again.
fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a folder")?)?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

impl Copy {
    pub(crate) fn new(root: &Path) -> Result<Self> {
        let tree = root.join("target/mutants/tree");
        let listed = Command::new("git").args(["ls-files", "-co", "--exclude-standard", "-z"]).current_dir(root).output()?;
        ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
        for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let (from, to) = (root.join(name), tree.join(name));
            if from.is_file() {
                put(&to, &fs::read(&from)?)?;
                fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
            }
        }
        for link in [".cuda", ".cmake", ".clang"] {
            if root.join(link).exists() && !tree.join(link).exists() {
                std::os::unix::fs::symlink(root.join(link), tree.join(link))?;
            }
        }
        Ok(Self { root: root.to_owned(), tree, texts: BTreeMap::new() })
    }

    /// A file's text without a fault.
    pub(crate) fn text(&mut self, file: &str) -> Result<&str> {
        if !self.texts.contains_key(file) {
            self.texts.insert(file.to_owned(), fs::read_to_string(self.root.join(file)).with_context(|| file.to_owned())?);
        }
        Ok(&self.texts[file])
    }

    /// Puts the faults into the copy. Answers where each lies in which file.
    fn plant(
        &self,
        edits: &BTreeMap<String, Vec<Edit>>,
        dropped: &BTreeSet<usize>,
    ) -> Result<BTreeMap<String, Vec<(usize, Range<usize>)>>> {
        let mut places = BTreeMap::new();
        for (file, edits) in edits {
            let kept: Vec<&Edit> = edits.iter().filter(|edit| !dropped.contains(&edit.number)).collect();
            let (text, at) = weave(&self.texts[file], &kept);
            let own = self.crate_root(file)?;
            put(&self.tree.join(file), if own == *file { format!("{text}{SWITCH}") } else { text }.as_bytes())?;
            places.insert(file.clone(), at);
            if !edits.is_empty() && !self.texts.contains_key(&own) {
                put(&self.tree.join(&own), format!("{}{SWITCH}", fs::read_to_string(self.root.join(&own))?).as_bytes())?;
            }
        }
        // A root that has faults of its own was written with its switch above.
        for own in edits.keys().map(|file| self.crate_root(file)).collect::<Result<BTreeSet<_>>>()? {
            if !edits.contains_key(&own) {
                put(&self.tree.join(&own), format!("{}{SWITCH}", fs::read_to_string(self.root.join(&own))?).as_bytes())?;
            }
        }
        Ok(places)
    }

    fn crate_root(&self, file: &str) -> Result<String> {
        let source = Path::new(file).ancestors().find(|folder| folder.ends_with("src")).context("a file below src/")?;
        let root = if self.root.join(source).join("lib.rs").is_file() { "lib.rs" } else { "main.rs" };
        Ok(source.join(root).to_string_lossy().into_owned())
    }

    /// Builds the tests with the faults that compile; adds the others to `dropped`.
    pub(crate) fn build(
        &self,
        edits: &BTreeMap<String, Vec<Edit>>,
        tests: &[&[&str]],
        dropped: &mut BTreeSet<usize>,
    ) -> Result<Vec<Vec<Program>>> {
        'again: loop {
            let places = self.plant(edits, dropped)?;
            let mut programs = Vec::new();
            for arguments in tests {
                let output = Command::new("cargo")
                    .args(["test", "--no-run", "--message-format=json"])
                    .args(*arguments)
                    .current_dir(&self.tree)
                    .env("CARGO_TARGET_DIR", self.root.join("target"))
                    .stderr(Stdio::inherit())
                    .output()?;
                let messages: Vec<Value> =
                    String::from_utf8_lossy(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                if output.status.success() {
                    programs.push(messages.iter().filter_map(program).collect());
                    continue;
                }
                let broken = broken(&messages, &places);
                ensure!(!broken.is_empty() && !broken.is_subset(dropped), "the copy in {} does not compile", self.tree.display());
                eprintln!("do not compile: {broken:?}");
                dropped.extend(broken);
                continue 'again;
            }
            return Ok(programs);
        }
    }
}

fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let is_test = message["profile"]["test"] == true;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    is_test.then(|| Program { name: message["target"]["name"].as_str().unwrap_or_default().to_owned(), path, folder })
}

/// The faults in whose text the compiler finds an error.
fn broken(messages: &[Value], places: &BTreeMap<String, Vec<(usize, Range<usize>)>>) -> BTreeSet<usize> {
    let spans = |message: &Value| message["message"]["spans"].as_array().cloned().unwrap_or_default();
    let errors = messages.iter().filter(|message| message["message"]["level"] == "error");
    let found = errors.flat_map(spans).flat_map(|span| {
        let file = span["file_name"].as_str().unwrap_or_default().to_owned();
        let at = |name: &str| usize::try_from(span[name].as_u64().unwrap_or(0)).unwrap_or(0);
        let (start, end) = (at("byte_start"), at("byte_end"));
        let own = places.iter().find(|(name, _)| file.ends_with(name.as_str()) || name.ends_with(&file));
        let hit = own.into_iter().flat_map(|(_, places)| places).filter(move |(_, place)| start < place.end && place.start < end);
        hit.map(|(number, _)| *number).collect::<Vec<_>>()
    });
    found.collect()
}

/// How a program fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    Passed,
    Failed,
    TimedOut,
}

/// Runs a test program with one fault in force, or none for 0.
pub(crate) fn run(program: &Program, arguments: &[&str], mutant: usize, limit: std::time::Duration) -> Result<Ran> {
    let since = std::time::Instant::now();
    let mut command = Command::new("setsid");
    command.arg("--wait").arg(&program.path).args(arguments).current_dir(&program.folder).env("CUINSTR_MUTANT", mutant.to_string());
    command.env("CARGO_MANIFEST_DIR", &program.folder).env("INSTA_UPDATE", "no").env("RUST_BACKTRACE", "0");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Ran::Passed } else { Ran::Failed });
        }
        if since.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(Ran::TimedOut);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
