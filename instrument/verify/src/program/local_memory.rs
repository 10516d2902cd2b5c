//! Words of local memory that are followed like registers. Compilers that do not optimise keep variables in memory
//! (`st.u32 [%SP+8], %r1`), in a `.local` variable of the function.
//!
//! A word is followed only if no other statement can write it. The variable's address, and addresses at fixed offsets
//! from it, must only be put into registers that serve as addresses of single loads and stores. No two accesses may
//! overlap unless they are of the same word.
//!
//! An address may be kept in a word of its own, as `this` and references are, if nothing else is ever stored there. A
//! variable is not followed at all if its address is computed with in another way, stored elsewhere, or passed to a
//! function. From there on every store may write it. None is followed, either, if local memory is named by what is no
//! such address: a number may be that of any word.

use crate::program::instruction::{Instruction, Op, Operand, Register, decode, head_of, spaces, type_of};
use crate::program::local_by_number::names_local;
use cuinstr_ptx::{Code, Declared, NameId};
use std::collections::{BTreeMap, BTreeSet};

/// What a statement does to a word of the stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word {
    /// Stands for the word.
    pub(crate) word: Register,
    pub(crate) is_store: bool,
}

/// An address: so many bytes from where a variable begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address {
    variable: usize,
    offset: i64,
    /// Whether it is one of all memory, rather than of local memory: `cvta` makes the one of the other.
    is_generic: bool,
    /// Whether it was read from a word that keeps it. What is stored or read by such an address is not followed: that word may not have been written
    /// yet.
    is_kept: bool,
}

/// A load or store at a fixed offset of a variable.
struct Use {
    variable: usize,
    from: i64,
    bytes: i64,
    /// Bits, if the register has as many.
    width: Option<u8>,
    /// The statement.
    at: u32,
    is_store: bool,
    /// The address that is stored.
    keeps: Option<Address>,
    /// Whether the address is that which a word keeps.
    is_by_kept: bool,
    /// Whether an address is read into a register that is known to hold it.
    is_put: bool,
}

/// What a statement does with addresses of variables.
#[derive(Default)]
struct Done {
    /// Puts one into a register.
    puts: Option<(Register, Address)>,
    uses: Option<Use>,
    /// Does anything else with these variables' addresses.
    gives_away: bool,
}

/// What holds addresses.
struct Addresses {
    /// The number of each variable.
    variables: BTreeMap<NameId, usize>,
    registers: BTreeMap<Register, Address>,
    /// Words that keep one, by variable and offset.
    words: BTreeMap<(usize, i64), Address>,
    /// Statements that name each register of 64 bits or variable, sorted.
    named: Vec<(Named, u32)>,
    /// Statements that name one of these code, or a variable.
    mentions: BTreeSet<u32>,
}

/// What may hold an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Register(Register),
    Variable(NameId),
}

/// Most times that statements are looked at for what holds addresses.
const MOST_LOOKS: usize = 8;

/// What is known of a function's own variables in local memory.
#[derive(Debug, Default)]
pub(crate) struct LocalMemory {
    /// Widths of words that are followed, each of which stands for a further register.
    pub(crate) words: Vec<u8>,
    /// Statements that read or write them.
    pub(crate) accesses: BTreeMap<u32, Word>,
    /// Other statements that read or write these variables, and where.
    pub(crate) others: BTreeMap<u32, Bytes>,
}

/// Some bytes of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    variable: usize,
    from: i64,
    count: i64,
    pub(crate) is_store: bool,
}

impl Bytes {
    pub(crate) fn meets(self, other: Self) -> bool {
        self.variable == other.variable && self.from < other.from + other.count && other.from < self.from + self.count
    }

    pub(crate) fn is_same(self, other: Self) -> bool {
        (self.variable, self.from, self.count) == (other.variable, other.from, other.count)
    }
}

/// Finds the words that can be followed. `callees_keep_off` says that no function that this one calls names local memory by a number.
pub(crate) fn find(code: &Code<'_>, callees_keep_off: impl FnOnce() -> bool) -> LocalMemory {
    let function = code.function;
    let local = |declared: Declared| match declared {
        Declared::Variable(variable) => Some(&function.variables[variable as usize]).filter(|variable| variable.space == ".local"),
        _ => None,
    };
    let locals: Vec<_> = (0..).zip(code.names()).filter_map(|(name, of)| Some((name, local(of.declared)?))).collect();
    let variables: BTreeMap<NameId, usize> = locals.iter().zip(0..).map(|((name, _), variable)| (*name, variable)).collect();
    if variables.is_empty() {
        return LocalMemory::default();
    }
    let mut addresses = Addresses::new(code, variables);
    if !addresses.settle(code) {
        return LocalMemory::default();
    }
    // What may be written by an address that is computed may lie in any variable.
    let Some(uses) = addresses.uses(code) else { return LocalMemory::default() };
    let is_by_number = |at: u32| names_local(code.opcode(at)) && !addresses.mentions.contains(&at);
    if (0..code.function.statements.len() as u32).any(is_by_number) || !callees_keep_off() {
        return LocalMemory::default();
    }
    // Behind a variable's end other variables may lie.
    let is_within = |used: &Use| {
        let size = locals[used.variable].1.bytes.and_then(|bytes| i64::try_from(bytes).ok());
        used.from >= 0 && size.zip(used.from.checked_add(used.bytes)).is_some_and(|(size, end)| end <= size)
    };
    if !uses.iter().all(is_within) {
        return LocalMemory::default();
    }
    // The content of a word that keeps an address is known if nothing else is written there and all its readers are known.
    let is_whole = |used: &Use| {
        if let Some(kept) = addresses.words.get(&(used.variable, used.from)) {
            return used.bytes == 8 && if used.is_store { used.keeps == Some(*kept) } else { used.is_put };
        }
        let near = (used.variable, used.from.saturating_sub(7))..(used.variable, used.from.saturating_add(used.bytes));
        used.keeps.is_none() && addresses.words.range(near).next().is_none()
    };
    let keeps_some = !addresses.words.is_empty() || uses.iter().any(|used| used.keeps.is_some());
    if keeps_some && !uses.iter().all(is_whole) {
        return LocalMemory::default();
    }
    let bytes = |used: &Use| Bytes { variable: used.variable, from: used.from, count: used.bytes, is_store: used.is_store };
    let mut others: BTreeMap<u32, Bytes> = uses.iter().map(|used| (used.at, bytes(used))).collect();
    let (words, accesses) = words(uses, code.register_count());
    others.retain(|at, _| !accesses.contains_key(at));
    LocalMemory { words, accesses, others }
}

/// The words that these loads and stores are about. What overlaps something else is no word.
fn words(mut uses: Vec<Use>, first: u32) -> (Vec<u8>, BTreeMap<u32, Word>) {
    uses.sort_unstable_by_key(|used| (used.variable, used.from));
    let (mut words, mut found) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while at < uses.len() {
        // All that overlap.
        let mut end = uses[at].from.saturating_add(uses[at].bytes);
        let mut next = at + 1;
        while next < uses.len() && uses[next].variable == uses[at].variable && uses[next].from < end {
            end = end.max(uses[next].from.saturating_add(uses[next].bytes));
            next += 1;
        }
        let all = &uses[at..next];
        let is_plain = |used: &Use| used.keeps.is_none() && !(used.is_by_kept && used.is_store);
        let width =
            all[0].width.filter(|_| all.iter().all(|used| (used.from, used.width) == (all[0].from, all[0].width) && is_plain(used)));
        if let Some(width) = width {
            words.push(width);
            let word = first + words.len() as Register - 1;
            // What is read by a kept address is unknown: that one may not be there yet.
            let followed = all.iter().filter(|used| !used.is_by_kept);
            found.extend(followed.map(|used| (used.at, Word { word, is_store: used.is_store })));
        }
        at = next;
    }
    (words, found)
}

impl Addresses {
    /// The variables, and where each name stands.
    fn new(code: &Code<'_>, variables: BTreeMap<NameId, usize>) -> Self {
        let mut addresses =
            Self { variables, registers: BTreeMap::new(), words: BTreeMap::new(), named: Vec::new(), mentions: BTreeSet::new() };
        for statement in 0..code.function.statements.len() as u32 {
            let named: Vec<(Named, u32)> = addresses.named_by(code, statement).map(|named| (named, statement)).collect();
            addresses.named.extend(named);
        }
        addresses.named.sort_unstable();
        for name in addresses.variables.keys().copied().collect::<Vec<_>>() {
            addresses.mention(Named::Variable(name));
        }
        addresses
    }

    /// All loads and stores by these addresses; none if anything else is done with one.
    fn uses(&self, code: &Code<'_>) -> Option<Vec<Use>> {
        let mut uses = Vec::new();
        for &statement in &self.mentions {
            let done = self.look(code, statement);
            // A register that has two meanings has none.
            let is_other = done.puts.is_some_and(|(register, address)| self.registers.get(&register) != Some(&address));
            if is_other || done.gives_away {
                return None;
            }
            uses.extend(done.uses);
        }
        Some(uses)
    }

    /// Finds all registers and words that hold addresses; false if that takes too long.
    fn settle(&mut self, code: &Code<'_>) -> bool {
        for _ in 0..MOST_LOOKS {
            let before = (self.registers.len(), self.words.len());
            let mut from = 0;
            while let Some(statement) = self.next(from) {
                from = statement + 1;
                let done = self.look(code, statement);
                if let Some((register, address)) = done.puts
                    && !self.registers.contains_key(&register)
                {
                    self.registers.insert(register, address);
                    self.mention(Named::Register(register));
                }
                if let Some((used, kept)) = done.uses.and_then(|used| used.keeps.map(|kept| (used, kept))) {
                    self.words.entry((used.variable, used.from)).or_insert(kept);
                }
            }
            if before == (self.registers.len(), self.words.len()) {
                return true;
            }
        }
        false
    }

    /// What a statement names that may hold an address, each time it does.
    fn named_by<'r>(&'r self, code: &'r Code<'_>, statement: u32) -> impl Iterator<Item = Named> + 'r {
        use cuinstr_ptx::Operand::{At, AtName, Name, Negated, Part, Register};
        code.all_operands(statement).iter().filter_map(|operand| match *operand {
            Register(register) | At(register, _) | Negated(register) | Part(register) => {
                (code.width(register) == 64).then_some(Named::Register(register))
            }
            Name(name, _) | AtName(name, _) => self.variables.contains_key(&name).then_some(Named::Variable(name)),
            _ => None,
        })
    }

    /// Notes where something is named.
    fn mention(&mut self, what: Named) {
        let from = self.named.partition_point(|(named, _)| *named < what);
        let all = self.named[from..].iter().take_while(|(named, _)| *named == what);
        self.mentions.extend(all.map(|(_, statement)| *statement));
    }

    /// The first statement from that one on that names what holds an address so far.
    fn next(&self, from: u32) -> Option<u32> {
        self.mentions.range(from..).next().copied()
    }

    /// What a statement does with what holds addresses so far.
    fn look(&self, code: &Code<'_>, statement: u32) -> Done {
        let address = |named: Named| match named {
            Named::Register(register) => self.registers.get(&register).copied(),
            Named::Variable(name) => self.variable(name),
        };
        let named = self.named_by(code, statement).filter_map(address).count();
        if named == 0 {
            return Done::default();
        }
        let instruction = decode(code, statement);
        let puts = self.put(&instruction, code);
        let access = self.used(&instruction, code, statement);
        let is_held = |register: &Register| self.registers.contains_key(register);
        // Each mention must be one that is accounted for.
        let mentions = match (&puts, &access) {
            (None, Some(access)) => Some(1 + usize::from(access.keeps.is_some())),
            (Some((into, _)), _) => Some(1 + usize::from(is_held(into))),
            (None, None) => None,
        };
        if mentions == Some(named) {
            let uses = access.map(|access| Use { is_put: puts.is_some(), ..access });
            return Done { puts, uses, gives_away: false };
        }
        Done { gives_away: true, ..Done::default() }
    }

    fn variable(&self, name: NameId) -> Option<Address> {
        self.variables.get(&name).map(|variable| Address { variable: *variable, offset: 0, is_generic: false, is_kept: false })
    }

    fn of(&self, operand: &Operand<'_>) -> Option<Address> {
        match operand {
            Operand::Register(register) => self.registers.get(register).copied(),
            Operand::Own(name) => self.variable(*name),
            _ => None,
        }
    }

    /// The address that an instruction puts into a register, and nothing else.
    fn put(&self, instruction: &Instruction<'_>, code: &Code<'_>) -> Option<(Register, Address)> {
        let [into] = instruction.first[..] else { return None };
        let address = match (instruction.opcode, &instruction.rest[..]) {
            ("mov.u64" | "mov.b64", [of]) => self.of(of)?,
            ("cvta.local.u64", [of]) => Address { is_generic: true, ..self.of(of).filter(|of| !of.is_generic)? },
            ("cvta.to.local.u64", [of]) => Address { is_generic: false, ..self.of(of).filter(|of| of.is_generic)? },
            ("add.u64" | "add.s64", [of, Operand::Number(more)]) => {
                let address = self.of(of)?;
                Address { offset: address.offset.checked_add(i64::try_from(*more).ok()?)?, ..address }
            }
            ("ld.u64" | "ld.b64" | "ld.local.u64" | "ld.local.b64", [Operand::At(base, from)]) => {
                let base = self.registers.get(base).filter(|base| is_read_so(instruction.opcode, **base))?;
                Address { is_kept: true, ..*self.words.get(&(base.variable, base.offset.checked_add(*from)?))? }
            }
            _ => return None,
        };
        (instruction.guard.is_none() && code.width(into) == 64).then_some((into, address))
    }

    /// A load or store by the address in one of these registers.
    fn used(&self, instruction: &Instruction<'_>, code: &Code<'_>, at: u32) -> Option<Use> {
        let is_store = head_of(instruction.opcode) == "st";
        let (address, value) = match head_of(instruction.opcode) {
            "st" => (instruction.first_address?, instruction.rest.first().copied()),
            "ld" => (*instruction.rest.first()?, instruction.first.first().map(|register| Operand::Register(*register))),
            _ => return None,
        };
        let (base, from) = match address {
            Operand::At(base, from) => (*self.registers.get(&base)?, from),
            Operand::AtOwn(name, from) => (self.variable(name)?, from),
            _ => return None,
        };
        if instruction.guard.is_some_and(|(guard, _)| guard.is_none()) || !is_read_so(instruction.opcode, base) {
            return None;
        }
        let lanes = instruction.opcode.split('.').find_map(|part| part.strip_prefix('v').and_then(|count| count.parse::<i64>().ok()));
        let (bits, _) = type_of(instruction.op.kind)?;
        let same = matches!(value, Some(Operand::Register(register)) if code.width(register) == bits)
            || matches!(value, Some(Operand::Number(_)) if is_store);
        let whole = lanes.is_none()
            && same
            && matches!(bits, 32 | 64)
            && instruction.first.len() + instruction.rest.len() == 2 - usize::from(is_store);
        let keeps = value.filter(|_| is_store).and_then(|value| self.of(&value));
        if keeps.is_some() && !(whole && bits == 64 && instruction.guard.is_none()) {
            return None;
        }
        Some(Use {
            variable: base.variable,
            from: base.offset.checked_add(from)?,
            bytes: i64::from(bits / 8).saturating_mul(lanes.unwrap_or(1)),
            width: whole.then_some(bits),
            at,
            is_store,
            keeps: keeps.map(|address| Address { is_kept: false, ..address }),
            is_by_kept: base.is_kept,
            is_put: false,
        })
    }
}

/// Whether an access takes an address for what it is. By the same number another space has other bytes.
fn is_read_so(opcode: &str, address: Address) -> bool {
    let mut spaces = spaces(opcode);
    match (spaces.next(), spaces.next()) {
        (None, _) => address.is_generic,
        (Some("local"), None) => !address.is_generic,
        _ => false,
    }
}

/// The access as a copy between registers.
pub(crate) fn copy(access: Word, width: u8, instruction: Instruction<'_>) -> Instruction<'_> {
    let opcode = if width == 64 { "mov.b64" } else { "mov.b32" };
    let (first, rest) =
        if access.is_store { (vec![access.word], instruction.rest) } else { (instruction.first, vec![Operand::Register(access.word)]) };
    Instruction {
        guard: instruction.guard,
        opcode,
        first,
        rest,
        first_address: None,
        all: Vec::new(),
        op: Op::new(opcode),
        is_behind_fence: false,
    }
}
