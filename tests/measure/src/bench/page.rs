//! The results as a page: JSON for programs, a Markdown table for people.

use super::figure::{Row, Summary};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// All results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Page {
    /// What was typed.
    pub command: String,
    /// When, in UTC.
    pub date: String,
    /// The processor of the host.
    pub host: String,
    /// What `nvidia-smi` says of the device, before the first figure.
    pub before: Value,
    /// And after the last.
    pub after: Value,
    /// The compiler of the kernels.
    pub compiler: String,
    /// Whether fewer samples were taken.
    pub quick: bool,
    /// The figures.
    pub figures: Vec<Measured>,
}

/// One figure.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Its name on the command line.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How long it took.
    pub seconds: f64,
    /// Its rows; none if it could not be measured.
    pub rows: Vec<Row>,
    /// Why it could not be measured.
    pub error: Option<String>,
}

impl Page {
    /// Whether everything was measured and every target is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.figures.iter().all(|figure| figure.error.is_none() && figure.rows.iter().all(|row| row.met != Some(false)))
    }

    /// The table.
    #[must_use]
    pub fn markdown(&self) -> String {
        let field = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        let mut text = String::from("# What the runtime takes\n\n");
        let (gpu, driver) = (field(&self.before, "name"), field(&self.before, "driver_version"));
        let clocks = |of: &Value| format!("{} (memory {})", field(of, "clocks.sm"), field(of, "clocks.mem"));
        let _ = writeln!(
            text,
            "{gpu}, driver {driver}, host {}, kernels by {}. By `{}`, {}.",
            self.host, self.compiler, self.command, self.date
        );
        let _ = writeln!(
            text,
            "Clocks before {}, after {}, at most {}.",
            clocks(&self.before),
            clocks(&self.after),
            field(&self.before, "clocks.max.sm")
        );
        if self.quick {
            text.push_str("A quick run, with a tenth of the samples.\n");
        }
        text.push_str("\n| figure | median | p99 | min | max | unit | samples | target | met |\n| --- | ---: | ---: | ---: | ---: | --- | ---: | --- | --- |\n");
        for figure in &self.figures {
            let cells = "| ".repeat(7);
            let error = figure.error.as_ref().map_or(String::new(), |why| format!(": {}", why.lines().next().unwrap_or_default()));
            let _ = writeln!(text, "| **{}**{error} {cells}| {} |", figure.title, if error.is_empty() { "" } else { "**no**" });
            for row in &figure.rows {
                text.push_str(&line(row));
            }
        }
        let notes = self.figures.iter().flat_map(|figure| &figure.rows).filter(|row| !row.note.is_empty());
        let notes: Vec<String> = notes.map(|row| format!("- {}: {}\n", row.what, row.note)).collect();
        if !notes.is_empty() {
            text.push('\n');
            text.push_str(&notes.concat());
        }
        text
    }
}

fn line(row: &Row) -> String {
    let Summary { count, median, p99, min, max } = row.samples;
    let target = row.target.map_or(String::new(), |target| target.to_string());
    let met = match row.met {
        None => "",
        Some(true) => "yes",
        Some(false) => "**no**",
    };
    let [median, p99, min, max] = [median, p99, min, max].map(shown);
    format!("| {} | {median} | {p99} | {min} | {max} | {} | {count} | {target} | {met} |\n", row.what, row.unit)
}

/// Three digits that count, or the whole number.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value:.0}");
    }
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figure::Target;

    #[test]
    fn a_page_shows_every_row_and_what_was_not_measured() {
        let figure = |name: &str, rows, error| Measured { name: name.into(), title: format!("The {name}"), seconds: 1.0, rows, error };
        let row = Row::new("flip until drained", "us", &[12.345, 20.0, 131.7]).target(Target::median(15.0)).note("of three");
        let mut page = Page {
            command: "runtime-bench".into(),
            date: "today".into(),
            host: "a machine".into(),
            before: serde_json::json!({ "name": "A GPU", "clocks.sm": "345 MHz" }),
            after: Value::Null,
            compiler: "nvcc".into(),
            quick: false,
            figures: vec![figure("one", vec![row], None), figure("two", Vec::new(), Some("it hangs\nfor ever".into()))],
        };
        let text = page.markdown();
        assert!(text.contains("| flip until drained | 20 | 132 | 12.3 | 132 | us | 3 | median ≤ 15 | **no** |\n"), "{text}");
        assert!(text.contains("| **The two**: it hangs | | | | | | | | **no** |\n"), "{text}");
        assert!(text.contains("A GPU, driver unknown") && text.contains("- flip until drained: of three\n"), "{text}");
        assert!(!page.is_met());
        page.figures.clear();
        assert!(page.is_met());
    }
}
