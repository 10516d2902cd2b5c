//! Brief nests: those whose loops run few times where the numbers they depend on lie near zero, as `for (dy = -r; dy <= r; ++dy) for (dx = -r; dx <= r; ++dx)`
//! with an `r` of three. What polls cost there is more than the nest. So it stands twice: as the user wrote it, behind a test of these numbers, and with
//! polls.

use super::{Placer, alone::MOST_ALONE, before_label, weights};
use crate::polls::emit;
use crate::polls::find::NONE;
use crate::polls::find::bounded::Pins;
use crate::polls::find::counted::Context;
use cuinstr_ptx::{Flow, Kind, Span, tokens};

/// Most statements by weight that a nest runs for without a poll.
const MOST_BRIEF: u64 = 4 * MOST_ALONE;

/// Most statements of a nest that is written twice.
const MOST_COPIED: u32 = 256;

/// How far from zero the numbers may lie, at most: the farthest is taken with which the nest is brief.
const REACHES: [i64; 9] = [32, 16, 8, 7, 6, 5, 4, 3, 2];

/// A nest that can be written twice.
struct Nest {
    /// Its loops, the outer one first.
    loops: Vec<u32>,
    /// Its statements.
    first: u32,
    end: u32,
}

impl<'a> Placer<'_, 'a> {
    /// Writes those nests twice that are in no other loop.
    pub(super) fn brief_nests(&mut self) {
        if self.module.counts_all() {
            return;
        }
        let loops = &self.context.loops.all;
        let mut nests: Vec<u32> =
            loops.iter().map(|one| one.outer).filter(|outer| *outer != NONE && loops[*outer as usize].outer == NONE).collect();
        nests.sort_unstable();
        nests.dedup();
        let (mut weights, mut trips) = (None, vec![None; loops.len()]);
        for nest in nests.into_iter().filter_map(|outer| self.copied(outer)).collect::<Vec<_>>() {
            let weights = weights.get_or_insert_with(|| weights::statements(&self.context, self.repeats));
            if let Some(pins) = REACHES.into_iter().find_map(|most| self.pins(&nest, most, weights, &mut trips)) {
                self.brief(&nest, &pins);
            }
        }
    }

    /// A nest whose statements stand together, and control falls into the first of them.
    fn copied(&self, outer: u32) -> Option<Nest> {
        let Context { function, graph, loops, .. } = self.context;
        let one = &loops.all[outer as usize];
        let last =
            (one.header..graph.blocks.len() as u32).take(MOST_COPIED as usize).take_while(|block| loops.holds(outer, *block)).last()?;
        let blocks = one.header..=last;
        let (first, end) = (graph.blocks[one.header as usize].first, graph.blocks[last as usize].end);
        if end - first > MOST_COPIED {
            return None;
        }
        // What leads into one of its blocks lies in the nest, but for the header.
        let mut sources = blocks.clone().skip(1).flat_map(|block| graph.sources(block)).chain(one.latches.iter().copied());
        let is_whole = sources.all(|source| blocks.contains(&source) || !loops.is_reached(source));
        let statements = &function.statements[first as usize..end as usize];
        let scope = statements[0].scope;
        let is_plain = statements.iter().all(|one| one.scope == scope && matches!(one.flow, Flow::Next | Flow::Branch));
        let text = before_label(function, first)..statements.last()?.end;
        let (registers, variables) = (&function.registers, &function.variables);
        let declared = registers.get(registers.partition_point(|declared| declared.at < text.start)).map(|declared| declared.at);
        let variable = variables.get(variables.partition_point(|declared| declared.at < text.start)).map(|declared| declared.at);
        let is_bare = ![declared, variable].into_iter().flatten().any(|at| text.contains(&at));
        // A branch to a return asks there, which a copy of it would not.
        let returns = blocks.clone().flat_map(|block| graph.edges(block)).any(|edge| {
            let first = graph.blocks[edge.to as usize].first as usize;
            edge.to != last + 1 && matches!(function.statements[first].flow, Flow::Return | Flow::End)
        });
        let before = one.header.checked_sub(1).filter(|before| loops.is_reached(*before))?;
        let falls_in = graph.edges(before).any(|edge| edge.to == one.header && edge.when != Some(true));
        // In the copy, a cycle with several ways in would have no poll, and what leads into one would not lead through its header.
        let mut entries = loops.irreducible.iter().flat_map(|one| &one.entries);
        let is_entered = entries.any(|entry| entry.sources.iter().chain([&entry.block]).any(|block| blocks.contains(block)));
        let mut inside: Vec<u32> = blocks.map(|block| loops.innermost(block)).collect();
        inside.sort_unstable();
        inside.dedup();
        (is_whole && is_plain && is_bare && !returns && !is_entered && falls_in).then_some(Nest { loops: inside, first, end })
    }

    /// What must lie within `most` from zero for a nest to be brief. `trips` holds nothing before and after.
    fn pins(&self, nest: &Nest, most: i64, weights: &[u32], trips: &mut [Option<u64>]) -> Option<Pins> {
        let pins = Pins::new(nest.loops[0], most);
        let context = Context { pins: Some(&pins), ..self.context };
        let (mut all, mut together): (u64, Vec<u64>) = (0, Vec::with_capacity(nest.loops.len()));
        for number in &nest.loops {
            let one = &context.loops.all[*number as usize];
            let around = nest.loops[..together.len()].iter().position(|outer| *outer == one.outer).map_or(1, |outer| together[outer]);
            let test = self.test(*number).filter(|_| one.is_natural);
            let found = test.and_then(|test| context.most_trips(*number, test.block, test.taken, trips));
            trips[*number as usize] = found;
            let times = found.map_or(u64::MAX, |found| around.saturating_mul(found));
            together.push(times);
            all = all.saturating_add(times.saturating_mul(weights[*number as usize].max(1).into()));
        }
        for number in &nest.loops {
            trips[*number as usize] = None;
        }
        (all <= MOST_BRIEF && !pins.writers().is_empty()).then_some(pins)
    }

    fn brief(&mut self, &Nest { first, end, .. }: &Nest, pins: &Pins) {
        let Context { function, declared, .. } = self.context;
        let names: Option<Vec<&'a str>> = pins.writers().into_iter().map(|writer| self.written(writer)).collect();
        let Some(names) = names.filter(|names| names.iter().all(|name| declared.means_one(function, name, first))) else { return };
        let number = self.new_number();
        let at = before_label(function, first);
        // Up to the semicolon, and with it.
        let behind = function.statements[end as usize - 1].end + 1;
        let text = Span { start: at, end: behind }.of(self.module.text);
        let labels: Vec<&str> =
            function.labels.iter().filter(|label| (first..end).contains(&label.statement)).map(|label| label.name).collect();
        let mut copy = String::with_capacity(text.len() + 16 * labels.len());
        for token in tokens(text) {
            let word = token.span.of(text);
            let label = if token.kind == Kind::Word { labels.iter().position(|label| *label == word) } else { None };
            match label {
                Some(nth) => copy.push_str(&emit::brief_label(number, nth)),
                None => copy.push_str(word),
            }
        }
        emit::brief(&mut self.edits.at(at), number, &names, pins.most, &copy);
        emit::behind_brief(&mut self.edits.at(behind), number);
    }

    /// The register that a statement writes, as it is spelled.
    fn written(&self, statement: u32) -> Option<&'a str> {
        let at = self.context.function.statements[statement as usize];
        let text = Span { start: at.opcode, end: at.end }.of(self.module.text);
        let mut words = tokens(text).filter(|token| !matches!(token.kind, Kind::Blank | Kind::Comment | Kind::Dotted)).skip(1);
        words.next().filter(|token| token.kind == Kind::Word).map(|token| token.span.of(text))
    }
}
