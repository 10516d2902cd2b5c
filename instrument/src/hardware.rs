//! Functions whose threads must not leave in the middle, and kernels that can't have a gate: what the hardware and its barriers allow.

use crate::asm;
use crate::diagnostic::{Code, Diagnostic};
use crate::fragment::Fragment;
use crate::function::Function;
use crate::token::Kind;

/// Instructions for which the PTX ISA does not define what happens when a thread of the block, or a peer, has left.
const IN_ASSEMBLY: &[&str] = &["cp.async.bulk", "cp.reduce.async.bulk", "wgmma", "tcgen05", "setmaxnreg", "mapa", "shared::cluster"];
/// Their names in C++.
const IN_SOURCE: &[&[u8]] = &[
    b"map_shared_rank",
    b"memcpy_async",
    b"cp_async_bulk",
    b"cp_async_bulk_global_to_shared",
    b"cp_async_bulk_tensor",
    b"wgmma_fence",
    b"warpgroup_arrive",
    b"warpgroup_reg_alloc",
    b"warpgroup_reg_dealloc",
    b"setmaxnreg_inc",
    b"setmaxnreg_dec",
    b"barrier_arrive_tx",
];

/// Whether leaving in the middle of the function is undefined.
pub(crate) fn forbids_leaving(source: &[u8], fragment: &Fragment, function: &Function) -> bool {
    (function.open..function.close).any(|at| match fragment.tokens[at].kind {
        Kind::Asm => {
            let text = asm::text(source, fragment, at);
            IN_ASSEMBLY.iter().any(|word| text.contains(word))
        }
        Kind::Ident => IN_SOURCE.contains(&fragment.text(source, at)),
        _ => false,
    })
}

/// Why the kernel can't have a gate.
pub(crate) fn gate(source: &[u8], fragment: &Fragment, kernel: &Function, name: &str, functions: &[&Function]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let text = |at: usize| fragment.text(source, at);
    let is_cluster = |at: &usize| {
        text(*at) == b"__cluster_dims__" || (fragment.kind(*at) == Some(Kind::Ident) && text(*at).windows(7).any(|part| part == b"cluster"))
    };
    if let Some(at) = (kernel.head.saturating_sub(8)..kernel.close).find(is_cluster) {
        let message = format!("`{name}` runs in clusters: it can't have a gate");
        found.push(
            Diagnostic::new(Code::GateCluster, message).at(fragment.tokens[at].range()).in_function(name).help("use --at-exit check"),
        );
    }
    let barriers: Vec<usize> = (kernel.open..kernel.close).filter(|at| is_barrier(source, fragment, *at, functions)).collect();
    for at in kernel.open..kernel.close {
        if fragment.kind(at) != Some(Kind::Return) {
            continue;
        }
        // The last statement of the kernel returns from nothing that is still to come.
        let Some(barrier) = barriers.iter().find(|barrier| **barrier > at || shares_loop(fragment, kernel, at, **barrier)) else {
            continue;
        };
        let message = format!("a thread of `{name}` that returns here waits at the gate for threads that wait for it at a barrier");
        found.push(
            Diagnostic::new(Code::GateReturn, message)
                .at(fragment.tokens[at].range())
                .with(fragment.tokens[*barrier].range(), "the barrier")
                .in_function(name)
                .help("use --at-exit check"),
        );
        break;
    }
    found
}

/// A name that is a block barrier's, or a function's of this file that holds one.
fn is_barrier(source: &[u8], fragment: &Fragment, at: usize, functions: &[&Function]) -> bool {
    let text = fragment.text(source, at);
    match fragment.kind(at) {
        Some(Kind::Ident) => {
            let direct =
                text.starts_with(b"__syncthreads") || matches!(text, b"sync" | b"arrive_and_wait" | b"barrier_sync" | b"__barrier_sync");
            direct
                || functions.iter().any(|function| {
                    !(function.open..function.close).contains(&at)
                        && function.name.is_some_and(|name| fragment.text(source, name) == text)
                        && (function.open..function.close).any(|inner| fragment.text(source, inner).starts_with(b"__syncthreads"))
                })
        }
        Some(Kind::Asm) => {
            let text = asm::text(source, fragment, at);
            text.contains("bar.sync") || text.contains("barrier.sync") || text.contains("barrier.cta")
        }
        _ => false,
    }
}

/// Whether some brace pair of the kernel, other than its body, holds both: the barrier may then come round again.
fn shares_loop(fragment: &Fragment, kernel: &Function, a: usize, b: usize) -> bool {
    (kernel.open + 1..a.min(b)).any(|open| {
        let holds = fragment.is(open, b'{') && fragment.mate(open).is_some_and(|close| close > a.max(b));
        let is_loop = fragment.before(open).is_some_and(|before| {
            fragment.kind(before) == Some(Kind::Do)
                || (fragment.is(before, b')')
                    && fragment
                        .mate(before)
                        .and_then(|open| fragment.before(open))
                        .is_some_and(|at| matches!(fragment.kind(at), Some(Kind::For | Kind::While))))
        });
        holds && is_loop
    })
}
