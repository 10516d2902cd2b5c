//! Stores to the control block and to the flag. A kernel that changes them can't be stopped, whatever its loops ask.
//!
//! What stops a thread may store the launch's number to the flag's target, the launch's start, and the stop record (docs/ABI.md). Every other store
//! is a fault whose address is known to be the control block's and a number, or the flag's pointer. Addresses are followed back from the store, as
//! far as values in front of a loop are.

use super::body::Body;
use super::instruction::{Instruction, Operand, Register};
use super::value::{CONTROL, FLAG, Kind, LAUNCH, OWN_RECORD_AT, START_AT};
use cuinstr_ptx::Flow;
use std::collections::BTreeMap;

/// Statements of a function that store where only the host may, and what they do.
pub(super) fn forbidden(body: &Body<'_>) -> Vec<(u32, &'static str)> {
    let mut addresses = Addresses { body, known: BTreeMap::new() };
    let mut found = Vec::new();
    for (at, statement) in (0..).zip(&body.function.statements) {
        if statement.flow == Flow::Next
            && stores(body.code.opcode(at))
            && let Some(what) = addresses.look(at)
        {
            found.push((at, what));
        }
    }
    found
}

/// Whether an instruction writes memory.
fn stores(text: &str) -> bool {
    ["st", "red", "atom", "cp", "multimem", "discard"]
        .iter()
        .any(|head| text.strip_prefix(head).is_some_and(|rest| !rest.starts_with("r.")))
}

struct Addresses<'b, 'a> {
    body: &'b Body<'a>,
    /// Whether a register may hold an address that is made of one of these symbols.
    known: BTreeMap<Register, bool>,
}

impl Addresses<'_, '_> {
    fn look(&mut self, at: u32) -> Option<&'static str> {
        let store = self.body.plain(at);
        let is_atomic = store.op.head == "atom" || store.op.head == "multimem" && store.first_address.is_none();
        let (address, value) =
            if is_atomic { (store.rest.first().copied(), store.rest.get(1)) } else { (store.first_address, store.rest.first()) };
        let (kind, offset) = match address? {
            Operand::AtSymbol(CONTROL, offset) => (Kind::Control(0), offset),
            Operand::AtSymbol(FLAG, offset) => (Kind::OwnFlag, offset),
            Operand::At(register, offset) if self.may_hold(register) => (self.body.value_at(register, at).kind, offset),
            _ => return None,
        };
        match kind {
            Kind::Control(base) => {
                let at = base.checked_add(offset)?;
                let is_start = (START_AT..START_AT + 8).contains(&at);
                (at < OWN_RECORD_AT && !is_start).then_some("the control block is written")
            }
            Kind::Flag | Kind::OwnFlag if offset == 0 => {
                let is_launch = match value {
                    Some(Operand::Register(register)) => self.body.value_at(*register, at).name == LAUNCH,
                    _ => false,
                };
                let is_plain = store.op.head == "st" || is_atomic && store.op.suffix.split('.').any(|part| part == "exch");
                (!(is_launch && is_plain)).then_some("the flag is written, by something else than the launch's number")
            }
            _ => None,
        }
    }

    /// Whether some instruction makes a register of one of the symbols, or of what may hold them.
    fn may_hold(&mut self, register: Register) -> bool {
        let mut work = vec![register];
        // The register, and those that it is made of.
        let mut made: Vec<Register> = Vec::new();
        while let Some(register) = work.pop() {
            match self.known.get(&register) {
                Some(true) => {
                    self.known.extend(made.into_iter().map(|register| (register, true)));
                    return true;
                }
                Some(false) => continue,
                None => {}
            }
            self.known.insert(register, false);
            made.push(register);
            for &writer in self.body.writers(register) {
                let instruction = self.body.plain(writer);
                if names_them(&instruction) {
                    self.known.extend(made.into_iter().map(|register| (register, true)));
                    return true;
                }
                work.extend(sources(&instruction));
            }
        }
        false
    }
}

/// Whether an instruction names the control block or the flag.
fn names_them(instruction: &Instruction<'_>) -> bool {
    let is_it = |operand: &Operand<'_>| matches!(operand, Operand::Name(CONTROL | FLAG) | Operand::AtSymbol(CONTROL, _));
    instruction.rest.iter().any(is_it)
}

/// Registers that an address may be made of.
fn sources<'i>(instruction: &'i Instruction<'_>) -> impl Iterator<Item = Register> + use<'i> {
    instruction.rest.iter().filter_map(|operand| match operand {
        Operand::Register(register) | Operand::At(register, _) => Some(*register),
        _ => None,
    })
}
