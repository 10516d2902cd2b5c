//! The builds of each kernel that the cases need.

use crate::fixtures::Fixture;
use cuinstr::options::{AtExit, Limits, Polls};

/// Compiled in where a limit must be there but not be reached: a minute, ten years of cycles, all the fuel that fits.
pub const FAR_LIMITS: Limits = Limits { timeout_ns: Some(60_000_000_000), budget_cycles: Some(1 << 60), fuel: Some(Limits::MAX_FUEL) };

/// Compiled in where nobody arms anything: 200 ms.
pub const SHORT_TIMEOUT: Limits = Limits { timeout_ns: Some(200_000_000), budget_cycles: None, fuel: None };

const NO_LIMITS: Limits = Limits { timeout_ns: None, budget_cycles: None, fuel: None };

/// Kernels whose overhead is measured.
pub const BENCHED: &[&str] =
    &["saxpy", "saxpy_stride", "gemm_naive", "gemm_tiled", "collatz", "nbody", "mandelbrot", "spmv_csr", "convolve2d", "reduce_shared"];

/// Hangs that go through every combination of reason, action and poll form.
pub const MATRIX: &[&str] = &["hang/while_true", "hang/zero_step", "hang/syncthreads_neighbours"];

/// How a source is rewritten before it is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewriting {
    /// Where polls stand.
    pub polls: Polls,
    /// What a thread does at its end.
    pub at_exit: AtExit,
    /// Limits compiled in.
    pub limits: Limits,
}

/// One way to build a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Name in the manifest.
    pub name: &'static str,
    /// How the source is rewritten; not at all if absent.
    pub rewriting: Option<Rewriting>,
    /// Whether products and sums may be contracted.
    pub contract: bool,
}

const fn rewritten(name: &'static str, polls: Polls, limits: Limits, contract: bool) -> Variant {
    Variant { name, rewriting: Some(Rewriting { polls, at_exit: AtExit::Check, limits }), contract }
}

/// As its author wrote it.
pub const PLAIN: Variant = Variant { name: "plain", rewriting: None, contract: true };
/// As its author wrote it, without contraction.
pub const PLAIN_STRICT: Variant = Variant { name: "plain-nofma", rewriting: None, contract: false };
/// What a user gets who gives no option.
pub const DEFAULT: Variant = rewritten("default", Polls::Amortised, NO_LIMITS, true);
/// The same without contraction.
pub const DEFAULT_STRICT: Variant = rewritten("default-nofma", Polls::Amortised, NO_LIMITS, false);
/// Every limit compiled in.
pub const DEFAULT_ALL: Variant = rewritten("default-all", Polls::Amortised, FAR_LIMITS, true);
/// The same without contraction.
pub const DEFAULT_ALL_STRICT: Variant = rewritten("default-all-nofma", Polls::Amortised, FAR_LIMITS, false);
/// A count-down in every loop.
pub const COUNT_DOWN: Variant = rewritten("count-down", Polls::CountDown, NO_LIMITS, true);
/// A poll in every iteration.
pub const EACH: Variant = rewritten("each", Polls::Each, NO_LIMITS, true);
/// A poll in every iteration, every limit compiled in.
pub const EACH_ALL: Variant = rewritten("each-all", Polls::Each, FAR_LIMITS, true);
/// The same without contraction.
pub const EACH_ALL_STRICT: Variant = rewritten("each-all-nofma", Polls::Each, FAR_LIMITS, false);
/// A short timeout compiled in, exits that ask once.
pub const DEFAULT_TIMEOUT: Variant = rewritten("default-timeout", Polls::Amortised, SHORT_TIMEOUT, true);
/// A short timeout compiled in, exits that wait for their block.
pub const GATE_TIMEOUT: Variant = Variant {
    name: "gate-timeout",
    rewriting: Some(Rewriting { polls: Polls::Amortised, at_exit: AtExit::Gate, limits: SHORT_TIMEOUT }),
    contract: true,
};
/// Fuel compiled in, as much as fits.
pub const FUEL: Variant = rewritten("fuel", Polls::Amortised, Limits { fuel: Some(Limits::MAX_FUEL), ..NO_LIMITS }, true);
/// Exits that wait for their block.
pub const GATE: Variant = Variant {
    name: "gate",
    rewriting: Some(Rewriting { polls: Polls::Amortised, at_exit: AtExit::Gate, limits: NO_LIMITS }),
    contract: true,
};

/// What the cost of polls is measured on, the plain build first.
pub const COLUMNS: [Variant; 6] = [PLAIN, DEFAULT, COUNT_DOWN, EACH, FUEL, GATE];

/// The builds of one fixture.
#[must_use]
pub fn of(fixture: &Fixture) -> Vec<Variant> {
    let name = fixture.name.as_str();
    let mut variants = vec![PLAIN, DEFAULT];
    if fixture.tier() == 0 {
        variants.extend([PLAIN_STRICT, DEFAULT_STRICT, DEFAULT_ALL, DEFAULT_ALL_STRICT, EACH_ALL, EACH_ALL_STRICT]);
    }
    if MATRIX.contains(&name) {
        variants.extend([DEFAULT_ALL, EACH_ALL]);
    }
    if fixture.header.stuck {
        variants.extend([GATE_TIMEOUT, DEFAULT_TIMEOUT]);
    }
    if matches!(name, "hang/while_true" | "saxpy_stride") {
        variants.push(DEFAULT_TIMEOUT);
    }
    if BENCHED.contains(&name) || name == "probe/spin_grid" {
        variants.push(EACH);
    }
    variants
}
