//! A copy of the tree with faults in it, and its test programs.

use crate::judge::Program;
use crate::suite::{self, Tests};
use crate::weave::{Edit, weave};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What each faulty text asks. With `CUINSTR_MUTANTS_REACHED` no fault is in force, and the numbers of those that were asked for go to that file.
const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(warnings, clippy::all)]
#[inline]
pub fn __mutant(number: u32) -> bool {
    match __MUTANT.load(::std::sync::atomic::Ordering::Relaxed) {
        active if active == number => true,
        0x4000_0000.. => __mutant_asked(number),
        _ => false,
    }
}

#[doc(hidden)]
#[allow(warnings, clippy::all)]
pub static __MUTANT: ::std::sync::atomic::AtomicU32 = ::std::sync::atomic::AtomicU32::new(0x4000_0000);

#[cold]
#[allow(warnings, clippy::all)]
fn __mutant_asked(number: u32) -> bool {
    static SEEN: [::std::sync::atomic::AtomicBool; 1 << 14] = [const { ::std::sync::atomic::AtomicBool::new(false) }; 1 << 14];
    if SEEN[number as usize].load(::std::sync::atomic::Ordering::Relaxed) {
        return false;
    }
    let Some(path) = ::std::env::var_os("CUINSTR_MUTANTS_REACHED") else {
        let active = ::std::env::var("CUINSTR_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        __MUTANT.store(active, ::std::sync::atomic::Ordering::Relaxed);
        return active == number;
    };
    if !SEEN[number as usize].swap(true, ::std::sync::atomic::Ordering::Relaxed) {
        if let Ok(mut file) = ::std::fs::OpenOptions::new().create(true).append(true).open(path) {
            let _ = ::std::io::Write::write_all(&mut file, format!("{number}\n").as_bytes());
        }
    }
    false
}
"#;

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
    pub(crate) fn build(&self, edits: &BTreeMap<String, Vec<Edit>>, tests: &[Tests], dropped: &mut BTreeSet<usize>) -> Result<Built> {
        let packages: BTreeSet<&str> = tests.iter().map(|tests| tests.package.as_str()).collect();
        let targets: BTreeSet<&str> = tests.iter().map(|tests| tests.target.as_str()).filter(|target| *target != "lib").collect();
        loop {
            let places = self.plant(edits, dropped)?;
            let mut command = Command::new("cargo");
            command.args(["test", "--no-run", "--locked", "--lib", "--message-format=json"]);
            // Cargo refuses features of what it does not build.
            if suite::WITH_FEATURES.iter().any(|package| packages.contains(package)) {
                command.args(["--features", suite::FEATURES]);
            }
            command.args(packages.iter().flat_map(|package| ["-p", package])).args(targets.iter().flat_map(|target| ["--test", target]));
            for name in QUICK {
                command.arg("--config").arg(format!("profile.dev.package.{name}.opt-level=1"));
            }
            command.env("CARGO_INCREMENTAL", "0").current_dir(&self.tree);
            let output = command.env("CARGO_TARGET_DIR", self.root.join("target/mutants/build")).stderr(Stdio::inherit()).output()?;
            let lines = String::from_utf8_lossy(&output.stdout);
            let messages: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            if output.status.success() {
                return Ok(Built::of(&messages));
            }
            let broken = broken(&messages, &places);
            if broken.is_subset(dropped) {
                let errors = messages.iter().filter(|message| message["message"]["level"] == "error");
                errors.filter_map(|message| message["message"]["rendered"].as_str()).for_each(|text| eprintln!("{text}"));
                bail!("the copy in {} does not compile", self.tree.display());
            }
            eprintln!("do not compile: {broken:?}");
            dropped.extend(broken);
        }
    }
}

/// Crates whose tests are slow otherwise. Overflows and assertions are faults that tests see, so both stay.
const QUICK: [&str; 5] = ["cuinstr", "cuinstr-ptx", "cuinstr-verify", "cuinstr-simulate", "cuinstr-differential"];

/// What a build made.
pub(crate) struct Built {
    /// Test programs by package and target.
    pub(crate) programs: BTreeMap<(String, String), Program>,
    /// Programs and libraries that these start or load.
    pub(crate) others: BTreeSet<PathBuf>,
}

impl Built {
    fn of(messages: &[Value]) -> Self {
        let mut built = Self { programs: BTreeMap::new(), others: BTreeSet::new() };
        for message in messages.iter().filter(|message| message["reason"] == "compiler-artifact") {
            let texts = |list: &Value| list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect();
            let (kinds, files): (Vec<String>, Vec<String>) = (texts(&message["target"]["kind"]), texts(&message["filenames"]));
            let Some(manifest) = message["manifest_path"].as_str().map(Path::new) else { continue };
            let folder = manifest.parent().unwrap_or(manifest).to_owned();
            match message["executable"].as_str() {
                Some(path) if message["profile"]["test"] == true => {
                    let target = if kinds.iter().any(|kind| kind == "test") { message["target"]["name"].as_str() } else { Some("lib") };
                    let key = (package(message), target.unwrap_or_default().to_owned());
                    built.programs.insert(key, Program { path: path.into(), folder });
                }
                Some(path) => drop(built.others.insert(path.into())),
                None if kinds.iter().any(|kind| kind == "cdylib") => {
                    built.others.extend(files.iter().filter(|file| file.ends_with(".so")).map(PathBuf::from));
                }
                None => {}
            }
        }
        built
    }
}

/// The name in a package's identity, `path+file:///FOLDER#NAME@VERSION` or, where the folder bears the name, `…/NAME#VERSION`.
fn package(message: &Value) -> String {
    let id = message["package_id"].as_str().unwrap_or_default();
    let (folder, name) = id.rsplit_once('#').unwrap_or(("", id));
    match name.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => folder.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

/// The faults in whose text the compiler finds an error.
fn broken(messages: &[Value], places: &BTreeMap<String, Vec<(usize, Range<usize>)>>) -> BTreeSet<usize> {
    let spans = |message: &Value| message["message"]["spans"].as_array().cloned().unwrap_or_default();
    let in_file = |span: &Value| {
        let file = span["file_name"].as_str().unwrap_or_default().to_owned();
        let at = |name: &str| usize::try_from(span[name].as_u64().unwrap_or(0)).unwrap_or(0);
        let own = places.iter().find(|(name, _)| file.ends_with(name.as_str()) || name.ends_with(&file));
        (at("byte_start")..at("byte_end"), own.map_or(&[][..], |(_, places)| places))
    };
    let of_error = |message: &Value| {
        let spans = spans(message);
        let hits = |span: &Value| {
            let (at, places) = in_file(span);
            let hit = places.iter().filter(|(_, place)| at.start < place.end && place.start < at.end);
            hit.map(|(number, _)| *number).collect::<Vec<_>>()
        };
        let found: Vec<usize> = spans.iter().flat_map(hits).collect();
        // Where a `match` lacks an arm, the error is of what is matched, in front of the arms.
        let next = |span: &Value| {
            let (at, places) = in_file(span);
            places.iter().filter(|(_, place)| place.start >= at.end).min_by_key(|(_, place)| place.start).map(|(number, _)| *number)
        };
        if found.is_empty() { spans.iter().filter_map(next).collect() } else { found }
    };
    let errors = messages.iter().filter(|message| message["message"]["level"] == "error");
    let found = errors.flat_map(of_error);
    found.collect()
}
