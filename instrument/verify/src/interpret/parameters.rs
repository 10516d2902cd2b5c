//! Arguments of calls that are not zero, and what follows for the callee.
//!
//! A poll passes its reason to the function that stops. A reason of zero would mean that there is none, and that
//! function would return.

use crate::domain::value::Assumption;
use crate::interpret::slice::Slice;
use crate::program::definitions::Definitions;
use crate::program::instruction::{Instruction, Op, Operand};
use cuinstr_ptx::{Code, Declared, Flow, NameId};

/// Parameters of which it is known that they are not zero, a bit for each.
pub(crate) type NotZero = u32;

/// Whether a call returns to its caller, under an assumption and with such arguments.
pub(crate) type Returns<'r> = dyn Fn(u32, Assumption, NotZero) -> bool + 'r;

/// What a call hands on in words of 32 bits, by the number of the parameter. The block that the call ends must store
/// the word as a whole: a register keeps its value from there to the call.
pub(crate) fn handed<'a>(body: &Definitions<'a>, block: u32) -> Vec<(u32, Operand<'a>)> {
    let statements = &body.function.statements;
    let within = body.graph.blocks[block as usize];
    let call = within.end - 1;
    if statements[call as usize].flow != Flow::Call {
        return Vec::new();
    }
    let stored = |name: NameId| {
        // Whatever comes last decides: a part of it, or a store that may not happen, says nothing of the whole.
        let at = (within.first..call).rev().find(|at| is_named(body.code, *at, name))?;
        let store = body.plain(at);
        let is_whole = store.first_address == Some(Operand::AtOwn(name, 0)) && store.guard.is_none();
        if !is_whole || !matches!(store.opcode, "st.param.b32" | "st.param.u32" | "st.param.s32") {
            return None;
        }
        match store.rest[..] {
            [Operand::Register(register)] => {
                let is_kept = body.writers_between(register, at..call).is_empty() && body.registers.width(register) == 32;
                is_kept.then_some(store.rest[0])
            }
            [Operand::Number(_)] => Some(store.rest[0]),
            _ => None,
        }
    };
    (0..NotZero::BITS).zip(arguments(body.code, call)).filter_map(|(nth, name)| Some((nth, stored(name?)?))).collect()
}

/// Whether a statement names a variable or parameter, but as what it guards.
fn is_named(code: &Code<'_>, statement: u32, name: NameId) -> bool {
    use cuinstr_ptx::Operand::{AtName, Name};
    code.all_operands(statement).iter().any(|operand| matches!(operand, Name(of, _) | AtName(of, _) if *of == name))
}

/// What a call hands on, in order; none for what is no variable of the function.
fn arguments<'c>(code: &'c Code<'_>, call: u32) -> impl Iterator<Item = Option<NameId>> + use<'c> {
    use cuinstr_ptx::Operand::{Group, Name};
    // What is returned stands in front of the callee.
    let group = code.operands(call).iter().skip(1).find_map(|operand| if let Group(list) = operand { Some(*list) } else { None });
    let all = group.map_or(&[][..], |group| code.list(group));
    all.iter().map(|operand| if let Name(name, 0) = operand { Some(*name) } else { None })
}

/// Takes these parameters to be something else than zero where a function loads them.
pub(crate) fn take(slice: &mut Slice<'_>, body: &Definitions<'_>, not_zero: NotZero) {
    let wanted = (0..NotZero::BITS).zip(parameters(body.code)).filter(|(nth, _)| not_zero >> nth & 1 == 1);
    for name in wanted.filter_map(|(_, name)| name) {
        // One that is named anywhere else may be written there.
        let mut uses = (0..body.function.statements.len() as u32).filter(|at| is_named(body.code, *at, name));
        let (Some(load), None) = (uses.next(), uses.next()) else { continue };
        for step in slice.steps.iter_mut().filter(|step| step.statement == load) {
            let instruction = &mut step.instruction;
            let is_whole = matches!(instruction.opcode, "ld.param.b32" | "ld.param.u32" | "ld.param.s32")
                && matches!(instruction.rest[..], [Operand::AtOwn(_, 0)])
                && step.writes.iter().all(|slot| slice.slots.get(*slot as usize).is_some_and(|(_, width)| *width == 32));
            if is_whole {
                // Any value, but one at least.
                let opcode = "max.u32";
                let rest = vec![Operand::Unknown, Operand::Number(1)];
                *instruction = Instruction { opcode, op: Op::new(opcode), rest, ..instruction.clone() };
            }
        }
    }
}

/// The names of a function's parameters; none for those that are no word of 32 bits.
fn parameters(code: &Code<'_>) -> impl Iterator<Item = Option<NameId>> {
    let results = code.function.results.len() as u32;
    code.function.parameters.iter().zip(results..).map(move |(parameter, number)| {
        let is_word = parameter.space == ".param" && parameter.elements.is_none() && matches!(parameter.kind, ".b32" | ".u32" | ".s32");
        let name = code.names().iter().position(|name| name.declared == Declared::Parameter(number));
        name.filter(|_| is_word).map(|name| name as NameId)
    })
}
