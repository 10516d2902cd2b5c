//! The control block: the words in device memory through which a host stops a running kernel.
//!
//! One list of fields generates the Rust structs, their C text ([`c_text`]) and the table of `docs/ABI.md` ([`table`]). So
//! the two sides can't drift apart. A test compiles the C text with nvcc and compares every offset.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{align_of, offset_of, size_of};

/// Version of the layout below and of the meaning of its words; the first word of every control block.
pub const ABI_VERSION: u32 = 1;

/// Symbol of the control block in every rewritten module.
pub const CONTROL_SYMBOL: &str = "cuinstr_control_v1";

/// Symbol of the flag that [`ControlBlock::flag`] points to until a host says otherwise.
pub const FLAG_SYMBOL: &str = "cuinstr_flag_v1";

/// Bytes that the flag has for itself: a line of the GPU's caches. A load that keeps a line there must not keep the flag's.
pub const FLAG_BYTES: usize = 128;

/// Symbol of the pause block, in modules whose launches can be paused.
pub const PAUSE_SYMBOL: &str = "cuinstr_pause_v1";

/// Most blocks of a launch that can be paused: two bitmaps of so many bits take 64 MiB.
pub const MOST_BLOCKS: u64 = 1 << 28;

/// Number of sites that a stop record counts threads for; threads at further sites are counted in [`StopRecord::unlisted`].
pub const SITE_SLOTS: usize = 64;

/// Launch number that a module carries before any host arms it. Zero is never a launch, so an untouched flag stops no
/// thread.
pub const FIRST_LAUNCH: u32 = 1;

/// Value of [`ControlBlock::timeout_ns`], [`ControlBlock::budget_cycles`] and [`ControlBlock::fuel`] that lifts the limit, compiled-in
/// or not.
pub const UNLIMITED: u64 = u64::MAX;

/// What a thread does at a poll that finds a reason to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Action {
    /// `trap`: the host sees error 719 and the process loses its GPU state. The initial action of every module, so that a host which
    /// knows nothing of us never takes a truncated result for a complete one.
    Trap = 0,
    /// `exit`: the thread leaves, the context lives. For hosts that read the outcome.
    Leave = 1,
}

/// Why a thread stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u32)]
pub enum Why {
    /// The flag holds the number of this launch.
    Flag = 1,
    /// The launch, or the thread's block where a limit is compiled in, ran longer than its timeout.
    Deadline = 2,
    /// The block ran for more cycles of its multiprocessor than its budget.
    Budget = 3,
    /// The thread used up its fuel.
    Fuel = 4,
}

impl Why {
    /// The reason that a stop record's number stands for.
    #[must_use]
    pub fn from_word(word: u32) -> Option<Self> {
        [Self::Flag, Self::Deadline, Self::Budget, Self::Fuel].into_iter().find(|why| *why as u32 == word)
    }
}

/// What fields' names begin with in C, so that no macro of the user's has such a name.
pub const C_FIELD: &str = "__ci_";

/// One field as both sides see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name in Rust; that in C has [`C_FIELD`] in front.
    pub name: &'static str,
    /// C declaration type, without an array's length.
    pub c_type: &'static str,
    /// Length, for an array.
    pub count: Option<usize>,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// First paragraph of the field's documentation.
    pub doc: &'static str,
}

macro_rules! shared {
    ($(#[doc = $about:literal])* struct $name:ident = $c_name:literal {
        $($(#[doc = $doc:literal])* $field:ident: $type:ty = $c_type:literal $([$count:expr])?,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl $name {
            /// Name of the struct in C.
            pub const C_NAME: &str = $c_name;

            /// The fields in order of their offsets.
            #[must_use]
            pub fn fields() -> Vec<Field> {
                vec![$(Field {
                    name: stringify!($field),
                    c_type: $c_type,
                    count: shared!(@count $($count)?),
                    offset: offset_of!(Self, $field),
                    size: size_of::<$type>(),
                    doc: concat!($($doc),*),
                },)*]
            }
        }
    };
    (@count) => { None };
    (@count $count:expr) => { Some($count) };
}

shared! {
    /// Threads that stopped at one site.
    struct SiteCount = "__cuinstr_site_count" {
        /// Id of the site, 0 for a slot that is free.
        site: u64 = "unsigned long long",
        /// Threads that stopped there.
        threads: u64 = "unsigned long long",
    }
}

shared! {
    /// Who stopped first, why, and how many stopped where.
    struct StopRecord = "__cuinstr_stop_record" {
        /// Number of the launch whose first stopping thread took the record; 0 while there is none.
        claimed: u32 = "unsigned int",
        /// The same number once the words from `site` to `elapsed_cycles` are written.
        published: u32 = "unsigned int",
        /// Id of the site where the first thread stopped.
        site: u64 = "unsigned long long",
        /// Its reason: 1 flag, 2 deadline, 3 cycle budget, 4 fuel.
        why: u32 = "unsigned int",
        /// Number of the launch once a thread came to its end after a reason to stop had arisen, under `leave`. Also in `host_record`.
        late: u32 = "unsigned int",
        /// `blockIdx` of that thread.
        block: [u32; 3] = "unsigned int" [3],
        /// `threadIdx` of that thread.
        thread: [u32; 3] = "unsigned int" [3],
        /// In `host_record` only: the launch's `start_ns`, as soon as it has one.
        start_ns: u64 = "unsigned long long",
        /// Most iterations that one thread ran, where fuel is compiled in and `count_fuel` is set; else 0.
        fuel_used: u64 = "unsigned long long",
        /// Nanoseconds of `%globaltimer` from `start_ns` to the stop; 0 if the launch has no start.
        elapsed_ns: u64 = "unsigned long long",
        /// Cycles of that multiprocessor from the entry of the thread's block, where a cycle budget is compiled in; else 0.
        elapsed_cycles: u64 = "unsigned long long",
        /// 0. What all threads were added to would be waited for by each (docs/OVERHEAD.md).
        reserved: u64 = "unsigned long long",
        /// Threads that stopped at sites which found no free slot.
        unlisted: u64 = "unsigned long long",
        /// Threads by site, in up to four slots each: at `(site >> 1) + 16 * (%smid % 4)`, modulo 64, or else the first from `(site >> 1) % 64` on that is free or the site's.
        sites: [SiteCount; SITE_SLOTS] = "__cuinstr_site_count" [SITE_SLOTS],
    }
}

shared! {
    /// The words a host and a rewritten kernel share; in global memory, under [`CONTROL_SYMBOL`].
    struct ControlBlock = "__cuinstr_control" {
        /// Layout version, 1.
        abi_version: u32 = "unsigned int",
        /// What a thread does that must stop: 0 trap, 1 leave. Host, before the launch.
        action: u32 = "unsigned int",
        /// Number of the current launch, never 0; 1 until a host arms one. Threads stop when the flag equals it. Host, before each launch.
        launch: u32 = "unsigned int",
        /// 1 if threads shall note their fuel in the record's `fuel_used`. Host, before the launch.
        count_fuel: u32 = "unsigned int",
        /// Address of the flag, a 32-bit word in device, pinned or managed memory; never null. Host, before the launch.
        flag: u64 = "unsigned int*",
        /// Nanoseconds from `start_ns` to the deadline; 0 leaves the compiled-in limit in force, all ones lifts it. Host, before the launch.
        timeout_ns: u64 = "unsigned long long",
        /// `%globaltimer` when the launch began; the host writes 0 before each armed launch, its first threads set it.
        start_ns: u64 = "unsigned long long",
        /// Cycles a block may run; 0 leaves the compiled-in budget in force, all ones lifts it. Obeyed where a budget is compiled in.
        budget_cycles: u64 = "unsigned long long",
        /// Iterations a thread may run; 0 leaves the compiled-in fuel in force, all ones lifts it. Obeyed where fuel is compiled in.
        fuel: u64 = "unsigned long long",
        /// Device address of a stop record in pinned host memory that outlives a trap, or 0.
        host_record: u64 = "__cuinstr_stop_record*",
        /// Address of this launch's stop record in device memory, or 0 for `own_record`. Host, before the launch.
        record: u64 = "__cuinstr_stop_record*",
        /// The record of hosts that bring none. Device; the host clears it before each armed launch.
        own_record: StopRecord = "__cuinstr_stop_record",
    }
}

shared! {
    /// Which blocks of a launch run, and whether they decline to; in global memory, under [`PAUSE_SYMBOL`], aligned to 16 bytes.
    struct PauseBlock = "__cuinstr_pause" {
        /// Number of the launch that may be paused, as in the control block; 0 for none: then nothing else is read. Host, before each launch.
        launch: u32 = "unsigned int",
        /// First block that runs, where `missing` is not 0. Blocks before it end at once. Host, before the launch.
        first: u32 = "unsigned int",
        /// How many blocks behind `first` may run, where `missing` is not 0; blocks further on end at once. Host, before the launch.
        span: u32 = "unsigned int",
        /// Blocks of the launch's grid. Blocks of a grid of another size never decline. Host, before the launch.
        blocks: u32 = "unsigned int",
        /// Address of the request, a 32-bit word: blocks that find the launch's number there when they begin decline to run. Host, before the launch.
        asked: u64 = "unsigned int*",
        /// Bitmap of the blocks that run, 0 if all do. Blocks whose bit is not set end at once. Its lowest bit says that `seen` counts. Host, before the launch.
        missing: u64 = "const unsigned int*",
        /// Bitmap in which a block that declines sets its bit. Host, before the launch.
        declined: u64 = "unsigned int*",
        /// Bitmap in which blocks that `missing` passes over set their bits, where its lowest bit says so; one whose bit was set before declines. Host, while a launch runs.
        seen: u64 = "unsigned int*",
    }
}

impl PauseBlock {
    /// A launch that can't be paused, as a module is loaded.
    pub const NONE: Self = Self { launch: 0, first: 0, span: 0, blocks: 0, asked: 0, missing: 0, declined: 0, seen: 0 };
}

impl StopRecord {
    /// A record with nothing in it, as a host leaves it before a launch.
    pub const EMPTY: Self = Self {
        claimed: 0,
        published: 0,
        site: 0,
        why: 0,
        late: 0,
        block: [0; 3],
        thread: [0; 3],
        start_ns: 0,
        fuel_used: 0,
        elapsed_ns: 0,
        elapsed_cycles: 0,
        reserved: 0,
        unlisted: 0,
        sites: [SiteCount { site: 0, threads: 0 }; SITE_SLOTS],
    };

    /// Threads that stopped, all sites together.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.sites.iter().fold(self.unlisted, |all, count| all.saturating_add(count.threads))
    }

    /// Threads that stopped at each site, by its id; a site may have several slots.
    #[must_use]
    pub fn threads_by_site(&self) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        for count in self.sites.iter().filter(|count| count.site != 0 && count.threads != 0) {
            let threads: &mut u64 = all.entry(count.site).or_default();
            *threads = threads.saturating_add(count.threads);
        }
        all
    }
}

/// C definitions of the structs, each with a check of its size, ready to stand in front of a kernel.
#[must_use]
pub fn c_text() -> String {
    let mut text = String::new();
    c_struct(&mut text, PauseBlock::C_NAME, &PauseBlock::fields(), size_of::<PauseBlock>(), align_of::<PauseBlock>());
    c_struct(&mut text, SiteCount::C_NAME, &SiteCount::fields(), size_of::<SiteCount>(), align_of::<SiteCount>());
    c_struct(&mut text, StopRecord::C_NAME, &StopRecord::fields(), size_of::<StopRecord>(), align_of::<StopRecord>());
    c_struct(&mut text, ControlBlock::C_NAME, &ControlBlock::fields(), size_of::<ControlBlock>(), align_of::<ControlBlock>());
    text
}

fn c_struct(text: &mut String, name: &str, fields: &[Field], size: usize, align: usize) {
    debug_assert_eq!(align, 8, "every struct holds a 64-bit word");
    let _ = writeln!(text, "struct {name} {{");
    for field in fields {
        let array = field.count.map_or(String::new(), |count| format!("[{count}]"));
        let _ = writeln!(text, "  {} {C_FIELD}{}{array};", field.c_type, field.name);
    }
    let _ = writeln!(text, "}};\nstatic_assert(sizeof({name}) == {size}, \"cuinstr: {name} has another layout here\");");
}

/// The layout as rows of a Markdown table: offset, field, C type, meaning.
#[must_use]
pub fn table() -> String {
    let mut text = String::new();
    for (name, fields, size) in [
        (ControlBlock::C_NAME, ControlBlock::fields(), size_of::<ControlBlock>()),
        (StopRecord::C_NAME, StopRecord::fields(), size_of::<StopRecord>()),
        (SiteCount::C_NAME, SiteCount::fields(), size_of::<SiteCount>()),
        (PauseBlock::C_NAME, PauseBlock::fields(), size_of::<PauseBlock>()),
    ] {
        let _ = writeln!(text, "\n`{name}`, {size} bytes\n\n| offset | field | type | meaning |\n| --- | --- | --- | --- |");
        for field in fields {
            let array = field.count.map_or(String::new(), |count| format!("[{count}]"));
            let _ = writeln!(text, "| {} | `{}` | `{}{array}` |{} |", field.offset, field.name, field.c_type, field.doc);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_padding_hides_in_the_layout() {
        for (fields, size) in [
            (ControlBlock::fields(), size_of::<ControlBlock>()),
            (StopRecord::fields(), size_of::<StopRecord>()),
            (SiteCount::fields(), size_of::<SiteCount>()),
        ] {
            let mut end = 0;
            for field in &fields {
                assert_eq!(field.offset, end, "a gap before {}", field.name);
                end = field.offset + field.size;
            }
            assert_eq!(end, size);
        }
    }

    #[test]
    fn the_abi_document_holds_this_table() {
        let document = include_str!("../../../docs/ABI.md");
        assert!(document.contains(table().trim()), "docs/ABI.md is out of date; it must contain:\n{}", table());
    }
}
