//! Words of a thread's own stack that are as good as registers. Compilers that do not optimise keep what they count in memory (`st.u32
//! [%SP+8], %r1`), in a `.local` variable of the function.
//!
//! Such a word is followed like a register where nobody else can write it: the variable's address is put into registers that only serve as
//! the address of single loads and stores, each at a fixed offset, and no two of them overlap unless they are the same word. A variable whose
//! address is computed with, stored or handed to anybody is not followed at all, since from there on every store may mean it.

use super::graph::names;
use super::instruction::{Instruction, Op, Operand, Register, Registers, decode, head_of, text_of, type_of};
use super::text::Function;
use std::collections::BTreeMap;

/// What a statement does to a word of the stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// Stands for the word.
    pub(super) word: Register,
    pub(super) is_store: bool,
}

/// A load or store at a fixed offset of a variable.
struct Use {
    variable: usize,
    from: i64,
    bytes: i64,
    /// Bits, if the register has as many.
    width: Option<u8>,
    /// Offset of the statement.
    at: u32,
    is_store: bool,
}

/// Accesses of words that can be followed, by the offset of their statement; gives each word a register.
pub(super) fn find(function: &Function<'_>, registers: &mut Registers<'_>, text: &str) -> BTreeMap<u32, Access> {
    let local = |declaration: &&str| declaration.split_ascii_whitespace().any(|word| word == ".local");
    let mut variables: Vec<&str> = Vec::new();
    for declaration in function.declarations.iter().copied().filter(local) {
        // The name stands last, with its size in brackets: `.local .align 8 .b8 __local_depot6[16]`.
        let Some(name) = declaration.split('[').next().and_then(|head| head.split_ascii_whitespace().last()) else { continue };
        if declaration.contains(',') || variables.contains(&name) {
            return BTreeMap::new();
        }
        variables.push(name);
    }
    if variables.is_empty() {
        return BTreeMap::new();
    }
    let mut given_away = vec![false; variables.len()];
    // Registers that hold the address of a variable.
    let mut bases: BTreeMap<Register, usize> = BTreeMap::new();
    let mut taken: Vec<u32> = Vec::new();
    // How these are spelled, wherever they are declared.
    let mut base_names: Vec<&str> = Vec::new();
    for statement in &function.statements {
        let body = text_of(text, statement);
        // What is not even part of the text is not named.
        let may_name = variables.iter().any(|variable| holds(body, variable));
        if !(may_name && names(body).any(|name| variables.contains(&name)) || holds(body, "cvta")) {
            continue;
        }
        let instruction = decode(function, registers, text, statement);
        let of = match (instruction.opcode, &instruction.first[..], &instruction.rest[..], instruction.guard) {
            ("mov.u64" | "mov.b64", [base], [Operand::Name(name)], None) => {
                variables.iter().position(|variable| variable == name).map(|variable| (*base, variable))
            }
            ("cvta.local.u64", [base], [Operand::Register(from)], None) => bases.get(from).map(|variable| (*base, *variable)),
            _ => None,
        };
        match of {
            Some((base, variable)) => {
                // A register that has two meanings has none.
                if let Some(other) = bases.insert(base, variable) {
                    given_away[other] = true;
                    given_away[variable] = true;
                }
                taken.push(statement.start);
                base_names.extend(names(body).nth(1));
            }
            None => {
                for (variable, _) in variables.iter().enumerate().filter(|(_, variable)| names(body).any(|name| name == **variable)) {
                    given_away[variable] = true;
                }
            }
        }
    }
    let mut uses: Vec<Use> = Vec::new();
    for statement in &function.statements {
        let body = text_of(text, statement);
        if !base_names.iter().any(|name| holds(body, name)) || taken.contains(&statement.start) {
            continue;
        }
        let mentioned = |name: &str| registers.find(function, statement.scope, name).and_then(|register| bases.get(&register).copied());
        let mentioned: Vec<usize> = names(body).filter_map(mentioned).collect();
        let [variable] = mentioned[..] else {
            for variable in mentioned {
                given_away[variable] = true;
            }
            continue;
        };
        match used(&decode(function, registers, text, statement), registers, &bases) {
            Some((from, bytes, width, is_store)) => uses.push(Use { variable, from, bytes, width, at: statement.start, is_store }),
            None => given_away[variable] = true,
        }
    }
    uses.retain(|used| !given_away[used.variable]);
    uses.sort_unstable_by_key(|used| (used.variable, used.from));
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < uses.len() {
        // All that overlap.
        let mut end = uses[at].from + uses[at].bytes;
        let mut next = at + 1;
        while next < uses.len() && uses[next].variable == uses[at].variable && uses[next].from < end {
            end = end.max(uses[next].from + uses[next].bytes);
            next += 1;
        }
        let all = &uses[at..next];
        let width = all[0].width.filter(|_| all.iter().all(|used| (used.from, used.width) == (all[0].from, all[0].width)));
        if let Some(width) = width {
            let word = registers.add(width);
            found.extend(all.iter().map(|used| (used.at, Access { word, is_store: used.is_store })));
        }
        at = next;
    }
    found
}

/// Whether a statement's text holds a word. Both are short: to prepare a search would take longer than the search.
fn holds(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    text.windows(word.len().max(1)).any(|part| part.first() == word.first() && part == word)
}

/// Offset and size of a load or store by the address in one of these registers, its width if it moves one whole register, and whether it
/// is a store. None if it does anything else with that address.
fn used(
    instruction: &Instruction<'_>,
    registers: &Registers<'_>,
    bases: &BTreeMap<Register, usize>,
) -> Option<(i64, i64, Option<u8>, bool)> {
    let is_store = head_of(instruction.opcode) == "st";
    let (address, value) = match head_of(instruction.opcode) {
        "st" => (instruction.first_address?, instruction.rest.first().copied()),
        "ld" => (*instruction.rest.first()?, instruction.first.first().map(|register| Operand::Register(*register))),
        _ => return None,
    };
    let Operand::At(base, from) = address else { return None };
    let is_value_plain = !matches!(value, Some(Operand::Register(register)) if bases.contains_key(&register));
    if !bases.contains_key(&base) || !is_value_plain || instruction.guard.is_some_and(|(guard, _)| guard.is_none()) {
        return None;
    }
    let lanes = instruction.opcode.split('.').find_map(|part| part.strip_prefix('v').and_then(|count| count.parse::<i64>().ok()));
    let (bits, _) = type_of(instruction.op.kind)?;
    let same = matches!(value, Some(Operand::Register(register)) if registers.width(register) == bits)
        || matches!(value, Some(Operand::Number(_)) if is_store);
    let whole =
        lanes.is_none() && same && matches!(bits, 32 | 64) && instruction.first.len() + instruction.rest.len() == 2 - usize::from(is_store);
    Some((from, i64::from(bits / 8) * lanes.unwrap_or(1), whole.then_some(bits), is_store))
}

/// The access as a copy between registers.
pub(super) fn copy(access: Access, width: u8, instruction: Instruction<'_>) -> Instruction<'_> {
    let opcode = if width == 64 { "mov.b64" } else { "mov.b32" };
    let (first, rest) =
        if access.is_store { (vec![access.word], instruction.rest) } else { (instruction.first, vec![Operand::Register(access.word)]) };
    Instruction { guard: instruction.guard, opcode, first, rest, first_address: None, all: Vec::new(), op: Op::new(opcode) }
}
