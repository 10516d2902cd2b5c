//! What polls cost, as a page: Markdown for people, JSON for programs.

use super::result::{Measured, geometric_mean, percentile, quartiles};
use cuinstr_harness::variant;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// Most that the default may cost: on average, and any one kernel.
const MOST: [f64; 2] = [1.01, 1.05];
/// Longest that 99 of 100 stops may take, in microseconds.
const LONGEST_US: f64 = 60.0;

/// A whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Page {
    /// What was typed.
    pub command: String,
    /// When, in UTC.
    pub date: String,
    /// The processor of the host.
    pub host: String,
    /// What `nvidia-smi` says of the device, before the first benchmark.
    pub before: Value,
    /// And after the last.
    pub after: Value,
    /// The compiler of the kernels.
    pub compiler: String,
    /// Seconds of everything.
    pub seconds: f64,
    /// The benchmarks.
    pub benchmarks: Vec<Measured>,
}

impl Page {
    /// Whether everything could be measured, with the right results.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.benchmarks.iter().all(|benchmark| benchmark.errors.is_empty())
    }

    /// The page.
    #[must_use]
    pub fn markdown(&self) -> String {
        let field = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        let clocks = |of: &Value| format!("{} (memory {})", field(of, "clocks.sm"), field(of, "clocks.mem"));
        let mut text = String::from("# What polls cost\n\n");
        let (gpu, driver) = (field(&self.before, "name"), field(&self.before, "driver_version"));
        let (host, compiler, command, date) = (&self.host, &self.compiler, &self.command, &self.date);
        let _ =
            writeln!(text, "{gpu}, driver {driver}, host {host}, kernels by {compiler}. By `{command}`, {date}, {:.0} s.", self.seconds);
        let _ = writeln!(text, "Clocks before {}, after {}.\n", clocks(&self.before), clocks(&self.after));
        self.times(&mut text);
        self.stops(&mut text);
        let remarks = |of: fn(&Measured) -> &Vec<String>| {
            let lines = self.benchmarks.iter().flat_map(move |benchmark| of(benchmark).iter().map(|line| (short(benchmark), line)));
            lines.map(|(name, line)| format!("- {name}: {line}\n")).collect::<Vec<_>>().concat()
        };
        for (heading, lines) in [("Went wrong", remarks(|found| &found.errors)), ("Notes", remarks(|found| &found.notes))] {
            if !lines.is_empty() {
                let _ = write!(text, "\n{heading}:\n\n{lines}");
            }
        }
        text
    }

    /// Time over the plain build's: the median of the rounds' ratios, its quartiles for the default build.
    fn times(&self, text: &mut String) {
        text.push_str(
            "## Time over the plain build's\n\n\
             Rewritten builds run armed with a far deadline and `leave`. Medians of the ratios within each round; quartiles in brackets.\n\n\
             | kernel | plain, us | default | `--polls count-down` | `--polls each` | `--fuel` | `--at-exit gate` | rounds |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for benchmark in &self.benchmarks {
            let Some(plain) = benchmark.column(variant::PLAIN.name) else { continue };
            let time = quartiles(&plain.times_us).map_or(String::new(), |times| format!("{:.1}", times.median));
            let cells: Vec<String> = variant::COLUMNS[1..].iter().map(|variant| ratio(benchmark, variant.name)).collect();
            let _ = writeln!(text, "| {} | {time} | {} | {} |", short(benchmark), cells.join(" | "), plain.times_us.len());
        }
        let mean = |name: &str| {
            let ratios: Vec<f64> = self.benchmarks.iter().filter_map(|benchmark| benchmark.ratio(name)).collect();
            geometric_mean(&ratios).map_or("–".to_owned(), |mean| format!("{mean:.3}"))
        };
        let means: Vec<String> = variant::COLUMNS[1..].iter().map(|variant| format!("**{}**", mean(variant.name))).collect();
        let _ = writeln!(text, "| **geometric mean** | | {} | |", means.join(" | "));

        let default: Vec<(f64, &str)> =
            self.benchmarks.iter().filter_map(|found| Some((found.ratio(variant::DEFAULT.name)?, short(found)))).collect();
        let above: Vec<&(f64, &str)> = default.iter().filter(|(ratio, _)| *ratio > MOST[1]).collect();
        let mean = geometric_mean(&default.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>()).unwrap_or(f64::NAN);
        let word = |is_met: bool| if is_met { "met" } else { "**not met**" };
        let names = above.iter().map(|(ratio, name)| format!("{name} ({ratio:.3})")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "\nTargets of the default: geometric mean at most {}: {}; none above {}: {}{}{names}.",
            MOST[0],
            word(mean <= MOST[0]),
            MOST[1],
            word(above.is_empty()),
            if above.is_empty() { "" } else { ": " },
        );
    }

    fn stops(&self, text: &mut String) {
        text.push_str(
            "\n## Stops\n\nA launch with all its blocks resident, cancelled at a random instant; microseconds from the cancel, by the host's \
             clock: until the stream was seen drained, and until `wait` had answered. After each a sound kernel gave its right result, after \
             all of them the benchmark itself did.\n\n\
             | kernel | cancels | drained: median | p99 | worst | answered: median | p99 | worst |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        let (mut all_drained, mut all_answered) = (Vec::new(), Vec::new());
        for benchmark in &self.benchmarks {
            let Some(cancels) = &benchmark.cancels else { continue };
            let _ = writeln!(text, "{}", stop_line(short(benchmark), &cancels.drained_us, &cancels.answered_us));
            all_drained.extend(&cancels.drained_us);
            all_answered.extend(&cancels.answered_us);
        }
        let _ = writeln!(text, "{}", stop_line("**all**", &all_drained, &all_answered));
        let slow = self.benchmarks.iter().filter_map(|benchmark| {
            let p99 = percentile(&benchmark.cancels.as_ref()?.drained_us, 99)?;
            (p99 > LONGEST_US).then(|| format!("{} ({p99:.0})", short(benchmark)))
        });
        let slow: Vec<String> = slow.collect();
        let names = if slow.is_empty() { "met by each".to_owned() } else { format!("**not met** by {}", slow.join(", ")) };
        let _ = writeln!(text, "\nTarget: p99 until drained at most {LONGEST_US:.0} us: {names}.");
    }
}

fn short(benchmark: &Measured) -> &str {
    benchmark.name.trim_start_matches("bench/")
}

fn ratio(benchmark: &Measured, build: &str) -> String {
    let Some(ratios) = benchmark.column(build).and_then(|column| quartiles(&column.ratios)) else { return "–".into() };
    if build != variant::DEFAULT.name {
        return format!("{:.2}", ratios.median);
    }
    let text = format!("{:.3} ({:.3} to {:.3})", ratios.median, ratios.first, ratios.third);
    if ratios.median > MOST[1] { format!("**{text}**") } else { text }
}

fn stop_line(name: &str, drained: &[f64], answered: &[f64]) -> String {
    let cells = |samples: &[f64]| {
        let at = |percent| percentile(samples, percent).map_or("–".to_owned(), |found| format!("{found:.1}"));
        [50, 99, 100].map(at).join(" | ")
    };
    format!("| {name} | {} | {} | {} |", drained.len(), cells(drained), cells(answered))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::result::{Cancels, Column};

    #[test]
    fn a_page_shows_ratios_stops_targets_and_what_went_wrong() {
        let column = |build: &str, ratio: f64| Column {
            build: build.into(),
            repeats: 4,
            times_us: vec![200.0 * ratio; 3],
            ratios: vec![ratio, ratio, ratio],
        };
        let cancels =
            Cancels { drained_us: vec![20.0, 30.0, 70.0], answered_us: vec![40.0; 3], over: 0, not_resident: 0, natural_ms: None };
        let slow = Measured {
            name: "bench/slow".into(),
            columns: vec![column("plain", 1.0), column("default", 1.21), column("each", 9.0)],
            cancels: Some(cancels),
            notes: vec!["a note".into()],
            ..Measured::default()
        };
        let lost = Measured { name: "bench/lost".into(), errors: vec!["it hangs".into()], ..Measured::default() };
        let page = Page {
            command: "scripts/poll-bench".into(),
            date: "today".into(),
            host: "a machine".into(),
            before: Value::Null,
            after: Value::Null,
            compiler: "nvcc".into(),
            seconds: 3.0,
            benchmarks: vec![slow, lost],
        };
        let text = page.markdown();
        for line in [
            "| slow | 200.0 | **1.210 (1.210 to 1.210)** | – | 9.00 | – | – | 3 |",
            "| **geometric mean** | | **1.210** | **–** | **9.000** | **–** | **–** | |",
            "Targets of the default: geometric mean at most 1.01: **not met**; none above 1.05: **not met**: slow (1.210).",
            "| slow | 3 | 30.0 | 70.0 | 70.0 | 40.0 | 40.0 | 40.0 |",
            "Target: p99 until drained at most 60 us: **not met** by slow (70).",
            "- lost: it hangs",
            "- slow: a note",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!page.is_complete());
    }
}
