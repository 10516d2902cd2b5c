//! Kernels in the form that the machine runs: registers by number, names resolved, instructions as functions.

use crate::types::Type;
use std::fmt;
use std::sync::Arc;

/// What an instruction computes from its operands.
pub(crate) type Pure = Arc<dyn Fn(&[u64; 4]) -> u64 + Send + Sync>;

/// A register of a function. Number 0 takes what is written to `_`.
pub(crate) type Register = u32;

/// A module that can be run.
#[derive(Debug, Default)]
pub struct Program {
    pub(crate) functions: Vec<Function>,
    pub(crate) variables: Vec<Variable>,
    /// Bytes of shared memory that the module's variables take.
    pub(crate) shared: usize,
}

/// A variable in global or constant memory.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) values: Vec<Initial>,
}

/// A part of what a variable holds at first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Initial {
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) value: InitialValue,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum InitialValue {
    Number(u64),
    /// The address of another variable, by its number, and bytes behind it.
    Variable(usize, i64),
    Function(usize),
}

/// A kernel or a device function.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    pub(crate) has_body: bool,
    pub(crate) parameters: Vec<Passed>,
    pub(crate) results: Vec<Passed>,
    /// Bits of each register.
    pub(crate) widths: Vec<u8>,
    /// Bytes of the `.param` variables.
    pub(crate) param_bytes: usize,
    /// Bytes of the `.local` variables.
    pub(crate) local_bytes: usize,
    pub(crate) code: Vec<Instruction>,
}

/// A parameter or a result, as it lies in its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    Register(Register),
    /// Offset and size in the `.param` variables.
    Memory(usize, usize),
    Source(Source),
}

/// One statement.
#[derive(Debug)]
pub(crate) struct Instruction {
    /// Offset of the statement in the text.
    pub(crate) at: u32,
    /// A predicate, and whether the instruction runs where it is false.
    pub(crate) guard: Option<(Register, bool)>,
    pub(crate) operation: Operation,
}

/// Where an operand's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Register(Register),
    /// A predicate's opposite.
    Not(Register),
    Number(u64),
    Special(Special),
    /// The address of a variable in global memory, by number.
    Variable(usize, i64),
    /// An offset in the frame's local memory.
    Local(i64),
    /// The code of a function.
    Function(usize),
}

/// `%tid.x` and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    Lane,
    Warp,
    Warps,
    /// Lanes before, up to, after, from and at one's own, by how they compare.
    Lanes(LaneMask),
    Clock,
    DynamicShared,
    TotalShared,
    Fixed(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneMask {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// State spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Shared,
    Local,
    /// The frame's `.param` variables.
    Param,
}

/// Where a load or store goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) space: Space,
    pub(crate) base: Source,
    pub(crate) offset: i64,
}

/// What an instruction does.
pub(crate) enum Operation {
    Nothing,
    Compute {
        to: Register,
        from: [Source; 4],
        function: Pure,
    },
    /// The lowest bit goes to the first register, the next to the second.
    Predicates {
        to: [Register; 2],
        from: [Source; 4],
        function: Pure,
    },
    /// `add.cc` and its kin.
    Carry {
        kind: Carry,
        to: Register,
        from: [Source; 4],
        reads: bool,
        writes: bool,
        ty: Type,
    },
    Pack {
        to: Register,
        from: Vec<Source>,
        bits: u32,
    },
    Unpack {
        to: Vec<Register>,
        from: Source,
        bits: u32,
    },
    Load {
        to: Vec<Register>,
        ty: Type,
        address: Address,
    },
    Store {
        from: Vec<Source>,
        ty: Type,
        address: Address,
    },
    /// A copy of so many bytes.
    Copy {
        to: Address,
        from: Address,
        bytes: usize,
        taken: Option<Source>,
    },
    /// The function makes the new value of the old one and two operands.
    Atomic {
        to: Register,
        ty: Type,
        address: Address,
        from: [Source; 2],
        function: Pure,
    },
    /// Between a generic address and one of the space.
    Convert {
        to: Register,
        from: Source,
        space: Space,
        generic: bool,
    },
    IsSpace {
        to: Register,
        from: Source,
        space: Option<Space>,
    },
    Branch(usize),
    Table {
        index: Source,
        targets: Vec<usize>,
    },
    Call {
        callee: Callee,
        results: Vec<Passed>,
        parameters: Vec<Passed>,
    },
    Return,
    Exit,
    Trap,
    Barrier {
        kind: Barrier,
        number: Source,
        count: Option<Source>,
        from: Source,
        to: Register,
    },
    Warp(Warp),
    Allocate {
        to: Register,
        bytes: Source,
    },
    /// `stacksave` into, or `stackrestore` from.
    StackSave(Register),
    StackRestore(Source),
    /// What stands there is not simulated.
    Unknown(String),
}

impl fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(text) => write!(formatter, "Unknown({text})"),
            _ => formatter.write_str("Operation"),
        }
    }
}

/// What is computed with a carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carry {
    Add,
    Subtract,
    MultiplyLow,
    MultiplyHigh,
}

/// Who is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Callee {
    Function(usize),
    Pointer(Source),
}

/// What a block's barrier gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Barrier {
    Sync,
    Arrive,
    Count,
    And,
    Or,
}

/// An instruction that the lanes of a warp run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warp {
    pub(crate) kind: WarpKind,
    pub(crate) to: [Register; 2],
    pub(crate) from: [Source; 3],
    pub(crate) mask: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarpKind {
    Sync,
    Up,
    Down,
    Butterfly,
    Index,
    All,
    Any,
    Uniform,
    Ballot,
    MatchAny,
    MatchAll,
    Elect,
    Reduce(Reduce, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduce {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl Program {
    /// The kernels' names.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().filter(|function| function.is_kernel).map(|function| function.name.as_str())
    }
}
