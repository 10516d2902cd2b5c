//! The `//@` lines at the top of a kernel file; `kernels/README.md` is their specification.

use crate::buffer::{Init, Type};
use serde::{Deserialize, Serialize};

/// Which keys a file may carry, and which it must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// `kernels/*.cu`, and the probes of this crate.
    Kernel,
    /// `kernels/hang/*.cu`.
    Hang,
    /// `kernels/reject/*`.
    Reject,
    /// `kernels/bench/*.cu`.
    Bench,
}

/// How bad the diagnostic of a reject case is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is written.
    Error,
    /// Something is missing.
    Warning,
    /// Something to know.
    Note,
}

/// One parameter of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arg {
    /// A value.
    Scalar {
        /// Its type.
        ty: Type,
        /// Its bits, in the low bytes.
        bits: u64,
    },
    /// An array in device memory.
    Buffer {
        /// Type of its elements.
        ty: Type,
        /// Number of elements.
        count: usize,
        /// What it holds before the launch.
        init: Init,
        /// Whether the order of its elements means nothing.
        sorted: bool,
    },
}

impl Arg {
    /// Type of the value or of the elements, and whether it is an array; what two headers of one kernel must agree on.
    #[must_use]
    pub fn shape(&self) -> (Type, bool) {
        match self {
            Self::Scalar { ty, .. } => (*ty, false),
            Self::Buffer { ty, .. } => (*ty, true),
        }
    }
}

/// What is other in the long launch of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The grid.
    Grid([u32; 3]),
    /// The parameter of this index.
    Arg(usize, Arg),
}

/// Everything a header says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// What the file holds.
    pub about: String,
    /// The `__global__` function to launch; empty in a reject case.
    pub entry: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Whether the launch is cooperative.
    pub cooperative: bool,
    /// Parameters in order.
    pub args: Vec<Arg>,
    /// Lowest compute capability, as `75`.
    pub min_arch: u32,
    /// Lowest C++ standard, as `17`.
    pub std: u32,
    /// Further nvcc flags.
    pub flags: Vec<String>,
    /// Headers beside the file that are rewritten with it.
    pub also: Vec<String>,
    /// What stops a hang: 1 a poll, 2 a trap from outside, 3 a killed process.
    pub tier: Option<u8>,
    /// Whether `--at-exit gate` is what stops it.
    pub stuck: bool,
    /// Diagnostics that must appear.
    pub codes: Vec<String>,
    /// Their severity.
    pub severity: Option<Severity>,
    /// Whether a benchmark's launch reads what it writes, so that its buffers are filled anew before each.
    pub reset: bool,
    /// What makes a benchmark run for long on a grid that the device holds as a whole.
    pub long: Vec<Change>,
    /// Why nothing does.
    pub brief: Option<String>,
}

impl Header {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Says which line is wrong and why: an unknown key, a key that this place does not know, a key given twice, a value that can't
    /// be read, a `//@` line below the header, or a required key that is absent.
    pub fn parse(text: &str, place: Place) -> Result<Self, String> {
        let mut header = Self::empty();
        let mut seen: Vec<&str> = Vec::new();
        let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
        for (index, line) in lines.by_ref() {
            let Some(rest) = line.strip_prefix("//@") else { break };
            let (key, value) = rest.split_once(':').ok_or_else(|| format!("line {}: no colon after the key", index + 1))?;
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) && !matches!(key, "arg" | "code" | "also" | "flags" | "long") {
                return Err(format!("line {}: `{key}` is given twice", index + 1));
            }
            seen.push(key);
            header.set(key, value, place).map_err(|why| format!("line {}: {why}", index + 1))?;
        }
        if let Some((index, _)) = lines.find(|(_, line)| line.starts_with("//@")) {
            return Err(format!("line {}: a header line below the header", index + 1));
        }
        let required: &[&str] = match place {
            Place::Kernel => &["about", "entry"],
            Place::Hang => &["about", "entry", "tier"],
            Place::Reject => &["about", "code"],
            Place::Bench => &["about", "entry", if header.brief.is_some() { "brief" } else { "long" }],
        };
        if let Some(key) = required.iter().find(|key| !seen.contains(*key)) {
            return Err(format!("`{key}` is missing"));
        }
        header.check_long()?;
        Ok(header)
    }

    /// The header of the long launch, if there is one.
    #[must_use]
    pub fn long(&self) -> Option<Self> {
        let mut header = self.clone();
        for change in std::mem::take(&mut header.long) {
            match change {
                Change::Grid(grid) => header.grid = grid,
                Change::Arg(index, arg) => header.args[index] = arg,
            }
        }
        (!self.long.is_empty()).then_some(header)
    }

    /// Changes must fit the parameters that they change.
    fn check_long(&self) -> Result<(), String> {
        if self.brief.is_some() && !self.long.is_empty() {
            return Err("what is `brief` has no `long` launch".into());
        }
        for change in &self.long {
            let Change::Arg(index, arg) = change else { continue };
            match self.args.get(*index) {
                Some(own) if own.shape() == arg.shape() => {}
                Some(_) => return Err(format!("`long: arg {index}` has another type than parameter {index}")),
                None => return Err(format!("`long: arg {index}`, but there are {} parameters", self.args.len())),
            }
        }
        Ok(())
    }

    /// Threads of a whole launch.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.grid.iter().chain(&self.block).map(|&extent| u64::from(extent)).product()
    }

    fn empty() -> Self {
        Self {
            about: String::new(),
            entry: String::new(),
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            shared: 0,
            cooperative: false,
            args: Vec::new(),
            min_arch: 75,
            std: 17,
            flags: Vec::new(),
            also: Vec::new(),
            tier: None,
            stuck: false,
            codes: Vec::new(),
            severity: None,
            reset: false,
            long: Vec::new(),
            brief: None,
        }
    }

    fn set(&mut self, key: &str, value: &str, place: Place) -> Result<(), String> {
        let launched = place != Place::Reject;
        let known = match key {
            "about" => true,
            "entry" | "grid" | "block" | "cluster" | "shared" | "cooperative" | "arg" | "min-arch" | "std" | "flags" | "also" => launched,
            "tier" | "stuck" => place == Place::Hang,
            "code" | "severity" => place == Place::Reject,
            "reset" | "long" | "brief" => place == Place::Bench,
            _ => return Err(format!("unknown key `{key}`")),
        };
        if !known {
            return Err(format!("`{key}` has no meaning here"));
        }
        if value.is_empty() {
            return Err(format!("`{key}` has no value"));
        }
        match key {
            "about" => value.clone_into(&mut self.about),
            "entry" => value.clone_into(&mut self.entry),
            "grid" => self.grid = extents(value)?,
            "block" => self.block = extents(value)?,
            "cluster" => self.cluster = Some(extents(value)?),
            "shared" => self.shared = number(value)?,
            "cooperative" => self.cooperative = yes(value)?,
            "arg" => self.args.push(arg(value)?),
            "min-arch" => self.min_arch = number(value)?,
            "std" => self.std = number(value)?,
            "flags" => self.flags.extend(value.split_whitespace().map(str::to_owned)),
            "also" => self.also.push(value.to_owned()),
            "tier" => self.tier = Some(number(value).ok().filter(|tier| (1..=3).contains(tier)).ok_or("a tier is 1, 2 or 3")?),
            "stuck" => self.stuck = yes(value)?,
            "code" => self.codes.push(value.to_owned()),
            "reset" => self.reset = yes(value)?,
            "long" => self.long.push(change(value)?),
            "brief" => self.brief = Some(value.to_owned()),
            _ => {
                self.severity = Some(match value {
                    "error" => Severity::Error,
                    "warning" => Severity::Warning,
                    "note" => Severity::Note,
                    _ => return Err(format!("`{value}` is no severity")),
                });
            }
        }
        Ok(())
    }
}

fn yes(value: &str) -> Result<bool, String> {
    if value == "yes" { Ok(true) } else { Err(format!("`{value}` stands where only `yes` can")) }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{value}` is no number that fits here"))
}

fn extents(value: &str) -> Result<[u32; 3], String> {
    let mut extents = [1; 3];
    let words: Vec<&str> = value.split_whitespace().collect();
    if words.len() > 3 {
        return Err(format!("`{value}` has more than three extents"));
    }
    for (extent, word) in extents.iter_mut().zip(words) {
        *extent = number(word)?;
        if *extent == 0 {
            return Err("an extent of zero launches nothing".into());
        }
    }
    Ok(extents)
}

fn change(value: &str) -> Result<Change, String> {
    let (word, rest) = value.split_once(' ').unwrap_or((value, ""));
    match (word, rest.split_once(' ')) {
        ("grid", _) => extents(rest).map(Change::Grid),
        ("arg", Some((index, changed))) => Ok(Change::Arg(number(index)?, arg(changed)?)),
        _ => Err(format!("a change is `grid X [Y [Z]]` or `arg INDEX ARGUMENT`, not `{value}`")),
    }
}

fn arg(value: &str) -> Result<Arg, String> {
    let mut words: Vec<&str> = value.split_whitespace().collect();
    let kind = words.remove(0);
    let Some((ty, count)) = kind.split_once('[') else {
        let ty = Type::parse(kind)?;
        let [value] = words[..] else { return Err(format!("a scalar is `TYPE VALUE`, not `{value}`")) };
        return Ok(Arg::Scalar { ty, bits: ty.parse_bits(value)? });
    };
    let ty = Type::parse(ty)?;
    let count = number(count.strip_suffix(']').ok_or("a `]` is missing")?)?;
    let sorted = words.last() == Some(&"sorted");
    if sorted {
        words.pop();
    }
    Ok(Arg::Buffer { ty, count, init: Init::parse(&words, ty, count)?, sorted })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "\u{feff}//@ about: all of it\n//@ entry: f\n//@ grid: 4 2\n//@ block: 32\n//@ cluster: 2\n//@ shared: 64\n\
        //@ cooperative: yes\n//@ flags: -a -b\n//@ arg: i32 -3\n//@ arg: f32[8] rand 7\n//@ arg: u32[5] zero sorted\n\
        //@ min-arch: 90\n//@ std: 20\n//@ also: x.cuh\n//@ tier: 2\n//@ stuck: yes\n\n__global__ void f();\n";

    #[test]
    fn a_full_header_is_read() {
        let header = Header::parse(FULL, Place::Hang).expect("every key is known");
        assert_eq!((header.grid, header.block, header.cluster), ([4, 2, 1], [32, 1, 1], Some([2, 1, 1])));
        assert_eq!(header.threads(), 256);
        assert_eq!((header.flags.len(), header.shared, header.std, header.min_arch), (2, 64, 20, 90));
        assert_eq!(header.args[0], Arg::Scalar { ty: Type::I32, bits: u64::from((-3i32).cast_unsigned()) });
        assert_eq!(header.args[1].shape(), (Type::F32, true));
        assert!(matches!(header.args[2], Arg::Buffer { sorted: true, count: 5, .. }));
        assert!(header.cooperative && header.stuck);
        assert_eq!((header.tier, &header.also[..]), (Some(2), &["x.cuh".to_owned()][..]));
    }

    #[test]
    fn the_long_launch_of_a_benchmark_is_the_other_with_changes() {
        let text = "//@ about: x\n//@ entry: f\n//@ grid: 4\n//@ arg: i32 3\n//@ arg: f32[8] rand 7\n//@ reset: yes\n";
        let header =
            Header::parse(&format!("{text}//@ long: grid 9 2\n//@ long: arg 1 f32[90] zero\n"), Place::Bench).expect("it is right");
        let long = header.long().expect("there is one");
        assert_eq!((long.grid, &long.args[0]), ([9, 2, 1], &header.args[0]));
        assert!(matches!(long.args[1], Arg::Buffer { count: 90, init: Init::Zero, .. }) && long.reset && long.long.is_empty());

        assert_eq!(wrong(text, Place::Bench), "`long` is missing");
        let brief = Header::parse(&format!("{text}//@ brief: no loop\n"), Place::Bench).expect("it is right");
        assert_eq!((brief.long(), brief.brief.as_deref()), (None, Some("no loop")));
        for change in ["arg 2 i32 4", "arg 0 u32 4", "arg 0", "grid 0", "block 4"] {
            assert!(Header::parse(&format!("{text}//@ long: {change}\n"), Place::Bench).is_err(), "{change}");
        }
        assert_eq!(wrong("//@ long: grid 4\n", Place::Kernel), "line 1: `long` has no meaning here");
    }

    fn wrong(lines: &str, place: Place) -> String {
        Header::parse(lines, place).expect_err("the header is wrong")
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        assert_eq!(wrong("//@ about: x\n//@ colour: red\n", Place::Kernel), "line 2: unknown key `colour`");
    }

    #[test]
    fn a_key_of_another_place_is_an_error() {
        assert_eq!(wrong("//@ tier: 1\n", Place::Kernel), "line 1: `tier` has no meaning here");
        assert_eq!(wrong("//@ entry: f\n", Place::Reject), "line 1: `entry` has no meaning here");
    }

    #[test]
    fn what_is_missing_doubled_or_misplaced_is_an_error() {
        assert_eq!(wrong("//@ about: x\n", Place::Kernel), "`entry` is missing");
        assert_eq!(wrong("//@ about: x\n//@ about: y\n", Place::Kernel), "line 2: `about` is given twice");
        assert_eq!(wrong("//@ about: x\n//@ entry: f\n\n//@ grid: 2\n", Place::Kernel), "line 4: a header line below the header");
    }

    #[test]
    fn a_value_that_can_not_be_read_is_an_error() {
        for line in
            ["grid: 0", "grid: 1 2 3 4", "arg: i32", "arg: i32[4 zero", "arg: q8 1", "arg: f32[4] wild", "cooperative: no", "shared: -1"]
        {
            assert!(Header::parse(&format!("//@ {line}\n"), Place::Kernel).is_err_and(|why| why.starts_with("line 1")), "{line}");
        }
        assert!(wrong("//@ tier: 4\n", Place::Hang).contains("tier"));
    }
}
