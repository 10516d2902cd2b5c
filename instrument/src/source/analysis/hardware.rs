//! Functions whose threads must not leave in the middle, and kernels that can't have a gate, because of the hardware and its barriers.

use crate::common::diagnostic::{Code, Diagnostic};
use crate::source::syntax::asm;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::token::Kind;

/// Instructions for which the PTX ISA does not define what happens when a thread of the block, or a peer, has left.
///
/// An `mbarrier` that counts threads is none of them. A thread that leaves does not arrive at it, so no other thread is
/// let through. A thread that waits in C++ polls while it waits, and leaves as well. If threads were held there, a wait
/// for an arrival that never comes would last for ever. At worst, leaving makes other threads wait inside an
/// instruction, or loses the context. That is the price of the next tier in any case.
///
/// An `mbarrier` that counts bytes is one of them: the bytes come from a copy under way, which a function of another file may have begun.
const IN_ASSEMBLY: &[&str] =
    &["cp.async.bulk", "cp.reduce.async.bulk", "wgmma", "tcgen05", "setmaxnreg", "mapa", "shared::cluster", "expect_tx", "complete_tx"];
/// Their names in C++.
const IN_SOURCE: &[&[u8]] = &[
    b"map_shared_rank",
    b"memcpy_async",
    b"memcpy_async_tx",
    b"wgmma_fence",
    b"warpgroup_arrive",
    b"warpgroup_reg_alloc",
    b"warpgroup_reg_dealloc",
    b"setmaxnreg_inc",
    b"setmaxnreg_dec",
    b"barrier_arrive_tx",
    b"barrier_expect_tx",
    b"mbarrier_expect_tx",
    b"mbarrier_arrive_expect_tx",
    b"st_async",
    b"red_async",
    b"clusterlaunchcontrol_try_cancel",
];
/// How names of theirs begin that come in many forms, such as `cp_async_bulk_tensor_2d_global_to_shared`.
const BEGINNINGS: &[&[u8]] = &[b"cp_async_bulk", b"cp_reduce_async_bulk", b"tcgen05_"];

/// Whether leaving in the middle of the function is undefined.
pub(crate) fn forbids_leaving(source: &[u8], fragment: &Fragment, function: &Function) -> bool {
    (function.open..function.close).any(|at| match fragment.tokens[at].kind {
        Kind::Asm => {
            let text = asm::text(source, fragment, at);
            IN_ASSEMBLY.iter().any(|word| text.contains(word))
        }
        Kind::Ident => {
            let name = fragment.text(source, at);
            IN_SOURCE.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        }
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

#[cfg(test)]
mod tests {
    use crate::common::diagnostic::Code;
    use crate::common::options::Options;

    /// Whether threads of a kernel with this statement in its loop stay.
    fn stay(statement: &str) -> bool {
        let source = format!("__global__ void k(unsigned *p, int n) {{ for (int i = 0; i < n; ++i) {{ {statement} }} }}\n");
        let rewrite = crate::rewrite(source.as_bytes(), &Options::default());
        assert!(rewrite.output.is_some(), "{statement}");
        rewrite.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::LeaveUndefined)
    }

    #[test]
    fn threads_leave_where_an_mbarrier_counts_arrivals_and_stay_where_it_counts_bytes() {
        for arrivals in [
            r#"asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(p[0]), "r"(n));"#,
            r#"asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" :: "r"(p[0]));"#,
            r#"asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(p[1]) : "r"(p[0]));"#,
            r#"asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(p[0]));"#,
            "mbarrier_arrive(p);",
        ] {
            assert!(!stay(arrivals), "{arrivals}");
        }
        for bytes in [
            r#"asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], 64; }" :: "r"(p[0]));"#,
            r#"asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" :: "r"(p[0]));"#,
            r#"asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" :: "r"(p[0]), "r"(p[1]));"#,
            "cuda::ptx::mbarrier_arrive_expect_tx(sem, scope, space, p, 64);",
            "cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(p, map, 0, i, bar);",
            "cuda::ptx::tcgen05_mma(kind, group, p, p, p, 0, true);",
        ] {
            assert!(stay(bytes), "{bytes}");
        }
    }
}
