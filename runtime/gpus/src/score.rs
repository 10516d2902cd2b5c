//! Which GPU is the best: a weighted sum, and what rules a GPU out.

use crate::device::{Gpu, Mode};
use crate::error::Refusal;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// What each quality of a GPU counts. A quality is 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Weights {
    /// Share of the memory that is free.
    pub free_memory: f64,
    /// Share of time without a kernel; one half where it is unknown.
    pub idle: f64,
    /// 1 without other processes, one half with one, a third with two.
    pub alone: f64,
}

impl Default for Weights {
    /// Free memory first: without it a program does not start at all.
    fn default() -> Self {
        Self { free_memory: 1.0, idle: 0.5, alone: 0.25 }
    }
}

/// The part `[gpu]` of `cuinstr.toml`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preferences {
    /// What each quality counts.
    pub weights: Weights,
    /// Numbers or UUIDs in the order in which GPUs of equal score are taken; the others follow by number.
    pub order: Vec<String>,
    /// Numbers or UUIDs that are never taken by `auto`.
    pub exclude: Vec<String>,
}

/// A GPU with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct Rank {
    /// The GPU.
    pub gpu: Gpu,
    /// The weighted mean of its qualities, 0 to 1.
    pub score: f64,
    /// Why it is not taken.
    pub refusal: Option<Refusal>,
}

impl Gpu {
    /// Whether a number or a UUID, or the beginning of one with at least four characters behind its prefix, means this GPU.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let digits = name.split_once('-').map_or("", |(_, rest)| rest);
        let number = name.parse().is_ok_and(|number: u32| number == self.index);
        number || (digits.len() >= 4 && !self.uuid.is_empty() && self.uuid.to_ascii_lowercase().starts_with(&name.to_ascii_lowercase()))
    }
}

/// Puts GPUs in order, the best first; those that are ruled out stand behind the others.
///
/// `least_free` is in bytes.
#[must_use]
pub fn rank(gpus: Vec<Gpu>, preferences: &Preferences, least_free: u64) -> Vec<Rank> {
    let place = |gpu: &Gpu| preferences.order.iter().position(|name| gpu.is_called(name)).unwrap_or(usize::MAX);
    let ranked = |gpu: Gpu| Rank { score: score(&gpu, &preferences.weights), refusal: refusal(&gpu, preferences, least_free), gpu };
    let mut ranks: Vec<Rank> = gpus.into_iter().map(ranked).collect();
    ranks.sort_by(|a, b| {
        let key = |rank: &Rank| (rank.refusal.is_some(), Reverse(thousandths(rank.score)), place(&rank.gpu), rank.gpu.index);
        key(a).cmp(&key(b)).then_with(|| a.gpu.uuid.cmp(&b.gpu.uuid))
    });
    ranks
}

/// Scores are compared by thousandths, so that a few megabytes do not outweigh the order of the configuration.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a score is 0 to 1
fn thousandths(score: f64) -> u32 {
    (score.clamp(0.0, 1.0) * 1000.0).round() as u32
}

#[allow(clippy::cast_precision_loss)] // a share needs no 53 bits
fn score(gpu: &Gpu, weights: &Weights) -> f64 {
    let share = if gpu.total == 0 { 0.0 } else { gpu.free as f64 / gpu.total as f64 };
    let qualities = [
        (weights.free_memory, share),
        (weights.idle, gpu.busy.map_or(0.5, |busy| 1.0 - busy)),
        (weights.alone, 1.0 / (1.0 + f64::from(gpu.processes))),
    ];
    let sum: f64 = qualities.iter().map(|(weight, _)| weight.max(0.0)).sum();
    if sum > 0.0 { qualities.iter().map(|(weight, quality)| weight.max(0.0) * quality).sum::<f64>() / sum } else { 0.0 }
}

/// Why a GPU can't be taken, leases apart.
pub(crate) fn refusal(gpu: &Gpu, preferences: &Preferences, least_free: u64) -> Option<Refusal> {
    if let Some(why) = &gpu.unreadable {
        return Some(Refusal::Unreadable(why.clone()));
    }
    if preferences.exclude.iter().any(|name| gpu.is_called(name)) {
        return Some(Refusal::Excluded);
    }
    match gpu.mode {
        Mode::Prohibited => return Some(Refusal::Prohibited),
        Mode::Exclusive if gpu.processes > 0 => return Some(Refusal::Exclusive),
        Mode::Exclusive | Mode::Shared => {}
    }
    (gpu.free < least_free).then_some(Refusal::Memory { free: gpu.free, wanted: least_free })
}
