//! What instructions write.

/// Which operands an instruction may write registers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its first, unless that is an address: `mov`, `setp p|q`, `ld {a, b}`, `shfl d|p`, `tex {…}|p`, `mbarrier.try_wait p`. A `call` writes what it
    /// returns, which stands first in parentheses.
    First,
    /// Its first, which it reads too: the accumulators of `wgmma`.
    FirstRead,
    /// None: `st`, `bra`, `bar.sync`.
    None,
    /// Any register that it names: the instruction is not known.
    Any,
}

/// What an instruction may write, by its opcode with modifiers. PTX ISA 9.0, chapter 9.
#[must_use]
pub fn access_of(opcode: &str) -> Access {
    let length = opcode.bytes().position(|byte| byte == b'.').unwrap_or(opcode.len());
    let (head, modifiers) = opcode.split_at(length);
    let has = |modifier: &str| modifiers.split('.').any(|part| part == modifier);
    match head {
        "wmma" if has("store") => Access::None,
        "wgmma" if has("mma_async") => Access::FirstRead,
        "bar" | "barrier" if has("red") => Access::First,
        _ if length > size_of::<u128>() => Access::Any,
        _ if FIRST.binary_search(&packed(head)).is_ok() => Access::First,
        _ if NONE.binary_search(&packed(head)).is_ok() => Access::None,
        _ => Access::Any,
    }
}

/// A name of at most 16 bytes as a number. Each statement asks for its own.
const fn packed(name: &str) -> u128 {
    let bytes = name.as_bytes();
    let (mut number, mut at) = (0, 0);
    while at < bytes.len() {
        number = number << 8 | bytes[at] as u128;
        at += 1;
    }
    number
}

/// Names as sorted numbers.
const fn sorted<const COUNT: usize>(names: [&str; COUNT]) -> [u128; COUNT] {
    let mut numbers = [0; COUNT];
    let mut count = 0;
    while count < COUNT {
        let number = packed(names[count]);
        let mut at = count;
        while at > 0 && numbers[at - 1] > number {
            numbers[at] = numbers[at - 1];
            at -= 1;
        }
        numbers[at] = number;
        count += 1;
    }
    numbers
}

/// Instructions that write their first operand.
#[rustfmt::skip]
const FIRST: [u128; 82] = sorted([
    "abs", "activemask", "add", "addc", "alloca", "and", "atom", "bfe", "bfi", "bfind", "bmsk", "brev", "call", "clz", "cnot",
    "copysign", "cos", "createpolicy", "cvt", "cvta", "div", "dp2a", "dp4a", "elect", "ex2", "fma", "fns", "getctarank", "isspacep",
    "istypep", "ld", "ldmatrix", "ldu", "lg2", "lop3", "mad", "mad24", "madc", "mapa", "match", "max", "mbarrier", "min", "mma", "mov",
    "movmatrix", "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "redux", "rem", "rsqrt", "sad", "selp", "set", "setp",
    "shf", "shfl", "shl", "shr", "sin", "slct", "sqrt", "stacksave", "sub", "subc", "suld", "suq", "szext", "tanh", "testp", "tex",
    "tld4", "txq", "vote", "wmma", "xor",
]);

/// Instructions that write no register.
#[rustfmt::skip]
const NONE: [u128; 25] = sorted([
    "applypriority", "bar", "barrier", "bra", "brkpt", "brx", "cp", "discard", "exit", "fence", "griddepcontrol", "membar", "nanosleep",
    "pmevent", "prefetch", "prefetchu", "red", "ret", "setmaxnreg", "st", "stackrestore", "sured", "sust", "trap", "wgmma",
]);
