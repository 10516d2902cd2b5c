//! Marked calls: PTX that is made only to find out which calls may lead back to their own function.
//!
//! With `__cuinstr_marks_calls` defined, a poll at such a call only moves its site's number into a register of this
//! name. A call needs no poll where no cycle of the module passes its mark, other than cycles that are polled or
//! bounded anyway. Most of these are templates that call others of their name. A poll in each would be inlined a
//! thousand times.

use crate::rank::linear::MOST_TOGETHER;
use cuinstr_ptx::{Code, Module, Operand, Register};
use std::collections::{BTreeMap, BTreeSet};

/// The register that marks are moved to.
const MARK: &str = "cuinstr_call";

/// The marks of a module.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// For each function that has some: statement and site.
    by_function: BTreeMap<usize, Vec<(u32, u64)>>,
    /// Whether a mark's site can't be told, as where nothing is inlined.
    is_unknown: bool,
}

impl Marks {
    /// Reads the marks of all functions.
    pub(crate) fn read(text: &str, module: &Module<'_>) -> Self {
        let mut marks = Self::default();
        if memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_none() {
            return marks;
        }
        for (index, function) in module.functions.iter().enumerate() {
            if !function.registers.iter().any(|declared| declared.name == MARK) {
                continue;
            }
            let code = Code::new(text, function);
            let sites = moves(&code);
            for at in 0..function.statements.len() as u32 {
                let Some((_, from)) = moved(&code, at).filter(|(to, _)| is_mark(&code, *to)) else { continue };
                let site = match from {
                    Operand::Register(register) => sites.get(&register).copied().flatten(),
                    number => site(number),
                };
                match site {
                    Some(site) => marks.by_function.entry(index).or_default().push((at, site)),
                    None => marks.is_unknown = true,
                }
            }
        }
        marks
    }

    /// All sites, if each mark's is known and no kernel makes more calls than the proof lets go without a poll: functions that call others twice each need no
    /// cycle to run for ever. `order` has each function behind those that it calls.
    pub(crate) fn all(&self, calls: &[Vec<(u32, u32)>], order: &[usize]) -> Option<BTreeSet<u64>> {
        let mut made = vec![1_u64; calls.len()];
        for index in order {
            made[*index] = calls[*index].iter().fold(1, |sum: u64, (_, to)| sum.saturating_add(made[*to as usize]));
        }
        let is_bounded = made.iter().all(|made| *made <= MOST_TOGETHER);
        (is_bounded && !self.is_unknown).then(|| self.by_function.values().flatten().map(|(_, site)| *site).collect())
    }

    /// Sites of the marks among these statements of a function, and in all that they call.
    pub(crate) fn within(&self, function: usize, holds: impl Fn(u32) -> bool, calls: &[Vec<(u32, u32)>]) -> Vec<u64> {
        if self.by_function.is_empty() {
            return Vec::new();
        }
        let own = self.by_function.get(&function).into_iter().flatten().filter(|(at, _)| holds(*at));
        let mut found: BTreeSet<u64> = own.map(|(_, site)| *site).collect();
        let mut work: Vec<u32> = calls[function].iter().filter(|(at, _)| holds(*at)).map(|(_, to)| *to).collect();
        let mut seen = BTreeSet::new();
        while let Some(callee) = work.pop().map(|callee| callee as usize) {
            if seen.insert(callee) {
                found.extend(self.by_function.get(&callee).into_iter().flatten().map(|(_, site)| *site));
                work.extend(calls[callee].iter().map(|(_, to)| *to));
            }
        }
        found.into_iter().collect()
    }
}

fn is_mark(code: &Code<'_>, register: Register) -> bool {
    code.declaration(register).is_some_and(|declared| declared.name == MARK)
}

/// `mov.TYPE TO, FROM`.
fn moved(code: &Code<'_>, statement: u32) -> Option<(Register, Operand)> {
    match code.operands(statement) {
        [Operand::Register(to), from] if code.opcode(statement).starts_with("mov.") => Some((*to, *from)),
        _ => None,
    }
}

/// A number of 64 bits.
fn site(number: Operand) -> Option<u64> {
    let number = number.number()?;
    u64::try_from(number).ok().or_else(|| i64::try_from(number).ok().map(i64::cast_unsigned))
}

/// The number that each register holds which is written once, by a `mov` without a guard.
fn moves(code: &Code<'_>) -> BTreeMap<Register, Option<u64>> {
    let mut numbers = BTreeMap::new();
    for statement in 0..code.function.statements.len() as u32 {
        let number = moved(code, statement).filter(|_| code.guard(statement).is_none()).and_then(|(_, from)| site(from));
        code.each_written(statement, |register| {
            numbers.entry(register).and_modify(|known| *known = None).or_insert(number);
        });
    }
    numbers
}
