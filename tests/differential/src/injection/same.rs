//! Changes of a text that change nothing: its gaps and comments, its names, its spellings, its scopes.

use super::dress::{Dress, gap, number};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::random::Random;
use cuinstr_ptx as ptx;
use cuinstr_ptx::{Flow, Function, Kind};
use std::collections::{HashMap, HashSet};

/// How likely each change is, in percent of the places where it may be made.
struct Rates {
    gaps: usize,
    zeros: usize,
    numbers: usize,
    scopes: usize,
    names: usize,
}

/// The text, other in many places.
#[must_use]
pub fn change(text: &str, random: &mut Random) -> String {
    let text = &swap_declarations(text, random);
    let module = ptx::parse(text);
    let mut rate = |most: usize| if random.percent(50) { random.below(most) } else { 0 };
    let rates = Rates { gaps: rate(40), zeros: rate(60), numbers: rate(60), scopes: rate(15), names: rate(100) };
    // ptxas looks for `.version` before it reads comments of every form.
    let mut at = module.target.map_or(0, |target| target.end as usize);
    let mut changed = text[..at].to_owned();
    for function in &module.functions {
        outside(&text[at..function.body.start as usize], &rates, random, &mut changed);
        body(text, function, &rates, random, &mut changed);
        at = function.body.end as usize;
    }
    outside(&text[at..], &rates, random, &mut changed);
    changed
}

/// Changes gaps only.
fn outside(text: &str, rates: &Rates, random: &mut Random, changed: &mut String) {
    for token in ptx::tokens(text) {
        match token.kind {
            Kind::Blank | Kind::Comment if random.percent(rates.gaps) => other_gap(random, changed),
            _ => changed.push_str(token.span.of(text)),
        }
    }
}

/// Another gap in the place of one, which may have ended a comment.
fn other_gap(random: &mut Random, changed: &mut String) {
    let line = changed.rfind('\n').map_or(0, |at| at + 1);
    if changed[line..].contains("//") {
        changed.push('\n');
    }
    changed.push_str(gap(random, Dress::Odd));
}

fn body(text: &str, function: &Function<'_>, rates: &Rates, random: &mut Random, changed: &mut String) {
    let names = renamed(function, rates, random);
    let ranges: HashSet<&str> =
        function.registers.iter().filter(|declared| declared.count.is_some()).map(|declared| declared.name).collect();
    let scopes = split_scopes(function, rates, random);
    let is_statement = |at: u32| {
        let after = function.statements.partition_point(|statement| statement.opcode <= at);
        after > 0 && at < function.statements[after - 1].end
    };
    let mut previous = "";
    for token in ptx::tokens(function.body.of(text)) {
        let at = token.span.start + function.body.start;
        let word = token.span.of(function.body.of(text));
        if scopes.contains(&at) && token.kind != Kind::Mark(b';') {
            changed.push_str("{ ");
        }
        let (stem, digits) = word.split_at(word.trim_end_matches(|letter: char| letter.is_ascii_digit()).len());
        match token.kind {
            Kind::Blank | Kind::Comment if random.percent(rates.gaps) => other_gap(random, changed),
            Kind::Word if names.contains_key(word) => changed.push_str(&names[word]),
            Kind::Word if ranges.contains(stem) && !digits.is_empty() => {
                changed.push_str(names.get(stem).map_or(stem, String::as_str));
                if random.percent(rates.zeros) {
                    changed.push_str(&"00"[random.below(2)..]);
                }
                changed.push_str(digits);
            }
            Kind::Number if previous != "-" && is_statement(at) && random.percent(rates.numbers) => match word.parse::<u32>() {
                Ok(value) => changed.push_str(&number(value, random)),
                Err(_) => changed.push_str(word),
            },
            _ => changed.push_str(word),
        }
        if scopes.contains(&at) && token.kind == Kind::Mark(b';') {
            changed.push_str(" }");
        }
        if !matches!(token.kind, Kind::Blank | Kind::Comment) {
            previous = word;
        }
    }
}

/// New names of labels, tables and registers.
fn renamed<'a>(function: &Function<'a>, rates: &Rates, random: &mut Random) -> HashMap<&'a str, String> {
    let labels = function.labels.iter().map(|label| label.name).chain(function.tables.iter().map(|table| table.name));
    let registers = function.registers.iter().map(|declared| declared.name);
    let mut all: Vec<&str> = labels.chain(registers).collect();
    all.sort_unstable();
    all.dedup();
    let mut names = HashMap::new();
    for (at, name) in all.into_iter().enumerate() {
        if random.percent(rates.names) {
            // The letter behind the number keeps one range from meeting another.
            let stem = random.of(&["%zz", "$L__BB", "zz_", "%r_", "_"]);
            names.insert(name, format!("{stem}{at}x"));
        }
    }
    names
}

/// Offsets where a statement that gets a scope of its own begins, and of its semicolon.
fn split_scopes(function: &Function<'_>, rates: &Rates, random: &mut Random) -> HashSet<u32> {
    let calls: HashSet<u32> =
        function.variables.iter().filter(|variable| variable.space == ".param").map(|variable| variable.scope).collect();
    let mut found = HashSet::new();
    for statement in &function.statements {
        let is_whole = statement.opcode < statement.end && statement.flow != Flow::Call && !calls.contains(&statement.scope);
        if is_whole && random.percent(rates.scopes) {
            found.insert(statement.start);
            found.insert(statement.end);
        }
    }
    found
}

/// Swaps lines with declarations of registers that stand beside each other.
fn swap_declarations(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    for at in 1..lines.len() {
        let is_one = |line: &str| line.trim_start().starts_with(".reg ") && line.trim_end().ends_with(';');
        if is_one(lines[at - 1]) && is_one(lines[at]) && random.percent(30) {
            lines.swap(at - 1, at);
        }
    }
    lines.concat()
}

/// Whether all holds, and what the proof says of each loop, by its function.
pub type Verdicts = (bool, Vec<(String, String)>);

/// What the proof says of a text.
#[must_use]
pub fn verdicts(text: &str) -> Verdicts {
    let report = verify_ptx(text);
    let loops = report.loops.iter().map(|found| (found.function.clone(), found.verdict.text())).collect();
    (report.holds(), loops)
}
