//! Makes a failing program smaller, a statement at a time, as long as it still fails.

use super::batch::Workshop;
use super::check::{self, Failure};
use super::lane::Lane;
use super::program::{Item, Program};

/// Most programs that are tried.
const MOST_TRIES: usize = 400;

/// What is left of a program that still fails in one of the lanes, and how it does.
#[must_use]
pub fn reduce(workshop: &Workshop, program: &Program, lanes: &[Lane], sets: u32) -> Option<(Program, Failure)> {
    let fails =
        |program: &Program| check::compare(workshop, &[program], lanes, sets).failures.into_iter().find(|failure| failure.lane.is_some());
    Some(smaller(program.clone(), fails(program)?, fails))
}

fn smaller(mut best: Program, mut failure: Failure, fails: impl Fn(&Program) -> Option<Failure>) -> (Program, Failure) {
    let mut tries = 0;
    loop {
        let mut again = false;
        let mut at = 0;
        while at < count(&best.items) && tries < MOST_TRIES {
            let found = [Cut::Drop, Cut::Unwrap].into_iter().find_map(|cut| {
                let mut candidate = best.clone();
                candidate.items = cut_at(&candidate.items, &mut { at }, cut)?;
                tries += 1;
                fails(&candidate).map(|failure| (candidate, failure))
            });
            match found {
                Some((candidate, why)) => {
                    (best, failure, again) = (candidate, why, true);
                }
                None => at += 1,
            }
        }
        if !again || tries >= MOST_TRIES {
            return (best, failure);
        }
    }
}

/// What is done to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// It goes.
    Drop,
    /// What is inside stays.
    Unwrap,
}

fn count(items: &[Item]) -> usize {
    items
        .iter()
        .map(|item| match item {
            Item::Line(_) => 1,
            Item::Block { body, .. } => 1 + count(body),
        })
        .sum()
}

/// The items with the one at an index, outer ones first, cut; nothing if it can't be.
fn cut_at(items: &[Item], at: &mut usize, cut: Cut) -> Option<Vec<Item>> {
    let mut kept = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let rest = |kept: &mut Vec<Item>| kept.extend_from_slice(&items[index + 1..]);
        if *at == 0 {
            match (cut, item) {
                (Cut::Drop, _) => {}
                (Cut::Unwrap, Item::Block { body, .. }) => kept.extend_from_slice(body),
                (Cut::Unwrap, Item::Line(_)) => return None,
            }
            rest(&mut kept);
            return Some(kept);
        }
        *at -= 1;
        match item {
            Item::Block { head, body, tail } if *at < count(body) => {
                let body = cut_at(body, at, cut)?;
                kept.push(Item::Block { head: head.clone(), body, tail: tail.clone() });
                rest(&mut kept);
                return Some(kept);
            }
            Item::Block { body, .. } => *at -= count(body),
            Item::Line(_) => {}
        }
        kept.push(item.clone());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::program::Mode;
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let line = |text: &str| Item::Line(text.to_owned());
        let block = |head: &str, body: Vec<Item>| Item::Block { head: head.to_owned(), body, tail: "}".to_owned() };
        let inner = block("while (1) {", vec![line("a;"), line("bug;"), line("b;")]);
        let items =
            vec![line("int x;"), block("void f() {", vec![]), block("void k() {", vec![line("c;"), block("if (x) {", vec![inner])])];
        let program = Program { seed: 1, items, budget: 1, sites: 0, single: true, macros: Vec::new() };
        let fails = |program: &Program| {
            let text = program.text(Mode::Plain);
            (text.contains("bug;") && text.contains("void k")).then(|| Failure { seed: Some(1), lane: None, why: String::new() })
        };
        let (reduced, _) = smaller(program.clone(), fails(&program).expect("it fails"), fails);
        assert_eq!(reduced.text(Mode::Plain), "void k() {\n  bug;\n}\n");
    }
}
