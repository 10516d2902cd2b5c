//! An overlay: the user's folders as the preprocessor sees them. The files are the same, at the same places relative to
//! each other. Only files with device code are rewritten.
//!
//! - `v-*/tree/…`: real folders for all that the source reaches, by their paths without links. They hold the source's files,
//!   rewritten or copied, and links to all other files.
//! - `v-*/rN`: a link into `tree`, to the N-th folder that a path of the command line names.
//! - `v-*/prelude.cuh`: the device side of the ABI, and all site maps.
//! - `v-*/host.cuh`: what the host's side of the compilation must know of that.
//!
//! Every path to a file leads through the tree. So `#pragma once`, include guards and `#include_next` work as in the user's
//! own folders.
//!
//! The names in the sources decide what is in the tree (`include`). The preprocessor's own list (`-M`) does not: it would
//! double the time of each pass, and it differs between the host's pass and those for each architecture. A macro may make a
//! file's name, and a system's header may ask for a file. If the preprocessor's output names such a file, the pass is done
//! again with that file known.

mod build;

use super::cache::Cache;
use super::error::Error;
use super::links::Links;
use super::plan::Plan;
use super::preprocess::Cuda;
use super::rewritten_file::{Facts, Maker};
use super::session::Knowledge;
use super::translate::Translator;
use build::Builder;
use cuinstr_abi::sites::hash;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What files of an overlay are called that hold what was said.
pub(super) const SAID: &str = "said-";

/// The file that stands in front of the source, on the device's side and on the host's.
const PRELUDE: &str = "prelude.cuh";
const HOST_PRELUDE: &str = "host.cuh";

/// A file that only the preprocessor's output shows: the folder that a path of the command line names, as spelled, and the rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Missed {
    root: OsString,
    rest: OsString,
}

/// A finished overlay; get one with [`Overlay::open`].
#[derive(Debug)]
pub(super) struct Overlay {
    folder: PathBuf,
    pub(super) plan: Plan,
    /// Places in the plan's files, by path.
    places: BTreeMap<OsString, usize>,
    links: Links,
    /// Whether the pass that opened it is the host's, which reads the user's own files.
    for_host: bool,
}

impl Overlay {
    /// The overlay for one source and its folders. The first pass that asks makes it; the others wait.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn open(session: &Path, knowledge: &Knowledge, call: &Cuda, missed: &[Missed], early: &[OsString]) -> Result<Self, Error> {
        let key = format!("{:?} {missed:?} {early:?}", (&call.main, &call.quote, &call.include, &call.system, &call.forced));
        let folder = session.join(format!("v-{:016x}", hash(0, key.as_bytes())));
        let failed = |error: io::Error| Error::io("can't write", &folder, &error);
        let lock = File::create(folder.with_extension("lock")).map_err(failed)?;
        lock.lock().map_err(failed)?;
        if let Some(plan) = Plan::read(&folder) {
            return Ok(Self::new(folder, plan, call.for_host));
        }
        // What an attempt that failed left would be in the way.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(failed)?;
        let mut plan = Builder::new(&folder, knowledge, call, early).build(call, missed)?;
        // A pass for each architecture is the same unit; one with other names defined is another.
        let defined =
            call.words().iter().filter(|word| word.as_bytes().starts_with(b"-D") && !word.as_bytes().starts_with(b"-D__CUDA_ARCH_"));
        let defined: Vec<_> = defined.collect();
        plan.key = format!("{:?}", (&call.main, &call.quote, &call.include, &call.system, &call.forced, defined));
        plan.words = call.words().to_vec();
        plan.write(&folder).map_err(failed)?;
        Ok(Self::new(folder, plan, call.for_host))
    }

    fn new(folder: PathBuf, plan: Plan, for_host: bool) -> Self {
        let places = plan.files.iter().enumerate().map(|(place, (path, _))| (path.clone(), place)).collect();
        Self { folder, plan, places, links: Links::default(), for_host }
    }

    fn root(&self, number: usize) -> PathBuf {
        self.folder.join(format!("r{number}"))
    }

    /// The source.
    pub(super) fn main(&self) -> PathBuf {
        self.root(self.plan.main.0).join(&self.plan.main.1)
    }

    /// What takes the place of that folder of `-iquote`; `None`: itself.
    pub(super) fn quote(&self, index: usize) -> Option<PathBuf> {
        self.plan.quote[index].map(|root| self.root(root))
    }

    /// What takes the place of that folder of `-I`; `None`: itself.
    pub(super) fn include(&self, index: usize) -> Option<PathBuf> {
        self.plan.include[index].map(|root| self.root(root))
    }

    /// What takes the place of that folder of `-isystem`; `None`: itself.
    pub(super) fn system(&self, index: usize) -> Option<PathBuf> {
        self.plan.systems[index].map(|root| self.root(root))
    }

    /// What takes the place of that forced include; `None`: itself.
    pub(super) fn forced(&self, index: usize) -> Option<PathBuf> {
        self.plan.forced[index].as_ref().map(|(root, rest)| self.root(*root).join(rest))
    }

    /// What stands in front of the source, unless nothing is rewritten.
    pub(super) fn prelude(&self) -> Option<PathBuf> {
        self.plan.has_prelude.then(|| self.folder.join(if self.for_host { HOST_PRELUDE } else { PRELUDE }))
    }

    /// Where a pass for standard output is kept until it is known to be the last.
    pub(super) fn stdout(&self) -> PathBuf {
        self.folder.join(format!("stdout-{}", std::process::id()))
    }

    /// Back to the user's paths.
    pub(super) fn translator(&self) -> Translator {
        Translator::new(self.folder.as_os_str().as_bytes(), self.plan.spelled())
    }

    /// The beginning of each path of the overlay, and of the user's that it stands for.
    pub(super) fn places(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let place = |name: String| [self.folder.join(name).as_os_str().as_bytes(), b"/"].concat();
        let roots = self.plan.spelled().into_iter().enumerate().map(|(number, spelled)| (place(format!("r{number}")), spelled));
        roots.chain([(place("tree".to_owned()), b"/".to_vec())]).collect()
    }

    /// Where a name of the preprocessor's lies below a root of the overlay.
    fn inside(&self, name: &[u8]) -> Option<(usize, PathBuf)> {
        let rest = Path::new(OsStr::from_bytes(name)).strip_prefix(&self.folder).ok()?;
        let mut parts = rest.components();
        if let Ok(path) = rest.strip_prefix("tree") {
            // The preprocessor has followed links. Some folder leads there, and which one does not matter for what is known of the file.
            return Some((0, Path::new("/").join(path)));
        }
        let number = parts.next()?.as_os_str().to_str()?.strip_prefix('r')?.parse::<usize>().ok()?;
        (number < self.plan.roots.len()).then(|| (number, parts.as_path().to_owned()))
    }

    fn facts(&self, root: usize, rest: &Path) -> Option<&Facts> {
        self.facts_of(&Path::new(&self.plan.roots[root].1).join(rest))
    }

    fn facts_of(&self, file: &Path) -> Option<&Facts> {
        let file = self.links.real(file)?;
        self.places.get(file.as_os_str()).map(|place| &self.plan.files[*place].1)
    }

    /// The same by the user's own path, where that is what the pass reads.
    fn own_facts(&self, name: &[u8]) -> Option<&Facts> {
        self.for_host.then(|| self.facts_of(Path::new(OsStr::from_bytes(name)))).flatten()
    }

    /// Those of the files, by their paths without links, that polls stand in. Where one is read before the prelude is, nothing is known of these.
    pub(super) fn rewritten_among(&self, names: &BTreeSet<(Vec<u8>, bool)>) -> Vec<OsString> {
        let main = Path::new(&self.plan.roots[self.plan.main.0].1).join(&self.plan.main.1);
        let main = self.links.real(&main);
        let files = names.iter().filter_map(|(name, _)| {
            let (root, rest) = self.inside(name)?;
            let file = self.links.real(&Path::new(&self.plan.roots[root].1).join(rest)).filter(|file| Some(file) != main.as_ref())?;
            self.facts_of(&file).filter(|facts| facts.rewritten).map(|_| file.into_os_string())
        });
        files.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Files that the preprocessor read and whose text was not looked at, as far as they can be reached through an overlay.
    pub(super) fn missed(&self, names: &BTreeSet<(Vec<u8>, bool)>, call: &Cuda) -> Vec<Missed> {
        let mut missed = Vec::new();
        for (name, _) in names {
            if let Some((root, rest)) = self.inside(name) {
                let file = Path::new(&self.plan.roots[root].1).join(&rest);
                if self.facts(root, &rest).is_none() && file.is_file() && !self.is_system(file.as_os_str().as_bytes()) {
                    missed.push(Missed { root: self.plan.roots[root].0.clone(), rest: rest.into_os_string() });
                }
            } else if self.own_facts(name).is_none() && !self.is_system(name) {
                // What a system's header asks for counts as the system's, wherever it lies; below a folder of the project it is not.
                let name = Path::new(OsStr::from_bytes(name));
                let beside = self.for_host.then(|| &self.plan.roots[self.plan.main.0].0);
                let folders = call.quote.iter().chain(&call.include).chain(&call.system).chain(beside);
                // The preprocessor may have followed links, so folders are tried as they are spelled and without links.
                let found = folders
                    .filter_map(|folder| {
                        let rest = name.strip_prefix(folder).ok().map(Path::to_owned);
                        Some((folder, rest.or_else(|| name.strip_prefix(Path::new(folder).canonicalize().ok()?).ok().map(Path::to_owned))?))
                    })
                    .min_by_key(|(_, rest)| rest.as_os_str().len());
                missed.extend(found.map(|(root, rest)| Missed { root: root.clone(), rest: rest.as_os_str().to_owned() }));
            }
        }
        missed
    }

    fn is_system(&self, name: &[u8]) -> bool {
        // The prelude is ours.
        let is_ours = Path::new(OsStr::from_bytes(name)).starts_with(&self.folder);
        let Some(file) = self.links.real(Path::new(OsStr::from_bytes(name))) else { return true };
        is_ours || !file.is_file() || self.plan.is_system(&file)
    }

    /// Says what there is to say about the files that were read, each once a session, and whether one of them must not be compiled.
    ///
    /// # Errors
    /// If a file that lies outside the overlay can't be judged.
    pub(super) fn say(&self, names: &BTreeSet<(Vec<u8>, bool)>, knowledge: &Knowledge, gave_up: bool) -> Result<bool, Error> {
        let settings = &knowledge.settings;
        let mut said = BTreeSet::new();
        let foreign = self.foreign_loops(names, knowledge)?;
        let mut refused = settings.strict && !foreign.is_empty();
        if let [first, ..] = &foreign[..] {
            let (what, count) = (if settings.strict { "error" } else { "warning" }, foreign.len());
            said.insert(format!(
                "{}: {what}[CI016]: headers of -isystem are not rewritten, and {count} of those that were read may repeat in device code without a poll: \
                 compile with --pass ptx, or find them by -I\n",
                first.display()
            ));
        }
        for (name, is_system) in names {
            if let Some((root, rest)) = self.inside(name) {
                let Some(facts) = self.facts(root, &rest) else { continue };
                refused |= facts.refused;
                said.extend(Some(facts.said.clone()).filter(|text| !text.is_empty()));
            } else if let Some(facts) = self.own_facts(name) {
                refused |= facts.refused;
                said.extend(Some(facts.said.clone()).filter(|text| !text.is_empty()));
            } else if !is_system && !self.is_system(name) {
                let path = Path::new(OsStr::from_bytes(name));
                let bytes = fs::read(path).map_err(|error| Error::io("can't read", path, &error))?;
                // It has been read from its own place, so nothing in it is stopped: that is worth a word if there is something to stop.
                let made = Maker::new(settings, Cache::new(&self.folder)).make(path, &bytes, &[], false)?;
                if made.facts.refused {
                    said.insert(made.facts.said);
                    refused = true;
                } else if made.facts.rewritten && !self.for_host {
                    refused |= settings.strict;
                    let what = if settings.strict { "error" } else { "warning" };
                    said.insert(format!(
                        "{}: {what}: cuinstr did not rewrite this file: it is found by a way that is not followed, such as a macro's absolute path or CPLUS_INCLUDE_PATH\n",
                        path.display()
                    ));
                }
            }
        }
        if gave_up {
            said.insert("warning: cuinstr stopped looking for further files that macros name: some are not rewritten\n".to_owned());
        }
        for text in said {
            let mark = self.folder.join(format!("{SAID}{:016x}", hash(0, text.as_bytes())));
            let is_new = File::create_new(mark).and_then(|mut file| file.write_all(text.as_bytes())).is_ok();
            if refused || is_new && !settings.quiet {
                eprint!("{text}");
            }
        }
        Ok(refused)
    }
}

impl Overlay {
    /// Headers of others that the device's pass has read, and whose device code may repeat.
    fn foreign_loops(&self, names: &BTreeSet<(Vec<u8>, bool)>, knowledge: &Knowledge) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        if self.for_host {
            return Ok(found);
        }
        let mut maker = Maker::new(&knowledge.settings, Cache::new(Path::new(&knowledge.cache)));
        for (name, _) in names {
            // One in a folder that holds files of the user's, too, is read by a way through the overlay.
            let inside = self.inside(name).map(|(root, rest)| (&self.plan.roots[root], rest));
            let (real, spelled) = match inside {
                Some(((spelled, real), rest)) => (Path::new(real).join(&rest), Path::new(spelled).join(rest)),
                None => (PathBuf::from(OsStr::from_bytes(name)), PathBuf::from(OsStr::from_bytes(name))),
            };
            // What else lies in the overlay is ours.
            if real.starts_with(&self.folder) || !self.links.real(&real).is_some_and(|file| self.plan.is_foreign(&file)) {
                continue;
            }
            let path = &*real;
            let bytes = fs::read(path).map_err(|error| Error::io("can't read", path, &error))?;
            let has = |word: &[u8]| memchr::memmem::find(&bytes, word).is_some();
            if (has(b"__device__") || has(b"__global__")) && maker.make(&spelled, &bytes, &[], true)?.facts.may_repeat() {
                found.push(spelled);
            }
        }
        Ok(found)
    }
}

/// All that was said in the session, in no order that matters.
pub(super) fn said(session: &Path) -> BTreeSet<String> {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let overlays = files(session).filter(|path| path.is_dir());
    let marks = overlays
        .flat_map(|overlay| files(&overlay))
        .filter(|path| path.file_name().is_some_and(|name| name.as_bytes().starts_with(SAID.as_bytes())));
    marks.filter_map(|mark| fs::read_to_string(mark).ok()).flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}
