//! The site map: every place that may repeat, begin or end, and what was done about it.

use serde::{Deserialize, Serialize};

/// What a site map's record in a module begins with, followed by the length of its JSON text in eight hexadecimal digits and a space.
pub const MAGIC: &str = "CUINSTR-SITES/1 ";

/// What several site maps begin with that are packed together, followed by a length as above and so many bytes: four that say how long the text is, the lowest first, and
/// an LZ4 block. The text is a map's JSON in each line.
pub const PACKED_MAGIC: &str = "CUINSTR-SITES/2 ";

/// What kind of place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `for`.
    For,
    /// `for (x : range)`.
    RangeFor,
    /// `while`.
    While,
    /// `do … while`.
    Do,
    /// A macro, defined elsewhere, that may open a loop.
    MacroLoop,
    /// A `goto` to a label above it.
    Goto,
    /// A device function that can reach itself through calls.
    Recursion,
    /// A kernel's entry.
    Entry,
    /// A kernel's exits: each `return` and its end.
    Exit,
    /// A block barrier, after which the flag is checked.
    Barrier,
    /// A loop inside inline assembly.
    AsmLoop,
    /// A cycle of PTX.
    Loop,
}

/// How a site polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Once each time control comes by.
    Each,
    /// When the activation's allowance is used up.
    CountDown,
    /// Between strips of as many iterations as the allowance holds and will surely run.
    Strip,
    /// Between chunks of a constant number of iterations.
    Chunk,
    /// When the nest's own allowance is used up, which starts from a constant: the compiler drops the poll where it knows the trips.
    Foldable,
    /// Asks the flag only.
    Flag,
    /// No poll; `why` says why not.
    None,
}

/// One place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Content hash of path, offset and file, in hexadecimal. Odd where threads do not leave.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Function around it, or `#define NAME` for a macro's body.
    pub function: String,
    /// File of the line, if it is not the map's: of a site in PTX that names its source.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// How it polls.
    pub form: Form,
    /// Why it has no poll of its own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
    /// Reason of the waiver that accepts it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiver: Option<String>,
}

/// All sites of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteMap {
    /// Version of this format.
    pub version: u32,
    /// Project-relative path.
    pub file: String,
    /// [Hash](hash) of the path above, continued over the source's bytes, in hexadecimal.
    pub hash: String,
    /// Whether `--polls each` was asked for.
    pub polls_each: bool,
    /// Whether threads count their iterations, so that a host may give them fuel.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub counts_fuel: bool,
    /// Sites in order of their offsets.
    pub sites: Vec<Site>,
}

impl SiteMap {
    /// Version of the format written by this crate.
    pub const VERSION: u32 = 1;

    /// The map as one line of JSON, as it is embedded and written.
    ///
    /// # Panics
    /// Never: every field is serialisable.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a site map holds strings and numbers only")
    }

    /// Whether this is the text that the map was made of, under the map's own path.
    #[must_use]
    pub fn is_of(&self, source: &[u8]) -> bool {
        self.hash == format!("{:016x}", hash(hash(0, self.file.as_bytes()), source))
    }

    /// The site of that id, odd or even: where threads do not leave, the device may name either.
    #[must_use]
    pub fn site(&self, id: u64) -> Option<&Site> {
        self.sites.iter().find(|site| u64::from_str_radix(site.id.trim_start_matches("0x"), 16).is_ok_and(|known| known & !1 == id & !1))
    }
}

/// FNV-1a, 64 bits: stable over versions and machines.
#[must_use]
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
