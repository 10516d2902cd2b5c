//! One function: which form each of its cycles gets, and the insertions that make it.

use super::counted::{Context, Counted, Declared};
use super::emit::{self, Cold};
use super::find::{Loops, Writers};
use super::insert;
use crate::apply::Edit;
use crate::options::Polls;
use cuinstr_abi::sites::Form;
use cuinstr_ptx::{Code, Edge, Flow, Function, Graph, Kind, Span, tokens};

/// Statements, by weight, that a thread should run between two polls.
const BUDGET: u32 = 2048;

/// Least and most iterations of a strip. ptxas unrolls loops by powers of two, so strips are multiples of 16.
const INTERVAL: std::ops::RangeInclusive<u32> = 16..=4096;

/// Most statements of a loop with constant trips that is left alone.
const MOST_ALONE: u64 = 1024;

/// Iterations that a loop is taken to run when the loop around it is weighed.
const LIKELY_TRIPS: u32 = 16;

/// What is common to the functions of a module.
pub(super) struct Module<'m> {
    pub(super) text: &'m str,
    pub(super) polls: Polls,
    pub(super) hash: u64,
}

/// A place that repeats, with the offset that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    /// Odd where threads trap rather than leave.
    pub(super) id: u64,
    /// Offset in the text.
    pub(super) at: u32,
    /// The first statement of it.
    pub(super) statement: u32,
    pub(super) form: Form,
    pub(super) is_loop: bool,
}

/// How threads of a function come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) cold: Cold,
    /// Whether leaving is not defined, so that threads trap.
    pub(super) traps: bool,
}

/// What is put into a function.
pub(super) struct Polled {
    pub(super) sites: Vec<Site>,
    /// Statements that lead nowhere that can be found.
    pub(super) lost: Vec<u32>,
    /// Text for the front of the body.
    front: String,
}

/// Puts polls into the cycles of a function. `next` numbers names of the module.
pub(super) fn poll_cycles(module: &Module<'_>, function: &Function<'_>, way: Way, edits: &mut Vec<Edit>, next: &mut u32) -> Polled {
    let mut graph = Graph::new(function);
    let loops = Loops::new(&graph);
    let mut polled = Polled { sites: Vec::new(), lost: std::mem::take(&mut graph.lost), front: String::new() };
    if loops.all.is_empty() {
        return polled;
    }
    let code = Code::new(module.text, function);
    let writers = Writers::new(function, &code);
    let declared = Declared::new(function);
    let context =
        Context { text: module.text, function, code: &code, graph: &graph, loops: &loops, writers: &writers, declared: &declared };
    let intervals = intervals(&context, module.polls);
    let mut placer = Placer { plain: plain(&context), module, context, way, edits, next, polled: &mut polled };
    // Inner loops first: where one branch ends an inner loop and begins the next round of the outer one, the inner loop's test comes first.
    for number in (0..loops.all.len() as u32).rev() {
        placer.place(number, intervals[number as usize]);
    }
    polled
}

impl Polled {
    /// Puts declarations, and what else stands first, into the body.
    pub(super) fn open(self, function: &Function<'_>, before: &str, edits: &mut Vec<Edit>) -> Vec<Site> {
        if !self.front.is_empty() || !before.is_empty() {
            insert(edits, function.body.start + 1, format!("{}{before}\n", self.front));
        }
        self.sites
    }
}

/// Iterations of each loop between two polls: as many as keep the weight near the budget.
fn intervals(context: &Context<'_, '_>, polls: Polls) -> Vec<u32> {
    let loops = &context.loops.all;
    if polls == Polls::Each {
        return vec![1; loops.len()];
    }
    let mut weights: Vec<u32> = loops.iter().map(|one| one.statements).collect();
    for (block, number) in context.graph.blocks.iter().zip(0..) {
        let inner = context.loops.innermost(number);
        if let Some(weight) = weights.get_mut(inner as usize) {
            for statement in block.first..block.end {
                *weight = weight.saturating_add(weight_of(context.code.opcode(statement)));
            }
        }
    }
    for number in (0..loops.len()).rev() {
        let outer = loops[number].outer as usize;
        let inside = weights[number].saturating_mul(LIKELY_TRIPS);
        if let Some(weight) = weights.get_mut(outer) {
            *weight = weight.saturating_add(inside);
        }
    }
    // One that waits asks in each round: what it waits for may take as long as it likes.
    let interval =
        |weight: u32| if weight >= WAIT { 1 } else { ((BUDGET / weight.max(1)) & !15).clamp(*INTERVAL.start(), *INTERVAL.end()) };
    weights.into_iter().map(interval).collect()
}

/// The weight of an instruction that waits.
const WAIT: u32 = 1 << 20;

/// What an instruction weighs beyond one.
fn weight_of(opcode: &str) -> u32 {
    let mut parts = opcode.split('.');
    let head = parts.next().unwrap_or("");
    let has = |part: &str| opcode.split('.').any(|other| other == part);
    match head {
        "nanosleep" => WAIT,
        "mbarrier" if has("try_wait") || has("test_wait") => WAIT,
        "ld" | "st" if has("param") || has("shared") || has("const") || has("local") => 0,
        "ld" | "st" | "ldu" => 7,
        "atom" | "red" | "tex" | "tld4" | "suld" => 15,
        "bar" | "barrier" | "call" | "fence" | "membar" => 15,
        _ => 0,
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

/// Loops without a call or another loop inside.
fn plain(context: &Context<'_, '_>) -> Vec<bool> {
    let mut plain = vec![true; context.loops.all.len()];
    for (block, number) in context.graph.blocks.iter().zip(0..) {
        // A call ends its block.
        if context.function.statements[block.end as usize - 1].flow == Flow::Call
            && let Some(plain) = plain.get_mut(context.loops.innermost(number) as usize)
        {
            *plain = false;
        }
    }
    for one in &context.loops.all {
        if let Some(outer) = plain.get_mut(one.outer as usize) {
            *outer = false;
        }
    }
    plain
}

struct Placer<'p, 'a> {
    plain: Vec<bool>,
    module: &'p Module<'a>,
    context: Context<'p, 'a>,
    way: Way,
    edits: &'p mut Vec<Edit>,
    next: &'p mut u32,
    polled: &'p mut Polled,
}

impl<'a> Placer<'_, 'a> {
    fn place(&mut self, number: u32, interval: u32) {
        let one = &self.context.loops.all[number as usize];
        let header = self.context.graph.blocks[one.header as usize];
        let at = self.context.function.statements[header.first as usize].start;
        let site = site_id(self.module.hash, at, self.way.traps);
        let form = if interval == 1 {
            self.each(number, site);
            Form::Each
        } else if !one.is_natural || self.behind_label(header.first).is_none() {
            self.count_edges(number, site, interval);
            Form::CountDown
        } else {
            let test = self.test(number);
            let counted = test.and_then(|test| self.context.counted(number, test.block, test.taken));
            let trips = counted.as_ref().and_then(|counted| self.context.constant_trips(number, counted));
            if trips.is_some_and(|trips| self.is_short(number, trips)) {
                Form::None
            } else if let (Some(test), Some(counted)) = (test, counted) {
                self.strip(number, site, interval, test, &counted);
                Form::Strip
            } else {
                self.chunk(number, site, interval, test);
                Form::Chunk
            }
        };
        self.polled.sites.push(Site { id: site, at, statement: header.first, form, is_loop: true });
    }

    fn test(&self, number: u32) -> Option<Test<'a>> {
        let (block, taken) = self.context.test_of(number)?;
        let (predicate, when) = self.predicate(block)?;
        Some(Test { block, taken, predicate, goes_on_if: taken == when })
    }

    /// Whether a loop with constant trips is left alone: it runs few statements, and holds no other loop and no call.
    fn is_short(&self, number: u32, trips: u64) -> bool {
        self.plain[number as usize] && trips.saturating_mul(self.context.loops.all[number as usize].statements.into()) <= MOST_ALONE
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

    /// Offset behind the last label of a statement.
    fn behind_label(&self, statement: u32) -> Option<u32> {
        let labels = &self.context.function.labels;
        let last = labels.partition_point(|label| label.statement <= statement).checked_sub(1)?;
        let label = labels.get(last).filter(|label| label.statement == statement)?;
        let from = label.at + label.name.len() as u32;
        let end = self.context.function.statements[statement as usize].start;
        let colon = tokens(Span { start: from, end }.of(self.module.text)).find(|token| token.kind == Kind::Mark(b':'))?;
        Some(from + colon.span.end)
    }

    /// Offset in front of the first label of a statement.
    fn before_label(&self, statement: u32) -> u32 {
        let labels = &self.context.function.labels;
        let first = labels.partition_point(|label| label.statement < statement);
        let label = labels.get(first).filter(|label| label.statement == statement);
        label.map_or(self.context.function.statements[statement as usize].start, |label| label.at)
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

    fn start_of(&self, statement: u32) -> u32 {
        self.context.function.statements[statement as usize].start
    }

    /// A loop in strips whose lengths are computed where each begins.
    fn strip(&mut self, number: u32, site: u64, interval: u32, test: Test<'a>, counted: &Counted<'_>) {
        let name = self.counter();
        let header = self.context.graph.blocks[self.context.loops.all[number as usize].header as usize].first;
        if let Some(at) = self.behind_label(header) {
            insert(self.edits, at, emit::strip(name, counted, interval));
        }
        let branch = self.last(test.block);
        let compares = self.context.function.statements[counted.test as usize];
        let is_same = !(counted.test + 1..branch).any(|between| self.changes_operands(between, counted.test));
        let comparison = Span { start: compares.opcode, end: compares.end }.of(self.module.text);
        let comparison = if is_same { format!("{comparison};\n\t") } else { String::new() };
        insert(self.edits, self.start_of(branch), emit::counted_test(name, &comparison));
        self.cold(number, site, name, test);
    }

    /// The poll of a loop with one test: in front of the test where that branches back, else in front of the branch behind it.
    fn cold(&mut self, number: u32, site: u64, name: u32, test: Test<'a>) {
        let Test { block, taken, predicate, goes_on_if } = test;
        if taken {
            insert(self.edits, self.start_of(self.last(block)), emit::guarded_poll(name, site, self.way.cold, predicate, goes_on_if));
        } else {
            let latch = self.context.loops.all[number as usize].latches[0];
            insert(self.edits, self.start_of(self.last(latch)), emit::each(site, self.way.cold));
        }
    }

    /// Whether a statement writes what a comparison reads.
    fn changes_operands(&self, statement: u32, comparison: u32) -> bool {
        let mut reads = Vec::new();
        self.context.code.each_read(comparison, |register| reads.push(register));
        let mut changes = false;
        self.context.code.each_written(statement, |register| changes |= reads.contains(&register));
        changes
    }

    /// A natural loop in chunks of a constant number of iterations.
    fn chunk(&mut self, number: u32, site: u64, interval: u32, test: Option<Test<'a>>) {
        let one = &self.context.loops.all[number as usize];
        let header = self.context.graph.blocks[one.header as usize].first;
        let (header_block, latches) = (one.header, one.latches.clone());
        // What stands in front of an indexed branch runs whichever way that takes: where each round comes by, it is enough.
        let is_passed = |table: &u32| latches.iter().all(|latch| self.context.loops.dominates(*table, *latch));
        let mut tables = latches.iter().filter(|latch| self.context.function.statements[self.last(**latch) as usize].flow == Flow::Table);
        if let Some(table) = tables.find(|latch| is_passed(latch)) {
            return self.count_here(self.last(*table), site, interval);
        }
        let name = self.counter();
        if let Some(at) = self.behind_label(header) {
            insert(self.edits, at, emit::chunk(name, interval));
        }
        if let Some(test) = test {
            insert(self.edits, self.start_of(self.last(test.block)), emit::chunk_test(name, test.predicate, test.goes_on_if));
            return self.cold(number, site, name, test);
        }
        for latch in latches {
            let edges: Vec<Edge> = self.context.graph.edges(latch).filter(|edge| edge.to == header_block).collect();
            for edge in edges {
                self.chunk_edge(name, site, interval, latch, header, edge);
            }
        }
    }

    fn chunk_edge(&mut self, name: u32, site: u64, interval: u32, latch: u32, header: u32, edge: Edge) {
        let last = self.last(latch);
        let statement = self.context.function.statements[last as usize];
        let is_jump = statement.flow == Flow::Branch && edge.when != Some(false);
        match statement.flow {
            Flow::Table => self.count_here(last, site, interval),
            _ if !is_jump => {
                let at = self.before_label(header);
                insert(self.edits, at, emit::chunk_always(name, site, self.way.cold));
            }
            _ if !statement.guarded => insert(self.edits, statement.start, emit::chunk_always(name, site, self.way.cold)),
            _ => {
                let Some((predicate, when)) = self.predicate(latch) else { return };
                let over = self.new_number();
                insert(self.edits, statement.start, emit::chunk_taken(name, over, site, self.way.cold, predicate, when));
            }
        }
    }

    /// A counter of its own in front of a statement.
    fn count_here(&mut self, statement: u32, site: u64, interval: u32) {
        let name = self.counter();
        self.polled.front.push_str(&emit::preset(name, interval));
        insert(self.edits, self.start_of(statement), emit::count_here(name, interval, site, self.way.cold));
    }

    /// Counters on the back edges of a cycle without a single header.
    fn count_edges(&mut self, number: u32, site: u64, interval: u32) {
        for (latch, edge) in self.back_edges(number) {
            let last = self.last(latch);
            let flow = self.context.function.statements[last as usize].flow;
            if matches!(flow, Flow::Branch | Flow::Table) && edge.when != Some(false) {
                self.count_here(last, site, interval);
            } else {
                let name = self.counter();
                self.polled.front.push_str(&emit::preset(name, interval));
                let header = self.context.graph.blocks[edge.to as usize].first;
                let at = self.before_label(header);
                insert(self.edits, at, emit::count_here(name, interval, site, self.way.cold));
            }
        }
    }

    /// A poll in each round.
    fn each(&mut self, number: u32, site: u64) {
        for (latch, edge) in self.back_edges(number) {
            let last = self.last(latch);
            let statement = self.context.function.statements[last as usize];
            match statement.flow {
                Flow::Branch | Flow::Table if edge.when == Some(true) && statement.flow == Flow::Branch => {
                    let Some((predicate, when)) = self.predicate(latch) else { continue };
                    let over = self.new_number();
                    insert(self.edits, statement.start, emit::guarded_poll(over, site, self.way.cold, predicate, when));
                }
                Flow::Branch | Flow::Table if edge.when != Some(false) => {
                    insert(self.edits, statement.start, emit::each(site, self.way.cold));
                }
                _ => {
                    let header = self.context.graph.blocks[edge.to as usize].first;
                    let at = self.before_label(header);
                    insert(self.edits, at, emit::each(site, self.way.cold));
                }
            }
        }
    }

    /// The back edges of a loop. A table's edges to one header are one.
    fn back_edges(&self, number: u32) -> Vec<(u32, Edge)> {
        let one = &self.context.loops.all[number as usize];
        let mut edges = Vec::new();
        for &latch in &one.latches {
            edges.extend(self.context.graph.edges(latch).filter(|edge| edge.to == one.header).map(|edge| (latch, edge)));
        }
        edges
    }
}

/// A site's number: even where threads may leave.
pub(super) fn site_id(hash: u64, at: u32, traps: bool) -> u64 {
    let id = cuinstr_abi::sites::hash(hash, &at.to_le_bytes()) & !1;
    id.max(2) | u64::from(traps)
}
