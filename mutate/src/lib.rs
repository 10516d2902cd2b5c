//! Mutants of CUDA kernels, for judging tests: a test is worth something if it fails for a kernel that was changed.
//!
//! [`mutants`] lists every change that the [`Operator`]s make in the device functions of a source; [`Mutant::apply`] makes the changed source.
//! Nothing is compiled and nothing is run. A mutant may not compile, may compute the same as before, and may not end, which is what
//! cuinstr is for.
//!
//! ```
//! let source = "__global__ void scale(float* x, int n) { for (int i = 0; i < n; ++i) x[i] *= 2; }";
//! let mutants = cuinstr_mutate::mutants(source);
//! let endless = mutants.iter().find(|mutant| mutant.before == "++").unwrap();
//! assert_eq!(endless.apply(source), source.replace("++i", "--i"));
//! ```

#![forbid(unsafe_code)]

mod operator;
mod walk;

pub use operator::Operator;
pub use walk::mutants;

use serde::Serialize;
use std::ops::Range;

/// One change of a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Mutant {
    /// What made it.
    pub operator: Operator,
    /// Line of the change, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// Name of the function.
    pub function: String,
    /// What stands there.
    pub before: String,
    /// What the mutant has instead.
    pub after: String,
    /// Where, in bytes.
    pub range: Range<usize>,
}

impl Mutant {
    /// The whole changed source.
    ///
    /// # Panics
    /// If the source is not the one that the mutant was made of.
    #[must_use]
    pub fn apply(&self, source: &str) -> String {
        assert_eq!(source.get(self.range.clone()), Some(self.before.as_str()), "the mutant is of another source");
        [&source[..self.range.start], &self.after, &source[self.range.end..]].concat()
    }
}

/// At most so many of them, spread evenly, in their order; always the same ones.
#[must_use]
pub fn sample(mutants: Vec<Mutant>, most: usize) -> Vec<Mutant> {
    let count = mutants.len();
    if count <= most {
        return mutants;
    }
    let chosen = |index: usize| (index * most) / count != (index + 1) * most / count;
    mutants.into_iter().enumerate().filter(|(index, _)| chosen(*index)).map(|(_, mutant)| mutant).collect()
}
