//! One child process's context, with what the checks share: loading builds, numbering launches, a sound kernel to launch afterwards.

use crate::launcher::{Arguments, Contents, Control, Ended, Gpu, Kernel, Orders};
use crate::manifest::{Build, Manifest, Subject};
use cuinstr_abi::control::{Action, StopRecord, Why};
use cuinstr_harness::buffer::difference;
use cuinstr_harness::fixtures::HangLine;
use cuinstr_harness::header::Header;
use cuinstr_harness::variant::{self, Variant};
use serde::Serialize;
use serde_json::Value;
use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

/// Longest that a sound kernel may take.
pub const SOUND: Duration = Duration::from_secs(20);

/// What a check that passed has to say.
#[derive(Debug, Default)]
pub struct Report {
    /// For people.
    pub notes: Vec<String>,
    /// For programs.
    pub data: Value,
}

impl Report {
    /// A report with measurements.
    #[must_use]
    pub fn of(data: impl Serialize) -> Self {
        Self { notes: Vec::new(), data: serde_json::to_value(data).unwrap_or_default() }
    }

    /// Adds a line for people.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// Result of a check: what it has to say, or why it failed.
pub type Checked = Result<Report, String>;

/// A context and what was loaded into it.
#[derive(Debug)]
pub struct Session<'a> {
    /// The device.
    pub gpu: Gpu,
    /// The kernels.
    pub manifest: &'a Manifest,
    launches: Cell<u32>,
    spoiled: Cell<bool>,
    sound: Option<Sound<'a>>,
}

/// A build in the context, ready to launch.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// The build.
    pub build: &'a Build,
    /// How to launch it.
    pub header: &'a Header,
    /// The marked line, of a hang.
    pub hang: Option<&'a HangLine>,
    /// The kernel.
    pub kernel: Kernel,
    /// Its control block, if it was rewritten.
    control: Option<Control>,
    /// Its arguments.
    pub arguments: Arguments,
}

/// A kernel whose right answer is known.
#[derive(Debug)]
struct Sound<'a> {
    loaded: Loaded<'a>,
    answer: Vec<Contents>,
}

/// A stop record in words.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the names are those of the control block and of the site map")]
pub struct Stop {
    pub launch: u32,
    pub why: Option<&'static str>,
    pub site: String,
    pub kind: String,
    pub function: String,
    pub file: String,
    pub line: u32,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    pub threads: u64,
    pub elapsed_us: f64,
    pub late: bool,
    /// Threads by site, most first.
    pub sites: Vec<String>,
}

impl<'a> Session<'a> {
    /// Creates the context, and loads everything that must be there before a kernel hangs: a sound kernel, and its right answer.
    ///
    /// # Errors
    /// What is missing, or what the driver answered.
    pub fn open(manifest: &'a Manifest) -> Result<Self, String> {
        let gpu = Gpu::open()?;
        let mut session = Self { gpu, manifest, launches: Cell::new(1), spoiled: Cell::new(false), sound: None };
        // Where the rewritten kernel is missing, only the checks that need it fail.
        if let Ok(loaded) = session.load("saxpy", variant::DEFAULT) {
            let plain = session.load("saxpy", variant::PLAIN)?;
            let answer = session.run(&plain)?;
            session.sound = Some(Sound { loaded, answer });
        }
        Ok(session)
    }

    /// Whether the context is of no further use: a kernel hangs in it, or it is lost.
    #[must_use]
    pub fn spoiled(&self) -> bool {
        self.spoiled.get()
    }

    /// A number that no launch of this session had.
    #[must_use]
    pub fn next_launch(&self) -> u32 {
        self.launches.set(self.launches.get() + 1);
        self.launches.get()
    }

    /// A build, loaded, with filled buffers.
    ///
    /// # Errors
    /// If it could not be built, or what the driver answered.
    pub fn load(&self, name: &str, variant: Variant) -> Result<Loaded<'a>, String> {
        let subject: &Subject = self.manifest.subject(name)?;
        self.load_with(subject, variant, &subject.fixture.header)
    }

    /// The same with another header's launch.
    ///
    /// # Errors
    /// As above.
    pub fn load_with<'h>(&self, subject: &'h Subject, variant: Variant, header: &'h Header) -> Result<Loaded<'h>, String> {
        let build = subject.build(variant)?;
        let path = self.manifest.folder.join(&build.cubin);
        let cubin = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let kernel = self.gpu.load(&cubin, &build.entry, header.shared)?;
        let control = if variant.rewriting.is_some() { Some(self.gpu.bind(&kernel)?) } else { None };
        let arguments = self.gpu.arguments(header)?;
        Ok(Loaded { build, header, hang: subject.fixture.hang.as_ref(), kernel, control, arguments })
    }

    /// Launches and returns at once, with the moment just before.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn launch(&self, loaded: &Loaded) -> Result<Instant, String> {
        let since = Instant::now();
        self.gpu.launch(&loaded.kernel, loaded.header, &loaded.arguments).inspect_err(|_| self.spoiled.set(true))?;
        Ok(since)
    }

    /// Waits; a kernel that still runs afterwards, or a fault, spoils the context.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Ended {
        let ended = self.gpu.wait(limit);
        self.spoiled.set(ended != Ended::Drained);
        ended
    }

    /// Launches something sound on fresh buffers, and gives what it wrote.
    ///
    /// # Errors
    /// If it does not end within [`SOUND`], or ends with an error.
    pub fn run(&self, loaded: &Loaded) -> Result<Vec<Contents>, String> {
        self.gpu.refill(&loaded.arguments)?;
        self.launch(loaded)?;
        self.finish(loaded)
    }

    /// Waits for a launch that must end, and gives what it wrote.
    ///
    /// # Errors
    /// If it does not end within [`SOUND`], or ends with an error.
    pub fn finish(&self, loaded: &Loaded) -> Result<Vec<Contents>, String> {
        match self.wait(SOUND) {
            Ended::Drained => Ok(self.gpu.contents(&loaded.arguments)?),
            Ended::Fault(fault) => Err(format!("the kernel ended with {fault}")),
            Ended::Running => Err(format!("the kernel still runs after {SOUND:?}")),
        }
    }

    /// Launches another module's kernel, and compares with its right answer.
    ///
    /// # Errors
    /// If it does not end, or answers wrongly.
    pub fn next_launch_is_right(&self) -> Result<(), String> {
        let sound = self.sound.as_ref().ok_or("there is no rewritten saxpy to launch next")?;
        let answer = self.run(&sound.loaded).map_err(|why| format!("the next launch: {why}"))?;
        same(&sound.answer, &answer).map_err(|why| format!("the next launch: {why}"))
    }

    /// Arms, in stream order, a launch whose number is new; gives the orders.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn arm(&self, loaded: &Loaded, action: Action, change: impl FnOnce(&mut Orders)) -> Result<Orders, String> {
        let mut orders = Orders::new(self.next_launch(), action);
        change(&mut orders);
        self.gpu.arm(loaded.control()?, &orders)?;
        Ok(orders)
    }

    /// The stop record, once the launch has drained or while it runs.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn record(&self, loaded: &Loaded) -> Result<StopRecord, String> {
        Ok(self.gpu.record(loaded.control()?)?)
    }
}

impl Loaded<'_> {
    /// The control block.
    ///
    /// # Errors
    /// If this is a plain build.
    pub fn control(&self) -> Result<&Control, String> {
        self.control.as_ref().ok_or_else(|| "a plain build has no control block".into())
    }

    /// A stop record in words.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of minutes fit a double")]
    pub fn describe(&self, record: &StopRecord) -> Stop {
        let found = self.build.site(record.site);
        let why = Why::from_word(record.why).map(word);
        Stop {
            launch: record.claimed,
            why,
            site: format!("{:016x}", record.site),
            kind: found.map_or("unknown".into(), |found| format!("{:?}", found.site.kind).to_lowercase()),
            function: found.map_or_else(String::new, |found| found.site.function.clone()),
            file: found.map_or_else(String::new, |found| found.file.to_owned()),
            line: found.map_or(0, |found| found.site.line),
            block: record.block,
            thread: record.thread,
            threads: record.threads(),
            elapsed_us: record.elapsed_ns as f64 / 1e3,
            late: record.late != 0,
            sites: self.counts(record),
        }
    }

    /// Threads by site, most first.
    fn counts(&self, record: &StopRecord) -> Vec<String> {
        let mut counts: Vec<_> = record.threads_by_site().into_iter().collect();
        counts.sort_by_key(|&(_, threads)| std::cmp::Reverse(threads));
        let show = |&(site, threads): &(u64, u64)| {
            let place = self.build.site(site).map(|found| format!("{}:{}", found.file, found.site.line));
            format!("{threads} at {}", place.unwrap_or_else(|| format!("{site:016x}")))
        };
        counts.iter().map(show).collect()
    }

    /// Checks that a record is of this launch and complete, names this reason, and the line that the source marks.
    ///
    /// # Errors
    /// What it names instead.
    pub fn names_the_hang(&self, record: &StopRecord, launch: u32, why: Why) -> Result<Stop, String> {
        let stop = self.stopped(record, launch, why)?;
        let hang = self.hang.ok_or("the source marks no line")?;
        let found = self.build.site(record.site).ok_or_else(|| format!("the site map does not hold site {}", stop.site))?;
        if found.is(hang) {
            return Ok(stop);
        }
        let (file, line) = (&stop.file, stop.line);
        let (kind, function, counts) = (&stop.kind, &stop.function, stop.sites.join(", "));
        Err(format!("the record names {file}:{line} ({kind}, {function}), the source marks {}:{}; {counts}", hang.file, hang.line))
    }

    /// Checks that a record is of this launch and complete, and names this reason.
    ///
    /// # Errors
    /// What it names instead.
    pub fn stopped(&self, record: &StopRecord, launch: u32, why: Why) -> Result<Stop, String> {
        let stop = self.describe(record);
        if (record.claimed, record.published) != (launch, launch) {
            let (claimed, published) = (record.claimed, record.published);
            return Err(format!("the record of launch {launch} is claimed by {claimed} and published by {published}"));
        }
        if stop.why != Some(word(why)) {
            return Err(format!("the record says {} instead of {}: {stop:?}", stop.why.unwrap_or("nothing"), word(why)));
        }
        Ok(stop)
    }
}

/// The reason in a word.
#[must_use]
pub fn word(why: Why) -> &'static str {
    match why {
        Why::Flag => "flag",
        Why::Deadline => "deadline",
        Why::Budget => "budget",
        Why::Fuel => "fuel",
    }
}

/// Compares all buffers of two runs, bit for bit.
///
/// # Errors
/// Names the first buffer that differs, and how.
pub fn same(left: &[Contents], right: &[Contents]) -> Result<(), String> {
    for (index, (left, right)) in left.iter().zip(right).enumerate() {
        if let Some(found) = difference(&left.bytes, &right.bytes, left.ty, left.sorted) {
            let (count, total) = (found.count, left.bytes.len() / left.ty.size());
            return Err(format!(
                "buffer {index}: {count} of {total} elements differ, element {} is {} instead of {}",
                found.first, found.right, found.left
            ));
        }
    }
    Ok(())
}
