//! Loops that `ptxas` counts by another rule than PTX.
//!
//! From `-O2` on, ptxas 13.0 runs four iterations at a time of a loop whose counter moves by the same number in each. It
//! asks for the loop's own test behind the last of them only. How many are left it takes from the difference of counter
//! and end. That comes to what PTX says but in three cases, all found by reading its machine code:
//!
//! - The loop repeats while the counter is less, and the counter falls. It is taken to have as many iterations left as it
//!   is greater than the end, where PTX ends it at once.
//! - The loop repeats while counter and end differ, and they are compared without a sign. The unrolled loop compares
//!   them with one.
//! - Four steps do not fit into the counter's width, with a sign.

use crate::domain::interval::Interval;
use crate::interpret::body::Body;
use crate::program::instruction::{Instruction, Operand, Order, Register};
use crate::rank::counter::{Counter, Looped};
use cuinstr_ptx::Flow;

/// Most statements that a way out's predicate is followed back through.
const MOST_BACK: u32 = 8;

/// Most statements that are asked what a way out depends on.
const MOST_ASKED: u32 = 64;

/// The counter of a loop and its end, and how a way out compares them where the loop repeats.
struct Counted {
    /// The statement that compares.
    test: u32,
    counter: Counter,
    end: Interval,
    order: Order,
    signed: bool,
    width: u8,
}

/// Whether a loop that nothing polls, and that comes back at most `rounds` times by what PTX says, may do so more often.
pub(crate) fn is_counted_otherwise(body: &Body<'_>, blocks: &[u32], rounds: u64) -> bool {
    let looped = Looped { body, blocks };
    // Blocks, and whether their branch leaves where it is taken.
    let edges = blocks.iter().flat_map(|block| body.graph.edges(*block).iter().map(move |edge| (*block, edge)));
    let branches = edges.filter(|(_, edge)| !looped.holds(edge.to)).filter_map(|(block, edge)| Some((block, edge.when?)));
    let returns = blocks.iter().filter(|block| looped.returns(**block)).map(|block| (*block, true));
    let ways_out: Vec<(u32, bool)> = branches.chain(returns).collect();
    let compared: Vec<Counted> = ways_out.iter().flat_map(|(block, when)| looped.compared(*block, *when)).collect();
    let mut otherwise = compared.iter().filter(|counted| counted.is_taken_otherwise(rounds));
    // A loop with several ways out is not unrolled so, if these are still there when ptxas has folded what it knows.
    let is_alone = |counted: &Counted| !compared.iter().any(|other| other.test != counted.test && other.is_met());
    let asked = ways_out.iter().map(|(block, _)| looped.asked(*block)).fold(Asked::default(), Asked::or);
    asked.is_folded || !asked.memory && otherwise.any(is_alone)
}

/// What a way out depends on.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    /// On what an iteration loads.
    memory: bool,
    /// On what ptxas folds, whatever it is made of.
    is_folded: bool,
}

impl Asked {
    fn or(self, other: Self) -> Self {
        Self { memory: self.memory || other.memory, is_folded: self.is_folded || other.is_folded }
    }
}

/// Whether an instruction's result does not depend on its operands. No compiler leaves one.
fn is_nothing(made: &Instruction<'_>) -> bool {
    match made.op.head {
        "xor" | "sub" => is_of_one(made),
        "and" | "mul" => made.rest.contains(&Operand::Number(0)),
        _ => false,
    }
}

/// Whether both operands are the same register.
fn is_of_one(made: &Instruction<'_>) -> bool {
    matches!(made.rest[..], [Operand::Register(one), Operand::Register(other)] if one == other)
}

impl Counted {
    /// Whether ptxas may count it by another rule.
    fn is_taken_otherwise(&self, rounds: u64) -> bool {
        let &Self { counter: Counter { start, step }, end, order, signed, width, .. } = self;
        // Loops that count in fewer bits are not unrolled so.
        if width < 32 {
            return false;
        }
        let (half, step) = (1_i128 << (width - 1), step.signed(width));
        // Four steps at a time must fit. Loops whose step is no number are not unrolled so.
        if order != Order::Eq && step.lo == step.hi && 4 * step.lo.abs() >= half {
            return true;
        }
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

    /// Whether the counter may come to the end as far as ptxas can tell.
    fn is_met(&self) -> bool {
        self.order == Order::Ne && self.counter.step.value(self.width).is_some_and(|step| step != 0)
    }
}

impl<'a> Looped<'_, 'a> {
    /// Whether a block ends with a guarded return.
    fn returns(&self, block: u32) -> bool {
        let last = self.body.graph.blocks[block as usize].end.checked_sub(1).map(|last| self.body.function.statements[last as usize]);
        last.is_some_and(|last| last.guarded && matches!(last.flow, Flow::Return | Flow::End))
    }

    /// What a way out depends on.
    fn asked(&self, block: u32) -> Asked {
        let last = self.body.graph.blocks[block as usize].end - 1;
        let mut work: Vec<Register> = self.body.decode(last).guard.and_then(|(predicate, _)| predicate).into_iter().collect();
        let (mut found, mut asked) = (Asked::default(), 0);
        while let Some(register) = work.pop() {
            for writer in self.writers(register) {
                asked += 1;
                if asked > MOST_ASKED {
                    return found;
                }
                let made = self.body.decode(writer);
                if made.op.compares.is_some() && is_of_one(&made) {
                    continue;
                }
                found.memory |= matches!(made.op.head, "ld" | "atom") && !self.keeps(Operand::Register(register), 0);
                found.is_folded |= is_nothing(&made);
                self.body.code.each_read(writer, |read| work.push(read));
            }
        }
        found
    }

    /// What a way out compares, with each operand as the counter. There are several comparisons where the loop repeats only while all of them hold.
    fn compared(&self, block: u32, leaves_when: bool) -> Vec<Counted> {
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
            let goes_on = goes_on ^ (instruction.first.get(1) == Some(&predicate));
            if let (Some((Some(guard), when)), [Operand::Number(number)]) = (instruction.guard, &instruction.rest[..]) {
                work.push((guard, ((*number != 0) == goes_on) == when, test));
            }
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
                    work.extend(self.chosen_by(left, right, (order, signed, width)));
                    found.extend([(left, right, order), (right, left, order.mirrored())].into_iter().filter_map(
                        |(counter, end, order)| {
                            let counter = self.counter(counter, width).filter(|_| self.keeps(end, 0))?;
                            Some(Counted { test, counter, end: self.value(end, test, width), order, signed, width })
                        },
                    ));
                }
                _ => {}
            }
        }
        found
    }

    /// The predicate by which one of two numbers is chosen that are compared with a third, what it is where the comparison holds, and the statement that
    /// chooses.
    fn chosen_by(
        &self,
        chosen: Operand<'a>,
        other: Operand<'a>,
        (order, signed, width): (Order, bool, u8),
    ) -> Option<(Register, bool, u32)> {
        let (Operand::Register(chosen), Operand::Number(number)) = (chosen, other) else { return None };
        let mut writers = self.writers(chosen);
        let (first, second) = (writers.next()?, writers.next());
        let known =
            |operand: Operand<'a>, at: u32| self.value(operand, at, width).value(width).filter(|_| writers.clone().next().is_none());
        let instruction = self.body.decode(first);
        let (chooses, one, other, predicate, when) = match (instruction.op.head, &instruction.rest[..], second) {
            ("selp", &[one, other, Operand::Register(predicate)], None) => {
                (first, known(one, first)?, known(other, first)?, predicate, true)
            }
            // One number, and another one under a guard.
            ("mov", &[other], Some(second)) => {
                let guarded = self.body.decode(second);
                let (Some((Some(predicate), when)), "mov", &[one]) = (guarded.guard, guarded.op.head, &guarded.rest[..]) else {
                    return None;
                };
                (second, known(one, second)?, known(other, first)?, predicate, when)
            }
            _ => return None,
        };
        let of = |number: i128| Interval::constant(number, width);
        let holds = |chosen: i128| of(chosen).compare(order, of(number), signed, width);
        (holds(one)? != holds(other)?).then_some((predicate, holds(one)? == when, chooses))
    }
}
