//! What an instruction may do to memory and to the first cache, by its opcode.

use crate::program::instruction::spaces;
use cuinstr_ptx::{Access, access_of};

/// Whether an instruction may write memory that it names an address of. One that is not known may.
pub(super) fn stores(opcode: &str) -> bool {
    match opcode.split('.').next().unwrap_or("") {
        "st" | "red" | "atom" | "cp" | "multimem" | "discard" | "tensormap" | "sust" | "sured" => true,
        "wmma" => opcode.starts_with("wmma.store"),
        _ => access_of(opcode) == Access::Any,
    }
}

/// Whether an instruction may leave what it reads in the first cache.
pub(super) fn fills_first_cache(opcode: &str) -> bool {
    let mut parts = opcode.split('.');
    let head = parts.next().unwrap_or("");
    // Threads of one block share the first cache: a strong load for them alone reads there, and fills it.
    let for_block = opcode.split('.').any(|part| part == "cta");
    let passes = |part| match part {
        "volatile" | "relaxed" | "acquire" => !for_block,
        _ => matches!(part, "mmio" | "L1::no_allocate" | "L2"),
    };
    let elsewhere = spaces(opcode).any(|space| space != "global");
    matches!(head, "ld" | "ldu" | "wmma" | "prefetch" | "prefetchu" | "applypriority") && !elsewhere && !parts.any(passes)
}

/// Whether a store may leave what it writes in the first cache. Atomics and reductions are made in the second.
pub(super) fn leaves_in_first_cache(opcode: &str) -> bool {
    let mut parts = opcode.split('.');
    !matches!(parts.next(), Some("atom" | "red")) && !parts.any(|part| part == "L1::no_allocate")
}
