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
    let head = opcode.bytes().position(|byte| byte == b'.').map_or(opcode, |at| &opcode[..at]);
    let has = |modifier: &str| opcode.split('.').any(|part| part == modifier);
    match head {
        "abs" | "activemask" | "add" | "addc" | "alloca" | "and" | "atom" | "bfe" | "bfi" | "bfind" | "bmsk" | "brev" | "call" | "clz"
        | "cnot" | "copysign" | "cos" | "createpolicy" | "cvt" | "cvta" | "div" | "dp2a" | "dp4a" | "elect" | "ex2" | "fma" | "fns"
        | "getctarank" | "isspacep" | "istypep" | "ld" | "ldmatrix" | "ldu" | "lg2" | "lop3" | "mad" | "mad24" | "madc" | "mapa"
        | "match" | "max" | "mbarrier" | "min" | "mma" | "mov" | "movmatrix" | "mul" | "mul24" | "neg" | "not" | "or" | "popc" | "prmt"
        | "rcp" | "redux" | "rem" | "rsqrt" | "sad" | "selp" | "set" | "setp" | "shf" | "shfl" | "shl" | "shr" | "sin" | "slct"
        | "sqrt" | "stacksave" | "sub" | "subc" | "suld" | "suq" | "szext" | "tanh" | "testp" | "tex" | "tld4" | "txq" | "vote" | "xor" => {
            Access::First
        }
        "wmma" if has("store") => Access::None,
        "wmma" => Access::First,
        "wgmma" if has("mma_async") => Access::FirstRead,
        "bar" | "barrier" if has("red") => Access::First,
        "applypriority" | "bar" | "barrier" | "bra" | "brkpt" | "brx" | "cp" | "discard" | "exit" | "fence" | "griddepcontrol"
        | "membar" | "nanosleep" | "pmevent" | "prefetch" | "prefetchu" | "red" | "ret" | "setmaxnreg" | "st" | "stackrestore"
        | "sured" | "sust" | "trap" | "wgmma" => Access::None,
        _ => Access::Any,
    }
}
