//! What a candidate may take, from what the reference takes.

use crate::spec::LimitRules;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a candidate may take in one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// The case.
    pub case: String,
    /// Seconds from the moment that the kernel begins.
    pub timeout_s: f64,
    /// Iterations of a thread, if fuel is what limits it; the time limit is a net then, for what no fuel counts.
    pub fuel: Option<u64>,
    /// Seconds that the reference took, the longest of a few times.
    pub reference_s: f64,
    /// Iterations that its longest thread ran.
    pub reference_fuel: Option<u64>,
}

impl Limits {
    /// By what the reference took.
    pub(crate) fn new(case: &str, rules: &LimitRules, reference: Duration, reference_fuel: Option<u64>) -> Self {
        let time = (rules.factor * reference.as_secs_f64()).max(rules.least_time);
        let fuel = reference_fuel.map(|fuel| {
            #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "a limit of 2^53 iterations is none")]
            let times = (rules.factor * fuel as f64) as u64;
            times.max(rules.least_fuel)
        });
        let timeout_s = if fuel.is_some() { time * rules.net } else { time };
        Self { case: case.to_owned(), timeout_s, fuel, reference_s: reference.as_secs_f64(), reference_fuel }
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_multiples_of_what_the_reference_takes() {
        let rules = LimitRules::default();
        let limits = |milliseconds, fuel| {
            let limits = Limits::new("c", &rules, Duration::from_millis(milliseconds), fuel);
            (limits.timeout().as_millis(), limits.fuel)
        };
        assert_eq!(limits(7, None), (70, None));
        assert_eq!(limits(0, None), (10, None));
        assert_eq!(limits(7, Some(500)), (700, Some(5000)));
        assert_eq!(limits(0, Some(3)), (100, Some(1000)));
    }
}
