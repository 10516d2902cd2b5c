//! The result of a rewrite, of CUDA source or of PTX.

use crate::common::diagnostic::Diagnostic;
use crate::common::options::{Options, Polls};
use crate::common::site::{Site, SiteMap, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The result of a rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Rewrite {
    /// The rewritten source; absent if any diagnostic is an error.
    pub output: Option<Vec<u8>>,
    /// Where in the output inserted text stands: without these ranges it is the input again, byte for byte.
    pub inserted: Vec<Range<usize>>,
    /// Every site.
    pub sites: SiteMap,
    /// Everything there is to say, in order of offsets.
    pub diagnostics: Vec<Diagnostic>,
    /// Numbers.
    pub summary: Summary,
    /// Bytes of shared memory that the file declares; absent if its text does not tell.
    pub shared_bytes: Option<u64>,
    /// Which of the options' waivers accept something, by their place in the list.
    pub used_waivers: BTreeSet<usize>,
    /// Why a loop is polled in no cheaper form, by its site's number. The site map, which goes into the compiled module, does not hold it.
    pub reasons: BTreeMap<u64, &'static str>,
}

impl Rewrite {
    /// The input again: the output without what was inserted.
    #[must_use]
    pub fn original(&self) -> Option<Vec<u8>> {
        let output = self.output.as_ref()?;
        let mut original = Vec::with_capacity(output.len());
        let mut at = 0;
        for range in &self.inserted {
            original.extend_from_slice(&output[at..range.start]);
            at = range.end;
        }
        original.extend_from_slice(&output[at..]);
        Some(original)
    }
}

pub(crate) fn site_map(options: &Options, sites: Vec<Site>, hash: u64) -> SiteMap {
    let file = if options.site_path.is_empty() { options.path.clone() } else { options.site_path.clone() };
    let (polls_each, counts_fuel) = (options.polls == Polls::Each, options.limits.fuel.is_some());
    SiteMap { version: SiteMap::VERSION, file, hash: format!("{hash:016x}"), polls_each, counts_fuel, sites }
}

pub(crate) fn refused(options: &Options, sites: Vec<Site>, diagnostics: Vec<Diagnostic>, hash: u64) -> Rewrite {
    let sites = site_map(options, sites, hash);
    Rewrite {
        output: None,
        inserted: Vec::new(),
        sites,
        diagnostics,
        summary: Summary::default(),
        used_waivers: BTreeSet::new(),
        reasons: BTreeMap::new(),
        shared_bytes: None,
    }
}
