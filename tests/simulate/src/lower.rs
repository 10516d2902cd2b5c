//! From an opcode and its operands to what the machine does.

use crate::program::{Address, Barrier, Carry, LaneMask, Operation, Pure, Reduce, Register, Source, Space, Special, Warp, WarpKind};
use crate::types::{Kind, Type};
use crate::{float, integer};
use std::sync::Arc;

/// An operand with its names resolved.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    Value(Source),
    /// A number with a fraction, by its bits.
    Single(u32),
    Double(u64),
    /// `d|p`.
    Pair(Register, Register),
    Vector(Vec<Source>),
    Address(Source, i64),
}

/// Takes no operand.
const NONE: Source = Source::Number(0);

/// What the instruction does. An instruction that is not simulated gives [`Operation::Unknown`].
pub(crate) fn lower(words: &[&str], operands: &[Operand]) -> Operation {
    known(words, operands).unwrap_or_else(|| Operation::Unknown(words.join(".")))
}

fn known(words: &[&str], operands: &[Operand]) -> Option<Operation> {
    let (&opcode, modifiers) = words.split_first()?;
    let types: Vec<Type> = modifiers.iter().filter_map(|word| Type::parse(word)).collect();
    let ty = types.last().copied();
    let call = Call { opcode, modifiers, types: &types, operands };
    match opcode {
        "membar" | "fence" | "prefetch" | "prefetchu" | "nanosleep" | "pmevent" | "discard" | "applypriority" | "griddepcontrol" => {
            Some(Operation::Nothing)
        }
        "ret" => Some(Operation::Return),
        "exit" => Some(Operation::Exit),
        "trap" => Some(Operation::Trap),
        "addc" | "subc" | "madc" => call.carry(ty?),
        "add" | "sub" | "mad" if call.has("cc") => call.carry(ty?),
        "setp" => call.set_predicates(ty?),
        "set" => call.set(types.first().copied()?, ty?),
        "slct" => call.select_by_sign(types.first().copied()?, ty?),
        "cvt" => match types[..] {
            [to, from] => call.compute(from, float::convert(modifiers, to, from)?),
            _ => None,
        },
        "testp" => call.compute(ty?, float::test(modifiers, ty?)?),
        "mov" => call.movement(ty?),
        "ld" | "ldu" => call.load(ty?),
        "st" => call.store(ty?),
        "atom" | "red" => call.atomic(ty?),
        "cvta" => call.convert_address(),
        "isspacep" => Some(Operation::IsSpace { to: call.to()?, from: call.source(1, UNSIGNED)?, space: call.space_named() }),
        "activemask" => {
            let lane = Source::Special(Special::Lanes(LaneMask::Equal));
            Some(Operation::Compute { to: call.to()?, from: [lane, NONE, NONE, NONE], function: Arc::new(|v| v[0]) })
        }
        "bar" | "barrier" => call.barrier(),
        "shfl" | "vote" | "match" | "redux" | "elect" => call.warp(),
        "cp" => call.copy(),
        "alloca" => Some(Operation::Allocate { to: call.to()?, bytes: call.source(1, UNSIGNED)? }),
        "stacksave" => Some(Operation::StackSave(call.to()?)),
        "stackrestore" => Some(Operation::StackRestore(call.source(0, UNSIGNED)?)),
        "dp4a" => call.dot(),
        _ => {
            let ty = ty?;
            let function = if ty.is_float() { float::function(opcode, modifiers, ty) } else { integer::function(opcode, modifiers, ty) };
            call.compute(ty, function?)
        }
    }
}

const UNSIGNED: Type = Type { kind: Kind::Unsigned, bits: 64 };

struct Call<'c> {
    opcode: &'c str,
    modifiers: &'c [&'c str],
    types: &'c [Type],
    operands: &'c [Operand],
}

impl Call<'_> {
    fn has(&self, word: &str) -> bool {
        self.modifiers.contains(&word)
    }

    /// The register that the first operand names.
    fn to(&self) -> Option<Register> {
        match self.operands.first()? {
            Operand::Value(Source::Register(register)) => Some(*register),
            _ => None,
        }
    }

    fn source(&self, at: usize, ty: Type) -> Option<Source> {
        match *self.operands.get(at)? {
            Operand::Value(source) => Some(source),
            Operand::Single(bits) if ty.bits == 64 => Some(Source::Number(f64::from(f32::from_bits(bits)).to_bits())),
            Operand::Single(bits) => Some(Source::Number(u64::from(bits))),
            Operand::Double(bits) if ty.bits == 64 => Some(Source::Number(bits)),
            Operand::Double(bits) => Some(Source::Number(u64::from((f64::from_bits(bits) as f32).to_bits()))),
            _ => None,
        }
    }

    fn sources(&self, ty: Type) -> Option<[Source; 4]> {
        let mut all = [NONE; 4];
        for (at, source) in all.iter_mut().enumerate().take(self.operands.len() - 1) {
            *source = self.source(at + 1, ty)?;
        }
        (self.operands.len() <= 5).then_some(all)
    }

    fn compute(&self, ty: Type, function: Pure) -> Option<Operation> {
        Some(Operation::Compute { to: self.to()?, from: self.sources(ty)?, function })
    }

    fn carry(&self, ty: Type) -> Option<Operation> {
        let kind = match (&self.opcode[..3], self.has("hi")) {
            ("add", _) => Carry::Add,
            ("sub", _) => Carry::Subtract,
            ("mad", true) => Carry::MultiplyHigh,
            _ => Carry::MultiplyLow,
        };
        let reads = self.opcode.len() == 4;
        Some(Operation::Carry { kind, to: self.to()?, from: self.sources(ty)?, reads, writes: self.has("cc"), ty })
    }

    /// The comparison, with what it is joined with by `and`, `or` or `xor` as third operand; `twice` says whether both may be opposites.
    fn comparison(&self, ty: Type) -> Option<Pure> {
        let order = self.modifiers.first()?;
        let test = if ty.is_float() { float::compare(order, ty)? } else { integer::compare(order, ty)? };
        let joined: fn(u64, u64) -> u64 = match self.modifiers.get(1) {
            Some(&"and") => |one, other| one & other,
            Some(&"or") => |one, other| one | other,
            Some(&"xor") => |one, other| one ^ other,
            _ => |one, _| one,
        };
        Some(Arc::new(move |v| {
            let (yes, other) = (test(v), v[2] & 1);
            joined(yes, other) | joined(yes ^ 1, other) << 1
        }))
    }

    fn set_predicates(&self, ty: Type) -> Option<Operation> {
        let to = self.pair()?;
        Some(Operation::Predicates { to, from: self.sources(ty)?, function: self.comparison(ty)? })
    }

    /// The first operand, where it may be two registers.
    fn pair(&self) -> Option<[Register; 2]> {
        match *self.operands.first()? {
            Operand::Pair(one, other) => Some([one, other]),
            _ => Some([self.to()?, 0]),
        }
    }

    fn set(&self, to: Type, ty: Type) -> Option<Operation> {
        let test = self.comparison(ty)?;
        let yes = if to.is_float() { u64::from(1_f32.to_bits()) } else { to.mask() };
        self.compute(ty, Arc::new(move |v| if test(v) & 1 == 1 { yes } else { 0 }))
    }

    fn select_by_sign(&self, ty: Type, sign: Type) -> Option<Operation> {
        let not_negative: Pure =
            if sign.is_float() { float::compare("ge", sign)? } else { Arc::new(move |v| u64::from(sign.signed(v[0]) >= 0)) };
        self.compute(ty, Arc::new(move |v| if not_negative(&[v[2], 0, 0, 0]) == 1 { v[0] } else { v[1] }))
    }

    fn movement(&self, ty: Type) -> Option<Operation> {
        match self.operands {
            [Operand::Vector(to), _] => {
                let to: Option<Vec<Register>> = to.iter().map(|source| register(*source)).collect();
                let to = to?;
                Some(Operation::Unpack { bits: ty.bits / to.len() as u32, to, from: self.source(1, ty)? })
            }
            [_, Operand::Vector(from)] => Some(Operation::Pack { to: self.to()?, from: from.clone(), bits: ty.bits / from.len() as u32 }),
            _ if ty.kind == Kind::Predicate => self.compute(ty, Arc::new(|v| v[0] & 1)),
            _ => self.compute(ty, Arc::new(move |v| v[0] & ty.mask())),
        }
    }

    /// The state space that a modifier names.
    fn space_named(&self) -> Option<Space> {
        self.modifiers.iter().find_map(|word| match word.split("::").next()? {
            "global" | "const" => Some(Space::Generic),
            "shared" if *word != "shared::cluster" => Some(Space::Shared),
            "local" => Some(Space::Local),
            "param" => Some(Space::Param),
            _ => None,
        })
    }

    fn address(&self, at: usize, space: Space) -> Option<Address> {
        match *self.operands.get(at)? {
            Operand::Address(base, offset) => Some(Address { space, base, offset }),
            _ => None,
        }
    }

    fn load(&self, ty: Type) -> Option<Operation> {
        if self.has("shared::cluster") {
            return None;
        }
        let to = match self.operands.first()? {
            Operand::Vector(all) => all.iter().map(|source| register(*source)).collect::<Option<Vec<_>>>()?,
            _ => vec![self.to()?],
        };
        Some(Operation::Load { to, ty, address: self.address(1, self.space_named().unwrap_or(Space::Generic))? })
    }

    fn store(&self, ty: Type) -> Option<Operation> {
        if self.has("shared::cluster") || self.has("async") {
            return None;
        }
        let from = match self.operands.get(1)? {
            Operand::Vector(all) => all.clone(),
            _ => vec![self.source(1, ty)?],
        };
        Some(Operation::Store { from, ty, address: self.address(0, self.space_named().unwrap_or(Space::Generic))? })
    }

    fn atomic(&self, ty: Type) -> Option<Operation> {
        let first = usize::from(self.opcode == "atom");
        let to = if first == 1 { self.to()? } else { 0 };
        let operation = self
            .modifiers
            .iter()
            .find(|word| matches!(**word, "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas" | "inc" | "dec"))?;
        let plain = if ty.is_float() { float::function(operation, &[], ty) } else { integer::function(operation, &[], ty) };
        let function: Pure = match *operation {
            "exch" => Arc::new(|v| v[1]),
            "cas" => Arc::new(move |v| if v[0] & ty.mask() == v[1] & ty.mask() { v[2] } else { v[0] }),
            "inc" => Arc::new(move |v| if v[0] >= v[1] & ty.mask() { 0 } else { v[0] + 1 }),
            "dec" => Arc::new(move |v| if v[0] == 0 || v[0] > v[1] & ty.mask() { v[1] } else { v[0] - 1 }),
            _ => plain?,
        };
        let second = if *operation == "cas" { self.source(first + 2, ty)? } else { NONE };
        let from = [self.source(first + 1, ty)?, second];
        let address = self.address(first, self.space_named().unwrap_or(Space::Generic))?;
        Some(Operation::Atomic { to, ty, address, from, function })
    }

    fn convert_address(&self) -> Option<Operation> {
        Some(Operation::Convert { to: self.to()?, from: self.source(1, UNSIGNED)?, space: self.space_named()?, generic: !self.has("to") })
    }

    fn barrier(&self) -> Option<Operation> {
        if self.has("cluster") {
            return None;
        }
        if self.has("warp") {
            let mask = self.source(0, UNSIGNED)?;
            return Some(Operation::Warp(Warp { kind: WarpKind::Sync, to: [0; 2], from: [NONE; 3], mask }));
        }
        let kind = if self.has("arrive") {
            Barrier::Arrive
        } else if self.has("popc") {
            Barrier::Count
        } else if self.has("and") {
            Barrier::And
        } else if self.has("or") {
            Barrier::Or
        } else {
            Barrier::Sync
        };
        let reduces = usize::from(self.has("red"));
        let to = if reduces == 1 { self.to()? } else { 0 };
        let count = if self.operands.len() == 2 + 2 * reduces { Some(self.source(1 + reduces, UNSIGNED)?) } else { None };
        let from = if reduces == 1 { self.source(self.operands.len() - 1, UNSIGNED)? } else { NONE };
        // Without a number, as in `barrier.sync.aligned`, there is none of these.
        Some(Operation::Barrier { kind, number: self.source(reduces, UNSIGNED)?, count, from, to })
    }

    fn warp(&self) -> Option<Operation> {
        if matches!(self.opcode, "match" | "elect") {
            return self.matched();
        }
        let ty = self.types.last().copied().unwrap_or(UNSIGNED);
        let kind = match (self.opcode, *self.modifiers.get(1)?) {
            ("shfl", "up") => WarpKind::Up,
            ("shfl", "down") => WarpKind::Down,
            ("shfl", "bfly") => WarpKind::Butterfly,
            ("shfl", "idx") => WarpKind::Index,
            ("vote", "all") => WarpKind::All,
            ("vote", "any") => WarpKind::Any,
            ("vote", "uni") => WarpKind::Uniform,
            ("vote", "ballot") => WarpKind::Ballot,
            ("redux", word) if !ty.is_float() => WarpKind::Reduce(reduction(word)?, ty.is_signed()),
            _ => return None,
        };
        if self.modifiers.first() != Some(&"sync") {
            return None;
        }
        let last = self.operands.len().checked_sub(1)?;
        let mut from = [NONE; 3];
        for (at, source) in from.iter_mut().enumerate().take(last.checked_sub(1)?) {
            *source = self.source(at + 1, ty)?;
        }
        Some(Operation::Warp(Warp { kind, to: self.pair()?, from, mask: self.source(last, ty)? }))
    }

    /// `match.any.sync` and `match.all.sync`, whose words stand in the other order.
    fn matched(&self) -> Option<Operation> {
        let kind = match (self.opcode, *self.modifiers.first()?) {
            ("match", "any") => WarpKind::MatchAny,
            ("match", "all") => WarpKind::MatchAll,
            ("elect", _) => {
                return Some(Operation::Warp(Warp {
                    kind: WarpKind::Elect,
                    to: self.pair()?,
                    from: [NONE; 3],
                    mask: self.source(1, UNSIGNED)?,
                }));
            }
            _ => return None,
        };
        let from = [self.source(1, UNSIGNED)?, NONE, NONE];
        Some(Operation::Warp(Warp { kind, to: self.pair()?, from, mask: self.source(2, UNSIGNED)? }))
    }

    /// `cp.async`, which copies at once here, so that there is nothing to wait for.
    fn copy(&self) -> Option<Operation> {
        if self.modifiers.first() != Some(&"async") || self.has("bulk") || self.has("mbarrier") {
            return None;
        }
        if self.modifiers.iter().any(|word| matches!(*word, "commit_group" | "wait_group" | "wait_all")) {
            return Some(Operation::Nothing);
        }
        let Source::Number(bytes) = self.source(2, UNSIGNED)? else { return None };
        let taken = if self.operands.len() > 3 { Some(self.source(3, UNSIGNED)?) } else { None };
        Some(Operation::Copy { to: self.address(0, Space::Shared)?, from: self.address(1, Space::Generic)?, bytes: bytes as usize, taken })
    }

    fn dot(&self) -> Option<Operation> {
        let [one, two] = self.types[..] else { return None };
        let byte = |ty: Type, value: u64, nth: u32| Type { bits: 8, ..ty }.extend(value >> (8 * nth));
        let function =
            move |v: &[u64; 4]| (0..4).fold(v[2], |sum, nth| sum.wrapping_add(byte(one, v[0], nth).wrapping_mul(byte(two, v[1], nth))));
        self.compute(one, Arc::new(function))
    }
}

fn register(source: Source) -> Option<Register> {
    match source {
        Source::Register(register) => Some(register),
        _ => None,
    }
}

fn reduction(word: &str) -> Option<Reduce> {
    Some(match word {
        "add" => Reduce::Add,
        "min" => Reduce::Min,
        "max" => Reduce::Max,
        "and" => Reduce::And,
        "or" => Reduce::Or,
        "xor" => Reduce::Xor,
        _ => return None,
    })
}
