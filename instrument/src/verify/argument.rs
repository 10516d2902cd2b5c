//! Arguments of calls that are not zero, and what that says in the callee.
//!
//! A look hands its reason to the function that stops: one that is zero would mean that there is none, and that function comes back.

use super::body::Body;
use super::calls::arguments;
use super::graph::names;
use super::instruction::{Instruction, Op, Operand, text_of};
use super::slice::Slice;
use super::text::{Flow, Function};
use super::value::Assumption;

/// Parameters of which it is known that they are not zero, a bit for each.
pub(super) type NotZero = u32;

/// Whether a call returns to its caller, under an assumption and with such arguments.
pub(super) type Returns<'r> = dyn Fn(u32, Assumption, NotZero) -> bool + 'r;

/// What a call hands on in words of 32 bits, by the number of the parameter, where the block that it ends stores it as a whole: a register keeps
/// its value from there to the call.
pub(super) fn handed<'a>(body: &Body<'a>, block: u32) -> Vec<(u32, Operand<'a>)> {
    let statements = &body.function.statements;
    let within = body.graph.blocks[block as usize];
    let call = within.end - 1;
    if statements[call as usize].flow != Flow::Call {
        return Vec::new();
    }
    let stored = |name: &str| {
        // Whatever comes last decides: a part of it, or a store that may not happen, says nothing of the whole.
        let at = (within.first..call).rev().find(|at| names(text_of(body.text, &statements[*at as usize])).any(|word| word == name))?;
        let store = body.plain(at);
        let is_here = statements[at as usize].scope == statements[call as usize].scope;
        let is_whole = is_here && store.first_address == Some(Operand::AtSymbol(name, 0)) && store.guard.is_none();
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
    let names = arguments(body.text, &statements[call as usize]);
    (0..NotZero::BITS).zip(names).filter_map(|(nth, name)| Some((nth, stored(name)?))).collect()
}

/// Takes these parameters to be something else than zero where a function loads them.
pub(super) fn take(slice: &mut Slice<'_>, body: &Body<'_>, not_zero: NotZero) {
    let wanted = (0..NotZero::BITS).zip(parameters(body.function)).filter(|(nth, _)| not_zero >> nth & 1 == 1);
    for name in wanted.filter_map(|(_, name)| name) {
        // One that is named anywhere else may be written there.
        let is_named = |at: &u32| names(text_of(body.text, &body.function.statements[*at as usize])).any(|word| word == name);
        let mut uses = (0..body.function.statements.len() as u32).filter(is_named);
        let (Some(load), None) = (uses.next(), uses.next()) else { continue };
        for step in slice.steps.iter_mut().filter(|step| step.statement == load) {
            let instruction = &mut step.instruction;
            let is_whole = matches!(instruction.opcode, "ld.param.b32" | "ld.param.u32" | "ld.param.s32")
                && matches!(instruction.rest[..], [Operand::AtSymbol(_, 0)])
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
fn parameters<'a>(function: &Function<'a>) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
    let inside = function.head.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    inside.split(',').map(|parameter| {
        let mut words = names(parameter);
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(".param"), Some(".b32" | ".u32" | ".s32"), Some(name), None) => Some(name),
            _ => None,
        }
    })
}
