//! Ways out of a loop in front of its test.

use super::{Placer, Test};
use crate::polls::emit;
use crate::polls::find::counted::Counted;
use cuinstr_ptx::{Flow, Operand, Register, Span};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

impl<'a> Placer<'_, 'a> {
    /// The blocks of a loop that each iteration comes by, and that end with a branch out of it.
    fn side_exits(&self, number: u32, test: Test<'_>) -> Vec<u32> {
        let (graph, loops, function) = (self.context.graph, self.context.loops, self.context.function);
        let is_one = |block: &u32| {
            let last = function.statements[self.last(*block) as usize];
            let leads = |when: bool, inside: bool| {
                graph.edges(*block).any(|edge| edge.when == Some(when) && loops.holds(number, edge.to) == inside)
            };
            *block != test.block
                && loops.dominates(*block, test.block)
                && last.flow == Flow::Branch
                && leads(true, false)
                && leads(false, true)
        };
        loops.members(number).iter().copied().filter(is_one).collect()
    }

    /// The trips of a loop that a way out in front of its test counts.
    pub(super) fn counted_elsewhere(&self, number: u32, test: Test<'_>) -> Option<Counted<'a>> {
        let mut counted = self.side_exits(number, test).into_iter().filter_map(|block| self.context.counted(number, block, false));
        counted.find(|counted| counted.tested == Some(counted.variable))
    }

    /// Has the ways out lead to the end of a strip first. From one place ptxas lets the threads of a warp go on together. Where some
    /// leave for good in the hot loop, it puts `BREAK` in front of each way out.
    pub(super) fn come_out(&mut self, number: u32, name: u32, test: Test<'_>) {
        let (function, declared) = (self.context.function, self.context.declared);
        let behind = self.start_of(self.last(test.block));
        let header = self.context.graph.blocks[self.context.loops.all[number as usize].header as usize].first;
        let scope = function.statements[self.last(test.block) as usize].scope;
        let mut ways = Vec::new();
        for block in self.side_exits(number, test) {
            let last = self.last(block);
            let statement = function.statements[last as usize];
            let Some((predicate, _)) = self.predicate(block) else { continue };
            // Behind the last iteration of a strip the predicate must say that the loop goes on.
            let is_own = self.context.code.guard(last).and_then(|(register, _)| register).is_some_and(|register| {
                let mut writers = self.context.writers.of(register);
                let is_written = |writer: u32| {
                    let at = self.context.block_of(writer);
                    !function.statements[writer as usize].guarded
                        && self.context.loops.innermost(at) == number
                        && self.context.loops.dominates(at, block)
                };
                writers.next().is_some_and(is_written) && writers.next().is_none()
            });
            // Other edits put something in front of such a branch: one to a return asks there. One into a cycle with several ways in is led to the
            // cycle's header. One that begins the next iteration of a loop around this one polls.
            let has_polls = self.context.graph.edges(block).any(|edge| {
                let loops = self.context.loops;
                let is_around = |outer| outer != number && loops.holds(outer, block);
                if loops.enters_irreducible(edge.to).0 || loops.of_header(edge.to).is_some_and(is_around) {
                    return true;
                }
                let first = self.context.graph.blocks[edge.to as usize].first as usize;
                matches!(function.statements[first].flow, Flow::Return | Flow::End)
            });
            if is_own && !has_polls && statement.scope == scope && declared.means_one(function, predicate, header) {
                ways.push(block);
            }
        }
        if ways.is_empty() {
            return;
        }
        // As an iteration comes by them: a predicate says nothing before.
        ways.sort_by(|one, other| if self.context.loops.dominates(*one, *other) { Ordering::Less } else { Ordering::Greater });
        for (way, nth) in ways.iter().zip(0..) {
            let branch = function.statements[self.last(*way) as usize];
            let guard = self.guard(*way);
            emit::leaves(&mut self.edits.at(branch.start), (name, nth), &guard);
            emit::stays(&mut self.edits.at(branch.end + 1), (name, nth));
        }
        let again = self.ways_out(name, test, &ways);
        emit::strip_ends(&mut self.edits.at(behind), name, &again);
    }

    /// The `ways` out once more, for where strips end. A compiler that gives a register its value behind the loop does so in front of each
    /// way out. With all of these moves once more here, ptxas leaves them out of the hot loop.
    fn ways_out(&self, name: u32, test: Test<'_>, ways: &[u32]) -> String {
        let spelled = |from: u32, statement: u32| {
            Span { start: from, end: self.context.function.statements[statement as usize].end }.of(self.module.text)
        };
        let in_front_of_test = self.moves(test.block);
        let (mut out, mut behind) = (String::new(), BTreeMap::new());
        for (way, nth) in ways.iter().zip(0..) {
            let branch = self.last(*way);
            let moves = self.moves(*way);
            let twin = |(_, to): &(u32, Register)| in_front_of_test.iter().find(|(_, other)| other == to).copied();
            let twins: Option<Vec<_>> = moves.iter().map(twin).collect();
            match (twins, self.predicate(*way)) {
                (Some(twins), Some((predicate, leaves_if))) if !twins.is_empty() => {
                    behind.extend(twins);
                    let moves = moves.iter().map(|(statement, _)| spelled(self.start_of(*statement), *statement));
                    let leaves = spelled(self.context.function.statements[branch as usize].opcode, branch);
                    emit::way_out(&mut out, (name, nth), (predicate, leaves_if), moves.chain([leaves]));
                }
                _ => out.extend([spelled(self.start_of(branch), branch), ";\n\t"]),
            }
        }
        for statement in behind.into_keys() {
            out.extend([spelled(self.start_of(statement), statement), ";\n\t"]);
        }
        out
    }

    /// The `mov`s directly in front of a block's last statement, and what they write. None if one writes what another reads or writes: all may
    /// be made again behind that statement.
    fn moves(&self, block: u32) -> Vec<(u32, Register)> {
        let (code, function) = (self.context.code, self.context.function);
        let last = self.last(block);
        let scope = function.statements[last as usize].scope;
        let mut moves = Vec::new();
        let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
        for statement in (self.context.graph.blocks[block as usize].first..last).rev() {
            let at = function.statements[statement as usize];
            let is_move = code.opcode(statement).starts_with("mov.") && !at.guarded && at.scope == scope;
            let (to, from) = match *code.operands(statement) {
                [Operand::Register(to), from @ (Operand::Register(_) | Operand::Integer(_) | Operand::Constant)] if is_move => (to, from),
                _ => break,
            };
            if let Operand::Register(from) = from {
                reads.insert(from);
            }
            if !writes.insert(to) {
                return Vec::new();
            }
            moves.push((statement, to));
        }
        moves.reverse();
        if reads.is_disjoint(&writes) { moves } else { Vec::new() }
    }
}
