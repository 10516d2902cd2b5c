//! What is kept of a part when the part itself is gone.

use crate::place::{Arch, Place};
use crate::{Content, Form, Part, elf, ptx};
use std::collections::BTreeSet;

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
        let kind = match &part.content {
            Content::Ptx(text) => Kind::Ptx(ptx::is_device_runtime(text)),
            Content::Code(code) => Kind::Code(elf::has_functions(code)),
            Content::Intermediate => Kind::Intermediate,
            Content::Unread(why) => Kind::Unread(why.clone()),
        };
        Self { place: part.place.clone(), arch: part.arch, kind }
    }
}

/// Those parts that run without their PTX.
pub(crate) fn without_ptx(briefs: Vec<Brief>) -> Vec<Brief> {
    let key = |part: &Brief| part.place.container_key();
    let ptx = || briefs.iter().filter(|part| matches!(part.kind, Kind::Ptx(_)));
    let with: BTreeSet<_> = ptx().map(|part| (key(part), part.arch)).collect();
    let linked: BTreeSet<_> = ptx().filter(|part| part.place.is_relocatable()).map(|part| part.arch).collect();
    let runtime: BTreeSet<_> = ptx().filter(|part| part.kind == Kind::Ptx(true)).map(key).collect();
    let runs = |part: &Brief| !matches!(part.kind, Kind::Ptx(_) | Kind::Code(false));
    let has_ptx = |part: &Brief| {
        let is_linked = !part.place.is_relocatable() && linked.contains(&part.arch);
        is_linked || with.contains(&(key(part), part.arch)) || runtime.contains(&key(part))
    };
    let without: Vec<bool> = briefs.iter().map(|part| runs(part) && !has_ptx(part)).collect();
    briefs.into_iter().zip(without).filter_map(|(part, without)| without.then_some(part)).collect()
}
