//! Stores to the control block and to the flag, and loads that keep the flag. A kernel with one can't be stopped, whatever its loops poll.
//!
//! What stops a thread may store the launch's number to the flag's target, the launch's start, and the stop record
//! (docs/ABI.md). A function makes addresses of the names of the control block and the flag, and of the flag's pointer.
//! Any other store is a fault if it may write either of them through such an address. So is a load, or a store beside the
//! flag, that may leave the flag's line in the first cache: polls keep the line out as they load, but would find it
//! there, as it was.
//!
//! An address is an interval of offsets from either, by reaching definitions. What an instruction other than a sum
//! makes of such an address may be any address.

use crate::domain::name::LAUNCH;
use crate::domain::value::bits;
use crate::interpret::body::Body;
use crate::module::held_offsets::{FAR, Held, Offsets};
use crate::module::kept_addresses::{is_of_stack, is_there};
use crate::module::memory_opcodes::{fills_first_cache, leaves_in_first_cache, stores};
use crate::program::control_block::{CONTROL, FLAG, FLAG_AT, OWN_RECORD_AT, START_AT};
use crate::program::instruction::{Instruction, Operand, Register};
use crate::program::local_memory::Bytes;
use cuinstr_ptx::Flow;
use std::collections::{BTreeMap, BTreeSet};

/// Most blocks that are walked for the definitions of one register.
const MOST_WALKED: usize = 4096;

/// Stands for all statements that write a register.
const EVERY: u32 = u32::MAX;

/// How often the interval of a definition may change before it is given up.
const MOST_CHANGES: u32 = 8;

/// Bytes of the flag, of its line, and of a pointer.
const WORD: i128 = 4;

const FLAG_BYTES: i128 = 128;

const POINTER: i128 = 8;

const GIVEN: &str = "the address of the control block or of the flag is given to a function";

/// What a module says of all its functions' stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    /// Whether a poll may rely on a flag that is not in the first cache.
    pub(crate) passes_by_cache: bool,
    /// Whether it is a debug build.
    pub(crate) is_debug: bool,
    /// Bytes of the control block, and of the flag.
    pub(crate) control_bytes: u64,
    pub(crate) flag_bytes: u64,
}

impl Surroundings {
    /// Whether so many bytes from there on may lie beside the control block: the flag may be there.
    fn is_left(self, at: Offsets, bytes: i128) -> bool {
        at.least < 0 || at.most + bytes > self.control_bytes.into()
    }
}

/// Statements of a function that store where only the host may, or keep the flag where polls that pass by the first cache would find it, and what
/// they do. In a debug build also the first that is taken to keep such an address on the stack.
pub(crate) fn forbidden(body: &Body<'_>, module: Surroundings) -> (Vec<(u32, &'static str)>, Option<u32>) {
    let passes_by_cache = module.passes_by_cache;
    let mut addresses = Addresses::new(body, module);
    addresses.find_kept();
    let mut found = Vec::new();
    for (at, statement) in (0..).zip(&body.function.statements) {
        let opcode = body.code.opcode(at);
        let what = match statement.flow {
            Flow::Call => addresses.gives_away(at),
            Flow::Next if opcode.starts_with("st.param") => addresses.gives_away(at),
            Flow::Next if stores(opcode) => {
                let what = addresses.look(at).or_else(|| addresses.keeps(at));
                what.or_else(|| (passes_by_cache && leaves_in_first_cache(opcode)).then(|| addresses.caches(at))?)
            }
            Flow::Next if passes_by_cache && fills_first_cache(opcode) => addresses.caches(at),
            _ => None,
        };
        found.extend(what.map(|what| (at, what)));
    }
    found.extend(addresses.returned());
    (found, addresses.taken)
}

/// A register and a statement that writes it.
type Definition = (u32, Register);

struct Addresses<'b, 'a> {
    body: &'b Body<'a>,
    /// What the function keeps in its own local memory, beside words that are followed.
    kept: Vec<(Bytes, Held)>,
    /// Whether a register may hold what is made of one of these addresses.
    may_hold: BTreeMap<Register, bool>,
    /// What definitions leave in their registers: at rest, but for those that are being followed.
    held: BTreeMap<Definition, Held>,
    /// Registers whose definitions it takes too long to look for.
    is_far: BTreeSet<Register>,
    module: Surroundings,
    /// The first store that is taken to be to the stack.
    taken: Option<u32>,
}

impl<'b, 'a> Addresses<'b, 'a> {
    fn new(body: &'b Body<'a>, module: Surroundings) -> Self {
        let (may_hold, held, is_far) = <(BTreeMap<_, _>, BTreeMap<_, _>, BTreeSet<_>)>::default();
        Self { body, kept: Vec::new(), may_hold, held, is_far, module, taken: None }
    }

    /// What a store does that it must not.
    fn look(&mut self, at: u32) -> Option<&'static str> {
        let store = self.body.plain(at);
        let all: Vec<Operand<'_>> = store.first_address.iter().chain(&store.rest).copied().collect();
        // What is read by an address, as bulk copies do behind the one that they write to, counts as written.
        all.into_iter()
            .find_map(|address| {
                let held = self.pointed(address, at);
                self.forbids(&store, at, held)
            })
            .or_else(|| {
                let held = self.unread(at);
                self.forbids(&store, at, held)
            })
    }

    /// What a load or a store must not do: a poll would find the flag's line in the first cache, as it was.
    fn caches(&mut self, at: u32) -> Option<&'static str> {
        let access = self.body.plain(at);
        let all: Vec<Operand<'_>> = access.first_address.iter().chain(&access.rest).copied().collect();
        let bytes = bytes(&access).or_else(|| loaded_bytes(&access)).unwrap_or(FAR);
        // The flag may be any word of its line, which may lie beside the control block.
        let module = self.module;
        let is_cached = |held: Held| {
            held.flag.is_some_and(|flag| flag.meets(bytes, WORD - FLAG_BYTES, FLAG_BYTES))
                || held.control.is_some_and(|at| module.is_left(at, bytes))
        };
        let is_cached = all.into_iter().any(|address| is_cached(self.pointed(address, at))) || is_cached(self.unread(at));
        is_cached.then_some("the flag is kept in the first cache")
    }

    fn forbids(&self, store: &Instruction<'_>, statement: u32, held: Held) -> Option<&'static str> {
        let (bytes, unit) = (bytes(store), store.op.of.map_or(1, |(width, _)| i128::from(width / 8).clamp(1, POINTER)));
        // The flag's address is a multiple of its own size only.
        let aligned = |held: Option<Offsets>, unit| held.map(|offsets: Offsets| offsets.aligned(unit));
        let held = Held { control: aligned(held.control, unit), flag: aligned(held.flag, unit.min(WORD)) };
        let is_record = |at: Offsets| at.least >= OWN_RECORD_AT.into() && bytes.is_some_and(|bytes| !self.module.is_left(at, bytes));
        let is_start =
            |at: Offsets| at.least >= START_AT.into() && bytes.is_some_and(|bytes| at.most + bytes <= i128::from(START_AT) + POINTER);
        if held.control.is_some_and(|at| !is_record(at) && !is_start(at)) {
            return Some("the control block is written, or what lies beside it");
        }
        // Its other bytes are of no use to anyone.
        let is_beside = |at: &Offsets| at.least >= WORD && bytes.is_some_and(|bytes| at.most + bytes <= self.module.flag_bytes.into());
        let flag = held.flag.filter(|at| !is_beside(at))?;
        let value = if store.op.head == "atom" { store.rest.get(1) } else { store.rest.first() };
        let is_exchange = store.op.head == "atom" && store.op.suffix.split('.').any(|part| part == "exch");
        let is_launch = matches!(value, Some(Operand::Register(register)) if self.body.value_at(*register, statement).name == LAUNCH);
        let is_allowed = flag == Offsets::ZERO && bytes == Some(WORD) && is_launch && (store.op.head == "st" || is_exchange);
        (!is_allowed).then_some("the flag is written, by something else than the launch's number")
    }

    /// Finds what the function keeps in its own local memory: loads from there may give it.
    fn find_kept(&mut self) {
        let body = self.body;
        let stores = || body.registers.local_bytes().iter().filter(|(_, bytes)| bytes.is_store);
        for look in 0..=MOST_CHANGES {
            let mut kept: Vec<(Bytes, Held)> = Vec::new();
            for (&at, bytes) in stores() {
                let held = if look < MOST_CHANGES { self.stored(at) } else { Held::ANY };
                if held != Held::default() {
                    kept.push((*bytes, held));
                }
            }
            if kept == self.kept {
                return;
            }
            self.kept = kept;
            self.may_hold.clear();
            self.held.clear();
        }
    }

    /// The addresses that a store puts into memory.
    fn stored(&mut self, at: u32) -> Held {
        let store = self.body.plain(at);
        match store.rest[..] {
            [Operand::Register(register)] if store.op.of.is_some_and(|(width, _)| i128::from(width / 8) == POINTER) => {
                self.in_front(register, at)
            }
            _ if self.hands_on(at) => Held::ANY,
            _ => Held::default(),
        }
    }

    /// Whether a store puts an address that must not be written where other threads or functions may read it.
    fn keeps(&mut self, at: u32) -> Option<&'static str> {
        let is_own = self.body.registers.is_own_store(at) && is_there(self.body, at);
        if is_own || !self.hands_on(at) {
            return None;
        }
        let is_taken = self.module.is_debug && is_of_stack(self.body, at);
        self.taken = self.taken.or(is_taken.then_some(at));
        (!is_taken).then_some("the address of the control block or of the flag is kept in memory")
    }

    /// Whether a function is handed such an address.
    fn gives_away(&mut self, at: u32) -> Option<&'static str> {
        self.hands_on(at).then_some(GIVEN)
    }

    /// Statements that leave such an address in a register which the function returns.
    fn returned(&mut self) -> Vec<(u32, &'static str)> {
        let body = self.body;
        // Registers among results and parameters are numbered first.
        let count = body.function.results.iter().filter(|result| result.space == ".reg").count() as Register;
        let all = (0..count).flat_map(|register| body.writers(register).iter().map(move |writer| (*writer, register)));
        let gives = |definition: &Definition| {
            self.settle(vec![*definition]);
            is_lost(self.joined(definition.1, &[definition.0]))
        };
        all.filter(gives).map(|(writer, _)| (writer, GIVEN)).collect()
    }

    /// Whether an operand that is no address itself holds such an address.
    fn hands_on(&mut self, at: u32) -> bool {
        use cuinstr_ptx::Operand::{Address, At, AtName, Group, Name, Pair, Unknown, Vector};
        let code = self.body.code;
        let is_result = usize::from(self.body.plain(at).op.head == "atom");
        let mut handed: Vec<Register> = Vec::new();
        let mut work: Vec<cuinstr_ptx::Operand> = code.operands(at).iter().skip(is_result).copied().collect();
        work.retain(|operand| !matches!(operand, At(..) | AtName(..) | Address(_)));
        while let Some(operand) = work.pop() {
            match operand {
                Name(name, _) | AtName(name, _) if matches!(code.name(name).text, CONTROL | FLAG) => return true,
                Address(list) | Vector(list) | Group(list) | Pair(list) | Unknown(list) => work.extend(code.list(list)),
                of => code.each_register(of, &mut |register| handed.push(register)),
            }
        }
        handed.into_iter().any(|register| is_lost(self.in_front(register, at)))
    }

    /// What an operand that is an address points to.
    fn pointed(&mut self, address: Operand<'_>, at: u32) -> Held {
        match address {
            Operand::AtSymbol(name, offset) => named(name, offset),
            Operand::At(register, offset) => {
                let held = self.in_front(register, at);
                held.each(|offsets| offsets.plus(offset.into(), offset.into()))
            }
            _ => Held::default(),
        }
    }

    /// What is pointed to by addresses of a form that is not read: anything, if one of the addresses may be in them. Such are `[%rd1+4+4]`,
    /// `[%rd1].unified` and `name[4]`.
    fn unread(&mut self, at: u32) -> Held {
        use cuinstr_ptx::Operand::{Address, AtName, Group, Name, Pair, Unknown, Vector};
        let code = self.body.code;
        let mut work: Vec<cuinstr_ptx::Operand> = code.operands(at).to_vec();
        work.retain(|operand| matches!(operand, Address(_) | Unknown(_)));
        let mut read: Vec<Register> = Vec::new();
        while let Some(operand) = work.pop() {
            match operand {
                Name(name, _) | AtName(name, _) if matches!(code.name(name).text, CONTROL | FLAG) => return Held::ANY,
                Address(list) | Vector(list) | Group(list) | Pair(list) | Unknown(list) => work.extend(code.list(list)),
                of => code.each_register(of, &mut |register| read.push(register)),
            }
        }
        let is_held = read.into_iter().any(|register| self.in_front(register, at) != Held::default());
        if is_held { Held::ANY } else { Held::default() }
    }

    /// The addresses that a register may hold in front of a statement.
    fn in_front(&mut self, register: Register, at: u32) -> Held {
        let found = self.reaching(register, at);
        self.settle(found.iter().map(|writer| (*writer, register)).collect());
        self.joined(register, &found)
    }

    fn joined(&self, register: Register, writers: &[u32]) -> Held {
        let held = writers.iter().map(|writer| self.held.get(&(*writer, register)).copied().unwrap_or_default());
        held.fold(Held::default(), Held::join)
    }

    /// Follows definitions, and all that they are made of, to a fixed point.
    fn settle(&mut self, mut work: Vec<Definition>) {
        let mut new: Vec<(Definition, u32)> = Vec::new();
        while let Some(definition) = work.pop() {
            if self.held.contains_key(&definition) {
                continue;
            }
            self.held.insert(definition, Held::default());
            new.push((definition, 0));
            if definition.0 == EVERY {
                work.extend(self.body.writers(definition.1).iter().map(|writer| (*writer, definition.1)));
                continue;
            }
            let mut read: Vec<Register> = Vec::new();
            self.each_source(definition.0, |register| read.push(register));
            for register in read {
                let found = self.reaching(register, definition.0);
                work.extend(found.into_iter().map(|writer| (writer, register)));
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for ((writer, register), changes) in new.iter_mut().rev() {
                let before = self.held.get(&(*writer, *register)).copied().unwrap_or_default();
                let mut now = self.written(*register, *writer).join(before);
                if now != before {
                    *changes += 1;
                    if *changes > MOST_CHANGES {
                        now = now.each(|_| Offsets::ANY);
                    }
                    changed = true;
                    self.held.insert((*writer, *register), now);
                }
            }
        }
    }

    /// Calls `found` with each register that a statement makes its results of.
    fn each_source(&self, statement: u32, mut found: impl FnMut(Register)) {
        for operand in self.body.plain(statement).rest {
            if let Operand::Register(register) | Operand::At(register, _) = operand {
                found(register);
            }
        }
        self.body.code.each_read(statement, found);
    }

    /// The statements that may have written a register last in front of one, if it may hold an address; [`EVERY`] if it
    /// takes too long to look for them.
    fn reaching(&mut self, register: Register, at: u32) -> Vec<u32> {
        let mut found = Vec::new();
        if !self.may_hold(register) {
            return found;
        }
        let body = self.body;
        // Blocks from whose ends on back a definition is looked for, and the one that the statement stands in.
        let (mut work, mut seen) = (vec![(body.block_of(at), at)], BTreeSet::new());
        while let Some((block, end)) = work.pop() {
            if seen.len() > MOST_WALKED || self.is_far.contains(&register) {
                self.is_far.insert(register);
                return vec![EVERY];
            }
            let mut is_set = false;
            for &writer in body.writers_between(register, body.graph.blocks[block as usize].first..end).iter().rev() {
                found.push(writer);
                is_set = body.code.guard(writer).is_none();
                if is_set {
                    break;
                }
            }
            if !is_set {
                let sources = body.graph.sources(block).iter().filter(|source| seen.insert(**source));
                work.extend(sources.map(|source| (*source, body.graph.blocks[*source as usize].end)));
            }
        }
        found
    }

    /// The same as [`Self::in_front`] while definitions are followed.
    fn so_far(&mut self, register: Register, at: u32) -> Held {
        let found = self.reaching(register, at);
        self.joined(register, &found)
    }

    /// The addresses that a statement may leave in a register that it writes.
    fn written(&mut self, register: Register, writer: u32) -> Held {
        if writer == EVERY {
            return self.joined(register, self.body.writers(register));
        }
        let instruction = self.body.plain(writer);
        let of = |addresses: &mut Self, operand: &Operand<'_>| match *operand {
            Operand::Register(register) => addresses.so_far(register, writer),
            Operand::Name(name) => named(name, 0),
            Operand::NameAt(name, offset) => named(name, offset),
            Operand::Unknown => addresses.made_of_any(writer),
            _ => Held::default(),
        };
        let is_plain = instruction.op.suffix == instruction.op.kind;
        match (instruction.op.head, &instruction.rest[..]) {
            ("mov", [from]) if instruction.first.len() == 1 && *from != Operand::Unknown => of(self, from),
            ("cvta", [from]) => of(self, from),
            ("selp", [one, two, _]) => of(self, one).join(of(self, two)),
            ("add" | "sub", [one, two]) if is_plain => {
                let (one_held, two_held) = (of(self, one), of(self, two));
                let is_sum = instruction.op.head == "add";
                match (one_held == Held::default(), two_held == Held::default()) {
                    (true, true) => Held::default(),
                    (false, true) => self.moved(one_held, two, is_sum, writer),
                    (true, false) if is_sum => self.moved(two_held, one, true, writer),
                    _ => Held::ANY,
                }
            }
            ("mad", [one, two, base]) if instruction.op.suffix.starts_with("wide.u") => {
                let is_made_of_it = [one, two].into_iter().any(|factor| of(self, factor) != Held::default());
                if is_made_of_it {
                    return Held::ANY;
                }
                let most = self.most(one, writer) * self.most(two, writer);
                of(self, base).each(|offsets| offsets.plus(0, most))
            }
            ("ld" | "ldu", [address]) => {
                let at = match *address {
                    Operand::At(base, offset) => self.so_far(base, writer).each(|at| at.plus(offset.into(), offset.into())),
                    Operand::AtSymbol(name, offset) => named(name, offset),
                    Operand::Unknown => self.made_of_any(writer),
                    _ => Held::default(),
                };
                let nth = instruction.first.iter().position(|first| *first == register).unwrap_or(0) as i128;
                loaded(&instruction, at, nth).join(self.read(writer))
            }
            ("call", _) => Held::default(),
            _ => self.made_of_any(writer),
        }
    }

    /// Any address, if a statement reads one of these addresses in whatever way.
    fn made_of_any(&mut self, at: u32) -> Held {
        let mut read: Vec<Register> = Vec::new();
        self.each_source(at, |register| read.push(register));
        let is_held = |held: Held| held != Held::default();
        let is_made_of_it = self.names_them(at) || read.into_iter().any(|register| is_held(self.so_far(register, at)));
        if is_made_of_it { Held::ANY } else { Held::default() }
    }

    /// What a load finds of what the function keeps in its own local memory.
    fn read(&self, at: u32) -> Held {
        let Some(own) = self.body.registers.local_bytes().get(&at) else { return Held::default() };
        let met = self.kept.iter().filter(|(bytes, _)| bytes.meets(*own));
        met.fold(Held::default(), |found, (bytes, held)| found.join(if bytes.is_same(*own) { *held } else { Held::ANY }))
    }

    /// Addresses with a number of this range added to them, or taken from them.
    fn moved(&self, held: Held, by: &Operand<'_>, is_sum: bool, at: u32) -> Held {
        let (least, most) = match by {
            // 64 bits, as they are read with a sign.
            Operand::Number(number) => {
                let number = i128::from(*number as i64);
                (number, number)
            }
            Operand::Register(register) => {
                let width = bits(self.body.registers.width(*register));
                let range = self.body.value_at(*register, at).range.signed(width);
                (range.lo, range.hi)
            }
            _ => (-FAR, FAR),
        };
        held.each(|offsets| if is_sum { offsets.plus(least, most) } else { offsets.plus(-most, -least) })
    }

    /// The most that a factor of 32 bits is.
    fn most(&self, factor: &Operand<'_>, at: u32) -> i128 {
        match factor {
            Operand::Register(register) if (1..=32).contains(&self.body.registers.width(*register)) => {
                self.body.value_at(*register, at).range.unsigned(self.body.registers.width(*register)).hi
            }
            Operand::Number(number) if (0..i128::from(u32::MAX)).contains(number) => *number,
            _ => i128::from(u32::MAX),
        }
    }

    /// Whether some instruction makes a register of one of the addresses, or of what may hold them.
    fn may_hold(&mut self, register: Register) -> bool {
        let mut work = vec![register];
        // The register, and those that it is made of.
        let mut made: Vec<Register> = Vec::new();
        while let Some(register) = work.pop() {
            match self.may_hold.get(&register) {
                Some(true) => {
                    self.may_hold.extend(made.into_iter().map(|register| (register, true)));
                    return true;
                }
                Some(false) => continue,
                None => {}
            }
            // No address is made of a predicate.
            self.may_hold.insert(register, false);
            if self.body.registers.width(register) == 1 {
                continue;
            }
            made.push(register);
            for &writer in self.body.writers(register) {
                if self.names_them(writer) || self.read(writer) != Held::default() {
                    self.may_hold.extend(made.into_iter().map(|register| (register, true)));
                    return true;
                }
                self.each_source(writer, |register| work.push(register));
            }
        }
        false
    }

    /// Whether a statement names the control block or the flag.
    fn names_them(&self, statement: u32) -> bool {
        use cuinstr_ptx::Operand::{AtName, Name};
        let code = self.body.code;
        let is_it = |name: cuinstr_ptx::NameId| matches!(code.name(name).text, CONTROL | FLAG);
        // Of the control block's words, loads at known places only matter for the flag's pointer.
        let is_word = |offset: i64| {
            !(FLAG_AT - POINTER as i64 * 4..FLAG_AT + POINTER as i64).contains(&offset) && code.opcode(statement).starts_with("ld")
        };
        code.all_operands(statement).iter().any(|operand| match *operand {
            Name(name, _) => is_it(name),
            AtName(name, offset) => is_it(name) && !is_word(offset),
            _ => false,
        })
    }
}

/// Whether what another function would do with an address is not followed, but may matter.
fn is_lost(held: Held) -> bool {
    held.flag.is_some() || held.control.is_some_and(|at| at.least < OWN_RECORD_AT.into())
}

/// What the address of a symbol and an offset is.
fn named(name: &str, offset: i64) -> Held {
    let at = Some(Offsets::ZERO.plus(offset.into(), offset.into()));
    match name {
        CONTROL => Held { control: at, flag: None },
        FLAG => Held { control: None, flag: at },
        _ => Held::default(),
    }
}

/// What a load puts into its n-th register: the flag's pointer, or a part of it.
fn loaded(instruction: &Instruction<'_>, from: Held, nth: i128) -> Held {
    let Some(control) = from.control else { return Held::default() };
    // Where the opcode does not say how wide a lane is, any may hold it.
    let Some((width, _)) = instruction.op.of else { return Held { control: None, flag: Some(Offsets::ANY) } };
    let (pointer, bytes) = (i128::from(FLAG_AT), i128::from(width / 8));
    let at = control.plus(nth * bytes, nth * bytes);
    let flag = match at.meets(bytes, pointer, pointer + POINTER) {
        true if at.least == pointer && at.most == pointer && bytes == POINTER => Some(Offsets::ZERO),
        true => Some(Offsets::ANY),
        false => None,
    };
    Held { control: None, flag }
}

/// How many bytes an instruction writes; none if its opcode does not say so.
fn bytes(instruction: &Instruction<'_>) -> Option<i128> {
    lanes_of(instruction).filter(|_| matches!(instruction.op.head, "st" | "red" | "atom"))
}

/// How many bytes a load reads; none if its opcode does not say so.
fn loaded_bytes(instruction: &Instruction<'_>) -> Option<i128> {
    lanes_of(instruction).filter(|_| matches!(instruction.op.head, "ld" | "ldu"))
}

fn lanes_of(instruction: &Instruction<'_>) -> Option<i128> {
    let lanes = instruction.opcode.split('.').find_map(|part| part.strip_prefix('v')?.parse::<i128>().ok()).unwrap_or(1);
    instruction.op.of.map(|(width, _)| lanes * i128::from(width / 8))
}
