//! Recognises loops whose trips can be computed where they begin: an induction variable with a constant step, and a bound that the loop keeps.

use super::bounded::Pins;
use super::declared::Declared;
use super::{Loops, Writers};
use cuinstr_ptx::{Code, Flow, Function, Graph, Kind, Operand, Register, Span, tokens};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Largest step of an induction variable. With the most iterations of a strip the distance stays below 2^31.
const MOST_STEP: i64 = 1 << 16;

/// Most statements that an address is followed back through.
const MOST_STEPS_BACK: u32 = 32;

/// How a loop goes on: while the induction variable stands so to the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) enum Order {
    /// Below it; the step is positive.
    Less,
    /// Not above it; the step is positive.
    LessEqual,
    /// Above it; the step is negative.
    Greater,
    /// Not below it; the step is negative.
    GreaterEqual,
    /// Anywhere else.
    NotEqual,
}

impl Order {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "lt" | "lo" => Self::Less,
            "le" | "ls" => Self::LessEqual,
            "gt" | "hi" => Self::Greater,
            "ge" | "hs" => Self::GreaterEqual,
            "ne" => Self::NotEqual,
            _ => return None,
        })
    }

    fn negated(name: &str) -> Option<Self> {
        Some(match name {
            "lt" | "lo" => Self::GreaterEqual,
            "le" | "ls" => Self::Greater,
            "gt" | "hi" => Self::LessEqual,
            "ge" | "hs" => Self::Less,
            "eq" => Self::NotEqual,
            _ => return None,
        })
    }

    fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::NotEqual => Self::NotEqual,
        }
    }

    pub(super) fn fits(self, step: i64) -> bool {
        match self {
            Self::Less | Self::LessEqual => step > 0,
            Self::Greater | Self::GreaterEqual => step < 0,
            Self::NotEqual => step != 0,
        }
    }
}

/// A counted loop, with names as they are spelled in it. Its step is a number, or a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::polls) struct Counted<'a, Step = i64> {
    /// The statement that compares, and sets the predicate of the loop's test.
    pub(in crate::polls) test: u32,
    /// The induction variable at the header.
    pub(in crate::polls) variable: &'a str,
    /// Its register.
    pub(in crate::polls) register: Register,
    /// What the comparison reads of it, if that is its value after the step.
    pub(in crate::polls) tested: Option<&'a str>,
    /// What it goes towards: a register, or a number in decimal.
    pub(in crate::polls) bound: Cow<'a, str>,
    /// What is added in each iteration.
    pub(in crate::polls) step: Step,
    /// How the two are compared while the loop goes on.
    pub(in crate::polls) order: Order,
    /// Whether the comparison is of signed integers.
    pub(in crate::polls) is_signed: bool,
    /// Bits of both.
    pub(in crate::polls) width: u8,
}

/// An induction variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Induction<Step = i64> {
    /// What holds it at the header.
    pub(super) variable: Register,
    /// The statement that adds, and what it adds.
    pub(super) added: u32,
    pub(super) step: Step,
    /// Whether the test reads its value after the step.
    pub(super) is_new: bool,
}

/// What is joined to a loop's comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) struct Joined<'a> {
    /// The statement that joins.
    pub(in crate::polls) by: u32,
    /// The other predicate as it is spelled.
    pub(in crate::polls) other: &'a str,
    /// Whether the loop goes on where it holds.
    pub(in crate::polls) goes_on_if: bool,
}

/// What the analysis reads.
#[derive(Clone, Copy)]
pub(in crate::polls) struct Context<'c, 'a> {
    pub(in crate::polls) text: &'a str,
    pub(in crate::polls) function: &'c Function<'a>,
    pub(in crate::polls) code: &'c Code<'a>,
    pub(in crate::polls) graph: &'c Graph,
    pub(in crate::polls) loops: &'c Loops,
    pub(in crate::polls) writers: &'c Writers,
    pub(in crate::polls) declared: &'c Declared<'a>,
    /// What is taken to lie near zero.
    pub(in crate::polls) pins: Option<&'c Pins>,
}

impl<'a> Context<'_, 'a> {
    /// The block of a statement.
    pub(in crate::polls) fn block_of(&self, statement: u32) -> u32 {
        self.graph.block_of(statement)
    }

    /// Statements of a loop that write a register.
    pub(super) fn writers_in(&self, number: u32, register: Register) -> impl Iterator<Item = u32> {
        self.writers.within(register, self.graph, self.loops, number)
    }

    /// Whether a statement runs exactly once in each iteration that comes to the latch.
    fn runs_once(&self, number: u32, statement: u32, latch: u32) -> bool {
        let block = self.block_of(statement);
        let is_guarded = self.function.statements[statement as usize].guarded;
        !is_guarded && self.loops.runs_in(number, block) && self.loops.dominates(block, latch)
    }

    /// The operand of a statement as it is spelled.
    pub(super) fn spelled(&self, statement: u32, nth: usize) -> Option<&'a str> {
        let at = self.function.statements.get(statement as usize)?;
        let text = Span { start: at.opcode, end: at.end }.of(self.text);
        let mut words = tokens(text).filter(|token| !matches!(token.kind, Kind::Blank | Kind::Comment));
        let (mut operand, mut found) = (0, None);
        // The opcode: a word and its modifiers.
        words.next();
        for token in words {
            match token.kind {
                Kind::Dotted if found.is_none() && operand == 0 => {}
                Kind::Mark(b',') => operand += 1,
                Kind::Word if operand == nth && found.is_none() => found = Some(token.span.of(text)),
                Kind::Word | Kind::Number | Kind::Mark(b'-') if operand != nth => {}
                _ => return None,
            }
        }
        found
    }

    /// The trips of a loop with one latch, whose test is the last statement of `block`: it goes on where the test's branch is taken, or is not.
    pub(in crate::polls) fn counted(&self, number: u32, block: u32, goes_on_if_taken: bool) -> Option<Counted<'a>> {
        let latch = self.loops.all[number as usize].latch()?;
        let (test, holds) = self.test_at(block, goes_on_if_taken)?;
        self.compared(number, latch, test, holds)
    }

    fn compared(&self, number: u32, latch: u32, test: u32, holds: bool) -> Option<Counted<'a>> {
        let fits = |order: Order, step: i64| order.fits(step) && step.abs() <= MOST_STEP;
        self.compared_by(number, latch, (test, holds), 1, (|statement, width| self.added(statement, width), fits))
            .map(|(counted, _)| counted)
    }

    /// The statement that sets the predicate of a block's branch, and whether that holds where the loop goes on.
    pub(super) fn test_at(&self, block: u32, goes_on_if_taken: bool) -> Option<(u32, bool)> {
        let branch = self.graph.blocks[block as usize].end - 1;
        let (Some(predicate), when) = self.code.guard(branch)? else { return None };
        let first = self.graph.blocks[block as usize].first;
        let test = self.writers.last_of(predicate, first..branch)?;
        (!self.function.statements[test as usize].guarded).then_some((test, goes_on_if_taken == when))
    }

    /// The same for a loop whose test is a comparison that something else is joined to.
    pub(in crate::polls) fn joined(&self, number: u32, block: u32, goes_on_if_taken: bool) -> Option<(Counted<'a>, Joined<'a>)> {
        let one = &self.loops.all[number as usize];
        let latch = one.latch()?;
        let branch = self.graph.blocks[block as usize].end - 1;
        let (Some(predicate), when) = self.code.guard(branch)? else { return None };
        let goes_on_if = goes_on_if_taken == when;
        let first = self.graph.blocks[block as usize].first;
        let last = |register, end: u32| self.writers.last_of(register, first..end);
        let by = last(predicate, branch)?;
        if self.code.opcode(by) != if goes_on_if { "and.pred" } else { "or.pred" } || self.function.statements[by as usize].guarded {
            return None;
        }
        let [_, Operand::Register(left), Operand::Register(right)] = *self.code.operands(by) else { return None };
        for (compared, nth) in [(left, 2), (right, 1)] {
            let Some(counted) = last(compared, by).and_then(|test| self.compared(number, latch, test, goes_on_if)) else { continue };
            let other = self.spelled(by, nth).filter(|name| self.declared.means_one(self.function, name, by));
            if let (Some(_), Some(other)) = (counted.tested, other) {
                return Some((counted, Joined { by, other, goes_on_if }));
            }
        }
        None
    }

    /// What a comparison says of a loop's trips, and the statement that adds the step. `added` gives the register that a statement adds to, its operand `base`,
    /// and the step. `fits` says which steps lead towards the bound.
    pub(super) fn compared_by<Step: Copy>(
        &self,
        number: u32,
        latch: u32,
        (test, holds): (u32, bool),
        base: usize,
        (added, fits): (impl Fn(u32, u8) -> Option<(Register, Step)>, impl Fn(Order, Step) -> bool),
    ) -> Option<(Counted<'a, Step>, u32)> {
        let one = &self.loops.all[number as usize];
        let (order, is_signed, width) = self.comparison(test, holds)?;
        let header = self.graph.blocks[one.header as usize].first;
        let scope = self.function.statements[header as usize].scope;
        if !self.is_in_one_scope(number, header, test) || self.function.statements[test as usize].guarded {
            return None;
        }
        let [_, left, right] = *self.code.operands(test) else { return None };
        let invariant = |operand: Operand| match operand {
            Operand::Integer(value) => i32::try_from(value).is_ok(),
            Operand::Register(register) => self.writers_in(number, register).next().is_none(),
            _ => false,
        };
        for (tested, bound, nth, order) in [(left, right, 2, order), (right, left, 1, order.mirrored())] {
            let Operand::Register(tested) = tested else { continue };
            if !invariant(bound) {
                continue;
            }
            let by = |statement| added(statement, width);
            let Some(Induction { variable, added, step, is_new }) = self.induction(number, (test, tested), latch, by) else { continue };
            if !fits(order, step) {
                continue;
            }
            let register = variable;
            let at = self.function.statements[added as usize];
            let variable = self.spelled(added, if self.is_written_by(added, variable) { 0 } else { base })?;
            let bound = match bound {
                Operand::Integer(number) => Cow::Owned(number.to_string()),
                _ => Cow::Borrowed(self.spelled(test, nth).filter(|name| self.declared.means_one(self.function, name, header))?),
            };
            let is_named = at.scope == scope && self.declared.means_one(self.function, variable, header);
            let tested = self.spelled(test, 3 - nth).filter(|name| is_new && self.declared.means_one(self.function, name, header));
            let counted = Counted { test, variable, register, tested, bound, step, order, is_signed, width };
            return is_named.then_some((counted, added));
        }
        None
    }

    /// Whether a loop's first label, its header, a test of it and what ends its iterations stand between the same braces: what is written at the label and
    /// at the end names registers of the test, and another may have that name there.
    fn is_in_one_scope(&self, number: u32, header: u32, test: u32) -> bool {
        let scope = |statement: u32| self.function.statements[statement as usize].scope;
        let labels = &self.function.labels;
        let from = labels.partition_point(|label| label.statement < header);
        let mut labels = labels[from..].iter().take_while(|label| label.statement == header);
        let end = self.test_of(number).map(|(block, _)| self.graph.blocks[block as usize].end - 1);
        labels.all(|label| label.scope == scope(header)) && end.is_some_and(|end| [test, end].map(scope) == [scope(header); 2])
    }

    /// Whether control leaves a loop with no other inside behind one block alone.
    pub(in crate::polls) fn leaves_at(&self, number: u32, block: u32) -> bool {
        let count = self.graph.blocks.len() as u32;
        let holds = |to: u32| self.loops.holds(number, to);
        let mut tables = BTreeSet::new();
        let mut stays_at = |to: u32| {
            if to < count { holds(to) } else { !tables.insert(to) || self.graph.listed(to - count).0.iter().all(|to| holds(*to)) }
        };
        self.loops.members(number).iter().all(|inside| {
            let flow = self.function.statements[self.graph.blocks[*inside as usize].end as usize - 1].flow;
            let mut ways = (0..).map_while(|nth| self.graph.step(*inside, nth)).flatten();
            !matches!(flow, Flow::Return | Flow::End) && (*inside == block || ways.all(&mut stays_at))
        })
    }

    /// Whether a load's address is made of what the loop has loaded.
    pub(in crate::polls) fn is_loaded(&self, number: u32, load: u32, work: &mut Vec<Register>) -> bool {
        self.is_made_of(number, load, work, |opcode| opcode.starts_with("ld.") && !opcode.starts_with("ld.param"))
    }

    /// Whether what a statement reads is made, in the loop, of what such an instruction brings.
    pub(in crate::polls) fn is_made_of(&self, number: u32, reader: u32, work: &mut Vec<Register>, brings: impl Fn(&str) -> bool) -> bool {
        work.clear();
        self.code.each_read(reader, |register| work.push(register));
        let mut seen = 0;
        while let Some(register) = work.pop() {
            for statement in self.writers_in(number, register) {
                let opcode = self.code.opcode(statement);
                if statement != reader && brings(opcode) || statement == reader && seen > 0 {
                    return true;
                }
                seen += 1;
                if seen > MOST_STEPS_BACK {
                    return false;
                }
                if statement != reader {
                    self.code.each_read(statement, |register| work.push(register));
                }
            }
        }
        false
    }

    pub(super) fn is_written_by(&self, statement: u32, register: Register) -> bool {
        self.writers.last_of(register, statement..statement + 1).is_some()
    }

    /// How a test compares where its predicate `holds`, or does not. Of `p|q` the second says the opposite: such a test is not looked at.
    pub(super) fn comparison(&self, test: u32, holds: bool) -> Option<(Order, bool, u8)> {
        let [Operand::Register(_), ..] = self.code.operands(test) else { return None };
        let mut parts = self.code.opcode(test).split('.');
        if parts.next() != Some("setp") {
            return None;
        }
        let (name, kind) = (parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let (is_signed, width) = match kind {
            "s32" => (true, 32),
            "u32" | "b32" => (false, 32),
            "s64" => (true, 64),
            "u64" | "b64" => (false, 64),
            _ => return None,
        };
        let is_signed = is_signed && !matches!(name, "lo" | "ls" | "hi" | "hs");
        Some((if holds { Order::of(name) } else { Order::negated(name) }?, is_signed, width))
    }

    /// What a loop's test, which reads the register `tested`, says of an induction variable. `add` gives the register that a statement adds to, and the step.
    pub(super) fn induction<Step>(
        &self,
        number: u32,
        (test, tested): (u32, Register),
        latch: u32,
        add: impl Fn(u32) -> Option<(Register, Step)>,
    ) -> Option<Induction<Step>> {
        let written = self.only_writer(number, tested, latch)?;
        if let Some(next) = self.moved(written) {
            // `add next, variable, step`, and behind it `mov variable, next`: in front of it the header's variable would be an older one.
            let added = self.only_writer(number, next, latch)?;
            let (base, step) = add(added)?;
            let is_new = self.precedes(written, test);
            return (base == tested && self.precedes(added, written)).then_some(Induction { variable: tested, added, step, is_new });
        }
        let (mut variable, step) = add(written)?;
        let is_new = self.precedes(written, test);
        if variable != tested {
            let moved = self.only_writer(number, variable, latch).filter(|moved| self.moved(*moved) == Some(tested))?;
            if self.precedes(moved, written) {
                // `mov variable, next`, and behind it `add next, variable, step`: the header's variable is `next`.
                variable = tested;
            } else if !is_new {
                return None;
            }
        }
        Some(Induction { variable, added: written, step, is_new })
    }

    /// Whether a statement runs in front of another in each iteration, where both run once.
    pub(super) fn precedes(&self, one: u32, other: u32) -> bool {
        let (from, to) = (self.block_of(one), self.block_of(other));
        if from == to { one < other } else { self.loops.dominates(from, to) }
    }

    pub(super) fn only_writer(&self, number: u32, register: Register, latch: u32) -> Option<u32> {
        let mut writers = self.writers_in(number, register);
        let written = writers.next()?;
        (writers.next().is_none() && self.runs_once(number, written, latch)).then_some(written)
    }

    pub(super) fn moved(&self, statement: u32) -> Option<Register> {
        let is_move = self.code.opcode(statement).starts_with("mov.");
        match *self.code.operands(statement) {
            [Operand::Register(_), Operand::Register(from)] if is_move => Some(from),
            _ => None,
        }
    }

    /// `add register, base, constant`
    pub(super) fn added(&self, statement: u32, width: u8) -> Option<(Register, i64)> {
        let opcode = self.code.opcode(statement);
        let sign = match opcode.split_once('.')? {
            ("add", kind) if is_integer(kind, width) => 1,
            ("sub", kind) if is_integer(kind, width) => -1,
            _ => return None,
        };
        match *self.code.operands(statement) {
            [Operand::Register(_), Operand::Register(base), Operand::Integer(step)] => {
                Some((base, sign * i64::from(i32::try_from(step).ok()?)))
            }
            [Operand::Register(_), Operand::Integer(step), Operand::Register(base)] if sign == 1 => {
                Some((base, i32::try_from(step).ok()?.into()))
            }
            _ => None,
        }
    }

    /// The block whose last statement is the test of a loop's only latch, and whether the loop goes on where that is taken: each iteration that
    /// comes to it either ends the loop there or begins the next one. A latch that holds nothing but its branch is tested by the block in front of
    /// it (`setp.eq; @p bra OUT; bra HEAD`).
    pub(in crate::polls) fn test_of(&self, number: u32) -> Option<(u32, bool)> {
        let one = &self.loops.all[number as usize];
        let latch = one.latch()?;
        let block = self.graph.blocks[latch as usize];
        let last = self.function.statements[block.end as usize - 1];
        if last.flow != Flow::Branch {
            return None;
        }
        let leaves =
            |block: u32, when: bool| self.graph.edges(block).any(|edge| edge.when == Some(when) && !self.loops.holds(number, edge.to));
        if last.guarded {
            let comes_back = self.graph.edges_to(latch, one.header).any(|edge| edge.when == Some(true));
            return (comes_back && leaves(latch, false)).then_some((latch, true));
        }
        let before = latch.checked_sub(1).filter(|_| block.end - block.first == 1)?;
        let test = self.function.statements[self.graph.blocks[before as usize].end as usize - 1];
        let is_only = self.graph.sources(latch).all(|source| source == before);
        (test.flow == Flow::Branch && leaves(before, true) && is_only && self.loops.innermost(before) == number).then_some((before, false))
    }
}

pub(super) fn is_integer(kind: &str, width: u8) -> bool {
    match width {
        32 => matches!(kind, "s32" | "u32"),
        _ => matches!(kind, "s64" | "u64"),
    }
}

#[cfg(test)]
pub(in crate::polls) mod tests {
    use super::*;
    use crate::polls::find::NONE;

    /// Asks of the loop at the first header, by the block that ends with its test and whether the loop goes on where that is taken.
    pub(in crate::polls) fn asked<T>(body: &str, ask: impl FnOnce(&Context<'_, '_>, (u32, bool)) -> T) -> Option<T> {
        let text = format!(".version 9.0 .target sm_90 .entry k() {{ .reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; {body} }}");
        let module = cuinstr_ptx::parse(&text);
        assert_eq!(module.faults, []);
        let function = &module.functions[0];
        let (code, graph) = (Code::new(&text, function), Graph::new(function));
        let loops = Loops::new(&graph);
        let writers = Writers::new(function, &code, &graph, &loops);
        let declared = Declared::new(function);
        let context = Context {
            text: &text,
            function,
            code: &code,
            graph: &graph,
            loops: &loops,
            writers: &writers,
            declared: &declared,
            pins: None,
        };
        context.test_of(0).map(|test| ask(&context, test))
    }

    /// The variable, order, bound and step of the loop at the first header, and whether its test was found.
    fn found(body: &str) -> (bool, Option<String>) {
        let counted = asked(body, |context, (block, taken)| {
            let Counted { variable, bound, step, order, is_signed, width, .. } = context.counted(0, block, taken)?;
            Some(format!("{variable} {order:?} {bound} by {step}, {}{width}", if is_signed { 's' } else { 'u' }))
        });
        (counted.is_some(), counted.flatten())
    }

    fn counted_of(body: &str) -> Option<String> {
        found(body).1
    }

    #[test]
    fn the_entry_and_what_nothing_leads_to_have_no_dominator() {
        let text = ".version 9.0 .target sm_90 .entry k() { .reg .pred %p<2>; @%p1 bra $A; bra $B; $A: bra $B; $C: bra $A; $B: @%p1 bra $B; ret; }";
        let module = cuinstr_ptx::parse(text);
        let graph = Graph::new(&module.functions[0]);
        let (loops, block) = (Loops::new(&graph), |statement: u32| graph.blocks.iter().position(|block| block.first == statement));
        let dominator = |statement| loops.dominator(block(statement).expect("a block") as u32);
        let first = block(0).map(|block| block as u32);
        assert_eq!([dominator(0), dominator(3)], [None, None]);
        assert_eq!([dominator(1), dominator(2), dominator(4)], [first; 3]);
    }

    #[test]
    fn the_variable_is_what_holds_the_value_at_the_header() {
        for (iteration, variable) in [
            ("mov.b32 %r1, %r3; add.s32 %r3, %r1, 1; setp.lt.s32 %p1, %r3, %r2;", Some("%r3")),
            ("add.s32 %r3, %r1, 1; setp.lt.s32 %p1, %r3, %r2; mov.b32 %r1, %r3;", Some("%r1")),
            ("add.s32 %r3, %r1, 1; mov.b32 %r1, %r3; setp.lt.s32 %p1, %r1, %r2;", Some("%r1")),
            ("setp.lt.s32 %p1, %r3, %r2; add.s32 %r3, %r1, 1; mov.b32 %r1, %r3;", None),
            ("mov.b32 %r1, %r3; add.s32 %r3, %r1, 1; setp.lt.s32 %p1, %r1, %r2;", None),
        ] {
            let wanted = variable.map(|variable| format!("{variable} Less %r2 by 1, s32"));
            assert_eq!(counted_of(&format!("$L: {iteration} @%p1 bra $L;")), wanted, "{iteration}");
        }
    }

    #[test]
    fn each_comparison_is_read_with_either_sense() {
        let (up, down) = (["lt", "lo", "le", "ls"], ["gt", "hi", "ge", "hs"]);
        for (names, step, orders) in [(up, 1, ["Less", "LessEqual"]), (down, -1, ["Greater", "GreaterEqual"])] {
            for (nth, name) in names.into_iter().enumerate() {
                let sign = if name.starts_with(['l', 'g']) && name.ends_with(['t', 'e']) { 's' } else { 'u' };
                let wanted = format!("%r1 {} %r2 by {step}, {sign}32", orders[nth / 2]);
                let body = format!("$L: add.s32 %r1, %r1, {step}; setp.{name}.s32 %p1, %r1, %r2; @%p1 bra $L;");
                assert_eq!(counted_of(&body), Some(wanted), "{body}");
                // The opposite is asked, and the loop goes on where it does not hold.
                let opposite = [["ge", "hs", "gt", "hi"], ["le", "ls", "lt", "lo"]][usize::from(step < 0)][nth];
                let wanted = format!("%r1 {} %r2 by {step}, {sign}32", orders[nth / 2]);
                let body = format!("$L: add.s32 %r1, %r1, {step}; setp.{opposite}.s32 %p1, %r1, %r2; @!%p1 bra $L;");
                assert_eq!(counted_of(&body), Some(wanted), "{body}");
            }
        }
    }

    #[test]
    fn a_test_ends_its_loop_or_begins_the_next_iteration() {
        for (body, wanted) in [
            ("$L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;", true),
            ("$L: add.s32 %r1, %r1, 1; setp.ge.s32 %p1, %r1, %r2; @%p1 bra $X; bra $L; $X: ret;", true),
            // Where it does not come back the loop has another way on.
            ("$L: add.s32 %r1, %r1, 1; $A: setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L; add.s32 %r4, %r4, 1; @%p2 bra $A; ret;", false),
            ("$L: add.s32 %r1, %r1, 1; $T: .branchtargets $X, $Y; @%p1 brx.idx %r5, $T; bra $L; $X: ret; $Y: ret;", false),
            ("$L: add.s32 %r1, %r1, 1; @%p2 bra $M; @%p1 bra $X; $M: bra $L; $X: ret;", false),
        ] {
            assert_eq!(found(body).0, wanted, "{body}");
        }
    }

    #[test]
    fn counted_loops_are_recognised() {
        for (body, expected) in [
            ("$L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;", "%r1 Less %r2 by 1, s32"),
            ("$L: add.s32 %r1, %r1, -4; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;", "%r1 NotEqual 0 by -4, s32"),
            ("$L: add.s64 %rd1, %rd1, 8; setp.eq.s64 %p1, %rd1, %rd2; @!%p1 bra $L;", "%rd1 NotEqual %rd2 by 8, s64"),
            ("$L: add.s32 %r1, %r3, 1; setp.lt.u32 %p1, %r1, 99; mov.u32 %r3, %r1; @%p1 bra $L;", "%r3 Less 99 by 1, u32"),
            ("$L: add.s32 %r1, %r1, 1; setp.eq.s32 %p1, %r1, 9; @%p1 bra $X; bra.uni $L; $X: ret;", "%r1 NotEqual 9 by 1, s32"),
            ("$L: sub.u32 %r1, %r1, 2; setp.gt.s32 %p1, %r2, %r1; @!%p1 bra $L;", "%r1 GreaterEqual %r2 by -2, s32"),
        ] {
            assert_eq!(counted_of(body).as_deref(), Some(expected), "{body}");
        }
    }

    #[test]
    fn others_are_not() {
        for body in [
            "$L: add.s32 %r1, %r1, 1; setp.gt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, 1; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: @%p2 add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, 1; setp.lt.and.s32 %p1, %r1, %r2, %p3; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, 1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.u64 %rd1, %rd1, 0x100000000; setp.ne.s64 %p1, %rd1, %rd2; @%p1 bra $L;",
            "$L: @%p3 bra $M; add.s32 %r1, %r1, 1; $M: setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; $N: add.s32 %r4, %r4, 1; @%p4 bra $N; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, 1; setp.eq.s32 %p1, %r1, %r2; @%p1 bra $L;",
            // Where it is tested names mean what they do not at its label, or at its end.
            "$L: { .reg .b32 %t; add.s32 %t, %r1, 1; setp.lt.s32 %p1, %t, %r2; mov.b32 %r1, %t; } @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; { @%p1 bra $L; }",
            "$L: { add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L; }",
            "$L: add.s32 %r1, %r1, 0; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: sub.s32 %r1, %r1, 0; setp.gt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.sat.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.sat.s64 %rd1, %rd1, 1; setp.lt.s64 %p1, %rd1, %rd2; @%p1 bra $L;",
        ] {
            assert_eq!(counted_of(body), None, "{body}");
        }
    }

    #[test]
    fn loops_nest_and_irreducible_cycles_are_found() {
        let text = ".version 9.0 .target sm_90 .entry k() { .reg .pred %p<9>; @%p1 bra $B; $A: $C: @%p2 bra $C; @%p3 bra $A; ret; $B: bra $D; $E: @%p4 bra $D; bra $X; $D: @%p5 bra $E; $X: @%p6 bra $F; bra $G; $F: @%p7 bra $G; ret; $G: bra $F; }";
        let module = cuinstr_ptx::parse(text);
        let graph = Graph::new(&module.functions[0]);
        let loops = Loops::new(&graph);
        let natural = loops.all.iter().filter(|one| one.is_natural).count();
        assert_eq!((natural, loops.all.len()), (2, 3), "{loops:?}");
        assert!(loops.all.iter().all(|one| one.outer == NONE || loops.all[one.outer as usize].header < one.header));
    }
}
