//! Instructions: opcodes and operands.

pub(crate) use cuinstr_ptx::Register;
use cuinstr_ptx::{Access, Code, Flow, NameId, access_of};

/// How two integers compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Order {
    /// What holds if this does not.
    pub(crate) fn not(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
        }
    }

    /// The same with the sides exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            same => same,
        }
    }
}

/// Bits and signedness of a type such as `u32`; `b32` counts as unsigned. Two halves, as in `u16x2`, are no integer.
pub(crate) fn type_of(kind: &str) -> Option<(u8, bool)> {
    let bits: u8 = match kind.get(1..)? {
        "8" => 8,
        "16" => 16,
        "32" => 32,
        "64" => 64,
        "128" => 128,
        _ => return None,
    };
    match kind.as_bytes()[0] {
        b'u' | b'b' | b'f' => Some((bits, false)),
        b's' => Some((bits, true)),
        _ => None,
    }
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand<'a> {
    Register(Register),
    Number(i128),
    /// `[register + offset]`.
    At(Register, i64),
    /// `[symbol + offset]`, of a symbol that the function does not declare.
    AtSymbol(&'a str, i64),
    /// The same of a variable or parameter of the function.
    AtOwn(NameId, i64),
    /// A symbol that the function does not declare, or a special register.
    Name(&'a str),
    /// A symbol that the function does not declare, and a number that is added to its address.
    NameAt(&'a str, i64),
    /// A variable or parameter of the function.
    Own(NameId),
    /// Anything else.
    Unknown,
}

/// A statement taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Instruction<'a> {
    /// The guard and whether it must be true.
    pub(crate) guard: Option<(Option<Register>, bool)>,
    /// Opcode with its suffixes, such as `setp.lt.u32`.
    pub(crate) opcode: &'a str,
    /// Registers in the first operand: a vector or a pair has several.
    pub(crate) first: Vec<Register>,
    /// The operands behind the first.
    pub(crate) rest: Vec<Operand<'a>>,
    /// The first operand if it is no register.
    pub(crate) first_address: Option<Operand<'a>>,
    /// Any register anywhere, if the opcode is not known.
    pub(crate) all: Vec<Register>,
    /// The opcode taken apart.
    pub(crate) op: Op<'a>,
    /// Whether it is a load that a fence stands directly in front of, so that ptxas can't take what was loaded before.
    pub(crate) is_behind_fence: bool,
}

impl Instruction<'_> {
    /// Whether it is a load that reads what another thread or the host may have written meanwhile: a strong one, or one behind a fence that keeps
    /// nothing in the first cache.
    pub(crate) fn loads_anew(&self) -> bool {
        let says = |part: &str| match part {
            "volatile" | "relaxed" | "acquire" => true,
            "L1::no_allocate" => self.is_behind_fence,
            _ => false,
        };
        self.op.head == "ld" && self.op.suffix.split('.').any(says)
    }
}

/// An opcode taken apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op<'a> {
    /// What stands in front of the first full stop, and behind it.
    pub(crate) head: &'a str,
    pub(crate) suffix: &'a str,
    /// What stands behind the last full stop: the type, and what that says.
    pub(crate) kind: &'a str,
    pub(crate) of: Option<(u8, bool)>,
    /// What it may write.
    access: Access,
    /// What a comparison compares: see [`comparison`].
    pub(crate) compares: Option<(Order, bool, u8)>,
}

impl<'a> Op<'a> {
    pub(crate) fn new(opcode: &'a str) -> Self {
        let head = head_of(opcode);
        let suffix = opcode.get(head.len() + 1..).unwrap_or("");
        let kind = suffix.bytes().rposition(|byte| byte == b'.').map_or(suffix, |at| &suffix[at + 1..]);
        Self { head, suffix, kind, of: type_of(kind), access: access_of(opcode), compares: comparison(head, suffix) }
    }

    /// By which sign a sum of two integers, modulo 2^w, takes its second: neither a saturating sum nor one of halves.
    pub(crate) fn sums(&self) -> Option<i8> {
        let is_plain = self.suffix == self.kind && self.of.is_some() && !self.kind.starts_with('f');
        match self.head {
            "add" if is_plain => Some(1),
            "sub" if is_plain => Some(-1),
            _ => None,
        }
    }
}

/// A comparison's order, whether it is of signed integers, and its width.
fn comparison(head: &str, suffix: &str) -> Option<(Order, bool, u8)> {
    if head != "setp" {
        return None;
    }
    let (order, kind) = suffix.split_once('.')?;
    if kind.contains('.') || kind.starts_with('f') {
        return None;
    }
    let (width, signed) = type_of(kind)?;
    let (order, unsigned) = match order {
        "eq" => (Order::Eq, false),
        "ne" => (Order::Ne, false),
        "lt" => (Order::Lt, false),
        "le" => (Order::Le, false),
        "gt" => (Order::Gt, false),
        "ge" => (Order::Ge, false),
        "lo" => (Order::Lt, true),
        "ls" => (Order::Le, true),
        "hi" => (Order::Gt, true),
        "hs" => (Order::Ge, true),
        _ => return None,
    };
    (width <= 64).then_some((order, signed && !unsigned, width))
}

/// What stands in front of the first full stop.
pub(crate) fn head_of(opcode: &str) -> &str {
    opcode.bytes().position(|byte| byte == b'.').map_or(opcode, |at| &opcode[..at])
}

/// The state spaces that an opcode names: none for generic addresses.
pub(crate) fn spaces(opcode: &str) -> impl Iterator<Item = &str> {
    let space = |part: &&str| matches!(*part, "global" | "shared" | "local" | "const" | "param");
    opcode.split('.').map(|part| part.split("::").next().unwrap_or(part)).filter(space)
}

/// Whether each run of a statement comes from a fence, the statement before it.
fn is_behind_fence(code: &Code<'_>, statement: u32) -> bool {
    let Some(before) = statement.checked_sub(1) else { return false };
    matches!(head_of(code.opcode(before)), "fence" | "membar")
        && code.guard(before).is_none()
        && code.function.labels.binary_search_by_key(&statement, |label| label.statement).is_err()
}

/// Takes a statement apart.
pub(crate) fn decode<'a>(code: &'a Code<'a>, statement: u32) -> Instruction<'a> {
    let opcode = code.opcode(statement);
    let op = Op::new(opcode);
    let guard = code.guard(statement);
    let mut instruction = Instruction {
        guard,
        opcode,
        first: Vec::new(),
        rest: Vec::new(),
        first_address: None,
        all: Vec::new(),
        op,
        is_behind_fence: false,
    };
    instruction.is_behind_fence = op.head == "ld" && is_behind_fence(code, statement);
    if op.access == Access::Any {
        instruction.all = code.registers(statement).collect();
    }
    let mut operands = code.operands(statement);
    let returns_nothing = || !matches!(operands.first(), Some(cuinstr_ptx::Operand::Group(_)));
    if !(code.function.statements[statement as usize].flow == Flow::Call && returns_nothing())
        && let Some((first, rest)) = operands.split_first()
    {
        operands = rest;
        let own = operand(code, *first);
        if !names_each_once(code, *first) {
            // Which result is meant is not known.
            instruction.opcode = "";
            instruction.op = Op { access: op.access, ..Op::new("") };
        }
        if !matches!(own, Operand::At(..)) {
            code.each_register(*first, &mut |register| instruction.first.push(register));
        }
        instruction.first_address = instruction.first.is_empty().then_some(own);
    }
    instruction.rest.extend(operands.iter().map(|rest| operand(code, *rest)));
    instruction
}

/// Whether the results in a list are registers, each another one: `_` stands for a result as well.
fn names_each_once(code: &Code<'_>, first: cuinstr_ptx::Operand) -> bool {
    use cuinstr_ptx::Operand::{Pair, Register, Sink, Vector};
    let (Vector(list) | Pair(list)) = first else { return true };
    let all = code.list(list);
    let all = &all[..all.iter().rposition(|operand| *operand != Sink).map_or(0, |at| at + 1)];
    all.iter().enumerate().all(|(nth, operand)| matches!(operand, Register(_)) && !all[..nth].contains(operand))
}

fn operand<'a>(code: &'a Code<'a>, operand: cuinstr_ptx::Operand) -> Operand<'a> {
    use cuinstr_ptx::{Declared, Operand as Read};
    let outside = |name: NameId| Some(code.name(name)).filter(|name| name.declared == Declared::Outside).map(|name| name.text);
    match operand {
        Read::Register(register) => Operand::Register(register),
        Read::At(register, offset) => Operand::At(register, offset),
        Read::Name(name, 0) => outside(name).map_or(Operand::Own(name), Operand::Name),
        Read::Name(name, offset) => outside(name).map_or(Operand::Unknown, |name| Operand::NameAt(name, offset)),
        Read::AtName(name, offset) => outside(name).map_or(Operand::AtOwn(name, offset), |name| Operand::AtSymbol(name, offset)),
        other => other.number().map_or(Operand::Unknown, Operand::Number),
    }
}

impl Instruction<'_> {
    /// Registers that it may write.
    pub(crate) fn writes(&self) -> Vec<Register> {
        let mut all = Vec::new();
        self.each_written(|register| all.push(register));
        all
    }

    /// The same, one by one.
    pub(crate) fn each_written(&self, found: impl FnMut(Register)) {
        let written: &[Register] = match self.op.access {
            Access::Any => &self.all,
            Access::None => &[],
            Access::First | Access::FirstRead => &self.first,
        };
        written.iter().copied().for_each(found);
    }
}
