//! Thresholds for widening: the constants that a register is compared with, set to and clamped to. Their neighbours, and
//! their sums and products with constants, are some too. So is what steps leave of the least one.

use crate::interpret::step::Step;
use crate::program::instruction::{Operand, Order};
use std::collections::BTreeMap;

/// Most marks of registers that take over each other's values.
const MOST: usize = 64;

/// Largest factor that marks are multiplied with, as a power of two.
const MOST_SHIFT: i128 = 5;

/// The same of what is shifted to the left.
const MOST_DOUBLED: i128 = 30;

/// Most threads of a block along an axis.
const MOST_THREADS: i128 = 1024;

/// Marks by slot. Slots whose values go over into each other, by copies and by sums with constants, have theirs in common.
#[derive(Debug, Default)]
pub(crate) struct Thresholds {
    /// The class of each slot.
    class_of: Vec<u32>,
    /// The marks of each class, sorted.
    by_class: Vec<Vec<i128>>,
}

impl Thresholds {
    pub(crate) fn new(steps: &[Step<'_>], slots: usize, first_sum: u32) -> Self {
        let class_of = classes(steps, slots, first_sum);
        let mut thresholds = Self { by_class: vec![Vec::new(); class_of.len()], class_of };
        thresholds.add_constants(steps);
        thresholds.add_sums(steps);
        thresholds.add_products(steps);
        thresholds.add_falls(steps);
        for marks in &mut thresholds.by_class {
            marks.push(0);
            marks.sort_unstable();
            marks.dedup();
            marks.truncate(MOST);
        }
        thresholds
    }

    fn marks(&mut self, slot: u32) -> &mut Vec<i128> {
        &mut self.by_class[self.class_of[slot as usize] as usize]
    }

    /// Adds what slots are compared with, set to and clamped to.
    fn add_constants(&mut self, steps: &[Step<'_>]) {
        // What is compared with the size of a block comes to rest at the largest.
        let is_size = |step: &&Step<'_>| matches!(step.instruction.rest.first(), Some(Operand::Name(name)) if name.starts_with("%ntid."));
        let of_blocks: Vec<u32> = steps.iter().filter(is_size).filter_map(result).map(|slot| self.class_of[slot as usize]).collect();
        // What doubles up to a register's value mostly does so up to such a size, too.
        let is_shift = |step: &&Step<'_>| step.instruction.op.head == "shl";
        let doubled: Vec<u32> = steps.iter().filter(is_shift).filter_map(result).map(|slot| self.class_of[slot as usize]).collect();
        for step in steps {
            let instruction = &step.instruction;
            let numbers =
                instruction.rest.iter().filter_map(|operand| if let Operand::Number(value) = operand { Some(*value) } else { None });
            if instruction.op.compares.is_some() {
                let sides: Vec<u32> = instruction.rest.iter().filter_map(|operand| slot(Some(operand))).collect();
                let is_among = |classes: &[u32]| sides.iter().any(|side| classes.contains(&self.class_of[*side as usize]));
                if is_among(&of_blocks) || sides.len() > 1 && is_among(&doubled) {
                    for side in &sides {
                        self.marks(*side).extend([MOST_THREADS - 1, MOST_THREADS, MOST_THREADS + 1]);
                    }
                }
                for value in numbers {
                    for side in &sides {
                        self.marks(*side).extend([value - 1, value, value + 1]);
                    }
                }
            } else if matches!(instruction.op.head, "mov" | "min" | "max" | "selp")
                && let Some(result) = result(step)
            {
                self.marks(result).extend(numbers);
            }
        }
    }

    /// Adds multiples of the marks so far: what grows by a factor goes beyond its bound by that.
    fn add_products(&mut self, steps: &[Step<'_>]) {
        let mut products: Vec<(u32, Vec<i128>)> = Vec::new();
        for step in steps {
            let instruction = &step.instruction;
            let (Some(of), Some(Operand::Number(number))) = (slot(instruction.rest.first()), instruction.rest.get(1)) else { continue };
            let factor = match instruction.op.head {
                "shl" if (1..=MOST_DOUBLED).contains(number) => 1 << number,
                "mul" if instruction.op.suffix.starts_with("lo.") && (2..=1 << MOST_SHIFT).contains(number) => *number,
                _ => continue,
            };
            let Some(result) = result(step) else { continue };
            products.push((result, self.marks(of).iter().map(|mark| mark * factor).collect()));
        }
        for (result, marks) in products {
            self.marks(result).extend(marks);
        }
    }

    /// Adds where the marks so far come to by one step, for classes with one sum alone. What is compared before its step goes beyond the bound by that.
    fn add_sums(&mut self, steps: &[Step<'_>]) {
        let mut sums: BTreeMap<u32, Vec<i128>> = BTreeMap::new();
        for step in steps {
            let instruction = &step.instruction;
            if let (Some(sign), Some(result), [Operand::Register(_), Operand::Number(number)]) =
                (instruction.op.sums(), result(step), &instruction.rest[..])
            {
                sums.entry(self.class_of[result as usize]).or_default().push(number * i128::from(sign));
            }
        }
        for (class, sums) in sums {
            let marks = &mut self.by_class[class as usize];
            // Those of too many would push out the largest.
            if let ([by], true) = (&sums[..], 2 * marks.len() <= MOST) {
                marks.extend_from_within(..);
                let half = marks.len() / 2;
                marks[half..].iter_mut().for_each(|mark| *mark += by);
            }
        }
    }

    /// Adds where the least mark of a class comes to if all that steps take from its slots, in place, is taken once. A budget that several steps take
    /// from is asked for behind some of them alone, and is below its mark by what the others take.
    fn add_falls(&mut self, steps: &[Step<'_>]) {
        let mut falls: BTreeMap<u32, (u32, i128)> = BTreeMap::new();
        for step in steps {
            let instruction = &step.instruction;
            if let (Some(sign), Some(result), [Operand::Register(of), Operand::Number(number)]) =
                (instruction.op.sums(), result(step), &instruction.rest[..])
                && *of == result
            {
                let by = number * i128::from(sign);
                if by < 0 {
                    let (count, fall) = falls.entry(self.class_of[result as usize]).or_default();
                    (*count, *fall) = (*count + 1, *fall + by);
                }
            }
        }
        falls.retain(|_, (count, _)| *count > 1);
        if falls.is_empty() {
            return;
        }
        // What is only asked for being a number comes to that exactly.
        let is_ordered = |step: &&Step<'_>| {
            let order = step.instruction.op.compares.map(|(order, ..)| order);
            matches!(order, Some(Order::Lt | Order::Le | Order::Gt | Order::Ge))
        };
        let asked: Vec<u32> = steps
            .iter()
            .filter(is_ordered)
            .filter_map(|step| match step.instruction.rest[..] {
                [Operand::Register(slot), Operand::Number(_)] => Some(self.class_of[slot as usize]),
                _ => None,
            })
            .collect();
        for (class, (_, fall)) in falls {
            let marks = &mut self.by_class[class as usize];
            if asked.contains(&class) {
                marks.push(marks.iter().fold(0, |least, mark| *mark.min(&least)) + fall);
            }
        }
    }

    pub(crate) fn of(&self, slot: u32) -> &[i128] {
        self.class_of.get(slot as usize).map_or(&[], |class| &self.by_class[*class as usize])
    }
}

/// The slot of a step's first result, if that is followed.
fn result(step: &Step<'_>) -> Option<u32> {
    step.writes.first().copied().filter(|slot| *slot != u32::MAX)
}

fn slot(operand: Option<&Operand<'_>>) -> Option<u32> {
    match operand {
        Some(Operand::Register(slot)) => Some(*slot),
        _ => None,
    }
}

/// The class of each slot, by copies and by sums with constants.
fn classes(steps: &[Step<'_>], slots: usize, first_sum: u32) -> Vec<u32> {
    let mut classes = Classes { above: (0..slots as u32).collect() };
    for step in steps {
        let Some(result) = result(step) else { continue };
        let instruction = &step.instruction;
        let head = instruction.op.head;
        let operands = match head {
            "mov" | "cvt" | "neg" | "not" => 1,
            "add" | "sub" | "min" | "max" | "selp" => 2,
            _ => 0,
        };
        // What a register adds says little of where the sum comes to rest.
        let registers = instruction.rest.iter().take(operands).filter(|operand| matches!(operand, Operand::Register(_))).count();
        if registers > 1 && matches!(head, "add" | "sub") {
            continue;
        }
        for of in (0..operands).filter_map(|nth| slot(instruction.rest.get(nth))) {
            classes.unite(result, of);
        }
    }
    for step in steps {
        if let (Some(derived), Some(result)) = (step.derived, result(step)) {
            classes.unite(result, first_sum + derived.sum);
        }
    }
    (0..slots as u32).map(|slot| classes.root(slot)).collect()
}

/// Disjoint sets of slots.
struct Classes {
    above: Vec<u32>,
}

impl Classes {
    fn root(&mut self, slot: u32) -> u32 {
        let mut at = slot;
        while self.above[at as usize] != at {
            // Each look makes the way shorter.
            self.above[at as usize] = self.above[self.above[at as usize] as usize];
            at = self.above[at as usize];
        }
        at
    }

    fn unite(&mut self, one: u32, two: u32) {
        let (one, two) = (self.root(one), self.root(two));
        self.above[one as usize] = two;
    }
}
