//! The same programs as PTX: nvcc compiles them plainly, and the PTX pass's output must do on the interpreter what the plain text does there.
//!
//! The plain PTX is what counts, so what C++ leaves undefined does no harm. A program is one thread, whose trace is hashed.

use super::generate;
use super::program::{Mode, Program};
use cuinstr::options::{Options, Polls};
use cuinstr::rewrite_ptx;
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_simulate::{Launch, Machine, Memory, Outcome};
use rayon::prelude::*;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;

/// Programs in one translation unit: nvcc takes a second for the unit and a twentieth for each program.
const BATCH: u64 = 50;

/// Iterations of a program, and instructions that the interpreter runs of it.
const MOST_ITERATIONS: u32 = 2_000;
const STEPS: u64 = 4_000_000;

/// Sets of arguments.
const SETS: u32 = 2;

/// Where a program's trace is kept: hash, ticks, budget, and whether it was cut.
const TRACE: &str = "did";

const HOOKS: &str = "#include <cstdint>\n#include <limits.h>\n#define __host__\n\
struct trace { unsigned long long hash, ticks, budget, is_cut; };\nextern \"C\" { __device__ trace did; }\n\
static __device__ unsigned long long mixed(unsigned long long hash, unsigned long long value) { return (hash ^ value) * 0x100000001b3ull + (hash >> 47); }\n\
static __device__ bool __stwt(int site, int) {\n  if (did.ticks == did.budget) {\n    did.is_cut = 1;\n    asm volatile(\"exit;\" ::: \"memory\");\n    \
__builtin_unreachable();\n  }\n  ++did.ticks;\n  did.hash = mixed(did.hash, (unsigned long long)site * 2u + 1u);\n  return true;\n}\n\
template <class T> static __device__ void __stcg(int place, T value) { did.hash = mixed(mixed(did.hash, (unsigned long long)place * 2u), (unsigned long long)value); }\n\
static __device__ bool tick(int site) { return __stwt(site, 0); }\n\
template <class T> static __device__ void put(int place, T value) { __stcg(place, value); }\n";

/// Something done to the pass's output, which the comparison must notice.
pub type Fault = fn(&str) -> String;

/// What came of programs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compared {
    /// Runs of plain programs that were compared with as many of each form.
    pub runs: u64,
    /// Runs whose plain program the interpreter can't run to its end, or that nvcc refuses.
    pub left_out: u64,
    /// What differs: seed, arguments, form.
    pub different: Vec<String>,
}

/// Compares the programs of these seeds with what the pass makes of them.
///
/// # Errors
/// If nvcc can't be run, or the pass refuses a text.
pub fn compare(nvcc: &Nvcc, seeds: Range<u64>, fault: Option<Fault>) -> Result<Compared, String> {
    let batches: Vec<Range<u64>> = seeds.clone().step_by(BATCH as usize).map(|first| first..(first + BATCH).min(seeds.end)).collect();
    let all: Vec<Compared> = batches.into_par_iter().map(|seeds| of_batch(nvcc, seeds, fault)).collect::<Result<_, _>>()?;
    Ok(all.into_iter().fold(Compared::default(), |mut sum, one| {
        sum.runs += one.runs;
        sum.left_out += one.left_out;
        sum.different.extend(one.different);
        sum
    }))
}

fn of_batch(nvcc: &Nvcc, seeds: Range<u64>, fault: Option<Fault>) -> Result<Compared, String> {
    let programs: Vec<Program> = seeds.map(generate::program).collect();
    let plain = match compile(nvcc, &programs) {
        Ok(plain) => plain,
        // One that nvcc does not take must not hide the others.
        Err(_) if programs.len() > 1 => {
            return programs.iter().try_fold(Compared::default(), |mut sum, program| {
                let one = of_batch(nvcc, program.seed..program.seed + 1, fault)?;
                sum.runs += one.runs;
                sum.left_out += one.left_out;
                sum.different.extend(one.different);
                Ok(sum)
            });
        }
        Err(_) => return Ok(Compared { left_out: u64::from(SETS), ..Compared::default() }),
    };
    let mut forms = Vec::new();
    for polls in [Polls::Amortised, Polls::Each] {
        let options = Options { path: "batch.ptx".to_owned(), polls, ..Options::default() };
        let output = rewrite_ptx(plain.as_bytes(), &options).output.ok_or("the pass refuses a text of nvcc's")?;
        let text = String::from_utf8(output).map_err(|error| error.to_string())?;
        let text = fault.map_or_else(|| text.clone(), |fault| fault(&text));
        forms.push((polls, cuinstr_simulate::Program::read(&text)?));
    }
    let plain = cuinstr_simulate::Program::read(&plain)?;
    let mut compared = Compared::default();
    for program in &programs {
        for set in 0..SETS {
            let before = run(&plain, program, set)?;
            if !matches!(before, Some(Left::Ended(..))) {
                compared.left_out += 1;
                continue;
            }
            compared.runs += 1;
            for (polls, form) in &forms {
                let after = run(form, program, set)?;
                if after != before {
                    compared.different.push(format!("seed {}, arguments {set}, {polls:?}: {after:?}, not {before:?}", program.seed));
                }
            }
        }
    }
    Ok(compared)
}

fn compile(nvcc: &Nvcc, programs: &[Program]) -> Result<String, String> {
    let mut text = HOOKS.to_owned();
    for program in programs {
        let _ = write!(text, "namespace p{} {{\n{}", program.seed, program.text(Mode::Plain));
        for name in &program.macros {
            let _ = writeln!(text, "#undef {name}");
        }
        text.push_str("}\n");
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let source = folder.path().join("batch.cu");
    fs::write(&source, text).map_err(|error| error.to_string())?;
    let output = folder.path().join("batch.ptx");
    let words = ["-ptx", "-arch=sm_90", "-w", "-std=c++17", "--expt-relaxed-constexpr", "-o"].map(OsStr::new);
    let finished = nvcc.run(words.into_iter().chain([output.as_os_str(), source.as_os_str()]))?;
    if !finished.success() {
        return Err(finished.stderr);
    }
    fs::read_to_string(&output).map_err(|error| error.to_string())
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    /// The trace and the memory that `p` points to.
    Ended([u64; 2], Vec<u8>),
    /// Otherwise.
    Otherwise(String),
}

/// One run; none if the module has no such kernel.
fn run(module: &cuinstr_simulate::Program, program: &Program, set: u32) -> Result<Option<Left>, String> {
    let scope = format!("p{}1k", program.seed);
    let Some(kernel) = module.kernels().find(|name| name.contains(&scope)).map(str::to_owned) else { return Ok(None) };
    let mut memory = Memory::new(module);
    let trace = memory.address(TRACE).ok_or("there is no trace")?;
    let mut random = Random(program.seed.wrapping_mul(8).wrapping_add(u64::from(set)));
    let words = random.words();
    let numbers = memory.allocate(words);
    let words = [0xcbf2_9ce4_8422_2325, 0, u64::from(program.budget.min(MOST_ITERATIONS)), 0];
    for (at, word) in (0..).step_by(8).zip(words) {
        memory.write(trace + at, 8, word);
    }
    // The kernel's n, u, w, s and b, in this order.
    let parameters = vec![
        (random.number() as i32).to_le_bytes().to_vec(),
        (random.number() as i32).to_le_bytes().to_vec(),
        random.number().to_le_bytes().to_vec(),
        (random.step() as i32).to_le_bytes().to_vec(),
        vec![random.number().to_le_bytes()[0]],
        numbers.to_le_bytes().to_vec(),
    ];
    let mut machine = Machine::new(module, memory, Launch { kernel, grid: [1; 3], block: [1; 3], shared: 0, parameters })?;
    let outcome = machine.run(STEPS, &mut |_| ());
    if outcome != Some(Outcome::Completed) {
        return Ok(Some(Left::Otherwise(format!("{outcome:?}"))));
    }
    let bytes = machine.memory.bytes(trace).unwrap_or_default();
    let word = |at: usize| bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    Ok(Some(Left::Ended([word(0), word(8)], machine.memory.bytes(numbers).unwrap_or_default().to_vec())))
}

/// Arguments of a run, as `tests/data/differential/arguments.h` has them.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn number(&mut self) -> i64 {
        const SPECIAL: [i64; 18] =
            [0, 1, -1, 2, 7, 16, 127, 128, 255, 256, 32767, 65535, 65536, 100_000, 0x7fff_ffff, -0x8000_0000, 0x8000_0000, 0xffff_ffff];
        match self.next() % 8 {
            0..5 => (self.next() % 24).cast_signed(),
            5 => (self.next() % 7).cast_signed() - 3,
            _ => SPECIAL[(self.next() % SPECIAL.len() as u64) as usize],
        }
    }

    fn step(&mut self) -> i64 {
        const STEPS: [i64; 11] = [0, 1, 1, 1, 2, 2, 3, -1, -2, 5, 16];
        STEPS[(self.next() % STEPS.len() as u64) as usize]
    }

    /// 64 numbers, two of them zeros: searches end there.
    fn words(&mut self) -> Vec<u8> {
        let mut words: Vec<u32> = (0..64).map(|_| (self.next() % 32) as u32).collect();
        words[12 + (self.next() % 8) as usize] = 0;
        words[63] = 0;
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }
}
