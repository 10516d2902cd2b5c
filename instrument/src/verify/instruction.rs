//! Registers of a function, and single statements taken apart.

use super::range::Order;
use super::stack::{self, Access};
use super::text::{Function, Statement, is_word, uncommented};
use std::collections::BTreeMap;

/// Scopes around a name that are looked through for it.
const DEEPEST: usize = 256;

/// A register of the function, by number; those of inner scopes have numbers of their own.
pub(super) type Register = u32;

/// What a function's `.reg` declarations say.
#[derive(Debug, Default)]
pub(super) struct Registers<'a> {
    /// `%r<81>` declares `%r0` to `%r80`: scope, prefix, first number, how many, width in bits. In order of the scopes.
    ranges: Vec<(u32, &'a str, u32, u32, u8)>,
    /// Whether any scope but the function's own declares registers.
    nested: bool,
    widths: Vec<u8>,
    /// Words of the stack that are followed like registers, by the offsets of the statements that read or write them.
    stack: BTreeMap<u32, Access>,
}

impl<'a> Registers<'a> {
    /// With the words of the stack that can be followed.
    pub(super) fn with_stack(function: &Function<'a>, text: &str) -> Self {
        let mut registers = Self::new(function);
        registers.stack = stack::find(function, &mut registers, text);
        registers
    }

    fn new(function: &Function<'a>) -> Self {
        let mut registers = Self::default();
        for (scope, declaration) in &function.registers {
            let mut words = declaration.split(|next: char| next.is_ascii_whitespace() || next == ',').filter(|word| !word.is_empty());
            let mut width = 0;
            for word in words.by_ref() {
                if let Some(kind) = word.strip_prefix('.') {
                    width = if kind == "pred" { 1 } else { type_of(kind).map_or(width, |(bits, _)| bits) };
                    continue;
                }
                let (name, count) = match word.split_once('<') {
                    Some((prefix, count)) => (prefix, count.trim_end_matches('>').trim().parse().unwrap_or(0)),
                    None => (word, 0),
                };
                let many = word.contains('<');
                let first = registers.widths.len() as u32;
                let count: u32 = if many { count } else { 1 };
                // A declaration of more registers than any GPU has is not worth the memory; their uses will be unknown registers.
                let count = count.min(1 << 22);
                registers.widths.resize(registers.widths.len() + count as usize, width);
                registers.ranges.push((*scope, name, first, if many { count } else { u32::MAX }, width));
                registers.nested |= *scope != 0;
            }
        }
        registers.ranges.sort_by_key(|(scope, ..)| *scope);
        registers
    }

    /// One more, that no name stands for.
    pub(super) fn add(&mut self, width: u8) -> Register {
        self.widths.push(width);
        self.widths.len() as Register - 1
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.widths.len()
    }

    /// Bits of a register; 1 for a predicate, 0 if unknown.
    pub(super) fn width(&self, register: Register) -> u8 {
        self.widths.get(register as usize).copied().unwrap_or(0)
    }

    /// The register of that name as seen from a scope.
    pub(super) fn find(&self, function: &Function<'_>, mut scope: u32, name: &str) -> Option<Register> {
        let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.as_bytes().split_at(digits);
        let number = if number.is_empty() || number.len() > 1 && number[0] == b'0' {
            None
        } else {
            number.iter().try_fold(0_u32, |all, digit| all.checked_mul(10)?.checked_add(u32::from(digit - b'0')))
        };
        if !self.nested {
            scope = 0;
        }
        for _ in 0..DEEPEST {
            let run = if scope == 0 { 0 } else { self.ranges.partition_point(|(of, ..)| *of < scope) };
            for (_, declared, first, count, _) in self.ranges[run..].iter().take_while(|(of, ..)| *of == scope) {
                if *count == u32::MAX {
                    if *declared == name {
                        return Some(*first);
                    }
                } else if declared.as_bytes() == prefix
                    && let Some(number) = number
                    && number < *count
                {
                    return Some(first + number);
                }
            }
            if scope == 0 {
                return None;
            }
            scope = if self.nested { function.outer[scope as usize] } else { 0 };
        }
        None
    }
}

/// Bits and signedness of a type such as `u32`; `b32` counts as unsigned. Two halves, as in `u16x2`, are no integer.
pub(super) fn type_of(kind: &str) -> Option<(u8, bool)> {
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
pub(super) enum Operand<'a> {
    Register(Register),
    Number(i128),
    /// `[register + offset]`.
    At(Register, i64),
    /// `[symbol + offset]`.
    AtSymbol(&'a str, i64),
    /// A symbol or special register.
    Name(&'a str),
    /// Anything else.
    Unknown,
}

/// A statement taken apart.
#[derive(Debug, Clone)]
pub(super) struct Instruction<'a> {
    /// The guard and whether it must be true.
    pub(super) guard: Option<(Option<Register>, bool)>,
    /// Opcode with its suffixes, such as `setp.lt.u32`.
    pub(super) opcode: &'a str,
    /// Registers in the first operand: a vector or a pair has several.
    pub(super) first: Vec<Register>,
    /// The operands behind the first.
    pub(super) rest: Vec<Operand<'a>>,
    /// The first operand if it is no register.
    pub(super) first_address: Option<Operand<'a>>,
    /// Any register anywhere, if the opcode is not known.
    pub(super) all: Vec<Register>,
    /// The opcode taken apart.
    pub(super) op: Op<'a>,
}

/// An opcode taken apart.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Op<'a> {
    /// What stands in front of the first full stop, and behind it.
    pub(super) head: &'a str,
    pub(super) suffix: &'a str,
    /// What stands behind the last full stop: the type, and what that says.
    pub(super) kind: &'a str,
    pub(super) of: Option<(u8, bool)>,
    /// What a comparison compares: see [`comparison`].
    pub(super) compares: Option<(Order, bool, u8)>,
}

impl<'a> Op<'a> {
    pub(super) fn new(opcode: &'a str) -> Self {
        let head = head_of(opcode);
        let suffix = opcode.get(head.len() + 1..).unwrap_or("");
        let kind = suffix.bytes().rposition(|byte| byte == b'.').map_or(suffix, |at| &suffix[at + 1..]);
        Self { head, suffix, kind, of: type_of(kind), compares: comparison(head, suffix) }
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

/// The text of a statement.
pub(super) fn text_of<'a>(text: &'a str, statement: &Statement) -> &'a str {
    &text[statement.start as usize..statement.end as usize]
}

/// Guard and its polarity, and what stands behind it.
pub(super) fn split_guard(text: &str) -> (Option<(&str, bool)>, &str) {
    let Some(rest) = text.strip_prefix('@') else { return (None, text) };
    let rest = rest.trim_start();
    let (when, rest) = match rest.strip_prefix('!') {
        Some(rest) => (false, rest.trim_start()),
        None => (true, rest),
    };
    let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
    (Some((&rest[..end], when)), rest[end..].trim_start())
}

/// Opcode and operands.
fn split_opcode(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !(is_word(byte) || byte == b':')).unwrap_or(text.len());
    (&text[..end], &text[end..])
}

/// Registers that a statement writes as far as its first operand says so, without taking all of it apart.
pub(super) fn written(
    function: &Function<'_>,
    registers: &Registers<'_>,
    text: &str,
    statement: &Statement,
    mut found: impl FnMut(Register),
) {
    if let Some(access) = registers.stack.get(&statement.start).filter(|access| access.is_store) {
        return found(access.word);
    }
    let body = text_of(text, statement);
    if body.contains('/') || !is_known(split_opcode(split_guard(body).1).0) {
        for register in decode(function, registers, text, statement).writes() {
            found(register);
        }
        return;
    }
    let (_, body) = split_guard(body);
    let (_, operands) = split_opcode(body);
    let operands = operands.trim_start();
    let first = if operands.starts_with('{') {
        operands.split('}').next().unwrap_or(operands)
    } else {
        operands.split(',').next().unwrap_or(operands)
    };
    if !first.contains('[') && !first.contains('(') {
        for name in words(first) {
            if let Some(register) = registers.find(function, statement.scope, name) {
                found(register);
            }
        }
    }
}

/// Names in the text; `v.x` names `v`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|next: char| !(next.is_ascii_alphanumeric() || matches!(next, '_' | '$' | '%' | '.') || !next.is_ascii()))
        .filter(|word| !word.is_empty())
        .map(|word| {
            if word.starts_with('%') && word.contains('.') && !word.starts_with("%r") {
                word
            } else {
                word.split('.').next().unwrap_or(word)
            }
        })
        .filter(|word| !word.is_empty())
}

/// What stands in front of the first full stop.
pub(super) fn head_of(opcode: &str) -> &str {
    opcode.bytes().position(|byte| byte == b'.').map_or(opcode, |at| &opcode[..at])
}

/// Opcodes whose first operand is all that they write. What is not listed may write every register it names.
fn is_known(opcode: &str) -> bool {
    matches!(
        head_of(opcode),
        "abs"
            | "activemask"
            | "add"
            | "addc"
            | "and"
            | "atom"
            | "bar"
            | "barrier"
            | "bfe"
            | "bfi"
            | "bfind"
            | "bra"
            | "brev"
            | "brx"
            | "call"
            | "clz"
            | "cnot"
            | "copysign"
            | "cos"
            | "cp"
            | "cvt"
            | "cvta"
            | "discard"
            | "div"
            | "dp2a"
            | "dp4a"
            | "ex2"
            | "exit"
            | "fence"
            | "fma"
            | "fns"
            | "isspacep"
            | "ld"
            | "ldu"
            | "ldmatrix"
            | "lg2"
            | "lop3"
            | "mad"
            | "madc"
            | "mad24"
            | "match"
            | "max"
            | "mbarrier"
            | "membar"
            | "min"
            | "mma"
            | "mov"
            | "movmatrix"
            | "mul"
            | "mul24"
            | "nanosleep"
            | "neg"
            | "not"
            | "or"
            | "popc"
            | "prefetch"
            | "prefetchu"
            | "prmt"
            | "rcp"
            | "red"
            | "redux"
            | "rem"
            | "ret"
            | "rsqrt"
            | "sad"
            | "selp"
            | "set"
            | "setp"
            | "shf"
            | "shfl"
            | "shl"
            | "shr"
            | "sin"
            | "slct"
            | "sqrt"
            | "st"
            | "sub"
            | "subc"
            | "szext"
            | "tanh"
            | "testp"
            | "tex"
            | "trap"
            | "vote"
            | "wmma"
            | "xor"
    )
}

/// Takes a statement apart.
pub(super) fn decode<'a>(function: &Function<'_>, registers: &Registers<'_>, text: &'a str, statement: &Statement) -> Instruction<'a> {
    let whole = text_of(text, statement);
    let clean = uncommented(whole);
    // Operands can only borrow from the text itself; a statement with a comment inside is rare and taken as unknown.
    let has_comment = || clean.len() != whole.len() || whole.contains("/*") || whole.contains("//");
    let body = if whole.contains('/') && has_comment() { "" } else { whole };
    let (guard, rest) = split_guard(if body.is_empty() { &clean } else { body });
    let guard = guard.map(|(name, when)| (registers.find(function, statement.scope, name), when));
    let all_of = |text: &str| words(text).filter_map(|name| registers.find(function, statement.scope, name)).collect::<Vec<_>>();
    if body.is_empty() {
        return Instruction {
            guard,
            opcode: "",
            first: Vec::new(),
            rest: Vec::new(),
            first_address: None,
            all: all_of(rest),
            op: Op::default(),
        };
    }
    let (opcode, operands) = split_opcode(split_guard(body).1);
    let mut instruction =
        Instruction { guard, opcode, first: Vec::new(), rest: Vec::new(), first_address: None, all: Vec::new(), op: Op::new(opcode) };
    if !is_known(opcode) {
        instruction.all = all_of(operands);
    }
    let mut is_first = true;
    let mut pieces = operands.trim();
    while !pieces.is_empty() {
        let end = end_of_operand(pieces);
        let piece = pieces[..end].trim();
        pieces = pieces.get(end + 1..).unwrap_or("").trim_start();
        if is_first {
            is_first = false;
            if piece.starts_with('[') {
                instruction.first_address = Some(operand(function, registers, statement.scope, piece));
            } else if !piece.starts_with('(') {
                instruction.first = all_of(piece);
                if instruction.first.is_empty() {
                    instruction.first_address = Some(operand(function, registers, statement.scope, piece));
                }
            } else {
                instruction.first = all_of(piece);
            }
        } else {
            instruction.rest.push(operand(function, registers, statement.scope, piece));
        }
    }
    match registers.stack.get(&statement.start) {
        Some(access) => stack::copy(*access, registers.width(access.word), instruction),
        None => instruction,
    }
}

/// Bytes up to the comma that ends the first operand.
fn end_of_operand(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth -= 1,
            b',' if depth <= 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn operand<'a>(function: &Function<'_>, registers: &Registers<'_>, scope: u32, piece: &'a str) -> Operand<'a> {
    if let Some(inside) = piece.strip_prefix('[').and_then(|piece| piece.strip_suffix(']')) {
        let inside = inside.trim();
        let (base, offset) = match inside.find(['+', '-']) {
            Some(at) if at > 0 => {
                let sign = if inside.as_bytes()[at] == b'-' { -1 } else { 1 };
                match number(inside[at + 1..].trim()).and_then(|offset| i64::try_from(offset).ok()) {
                    Some(offset) => (inside[..at].trim(), offset.wrapping_mul(sign)),
                    None => return Operand::Unknown,
                }
            }
            _ => (inside, 0),
        };
        if !base.bytes().all(is_word) || base.is_empty() {
            return Operand::Unknown;
        }
        return match registers.find(function, scope, base) {
            Some(register) => Operand::At(register, offset),
            None => Operand::AtSymbol(base, offset),
        };
    }
    if let Some(value) = number(piece) {
        return Operand::Number(value);
    }
    if piece.is_empty() || !piece.bytes().all(is_word) {
        return Operand::Unknown;
    }
    match registers.find(function, scope, piece) {
        Some(register) => Operand::Register(register),
        None => Operand::Name(piece),
    }
}

/// An integer constant: decimal, hexadecimal, octal or binary, with a sign or the suffix `U`.
fn number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text),
    };
    if !digits.as_bytes().first()?.is_ascii_digit() {
        return None;
    }
    let digits = digits.trim_end_matches('U');
    let value = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()?
    } else if let Some(binary) = digits.strip_prefix("0b").or(digits.strip_prefix("0B")) {
        u64::from_str_radix(binary, 2).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(&digits[1..], 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(if negative { -i128::from(value) } else { i128::from(value) })
}

impl Instruction<'_> {
    /// Registers that it may write.
    pub(super) fn writes(&self) -> Vec<Register> {
        let mut all = Vec::new();
        self.each_written(|register| all.push(register));
        all
    }

    /// The same, one by one.
    pub(super) fn each_written(&self, found: impl FnMut(Register)) {
        let written: &[Register] = if !is_known(self.opcode) {
            &self.all
        } else if matches!(head_of(self.opcode), "bra" | "brx" | "exit" | "ret" | "trap" | "nanosleep" | "membar" | "fence") {
            // These read their first operand.
            &[]
        } else {
            &self.first
        };
        written.iter().copied().for_each(found);
    }
}
