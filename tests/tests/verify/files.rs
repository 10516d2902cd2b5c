//! Every file of `tests/data/ptx/attacks` and `tests/data/ptx/proof`: PTX, and what the proof says of it.
//!
//! The first line is `//@ holds`, or `//@ fails` and a code that is among the findings. Each further `//@` line is a twin:
//! the same text with changes, and what the proof says of that. A change is written as two spans of code:
//!
//! ```text
//! //@ fails CI050 with `%r1, 1;` -> `%r1, 0;`: the counter stands still
//! ```
//!
//! A change replaces every occurrence. Several changes are separated by commas, and made one after the other. `\n` and `\t`
//! stand for a new line and a tab, and `POLL1` for a poll whose label is `$P1`. Behind `holds` may stand how many iterations
//! each loop is proved to make, in the order of the text: ``//@ holds (10 rounds, at most 64 rounds, the clock)``.

use crate::poll;
use cuinstr::diagnostic::Code;
use cuinstr::verify::report::{Bound, Verdict};
use cuinstr::verify::{Report, verify_ptx};
use cuinstr_harness::fixtures::workspace;
use std::collections::BTreeSet;
use std::path::Path;

/// What a `//@` line says.
struct Case<'l> {
    /// The code that is found, if one is.
    code: Option<&'l str>,
    /// How many iterations the loops make, if that is said.
    bounds: Option<Vec<&'l str>>,
    /// What is replaced in the text, and by what.
    changes: Vec<(String, String)>,
}

impl<'l> Case<'l> {
    fn read(line: &'l str) -> Option<Self> {
        let (verdict, changes) = line.split_once(" with ").unwrap_or((line, ""));
        let (code, bounds) = match verdict.split_once(' ') {
            None if verdict == "holds" => (None, None),
            Some(("holds", bounds)) => (None, Some(bounds.strip_prefix('(')?.strip_suffix(')')?.split(", ").collect())),
            Some(("fails", code)) => (Some(code), None),
            _ => return None,
        };
        let span = |span: &str| {
            let text = span.replace("\\n", "\n").replace("\\t", "\t");
            (1..=3).fold(text, |text, number| text.replace(&format!("POLL{number}"), &poll(number)))
        };
        let mut spans = changes.split('`').skip(1).step_by(2).map(span);
        let mut pairs = Vec::new();
        while let Some(from) = spans.next() {
            pairs.push((from, spans.next()?));
        }
        Some(Self { code, bounds, changes: pairs })
    }

    /// The text with the changes; none if one changes nothing.
    fn text(&self, base: &str) -> Option<String> {
        let change = |text: String, (from, to): &(String, String)| {
            let changed = text.replace(from, to);
            (changed != text).then_some(changed)
        };
        self.changes.iter().try_fold(base.to_owned(), change)
    }
}

/// Whether a loop is proved to make as many iterations as is said.
fn is_bounded(verdict: &Verdict, said: &str) -> bool {
    let number = |text: &str| text.strip_suffix(" rounds").and_then(|number| number.parse::<u64>().ok());
    match verdict {
        Verdict::Bounded { by: Bound::Clock } => said == "the clock",
        Verdict::Bounded { by: Bound::Rounds(rounds) } | Verdict::Polled { rounds } => match said.strip_prefix("at most ") {
            Some(most) => number(most).is_some_and(|most| *rounds <= most),
            None => number(said) == Some(*rounds),
        },
        _ => false,
    }
}

/// The codes of all that is found.
fn codes(report: &Report) -> BTreeSet<&'static str> {
    let loops = report.loops.iter().filter_map(|found| found.verdict.code()).map(Code::from);
    let calls = report.unknown.iter().map(|_| Code::UnknownCallee);
    loops.chain(calls).chain(report.faults.iter().map(|fault| fault.code.into())).map(Code::id).collect()
}

/// The text of a file without its lines of comment.
fn base(whole: &str) -> String {
    whole.split_inclusive('\n').filter(|line| !line.starts_with("//")).collect()
}

/// The texts that a file holds: of each `//@` line, or that of the file where there is none.
pub(crate) fn programs(whole: &str) -> Vec<String> {
    let base = base(whole);
    let lines: Vec<&str> = whole.lines().filter_map(|line| line.strip_prefix("//@ ")).collect();
    let all: Vec<String> = lines.iter().filter_map(|line| Case::read(line)?.text(&base)).collect();
    if all.is_empty() { vec![base] } else { all }
}

/// What is wrong in a file, and how many programs it holds.
fn check(path: &Path) -> (Vec<String>, usize) {
    let whole = std::fs::read_to_string(path).expect("it is text");
    let base = base(&whole);
    let (mut wrong, mut programs) = (Vec::new(), 0);
    for line in whole.lines().filter_map(|line| line.strip_prefix("//@ ")) {
        let Some((case, text)) = Case::read(line).and_then(|case| case.text(&base).map(|text| (case, text))) else {
            wrong.push(format!("{}: {line}: no case, or it changes nothing", path.display()));
            continue;
        };
        programs += 1;
        let report = verify_ptx(&text);
        let found = codes(&report);
        let bounded = |bounds: &Vec<&str>| {
            bounds.len() == report.loops.len() && report.loops.iter().zip(bounds).all(|(found, said)| is_bounded(&found.verdict, said))
        };
        let is_right = match case.code {
            None => report.holds() && found.is_empty() && case.bounds.as_ref().is_none_or(bounded),
            Some(code) => found.contains(code) && !report.holds(),
        };
        if !is_right {
            wrong.push(format!("{}: {line}: {found:?}, {:#?}", path.display(), report.loops));
        }
    }
    (wrong, programs)
}

/// All files of a folder.
fn check_all(folder: &str, least: usize) {
    let files = std::fs::read_dir(workspace().join("tests/data/ptx").join(folder)).expect("the folder is there");
    let mut files: Vec<_> = files.map(|entry| entry.expect("it can be read").path()).collect();
    files.sort();
    let (wrong, programs): (Vec<_>, Vec<_>) = files.iter().map(|path| check(path)).unzip();
    let (wrong, programs) = (wrong.concat(), programs.iter().sum::<usize>());
    assert_eq!(wrong, Vec::<String>::new());
    assert!(programs >= least, "only {programs} programs are left");
}

/// PTX that once passed though it may run far too long, or that no test told from its sound twin.
#[test]
fn each_attack_is_found_and_its_sound_twin_holds() {
    check_all("attacks", 440);
}

/// PTX that compilers write, by the rule of the proof that it needs, each with twins that can run for ever.
#[test]
fn each_rule_proves_what_it_is_for_and_none_of_its_twins() {
    check_all("proof", 575);
}

#[test]
fn a_line_is_read_with_all_its_changes() {
    let case = Case::read("fails CI050 with `a` -> `b\\n`, `c` -> ``: for a reason").expect("it is a case");
    assert_eq!((case.code, &case.bounds), (Some("CI050"), &None));
    assert_eq!(case.changes, [("a".to_owned(), "b\n".to_owned()), ("c".to_owned(), String::new())]);
    assert_eq!(case.text("ac"), Some("b\n".to_owned()));
    assert_eq!(case.text("a"), None);
    let case = Case::read("holds (10 rounds, at most 64 rounds, the clock)").expect("it is a case");
    let bounds = case.bounds.expect("they are said");
    let rounds = |rounds| Verdict::Bounded { by: Bound::Rounds(rounds) };
    assert_eq!([10, 11].map(|number| is_bounded(&rounds(number), bounds[0])), [true, false]);
    assert_eq!([1, 64, 65].map(|number| is_bounded(&rounds(number), bounds[1])), [true, true, false]);
    assert!(is_bounded(&Verdict::Bounded { by: Bound::Clock }, bounds[2]) && !is_bounded(&Verdict::TrapOnly, bounds[2]));
    assert!(Case::read("perhaps").is_none() && Case::read("holds with `a`").is_none());
}
