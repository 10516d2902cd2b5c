//! What stopped a launch, and where its threads were: as data, and as text for people.

mod text;

pub use text::Text;

use crate::sources::Sources;
use cuinstr_abi::control::{StopRecord, Why};
use cuinstr_abi::sites::{Kind, Site, SiteMap};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a launch was stopped, where its first thread was, and how many threads stopped at each site.
///
/// Get one with [`Report::new`]. Its `Display` is a text of several lines, without colour; see [`Report::text`] for more of it.
/// It holds all that it shows, the source line included, so that it reads the same once it was written as JSON and read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The kernel's name; empty if somebody else launched it and it is not known.
    pub kernel: String,
    /// Why it was stopped; absent if the record was never completed.
    pub why: Option<Why>,
    /// The limit that `why` is about, in its unit: nanoseconds of a timeout, cycles of a budget, iterations of fuel.
    pub limit: Option<u64>,
    /// Where the first thread stopped; absent if the record was never completed.
    pub first: Option<First>,
    /// Sites where threads stopped, those with the most threads first.
    pub sites: Vec<SiteThreads>,
    /// Threads that stopped at further sites, for which the record had no room.
    pub unlisted: u64,
    /// Threads that stopped, all sites together.
    pub threads: u64,
    /// Threads that were launched; 0 if somebody else launched them and it is not known.
    pub launched_threads: u64,
    /// Blocks that were launched; 0 likewise.
    pub launched_blocks: u64,
    /// Blocks of which all threads left at the kernel's entry: they never began.
    pub blocks_not_begun: u64,
    /// Whether a thread came to its end after there was a reason to stop.
    pub late: bool,
}

/// The first thread that stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct First {
    /// The site.
    pub site: StopSite,
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// `threadIdx`: x, y, z.
    pub thread: [u32; 3],
    /// Nanoseconds from the kernel's start to the stop, where that is known.
    pub elapsed_ns: Option<u64>,
    /// Clock cycles of the multiprocessor since the thread's block began, where a cycle budget is compiled in.
    pub elapsed_cycles: Option<u64>,
    /// The site's line of source.
    pub line: SourceLine,
}

/// A line of source, if it is at hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceLine {
    /// Its text, without the end of the line. Bytes that are no UTF-8 are one `?` each.
    Text(String),
    /// There is a file of that name, but it is not the one that was compiled.
    Changed,
    /// No file of that name is at hand, or no site map names the site.
    Absent,
}

/// Threads that stopped at one site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SiteThreads {
    /// The site.
    pub site: StopSite,
    /// How many threads.
    pub threads: u64,
}

/// A site by its id, and all that the site map says about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StopSite {
    /// Sixteen hexadecimal digits.
    pub id: String,
    /// Where it is; absent if the module's site map is stripped or does not know the id.
    pub place: Option<SitePlace>,
    /// Whether threads publish the stop here and go on, since leaving is not defined at that place.
    pub goes_on: bool,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SitePlace {
    /// Path, as the site map has it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Function around it, or `#define NAME` for a macro's body.
    pub function: String,
    /// What it is.
    pub kind: Kind,
}

/// What a report needs to know of the launch besides its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Launched<'a> {
    /// The kernel's name, as the report shall show it.
    pub kernel: &'a str,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// The timeout in nanoseconds, if it had one.
    pub timeout_ns: Option<u64>,
    /// The budget in clock cycles, if it had one.
    pub budget_cycles: Option<u64>,
    /// The fuel in iterations, if it had some.
    pub fuel: Option<u64>,
    /// Whether the host set the flag because the deadline had passed, not because somebody asked: a record that says "flag" then reports
    /// the deadline.
    pub flagged_at_deadline: bool,
}

impl Report {
    /// Puts the record's numbers into words, with what the site maps know of its sites and the line where the first thread stopped.
    ///
    /// The record may be damaged, or half written: nothing panics, and what it does not say is absent.
    #[must_use]
    pub fn new(record: &StopRecord, launched: &Launched<'_>, site_maps: &[SiteMap], sources: &(impl Sources + ?Sized)) -> Self {
        let mut sites: Vec<SiteThreads> = record.threads_by_site().into_iter().map(row(site_maps)).collect();
        sites.sort_by(|a, b| b.threads.cmp(&a.threads).then_with(|| a.site.order().cmp(&b.site.order())));
        let is_complete = record.published != 0 && record.published == record.claimed;
        let why = Why::from_word(record.why).filter(|_| is_complete);
        let why = if why == Some(Why::Flag) && launched.flagged_at_deadline { Some(Why::Deadline) } else { why };
        let launched_blocks = product(launched.grid);
        let threads_a_block = product(launched.block).max(1);
        let at_entry = sites.iter().filter(|row| row.site.kind() == Some(Kind::Entry)).map(|row| row.threads);
        let at_entry = at_entry.fold(0, u64::saturating_add);
        Self {
            kernel: launched.kernel.to_owned(),
            why,
            limit: match why {
                Some(Why::Deadline) => launched.timeout_ns,
                Some(Why::Budget) => launched.budget_cycles,
                Some(Why::Fuel) => launched.fuel,
                Some(Why::Flag) | None => None,
            },
            first: is_complete.then(|| first(record, site_maps, sources)),
            sites,
            unlisted: record.unlisted,
            threads: record.threads(),
            launched_threads: launched_blocks.saturating_mul(product(launched.block)),
            launched_blocks,
            // Of a block that is half in, the other half counts at other sites.
            blocks_not_begun: (at_entry / threads_a_block).min(launched_blocks),
            late: record.late != 0,
        }
    }

    /// Says why the launch was stopped, where its record does not.
    #[cfg(all(feature = "worker", unix))]
    pub(crate) fn stopped_for(&mut self, cause: crate::cause::Cause, timeout_ns: Option<u64>) {
        if self.why.is_none() {
            (self.why, self.limit) = match cause {
                crate::cause::Cause::Deadline => (Some(Why::Deadline), timeout_ns),
                _ => (Some(Why::Flag), None),
            };
        }
    }

    /// Finds its line of source anew.
    #[cfg(all(feature = "worker", unix))]
    pub(crate) fn look_up(&mut self, site_maps: &[SiteMap], sources: &(impl Sources + ?Sized)) {
        let Some(first) = &mut self.first else { return };
        let Ok(id) = u64::from_str_radix(&first.site.id, 16) else { return };
        if let Some((map, site)) = site_maps.iter().find_map(|map| Some((map, map.site(id)?))) {
            first.line = source_line(map, site, sources);
        }
    }

    /// The report as text, to be shaped before it is shown.
    #[must_use]
    pub fn text(&self) -> Text<'_> {
        Text::new(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl StopSite {
    fn new(id: u64, site_maps: &[SiteMap]) -> Self {
        let found = site_maps.iter().find_map(|map| Some((map, map.site(id)?)));
        Self {
            id: format!("{:016x}", id & !1),
            place: found.map(|(map, site)| SitePlace {
                file: site.file.clone().unwrap_or_else(|| map.file.clone()),
                line: site.line,
                column: site.column,
                // PTX has its functions by their symbols.
                function: cuinstr_image::Kernel::new(&site.function).name,
                kind: site.kind,
            }),
            goes_on: id & 1 == 1 || found.is_some_and(|(_, site)| site.id.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f'])),
        }
    }

    fn kind(&self) -> Option<Kind> {
        self.place.as_ref().map(|place| place.kind)
    }

    /// What sites with as many threads are ordered by.
    fn order(&self) -> (bool, Option<(&str, u32, u32)>, &str) {
        let place = self.place.as_ref().map(|place| (place.file.as_str(), place.line, place.column));
        (place.is_none(), place, &self.id)
    }
}

fn row(site_maps: &[SiteMap]) -> impl Fn((u64, u64)) -> SiteThreads {
    |(site, threads)| SiteThreads { site: StopSite::new(site, site_maps), threads }
}

fn first(record: &StopRecord, site_maps: &[SiteMap], sources: &(impl Sources + ?Sized)) -> First {
    First {
        site: StopSite::new(record.site, site_maps),
        block: record.block,
        thread: record.thread,
        elapsed_ns: (record.elapsed_ns != 0).then_some(record.elapsed_ns),
        elapsed_cycles: (record.elapsed_cycles != 0).then_some(record.elapsed_cycles),
        line: site_maps
            .iter()
            .find_map(|map| Some((map, map.site(record.site)?)))
            .map_or(SourceLine::Absent, |(map, site)| source_line(map, site, sources)),
    }
}

/// The line, from a source that is the one that was compiled: lines of another would mislead, and a module that names a file which it was
/// not made of learns nothing of it.
fn source_line(map: &SiteMap, site: &Site, sources: &(impl Sources + ?Sized)) -> SourceLine {
    // A site in PTX may name a source that the map has no hash of.
    let Some(source) = sources.source(&map.file).filter(|_| site.file.is_none()) else { return SourceLine::Absent };
    if !map.is_of(&source) {
        return SourceLine::Changed;
    }
    let line = (site.line as usize).checked_sub(1).and_then(|index| source.split(|byte| *byte == b'\n').nth(index));
    let Some(line) = line else { return SourceLine::Absent };
    let mut text = String::new();
    for chunk in line.strip_suffix(b"\r").unwrap_or(line).utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    SourceLine::Text(text)
}

fn product(sizes: [u32; 3]) -> u64 {
    sizes.into_iter().fold(1, |product, size| product.saturating_mul(u64::from(size)))
}
