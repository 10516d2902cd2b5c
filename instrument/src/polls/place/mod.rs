//! One function: which form each of its cycles gets, and the insertions that make it.

pub(super) mod alone;
mod brief;
mod copies;
pub(super) mod ends;
mod irreducible;
mod nests;
mod peeled;
mod side_exits;
mod tiny;
mod weights;

use super::emit::edits::Edits;
use super::emit::{self, Cold, Fuel, Place, Poll, Spelling, limits, shared, strips};
use super::find::calls::Activations;
use super::find::counted::{Context, Counted, Joined};
use super::find::declared::Declared;
use super::find::{Cycles, Loops, NONE, Writers};
use crate::options::{Limits, Polls};
use cuinstr_abi::sites::Form;
use cuinstr_ptx::{Code, Edge, Flow, Function, Graph, Kind, Span, tokens};
use ends::before_label;
use std::fmt::Write as _;

/// A loop inside another one that has so many statements pays in each iteration: what a strip's set-up costs is more.
const HEAVY: u32 = 48;

/// Most statements of a loop whose trips can't be computed that pays for several iterations at once, so that ptxas unrolls them.
const LIGHT: u32 = 24;

/// Iterations that such a loop pays for at once. In loops within loops, too: where each thread paid for what it runs, the threads of a warp would poll one
/// after the other.
const CHUNK: u32 = 8;

/// From this logarithm of an iteration's weight on, so many iterations take all of the largest allowance.
const ALLOWANCE: u32 = emit::MOST_INTERVAL - CHUNK.ilog2();

/// Iterations that a loop within another one pays for where it begins, and for the rest once they have run: most of these end soon.
const EXPECTED: u32 = 2;

/// Statements of a loop from which on ptxas must not write out all iterations that are paid for: eight copies of such a body take it longer than they
/// spare, and the kernel some registers.
const UNROLLED: u32 = 12;

/// The same for outermost loops, of which a function has fewer.
const UNROLLED_OUTERMOST: u32 = 16;

/// What is common to the functions of a module.
pub(in crate::polls) struct Module<'m> {
    pub(in crate::polls) text: &'m str,
    pub(in crate::polls) polls: Polls,
    pub(in crate::polls) hash: u64,
    pub(in crate::polls) spelling: Spelling,
    pub(in crate::polls) activations: &'m Activations<'m>,
}

impl Module<'_> {
    /// Whether every iteration of every loop counts.
    fn counts_all(&self) -> bool {
        self.polls == Polls::Each || self.spelling.limits.fuel.is_some()
    }
}

/// A place that repeats, with the offset that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) struct Site {
    /// Odd where threads trap rather than leave.
    pub(in crate::polls) id: u64,
    /// Offset in the text.
    pub(in crate::polls) at: u32,
    /// The first statement of it.
    pub(in crate::polls) statement: u32,
    pub(in crate::polls) form: Form,
    pub(in crate::polls) is_loop: bool,
}

/// How threads of a function come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) struct Way {
    pub(in crate::polls) cold: Cold,
    /// Whether leaving is not defined, so that threads trap.
    pub(in crate::polls) traps: bool,
    /// Whether products of a warp group may be under way (`wgmma`).
    pub(in crate::polls) has_products: bool,
}

/// What is put into a function.
#[derive(Default)]
pub(in crate::polls) struct Polled {
    pub(in crate::polls) sites: Vec<Site>,
    pub(in crate::polls) fuel: Fuel,
    /// Whether its polls call a function.
    pub(in crate::polls) calls: bool,
    /// Text for the front of the body.
    pub(in crate::polls) front: String,
    /// What stands last in the front: on to an entry of a cycle with several, if the function begins with one.
    pub(in crate::polls) enters: String,
    /// The first statements of cycles with several ways in that could not be joined.
    pub(in crate::polls) not_joined: Vec<u32>,
}

/// Puts polls into the cycles of a function. `next` numbers names of the module.
pub(in crate::polls) fn poll_cycles(
    module: &Module<'_>,
    (cycles, index): (&Cycles<'_, '_>, u32),
    way: Way,
    edits: &mut Edits,
    next: &mut u32,
) -> Polled {
    let Cycles { function, graph, loops } = cycles;
    let mut polled = Polled::default();
    if loops.all.is_empty() {
        return polled;
    }
    let code = Code::new(module.text, function);
    let writers = Writers::new(function, &code, graph, loops);
    let declared = Declared::new(function);
    let context = Context { text: module.text, function, code: &code, graph, loops, writers: &writers, declared: &declared, pins: None };
    let alone = if module.counts_all() { vec![None; loops.all.len()] } else { alone::left_alone(&context) };
    let repeats = module.activations.repeats(index);
    let own = weights::statements(&context, repeats, module.activations.unwinds(index));
    let brief = if module.counts_all() { loops.all.iter().map(|_| None).collect() } else { brief::of(&context, &alone, &own) };
    let mut weights = weights::of(&context, module.polls, own.clone(), |number| match (&alone[number], &brief[number]) {
        (Some(trips), _) => Some(*trips),
        (None, brief) => brief.as_ref().map(|brief| brief.paid().into()),
    });
    let count = alone.iter().filter(|alone| alone.is_none()).count();
    let by_call = module.spelling.shared(way.cold, way.has_products).filter(|_| shared::pays(count, function.statements.len()));
    polled.calls = by_call.is_some();
    // Calls have one function for all, and activations of others, or of the same one, multiply what this one may run.
    let is_scaled = !module.counts_all() && by_call.is_none() && repeats.is_empty() && !module.activations.unwinds(index);
    let scale = if is_scaled { weights::scale(loops, &weights, &alone) } else { 0 };
    weights.iter_mut().flatten().for_each(|weight| *weight = weight.saturating_sub(scale));
    let poll = by_call.unwrap_or_else(|| module.spelling.of(way.cold, way.has_products, scale));
    // What one loop has taken from the tank another has not yet used.
    let has_fuel = module.spelling.limits.fuel.is_some();
    let shares = has_fuel && weights.iter().zip(&alone).any(|(weight, alone)| weight.is_some() && alone.is_none());
    let pays_inside = vec![shares; loops.all.len()];
    let mut placer = Placer {
        module,
        context,
        way,
        poll,
        edits,
        next,
        polled: &mut polled,
        has_allowance: false,
        pays_inside,
        scale,
        peeled: Vec::new(),
    };
    // What stands behind the labels of their entries comes in front of what loops put there.
    let (joined, has_poll) = placer.join(&weights);
    // Inner loops first: where one branch ends an inner loop and begins the next round of the outer one, the inner loop's test comes first.
    for number in (0..loops.all.len() as u32).rev().filter(|number| !has_poll[*number as usize]) {
        placer.place(number, weights[number as usize], alone[number as usize].is_some());
    }
    let (front, settles) = placer.allowance(&alone);
    // Behind the allowance, which both ways through a nest need.
    placer.brief_nests(&own);
    placer.brief_loops(&brief);
    placer.write_peeled(&settles);
    // Right in front of the user's branches.
    placer.lead_in(&joined);
    if placer.has_allowance {
        polled.front.insert_str(0, &front);
        polled.fuel = Fuel::Allowance;
    } else if polled.sites.iter().any(|site| site.form != Form::None) {
        polled.fuel = Fuel::Polls;
    }
    polled
}

/// Offset of a place that each way to a loop that pays comes by once: as near to the loops as may be, so that the user's own loads are on their way, too.
/// None if there may be none.
fn in_front(function: &Function<'_>, graph: &Graph, loops: &Loops, alone: &[Option<u64>]) -> Option<u32> {
    if !loops.all.iter().all(|one| one.is_natural) {
        return None;
    }
    let outermost = loops.all.iter().zip(alone).filter(|(one, alone)| one.outer == NONE && alone.is_none());
    let mut block = loops.common_dominator(outermost.map(|(one, _)| one.header))?;
    // A header is no such place, nor is what lies in a loop.
    while loops.innermost(block) != NONE {
        block = loops.dominator(block)?;
    }
    let last = graph.blocks[block as usize].end - 1;
    let statement = function.statements[last as usize];
    match statement.flow {
        Flow::Next | Flow::Call if (last as usize) < function.statements.len() - 1 => Some(before_label(function, last + 1)),
        Flow::Next | Flow::Call => None,
        _ => Some(statement.start),
    }
}

impl Polled {
    /// Has the function note what its limits count from, if it polls.
    pub(in crate::polls) fn begin(&mut self, limits: Limits, polls_at_entry: bool) {
        if limits.any() && (polls_at_entry || self.fuel != Fuel::None) {
            self.front.push_str(&limits::begin(limits, self.fuel == Fuel::Allowance));
        }
    }

    /// Whether the function's allowance depends on the flag.
    pub(in crate::polls) fn asks_at_entry(&self) -> bool {
        self.sites.iter().any(|site| !matches!(site.form, Form::None | Form::Each))
    }
}

/// The one test of a loop.
#[derive(Clone, Copy)]
struct Test<'a> {
    /// The block that ends with it.
    block: u32,
    /// Whether the loop goes on where its branch is taken.
    taken: bool,
    /// Its predicate as it is spelled.
    predicate: &'a str,
    /// Whether the loop goes on where that holds.
    goes_on_if: bool,
}

/// What says that a strip is over, beside the variable.
#[derive(Clone, Copy)]
enum End<'j> {
    /// Nothing: the loop's test compares the variable.
    Compared,
    /// What is joined to that comparison.
    Joined(&'j Joined<'j>),
    /// The loop's test. The comparison stands in front of another way out.
    Elsewhere,
}

struct Placer<'p, 'a> {
    module: &'p Module<'a>,
    context: Context<'p, 'a>,
    way: Way,
    poll: Poll,
    edits: &'p mut Edits,
    next: &'p mut u32,
    polled: &'p mut Polled,
    has_allowance: bool,
    /// Of each loop whether one inside pays. With fuel whether any of the function does.
    pays_inside: Vec<bool>,
    /// The logarithm of what a unit of the allowance is more than four statements.
    scale: u32,
    /// Loops whose first iterations stand in front of them.
    peeled: Vec<peeled::Peeled>,
}

impl<'a> Placer<'_, 'a> {
    /// Puts the function's allowance in front of its loops. Gives what stands in its front, and what is to stand behind peeled iterations. Empty if no loop
    /// pays.
    fn allowance(&mut self, alone: &[Option<u64>]) -> (String, String) {
        if !self.has_allowance {
            return Default::default();
        }
        let Context { text, function, graph, loops, .. } = self.context;
        let spelling = self.module.spelling;
        // Later blocks that leave stand in front of this loop.
        let first = self.polled.sites.iter().filter(|site| site.form != Form::None).min_by_key(|site| site.at);
        let first = first.map(|site| site.id).filter(|_| function.is_kernel);
        let mut allowance = emit::allowance(spelling, self.scale, first, ends::is_flat(text, function));
        let may_move = function.is_kernel && !spelling.limits.any();
        if may_move && self.is_only_peeled(alone) {
            return (allowance.front, allowance.asks + &allowance.settles);
        }
        allowance.front.push_str(&allowance.asks);
        match in_front(function, graph, loops, alone).filter(|_| may_move) {
            Some(at) => self.edits.at(at).push(&allowance.settles),
            None => allowance.front.push_str(&allowance.settles),
        }
        (allowance.front, String::new())
    }

    fn place(&mut self, number: u32, weight: Option<u32>, is_alone: bool) {
        let one = &self.context.loops.all[number as usize];
        let header = self.context.graph.blocks[one.header as usize];
        let at = self.context.function.statements[header.first as usize].start;
        let site = site_id(self.module.hash, at, self.way.traps);
        let place = Place { site, weight: weight.unwrap_or(0), poll: self.poll };
        let form = if is_alone {
            Form::None
        } else if weight.is_none() {
            self.each(number, place);
            Form::Each
        } else {
            self.has_allowance = true;
            self.amortised(number, place)
        };
        let pays = self.pays_inside[number as usize] || !matches!(form, Form::None | Form::Each);
        if let Some(outer) = self.pays_inside.get_mut(one.outer as usize) {
            *outer |= pays;
        }
        self.polled.sites.push(Site { id: site, at, statement: header.first, form, is_loop: true });
    }

    fn amortised(&mut self, number: u32, place: Place) -> Form {
        let one = &self.context.loops.all[number as usize];
        let header = self.context.graph.blocks[one.header as usize];
        let test = self.test(number);
        let seen = self.last_label(header.first).filter(|(_, scope)| one.is_natural && self.is_seen(*scope, number, test));
        let Some((behind, _)) = seen else {
            self.count_edges(number, place);
            return Form::CountDown;
        };
        let is_inside = one.outer != NONE && one.statements >= HEAVY;
        let is_innermost = one.is_innermost;
        let has_fuel = self.module.spelling.limits.fuel.is_some();
        // Fuel must not depend on how long a strip was meant to be.
        let ends_strips = |test: &Test<'_>| !has_fuel || self.context.leaves_at(number, test.block);
        let counted = test.filter(|test| is_innermost && !is_inside && ends_strips(test));
        let counted = counted.and_then(|test| self.context.counted(number, test.block, test.taken));
        if let (Some(test), Some(counted)) = (test, counted) {
            // ptxas unrolls short loops by a down counter, and some of them by nothing else.
            let is_unrolled = one.statements < LIGHT && self.context.leaves_at(number, test.block);
            if has_fuel || is_unrolled || counted.tested != Some(counted.variable) {
                self.strip(number, place, behind, test, &counted);
            } else {
                self.nearer(number, place, behind, test, (&counted, End::Compared));
            }
            return Form::Strip;
        }
        let is_short = one.outer == NONE || one.statements < LIGHT;
        let strided = test.filter(|test| is_innermost && is_short && ends_strips(test));
        let strided = strided.and_then(|test| Some((test, self.context.strided(number, test.block, test.taken)?)));
        if let Some((test, counted)) = strided {
            self.strip(number, place, behind, test, &counted);
            self.peel(number, place.weight);
            return Form::Strip;
        }
        let joined = test.filter(|_| is_innermost && !is_inside && !has_fuel);
        let joined = joined.and_then(|test| Some((test, self.context.joined(number, test.block, test.taken)?)));
        let joined = joined.filter(|(test, (counted, joined))| {
            let behind = counted.test + 1..self.last(test.block);
            !behind.into_iter().any(|between| {
                self.changes_operands(between, counted.test) || between > joined.by && self.changes_operands(between, joined.by)
            })
        });
        if let Some((test, (counted, joined))) = joined {
            self.nearer(number, place, behind, test, (&counted, End::Joined(&joined)));
            return Form::Strip;
        }
        let elsewhere = test.filter(|_| is_innermost && !is_inside && !has_fuel);
        if let Some((test, counted)) = elsewhere.and_then(|test| Some((test, self.counted_elsewhere(number, test)?))) {
            self.nearer(number, place, behind, test, (&counted, End::Elsewhere));
            return Form::Strip;
        }
        let one = &self.context.loops.all[number as usize];
        let is_light = place.weight < ALLOWANCE && (one.outer != NONE || one.statements <= LIGHT);
        let spins = |test: &Test<'_>| one.outer == NONE && weights::spins(&self.context, number, self.last(test.block));
        if let Some(test) = test.filter(|test| is_innermost && is_light && !spins(test)) {
            let paid = if one.outer == NONE || has_fuel { CHUNK } else { EXPECTED };
            if one.outer != NONE && self.written_out(number, place, behind, test, (CHUNK, paid)) {
                return Form::Chunk;
            }
            let name = self.counter();
            let unrolls = one.statements < if one.outer == NONE { UNROLLED_OUTERMOST } else { UNROLLED };
            place.prepaid(&mut self.edits.at(behind), name, (CHUNK, paid), unrolls);
            let at = self.start_of(self.last(test.block));
            emit::prepaid_test(&mut self.edits.at(at), name, test.predicate, test.goes_on_if);
            self.come_out(number, name, test);
            self.cold(number, place, name, test, Some(CHUNK - paid));
        } else {
            self.chunk(number, place, behind, test);
        }
        Form::Chunk
    }

    fn test(&self, number: u32) -> Option<Test<'a>> {
        let (block, taken) = self.context.test_of(number)?;
        let (predicate, when) = self.predicate(block)?;
        Some(Test { block, taken, predicate, goes_on_if: taken == when })
    }

    /// A number for names, with its counter declared.
    fn counter(&mut self) -> u32 {
        *self.next += 1;
        self.polled.front.push_str(&emit::declare(*self.next));
        *self.next
    }

    fn new_number(&mut self) -> u32 {
        *self.next += 1;
        *self.next
    }

    /// Whether a label in a scope is seen by all that may branch back in a loop. Two loops may begin at one statement, whose last label lies in
    /// braces of its own.
    fn is_seen(&self, label: u32, number: u32, test: Option<Test<'_>>) -> bool {
        let scopes = &self.context.function.scopes;
        let sees = |block: u32| {
            let mut scope = self.context.function.statements[self.last(block) as usize].scope;
            while scopes[scope as usize].depth > scopes[label as usize].depth {
                scope = scopes[scope as usize].outer;
            }
            scope == label
        };
        self.context.loops.latches(self.context.graph, number).into_iter().chain(test.map(|test| test.block)).all(sees)
    }

    /// Offset behind the last label of a statement, and its scope.
    fn last_label(&self, statement: u32) -> Option<(u32, u32)> {
        let labels = &self.context.function.labels;
        let last = labels.partition_point(|label| label.statement <= statement).checked_sub(1)?;
        let label = labels.get(last).filter(|label| label.statement == statement)?;
        let from = label.at + label.name.len() as u32;
        let end = self.context.function.statements[statement as usize].start;
        let colon = tokens(Span { start: from, end }.of(self.module.text)).find(|token| token.kind == Kind::Mark(b':'))?;
        Some((from + colon.span.end, label.scope))
    }

    /// The last statement of a block.
    fn last(&self, block: u32) -> u32 {
        self.context.graph.blocks[block as usize].end - 1
    }

    /// The predicate of a block's last statement as it is spelled, and whether it must hold for the branch to be taken.
    fn predicate(&self, block: u32) -> Option<(&'a str, bool)> {
        let at = self.context.function.statements[self.last(block) as usize];
        let text = Span { start: at.start, end: at.opcode }.of(self.module.text);
        let name = tokens(text).find(|token| token.kind == Kind::Word)?;
        Some((name.span.of(text), self.context.code.guard(self.last(block))?.1))
    }

    /// The guard of a block's last statement; empty without one. The user's own text may have a comment in it.
    fn guard(&self, block: u32) -> String {
        let spelled = |(name, holds)| format!("@{}{name}", if holds { "" } else { "!" });
        self.predicate(block).map(spelled).unwrap_or_default()
    }

    fn start_of(&self, statement: u32) -> u32 {
        self.context.function.statements[statement as usize].start
    }

    /// A loop in strips whose lengths are computed where each begins.
    fn strip<S: strips::Step>(&mut self, number: u32, place: Place, behind: u32, test: Test<'a>, counted: &Counted<'_, S>) {
        let name = self.counter();
        strips::strip(&mut self.edits.at(behind), name, counted, place.weight);
        let branch = self.last(test.block);
        let compares = self.context.function.statements[counted.test as usize];
        let is_same = !(counted.test + 1..branch).any(|between| self.changes_operands(between, counted.test));
        let comparison = Span { start: compares.opcode, end: compares.end }.of(self.module.text);
        let at = self.start_of(branch);
        strips::counted_test(&mut self.edits.at(at), name);
        self.come_out(number, name, test);
        if is_same {
            let _ = write!(self.edits.at(at), "{comparison};\n\t");
        }
        self.cold(number, place, name, test, None);
    }

    /// A loop in strips that end where the variable comes to.
    fn nearer(&mut self, number: u32, place: Place, behind: u32, test: Test<'a>, (counted, end): (&Counted<'_>, End<'_>)) {
        let name = self.counter();
        self.polled.front.push_str(&emit::declare_end(name, counted.width));
        strips::nearer(&mut self.edits.at(behind), name, counted, place.weight);
        let branch = self.last(test.block);
        let spelled = |statement: u32| {
            let at = self.context.function.statements[statement as usize];
            Span { start: at.opcode, end: at.end }.of(self.module.text)
        };
        let (other, again) = match end {
            End::Compared if (counted.test + 1..branch).any(|between| self.changes_operands(between, counted.test)) => {
                (None, String::new())
            }
            End::Compared => (None, format!("{};\n\t", spelled(counted.test))),
            End::Joined(joined) => {
                (Some((joined.other, joined.goes_on_if)), format!("{};\n\t{};\n\t", spelled(counted.test), spelled(joined.by)))
            }
            End::Elsewhere => (Some((test.predicate, test.goes_on_if)), String::new()),
        };
        let at = self.start_of(branch);
        strips::nearer_test(&mut self.edits.at(at), name, counted, other);
        self.come_out(number, name, test);
        self.edits.at(at).push(&again);
        self.cold(number, place, name, test, None);
    }

    /// The poll of a loop with one test: in front of the test where that branches back, else in front of the branch behind it.
    fn cold(&mut self, number: u32, place: Place, name: u32, test: Test<'a>, owes: Option<u32>) {
        let Test { block, taken, predicate, goes_on_if } = test;
        let latch = self.context.loops.first_latch(number).unwrap_or(block);
        let at = self.start_of(self.last(latch));
        place.poll_behind(&mut self.edits.at(at), name, taken.then_some((predicate, goes_on_if)), owes);
    }

    /// Whether a statement writes what a comparison reads.
    fn changes_operands(&self, statement: u32, comparison: u32) -> bool {
        let mut reads = Vec::new();
        self.context.code.each_read(comparison, |register| reads.push(register));
        let mut changes = false;
        self.context.code.each_written(statement, |register| changes |= reads.contains(&register));
        changes
    }

    /// A natural loop that pays in each iteration.
    fn chunk(&mut self, number: u32, place: Place, behind: u32, test: Option<Test<'a>>) {
        let one = &self.context.loops.all[number as usize];
        let header = self.context.graph.blocks[one.header as usize].first;
        // What stands in front of an indexed branch runs whichever way that takes: where each round comes by, it is enough.
        let passed = self.context.loops.first_latch(number).map(|latch| self.last(latch));
        if let Some(table) = passed.filter(|last| self.context.function.statements[*last as usize].flow == Flow::Table) {
            return self.count_here(table, place);
        }
        let name = self.new_number();
        emit::comes_back(&mut self.edits.at(behind), name);
        if let Some(test) = test {
            let at = self.start_of(self.last(test.block));
            emit::chunk_test(&mut self.edits.at(at), name, place.weight, test.predicate, test.goes_on_if);
            self.come_out(number, name, test);
            return self.cold(number, place, name, test, None);
        }
        for (latch, edge) in self.back_edges(number) {
            self.chunk_edge(name, place, latch, header, edge);
        }
    }

    fn chunk_edge(&mut self, name: u32, place: Place, latch: u32, header: u32, edge: Edge) {
        let last = self.last(latch);
        let statement = self.context.function.statements[last as usize];
        let is_jump = statement.flow == Flow::Branch && edge.when != Some(false);
        match statement.flow {
            Flow::Table => self.count_here(last, place),
            _ if !is_jump => {
                let at = before_label(self.context.function, header);
                place.chunk_always(&mut self.edits.at(at), name);
            }
            _ if !statement.guarded => place.chunk_always(&mut self.edits.at(statement.start), name),
            _ => {
                let Some((predicate, when)) = self.predicate(latch) else { return };
                let over = self.new_number();
                place.chunk_taken(&mut self.edits.at(statement.start), name, over, predicate, when);
            }
        }
    }

    /// Counts in front of a statement.
    fn count_here(&mut self, statement: u32, place: Place) {
        let name = self.new_number();
        let at = self.start_of(statement);
        place.count_here(&mut self.edits.at(at), name);
    }

    /// Counts on the back edges of a cycle without a single header.
    fn count_edges(&mut self, number: u32, place: Place) {
        for (latch, edge) in self.back_edges(number) {
            let last = self.last(latch);
            let flow = self.context.function.statements[last as usize].flow;
            if matches!(flow, Flow::Branch | Flow::Table) && edge.when != Some(false) {
                self.count_here(last, place);
            } else {
                let name = self.new_number();
                let header = self.context.graph.blocks[edge.to as usize].first;
                let at = before_label(self.context.function, header);
                place.count_here(&mut self.edits.at(at), name);
            }
        }
    }

    /// A poll in each round. Loops inside take from the allowance in each of them, and may never come to a poll of their own. So it gives a new one. With
    /// fuel what is left of the allowance is fuel, too.
    fn each(&mut self, number: u32, place: Place) {
        let renews = self.pays_inside[number as usize];
        for (latch, edge) in self.back_edges(number) {
            let last = self.last(latch);
            let statement = self.context.function.statements[last as usize];
            match statement.flow {
                Flow::Branch | Flow::Table if edge.when == Some(true) && statement.flow == Flow::Branch => {
                    let Some((predicate, when)) = self.predicate(latch) else { continue };
                    let over = self.new_number();
                    place.each_unless_over(&mut self.edits.at(statement.start), over, (predicate, when), renews);
                }
                Flow::Branch | Flow::Table if edge.when != Some(false) => {
                    place.each(&mut self.edits.at(statement.start), renews);
                }
                _ => {
                    let header = self.context.graph.blocks[edge.to as usize].first;
                    let at = before_label(self.context.function, header);
                    place.each(&mut self.edits.at(at), renews);
                }
            }
        }
    }

    /// The back edges of a loop. A table's edges to one header are one.
    fn back_edges(&self, number: u32) -> Vec<(u32, Edge)> {
        let Context { graph, loops, .. } = self.context;
        let to_header = |latch| graph.edges_to(latch, loops.all[number as usize].header).map(move |edge| (latch, edge));
        loops.latches(graph, number).into_iter().flat_map(to_header).collect()
    }
}

/// A site's number: even where threads may leave.
pub(in crate::polls) fn site_id(hash: u64, at: u32, traps: bool) -> u64 {
    let id = cuinstr_abi::sites::hash(hash, &at.to_le_bytes()) & !1;
    id.max(2) | u64::from(traps)
}
