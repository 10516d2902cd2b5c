//! Operands of instructions.

use crate::declaration::Declared;

/// A register of a function, by number. Those of inner scopes have numbers of their own, and each lane of a vector has one.
pub type Register = u32;

/// A name in a function, by number: see [`crate::Code::name`].
pub type NameId = u32;

/// A name that stands for no register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// As it is spelled; a special register with its element (`%tid.x`).
    pub text: &'a str,
    /// What it stands for.
    pub declared: Declared,
}

/// Operands inside another: see [`crate::Code::list`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// `!p`, or a register with a sign.
    Negated(Register),
    /// A part of a register, as video instructions take them: `%r1.h0`.
    Part(Register),
    /// An integer constant; below zero if it has a sign, else without one.
    Integer(i64),
    /// An integer constant above 2^63 - 1.
    Unsigned(u64),
    /// Any other constant: a float, an expression.
    Constant,
    /// A function, variable, special register or word of the instruction, and a number that is added.
    Name(NameId, i64),
    /// `[register + offset]`
    At(Register, i64),
    /// `[variable + offset]`
    AtName(NameId, i64),
    /// `[constant]`
    AtNumber(i64),
    /// Brackets with more in them, such as a tensor's coordinates.
    Address(List),
    /// `{a, b}`, or a register that was declared as a vector.
    Vector(List),
    /// Parentheses of a call.
    Group(List),
    /// `a|b`
    Pair(List),
    /// `_`
    Sink,
    /// Anything else, with the registers that it names.
    Unknown(List),
}

impl Operand {
    /// The value of an integer constant.
    #[must_use]
    pub fn number(self) -> Option<i128> {
        match self {
            Self::Integer(value) => Some(value.into()),
            Self::Unsigned(value) => Some(value.into()),
            _ => None,
        }
    }

    pub(crate) fn list(self) -> Option<List> {
        match self {
            Self::Address(list) | Self::Vector(list) | Self::Group(list) | Self::Pair(list) | Self::Unknown(list) => Some(list),
            _ => None,
        }
    }

    /// The register that it names itself, outside lists.
    pub(crate) fn register(self) -> Option<Register> {
        match self {
            Self::Register(register) | Self::Negated(register) | Self::Part(register) | Self::At(register, _) => Some(register),
            _ => None,
        }
    }
}
