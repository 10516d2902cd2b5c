//! What a candidate is measured by: a reference kernel, its launch, its test cases. Read from TOML, or the same as JSON.
//!
//! ```toml
//! reference = "scale.cu"                  # relative to this file
//! kernel = "scale"                        # its name as declared, or an expression such as "scale<float>" with `instantiate`
//! grid = [4]                              # of every case that says no other
//! block = [256]
//!
//! [compile]                               # all of it may be left out
//! with = "nvrtc"                          # or "nvcc"
//! options = ["--std=c++17", "--fmad=false"]
//!
//! [limits]                                # likewise
//! factor = 10                             # times what the reference takes, of time and of fuel
//!
//! [[case]]
//! name = "a thousand"
//! arguments = [
//!     { in = "f32", count = 1000, random = [-1, 1], seed = 7 },
//!     { out = "f32", count = 1000, relative = 1e-6 },
//!     { i32 = 1000 },
//! ]
//! ```
//!
//! `docs/EVALUATE.md` says all of it.

use crate::data::{self, Filling, Number, Tolerance, Type};
use crate::headers::Headers;
use crate::journal::Conditions;
use crate::{Candidate, Error, Result};
use cuinstr_abi::sites::hash;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A reference kernel, its launch and its test cases.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Spec {
    /// The file that it was read from.
    pub path: PathBuf,
    /// The folder that stands for `/` in its absolute paths: another one where its files were shipped to.
    pub root: PathBuf,
    /// The files of data that it names.
    pub data: Vec<PathBuf>,
    /// Path of the reference.
    pub reference: PathBuf,
    /// The reference's text.
    pub source: String,
    /// Name of the kernel.
    pub kernel: String,
    /// Whether the name is an expression to instantiate a template by.
    pub instantiate: bool,
    /// How candidates are compiled.
    pub compile: Compile,
    /// What a candidate may take.
    pub limits: LimitRules,
    /// The test cases, at least one.
    pub cases: Vec<Case>,
}

/// How candidates are compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Compile {
    /// By which compiler.
    pub with: With,
    /// Its options.
    pub options: Vec<String>,
    /// Folders that headers lie in, relative to the specification.
    pub include: Vec<PathBuf>,
    /// Whether loops poll in each iteration.
    pub polls_each: bool,
}

/// A compiler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum With {
    /// NVRTC, in the helper's own process.
    #[default]
    Nvrtc,
    /// nvcc, of `CUDA_HOME` or the search path.
    Nvcc,
}

/// What a candidate may take, as multiples of what the reference takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct LimitRules {
    /// Times the reference's own time, and times its fuel.
    pub factor: f64,
    /// Seconds that a candidate has in any case.
    pub least_time: f64,
    /// Iterations of a thread that it has in any case.
    pub least_fuel: u64,
    /// Times the time limit that a candidate has where fuel is what limits it: what no fuel counts ends there.
    pub net: f64,
    /// Seconds that a candidate has to leave once it was told to. The driver has as long to tell of a fault, which may
    /// take it more than half a second; then its process is killed.
    pub grace: f64,
    /// Seconds that the reference may take.
    pub reference: f64,
    /// Seconds that one compilation may take.
    pub compile: f64,
}

impl Default for LimitRules {
    fn default() -> Self {
        Self { factor: 10.0, least_time: 0.01, least_fuel: 1000, net: 10.0, grace: 1.0, reference: 60.0, compile: 60.0 }
    }
}

/// One launch on given data.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// Whether it is launched cooperatively.
    pub cooperative: bool,
    /// The kernel's arguments.
    pub arguments: Vec<Argument>,
}

/// One argument of a launch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Argument {
    /// The bytes of a value.
    Value(Vec<u8>),
    /// Device memory.
    Memory(Memory),
}

/// Device memory that a kernel is given.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Memory {
    /// What it holds when the kernel begins.
    pub contents: Vec<u8>,
    /// Of what type its elements are.
    pub element: Type,
    /// How it is compared afterwards; `None` if nobody looks.
    pub compared: Option<Tolerance>,
}

impl Spec {
    /// Reads a specification: JSON if its name ends so, else TOML.
    ///
    /// # Errors
    /// If it, the reference, or a file of data can't be read, or it makes no sense; the message says what, and where.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_below(Path::new("/"), path)
    }

    /// The same, of files that were shipped: absolute paths in it are relative to `root`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_below(root: &Path, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
        let wrong = |what: String| Error::Spec { path: path.to_owned(), what };
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let written: Written = if is_json {
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
        } else {
            toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?
        };
        written.read(&Place { root, path })
    }

    /// Where a path that the specification names lies.
    pub(crate) fn located(&self, named: &Path) -> PathBuf {
        Place { root: &self.root, path: &self.path }.located(named)
    }

    /// All files that judging these candidates takes: the specification, the reference, data, and headers but for the toolkit's. An engine ships
    /// them to other machines.
    #[must_use]
    pub fn files(&self, candidates: &[Candidate]) -> BTreeSet<PathBuf> {
        let mut headers = Headers::of(self);
        let sources = candidates.iter().map(|candidate| (Path::new(&candidate.path), &*candidate.source));
        let sources = sources.chain([(self.reference.as_path(), self.source.as_bytes())]);
        let included: BTreeSet<PathBuf> = sources.flat_map(|(path, source)| headers.files(path, source)).collect();
        [&self.path, &self.reference].into_iter().chain(&self.data).cloned().chain(included).collect()
    }

    /// What two evaluations must share for the verdicts of one to be those of the other, by name.
    pub(crate) fn conditions(&self) -> Conditions {
        let number = |parts: &[&[u8]]| {
            let hash = |sum: u64, part: &&[u8]| hash(hash(sum, &part.len().to_le_bytes()), part);
            format!("{:016x}", parts.iter().fold(0, hash))
        };
        let mut data: Vec<Vec<u8>> = Vec::new();
        for case in &self.cases {
            let Case { name, grid, block, shared, cooperative, arguments } = case;
            data.push(format!("{name} {grid:?} {block:?} {shared} {cooperative}").into_bytes());
            for argument in arguments {
                match argument {
                    Argument::Value(bytes) => data.push(bytes.clone()),
                    Argument::Memory(memory) => {
                        data.push(format!("{:?} {:?}", memory.element, memory.compared).into_bytes());
                        data.push(memory.contents.clone());
                    }
                }
            }
        }
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let headers = Headers::of(self).hash(&self.reference, self.source.as_bytes());
        let Compile { with, options, include, polls_each } = &self.compile;
        let conditions = [
            ("reference", number(&[self.source.as_bytes()])),
            ("headers of the reference", format!("{headers:016x}")),
            ("kernel", format!("{}{}", self.kernel, if self.instantiate { " (instantiated)" } else { "" })),
            ("compiler's options", format!("{with:?} {options:?} {include:?}{}", if *polls_each { " polls-each" } else { "" })),
            ("[limits]", format!("{:?}", self.limits)),
            ("test cases", number(&data)),
        ];
        conditions.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl LimitRules {
    fn check(&self) -> std::result::Result<(), String> {
        let Self { factor, least_time, net, grace, reference, compile, .. } = *self;
        let within = |name: &str, value: f64, least: f64, most: f64| {
            let fits = value >= least && value <= most;
            if fits { Ok(()) } else { Err(format!("[limits] {name} = {value}: it must be from {least} to {most}")) }
        };
        within("factor", factor, 1.0, 1e6)?;
        within("least-time", least_time, 1e-4, 3600.0)?;
        within("net", net, 1.0, 1e6)?;
        within("grace", grace, 1e-3, 60.0)?;
        within("reference", reference, 1e-3, 86400.0)?;
        within("compile", compile, 0.1, 86400.0)
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs_f64(self.grace)
    }
}

/// A specification's place: what its paths are relative to.
struct Place<'a> {
    root: &'a Path,
    path: &'a Path,
}

impl Place<'_> {
    fn located(&self, named: &Path) -> PathBuf {
        match named.strip_prefix("/") {
            Ok(below) => self.root.join(below),
            Err(_) => self.path.parent().unwrap_or(Path::new("")).join(named),
        }
    }
}

// As it is written.

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    reference: PathBuf,
    kernel: String,
    #[serde(default)]
    instantiate: bool,
    grid: Option<Vec<u32>>,
    block: Option<Vec<u32>>,
    #[serde(default)]
    shared: u32,
    #[serde(default)]
    cooperative: bool,
    #[serde(default)]
    compile: Compile,
    #[serde(default)]
    limits: LimitRules,
    #[serde(default, rename = "case")]
    cases: Vec<WrittenCase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    name: Option<String>,
    grid: Option<Vec<u32>>,
    block: Option<Vec<u32>>,
    shared: Option<u32>,
    cooperative: Option<bool>,
    arguments: Vec<WrittenArgument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenArgument {
    r#in: Option<Type>,
    out: Option<Type>,
    inout: Option<Type>,
    count: Option<usize>,
    fill: Option<Number>,
    range: Option<[Number; 2]>,
    random: Option<[Number; 2]>,
    seed: Option<u64>,
    values: Option<Vec<Number>>,
    file: Option<PathBuf>,
    absolute: Option<f64>,
    relative: Option<f64>,
    i8: Option<Number>,
    i16: Option<Number>,
    i32: Option<Number>,
    i64: Option<Number>,
    u8: Option<Number>,
    u16: Option<Number>,
    u32: Option<Number>,
    u64: Option<Number>,
    f32: Option<Number>,
    f64: Option<Number>,
    bool: Option<bool>,
}

impl Written {
    fn read(self, place: &Place<'_>) -> Result<Spec> {
        let path = place.path;
        let wrong = |what: String| Error::Spec { path: path.to_owned(), what };
        self.limits.check().map_err(wrong)?;
        if self.cases.is_empty() {
            return Err(wrong("there is no [[case]]: what a kernel answers is only known on some data".into()));
        }
        if self.kernel.trim().is_empty() {
            return Err(wrong("`kernel` is empty: name the kernel as it is declared".into()));
        }
        if self.instantiate && self.compile.with == With::Nvcc {
            return Err(wrong("`instantiate` needs NVRTC: leave out `with`, or instantiate the template in the source".into()));
        }
        let reference = place.located(&self.reference);
        let source = std::fs::read_to_string(&reference).map_err(Error::file(&reference))?;
        let mut cases: Vec<Case> = Vec::with_capacity(self.cases.len());
        let mut data = Vec::new();
        for (index, written) in self.cases.into_iter().enumerate() {
            let name = written.name.unwrap_or_else(|| (index + 1).to_string());
            if cases.iter().any(|case| case.name == name) {
                return Err(wrong(format!("there are two cases named {name:?}")));
            }
            let wrong = |what: String| Error::Spec { path: path.to_owned(), what: format!("case {name:?}: {what}") };
            let extents = |own: Option<Vec<u32>>, of_all: &Option<Vec<u32>>, what: &str| {
                let given = own.or_else(|| of_all.clone()).ok_or_else(|| format!("no `{what}` is given, here or for all"))?;
                extents(&given, what)
            };
            let mut arguments = Vec::with_capacity(written.arguments.len());
            for (index, argument) in written.arguments.into_iter().enumerate() {
                data.extend(argument.file.as_deref().map(|file| place.located(file)));
                arguments.push(argument.read(place).map_err(|error| match error {
                    Failure::Wrong(what) => wrong(format!("argument {index}: {what}")),
                    Failure::File(error) => error,
                })?);
            }
            let case = Case {
                grid: extents(written.grid, &self.grid, "grid").map_err(wrong)?,
                block: extents(written.block, &self.block, "block").map_err(wrong)?,
                shared: written.shared.unwrap_or(self.shared),
                cooperative: written.cooperative.unwrap_or(self.cooperative),
                arguments,
                name: name.clone(),
            };
            if case.block.iter().map(|extent| u64::from(*extent)).product::<u64>() > 1024 {
                return Err(wrong(format!("a block of {:?} has more than 1024 threads", case.block)));
            }
            if !case.memory().any(|(_, memory)| memory.compared.is_some()) {
                return Err(wrong("nothing is compared: give an argument that is `out` or `inout`".into()));
            }
            cases.push(case);
        }
        let (kernel, instantiate, compile, limits) = (self.kernel, self.instantiate, self.compile, self.limits);
        Ok(Spec {
            path: path.to_owned(),
            root: place.root.to_owned(),
            data,
            reference,
            source,
            kernel,
            instantiate,
            compile,
            limits,
            cases,
        })
    }
}

impl Case {
    /// Its memory, with the argument's number.
    pub(crate) fn memory(&self) -> impl Iterator<Item = (usize, &Memory)> {
        self.arguments.iter().enumerate().filter_map(|(index, argument)| match argument {
            Argument::Memory(memory) => Some((index, memory)),
            Argument::Value(_) => None,
        })
    }
}

fn extents(given: &[u32], what: &str) -> std::result::Result<[u32; 3], String> {
    if given.is_empty() || given.len() > 3 || given.contains(&0) {
        return Err(format!("`{what}` has one to three extents, none of them zero, not {given:?}"));
    }
    let at = |index: usize| given.get(index).copied().unwrap_or(1);
    Ok([at(0), at(1), at(2)])
}

enum Failure {
    Wrong(String),
    File(Error),
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

impl From<&str> for Failure {
    fn from(what: &str) -> Self {
        Self::Wrong(what.into())
    }
}

impl WrittenArgument {
    fn read(self, place: &Place<'_>) -> std::result::Result<Argument, Failure> {
        let memory = [self.r#in, self.out, self.inout];
        let values = [
            (Type::I8, self.i8),
            (Type::I16, self.i16),
            (Type::I32, self.i32),
            (Type::I64, self.i64),
            (Type::U8, self.u8),
            (Type::U16, self.u16),
            (Type::U32, self.u32),
            (Type::U64, self.u64),
            (Type::F32, self.f32),
            (Type::F64, self.f64),
            (Type::U8, self.bool.map(|value| Number::Int(value.into()))),
        ];
        let mut given = values.into_iter().filter_map(|(element, value)| Some((element, value?)));
        let (first, second) = (given.next(), given.next());
        let kinds = memory.iter().flatten().count() + usize::from(first.is_some()) + usize::from(second.is_some());
        if kinds != 1 {
            return Err("it is one of `in`, `out` and `inout` with a type, or one value such as `i32 = 5`".into());
        }
        let fillings = [self.fill.is_some(), self.range.is_some(), self.random.is_some(), self.values.is_some(), self.file.is_some()];
        let fillings = fillings.iter().filter(|given| **given).count();
        if let Some((element, value)) = first {
            let others = fillings > 0 || self.count.is_some() || self.seed.is_some() || self.absolute.is_some() || self.relative.is_some();
            if others {
                return Err("a value stands alone: what else is said is of memory".into());
            }
            return Ok(Argument::Value(data::bytes(element, &[value])?));
        }
        let (Some(element), is_in, is_out) = (memory.into_iter().flatten().next(), self.r#in.is_some(), self.out.is_some()) else {
            return Err("it has no type".into());
        };
        if is_out && fillings > 0 {
            return Err("what `out` memory holds before does not count, it is filled with ones; say `inout` for what is read, too".into());
        }
        if !is_out && fillings != 1 {
            return Err("say what it holds by one of `fill`, `range`, `random`, `values` and `file`".into());
        }
        if self.seed.is_some() && self.random.is_none() {
            return Err("a `seed` is of `random`".into());
        }
        if is_in && (self.absolute.is_some() || self.relative.is_some()) {
            return Err("`in` memory is not compared, so it has no tolerance".into());
        }
        let filling = match (self.fill, self.range, self.random, self.values, self.file) {
            (Some(value), ..) => Filling::Constant(value),
            (_, Some([start, step]), ..) => Filling::Range(start, step),
            (_, _, Some([low, high]), ..) => Filling::Random { low, high, seed: self.seed.unwrap_or(0) },
            (_, _, _, Some(values), _) => Filling::Values(values),
            (.., Some(file)) => {
                let file = place.located(&file);
                Filling::Bytes(std::fs::read(&file).map_err(|error| Failure::File(Error::file(file)(error)))?)
            }
            _ => Filling::Marks,
        };
        let contents = filling.contents(element, self.count)?;
        let compared = if is_in { None } else { Some(Tolerance::new(element, self.absolute, self.relative)?) };
        Ok(Argument::Memory(Memory { contents, element, compared }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> std::result::Result<Spec, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.cu"), "__global__ void k(float* x, int n) {}").unwrap();
        std::fs::write(folder.path().join("x.bin"), [0, 0, 128, 63]).unwrap();
        let path = folder.path().join("spec.toml");
        std::fs::write(&path, body).unwrap();
        Spec::read(&path).map_err(|error| error.to_string().replace(&folder.path().display().to_string(), ""))
    }

    const HEAD: &str = "reference = \"k.cu\"\nkernel = \"k\"\ngrid = [2, 3]\nblock = [32]\n";

    #[test]
    fn a_specification_says_launch_data_and_limits() {
        let spec = read(&format!(
            "{HEAD}[limits]\nfactor = 3\n[[case]]\narguments = [{{ in = \"f32\", file = \"x.bin\" }}, {{ out = \"f32\", count = 2 }}, {{ i32 = -1 }}]\n\
             [[case]]\nname = \"b\"\ngrid = [7]\narguments = [{{ inout = \"u8\", values = [1, 2], }}, {{ bool = true }}]\n"
        ))
        .unwrap();
        assert_eq!((spec.cases.len(), spec.cases[0].grid, spec.cases[1].grid), (2, [2, 3, 1], [7, 1, 1]));
        assert_eq!((spec.cases[0].name.as_str(), spec.limits.factor, spec.limits.net), ("1", 3.0, 10.0));
        let Argument::Memory(memory) = &spec.cases[0].arguments[0] else { panic!("memory") };
        assert_eq!((&memory.contents[..], memory.compared.is_none()), (&1.0_f32.to_le_bytes()[..], true));
        let Argument::Memory(memory) = &spec.cases[0].arguments[1] else { panic!("memory") };
        assert!(memory.contents.chunks(4).all(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()).is_nan()));
        let Argument::Value(bytes) = &spec.cases[0].arguments[2] else { panic!("a value") };
        assert_eq!(bytes, &[0xff; 4]);
    }

    #[test]
    fn a_wrong_specification_says_what_and_where() {
        let case = |arguments: &str| format!("{HEAD}[[case]]\narguments = [{arguments}]\n");
        for (body, wanted) in [
            (HEAD.to_owned(), "there is no [[case]]"),
            (format!("{HEAD}grids = 3\n"), "unknown field `grids`"),
            (case("{ i32 = 1 }"), "case \"1\": nothing is compared"),
            (case("{ in = \"f32\", count = 3 }"), "argument 0: say what it holds"),
            (case("{ i32 = 1, f32 = 2 }"), "argument 0: it is one of `in`, `out` and `inout`"),
            (case("{ i32 = 1, count = 2 }"), "a value stands alone"),
            (case("{ out = \"f32\", count = 3, fill = 0 }"), "say `inout`"),
            (case("{ out = \"f33\", count = 3 }"), "f33"),
            (case("{ out = \"f32\" }"), "say how many elements by `count`"),
            (case("{ i8 = 200 }"), "200 is no i8"),
            (case("{ in = \"i32\", values = [1.5] }"), "1.5 is no i32"),
            (case("{ in = \"i32\", values = [1], count = 2 }"), "1 elements are given, and `count` says 2"),
            (case("{ in = \"f64\", file = \"x.bin\" }"), "4 bytes are no whole number of f64"),
            (case("{ in = \"f32\", file = \"y.bin\" }"), "y.bin: No such file"),
            (case("{ out = \"i32\", count = 3, relative = 0.1 }"), "a tolerance is of fractions"),
            (format!("{HEAD}[limits]\nfactor = 0.5\n"), "factor = 0.5: it must be from 1"),
            (case("{ out = \"f32\", count = 1 }").replace("[32]", "[64, 32]"), "more than 1024 threads"),
            (case("{ out = \"f32\", count = 1 }").replace("[2, 3]", "[0]"), "`grid` has one to three extents"),
            (case("{ out = \"f32\", count = 1 }").replace("k.cu", "none.cu"), "none.cu: No such file"),
        ] {
            let said = read(&body).expect_err(&body);
            assert!(said.contains(wanted), "{body}\nsaid {said}");
        }
    }

    #[test]
    fn what_changes_a_verdict_changes_a_condition() {
        let body = format!("{HEAD}[[case]]\narguments = [{{ inout = \"f32\", count = 2, random = [0, 1] }}, {{ i32 = 4 }}]\n");
        let conditions = |body: &str| read(body).unwrap().conditions();
        assert_eq!(conditions(&body), conditions(&body));
        for (from, to) in
            [("[2, 3]", "[3, 2]"), ("i32 = 4", "i32 = 5"), ("random = [0, 1]", "random = [0, 1], seed = 1"), ("count = 2", "count = 3")]
        {
            let (before, after) = (conditions(&body), conditions(&body.replace(from, to)));
            let changed: Vec<&String> = before.keys().filter(|name| before[*name] != after[*name]).collect();
            assert_eq!(changed, ["test cases"], "{from}");
        }
    }
}
