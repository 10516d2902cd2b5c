//! What a kernel takes of a multiprocessor, as its compiler says, and what rewriting adds to it.

use crate::cubin;
use crate::fixtures::Fixture;
use crate::nvcc::{ARCH, Nvcc};
use crate::occupancy;
use crate::sass::{self, Loop};
use crate::unit::Unit;
use crate::variant::{self, Rewriting, Variant};
use cuinstr::options::Options;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What one build takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes that a thread spills: stores and loads, as instructions in the text, each once.
    pub spills: u32,
    /// Bytes of a thread's stack.
    pub stack: u32,
    /// Bytes of a block's shared memory, what the launch adds included.
    pub shared: u32,
    /// Blocks that a multiprocessor holds.
    pub blocks: u32,
    /// Instructions of the kernel.
    pub instructions: usize,
    /// Its innermost loops.
    pub innermost: Vec<Loop>,
}

/// A benchmark with its builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Blocks of its long launch, if it has one.
    pub long_blocks: Option<u64>,
    /// What each build takes, in the order in which they were asked for.
    pub builds: Vec<(&'static str, Usage)>,
}

/// Compiles each fixture in each variant.
///
/// # Errors
/// What a compiler or the rewriter refused, one a line.
pub fn measure(nvcc: &Nvcc, fixtures: &[Fixture], variants: &[Variant], jobs: usize) -> Result<Vec<Row>, String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build().map_err(|error| error.to_string())?;
    let row = |fixture: &Fixture| {
        let build = |variant: &Variant| {
            let told = |why: String| format!("{}, {}: {why}", fixture.name, variant.name);
            Ok((variant.name, usage(nvcc, fixture, *variant).map_err(told)?))
        };
        let long_blocks = fixture.header.long().map(|long| long.grid.iter().map(|&extent| u64::from(extent)).product());
        let builds = variants.par_iter().map(build).collect::<Result<_, String>>()?;
        Ok(Row { name: fixture.name.clone(), long_blocks, builds })
    };
    let rows: Vec<Result<Row, String>> = pool.install(|| fixtures.par_iter().map(row).collect());
    let errors: Vec<String> = rows.iter().filter_map(|row| row.as_ref().err().cloned()).collect();
    if errors.is_empty() { rows.into_iter().collect() } else { Err(errors.join("\n")) }
}

/// What the options of a variant's rewriting are.
#[must_use]
pub fn options(rewriting: Rewriting) -> Options {
    Options { polls: rewriting.polls, at_exit: rewriting.at_exit, limits: rewriting.limits, ..Options::default() }
}

fn usage(nvcc: &Nvcc, fixture: &Fixture, variant: Variant) -> Result<Usage, String> {
    let header = &fixture.header;
    let mut unit = Unit::plain(fixture)?;
    if let Some(rewriting) = variant.rewriting {
        unit = unit.rewrite(&options(rewriting))?;
    }
    let compiled = unit.nvcc(nvcc, &["-cubin", &format!("-arch={ARCH}"), "-Xptxas", "-v"])?;
    if !compiled.accepted {
        return Err(compiled.said);
    }
    let symbol = cubin::entry_symbol(&compiled.image, &header.entry)?;
    let said = said_of(&compiled.said, &symbol)?;
    let code = sass::read(cubin::function(&compiled.image, &symbol)?)?;
    let shared = said.shared + header.shared;
    let threads = header.block.iter().product();
    Ok(Usage {
        registers: said.registers,
        spills: said.spills,
        stack: said.stack,
        shared,
        blocks: occupancy::blocks(threads, said.registers, shared),
        instructions: code.instructions,
        innermost: code.innermost,
    })
}

/// What `ptxas -v` says of one kernel.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    registers: u32,
    spills: u32,
    stack: u32,
    shared: u32,
}

fn said_of(text: &str, symbol: &str) -> Result<Said, String> {
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains(&format!("Compiling entry function '{symbol}'"))).collect();
    let own = &lines[..lines.iter().skip(1).position(|line| line.contains("Compiling entry function")).map_or(lines.len(), |at| at + 1)];
    // Behind `Function properties for` stand the figures of that function; a kernel's callees have some of their own.
    let properties = own.iter().position(|line| line.ends_with(&format!("Function properties for {symbol}")));
    let properties = properties.and_then(|at| own.get(at + 1)).ok_or_else(|| format!("ptxas says nothing of {symbol}: {text}"))?;
    let used = own.iter().find(|line| line.contains("Used ")).ok_or_else(|| format!("ptxas does not say what {symbol} uses: {text}"))?;
    let number = |line: &str, unit: &str| {
        let part = line.split(", ").find(|part| part.trim_end().ends_with(unit))?;
        part.trim_end().strip_suffix(unit)?.trim().rsplit(' ').next()?.parse::<u32>().ok()
    };
    let registers = number(used, "registers").ok_or_else(|| format!("no registers are named in `{used}`"))?;
    let bytes = |unit: &str| number(properties, unit).ok_or_else(|| format!("no {unit} are named in `{properties}`"));
    Ok(Said {
        registers,
        spills: bytes("bytes spill stores")? + bytes("bytes spill loads")?,
        stack: bytes("bytes stack frame")?,
        shared: number(used, "bytes smem").unwrap_or(0),
    })
}

impl Row {
    /// What the plain build has over another: occupancy that is lost, spills that are gained, one line each.
    #[must_use]
    pub fn regressions(&self, variant: Variant) -> Vec<String> {
        let find = |name: &str| self.builds.iter().find(|(build, _)| *build == name).map(|(_, usage)| usage);
        let (Some(plain), Some(other)) = (find(variant::PLAIN.name), find(variant.name)) else { return Vec::new() };
        let mut found = Vec::new();
        if other.blocks < plain.blocks {
            let (before, after) = (plain.blocks, other.blocks);
            let registers = format!("registers {} to {}", plain.registers, other.registers);
            found.push(format!("{}: blocks a multiprocessor {before} to {after}, {registers}", self.name));
        }
        if other.spills > plain.spills {
            found.push(format!("{}: bytes spilled {} to {}", self.name, plain.spills, other.spills));
        }
        found
    }
}

/// The file of regressions that are known, from the workspace's root.
pub const ACCEPTED: &str = "tests/data/poll_regressions.txt";

/// That file's text for these regressions.
#[must_use]
pub fn accepted_text(regressions: &[String]) -> String {
    let head = "# What the default build of benchmarks loses against the plain one. Written by `scripts/poll-bench --resources --accept`;\n\
                # a test fails if a line is missing or stale.\n";
    std::iter::once(head.to_owned()).chain(regressions.iter().map(|line| format!("{line}\n"))).collect()
}

/// Long launches with more blocks than 132 multiprocessors hold of the default build, one line each.
#[must_use]
pub fn not_resident(rows: &[Row]) -> Vec<String> {
    let resident = |row: &Row| {
        let (_, usage) = row.builds.iter().find(|(name, _)| *name == variant::DEFAULT.name)?;
        let (wanted, held) = (row.long_blocks?, u64::from(usage.blocks) * 132);
        (wanted > held).then(|| format!("{}: {wanted} blocks, of which 132 multiprocessors hold {held}", row.name))
    };
    rows.iter().filter_map(resident).collect()
}

/// A Markdown table: what changes from the first build to each other one stands as `before → after`.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| kernel | build | registers | spilled | shared | blocks an SM | instructions | innermost loops: shortest round (whole) |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    for row in rows {
        let Some((_, first)) = row.builds.first() else { continue };
        for (index, (name, usage)) in row.builds.iter().enumerate() {
            let cell = |of: fn(&Usage) -> usize| {
                let (before, after) = (of(first), of(usage));
                if before == after { after.to_string() } else { format!("{before} → {after}") }
            };
            let blocks = cell(|usage| usage.blocks as usize);
            let blocks = if usage.blocks < first.blocks { format!("**{blocks}**") } else { blocks };
            let spills = cell(|usage| usage.spills as usize);
            let spills = if usage.spills > first.spills { format!("**{spills}**") } else { spills };
            let _ = writeln!(
                text,
                "| {} | {name} | {} | {spills} | {} | {blocks} | {} | {} |",
                if index == 0 { row.name.trim_start_matches("bench/") } else { "" },
                cell(|usage| usage.registers as usize),
                cell(|usage| usage.shared as usize),
                cell(|usage| usage.instructions),
                loops(&usage.innermost),
            );
        }
    }
    text
}

fn loops(innermost: &[Loop]) -> String {
    let one = |&Loop { round, whole, .. }: &Loop| if round == whole { round.to_string() } else { format!("{round} ({whole})") };
    innermost.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The same for programs.
#[must_use]
pub fn json(rows: &[Row]) -> Value {
    let build = |(name, usage): &(&str, Usage)| {
        let loops: Vec<Value> = usage.innermost.iter().map(|found| json!({ "round": found.round, "whole": found.whole })).collect();
        json!({
            "build": name, "registers": usage.registers, "spills": usage.spills, "stack": usage.stack, "shared": usage.shared,
            "blocks": usage.blocks, "instructions": usage.instructions, "innermost": loops,
        })
    };
    rows.iter().map(|row| json!({ "kernel": row.name, "builds": row.builds.iter().map(build).collect::<Vec<_>>() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "ptxas info    : 0 bytes gmem, 160 bytes cmem[4]\n\
        ptxas info    : Compiling entry function '_Z1fPi' for 'sm_90'\n\
        ptxas info    : Function properties for _Z1fPi\n    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
        ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 2112 bytes smem\n\
        ptxas info    : Function properties for _Z4helpi\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxas info    : Compiling entry function '_Z1gPi' for 'sm_90'\n\
        ptxas info    : Function properties for _Z1gPi\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxas info    : Used 10 registers, used 0 barriers\n";

    #[test]
    fn each_kernel_has_its_own_figures() {
        assert_eq!(said_of(SAID, "_Z1fPi"), Ok(Said { registers: 40, spills: 12, stack: 16, shared: 2112 }));
        assert_eq!(said_of(SAID, "_Z1gPi"), Ok(Said { registers: 10, spills: 0, stack: 0, shared: 0 }));
        assert!(said_of(SAID, "_Z1hPi").is_err());
    }

    #[test]
    fn lost_occupancy_and_gained_spills_are_regressions_and_nothing_else_is() {
        let usage = |registers, spills, blocks| Usage {
            registers,
            spills,
            blocks,
            stack: 0,
            shared: 0,
            instructions: 9,
            innermost: vec![Loop { round: 3, whole: 5, work: sass::Work::default() }],
        };
        let row = |other| Row { name: "bench/k".into(), long_blocks: None, builds: vec![("plain", usage(32, 0, 2)), ("default", other)] };
        assert_eq!(row(usage(33, 0, 2)).regressions(variant::DEFAULT), Vec::<String>::new());
        let worse = row(usage(33, 4, 1));
        assert_eq!(
            worse.regressions(variant::DEFAULT),
            ["bench/k: blocks a multiprocessor 2 to 1, registers 32 to 33", "bench/k: bytes spilled 0 to 4"]
        );
        let table = table(&[worse]);
        assert!(table.ends_with("|  | default | 32 → 33 | **0 → 4** | 0 | **2 → 1** | 9 | 3 (5) |\n"), "{table}");
    }
}
