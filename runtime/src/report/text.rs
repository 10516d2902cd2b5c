//! A report as text: a sentence, the line where the first thread stopped, a table of sites, the totals.

use super::{First, Report, SitePlace, SourceLine, StopSite};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cuinstr_abi::control::Why;
use cuinstr_abi::sites::Kind;
use std::fmt::{self, Write as _};

/// Rows of the table, unless all are asked for.
const ROWS: usize = 16;

/// Longest path in the table, in characters; a longer one loses its beginning.
const LONGEST_PATH: usize = 60;

/// A report as text. Get one with [`Report::text`].
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    report: &'a Report,
    colour: bool,
    all: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(report: &'a Report) -> Self {
        Self { report, colour: false, all: false }
    }

    /// With colours for a terminal, or without; without is the default.
    #[must_use]
    pub fn colour(self, colour: bool) -> Self {
        Self { colour, ..self }
    }

    /// With every site, not the sixteen with the most threads only. The format `{:#}` asks for the same.
    #[must_use]
    pub fn all_sites(self) -> Self {
        Self { all: true, ..self }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, colour, all } = *self;
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        f.write_str(&renderer.render(&[head(report)]))?;
        f.write_str("\n")?;
        f.write_str(&table(report, if all || f.alternate() { usize::MAX } else { ROWS }))?;
        writeln!(f, "{}", totals(report))
    }
}

/// The sentence, and the line under it.
fn head(report: &Report) -> Group<'_> {
    let group = Group::with_title(Level::ERROR.no_name().primary_title(sentence(report)));
    let Some(first) = &report.first else {
        return group.element(Level::NOTE.message("its record was never completed: which thread stopped first is not known"));
    };
    let group = match (&first.site.place, &first.line) {
        (Some(place), SourceLine::Text(line)) => group.element(snippet(place, line)),
        (Some(place), line) => {
            let origin = Origin::path(one_line(&place.file)).line(place.line as usize).char_column(place.column as usize);
            let group = group.element(origin).element(Level::NOTE.message(format!("at the {}", what(place))));
            match line {
                SourceLine::Changed => {
                    group.element(Level::NOTE.message("the file is not the one that was compiled, so its line is not shown"))
                }
                SourceLine::Text(_) | SourceLine::Absent => group,
            }
        }
        (None, _) => group.element(Level::NOTE.message(format!("at site 0x{}, which no site map names", first.site.id))),
    };
    let group = group.element(Level::NOTE.message(thread(first)));
    if first.site.goes_on {
        group.element(Level::NOTE.message("threads go on from there: leaving is not defined at that place"))
    } else {
        group
    }
}

fn sentence(report: &Report) -> String {
    let limit = |unit: fn(u64) -> String| report.limit.map_or(String::new(), |limit| format!(" ({})", unit(limit)));
    let kernel = one_line(&report.kernel);
    let why = match report.why {
        Some(Why::Deadline) => format!("its deadline{} passed", limit(duration)),
        Some(Why::Flag) => "it was cancelled".to_owned(),
        Some(Why::Budget) => format!("its budget{} was used up", limit(|cycles| counted(cycles, "cycle"))),
        Some(Why::Fuel) => format!("its fuel{} was used up", limit(|iterations| counted(iterations, "iteration"))),
        None => "for a reason that is not known".to_owned(),
    };
    // Of a launch that somebody else made the kernel may not be known.
    let subject = if kernel.is_empty() { "a kernel".to_owned() } else { format!("kernel `{kernel}`") };
    if report.why.is_none() { format!("{subject} was stopped {why}") } else { format!("{subject} was stopped: {why}") }
}

fn snippet<'a>(place: &SitePlace, line: &'a str) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let mut start = (place.column as usize).saturating_sub(1).min(line.len());
    while !line.is_char_boundary(start) {
        start -= 1;
    }
    // The word there, such as `while`, or one character.
    let rest = &line[start..];
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let end = start + if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
    Snippet::source(line)
        .line_start(place.line as usize)
        .path(one_line(&place.file))
        .annotation(AnnotationKind::Primary.span(start..end).label(format!("the first thread stopped at this {}", what(place))))
}

fn thread(first: &First) -> String {
    let [block, thread] = [first.block, first.thread].map(|[x, y, z]| format!("({x}, {y}, {z})"));
    let mut text = format!("block {block}, thread {thread}");
    if let Some(elapsed) = first.elapsed_ns {
        let _ = write!(text, ", {} after the kernel's start", duration(elapsed));
    }
    if let Some(cycles) = first.elapsed_cycles {
        let _ = write!(text, ", {} after its block's", counted(cycles, "cycle"));
    }
    text
}

/// The sites with their threads, the numbers aligned.
fn table(report: &Report, rows: usize) -> String {
    let shown = &report.sites[..report.sites.len().min(rows)];
    let hidden = &report.sites[shown.len()..];
    let mut lines: Vec<(u64, String, String)> = shown.iter().map(|row| (row.threads, place(&row.site), site(&row.site))).collect();
    if !hidden.is_empty() {
        let threads = hidden.iter().fold(0_u64, |sum, row| sum.saturating_add(row.threads));
        lines.push((threads, format!("at {}", counted(hidden.len() as u64, "more site")), String::new()));
    }
    if report.unlisted > 0 {
        lines.push((report.unlisted, "unlisted".to_owned(), "at further sites, for which the record has no room".to_owned()));
    }
    if lines.is_empty() {
        return String::new();
    }
    let numbers: Vec<String> = lines.iter().map(|(threads, ..)| grouped(*threads)).collect();
    let number_width = numbers.iter().map(String::len).chain(["threads".len()]).max().unwrap_or(0);
    let place_width = lines.iter().map(|(_, place, _)| place.chars().count()).max().unwrap_or(0);
    let mut text = format!("\n{:>number_width$}  stopped at\n", "threads");
    for (number, (_, place, site)) in numbers.iter().zip(&lines) {
        let _ = writeln!(text, "{}", format!("{number:>number_width$}  {place:<place_width$}  {site}").trim_end());
    }
    text.push('\n');
    text
}

fn totals(report: &Report) -> String {
    if report.launched_threads == 0 {
        return format!("{} stopped", counted(report.threads, "thread"));
    }
    let mut text = format!("{} of {} stopped", grouped(report.threads), counted(report.launched_threads, "thread"));
    if report.blocks_not_begun > 0 {
        let _ = write!(text, "; {} of {} never began", grouped(report.blocks_not_begun), counted(report.launched_blocks, "block"));
    }
    text
}

fn place(site: &StopSite) -> String {
    let Some(place) = &site.place else { return format!("0x{}", site.id) };
    let path = one_line(&place.file);
    let length = path.chars().count();
    let path = if length > LONGEST_PATH {
        // From a separator on, if there is one in what is left.
        let tail: String = path.chars().skip(length - LONGEST_PATH + 1).collect();
        format!("…{}", tail.find('/').filter(|at| at + 1 < tail.len()).map_or(tail.as_str(), |at| &tail[at..]))
    } else {
        path
    };
    format!("{path}:{}:{}", place.line, place.column)
}

fn site(site: &StopSite) -> String {
    let what = site.place.as_ref().map_or_else(|| "no site map names it".to_owned(), what);
    if site.goes_on { format!("{what}, and goes on") } else { what }
}

/// A place in the words that its author knows.
fn what(place: &SitePlace) -> String {
    let function = one_line(&place.function);
    match place.kind {
        Kind::For => format!("`for` loop in `{function}`"),
        Kind::RangeFor => format!("range-based `for` loop in `{function}`"),
        Kind::While => format!("`while` loop in `{function}`"),
        Kind::Do => format!("`do … while` loop in `{function}`"),
        Kind::MacroLoop => format!("loop behind a macro in `{function}`"),
        Kind::Goto => format!("backward `goto` in `{function}`"),
        Kind::Recursion => format!("entry of the recursive `{function}`"),
        Kind::Entry => format!("entry of kernel `{function}`"),
        Kind::Exit => format!("end of kernel `{function}`"),
        Kind::Barrier => format!("barrier in `{function}`"),
        Kind::AsmLoop => format!("loop of inline assembly in `{function}`"),
        Kind::Loop => format!("loop in `{function}`"),
    }
}

/// A duration with at most four digits that count: `37.25 us`, `2 s`, `90 s`.
pub(crate) fn duration(ns: u64) -> String {
    let (unit, size) = match ns {
        0..1_000 => ("ns", 1),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000),
        _ => ("s", 1_000_000_000),
    };
    let whole = ns / size;
    let decimals = match whole {
        0..10 => 3,
        10..100 => 2,
        100..1000 => 1,
        _ => 0,
    };
    let scale = 10_u64.pow(decimals);
    // Cut, not rounded: a time must not seem to have reached the next whole.
    let fraction = ns % size * scale / size;
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:0width$}", width = decimals as usize) };
    format!("{}{} {unit}", grouped(whole), fraction.trim_end_matches('0'))
}

/// A number with its noun: `1 block`, `4,096 blocks`.
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The text without control characters: a module names these, and it may be anybody's.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_digits_that_count() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (1_999, "1.999 us"),
            (37_250, "37.25 us"),
            (999_999, "999.9 us"),
            (250_000_000, "250 ms"),
            (2_000_013_500, "2 s"),
            (2_050_000_000, "2.05 s"),
            (90_000_000_000, "90 s"),
            (u64::MAX, "18,446,744,073 s"),
        ] {
            assert_eq!(duration(ns), expected);
        }
    }

    #[test]
    fn digits_stand_in_groups() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
    }
}
