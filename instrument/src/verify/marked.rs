//! Calls that may lead back to their own function as far as names tell, by the marks that stand for them in PTX that was made to find out.
//!
//! With `__cuinstr_marks_calls` defined, a poll of the prelude's at such a call moves its site's number into a register of this name and does nothing
//! else. Where no cycle of the module passes a mark, but for those that are polled or bounded without it, the call needs no poll: templates that hand
//! on to others of their name are most of these, and a poll in each would be inlined by the thousand.

use super::count::MOST_TOGETHER;
use super::instruction::{split_guard, text_of};
use super::text::{Function, Module};
use std::collections::{BTreeMap, BTreeSet};

/// The register that marks are moved to.
const MARK: &str = "cuinstr_call";

/// The marks of a module.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// For each function that has some: statement and site.
    by_function: BTreeMap<usize, Vec<(u32, u64)>>,
    /// Whether a mark's site can't be told, as where nothing is inlined.
    is_unknown: bool,
}

impl Marks {
    /// Reads the marks of all functions.
    pub(super) fn read(text: &str, module: &Module<'_>) -> Self {
        let mut marks = Self::default();
        if memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_none() {
            return marks;
        }
        for (index, function) in module.functions.iter().enumerate() {
            let mut numbers: BTreeMap<&str, Option<u64>> = BTreeMap::new();
            let mut found = Vec::new();
            for (at, statement) in function.statements.iter().enumerate() {
                let Some((to, from)) = moved(split_guard(text_of(text, statement)).1) else { continue };
                if to == MARK {
                    found.push((at as u32, from));
                } else {
                    // A register that is written more than once has no one number.
                    let number = number(from).filter(|_| !statement.guarded);
                    numbers.entry(to).and_modify(|known| *known = None).or_insert(number);
                }
            }
            for (at, from) in found {
                let site = number(from).or_else(|| numbers.get(from).copied().flatten().filter(|_| is_written_once(text, function, from)));
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
    pub(super) fn all(&self, calls: &[Vec<(u32, u32)>], order: &[usize]) -> Option<BTreeSet<u64>> {
        let mut made = vec![1_u64; calls.len()];
        for index in order {
            made[*index] = calls[*index].iter().fold(1, |sum: u64, (_, to)| sum.saturating_add(made[*to as usize]));
        }
        let is_bounded = made.iter().all(|made| *made <= MOST_TOGETHER);
        (is_bounded && !self.is_unknown).then(|| self.by_function.values().flatten().map(|(_, site)| *site).collect())
    }

    /// Sites of the marks among these statements of a function, and in all that they call.
    pub(super) fn within(&self, function: usize, holds: impl Fn(u32) -> bool, calls: &[Vec<(u32, u32)>]) -> Vec<u64> {
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

/// `mov.TYPE TO, FROM`.
fn moved(body: &str) -> Option<(&str, &str)> {
    let (to, from) = body.strip_prefix("mov.")?.split_once(char::is_whitespace)?.1.split_once(',')?;
    Some((to.trim(), from.trim()))
}

/// A number of 64 bits, as compilers write it: with a sign, or in hexadecimal.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits.trim_end_matches('U'), 16).ok(),
        None => word.parse().ok().or_else(|| word.parse::<i64>().ok().map(i64::cast_unsigned)),
    }
}

/// Whether one statement alone begins by naming the register as what it writes.
fn is_written_once(text: &str, function: &Function<'_>, register: &str) -> bool {
    let writes = function.statements.iter().filter(|statement| {
        let body = split_guard(text_of(text, statement)).1;
        let operands = body.split_once(char::is_whitespace).map_or("", |(_, operands)| operands);
        let first = operands.trim_start().trim_start_matches(['{', '(']).split([',', '}', ')', '|']);
        // A vector and a pair have several.
        let several = operands.trim_start().starts_with(['{', '(']);
        first.take(if several { usize::MAX } else { 1 }).any(|word| word.trim() == register)
    });
    writes.count() == 1
}
