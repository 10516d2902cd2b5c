//! Equations that hold between registers which are written in front of loops. What refines one register refines those
//! made of it.
//!
//! Let one instruction alone write a register, `into = f(…)`, in a block that belongs to no loop. Let no operand be
//! written after it. Then `into` equals `f` of its operands wherever that block was passed. So where a branch refines
//! an operand, the instruction is evaluated again.

use crate::domain::state::State;
use crate::domain::transfer::result;
use crate::domain::value::Value;
use crate::interpret::body::Body;
use crate::interpret::here::Here;
use crate::interpret::pass::Pass;
use crate::interpret::slice::{Equations, Slice};
use crate::interpret::step::{NO_STATEMENT, Step};
use crate::program::instruction::Operand;
use std::collections::BTreeMap;

/// Most equations of one slice, and most blocks of a function that they are looked for in.
const MOST: usize = 128;

const MOST_BLOCKS: usize = 4096;

/// The equations among a slice's steps.
pub(crate) fn find(body: &Body<'_>, blocks: &[u32], slice: &Slice<'_>) -> Equations {
    let mut found: Vec<((u32, u32), u32)> = Vec::new();
    if body.graph.blocks.len() > MOST_BLOCKS {
        return Equations::new();
    }
    // What is written elsewhere than the text says is another value now and then.
    let mut is_moved = vec![false; slice.slots.len()];
    for slot in slice.steps.iter().filter(|step| step.statement == NO_STATEMENT).flat_map(|step| &step.writes) {
        is_moved[*slot as usize] = true;
    }
    for (index, step) in (0..).zip(&slice.steps) {
        let Some(into) = pure(step).filter(|into| !is_moved[*into as usize]) else { continue };
        let (writers, Some(when)) = (body.writers(slice.slots[into as usize].0), body.when(step.statement)) else { continue };
        let is_kept = |operand: &Operand<'_>| match operand {
            Operand::Register(slot) => {
                let mut writers = body.writers(slice.slots[*slot as usize].0).iter();
                !is_moved[*slot as usize] && writers.all(|writer| body.when(*writer).is_some_and(|written| written < when))
            }
            Operand::Number(_) => true,
            _ => false,
        };
        if writers == [step.statement] && step.instruction.rest.iter().all(is_kept) && found.len() < MOST {
            found.push((when, index));
        }
    }
    found.sort_unstable();
    let mut equations = Equations::new();
    let mut known: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    for ((_, statement), index) in found {
        let block = body.block_of(statement);
        let avoided = known.entry(block).or_insert_with(|| body.reached_without(block));
        for at in blocks.iter().filter(|at| !avoided[**at as usize]) {
            equations.entry(*at).or_default().push(index);
        }
    }
    equations
}

/// The one register that a step writes, if it does so whatever happens, and what it writes follows from its operands.
fn pure(step: &Step<'_>) -> Option<u32> {
    let instruction = &step.instruction;
    let heads = ["add", "sub", "mul", "mad", "neg", "min", "max", "and", "or", "xor", "not", "shl", "shr", "rem", "div", "bfe", "cvt"];
    let is_pure = step.statement != NO_STATEMENT && !step.is_wild && instruction.guard.is_none() && heads.contains(&instruction.op.head);
    match step.writes[..] {
        [into] if is_pure && into != u32::MAX => Some(into),
        _ => None,
    }
}

impl Pass<'_, '_> {
    /// Takes in what the equations say at a block's end, or in front of a statement of it, of what differs from `before`; false if that can't be.
    pub(crate) fn solve(&self, (block, end): (u32, Option<u32>), before: &State, state: &mut State) -> bool {
        let Some(equations) = self.slice.equations.get(&block) else { return true };
        let mut is_new = vec![false; self.slice.slots.len()];
        for (slot, held) in state.iter() {
            is_new[slot as usize] = before.get(slot).is_none_or(|before| before.range != held.range);
        }
        // Registers in between that are dead by now are kept as long as this takes.
        let mut all = state.clone();
        for &index in equations {
            let step = &self.slice.steps[index as usize];
            if end.is_some_and(|end| step.statement >= end && self.body.block_of(step.statement) == block) {
                continue;
            }
            let (into, reads_new) =
                (step.writes[0], |operand: &Operand<'_>| matches!(operand, Operand::Register(slot) if is_new[*slot as usize]));
            if !step.instruction.rest.iter().any(reads_new) {
                continue;
            }
            let width = self.slice.slots[into as usize].1.clamp(1, 64);
            let value = result(&step.instruction, 0, width, index, &Here { pass: self, state: &all });
            let held = all.get(into).copied();
            let mut met = held.unwrap_or_else(|| Value::unknown(width));
            if !met.meet(value.range, width) {
                return false;
            }
            let is_narrowed = held.is_none_or(|held| held.range != met.range);
            // A branch may have narrowed it before.
            is_new[into as usize] |= is_narrowed;
            let can_be = match held {
                Some(held) if is_narrowed => {
                    self.narrow(state, held.name, met.range, width) && self.narrow(&mut all, held.name, met.range, width)
                }
                Some(_) => true,
                None => {
                    all.set(into, Value::of(met.range));
                    true
                }
            };
            if !can_be {
                return false;
            }
        }
        true
    }
}
