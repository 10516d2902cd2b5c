//! How often a loop runs at most whose start is known to lie between two numbers, as that of a thread's own share does: `for (i = threadIdx.x; i < 512; …)`.

use super::Loop;
use super::counted::{Context, Induction, Order};
use cuinstr_ptx::{Edge, Operand, Register};
use std::cell::RefCell;

/// Least and most of what a register holds, as a number with a sign.
type Range = (i64, i64);

/// Numbers beyond this are not followed: sums of them would wrap.
const FAR: i64 = 1 << 30;

/// Most statements that a value is followed back through.
const MOST_BACK: u32 = 64;

/// Threads that a block is taken to have at least. In a smaller one loops that step by its size run longer.
const THREADS: i64 = 64;

/// Most threads of a block.
pub(super) const MOST_THREADS: i64 = 1024;

/// Values that a nest of loops keeps, taken to lie near zero: a test in front of the nest says whether they do.
#[derive(Debug)]
pub(in crate::polls) struct Pins {
    /// The nest's outer loop.
    nest: u32,
    /// How far from zero they may lie.
    pub(in crate::polls) most: i64,
    /// Those that trips depend on, each with the statement that writes it.
    kept: RefCell<Vec<(Register, u32)>>,
}

impl Pins {
    pub(in crate::polls) fn new(nest: u32, most: i64) -> Self {
        Self { nest, most, kept: RefCell::default() }
    }

    /// The statements that write them.
    pub(in crate::polls) fn writers(&self) -> Vec<u32> {
        self.kept.borrow().iter().map(|(_, writer)| *writer).collect()
    }

    fn pin(&self, register: Register, writer: u32) -> Range {
        let mut kept = self.kept.borrow_mut();
        if !kept.contains(&(register, writer)) {
            kept.push((register, writer));
        }
        (-self.most, self.most)
    }
}

impl Context<'_, '_> {
    /// How often a loop runs at most, for one whose test ends `block`. `before` has the trips of loops in front of it that end soon.
    pub(in crate::polls) fn most_trips(&self, number: u32, block: u32, goes_on_if_taken: bool, before: &[Option<u64>]) -> Option<u64> {
        let latch = self.loops.all[number as usize].latch()?;
        let (test, holds) = self.test_at(block, goes_on_if_taken)?;
        let (order, is_signed, width) = self.comparison(test, holds)?;
        let [_, Operand::Register(tested), bound] = *self.code.operands(test) else { return None };
        if let Some(trips) = self.most_shifts(number, (tested, latch), (order, is_signed, width), bound, before) {
            return Some(trips);
        }
        let (variable, step, is_exact) = self.moves(number, (test, tested), latch, width)?;
        let bound = match bound {
            Operand::Integer(bound) => near((bound, bound))?,
            _ => self.pins.and_then(|_| self.range(bound, &mut { MOST_BACK }))?,
        };
        if step.abs() > FAR || step == 0 || !order.fits(step) {
            return None;
        }
        if order == Order::NotEqual
            && bound == (0, 0)
            && is_exact
            && let Some(rest) = self.rest(number, variable, step)
        {
            return Some(rest);
        }
        let start = self.start(number, variable, before)?;
        let distance = if step > 0 { bound.1 - start.0 } else { start.1 - bound.0 };
        let is_met = match order {
            Order::NotEqual => is_exact && start.0 == start.1 && bound.0 == bound.1 && distance > 0 && distance % step == 0,
            Order::Less | Order::LessEqual => is_signed || start.0 >= 0 && bound.0 >= 0,
            // Below zero there is no number without a sign, and the first step is made in front of the test.
            Order::Greater | Order::GreaterEqual => is_signed || start.0.min(bound.0) >= -step,
        };
        // One round more than the division says, for bounds that are passed.
        is_met.then(|| distance.max(0).unsigned_abs() / step.unsigned_abs() + 1)
    }

    /// The variable behind a tested register, the least that each iteration adds to it, and whether each adds just that.
    fn moves(&self, number: u32, (test, tested): (u32, Register), latch: u32, width: u8) -> Option<(Register, i64, bool)> {
        if let Some(Induction { variable, step, .. }) =
            self.induction(number, (test, tested), latch, |statement| self.added(statement, width))
        {
            return Some((variable, step, true));
        }
        // The proof follows no such step behind the test.
        let added = self.only_writer(number, tested, latch).filter(|added| self.precedes(*added, test))?;
        let [_, Operand::Register(base), by @ Operand::Register(_)] = *self.code.operands(added) else { return None };
        let is_own =
            base == tested && self.code.opcode(added).strip_prefix("add.").is_some_and(|kind| super::counted::is_integer(kind, width));
        let (least, most) = self.range(by, &mut { MOST_BACK }).filter(|(least, _)| is_own && *least > 0)?;
        Some((tested, least, least == most))
    }

    /// What a variable holds where its loop begins, if that is written anew in each round of the loop around it.
    pub(super) fn start(&self, number: u32, variable: Register, before: &[Option<u64>]) -> Option<Range> {
        let one = &self.loops.all[number as usize];
        let (mut found, mut more, mut is_fresh) = (None, 0_i64, false);
        for statement in self.writers.of(variable).filter(|statement| !self.loops.holds(number, self.block_of(*statement))) {
            let block = self.block_of(statement);
            if let Some((_, step)) = self.added(statement, self.code.width(variable)).filter(|(base, _)| *base == variable) {
                // A remainder loop has gone on with it, which runs as often as this one. A cycle with several ways in within that would do so more often.
                let inner = self.loops.innermost(block) as usize;
                let is_beside = |rest: &Loop| {
                    let is_in = self.loops.share_irreducible(rest.header, block);
                    is_in && rest.outer == one.outer && self.loops.share_irreducible(rest.header, one.header)
                };
                let trips = before.get(inner).copied().flatten().filter(|_| is_beside(&self.loops.all[inner]))?;
                more = more.checked_add(i64::try_from(trips).ok()?.checked_mul(step)?).filter(|more| (0..FAR).contains(more))?;
                continue;
            }
            let is_whole = !self.function.statements[statement as usize].guarded;
            is_fresh |= is_whole && self.loops.runs_beside(number, block) && self.loops.dominates(block, one.header);
            found = Some(join(found, self.value(statement, &mut { MOST_BACK })?));
        }
        // A step from beyond could go round.
        found.filter(|_| is_fresh).and_then(|(least, most)| near((least, most + more)))
    }

    /// The most that an operand may hold, if that is not below zero.
    pub(super) fn most_of(&self, operand: Operand) -> Option<i64> {
        self.range(operand, &mut { MOST_BACK }).filter(|range| range.0 >= 0).map(|range| range.1)
    }

    /// What an operand may hold: one of what is written to it anywhere.
    fn range(&self, operand: Operand, left: &mut u32) -> Option<Range> {
        let Operand::Register(register) = operand else {
            return operand.number().and_then(|number| near((i64::try_from(number).ok()?, i64::try_from(number).ok()?)));
        };
        if let Some((pins, writer)) = self.pins.and_then(|pins| Some((pins, self.kept(pins.nest, register)?))) {
            // Of sums, what is in them is pinned.
            let is_sum = matches!(self.code.opcode(writer).split('.').next(), Some("mov" | "add" | "sub" | "neg"));
            let context = if is_sum { *self } else { Context { pins: None, ..*self } };
            return Some(context.value(writer, left).unwrap_or_else(|| pins.pin(register, writer)));
        }
        // A parameter was written by the caller.
        self.code.declaration(register)?;
        let mut found = None;
        for statement in self.writers.of(register) {
            found = Some(join(found, self.value(statement, left).filter(|_| !self.function.statements[statement as usize].guarded)?));
        }
        found
    }

    /// The only statement that writes a register, if that stands in front of a nest, and runs once. What another loop wrote in an earlier round may be in
    /// a copy of it, and the test in front of the nest sees the last one alone.
    fn kept(&self, nest: u32, register: Register) -> Option<u32> {
        let mut writers = self.writers.of(register);
        let writer = writers.next().filter(|_| writers.next().is_none() && self.code.width(register) == 32)?;
        let (block, header) = (self.block_of(writer), self.loops.all[nest as usize].header);
        let is_whole = !self.function.statements[writer as usize].guarded && self.loops.runs_beside(nest, block);
        (is_whole && self.loops.dominates(block, header)).then_some(writer)
    }

    /// What a statement may write.
    fn value(&self, statement: u32, left: &mut u32) -> Option<Range> {
        *left = left.checked_sub(1)?;
        let mut parts = self.code.opcode(statement).split('.');
        let head = parts.next()?;
        if !parts.all(|part| matches!(part, "s32" | "u32" | "b32" | "s64" | "u64" | "b64")) {
            return None;
        }
        // Of a vector each register gets another part.
        let operands = self.code.operands(statement);
        let [Operand::Register(_), ..] = operands else { return None };
        if let ("mov", [_, Operand::Name(name, 0)]) = (head, operands) {
            return special(self.code.name(*name).text);
        }
        let one = self.range(*operands.get(1)?, left);
        if head == "and" {
            // No bit that one of both has not.
            let masks = [one, self.range(*operands.get(2)?, left)].into_iter().flatten().filter(|range| range.0 >= 0);
            return masks.map(|range| (0, range.1)).min();
        }
        let one = one?;
        match head {
            "mov" => return Some(one),
            "cvt" => return Some(one).filter(|one| one.0 >= 0),
            "neg" => return near((-one.1, -one.0)),
            _ => {}
        }
        let two = self.range(*operands.get(2)?, left)?;
        near(match head {
            "add" => (one.0 + two.0, one.1 + two.1),
            "sub" => (one.0 - two.1, one.1 - two.0),
            "min" if one.0 >= 0 && two.0 >= 0 => (one.0.min(two.0), one.1.min(two.1)),
            "max" if one.0 >= 0 && two.0 >= 0 => (one.0.max(two.0), one.1.max(two.1)),
            "shr" if one.0 >= 0 && two.0 == two.1 && (0..32).contains(&two.0) => (one.0 >> two.0, one.1 >> two.0),
            "shl" if one.0 >= 0 && two.0 == two.1 && (0..32).contains(&two.0) => (one.0 << two.0, one.1 << two.0),
            _ => return None,
        })
    }

    /// How often a loop runs at most that counts down to zero from the last bits of a number, or up from their opposite: what compilers leave behind an
    /// unrolled loop. A test in front of it says that these bits are not zero.
    fn rest(&self, number: u32, variable: Register, step: i64) -> Option<u64> {
        let one = &self.loops.all[number as usize];
        let start = only(self.writers.of(variable).filter(|statement| !self.loops.holds(number, self.block_of(*statement))))?;
        let is_whole = |statement: u32| !self.function.statements[statement as usize].guarded;
        let block = self.block_of(start);
        if !is_whole(start) || !self.loops.runs_beside(number, block) || !self.loops.dominates(block, one.header) {
            return None;
        }
        // The register that holds these bits, and what writes them.
        let (bits, written) = match (step, self.code.opcode(start), self.code.operands(start)) {
            (-1, ..) => (variable, start),
            (1, "neg.s32" | "neg.s64", [_, Operand::Register(of)]) => {
                (*of, only(self.writers.of(*of)).filter(|written| is_whole(*written))?)
            }
            _ => return None,
        };
        let first = self.block_of(written);
        if written > start && first == block || !self.loops.dominates(first, block) {
            return None;
        }
        let (least, most) = self.value(written, &mut { MOST_BACK })?;
        // The branch that passes the loop by where they are zero stands in a block between the two.
        // The branch stands near the loop, and a function may have many loops behind each other.
        let mut guard = self.loops.dominator(one.header)?;
        let mut left = MOST_BACK;
        while !self.passes_by_zero(guard, bits, written, one.header) {
            left = left.checked_sub(1)?;
            guard = self.loops.dominator(guard).filter(|_| guard != first)?;
        }
        u64::try_from(most).ok().filter(|most| least == 0 && *most > 0)
    }

    /// Whether a block ends with a branch whose way on to `to` is taken only where a register is not zero, as `start` wrote it.
    fn passes_by_zero(&self, block: u32, register: Register, start: u32, to: u32) -> bool {
        let at = self.graph.blocks[block as usize];
        let Some((Some(predicate), when)) = self.code.guard(at.end - 1) else { return false };
        let Some(test) = self.writers.last_of(predicate, at.first..at.end) else { return false };
        let Some((order, ..)) = self.comparison(test, true).or_else(|| self.comparison(test, false)) else { return false };
        let holds_if = !self.code.opcode(test).starts_with("setp.eq");
        let [_, Operand::Register(tested), Operand::Integer(0)] = *self.code.operands(test) else { return false };
        let is_later = test > start || self.block_of(start) != block;
        let is_plain = order == Order::NotEqual && tested == register && is_later && !self.function.statements[test as usize].guarded;
        // The branch is taken where its guard holds.
        let goes_on = |taken: bool| (taken == when) == holds_if;
        let is_only = |edge: Edge| {
            self.loops.dominates(edge.to, to)
                && self.graph.sources(edge.to).all(|source| source == block || self.loops.dominates(edge.to, source))
        };
        is_plain && self.graph.edges(block).any(|edge| edge.when.is_some_and(goes_on) && is_only(edge))
    }
}

/// The only one of these.
fn only(mut all: impl Iterator<Item = u32>) -> Option<u32> {
    all.next().filter(|_| all.next().is_none())
}

fn join(first: Option<Range>, second: Range) -> Range {
    first.map_or(second, |first| (first.0.min(second.0), first.1.max(second.1)))
}

fn near(range: Range) -> Option<Range> {
    (range.0 > -FAR && range.1 < FAR).then_some(range)
}

/// What a special register holds, or the name of a number.
fn special(name: &str) -> Option<Range> {
    match name {
        "%tid.x" | "%tid.y" | "%tid.z" => Some((0, MOST_THREADS - 1)),
        "%ntid.x" => Some((THREADS, MOST_THREADS)),
        "%laneid" => Some((0, 31)),
        "WARP_SZ" => Some((32, 32)),
        "%warpid" => Some((0, 63)),
        _ => None,
    }
}
