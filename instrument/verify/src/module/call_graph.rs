//! The call graph of a module.

use cuinstr_ptx::{Calls, Function, Module, is_system};

/// What a `call` leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee<'c, 'a> {
    /// A function of the module, by index.
    Known(u32),
    /// Through a pointer: any of these.
    Pointer(&'c [u32]),
    /// A function of the system.
    System,
    /// A function that is not in sight, by name; empty for a pointer that no function of the module fits.
    Unknown(&'a str),
}

/// Functions by name, and those whose address is taken.
#[derive(Debug)]
pub(crate) struct Callees<'a> {
    calls: Calls<'a>,
}

impl<'a> Callees<'a> {
    pub(crate) fn new(module: &Module<'a>, text: &'a str) -> Self {
        Self { calls: Calls::new(text, module) }
    }

    /// What the call at a statement leads to.
    pub(crate) fn of(&self, function: &Function<'a>, statement: u32) -> Callee<'_, 'a> {
        let Some(call) = function.call(statement) else { return Callee::Unknown("") };
        match self.calls.callee(function, call) {
            cuinstr_ptx::Callee::Known(index) => Callee::Known(index),
            cuinstr_ptx::Callee::Pointer(all) => Callee::Pointer(all),
            cuinstr_ptx::Callee::Outside(name) if is_system(name) => Callee::System,
            cuinstr_ptx::Callee::Outside(name) => Callee::Unknown(name),
            cuinstr_ptx::Callee::Lost => Callee::Unknown(""),
        }
    }
}
