//! Stores that may be to the stack.

use crate::interpret::body::Body;
use crate::program::instruction::{Operand, Register, spaces};
use cuinstr_ptx::Flow;
use std::collections::BTreeSet;

/// Whether a store may be one to the stack, as code that is not optimised keeps addresses.
pub(super) fn may_be_own(body: &Body<'_>, at: u32) -> bool {
    let store = body.plain(at);
    let is_word = store.opcode != body.code.opcode(at);
    let is_elsewhere = store.op.head != "st" || spaces(store.opcode).any(|space| space != "local");
    let function = body.function;
    let may_be = || match store.first_address {
        // A caller's variable may be anywhere.
        Some(Operand::At(register, _)) => !function.is_kernel || may_be_of_stack(body, register),
        Some(Operand::AtOwn(..)) => true,
        _ => false,
    };
    is_word || !is_elsewhere && may_be()
}

/// Whether a kernel's register may hold an address of its stack: it is made of one, or was kept on the stack.
fn may_be_of_stack(body: &Body<'_>, register: Register) -> bool {
    let (mut seen, mut work) = (BTreeSet::from([register]), vec![register]);
    while let Some(register) = work.pop() {
        for &writer in body.writers(register) {
            let made = body.plain(writer);
            let is_local = spaces(made.opcode).any(|space| space == "local");
            let is_load = matches!(made.op.head, "ld" | "ldu");
            let is_other = is_load && !is_local && spaces(made.opcode).next().is_some();
            let is_own = made.rest.iter().any(|operand| matches!(operand, Operand::Own(_) | Operand::AtOwn(..) | Operand::Unknown));
            if is_other {
                continue;
            }
            if is_local || is_own || body.function.statements[writer as usize].flow == Flow::Call {
                return true;
            }
            let read = made.rest.iter().filter_map(|operand| match operand {
                Operand::Register(of) | Operand::At(of, _) => Some(*of),
                _ => None,
            });
            work.extend(read.chain(made.all.iter().copied()).filter(|of| seen.insert(*of)));
        }
    }
    false
}
