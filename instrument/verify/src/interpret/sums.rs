//! Which sums of registers are followed like registers, such as a bound minus a counter.

use crate::interpret::step::{Apart, Derived, Step, Sum, each_needed};
use crate::program::instruction::{Operand, Register, type_of};
use std::collections::{BTreeMap, BTreeSet};

/// Most sums of one slice.
const MOST: usize = 128;

/// Most registers of one sum.
const MOST_TERMS: usize = 3;

/// Largest factor of a register in a sum.
const MOST_TIMES: i8 = 32;

/// An instruction's result in terms of registers in front of it, plus a constant.
#[derive(Debug, Clone)]
struct Expansion {
    terms: Vec<(u32, i8)>,
    offset: i128,
    width: u8,
}

impl Expansion {
    fn plus(mut self, other: &Self, sign: i8) -> Option<Self> {
        for (slot, times) in &other.terms {
            match self.terms.iter_mut().find(|(known, _)| known == slot) {
                Some((_, sum)) => *sum += times * sign,
                None => self.terms.push((*slot, times * sign)),
            }
        }
        self.terms.retain(|(_, times)| *times != 0);
        self.terms.sort_unstable();
        self.offset = (self.offset + other.offset * i128::from(sign)) % (1 << 64);
        (self.terms.len() <= MOST_TERMS && self.terms.iter().all(|(_, times)| times.abs() <= MOST_TIMES)).then_some(self)
    }

    /// So many times the value.
    fn times(mut self, factor: i128) -> Option<Self> {
        let factor = i8::try_from(factor).ok().filter(|factor| factor.unsigned_abs() <= MOST_TIMES.unsigned_abs())?;
        for (_, times) in &mut self.terms {
            *times = times.checked_mul(factor).filter(|times| times.unsigned_abs() <= MOST_TIMES.unsigned_abs())?;
        }
        self.terms.retain(|(_, times)| *times != 0);
        self.offset = self.offset * i128::from(factor) % (1 << 64);
        Some(self)
    }

    /// The number, if it is that and nothing else.
    fn number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.offset)
    }

    /// Whether each register is added or subtracted once.
    fn is_plain(&self) -> bool {
        self.terms.iter().all(|(_, times)| times.abs() == 1)
    }
}

/// Finds the sums that such steps are about, block by block, and notes in each step which one it is.
pub(crate) fn find(
    steps: &mut [Step<'_>],
    blocks: impl Iterator<Item = (u32, u32)>,
    widths: &[(Register, u8)],
    has_cases: bool,
    is_asked_for: impl Fn(&Step<'_>) -> bool,
) -> Vec<Sum> {
    let mut sums = Sums { found: Vec::new(), widths };
    let compared = compared_with_numbers(steps);
    for (from, to) in blocks {
        let mut known: BTreeMap<u32, Expansion> = BTreeMap::new();
        let mut lasting = Lasting::default();
        for step in &mut steps[from as usize..to as usize] {
            if let Some((a, b, width)) = sums.compared(step) {
                if is_asked_for(step) {
                    step.apart = sums
                        .place(apart(a, b, width, (&known, &lasting.copies)), width)
                        .map(|(sum, sign)| Apart { sum, is_first_less_second: sign == 1 });
                }
                continue;
            }
            let expansion = sums.expansion(step, &known);
            if let Some(expansion) = &expansion {
                let terms = &expansion.terms;
                let (plus, minus) = (terms.iter().any(|(_, times)| *times > 0), terms.iter().any(|(_, times)| *times < 0));
                // What is compared may be a sum of two, since compilers count down by adding what they have negated.
                let is_compared = || step.writes.iter().any(|slot| compared.contains(slot)) && terms.len() > 1;
                if (plus && minus && expansion.is_plain() || is_compared()) && is_asked_for(step) {
                    step.derived =
                        sums.place(terms.clone(), expansion.width).map(|(sum, sign)| Derived { sum, sign, offset: expansion.offset });
                }
            }
            for &written in step.writes.iter().filter(|slot| **slot != u32::MAX) {
                known.remove(&written);
                known.retain(|_, expansion| expansion.terms.iter().all(|(slot, _)| *slot != written));
            }
            lasting.pass(step, widths);
            if let (Some(expansion), [written]) = (expansion, &step.writes[..])
                && *written != u32::MAX
                && expansion.terms.iter().all(|(slot, _)| slot != written)
            {
                known.insert(*written, expansion);
            }
        }
    }
    if has_cases {
        add_copied(steps, widths, &mut sums.found);
    }
    sums.found
}

/// Slots that are compared with a number.
fn compared_with_numbers(steps: &[Step<'_>]) -> BTreeSet<u32> {
    let compared = steps.iter().filter(|step| step.instruction.op.compares.is_some()).filter_map(|step| match step.instruction.rest[..] {
        [Operand::Register(slot), Operand::Number(_)] => Some(slot),
        _ => None,
    });
    compared.collect()
}

/// Registers of a block that hold something from further back, and their copies.
#[derive(Default)]
struct Lasting {
    /// Slots that are read before they are written, and those that were written.
    read: BTreeSet<u32>,
    written: BTreeSet<u32>,
    /// What such a slot took over from one that the block has made, by that one: both hold the same.
    copies: BTreeMap<u32, u32>,
}

impl Lasting {
    /// Goes on behind a step.
    fn pass(&mut self, step: &Step<'_>, widths: &[(Register, u8)]) {
        each_needed(&step.instruction, |slot| {
            if !self.written.contains(&slot) {
                self.read.insert(slot);
            }
        });
        self.written.extend(&step.writes);
        self.copies.retain(|from, to| !step.writes.iter().any(|slot| [from, to].contains(&slot)));
        if let Some((to, from)) = copy(step, widths)
            && self.read.contains(&to)
            && self.written.contains(&from)
            && !self.read.contains(&from)
        {
            self.copies.insert(from, to);
        }
    }
}

/// The difference of two registers that are compared. A register that was copied in front of the comparison stands for its copy: only that register
/// lasts from round to round. Where it is the copy that lasts, that stands for the register: `next = i + 1; i = next; if (next != n)`.
fn apart(a: u32, b: u32, width: u8, (known, copies): (&BTreeMap<u32, Expansion>, &BTreeMap<u32, u32>)) -> Vec<(u32, i8)> {
    let stands_for = |slot: u32| {
        let from = match known.get(&slot).filter(|known| known.width == width) {
            Some(Expansion { terms, offset: 0, .. }) if matches!(terms[..], [(_, 1)]) => terms[0].0,
            _ => slot,
        };
        copies.get(&from).copied().unwrap_or(from)
    };
    let (a, b) = if stands_for(a) == stands_for(b) { (a, b) } else { (stands_for(a), stands_for(b)) };
    let mut terms = vec![(a, 1), (b, -1)];
    terms.sort_unstable();
    terms
}

/// The sums that were found, and the width of each slot.
struct Sums<'w> {
    found: Vec<Sum>,
    widths: &'w [(Register, u8)],
}

impl Sums<'_> {
    /// The number of a sum, and the sign with which it has these terms; none if there are too many.
    fn place(&mut self, terms: Vec<(u32, i8)>, width: u8) -> Option<(u32, i8)> {
        let sign = terms[0].1.signum();
        let terms = terms.into_iter().map(|(slot, times)| (slot, times * sign)).collect();
        let sum = Sum { terms, width };
        let at = self.found.iter().position(|known| *known == sum).or_else(|| {
            self.found.push(sum);
            (self.found.len() <= MOST).then_some(self.found.len() - 1)
        });
        self.found.truncate(MOST);
        at.map(|at| (at as u32, sign))
    }

    fn slot(&self, of: Option<&Operand<'_>>, width: u8) -> Option<u32> {
        match of {
            Some(Operand::Register(slot)) => Some(*slot).filter(|slot| self.widths[*slot as usize].1 == width),
            _ => None,
        }
    }

    /// Two registers that a step compares, and their width.
    fn compared(&self, step: &Step<'_>) -> Option<(u32, u32, u8)> {
        let (_, _, width) = step.instruction.op.compares?;
        let (a, b) = (self.slot(step.instruction.rest.first(), width)?, self.slot(step.instruction.rest.get(1), width)?);
        (a != b).then_some((a, b, width))
    }

    /// What a step results in, in terms of registers in front of it.
    fn expansion(&self, step: &Step<'_>, known: &BTreeMap<u32, Expansion>) -> Option<Expansion> {
        let instruction = &step.instruction;
        let (head, kind) = instruction.opcode.split_once('.').unwrap_or(("", ""));
        let (multiplies, kind) = match (head, kind.strip_prefix("lo.")) {
            ("mul" | "mad", Some(kind)) => (true, kind),
            _ => (false, kind),
        };
        let width = type_of(kind).filter(|_| !kind.starts_with('f')).map_or(0, |(width, _)| width);
        let number = |value: i128| Expansion { terms: Vec::new(), offset: value, width };
        let operand = |nth: usize| match instruction.rest.get(nth)? {
            Operand::Number(value) => Some(number(*value)),
            of => {
                let slot = self.slot(Some(of), width)?;
                let plain = || Expansion { terms: vec![(slot, 1)], offset: 0, width };
                Some(known.get(&slot).filter(|known| known.width == width).cloned().unwrap_or_else(plain))
            }
        };
        match head {
            _ if step.is_wild || instruction.guard.is_some() || instruction.first.len() != 1 || !matches!(width, 32 | 64) => None,
            "mov" => operand(0),
            "add" => operand(0)?.plus(&operand(1)?, 1),
            "sub" => operand(0)?.plus(&operand(1)?, -1),
            "neg" => number(0).plus(&operand(0)?, -1),
            "not" => number(-1).plus(&operand(0)?, -1),
            "shl" => operand(0)?.times(1 << shift(instruction.rest.get(1)?)?),
            "mul" | "mad" if multiplies => {
                let (one, two) = (operand(0)?, operand(1)?);
                let product = match (one.number(), two.number()) {
                    (_, Some(factor)) => one.times(factor),
                    (Some(factor), _) => two.times(factor),
                    _ => None,
                };
                if head == "mul" { product } else { product?.plus(&operand(2)?, 1) }
            }
            _ => None,
        }
    }
}

/// To where a step copies a register, and from where.
fn copy(step: &Step<'_>, widths: &[(Register, u8)]) -> Option<(u32, u32)> {
    match (&step.writes[..], &step.instruction.rest[..]) {
        ([to], [Operand::Register(from)]) if *to != u32::MAX => {
            let is_copy = step.instruction.op.head == "mov" && step.instruction.guard.is_none() && !step.is_wild;
            (is_copy && to != from && widths[*to as usize].1 == widths[*from as usize].1).then_some((*to, *from))
        }
        _ => None,
    }
}

/// Adds sums that others are copied from. Where cases are told apart, the distance of a counter from its bound is known
/// of the register in which the counter was made. That register is copied to the one that is compared.
fn add_copied(steps: &[Step<'_>], widths: &[(Register, u8)], found: &mut Vec<Sum>) {
    let copies: BTreeSet<(u32, u32)> = steps.iter().filter_map(|step| copy(step, widths)).collect();
    let mut next = 0;
    while next < found.len() {
        let sum = found[next].clone();
        next += 1;
        for (to, _) in &sum.terms {
            for (_, from) in copies.range((*to, 0)..=(*to, u32::MAX)) {
                if let Some(copied) = sum.with(*to, *from).map(|(sum, _)| sum).filter(|copied| !found.contains(copied))
                    && found.len() < MOST
                {
                    found.push(copied);
                }
            }
        }
    }
}

/// By how much an operand shifts, if that is little.
fn shift(operand: &Operand<'_>) -> Option<u32> {
    match operand {
        Operand::Number(by) => u32::try_from(*by).ok().filter(|by| 1_i128 << (*by).min(31) <= i128::from(MOST_TIMES)),
        _ => None,
    }
}
