//! Loops that `ptxas` counts by another rule than PTX.
//!
//! From `-O2` on, ptxas 13.0 runs four iterations at a time of a loop whose counter moves by the same number in each. It
//! asks for the loop's own test behind the last of them only. How many are left it takes from the difference of counter
//! and end. That comes to what PTX says but in two cases, both found by reading its machine code:
//!
//! - The loop repeats while the counter is less, and the counter falls. It is taken to have as many iterations left as it
//!   is greater than the end, where PTX ends it at once.
//! - The loop repeats while counter and end differ, and they are compared without a sign. The unrolled loop compares
//!   them with one.

use crate::domain::interval::Interval;
use crate::interpret::body::Body;
use crate::program::instruction::{Instruction, Operand, Order, Register};
use cuinstr_ptx::Flow;

/// Most statements that a way out's predicate is followed back through.
const MOST_BACK: u32 = 8;

/// Most statements that are asked what a way out depends on.
const MOST_ASKED: u32 = 64;

/// The counter of a loop and its end, and how a way out compares them where the loop repeats.
struct Counted<'a> {
    /// The statement that compares.
    test: u32,
    counter: Register,
    end: Operand<'a>,
    order: Order,
    signed: bool,
    width: u8,
    /// What an iteration adds to the counter.
    step: Interval,
}

/// Whether a loop that nothing polls, and that comes back at most `rounds` times by what PTX says, may do so more often.
pub(crate) fn is_counted_otherwise(body: &Body<'_>, blocks: &[u32], rounds: u64) -> bool {
    let looped = Looped { body, blocks };
    // Blocks, and whether their branch leaves where it is taken.
    let edges = blocks.iter().flat_map(|block| body.graph.edges(*block).iter().map(move |edge| (*block, edge)));
    let branches = edges.filter(|(_, edge)| !looped.holds(edge.to)).filter_map(|(block, edge)| Some((block, edge.when?)));
    let returns = blocks.iter().filter(|block| looped.returns(**block)).map(|block| (*block, true));
    let ways_out: Vec<(u32, bool)> = branches.chain(returns).collect();
    let compared: Vec<Counted<'_>> = ways_out.iter().flat_map(|(block, when)| looped.compared(*block, *when)).collect();
    let mut otherwise = compared.iter().filter(|counted| looped.is_taken_otherwise(counted, rounds));
    // A loop with several ways out is not unrolled so, if these are still there when ptxas has folded what it knows.
    let is_alone = |counted: &Counted<'_>| !compared.iter().any(|other| other.test != counted.test && other.is_met());
    otherwise.any(is_alone) && !ways_out.iter().any(|(block, _)| looped.asks_memory(*block))
}

impl Counted<'_> {
    /// Whether the counter may come to the end as far as ptxas can tell.
    fn is_met(&self) -> bool {
        self.order == Order::Ne && self.step.value(self.width).is_some_and(|step| step != 0)
    }
}

struct Looped<'l, 'a> {
    body: &'l Body<'a>,
    blocks: &'l [u32],
}

impl<'a> Looped<'_, 'a> {
    fn holds(&self, block: u32) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    /// Statements of the loop that write a register.
    fn writers(&self, register: Register) -> impl Iterator<Item = u32> + Clone {
        self.body.writers(register).iter().copied().filter(|writer| self.holds(self.body.block_of(*writer)))
    }

    fn only_writer(&self, register: Register) -> Option<Instruction<'a>> {
        let mut writers = self.writers(register);
        writers.next().filter(|_| writers.next().is_none()).map(|writer| self.body.decode(writer))
    }

    /// Whether a block ends with a guarded return.
    fn returns(&self, block: u32) -> bool {
        let last = self.body.graph.blocks[block as usize].end.checked_sub(1).map(|last| self.body.function.statements[last as usize]);
        last.is_some_and(|last| last.guarded && matches!(last.flow, Flow::Return | Flow::End))
    }

    /// Whether a way out depends on what an iteration loads.
    fn asks_memory(&self, block: u32) -> bool {
        let last = self.body.graph.blocks[block as usize].end - 1;
        let mut work: Vec<Register> = self.body.decode(last).guard.and_then(|(predicate, _)| predicate).into_iter().collect();
        let mut asked = 0;
        while let Some(register) = work.pop() {
            for writer in self.writers(register) {
                if matches!(self.body.decode(writer).op.head, "ld" | "atom") {
                    return true;
                }
                asked += 1;
                if asked > MOST_ASKED {
                    return false;
                }
                self.body.code.each_read(writer, |read| work.push(read));
            }
        }
        false
    }

    /// What a way out compares, with each operand as the counter. There are several comparisons where the loop repeats only while all of them hold.
    fn compared(&self, block: u32, leaves_when: bool) -> Vec<Counted<'a>> {
        let mut found = Vec::new();
        let last = self.body.graph.blocks[block as usize].end - 1;
        let Some((Some(predicate), sense)) = self.body.decode(last).guard else { return found };
        // Predicates, what they are where the loop repeats, and the statement that reads them.
        let mut work = vec![(predicate, leaves_when != sense, last)];
        for _ in 0..MOST_BACK {
            let Some((predicate, goes_on, asks)) = work.pop() else { break };
            let mut writers = self.writers(predicate);
            let before = writers.clone().take_while(|writer| *writer < asks).last();
            let only = || writers.next().filter(|_| writers.next().is_none());
            let Some(test) = before.filter(|writer| self.body.block_of(*writer) == block).or_else(only) else { continue };
            let instruction = self.body.decode(test);
            match (instruction.opcode, &instruction.rest[..]) {
                ("not.pred" | "mov.pred", &[Operand::Register(of)]) => work.push((of, goes_on ^ (instruction.op.head == "not"), test)),
                ("and.pred" | "or.pred", &[Operand::Register(one), Operand::Register(two)])
                    if goes_on == (instruction.op.head == "and") =>
                {
                    work.extend([(one, goes_on, test), (two, goes_on, test)]);
                }
                (_, &[left, right]) => {
                    let Some((order, signed, width)) = instruction.op.compares else { continue };
                    let order = if goes_on { order } else { order.not() };
                    found.extend([(left, right, order), (right, left, order.mirrored())].into_iter().filter_map(
                        |(counter, end, order)| {
                            let (counter, step) = self.moved(counter, end, width)?;
                            Some(Counted { test, counter, end, order, signed, width, step })
                        },
                    ));
                }
                _ => {}
            }
        }
        found
    }

    /// The register that holds the counter where an iteration begins, and what is added to it. None for what ptxas does not take for a counter.
    fn moved(&self, tested: Operand<'a>, end: Operand<'a>, width: u8) -> Option<(Register, Interval)> {
        let Operand::Register(tested) = tested else { return None };
        if matches!(end, Operand::Register(end) if self.writers(end).next().is_some()) {
            return None;
        }
        let by = |sum: &Instruction<'a>| -> Option<(Register, Interval)> {
            let sign = sum.op.sums().filter(|_| sum.guard.is_none())?;
            let is_kept = |operand| !matches!(operand, Operand::Register(register) if self.writers(register).next().is_some());
            let (base, added) = match sum.rest[..] {
                [Operand::Register(base), added] if is_kept(added) => (base, added),
                [added, Operand::Register(base)] if sign > 0 => (base, added),
                _ => return None,
            };
            Some((base, self.entered_with(added, width)?.times(sign.into(), width)))
        };
        let of_itself = |writer: u32| by(&self.body.decode(writer)).filter(|(base, _)| *base == tested).map(|(_, step)| step);
        let steps: Option<Vec<Interval>> = self.writers(tested).map(of_itself).collect();
        if let Some(steps) = steps {
            return Some((tested, steps.into_iter().reduce(|one, other| one.add(other, width))?));
        }
        let written = self.only_writer(tested)?;
        let copied = |copy: &Instruction<'a>| match (copy.op.head, &copy.rest[..]) {
            ("mov", &[Operand::Register(of)]) => Some(of),
            _ => None,
        };
        if let Some(next) = copied(&written) {
            // `add next, counter, step; mov counter, next`
            return by(&self.only_writer(next)?).filter(|(base, _)| *base == tested);
        }
        // The same, and the test is of the next value.
        let (base, step) = by(&written)?;
        (copied(&self.only_writer(base)?) == Some(tested)).then_some((base, step))
    }

    /// What an operand is where the loop begins.
    fn entered_with(&self, operand: Operand<'a>, width: u8) -> Option<Interval> {
        match operand {
            Operand::Number(number) => Some(Interval::constant(number, width)),
            Operand::Register(register) => Some(self.body.before(register, self.blocks, &|block| self.holds(block)).range),
            _ => None,
        }
    }

    fn is_taken_otherwise(&self, counted: &Counted<'a>, rounds: u64) -> bool {
        let &Counted { counter, end, order, signed, width, step, .. } = counted;
        // Loops that count in fewer bits are not unrolled so.
        if width < 32 {
            return false;
        }
        let (Some(start), Some(end)) = (self.entered_with(Operand::Register(counter), width), self.entered_with(end, width)) else {
            return true;
        };
        let (half, step) = (1_i128 << (width - 1), step.signed(width));
        match order {
            Order::Lt | Order::Le if step.lo < 0 => {
                let (start, end) = (start.as_integers(signed, width), end.as_integers(signed, width));
                start.hi > end.lo || end.hi - start.lo >= half
            }
            Order::Ne if !signed => {
                // With a sign, too, the counter must not wrap round on its way.
                let (start, rounds) = (start.signed(width), i128::from(rounds) + 1);
                start.lo + rounds * step.lo.min(0) < -half || start.hi + rounds * step.hi.max(0) >= half
            }
            _ => false,
        }
    }
}
