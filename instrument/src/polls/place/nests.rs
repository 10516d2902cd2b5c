//! Brief nests: those whose loops run few times where the numbers they depend on lie near zero, as `for (dy = -r; dy <= r; ++dy) for (dx = -r; dx <= r; ++dx)`
//! with an `r` of three. What polls cost there is more than the nest. So it stands twice: as the user wrote it, behind a test of these numbers, and with
//! polls.

use super::copies::Copied;
use super::{Placer, alone::MOST_ALONE};
use crate::polls::emit;
use crate::polls::find::NONE;
use crate::polls::find::bounded::Pins;
use crate::polls::find::counted::Context;
use cuinstr_ptx::{Kind, Span, tokens};

/// Most statements by weight that a nest runs for without a poll.
const MOST_BRIEF: u64 = 4 * MOST_ALONE;

/// How far from zero the numbers may lie, at most: the farthest is taken with which the nest is brief.
const REACHES: [i64; 9] = [32, 16, 8, 7, 6, 5, 4, 3, 2];

impl<'a> Placer<'_, 'a> {
    /// Writes those nests twice that are in no other loop. `weights` are those of the loops' own statements.
    pub(super) fn brief_nests(&mut self, weights: &[u32]) {
        if self.module.counts_all() {
            return;
        }
        let loops = &self.context.loops.all;
        let mut nests: Vec<u32> =
            loops.iter().map(|one| one.outer).filter(|outer| *outer != NONE && loops[*outer as usize].outer == NONE).collect();
        // A cycle with several ways in would run it again and again, and it pays nothing.
        nests.retain(|nest| !self.context.loops.is_in_irreducible(loops[*nest as usize].header));
        nests.sort_unstable();
        nests.dedup();
        let mut trips = vec![None; loops.len()];
        for nest in nests.into_iter().filter_map(|outer| Copied::of(&self.context, outer)).collect::<Vec<_>>() {
            if let Some(pins) = REACHES.into_iter().find_map(|most| self.pins(&nest, most, weights, &mut trips)) {
                self.brief(&nest, &pins);
            }
        }
    }

    /// What must lie within `most` from zero for a nest to be brief. `trips` holds nothing before and after.
    fn pins(&self, nest: &Copied, most: i64, weights: &[u32], trips: &mut [Option<u64>]) -> Option<Pins> {
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

    fn brief(&mut self, nest: &Copied, pins: &Pins) {
        let Context { function, declared, .. } = self.context;
        let names: Option<Vec<&'a str>> = pins.writers().into_iter().map(|writer| self.written(writer)).collect();
        let Some(names) = names.filter(|names| names.iter().all(|name| declared.means_one(function, name, nest.first))) else { return };
        let number = self.new_number();
        let (at, behind) = nest.range(function);
        emit::copies::brief(&mut self.edits.at(at), number, &names, pins.most, &nest.copy(&self.context, number));
        emit::copies::behind_brief(&mut self.edits.at(behind), number);
    }

    /// The register that a statement writes, as it is spelled.
    fn written(&self, statement: u32) -> Option<&'a str> {
        let at = self.context.function.statements[statement as usize];
        let text = Span { start: at.opcode, end: at.end }.of(self.module.text);
        let mut words = tokens(text).filter(|token| !matches!(token.kind, Kind::Blank | Kind::Comment | Kind::Dotted)).skip(1);
        words.next().filter(|token| token.kind == Kind::Word).map(|token| token.span.of(text))
    }
}
