//! Addresses that the stack keeps, as code that is not optimised does with references.

use crate::interpret::body::Body;
use crate::program::instruction::{Operand, Register, spaces};
use std::collections::BTreeSet;

/// Most blocks that are walked for one address.
const MOST_WALKED: usize = 4096;

/// Whether the address that a store writes to is surely there: where it is read from the stack, it was put there before. Else it may be any.
pub(super) fn is_there(body: &Body<'_>, store: u32) -> bool {
    let base = |operand: &Operand<'_>| match operand {
        Operand::Register(of) | Operand::At(of, _) => Some(*of),
        _ => None,
    };
    let mut work: Vec<Register> = body.plain(store).first_address.iter().filter_map(base).collect();
    let mut seen: BTreeSet<Register> = work.iter().copied().collect();
    let own = body.registers.local_bytes();
    while let Some(register) = work.pop() {
        for &writer in body.writers(register) {
            if let Some(read) = own.get(&writer).filter(|bytes| !bytes.is_store) {
                let puts = |at: u32| body.code.guard(at).is_none() && own.get(&at).is_some_and(|put| put.is_store && put.is_same(*read));
                if !comes_before(body, puts, writer) {
                    return false;
                }
            }
            work.extend(body.plain(writer).rest.iter().filter_map(base).filter(|of| seen.insert(*of)));
        }
    }
    true
}

/// Whether a store writes by an address that is made of the stack's addresses alone, or was kept there. Debug builds keep pointers so in functions
/// whose stack words are not followed.
pub(super) fn is_of_stack(body: &Body<'_>, store: u32) -> bool {
    let is_elsewhere = |opcode: &str| spaces(opcode).any(|space| space != "local");
    let made = body.plain(store);
    let (mut seen, mut work) = (BTreeSet::new(), Vec::new());
    match made.first_address {
        Some(Operand::At(register, _)) => work.push(register),
        Some(Operand::AtOwn(..)) => {}
        _ => return false,
    }
    if made.op.head != "st" || is_elsewhere(made.opcode) {
        return false;
    }
    while let Some(register) = work.pop() {
        let writers = body.writers(register);
        if writers.is_empty() {
            return false;
        }
        for &writer in writers {
            let made = body.plain(writer);
            match (made.op.head, &made.rest[..]) {
                ("ld", _) if is_elsewhere(made.opcode) => return false,
                ("mov" | "cvta" | "ld", [Operand::Own(_) | Operand::AtOwn(..)]) => {}
                ("mov" | "cvta" | "ld", [Operand::Register(of) | Operand::At(of, _)]) | ("add" | "sub", [Operand::Register(of), _]) => {
                    work.extend(Some(*of).filter(|of| seen.insert(*of)));
                }
                _ => return false,
            }
        }
    }
    true
}

/// Whether each way to a statement passes one of some others.
fn comes_before(body: &Body<'_>, is_one: impl Fn(u32) -> bool, at: u32) -> bool {
    let last = body.block_of(at);
    let (mut work, mut seen) = (vec![body.block_of(0)], BTreeSet::from([body.block_of(0)]));
    while let Some(number) = work.pop() {
        let block = body.graph.blocks[number as usize];
        let end = if number == last { at } else { block.end };
        if (block.first..end).any(&is_one) {
            continue;
        }
        if number == last || seen.len() > MOST_WALKED {
            return false;
        }
        work.extend(body.graph.edges(number).iter().map(|edge| edge.to).filter(|to| seen.insert(*to)));
    }
    true
}
