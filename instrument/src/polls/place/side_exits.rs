//! Ways out of a loop in front of its test.

use super::{Placer, Test};
use crate::polls::emit;
use crate::polls::find::counted::Counted;
use cuinstr_ptx::Flow;

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
                && loops.innermost(*block) == number
                && loops.dominates(*block, test.block)
                && last.flow == Flow::Branch
                && leads(true, false)
                && leads(false, true)
        };
        (0..graph.blocks.len() as u32).filter(is_one).collect()
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
            // A branch to a return asks there, and one into a cycle with several ways in is led to its header.
            let returns = self.context.graph.edges(block).any(|edge| {
                if self.context.loops.enters_irreducible(edge.to) {
                    return true;
                }
                let first = self.context.graph.blocks[edge.to as usize].first as usize;
                matches!(function.statements[first].flow, Flow::Return | Flow::End)
            });
            if is_own && !returns && statement.scope == scope && declared.means_one(function, predicate, header) {
                ways.push(statement);
            }
        }
        if ways.is_empty() {
            return;
        }
        for (way, nth) in ways.iter().zip(0..) {
            let guard = &self.module.text[way.start as usize..way.opcode as usize];
            emit::leaves(&mut self.edits.at(way.start), (name, nth), guard.trim());
            emit::stays(&mut self.edits.at(way.end + 1), (name, nth));
        }
        let branches = ways.iter().map(|way| &self.module.text[way.start as usize..way.end as usize]);
        emit::ways_out(&mut self.edits.at(behind), name, branches);
    }
}
