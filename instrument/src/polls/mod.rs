//! Puts polls into compiled PTX: bytes in, bytes, site map and diagnostics out, no IO. `docs/PTX_PASS.md` says which forms there are.
//!
//! In reading order, up to [`rewrite_ptx`]:
//! - `accept`: which texts are taken.
//! - `find`: the cycles of functions, loops whose trips can be computed, calls that may repeat.
//! - `place`: which form each cycle gets, and where it stands.
//! - `emit`: all text.

mod accept;
mod emit;
mod find;
mod pass;
mod place;

#[cfg(feature = "launcher")]
pub(crate) use accept::is_own;
pub use accept::is_ptx;

use crate::common::rewrite::{Rewrite, refused};
use crate::diagnostic::Code;
use crate::options::{Limits, Options};
use accept::{refusals, text_of};
use cuinstr_abi::sites::hash;
use pass::Pass;

/// Puts polls into PTX. Never fails: what can't be instrumented is said in the diagnostics, and then there is no output.
///
/// Text is only inserted, so that [`Rewrite::original`] is the input again.
///
/// # Examples
/// ```
/// use cuinstr::options::Options;
///
/// let ptx = b".version 9.0 .target sm_90 .address_size 64 .visible .entry spin() { $L: bra $L; }";
/// let rewrite = cuinstr::rewrite_ptx(ptx, &Options { path: "spin.ptx".to_owned(), ..Options::default() });
/// assert_eq!(rewrite.summary.polled, 1);
/// assert_eq!(rewrite.original().as_deref(), Some(&ptx[..]));
/// let text = String::from_utf8(rewrite.output.unwrap()).unwrap();
/// assert!(cuinstr::verify::verify_ptx(&text).holds());
/// ```
pub fn rewrite_ptx(source: &[u8], options: &Options) -> Rewrite {
    let path = if options.site_path.is_empty() { &options.path } else { &options.site_path };
    let hash = hash(hash(0, path.as_bytes()), source);
    let text = match text_of(source) {
        Ok(text) => text,
        Err(diagnostic) => return refused(options, Vec::new(), vec![*diagnostic], hash),
    };
    let module = cuinstr_ptx::parse(text);
    let refusals = refusals(text, &module);
    if !refusals.is_empty() {
        return refused(options, Vec::new(), refusals, hash);
    }
    Pass::new(text, module, options, hash).run()
}

/// As [`rewrite_ptx`]. Where the options ask for fuel and a function that kernels call repeats (CI008), the module gets polls without fuel, and the second
/// part names that function.
pub fn rewrite_ptx_with_fuel(source: &[u8], options: &Options) -> (Rewrite, Option<String>) {
    let rewrite = rewrite_ptx(source, options);
    let Some(refusal) = rewrite.diagnostics.iter().find(|diagnostic| diagnostic.code == Code::NotInPtx) else { return (rewrite, None) };
    let function = refusal.function.clone().unwrap_or_default();
    let limits = Limits { fuel: None, ..options.limits };
    (rewrite_ptx(source, &Options { limits, ..options.clone() }), Some(function))
}
