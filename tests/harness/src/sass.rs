//! Loops in machine code, without a disassembler: instructions of compute capabilities 7.0 to 9.0 have 16 bytes, and of these only branches matter here.

use crate::nvcc::Nvcc;
use crate::{cubin, process};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

/// Bytes of an instruction.
const SIZE: usize = 16;
const BRANCH: u64 = 0x947;
const INDEXED_BRANCH: u64 = 0x949;
const EXIT: u64 = 0x94d;
const YIELD: u16 = 0x946;
const RETURN: u64 = 0x950;
/// `LD`, `LDG`, `LDS`, `LDSM`, and `LDG` of compute capability 7.
const LOADS: [u64; 5] = [0x980, 0x981, 0x984, 0x83b, 0x381];
const BARRIER: u64 = 0xb1d;
/// `HMMA`, `IMMA`, `DMMA`, `HGMMA`.
const PRODUCTS: [u64; 4] = [0x23c, 0x237, 0x23f, 0xdf0];
/// The field of a predicate that is always true.
const ALWAYS: u64 = 7;

/// A loop that holds no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loop {
    /// Instructions of its shortest round.
    pub round: usize,
    /// Instructions of all that lies on some round, what is seldom passed included.
    pub whole: usize,
    /// What the shortest round does.
    pub work: Work,
}

/// How often some instructions stand in a piece of code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work {
    /// Loads from global or shared memory.
    pub loads: usize,
    /// Block barriers.
    pub barriers: usize,
    /// Matrix products.
    pub products: usize,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.loads += other.loads;
        self.barriers += other.barriers;
        self.products += other.products;
    }
}

impl Work {
    fn of(opcode: u64) -> Self {
        let one = usize::from;
        Self { loads: one(LOADS.contains(&opcode)), barriers: one(opcode == BARRIER), products: one(PRODUCTS.contains(&opcode)) }
    }
}

/// What a function's machine code is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Its instructions, without the padding at its end.
    pub instructions: usize,
    /// `YIELD`s: where threads that wait for others of their warp go on without them.
    pub yields: usize,
    /// Branches back to blocks that their cycle need not be entered by: it has several ways in.
    pub irreducible: usize,
    /// Its innermost loops, in order of their addresses.
    pub innermost: Vec<Loop>,
}

/// What an instruction does to the flow of control.
struct Flow {
    target: Option<usize>,
    falls_through: bool,
    ends_block: bool,
    work: Work,
}

/// Assembles PTX for `sm_90` with the compiler's `ptxas`; the machine code of a kernel, and of the functions that stand behind it.
///
/// # Errors
/// What `ptxas` said, with the text, or why there is no such kernel.
pub fn assemble(nvcc: &Nvcc, text: &str, kernel: &str) -> Result<Code, String> {
    let failed = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(failed)?;
    let (source, image) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
    std::fs::write(&source, text).map_err(failed)?;
    let ptxas = nvcc.path.with_file_name("ptxas");
    let done = process::run(Command::new(ptxas).arg("-arch=sm_90").arg(source).arg("-o").arg(&image), Duration::from_secs(60));
    let done = done.map_err(failed)?;
    if !done.success() {
        return Err(format!("{}\n{text}", done.stderr));
    }
    let image = std::fs::read(image).map_err(failed)?;
    read(cubin::function(&image, kernel)?)
}

/// Reads a function's machine code. Loops through an indexed branch (a `switch`) are not seen.
///
/// # Errors
/// If it is no whole number of instructions, or a branch leads nowhere: then it is no code of these architectures.
pub fn read(code: &[u8]) -> Result<Code, String> {
    if code.is_empty() || !code.len().is_multiple_of(SIZE) {
        return Err(format!("{} bytes are no instructions", code.len()));
    }
    let flows: Vec<Flow> = code.chunks_exact(SIZE).enumerate().map(|(index, bytes)| flow(index, bytes)).collect();
    if let Some(index) = flows.iter().position(|flow| flow.target.is_some_and(|target| target >= flows.len())) {
        return Err(format!("the branch at {:#x} leads out of the function", index * SIZE));
    }
    // A function ends with a branch to itself, and padding behind it.
    let end = flows.iter().position(|flow| !flow.falls_through && flow.target.is_some_and(|target| flow.is_self(target, &flows)));
    let instructions = end.unwrap_or(flows.len());
    let yields =
        code.chunks_exact(SIZE).take(instructions).filter(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]) & 0xfff == YIELD).count();
    let graph = Graph::new(&flows[..instructions]);
    Ok(Code { instructions, yields, irreducible: graph.irreducible(), innermost: graph.innermost() })
}

impl Flow {
    fn is_self(&self, target: usize, flows: &[Self]) -> bool {
        std::ptr::eq(self, &raw const flows[target])
    }
}

fn flow(index: usize, bytes: &[u8]) -> Flow {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("an instruction has two words"));
    let (low, high) = (word(0), word(8));
    let is_guarded = (low >> 12) & 0xf != ALWAYS;
    let does = Work::of(low & 0xfff);
    match low & 0xfff {
        BRANCH => {
            // The distance counts words of four bytes from the next instruction: its lowest eight bits, then the others.
            let upper = ((low >> 34) | (high << 30)).cast_signed() << 16 >> 16;
            let distance = (upper << 8) | ((low >> 16) & 0xff).cast_signed();
            let target = ((index + 1) * SIZE).checked_add_signed(distance as isize * 4);
            let target = target.filter(|target| target % SIZE == 0).map_or(usize::MAX, |target| target / SIZE);
            // There may be a second predicate, or a uniform register that makes it a branch of divergent warps only.
            let is_conditional = is_guarded || (high >> 23) & 7 != ALWAYS || (low >> 24) & 0xff != 0;
            Flow { target: Some(target), falls_through: is_conditional, ends_block: true, work: does }
        }
        EXIT | RETURN | INDEXED_BRANCH => Flow { target: None, falls_through: is_guarded, ends_block: true, work: does },
        _ => Flow { target: None, falls_through: true, ends_block: false, work: does },
    }
}

/// Basic blocks, numbered in order of their addresses.
struct Graph {
    sizes: Vec<usize>,
    work: Vec<Work>,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl Graph {
    fn new(flows: &[Flow]) -> Self {
        let mut starts: BTreeSet<usize> = [0].into();
        for (index, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.ends_block) {
            starts.extend(flow.target.into_iter().chain([index + 1]).filter(|&start| start < flows.len()));
        }
        let starts: Vec<usize> = starts.into_iter().collect();
        let ends = starts.iter().skip(1).copied().chain([flows.len()]);
        let sizes: Vec<usize> = starts.iter().zip(ends).map(|(start, end)| end - start).collect();
        let mut work = vec![Work::default(); starts.len()];
        for (block, (start, size)) in starts.iter().zip(&sizes).enumerate() {
            for flow in &flows[*start..start + size] {
                work[block] += flow.work;
            }
        }
        let block_of = |index: usize| starts.binary_search(&index).ok();
        let mut next = vec![Vec::new(); starts.len()];
        let mut before = vec![Vec::new(); starts.len()];
        for (block, (start, size)) in starts.iter().zip(&sizes).enumerate() {
            let last = &flows[start + size - 1];
            let through = last.falls_through.then_some(start + size);
            for to in last.target.into_iter().chain(through).filter_map(block_of) {
                next[block].push(to);
                before[to].push(block);
            }
        }
        Self { sizes, work, next, before }
    }

    /// Natural loops: the head, and what reaches one of the branches back to it without passing it.
    fn loops(&self) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut loops: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (tail, head) in self.back_edges() {
            let members = loops.entry(head).or_insert_with(|| [head].into());
            let mut work = vec![tail];
            while let Some(block) = work.pop() {
                if members.insert(block) {
                    work.extend(&self.before[block]);
                }
            }
        }
        loops
    }

    /// Edges to a block that is on the way to where they begin, by a depth-first walk.
    fn back_edges(&self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let (mut seen, mut open) = (vec![false; self.sizes.len()], vec![false; self.sizes.len()]);
        let mut path = vec![(0, 0)];
        (seen[0], open[0]) = (true, true);
        while let Some((block, edge)) = path.last_mut() {
            let from = *block;
            if let Some(&to) = self.next[from].get(*edge) {
                *edge += 1;
                if open[to] {
                    found.push((from, to));
                } else if !seen[to] {
                    (seen[to], open[to]) = (true, true);
                    path.push((to, 0));
                }
            } else {
                open[from] = false;
                path.pop();
            }
        }
        found
    }

    /// Back edges to blocks that not each way to their beginning leads through.
    fn irreducible(&self) -> usize {
        self.back_edges().into_iter().filter(|(tail, head)| self.passes_by(*tail, *head)).count()
    }

    /// Whether the code's beginning leads to a block without leading through another one.
    fn passes_by(&self, block: usize, other: usize) -> bool {
        let mut seen = vec![false; self.sizes.len()];
        seen[other] = true;
        let mut work = vec![0];
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                work.extend(&self.next[at]);
            }
        }
        block != other && seen[block]
    }

    fn innermost(&self) -> Vec<Loop> {
        let loops = self.loops();
        let holds_other = |head: &usize, members: &BTreeSet<usize>| loops.keys().any(|other| other != head && members.contains(other));
        let innermost = loops.iter().filter(|(head, members)| !holds_other(head, members));
        let whole = |members: &BTreeSet<usize>| members.iter().map(|&block| self.sizes[block]).sum();
        let found = |(&head, members): (&usize, &BTreeSet<usize>)| {
            let (round, work) = self.shortest_round(head, members);
            Loop { round, whole: whole(members), work }
        };
        innermost.map(found).collect()
    }

    /// Fewest instructions from the head back to it, inside the loop, and what they do.
    fn shortest_round(&self, head: usize, members: &BTreeSet<usize>) -> (usize, Work) {
        let mut best: BTreeMap<usize, usize> = [(head, self.sizes[head])].into();
        let mut ways: BTreeSet<(usize, usize, Work)> = [(self.sizes[head], head, self.work[head])].into();
        while let Some((length, block, work)) = ways.pop_first() {
            for &to in self.next[block].iter().filter(|to| members.contains(to)) {
                if to == head {
                    return (length, work);
                }
                let longer = length + self.sizes[to];
                if best.get(&to).is_none_or(|&known| longer < known) {
                    best.insert(to, longer);
                    let mut both = work;
                    both += self.work[to];
                    ways.insert((longer, to, both));
                }
            }
        }
        let mut all = Work::default();
        for &block in members {
            all += self.work[block];
        }
        (members.iter().map(|&block| self.sizes[block]).sum(), all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions, each an opcode with its low word's upper bits in place.
    fn code(instructions: &[u64]) -> Vec<u8> {
        let high = 0x000f_ea00_0380_0000_u64;
        instructions.iter().flat_map(|low| [low.to_le_bytes(), high.to_le_bytes()].concat()).collect()
    }

    const NOP: u64 = 0x7918;

    /// A branch over so many instructions from the next one, for any thread or under a predicate.
    fn branch(over: i64, is_guarded: bool) -> Vec<u8> {
        let distance = over * 4;
        let (upper, lowest) = (distance >> 8, distance & 0xff);
        let low = (upper << 34).cast_unsigned() | lowest.cast_unsigned() << 16 | if is_guarded { 0x947 } else { 0x7947 };
        let high = 0x000f_ea00_0380_0000 | ((upper >> 30).cast_unsigned() & 0x3_ffff);
        [low.to_le_bytes(), high.to_le_bytes()].concat()
    }

    #[test]
    fn a_loop_in_a_loop_is_the_innermost_one() {
        // 0: nop; 1: nop; 2: nop; 3: if p go to 2; 4: if p go to 1; 5: exit; 6: itself; 7: padding
        let parts = [code(&[NOP; 3]), branch(-2, true), branch(-4, true), code(&[0x794d]), branch(-1, false), code(&[NOP])];
        let found = read(&parts.concat()).expect("it is code");
        assert_eq!(
            found,
            Code { instructions: 6, yields: 0, irreducible: 0, innermost: vec![Loop { round: 2, whole: 2, work: Work::default() }] }
        );
    }

    #[test]
    fn what_leaves_is_not_of_the_loop_and_a_detour_not_of_its_shortest_round() {
        // 0: nop; 1: if p go to 4; 2: nop; 3: nop; 4: if p go to 7; 5: if p go to 0; 6: exit; 7: nop; 8: exit
        let parts = [
            code(&[NOP]),
            branch(2, true),
            code(&[NOP; 2]),
            branch(2, true),
            branch(-6, true),
            code(&[0x794d]),
            code(&[NOP]),
            code(&[0x794d]),
        ];
        let found = read(&parts.concat()).expect("it is code");
        assert_eq!(
            found,
            Code { instructions: 9, yields: 0, irreducible: 0, innermost: vec![Loop { round: 4, whole: 6, work: Work::default() }] }
        );
    }

    #[test]
    fn a_cycle_with_two_ways_in_is_told() {
        // 0: if p go to 2; 1: nop; 2: nop; 3: if p go to 1; 4: exit
        let parts = [branch(1, true), code(&[NOP; 2]), branch(-3, true), code(&[0x794d])];
        assert_eq!(read(&parts.concat()).expect("it is code").irreducible, 1);
    }

    #[test]
    fn what_is_no_code_is_an_error() {
        assert!(read(&[]).is_err() && read(&[0; 15]).is_err());
        assert!(read(&branch(7, false)).is_err_and(|why| why.contains("out of the function")));
        assert!(read(&branch(-3, true)).is_err());
    }
}
