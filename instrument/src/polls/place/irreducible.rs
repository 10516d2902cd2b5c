//! Cycles with several ways in. ptxas may count in such a cycle with what a warp has once, as if its threads went round together. Those that came in
//! by different ways do not. So all ways in lead through one place, and the cycle is a natural loop, which polls there.

use super::{Placer, Site, before_label, site_id};
use crate::polls::emit::Place;
use crate::polls::emit::irreducible as emit;
use crate::polls::find::Irreducible;
use cuinstr_abi::sites::Form;
use cuinstr_ptx::{Flow, Kind, TableKind, Target, tokens, unsigned};
use std::collections::BTreeMap;

/// The logarithm of what a way from entry to entry weighs at least, in units: what lies on it is not counted, and may set up loops.
pub(super) const LEAST: u32 = 2;

/// A way into such a cycle: from a block outside, to the label that stands for the block.
struct WayIn {
    source: u32,
    to: u32,
    label: String,
}

/// What leads into the cycles.
#[derive(Default)]
pub(super) struct WaysIn {
    all: Vec<WayIn>,
    /// Numbers of labels behind branches with guards, by the branch.
    behind: BTreeMap<u32, u32>,
}

impl Placer<'_, '_> {
    /// Gives each of them a header. Tells of each loop whether it needs no other poll.
    pub(super) fn join(&mut self, weights: &[Option<u32>]) -> (WaysIn, Vec<bool>) {
        let loops = self.context.loops;
        let (mut ways, mut has_poll) = (WaysIn::default(), vec![false; loops.all.len()]);
        for one in &loops.irreducible {
            let header = loops.of_header(one.entries[0].block);
            let number = header.and_then(|header| self.header(one, weights[header as usize]));
            let Some(number) = number else {
                self.polled.not_joined.push(self.first(one.entries[0].block));
                continue;
            };
            for (entry, nth) in one.entries.iter().zip(0..) {
                let label = emit::outside(number, nth);
                if entry.block == 0 {
                    self.polled.enters = emit::begins(&label);
                }
                for &source in &entry.sources {
                    let last = self.last(source);
                    let statement = self.context.function.statements[last as usize];
                    if statement.guarded && self.jumps(source, entry.block) && !ways.behind.contains_key(&last) {
                        let number = self.new_number();
                        emit::skipped(&mut self.edits.at(statement.end + 1), number);
                        ways.behind.insert(last, number);
                    }
                    ways.all.push(WayIn { source, to: entry.block, label: label.clone() });
                }
            }
            // A natural loop within has its own poll still.
            for number in one.entries.iter().filter_map(|entry| loops.of_header(entry.block)) {
                has_poll[number as usize] |= !loops.all[number as usize].is_natural;
            }
        }
        (ways, has_poll)
    }

    fn first(&self, block: u32) -> u32 {
        self.context.graph.blocks[block as usize].first
    }

    /// Puts a header into a cycle, and gives its number. None if the entries' labels are not seen from one place.
    fn header(&mut self, one: &Irreducible, weight: Option<u32>) -> Option<u32> {
        let labels: Option<Vec<(u32, u32)>> = one.entries.iter().map(|entry| self.last_label(self.first(entry.block))).collect();
        let labels = labels.filter(|labels| labels.iter().all(|(_, scope)| *scope == labels[0].1))?;
        let statement = self.first(one.entries[0].block);
        let at = self.start_of(statement);
        let place = Place {
            site: site_id(self.module.hash, at, self.way.traps),
            weight: weight.map_or(0, |weight| weight.max(LEAST)),
            poll: self.poll,
        };
        let (number, over, count) = (self.new_number(), self.new_number(), labels.len() as u32);
        self.polled.front.push_str(&emit::declare(number));
        let mut out = self.edits.at(labels[0].0);
        emit::again(&mut out, number, count);
        let form = if weight.is_some() {
            place.count_here(&mut out, over);
            self.has_allowance = true;
            Form::CountDown
        } else {
            place.poll.each(&mut out, place.site);
            Form::Each
        };
        emit::joins(&mut out, number, count);
        for (((behind, _), entry), nth) in labels.iter().zip(&one.entries).zip(0..).skip(1) {
            emit::enters(&mut self.edits.at(*behind), number, nth, entry.repeats);
        }
        self.polled.sites.push(Site { id: place.site, at, statement, form, is_loop: true });
        Some(number)
    }

    /// Whether a block's last statement jumps to another block.
    fn jumps(&self, from: u32, to: u32) -> bool {
        let flow = self.context.function.statements[self.last(from) as usize].flow;
        let jumps = matches!(flow, Flow::Branch | Flow::Table);
        jumps && self.context.graph.edges_to(from, to).any(|edge| edge.when != Some(false))
    }

    /// Has what leads into these cycles from outside lead to their headers.
    pub(super) fn lead_in(&mut self, ways: &WaysIn) {
        let mut tables: BTreeMap<u32, Vec<&WayIn>> = BTreeMap::new();
        for way in &ways.all {
            let last = self.last(way.source);
            let statement = self.context.function.statements[last as usize];
            let jumps = self.jumps(way.source, way.to);
            if !jumps || self.context.graph.edges_to(way.source, way.to).any(|edge| edge.when == Some(false)) {
                emit::leads(&mut self.edits.at(before_label(self.context.function, self.first(way.to))), "", &way.label);
            }
            if jumps && statement.flow == Flow::Table {
                tables.entry(last).or_default().push(way);
            } else if jumps {
                let guard = self.guard(way.source);
                let mut out = self.edits.at(statement.start);
                emit::leads(&mut out, &guard, &way.label);
                emit::skips(&mut out, ways.behind.get(&last).copied());
            }
        }
        for (last, tabled) in tables {
            self.lead_by_table(last, &tabled, ways.behind.get(&last).copied());
        }
    }

    fn lead_by_table(&mut self, last: u32, ways: &[&WayIn], behind: Option<u32>) {
        let (function, graph) = (self.context.function, self.context.graph);
        let statement = function.statements[last as usize];
        let Some(table) = graph.table_of(graph.block_of(last)).map(|table| &function.tables[table as usize]) else { return };
        let TableKind::Branches(targets) = &table.kind else { return };
        let names = listed(table.span.of(self.module.text));
        let mut to: BTreeMap<u32, &str> = BTreeMap::new();
        for way in ways {
            to.entry(self.first(way.to)).or_insert(&way.label);
        }
        let labels: Vec<&str> = names
            .iter()
            .zip(targets)
            .map(|(name, target)| match target {
                Target::Statement(first) => to.get(first).copied().unwrap_or(name),
                _ => name,
            })
            .collect();
        // Up to the table's name, which stands last.
        let branch = statement.span().of(self.module.text);
        let name = tokens(branch).filter(|token| token.kind == Kind::Word).last().map_or(0, |token| token.span.start as usize);
        let number = self.new_number();
        // Its names are looked up where the user's table stands.
        let at = if table.scope == statement.scope { statement.start } else { table.span.start };
        emit::table(&mut self.edits.at(at), number, &labels);
        let mut out = self.edits.at(statement.start);
        emit::leads_by_table(&mut out, number, &branch[..name]);
        emit::skips(&mut out, behind);
    }
}

/// The labels of a table as `T: .branchtargets A, B<2>` gives them: `A`, `B0`, `B1`.
fn listed(table: &str) -> Vec<String> {
    let mut words = tokens(table).filter(|token| matches!(token.kind, Kind::Word | Kind::Number)).skip(1).peekable();
    let mut labels = Vec::new();
    while let Some(name) = words.next() {
        let name = name.span.of(table);
        match words.next_if(|next| next.kind == Kind::Number) {
            Some(count) => labels.extend((0..unsigned(count.span.of(table)).unwrap_or(0)).map(|nth| format!("{name}{nth}"))),
            None => labels.push(name.to_owned()),
        }
    }
    labels
}
