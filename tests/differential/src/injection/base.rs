//! Proved texts, and what the interpreter reaches in them.

use super::same::{Verdicts, verdicts};
use cuinstr::options::Options;
use cuinstr_harness::fixtures::workspace;
use cuinstr_harness::random::Random;
use cuinstr_ptx as ptx;
use cuinstr_simulate::{Launch, Machine, Memory, Outcome, Program};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Name of the control block.
const CONTROL: &str = "cuinstr_control_v1";
/// Bytes of each buffer that a parameter may point to.
const BUFFER: usize = 1 << 14;
/// Instructions that a base may run while reached statements are noted.
const STEPS: u64 = 12_000;
/// Instructions from where a site is reached to where its guards are passed.
const AFTER: u64 = 64;

/// A proved text.
#[derive(Debug)]
pub struct Base {
    /// Where it comes from.
    pub name: String,
    /// The text.
    pub text: String,
    /// Statements that threads reach.
    pub sites: Vec<Site>,
    /// What the proof says of it.
    pub verdicts: Verdicts,
}

/// A statement that a thread of a kernel reaches.
#[derive(Debug, Clone)]
pub struct Site {
    /// The kernel.
    pub kernel: String,
    /// Number of the function that the statement stands in.
    pub function: usize,
    /// Offset of the statement.
    pub at: u32,
    /// Instructions that the launch has run when the statement is reached first.
    pub step: u64,
    /// Predicates of the function's outermost scope, with their values when the statement is reached first.
    pub predicates: Vec<(String, bool)>,
    /// Words of 32 bits, likewise.
    pub words: Vec<(String, u32)>,
    /// Whether the text declares a control block.
    pub has_control: bool,
}

/// A text for each kernel of a text, without the other kernels.
#[must_use]
pub fn split(text: &str) -> Vec<(String, String)> {
    let module = ptx::parse(text);
    let kernels = || module.functions.iter().filter(|function| function.is_kernel);
    let alone = |kept: &ptx::Function<'_>| {
        let mut edits = ptx::Edits::new();
        for other in kernels().filter(|other| other.at != kept.at) {
            edits.replace(ptx::Span { start: other.head.start, end: other.body.end }, "");
        }
        Some((kept.name.to_owned(), edits.apply(text).ok()?))
    };
    kernels().filter_map(alone).collect()
}

/// The bases of the tests: each kernel of `tests/data/ptx/strips.ptx`, and what the PTX pass makes of `tests/data/ptx/plain`.
#[must_use]
pub fn kept() -> Vec<Base> {
    let mut texts = split(include_str!("../../../data/ptx/strips.ptx"));
    for path in files(&workspace().join("tests/data/ptx/plain")) {
        let Ok(plain) = std::fs::read(&path) else { continue };
        let rewrite = cuinstr::rewrite_ptx(&plain, &Options { path: path.display().to_string(), ..Options::default() });
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        texts.extend(rewrite.output.and_then(|output| Some((name, String::from_utf8(output).ok()?))));
    }
    texts.iter().filter_map(|(name, text)| Base::new(name, text).ok()).collect()
}

/// The files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files
}

impl Base {
    /// Runs each kernel of a text.
    ///
    /// # Errors
    /// If the text is not proved, or no statement is reached.
    pub fn new(name: &str, text: &str) -> Result<Self, String> {
        let verdicts = verdicts(text);
        if !verdicts.0 {
            return Err(format!("{name} is not proved"));
        }
        let program = Program::read(text)?;
        let module = ptx::parse(text);
        let has_control = module.variables.iter().any(|variable| variable.name == CONTROL);
        let mut sites = Vec::new();
        for kernel in program.kernels() {
            let Ok(mut machine) = launch(&program, text, kernel, 4) else { continue };
            let mut reached: HashMap<(usize, u32), (u64, Vec<u64>)> = HashMap::new();
            machine.run(STEPS, &mut |moment| {
                reached.entry((moment.function, moment.at)).or_insert_with(|| (moment.step, moment.registers().to_vec()));
            });
            let mut reached: Vec<_> = reached.into_iter().collect();
            reached.sort_unstable_by_key(|(place, _)| *place);
            for ((number, at), (step, registers)) in reached {
                let Some((predicates, words)) = seen(&module.functions[number], at, &registers) else { continue };
                sites.push(Site { kernel: kernel.to_owned(), function: number, at, step, predicates, words, has_control });
            }
        }
        if sites.is_empty() {
            return Err(format!("no statement of {name} is reached"));
        }
        Ok(Self { name: name.to_owned(), text: text.to_owned(), sites, verdicts })
    }

    /// One of the sites.
    #[must_use]
    pub fn site(&self, random: &mut Random) -> &Site {
        &self.sites[random.below(self.sites.len())]
    }
}

/// Predicates and words of 32 bits, by their names.
type Seen = (Vec<(String, bool)>, Vec<(String, u32)>);

/// What guards at a statement can be made of. None for a part of a call, whose parameters ptxas wants in one piece.
fn seen(function: &ptx::Function<'_>, at: u32, registers: &[u64]) -> Option<Seen> {
    let number = function.statements.iter().position(|statement| statement.start == at)?;
    let statement = &function.statements[number];
    let mut scope = statement.scope;
    while scope != 0 {
        if function.variables.iter().any(|variable| variable.space == ".param" && variable.scope == scope) {
            return None;
        }
        scope = function.scopes[scope as usize].outer;
    }
    if statement.opcode == statement.end {
        return None;
    }
    let is_hidden = |name: &str| function.registers.iter().any(|inner| inner.scope != 0 && inner.name.starts_with(name));
    let (mut predicates, mut words, mut next) = (Vec::new(), Vec::new(), 0);
    for declared in &function.registers {
        // Registers have their numbers in the order of their declarations.
        let first = next;
        next += declared.count.unwrap_or(1) * u32::from(declared.lanes);
        let is_seen = declared.scope == 0 && declared.statement as usize <= number && !is_hidden(declared.name);
        let Some(count) = declared.count.filter(|_| is_seen && declared.lanes == 1) else { continue };
        for nth in 0..count {
            let value = *registers.get((first + nth) as usize)?;
            let name = format!("{}{nth}", declared.name);
            match declared.width {
                1 => predicates.push((name, value == 1)),
                32 if declared.kind != ".f32" => words.push((name, value as u32)),
                _ => {}
            }
        }
    }
    Some((predicates, words))
}

/// A launch of one block, with a buffer for each parameter of 64 bits and 37 for others, and an armed control block.
///
/// # Errors
/// If the interpreter can't launch it.
pub fn launch<'p>(program: &'p Program, text: &str, kernel: &str, threads: u32) -> Result<Machine<'p>, String> {
    let module = ptx::parse(text);
    let function = module.functions.iter().find(|function| function.name == kernel).ok_or("no such kernel")?;
    let mut memory = Memory::new(program);
    let mut parameters = Vec::new();
    for parameter in &function.parameters {
        parameters.push(match (parameter.kind, parameter.elements) {
            (".u64" | ".b64" | ".s64", None) => {
                let bytes = (0..BUFFER).map(|at| if at % 4 == 0 { (at / 4 % 23) as u8 } else { 0 }).collect();
                memory.allocate(bytes).to_le_bytes().to_vec()
            }
            (".u32" | ".b32" | ".s32", None) => 37_u32.to_le_bytes().to_vec(),
            (".f32", None) => 1.5_f32.to_le_bytes().to_vec(),
            (".f64", None) => 1.5_f64.to_le_bytes().to_vec(),
            (kind, elements) => return Err(format!("a parameter of type {kind}, {elements:?}")),
        });
    }
    let flag = memory.allocate(vec![0; 4]);
    if let Some(control) = memory.address(CONTROL) {
        // Threads leave: one that traps would end the launch, and with it a hang of others.
        memory.write(control + 4, 4, 1);
        memory.write(control + 8, 4, 1);
        memory.write(control + 16, 8, flag);
    }
    let launch = Launch { kernel: kernel.to_owned(), grid: [1; 3], block: [threads, 1, 1], shared: 4096, parameters };
    Machine::new(program, memory, launch)
}

/// Tells the threads of a launch to stop, as a host does.
pub fn stop(machine: &mut Machine<'_>) {
    let Some(control) = machine.memory.address(CONTROL) else { return };
    let word = |from: usize, size: usize| {
        let bytes = machine.memory.bytes(control).and_then(|bytes| bytes.get(from..from + size)).unwrap_or_default();
        bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    let (number, flag) = (word(8, 4), word(16, 8));
    machine.memory.write(flag, 4, number);
}

/// What shows that a text hangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// It still runs long after the flag was written.
    Runs,
    /// It came to an end.
    Ends,
    /// The site was not reached.
    NotReached,
    /// The interpreter can't tell.
    Unknown(String),
}

/// Runs a text a little beyond the step at which a part of it is reached first. Then tells the launch to stop, and runs
/// on for so many instructions.
#[must_use]
pub fn watch(text: &str, kernel: &str, step: u64, part: Range<u32>, more: u64) -> Shown {
    let program = match Program::read(text) {
        Ok(program) => program,
        Err(why) => return Shown::Unknown(why),
    };
    let mut machine = match launch(&program, text, kernel, 4) {
        Ok(machine) => machine,
        Err(why) => return Shown::Unknown(why),
    };
    let mut reached = false;
    let mut outcome = machine.run(step + AFTER, &mut |moment| reached |= part.contains(&moment.at));
    if outcome.is_none() {
        if !reached {
            return Shown::NotReached;
        }
        stop(&mut machine);
        outcome = machine.run(machine.steps + more, &mut |_| ());
    }
    match outcome {
        None => Shown::Runs,
        // A recursion that hardware ends by a fault, at a depth that depends on its memory.
        Some(Outcome::Fault(_, why)) if why == "the stack is full" => Shown::Runs,
        Some(Outcome::Completed | Outcome::Trapped(_) | Outcome::Deadlock) => Shown::Ends,
        Some(Outcome::Fault(_, why) | Outcome::NotSimulated(_, why)) => Shown::Unknown(why),
    }
}
