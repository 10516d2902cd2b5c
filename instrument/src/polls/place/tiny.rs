//! Tiny loops in other loops, whose trips can't be computed: `while (x < 0) x += m;`. To count their iterations would cost as much as they do. So the iterations
//! that are paid for at once stand one behind the other.

use super::copies::is_meeting;
use super::{Place, Placer, Test};
use crate::polls::emit;
use cuinstr_ptx::{Flow, Span};

/// Most statements of such a loop.
const TINY: u32 = 6;

impl<'a> Placer<'_, 'a> {
    /// Writes out so many iterations of a loop, of which some are paid for where it begins. False if it is none of these.
    pub(super) fn written_out(&mut self, number: u32, place: Place, behind: u32, test: Test<'a>, (iterations, paid): (u32, u32)) -> bool {
        let (function, graph, code) = (self.context.function, self.context.graph, self.context.code);
        let one = &self.context.loops.all[number as usize];
        let block = graph.blocks[test.block as usize];
        let last = block.end - 1;
        let is_one_block = one.header == test.block && self.context.loops.block_count(number) == 1 && test.taken;
        let scope = function.statements[last as usize].scope;
        // What leaves the loop would not find a label between other braces.
        let is_bare = self.last_label(block.first).is_some_and(|(_, label)| label == scope);
        let is_plain = |statement: u32| {
            let at = function.statements[statement as usize];
            let opcode = code.opcode(statement);
            // A division is many instructions.
            at.scope == scope && at.flow == Flow::Next && !is_meeting(opcode) && !opcode.starts_with("div.") && !opcode.starts_with("rem.")
        };
        if one.statements > TINY || !is_one_block || !is_bare || !(block.first..last).all(is_plain) {
            return false;
        }
        let statements = function.statements[block.first as usize..last as usize].iter();
        let body: Vec<&str> = statements.map(|at| Span { start: at.start, end: at.end }.of(self.module.text)).collect();
        let name = self.new_number();
        let leaves = (test.predicate, !test.goes_on_if);
        emit::copies::written_out(&mut self.edits.at(behind), name, &body, leaves, (iterations - 1, paid << place.weight));
        self.cold(number, place, name, test, Some(iterations - paid));
        emit::copies::behind_written_out(&mut self.edits.at(function.statements[last as usize].end + 1), name);
        true
    }
}
