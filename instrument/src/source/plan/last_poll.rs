//! Where a kernel's last poll is declared. It stands on every way out behind its declaration.
//!
//! Threads that have nothing to do mostly return in a kernel's first lines: `if (i >= n) return;`. They have run nothing that a stop could report.
//! Where the last poll is declared behind these lines, such a `return` stays one predicated `exit`, as in the plain build. Declared in front, the
//! `return` becomes a jump to the kernel's end. ptxas then takes the warp for divided and keeps warp-wide values in registers of each thread:
//! `stencil3d` had 48 registers for 32.

use crate::common::options::{AtExit, Options};
use crate::source::analysis::file_facts::FileFacts;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::statement::Body;
use crate::source::syntax::token::Kind;

/// Parts of the names of functions that make a thread wait: `__nanosleep`, `__syncwarp`, `grid.sync()`, `bar.arrive_and_wait()`.
const WAITS: &[&[u8]] = &[b"sync", b"wait", b"sleep", b"barrier", b"arrive", b"acquire"];

/// Whether a kernel's text, which opens there, may wait: in assembly, in a macro's body, or in a function whose name
/// says so. The deadline of one that does not may begin where its first block ends, a moment after it began. If a name
/// does not tell, no thread tells the host of a launch that waits for ever. A launch that waits before any thread has
/// run is the same case.
pub(crate) fn waits(source: &[u8], fragment: &Fragment, macros: &Macros, open: usize) -> bool {
    let close = fragment.mate(open).unwrap_or(fragment.tokens.len() - 1);
    (open..close).any(|at| match fragment.kind(at) {
        Some(Kind::Asm) => true,
        Some(Kind::Ident) => {
            let name = fragment.text(source, at);
            (macros.is_defined(name) && !macros.is_literal(name))
                || WAITS.iter().any(|part| name.windows(part.len()).any(|here| here == *part))
        }
        _ => false,
    })
}

/// Whether a kernel's text, which opens there, has a barrier whose check relies on cleared marks of earlier launches.
pub(crate) fn has_barrier(source: &[u8], fragment: &Fragment, open: usize) -> bool {
    let close = fragment.mate(open).unwrap_or(fragment.tokens.len() - 1);
    (open..close).any(|at| fragment.text(source, at) == b"__syncthreads")
}

/// The offset where the poll is declared, if not first in the kernel: behind the last `return` in front of anything that may take long, wait
/// or jump.
pub(crate) fn place(facts: &FileFacts, options: &Options, function: &Function, body: &Body) -> Option<usize> {
    let (source, fragment, names, macros) = (facts.source, facts.fragment, facts.functions, facts.macros);
    let limits = &options.limits;
    // A gate waits for all threads of a block, and a limit's count is reported at each thread's end.
    let counts = limits.timeout_ns.is_some() || limits.budget_cycles.is_some() || limits.fuel.is_some();
    if options.at_exit == AtExit::Gate || counts || !body.labels.is_empty() {
        return None;
    }
    let open = function.open;
    let simple = body.barriers.iter().chain(&body.asms).chain(&body.gotos).map(|simple| simple.token);
    let scopes = body.scopes.iter().skip(1).map(|scope| scope.open);
    let loops = body.loops.iter().map(|loop_| loop_.keyword).chain(body.lost.iter().copied());
    let first = simple.chain(scopes).chain(loops).chain(body.macro_uses.iter().map(|use_| use_.name)).min().unwrap_or(function.close);
    // A function of the file's, or a macro, may hold any of these.
    let may_hold = |at: &usize| match fragment.tokens[*at].kind {
        Kind::Ident => {
            let name = fragment.text(source, *at);
            names.contains(name) || (macros.is_defined(name) && !macros.is_literal(name)) || name.starts_with(b"__sync")
        }
        Kind::Class | Kind::Try | Kind::Pragma | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd => true,
        _ => false,
    };
    let first = (open + 1..first).find(may_hold).unwrap_or(first);
    let last_return = (open + 1..first).rev().find(|at| fragment.kind(*at) == Some(Kind::Return))?;
    let mut at = open + 1;
    while at < first {
        let end = if matches!(fragment.kind(at), Some(Kind::Punct(b'(' | b'[' | b'{'))) { fragment.mate(at)?.max(at) } else { at };
        let follows = fragment.kind(end + 1);
        let is_end = match fragment.kind(end) {
            Some(Kind::Punct(b';')) => true,
            // Of a block behind a condition, not of an initialiser.
            Some(Kind::Punct(b'}')) => {
                matches!(fragment.kind(at.checked_sub(1)?), Some(Kind::Else | Kind::Punct(b')')))
                    && !matches!(follows, Some(Kind::Punct(_) | Kind::Op | Kind::Arrow))
            }
            _ => false,
        };
        if is_end && end < first && end > last_return && follows != Some(Kind::Else) {
            return Some(fragment.tokens[end].end as usize);
        }
        at = end + 1;
    }
    None
}
