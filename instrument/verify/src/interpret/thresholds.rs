//! Thresholds for widening: the constants that a register is compared with, set to and clamped to, and their
//! neighbours.

use crate::interpret::step::Step;
use crate::program::instruction::Operand;

/// Most marks of registers that take over each other's values.
const MOST: usize = 64;

/// Largest factor that marks are multiplied with, as a power of two.
const MOST_SHIFT: i128 = 5;

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
        let mut classes = Classes { above: (0..slots as u32).collect() };
        let slot = |operand: Option<&Operand<'_>>| match operand {
            Some(Operand::Register(slot)) => Some(*slot),
            _ => None,
        };
        for step in steps {
            let (instruction, Some(result)) = (&step.instruction, step.writes.first().filter(|slot| **slot != u32::MAX)) else { continue };
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
                classes.unite(*result, of);
            }
        }
        for step in steps {
            if let Some(derived) = step.derived
                && let Some(result) = step.writes.first().filter(|slot| **slot != u32::MAX)
            {
                classes.unite(*result, first_sum + derived.sum);
            }
        }
        let roots: Vec<u32> = (0..slots as u32).map(|slot| classes.root(slot)).collect();
        let mut by_class: Vec<Vec<i128>> = vec![Vec::new(); roots.len()];
        // What is compared with the size of a block comes to rest at the largest.
        let mut of_blocks: Vec<usize> = Vec::new();
        for step in steps {
            let is_size = matches!(step.instruction.rest.first(), Some(Operand::Name(name)) if name.starts_with("%ntid."));
            if is_size && let Some(result) = step.writes.first().filter(|slot| **slot != u32::MAX) {
                of_blocks.push(roots[*result as usize] as usize);
            }
        }
        for step in steps {
            let instruction = &step.instruction;
            let head = instruction.op.head;
            let compares = instruction.op.compares.is_some();
            let numbers =
                instruction.rest.iter().filter_map(|operand| if let Operand::Number(value) = operand { Some(*value) } else { None });
            if compares {
                let sides: Vec<u32> = instruction.rest.iter().filter_map(|operand| slot(Some(operand))).collect();
                if sides.iter().any(|side| of_blocks.contains(&(roots[*side as usize] as usize))) {
                    for side in &sides {
                        by_class[roots[*side as usize] as usize].extend([MOST_THREADS - 1, MOST_THREADS, MOST_THREADS + 1]);
                    }
                }
                for value in numbers {
                    for side in &sides {
                        by_class[roots[*side as usize] as usize].extend([value - 1, value, value + 1]);
                    }
                }
            } else if matches!(head, "mov" | "min" | "max" | "selp")
                && let Some(result) = step.writes.first().filter(|slot| **slot != u32::MAX)
            {
                by_class[roots[*result as usize] as usize].extend(numbers);
            }
        }
        // What grows by a factor goes beyond its bound by that.
        let mut products: Vec<(usize, Vec<i128>)> = Vec::new();
        for step in steps {
            let instruction = &step.instruction;
            let (Some(of), Some(Operand::Number(number))) = (slot(instruction.rest.first()), instruction.rest.get(1)) else { continue };
            let factor = match instruction.op.head {
                "shl" if (1..=MOST_SHIFT).contains(number) => 1 << number,
                "mul" if instruction.op.suffix.starts_with("lo.") && (2..=1 << MOST_SHIFT).contains(number) => *number,
                _ => continue,
            };
            let Some(result) = step.writes.first().filter(|slot| **slot != u32::MAX) else { continue };
            let thresholds = by_class[roots[of as usize] as usize].iter().map(|mark| mark * factor).collect();
            products.push((roots[*result as usize] as usize, thresholds));
        }
        for (class, thresholds) in products {
            by_class[class].extend(thresholds);
        }
        for thresholds in &mut by_class {
            thresholds.push(0);
            thresholds.sort_unstable();
            thresholds.dedup();
            thresholds.truncate(MOST);
        }
        Self { class_of: roots, by_class }
    }

    pub(crate) fn of(&self, slot: u32) -> &[i128] {
        self.class_of.get(slot as usize).map_or(&[], |class| &self.by_class[*class as usize])
    }
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
