//! What is measured of one benchmark, and the statistics of it.

use serde::{Deserialize, Serialize};

/// One benchmark's figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// One for each build that ran, the plain one first.
    pub columns: Vec<Column>,
    /// What cancels took.
    pub cancels: Option<Cancels>,
    /// Why it is not cancelled, what differs by contraction, and the like.
    pub notes: Vec<String>,
    /// What went wrong; figures beside it are those of what went well.
    pub errors: Vec<String>,
    /// Seconds of everything.
    pub seconds: f64,
}

/// One build's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the build.
    pub build: String,
    /// Launches of one sample.
    pub repeats: u32,
    /// Microseconds of a launch, in each sample.
    pub times_us: Vec<f64>,
    /// Its time over the plain build's in the same round.
    pub ratios: Vec<f64>,
}

/// What cancels took, in microseconds from the cancel on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cancels {
    /// Until the stream was seen drained.
    pub drained_us: Vec<f64>,
    /// Until `wait` had answered.
    pub answered_us: Vec<f64>,
    /// Launches that were over before.
    pub over: usize,
    /// Cancels that found blocks which had not begun.
    pub not_resident: usize,
    /// Milliseconds after which the launch ends by itself, if it was seen to.
    pub natural_ms: Option<f64>,
}

/// Quartiles.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names are the statistics' own")]
pub struct Quartiles {
    pub first: f64,
    pub median: f64,
    pub third: f64,
}

/// The quartiles of samples; nothing of no samples.
#[must_use]
pub fn quartiles(samples: &[f64]) -> Option<Quartiles> {
    let sorted = sorted(samples);
    let last = sorted.len().checked_sub(1)?;
    // Between two ranks, by linear interpolation.
    let at = |numerator: usize| {
        let (rank, rest) = (last * numerator / 4, last * numerator % 4);
        let part = [0.0, 0.25, 0.5, 0.75][rest];
        sorted[rank] + part * (sorted[(rank + 1).min(last)] - sorted[rank])
    };
    Some(Quartiles { first: at(1), median: at(2), third: at(3) })
}

/// The least sample that is not below `percent` of 100.
#[must_use]
pub fn percentile(samples: &[f64], percent: usize) -> Option<f64> {
    sorted(samples).get((samples.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

/// The geometric mean; nothing of no samples.
#[must_use]
pub fn geometric_mean(samples: &[f64]) -> Option<f64> {
    let count = u32::try_from(samples.len()).ok().filter(|&count| count > 0)?;
    Some((samples.iter().map(|sample| sample.ln()).sum::<f64>() / f64::from(count)).exp())
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

impl Measured {
    /// A benchmark that gave no figures.
    #[must_use]
    pub fn lost(name: &str, why: String) -> Self {
        Self { name: name.to_owned(), errors: vec![why], ..Self::default() }
    }

    /// It in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let ratio = self.ratio("default").map_or("no ratio".to_owned(), |ratio| format!("default {ratio:.3}"));
        let said: Vec<&str> = std::iter::once(ratio.as_str()).chain(self.errors.iter().map(String::as_str)).collect();
        format!("{:5.1} s  {}: {}", self.seconds, self.name, said.join("; "))
    }

    /// The times of a build.
    #[must_use]
    pub fn column(&self, build: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.build == build)
    }

    /// The median ratio of a build.
    #[must_use]
    pub fn ratio(&self, build: &str) -> Option<f64> {
        quartiles(&self.column(build)?.ratios).map(|ratios| ratios.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_books() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quartiles(&samples), Some(Quartiles { first: 2.0, median: 3.0, third: 4.0 }));
        assert_eq!(quartiles(&[1.0, 2.0]), Some(Quartiles { first: 1.25, median: 1.5, third: 1.75 }));
        assert_eq!((quartiles(&[]), percentile(&[], 99), geometric_mean(&[])), (None, None, None));
        let hundreds: Vec<f64> = (1..=200_u32).map(f64::from).collect();
        assert_eq!([percentile(&hundreds, 99), percentile(&hundreds, 100), percentile(&[7.0], 99)], [Some(198.0), Some(200.0), Some(7.0)]);
        assert!(geometric_mean(&[2.0, 8.0]).is_some_and(|mean| (mean - 4.0).abs() < 1e-12));
    }
}
