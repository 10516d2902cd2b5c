//! Attacks by number.

use super::base::{Base, Shown, Site, watch};
use super::cycle::{Cycle, cycle};
use super::dress::{Dress, dress};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::random::Random;

/// Instructions that a hang must outlast once the flag is written.
const MORE: u64 = 2000;

/// A text with a hang in it.
#[derive(Debug)]
pub struct Injected {
    /// The text.
    pub text: String,
    /// What was put in.
    pub kind: &'static str,
    /// The kernel that reaches it.
    pub kernel: String,
    /// Instructions that run before it is reached.
    pub step: u64,
    /// Where it stands.
    pub part: std::ops::Range<u32>,
    /// Where it comes from, for messages.
    pub base: String,
}

/// What came of an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// The proof rejects it.
    Rejected,
    /// The proof accepts a hang.
    Hole,
    /// The interpreter does not show a hang: this says why.
    NotShown(String),
}

/// The text of an attack.
#[must_use]
pub fn inject(bases: &[Base], seed: u64, plain: bool) -> Injected {
    let mut random = Random::new(seed);
    let base = &bases[random.below(bases.len())];
    let site: &Site = base.site(&mut random);
    let style = if random.percent(80) && !plain { Dress::Odd } else { Dress::Plain };
    let Cycle { kind, body, module, .. } = cycle(site, &mut random);
    let (body, module) = (dress(&body, &mut random, style), dress(&module, &mut random, style));
    let first = cuinstr_ptx::parse(&base.text).functions.first().map_or(0, |function| function.head.start as usize);
    let at = site.at as usize;
    let text = format!("{}{module}\n{}{body} {}", &base.text[..first], &base.text[first..at], &base.text[at..]);
    let from = (at + module.len() + 1) as u32;
    Injected {
        text,
        kind,
        kernel: site.kernel.clone(),
        step: site.step,
        part: from..from + body.len() as u32,
        base: format!("{} in `{}` at {at}", base.name, site.kernel),
    }
}

/// What the proof and the interpreter say of it.
#[must_use]
pub fn judge(injected: &Injected) -> Judged {
    match watch(&injected.text, &injected.kernel, injected.step, injected.part.clone(), MORE) {
        Shown::Runs if verify_ptx(&injected.text).holds() => Judged::Hole,
        Shown::Runs => Judged::Rejected,
        other => Judged::NotShown(format!("{other:?}")),
    }
}
