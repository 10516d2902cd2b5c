//! The call graph of a module.

use cuinstr_ptx::{Function, Module, is_system};

/// For each function its calls of functions of the module: statement and callee.
pub(crate) type Calls = [Vec<(u32, u32)>];

/// What a `call` leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee<'c, 'a> {
    /// A function of the module, by index.
    Known(u32),
    /// Through a pointer: any of these.
    Pointer(&'c [u32]),
    /// A kernel of the module is launched: any of these.
    Launch(&'c [u32]),
    /// A function of the system, by name: another unit may define one of that name.
    System(&'a str),
    /// A function that is not in sight, by name; empty for a pointer that no function of the module fits.
    Unknown(&'a str),
}

/// Functions by name, and those whose address is taken.
#[derive(Debug)]
pub(crate) struct Callees<'a> {
    calls: cuinstr_ptx::Calls<'a>,
}

impl<'a> Callees<'a> {
    pub(crate) fn new(module: &Module<'a>, text: &'a str) -> Self {
        Self { calls: cuinstr_ptx::Calls::new(text, module) }
    }

    /// What the call at a statement leads to.
    pub(crate) fn of(&self, function: &Function<'a>, statement: u32) -> Callee<'_, 'a> {
        let Some(call) = function.call(statement) else { return Callee::Unknown("") };
        match self.calls.callee(function, call) {
            cuinstr_ptx::Callee::Known(index) => Callee::Known(index),
            cuinstr_ptx::Callee::Pointer(all) => Callee::Pointer(all),
            cuinstr_ptx::Callee::Launch(all) => Callee::Launch(all),
            cuinstr_ptx::Callee::Outside(name) if is_system(name) => Callee::System(name),
            cuinstr_ptx::Callee::Outside(name) => Callee::Unknown(name),
            cuinstr_ptx::Callee::Lost => Callee::Unknown(""),
        }
    }
    /// For each function its calls of functions of the module: statement and callee.
    pub(crate) fn known(&self, module: &Module<'a>) -> Vec<Vec<(u32, u32)>> {
        let of = |function: &Function<'a>| {
            let mut found = Vec::new();
            for at in function.calls.iter().map(|call| call.statement) {
                match self.of(function, at) {
                    Callee::Known(index) => found.push((at, index)),
                    Callee::Pointer(all) => found.extend(all.iter().map(|index| (at, *index))),
                    Callee::Launch(_) | Callee::System(_) | Callee::Unknown(_) => {}
                }
            }
            found
        };
        module.functions.iter().map(of).collect()
    }

    /// For each function its launches of kernels of the module: statement and kernel.
    pub(crate) fn launches(&self, module: &Module<'a>) -> Vec<Vec<(u32, u32)>> {
        let kernels = |function: &Function<'a>, at: u32| if let Callee::Launch(all) = self.of(function, at) { all } else { &[] };
        let of = |function: &Function<'a>| {
            let calls = function.calls.iter().map(|call| call.statement);
            calls.flat_map(|at| kernels(function, at).iter().map(move |kernel| (at, *kernel))).collect()
        };
        module.functions.iter().map(of).collect()
    }
}

/// The functions, each behind those that it calls as far as that is possible.
pub(crate) fn callees_first(calls: &Calls) -> Vec<usize> {
    let mut seen = vec![false; calls.len()];
    let mut order = Vec::with_capacity(calls.len());
    for root in 0..calls.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((function, next)) = work.pop() {
            match calls[function].get(next) {
                Some((_, to)) => {
                    work.push((function, next + 1));
                    if !std::mem::replace(&mut seen[*to as usize], true) {
                        work.push((*to as usize, 0));
                    }
                }
                None => order.push(function),
            }
        }
    }
    order
}
