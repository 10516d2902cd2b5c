//! Finds what the CUDA toolchain puts into files: PTX, machine code, kernels, and the site maps that `cuinstr` left there.
//!
//! [`read`] takes bytes and gives an [`Image`]. They may be PTX, a cubin, a fat binary, a host object, an executable, a
//! shared library or a static library. The way through it, each arrow one module:
//!
//! bytes → `read` (what are they?) → `archive`, `elf` (members, sections) → `container` (entries of a fat binary) → `compression` → [`Part`]s →
//! `ptx`, `record` (site maps), [`kernel`] (names)
//!
//! **Bounds.** Any bytes are safe to read, and nothing panics. Time is linear in the input and what is decompressed
//! from it. That is at most [`Image::EXPANSION`] times the input plus [`Image::ALLOWANCE`] bytes. What is damaged is
//! skipped and noted.

#![forbid(unsafe_code)]

mod archive;
mod brief;
mod compression;
mod container;
mod elf;
pub mod kernel;
mod listing;
mod place;
mod ptx;
mod read;
mod record;
mod variable;

pub use brief::{Brief, Kind, Scan};
pub use kernel::Kernel;
pub use listing::{Is, Listed, listing};
pub use place::{Arch, Place};
pub use read::{read, scan};
pub use record::MAGIC as SITES_MAGIC;

use cuinstr_abi::sites::SiteMap;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What a file holds for a GPU. Get one with [`read`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image<'a> {
    /// What the file is.
    pub form: Form,
    /// Its device code, in the order of the file.
    pub parts: Vec<Part<'a>>,
    /// Site maps found anywhere in it, each once, in order of first appearance.
    pub site_maps: Vec<SiteMap>,
    /// What was damaged and is therefore missing above: each a sentence that begins with the place. At most a hundred.
    pub notes: Vec<String>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// PTX text.
    Ptx,
    /// An ELF file of machine code for one kind of GPU.
    Cubin,
    /// A fat binary by itself.
    Fatbin,
    /// A host's object, executable or shared library.
    Host,
    /// A static library.
    Archive,
    /// Something else with fat binaries in it.
    Other,
}

/// One piece of device code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Where it lies.
    pub place: Place,
    /// What it was compiled for, where that is known.
    pub arch: Option<Arch>,
    /// Name of the source that the toolchain noted, if it did (`-lineinfo`, `-G`).
    pub source: Option<String>,
    /// The piece itself.
    pub content: Content<'a>,
}

/// The bytes of one piece of device code, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<'a> {
    /// PTX text. Bytes that are no UTF-8 (in comments and file names) are replaced.
    Ptx(Cow<'a, str>),
    /// A cubin: an ELF file of machine code.
    Code(Cow<'a, [u8]>),
    /// The compiler's intermediate code, which only NVIDIA's linker can read (`-dlto`).
    Intermediate,
    /// What could not be read, and why.
    Unread(String),
}

/// Why there is no [`Image`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// No bytes at all.
    #[error("the file is empty")]
    Empty,
    /// Nothing in it was made by the CUDA toolchain, as far as can be seen.
    #[error("this is neither PTX nor a cubin, fat binary, object, executable or library: it begins with {0}")]
    Unknown(String),
    /// A host's file without device code.
    #[error("this {0} holds no device code")]
    NoDeviceCode(&'static str),
    /// It begins as one of ours does, but nothing in it can be read.
    #[error("nothing in it can be read: {0}")]
    Damaged(String),
}

impl Image<'_> {
    /// With [`Image::ALLOWANCE`], the bound on decompression: bytes of output a byte of input. No LZ4 block can hold more.
    pub const EXPANSION: usize = 256;

    /// Bytes that may be decompressed however small the input is.
    pub const ALLOWANCE: usize = 16 << 20;

    /// Every PTX text, with the part that holds it.
    pub fn ptx(&self) -> impl Iterator<Item = (&Part<'_>, &str)> {
        self.parts.iter().filter_map(|part| Some((part, part.ptx()?)))
    }

    /// Parts that run without their PTX being here: machine code with functions in it, intermediate code, and what
    /// could not be read. The fat binary (or file) of each has no PTX of its architecture, or none of some kernel.
    ///
    /// What the device linker wrote has its PTX where the linked parts lie ([`Place::is_relocatable`]), each of which is asked for by itself. The
    /// toolkit's own device runtime has PTX of one architecture for all.
    pub fn without_ptx(&self) -> impl Iterator<Item = &Part<'_>> {
        let without = brief::without_ptx(self.parts.iter().map(Brief::of).collect());
        let places: BTreeSet<Place> = without.into_iter().map(|part| part.place).collect();
        self.parts.iter().filter(move |part| places.contains(&part.place))
    }

    /// Why the driver can't be given this image, if it can't: a host's file, or machine code whose end is missing.
    ///
    /// The driver trusts what it is given: half a cubin makes it read beyond the end.
    #[must_use]
    pub fn unloadable(&self) -> Option<String> {
        if !matches!(self.form, Form::Ptx | Form::Cubin | Form::Fatbin) {
            return Some("it is a host's file with device code in it; give PTX, a cubin or a fat binary".into());
        }
        self.parts.iter().find_map(|part| match &part.content {
            Content::Code(code) if !elf::Elf::new(code).is_some_and(elf::Elf::is_whole) => Some("its end is missing".into()),
            Content::Unread(why) => Some(why.clone()),
            _ => None,
        })
    }

    /// The kernels of all parts, each symbol once, in order of first appearance.
    #[must_use]
    pub fn kernels(&self) -> Vec<Kernel> {
        kernel::of_parts(&self.parts)
    }
}

impl Part<'_> {
    /// The text, if it is PTX.
    #[must_use]
    pub fn ptx(&self) -> Option<&str> {
        match &self.content {
            Content::Ptx(text) => Some(text),
            _ => None,
        }
    }
}
