//! One row of the table: samples in short, the target, whether it is met.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// The samples.
    pub samples: Summary,
    /// What they should be.
    pub target: Option<Target>,
    /// Whether they are.
    pub met: Option<bool>,
    /// What else is to be known.
    pub note: String,
}

/// Samples in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the statistics' own")]
pub struct Summary {
    pub count: usize,
    pub median: f64,
    pub p99: f64,
    pub min: f64,
    pub max: f64,
}

/// What samples should be.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Target {
    /// The median at most.
    pub median: Option<f64>,
    /// 99 of 100 at most.
    pub p99: Option<f64>,
    /// Each at most.
    pub most: Option<f64>,
    /// Each at least.
    pub least: Option<f64>,
}

impl Summary {
    /// Of these samples, of which there is at least one.
    #[must_use]
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let at = |index: usize| sorted.get(index.min(count.saturating_sub(1))).copied().unwrap_or(f64::NAN);
        // The nearest rank: the least sample that is not below 99 of 100.
        Self { count, median: at(count / 2), p99: at((count * 99).div_ceil(100).saturating_sub(1)), min: at(0), max: at(count) }
    }
}

impl Target {
    /// A median of at most this.
    #[must_use]
    pub fn median(most: f64) -> Self {
        Self { median: Some(most), ..Self::default() }
    }

    /// 99 of 100 at most this.
    #[must_use]
    pub fn p99(most: f64) -> Self {
        Self { p99: Some(most), ..Self::default() }
    }

    /// Each at most this.
    #[must_use]
    pub fn most(most: f64) -> Self {
        Self { most: Some(most), ..Self::default() }
    }

    /// Each at least this.
    #[must_use]
    pub fn least(least: f64) -> Self {
        Self { least: Some(least), ..Self::default() }
    }

    fn is_met(&self, samples: &Summary) -> bool {
        let below = |limit: Option<f64>, found: f64| limit.is_none_or(|limit| found <= limit);
        below(self.median, samples.median)
            && below(self.p99, samples.p99)
            && below(self.most, samples.max)
            && self.least.is_none_or(|limit| samples.min >= limit)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [("median ≤", self.median), ("p99 ≤", self.p99), ("each ≤", self.most), ("each ≥", self.least)];
        let parts: Vec<String> = parts.iter().filter_map(|(word, limit)| Some(format!("{word} {}", (*limit)?))).collect();
        formatter.write_str(&parts.join(", "))
    }
}

impl Row {
    /// Samples with a unit, and no target yet.
    #[must_use]
    pub fn new(what: impl Into<String>, unit: &str, samples: &[f64]) -> Self {
        let samples = Summary::of(samples);
        Self { what: what.into(), unit: unit.into(), samples, target: None, met: None, note: String::new() }
    }

    /// The same in microseconds.
    #[must_use]
    pub fn micros(what: impl Into<String>, samples: &[Duration]) -> Self {
        let samples: Vec<f64> = samples.iter().map(|sample| sample.as_secs_f64() * 1e6).collect();
        Self::new(what, "us", &samples)
    }

    /// Compares it with a target.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.met = Some(target.is_met(&self.samples));
        self.target = Some(target);
        self
    }

    /// Adds a remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// A count as a sample.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts and bytes here are far below 2^52")]
pub fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_the_samples_in_order() {
        let samples: Vec<f64> = (1..=200_u32).rev().map(f64::from).collect();
        let summary = Summary::of(&samples);
        assert_eq!(summary, Summary { count: 200, median: 101.0, p99: 198.0, min: 1.0, max: 200.0 });
        assert_eq!(Summary::of(&[7.0]), Summary { count: 1, median: 7.0, p99: 7.0, min: 7.0, max: 7.0 });
    }

    #[test]
    fn a_target_is_met_if_all_that_it_says_holds() {
        let row = |target: Target| Row::new("", "us", &[1.0, 2.0, 3.0]).target(target).met;
        assert_eq!(row(Target::median(2.0)), Some(true));
        assert_eq!(row(Target { median: Some(2.0), p99: Some(2.5), ..Target::default() }), Some(false));
        assert_eq!([row(Target::most(3.0)), row(Target::least(1.5))], [Some(true), Some(false)]);
        assert_eq!(Target { median: Some(30.0), p99: Some(60.0), ..Target::default() }.to_string(), "median ≤ 30, p99 ≤ 60");
    }
}
