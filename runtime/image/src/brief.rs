//! What is kept of a part when the part itself is gone.

use crate::place::{Arch, Place};
use crate::{Content, Form, Part, elf, ptx};
use std::collections::{BTreeMap, BTreeSet};

/// What is left to say of a file whose parts were handed on: see [`crate::scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// What the file is.
    pub form: Form,
    /// What was damaged: each a sentence that begins with the place.
    pub notes: Vec<String>,
    /// Parts that run without their PTX being in the file: see [`crate::Image::without_ptx`].
    pub without_ptx: Vec<Brief>,
}

/// A part without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    /// Where it lies.
    pub place: Place,
    /// What it was compiled for, where that is known.
    pub arch: Option<Arch>,
    /// What it holds.
    pub kind: Kind,
    /// Names of its kernels. In [`Scan::without_ptx`] those that its PTX lacks, where there is some of its architecture.
    pub kernels: BTreeSet<String>,
}

/// What a part holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// PTX text; whether it is the toolkit's device runtime.
    Ptx(bool),
    /// Machine code; whether there are functions in it.
    Code(bool),
    /// The compiler's intermediate code.
    Intermediate,
    /// What could not be read, and why.
    Unread(String),
}

impl Brief {
    pub(crate) fn of(part: &Part<'_>) -> Self {
        let (kind, kernels) = match &part.content {
            Content::Ptx(text) => (Kind::Ptx(ptx::is_device_runtime(text)), ptx::kernels(text)),
            Content::Code(code) => (Kind::Code(elf::has_functions(code)), elf::Elf::new(code).map(elf::Elf::kernels).unwrap_or_default()),
            Content::Intermediate => (Kind::Intermediate, Vec::new()),
            Content::Unread(why) => (Kind::Unread(why.clone()), Vec::new()),
        };
        let kernels = kernels.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Self { place: part.place.clone(), arch: part.arch, kind, kernels }
    }
}

/// Names of kernels by what says where their PTX counts.
type Known<'b, K> = BTreeMap<K, BTreeSet<&'b str>>;

/// Those parts that run without their PTX, or have kernels that it lacks.
pub(crate) fn without_ptx(mut briefs: Vec<Brief>) -> Vec<Brief> {
    let lacking: Vec<Option<BTreeSet<String>>> = {
        let (mut with, mut linked, mut runtime) = (Known::new(), Known::new(), Known::new());
        // The device runtime that the linker took in: its code stands in the linked image, and its PTX in a container of its own.
        let mut linked_runtime = BTreeSet::new();
        for part in &briefs {
            let Kind::Ptx(is_runtime) = part.kind else { continue };
            let names = || part.kernels.iter().map(String::as_str);
            with.entry((part.place.container_key(), part.arch)).or_default().extend(names());
            if part.place.is_relocatable() {
                linked.entry(part.arch).or_default().extend(names());
            }
            if is_runtime {
                runtime.entry(part.place.container_key()).or_default().extend(names());
                linked_runtime.extend(names().filter(|_| part.place.is_relocatable()));
            }
        }
        let lacking = |part: &Brief| {
            if matches!(part.kind, Kind::Ptx(_) | Kind::Code(false)) {
                return None;
            }
            let key = part.place.container_key();
            let is_linked = !part.place.is_relocatable();
            let linked = linked.get(&part.arch).filter(|_| is_linked);
            let linked_runtime = Some(&linked_runtime).filter(|names| is_linked && !names.is_empty());
            let known: Vec<_> =
                [with.get(&(key.clone(), part.arch)), linked, runtime.get(&key), linked_runtime].into_iter().flatten().collect();
            let is_known = |name: &String| known.iter().any(|names| names.contains(name.as_str()));
            let lacking: BTreeSet<String> = part.kernels.iter().filter(|name| !is_known(name)).cloned().collect();
            if known.is_empty() { Some(BTreeSet::new()) } else { (!lacking.is_empty()).then_some(lacking) }
        };
        briefs.iter().map(lacking).collect()
    };
    let mut lacking = lacking.into_iter();
    briefs.retain_mut(|part| {
        let found = lacking.next().flatten();
        found.map(|kernels| part.kernels = kernels).is_some()
    });
    briefs
}
