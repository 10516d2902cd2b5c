//! Loops that stand twice: as the user wrote them, behind a test that they are brief, and with polls.

use super::before_label;
use crate::polls::emit;
use crate::polls::find::counted::Context;
use crate::polls::find::declared::is_float;
use cuinstr_ptx::{Edge, Flow, Function, Kind, Operand, Span, Statement, tokens};
use std::ops::Range;

/// Most statements of what is written twice.
const MOST_COPIED: u32 = 256;

/// A loop that can be written twice, with those in it.
pub(super) struct Copied {
    /// The loops, outer ones first.
    pub(super) loops: Vec<u32>,
    /// Their blocks.
    pub(super) blocks: Range<u32>,
    /// Their statements.
    pub(super) first: u32,
    end: u32,
}

impl Copied {
    /// A loop whose statements stand together, and control falls into the first of them.
    pub(super) fn of(context: &Context<'_, '_>, number: u32) -> Option<Self> {
        let Context { function, graph, loops, .. } = *context;
        let one = &loops.all[number as usize];
        let last =
            (one.header..graph.blocks.len() as u32).take(MOST_COPIED as usize).take_while(|block| loops.holds(number, *block)).last()?;
        let blocks = one.header..last + 1;
        let (first, end) = (graph.blocks[one.header as usize].first, graph.blocks[last as usize].end);
        if end - first > MOST_COPIED {
            return None;
        }
        let is_whole = loops.block_count(number) == blocks.len() as u32;
        let statements = &function.statements[first as usize..end as usize];
        let scope = statements[0].scope;
        let is_within = |mut inner: u32| {
            while function.scopes[inner as usize].depth > function.scopes[scope as usize].depth {
                inner = function.scopes[inner as usize].outer;
            }
            inner == scope
        };
        // A brace between a label and its statement would have its twin behind the text.
        let labels = &function.labels;
        let [from, to] = [first, end].map(|statement| labels.partition_point(|label| label.statement < statement));
        let is_plain = statements.iter().all(|one| is_within(one.scope) && matches!(one.flow, Flow::Next | Flow::Branch))
            && statements.last()?.scope == scope
            && labels[from..to].iter().all(|label| label.scope == scope);
        // Each thread decides which copy it runs. So those of a warp may part, and would meet at two places.
        let meets = (first..end).any(|statement| is_meeting(context.code.opcode(statement)));
        let text = before_label(function, first)..statements.last()?.end;
        let (registers, variables) = (&function.registers, &function.variables);
        let declared = registers.get(registers.partition_point(|declared| declared.at < text.start)).map(|declared| declared.at);
        let variable = variables.get(variables.partition_point(|declared| declared.at < text.start)).map(|declared| declared.at);
        // A table's name is a label that no branch names.
        let tables = &function.tables;
        let table = tables.get(tables.partition_point(|table| table.span.start < text.start)).map(|table| table.span.start);
        let is_bare = ![declared, variable, table].into_iter().flatten().any(|at| text.contains(&at));
        // A branch to a return asks there, which a copy of it would not.
        let returns = |edge: Edge| {
            let first = graph.blocks[edge.to as usize].first as usize;
            edge.to != last + 1 && matches!(function.statements[first].flow, Flow::Return | Flow::End)
        };
        let returns = is_plain && blocks.clone().flat_map(|block| graph.edges(block)).any(returns);
        let before = one.header.checked_sub(1).filter(|before| loops.is_reached(*before))?;
        let falls_in = graph.edges_to(before, one.header).any(|edge| edge.when != Some(true));
        // In the copy, a cycle with several ways in would have no poll, and what leads into one would not lead through its header.
        let is_entered = blocks.clone().any(|block| loops.enters_irreducible(block).1);
        let mut inside: Vec<u32> = blocks.clone().map(|block| loops.innermost(block)).collect();
        inside.sort_unstable();
        inside.dedup();
        (is_whole && is_plain && !meets && is_bare && !returns && !is_entered && falls_in).then_some(Self {
            loops: inside,
            blocks,
            first,
            end,
        })
    }

    /// Whether a way out of it leads to the next iteration of a loop around it: that would pass by what stands in front of the branch there.
    pub(super) fn leads_back(&self, context: &Context<'_, '_>) -> bool {
        let Context { graph, loops, .. } = context;
        let mut ways_out = self.blocks.clone().flat_map(|block| graph.edges(block)).filter(|edge| !self.blocks.contains(&edge.to));
        ways_out.any(|edge| {
            let around = loops.innermost(edge.to);
            loops.all.get(around as usize).is_some_and(|one| one.header == edge.to) && loops.holds(around, self.blocks.start)
        })
    }

    /// Whether control comes to its header from outside by falling in alone. A branch to it passes by what stands in front of it.
    pub(super) fn is_fallen_into(&self, context: &Context<'_, '_>) -> bool {
        let (graph, header) = (context.graph, self.blocks.start);
        let mut outside = graph.sources(header).filter(|from| !self.blocks.contains(from));
        outside.all(|from| from + 1 == header && graph.edges_to(from, header).all(|edge| edge.when != Some(true)))
    }

    /// Where its text begins, and where it ends: with its last semicolon.
    pub(super) fn range(&self, function: &Function<'_>) -> (u32, u32) {
        (before_label(function, self.first), function.statements[self.end as usize - 1].end + 1)
    }

    /// Its text once more, with labels of its own.
    pub(super) fn copy(&self, context: &Context<'_, '_>, number: u32) -> String {
        self.written(context, number, true)
    }

    /// The same, but branches to its header lead to where its iterations are counted.
    pub(super) fn first_iterations(&self, context: &Context<'_, '_>, number: u32) -> String {
        self.written(context, number, false)
    }

    fn written(&self, context: &Context<'_, '_>, number: u32, comes_back: bool) -> String {
        let (at, behind) = self.range(context.function);
        let text = Span { start: at, end: behind }.of(context.text);
        let labels = &context.function.labels;
        let [from, to] = [self.first, self.end].map(|statement| labels.partition_point(|label| label.statement < statement));
        let labels = &labels[from..to];
        // A label may be named like an opcode or a register, and is meant where it stands and where a branch names it.
        let targets = (self.first..self.end).filter_map(|statement| target(context.text, context.function.statements[statement as usize]));
        let mut named: Vec<u32> = labels.iter().map(|label| label.at).chain(targets).collect();
        named.sort_unstable();
        let retyped: Vec<u32> = (self.first..self.end).filter_map(|statement| unsigned_equality(context, statement)).collect();
        let mut copy = String::with_capacity(text.len() + 16 * labels.len());
        for token in tokens(text) {
            let word = token.span.of(text);
            if token.kind == Kind::Dotted && retyped.binary_search(&(at + token.span.start)).is_ok() {
                copy.push_str(if word.ends_with("64") { ".s64" } else { ".s32" });
                continue;
            }
            let is_label = token.kind == Kind::Word && named.binary_search(&(at + token.span.start)).is_ok();
            let is_back = |nth: usize| !comes_back && labels[nth].statement == self.first && labels[nth].at != at + token.span.start;
            match labels.iter().position(|label| label.name == word).filter(|_| is_label) {
                Some(nth) if is_back(nth) => copy.push_str(&emit::copies::again_label(number)),
                Some(nth) => copy.push_str(&emit::copies::brief_label(number, nth)),
                None => copy.push_str(word),
            }
        }
        copy
    }
}

/// Where a comparison that asks for equality without a sign names its type. A loop with no other way out that counts towards that, ptxas 13.0 unrolls
/// as if there were one: it may pass its end, and a copy does not poll. What compares the bits of floats stays: no integer's comparison takes them.
fn unsigned_equality(context: &Context<'_, '_>, statement: u32) -> Option<u32> {
    let rest = context.code.opcode(statement).strip_prefix("setp.")?;
    let kind = rest.strip_prefix("eq.").or(rest.strip_prefix("ne."))?;
    if !matches!(kind, "u32" | "b32" | "u64" | "b64") {
        return None;
    }
    let is_integer = |operand: &Operand| match operand {
        Operand::Register(register) => !context.code.declaration(*register).is_some_and(is_float),
        other => other.number().is_some(),
    };
    if !context.code.operands(statement).iter().skip(1).all(is_integer) {
        return None;
    }
    let at = context.function.statements[statement as usize];
    let text = Span { start: at.opcode, end: at.end }.of(context.text);
    let named = tokens(text).find(|token| token.kind == Kind::Dotted && &token.span.of(text)[1..] == kind)?;
    Some(at.opcode + named.span.start)
}

/// Where a branch names its label.
fn target(text: &str, branch: Statement) -> Option<u32> {
    let span = Span { start: branch.opcode, end: branch.end };
    let words = tokens(span.of(text)).filter(|token| token.kind == Kind::Word);
    words.skip(1).last().filter(|_| branch.flow == Flow::Branch).map(|name| span.start + name.span.start)
}

/// Whether threads run an instruction together, or ask who runs it.
pub(super) fn is_meeting(opcode: &str) -> bool {
    opcode.split('.').any(|part| matches!(part, "bar" | "barrier" | "sync" | "aligned" | "activemask"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_do_together_is_told() {
        let together = [
            "bar.sync",
            "barrier.cluster.arrive.aligned",
            "shfl.sync.bfly.b32",
            "activemask.b32",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        ];
        assert_eq!(together.map(is_meeting), [true; 5]);
        assert_eq!(["mbarrier.arrive.b64", "cp.async.ca.shared.global", "add.s32"].map(is_meeting), [false; 3]);
    }
}
