//! The proof of a module: from proofs of single loops to the report.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::body::Body;
use crate::interpret::parameters::{self, NotZero};
use crate::interpret::pass::{Found, Pass};
use crate::interpret::slice::Slice;
use crate::interpret::slicing::Depth;
use crate::interpret::work::allotted;
use crate::module::call_graph::{Callee, Callees};
use crate::module::call_trees::{CallWeight, Live, TooMuch, Weighed};
use crate::module::marked::Marks;
use crate::module::report::{Assumption as Granted, Bound, Code, Fault, Linkage, Loop, Report, UnknownCall, Verdict};
use crate::module::source_location::SourceLocations;
use crate::module::stores;
use crate::program::cfg::{Components, Graph};
use crate::program::control_block::{CONTROL, FLAG};
use crate::rank::loops::{LoopProof, Proof, Why};
use crate::rank::nest::connected;
use crate::rank::precision::rounds;
use crate::rank::weight::Weight;
use cuinstr_ptx::{Function, Module, is_system};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// Deepest chain of calls that is followed for whether a callee stops.
const DEEPEST: u32 = 32;

/// Most ways to say of a function's parameters which are not zero.
const MOST_GIVEN: usize = 4;

/// Most kernels that are listed for a function.
const MOST_KERNELS: usize = 8;

/// Most lines of sources that are listed for a loop.
const MOST_LINES: usize = 64;

/// For each function its calls of functions of the module: statement and callee.
type Calls = [Vec<(u32, u32)>];

/// Functions that call each other.
struct Cycle {
    set: Vec<u32>,
    verdict: Verdict,
}

/// What is known of a whole module while its functions are looked at.
struct Whole<'a> {
    text: &'a str,
    module: &'a Module<'a>,
    graphs: &'a [Graph],
    callees: &'a Callees<'a>,
    marks: Marks,
    /// Whether a function returns if the flag says stop, by whether that is under `trap`, and by which of its parameters are not zero.
    returns: RefCell<BTreeMap<(usize, bool, NotZero), bool>>,
    depth: RefCell<u32>,
}

/// The report about a module.
pub(crate) fn report(text: &str, module: &Module<'_>) -> Report {
    let graphs: Vec<Graph> = module.functions.iter().map(Graph::new).collect();
    let callees = Callees::new(module, text);
    let marks = Marks::read(text, module);
    let whole = Whole { text, module, graphs: &graphs, callees: &callees, marks, returns: RefCell::default(), depth: RefCell::new(0) };
    whole.report()
}

impl<'a> Whole<'a> {
    fn report(&self) -> Report {
        let lines = Lines::new(self.text);
        let places = SourceLocations::new(self.text, self.module);
        let calls = self.calls();
        let mut report = Report {
            target: self.module.target.map(|target| target.of(self.text).to_owned()),
            kernels: self.module.functions.iter().filter(|function| function.is_kernel).map(|function| function.name.to_owned()).collect(),
            loops: Vec::new(),
            unknown: Vec::new(),
            faults: Vec::new(),
            assumptions: self.pointers(&lines),
            links: Vec::new(),
            marked: None,
        };
        for found in &self.module.faults {
            report.faults.push(fault(lines.number(found.at as usize), found.why));
        }
        // A variable of that name that is no control block would make loads of it look like polls.
        let is_other = self.module.variables.iter().any(|variable| variable.name == CONTROL && variable.space != ".global");
        let is_hidden = self.module.functions.iter().any(|function| {
            let registers = function.registers.iter().map(|declared| declared.name);
            let parameters = function.results.iter().chain(&function.parameters).map(|parameter| parameter.name);
            let variables = function.variables.iter().map(|variable| variable.name);
            registers.chain(parameters).chain(variables).any(|name| name == CONTROL)
        });
        if is_other || is_hidden {
            report.faults.push(fault(1, &format!("`{CONTROL}` is something else than a variable in global memory")));
        }
        for variable in self.module.variables.iter().filter(|variable| variable.name != CONTROL) {
            if variable.initial_names(self.text).any(|name| matches!(name, CONTROL | FLAG)) {
                let message = format!("`{}` holds the address of the control block or of the flag", variable.name);
                report.faults.push(Fault { line: lines.number(variable.at as usize), message, code: Code::ControlWritten });
            }
        }
        let mut components = Components::default();
        let all: Vec<Vec<LoopProof>> =
            (0..self.graphs.len()).map(|index| self.rounds(index, &mut components, &lines, &mut report)).collect();
        let cycles = self.cycles(&calls, &mut components);
        report.marked = self.marks.all(&calls, &callees_first(&calls));
        let kernels = self.kernels_by_function(&calls);
        for (index, too_much) in self.weigh(&calls, &all, &cycles, &mut report.links).into_iter().enumerate() {
            self.loops(index, (&all[index], &too_much), (&calls, &kernels), (&lines, &places), &mut report);
        }
        for cycle in &cycles {
            report.loops.extend(self.cycle(cycle, (&calls, &kernels), (&lines, &places)));
        }
        self.unknown(&mut report, &lines, &places);
        report.loops.sort_by_key(|found| (found.line, found.depth));
        report
    }

    /// The loops of a function, with what is proved of each by itself.
    fn rounds(&self, index: usize, components: &mut Components, lines: &Lines, report: &mut Report) -> Vec<LoopProof> {
        let (function, graph) = (&self.module.functions[index], &self.graphs[index]);
        for &statement in &graph.lost {
            let at = function.statements[statement as usize].start as usize;
            report.faults.push(fault(lines.number(at), "a branch to a label that is not there"));
        }
        let read = || cuinstr_ptx::Code::new(self.text, function);
        let mut code = mentions_control(self.text, function).then(read);
        if let Some(code) = &code {
            for (statement, what) in stores::forbidden(&Body::new(code, graph)) {
                let line = lines.number(function.statements[statement as usize].start as usize);
                report.faults.push(Fault { line, message: what.to_owned(), code: Code::ControlWritten });
            }
        }
        // Without an edge back in the text there is no cycle.
        if (0..graph.blocks.len() as u32).all(|block| graph.edges(block).iter().all(|edge| edge.to > block)) {
            return Vec::new();
        }
        let order = graph.reverse_postorder();
        let sets = connected(graph, &order, components);
        if sets.is_empty() {
            return Vec::new();
        }
        let code = code.take().unwrap_or_else(read);
        let mut body = Body::new(&code, graph);
        body.note_loops(&sets, &order);
        let returns = |statement: u32, assumption: Assumption, not_zero: NotZero| self.call_returns(index, statement, assumption, not_zero);
        let mut all: Vec<LoopProof> = Vec::new();
        let mut position = Vec::new();
        for new in rounds(&mut body, &order, &sets, (components, &mut position), &returns) {
            let offset = all.len();
            all.extend(new.into_iter().map(|round| LoopProof { parent: round.parent.map(|parent| parent + offset), ..round }));
        }
        all
    }

    /// What is too heavy in each function. Where something is, it is asked again by what a thread can still do once the flag is set.
    fn weigh(&self, calls: &Calls, all: &[Vec<LoopProof>], cycles: &[Cycle], links: &mut Vec<Linkage>) -> Vec<TooMuch> {
        let weighed = |index: usize| {
            let rounds = &all[index];
            let may_return = if rounds.is_empty() { Vec::new() } else { self.graphs[index].may_return(&self.module.functions[index]) };
            let returning = rounds.iter().map(|round| may_return[round.head as usize]).collect();
            Weighed::new(rounds, returning, &calls[index], |statement| self.block_of(index, statement))
        };
        let weighed: Vec<Weighed<'_>> = (0..calls.len()).map(weighed).collect();
        let mut lives = vec![Live::ANYTHING; calls.len()];
        for &index in cycles.iter().flat_map(|cycle| &cycle.set) {
            lives[index as usize] = self.live(index as usize);
        }
        let is_heavy = |found: &TooMuch| found.calls.is_some() || found.loops.iter().any(|weight| weight.is_too_much());
        let (mut weights, mut found) = self.weights(calls, &weighed, &lives);
        if found.iter().any(is_heavy) && !calls.iter().all(Vec::is_empty) {
            let lives: Vec<Live> = (0..calls.len()).map(|index| self.live(index)).collect();
            (weights, found) = self.weights(calls, &weighed, &lives);
        }
        *links = self.links(calls, &weighed, &weights);
        found
    }

    /// What a program is told of each function.
    fn links(&self, calls: &Calls, weighed: &[Weighed<'_>], weights: &[CallWeight]) -> Vec<Linkage> {
        let mut outside: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); calls.len()];
        let add = |outside: &mut BTreeMap<String, u64>, callee: &str, times: u64| {
            let known = outside.entry(callee.to_owned()).or_insert(0);
            *known = known.saturating_add(times);
        };
        for index in callees_first(calls) {
            let mut own = BTreeMap::new();
            let function = &self.module.functions[index];
            for at in function.calls.iter().map(|call| call.statement) {
                if let Callee::Unknown(callee) = self.callees.of(function, at) {
                    add(&mut own, callee, weighed[index].times(self.block_of(index, at)));
                }
            }
            for (statement, to) in calls[index].iter().filter(|(_, to)| !outside[*to as usize].is_empty()) {
                let times = weighed[index].times(self.block_of(index, *statement));
                for (callee, more) in &outside[*to as usize] {
                    add(&mut own, callee, times.saturating_mul(*more));
                }
            }
            outside[index] = own;
        }
        let functions = self.module.functions.iter().zip(outside).zip(weights);
        functions.map(|((function, calls), weight)| Linkage { function: function.name.to_owned(), weight: *weight, calls }).collect()
    }

    fn weights(&self, calls: &Calls, weighed: &[Weighed<'_>], lives: &[Live]) -> (Vec<CallWeight>, Vec<TooMuch>) {
        // In a cycle of calls that is polled, calls that no thread makes any more once the flag is set lead back.
        let live = |index: usize, statement: u32| {
            let blocks = lives[index].blocks.as_ref();
            blocks.is_none_or(|blocks| blocks.contains(&self.block_of(index, statement)))
        };
        let made: Vec<Vec<(u32, u32)>> = calls
            .iter()
            .enumerate()
            .map(|(index, all)| all.iter().filter(|(statement, _)| live(index, *statement)).copied().collect())
            .collect();
        let mut weights = vec![CallWeight::ONE; calls.len()];
        for index in callees_first(&made) {
            weights[index] = weighed[index].weight(&weights, lives, &lives[index]).unless_too_much();
        }
        let too_much = weighed.iter().map(|weighed| weighed.too_much(&weights, lives)).collect();
        (weights, too_much)
    }

    /// What a function may do once the flag is set.
    fn live(&self, index: usize) -> Live {
        let returns = self.returns(index, false, 0);
        let reached = |found: Found, order: &[u32]| {
            let states = order.iter().zip(found.states);
            states.filter(|(_, state)| state.is_some()).map(|(block, _)| *block).collect()
        };
        Live { blocks: Some(self.follow(index, false, 0, reached)), returns }
    }

    /// Describes the loops of a function, and a tree of calls that is too heavy.
    fn loops(
        &self,
        index: usize,
        (all, too_much): (&[LoopProof], &TooMuch),
        (calls, kernels): (&Calls, &[Vec<String>]),
        (lines, places): (&Lines, &SourceLocations<'_>),
        report: &mut Report,
    ) {
        let function = &self.module.functions[index];
        let labels: BTreeMap<u32, &str> =
            if all.is_empty() { BTreeMap::new() } else { function.labels.iter().map(|label| (label.statement, label.name)).collect() };
        for (round, weight) in all.iter().zip(&too_much.loops) {
            let verdict = self.verdict(index, round, *weight);
            let marked = self.marks.within(index, |statement| round.blocks.binary_search(&self.block_of(index, statement)).is_ok(), calls);
            let found = self.describe(index, round, verdict, &labels, (lines, places));
            report.loops.push(Loop { marked, kernels: kernels[index].clone(), ..found });
        }
        if let Some((weight, statement)) = too_much.calls {
            let place = places.find(function, statement);
            report.loops.push(Loop {
                function: function.name.to_owned(),
                kernels: kernels[index].clone(),
                verdict: Verdict::too_many(weight),
                line: lines.number(function.statements[statement as usize].start as usize),
                lines: place.iter().map(|place| (place.file.clone(), place.line)).collect(),
                place,
                blocks: vec![function.name.to_owned()],
                depth: 0,
                recursion: false,
                call_tree: true,
                marked: self.marks.within(index, |_| true, calls),
            });
        }
    }

    /// For each function the calls of functions of the module: statement and callee.
    fn calls(&self) -> Vec<Vec<(u32, u32)>> {
        let of = |function: &cuinstr_ptx::Function<'a>| {
            let mut found = Vec::new();
            for at in function.calls.iter().map(|call| call.statement) {
                match self.callees.of(function, at) {
                    Callee::Known(index) => found.push((at, index)),
                    Callee::Pointer(all) => found.extend(all.iter().map(|index| (at, *index))),
                    Callee::System | Callee::Unknown(_) => {}
                }
            }
            found
        };
        self.module.functions.iter().map(of).collect()
    }

    /// Calls through pointers in a module that others are linked to, the first of each function: they are taken to stay in the module.
    fn pointers(&self, lines: &Lines) -> Vec<Granted> {
        let is_shared = |function: &Function<'_>| {
            let head = function.head.of(self.text);
            !function.is_kernel && [".visible", ".weak"].iter().any(|directive| head.contains(directive))
        };
        let is_linked = self.module.functions.iter().any(is_shared)
            || self.module.prototypes.iter().any(|prototype| !is_system(prototype.name) && self.calls_outside(prototype.name));
        let first = |function: &Function<'a>| {
            let mut calls = function.calls.iter().map(|call| call.statement);
            let at = calls.find(|at| matches!(self.callees.of(function, *at), Callee::Pointer(_)))?;
            Some(Granted {
                function: function.name.to_owned(),
                line: lines.number(function.statements[at as usize].start as usize),
                message: "a call through a pointer leads to a function of this module, and not to one that is linked to it".to_owned(),
            })
        };
        if is_linked { self.module.functions.iter().filter_map(first).collect() } else { Vec::new() }
    }

    /// Whether a name that is declared is no function of the module.
    fn calls_outside(&self, name: &str) -> bool {
        self.module.functions.iter().all(|function| function.name != name)
    }

    /// The block of a function that the statement lies in.
    fn block_of(&self, function: usize, statement: u32) -> u32 {
        self.graphs[function].blocks.partition_point(|block| block.end <= statement) as u32
    }

    /// Whether a call returns to its caller.
    fn call_returns(&self, function: usize, statement: u32, assumption: Assumption, not_zero: NotZero) -> bool {
        if !assumption.asked {
            return true;
        }
        let function = &self.module.functions[function];
        match self.callees.of(function, statement) {
            Callee::Known(index) => self.returns(index as usize, assumption.trap, not_zero),
            Callee::Pointer(all) => all.iter().any(|index| self.returns(*index as usize, assumption.trap, 0)),
            Callee::System | Callee::Unknown(_) => true,
        }
    }

    /// Whether a function may return once the flag says stop.
    fn returns(&self, index: usize, trap: bool, not_zero: NotZero) -> bool {
        let key = (index, trap, not_zero);
        if let Some(known) = self.returns.borrow().get(&key) {
            return *known;
        }
        let many = self.returns.borrow().range((index, trap, 0)..=(index, trap, NotZero::MAX)).count() > MOST_GIVEN;
        if many || *self.depth.borrow() >= DEEPEST {
            return true;
        }
        // A function that is asked about while it is being looked at calls itself: then nothing is claimed.
        self.returns.borrow_mut().insert(key, true);
        *self.depth.borrow_mut() += 1;
        let answer = self.follow(index, trap, not_zero, |found, _| found.returns);
        *self.depth.borrow_mut() -= 1;
        self.returns.borrow_mut().insert(key, answer);
        answer
    }

    /// Follows a whole function from its entry with the flag saying stop.
    fn follow<T>(&self, index: usize, trap: bool, not_zero: NotZero, then: impl FnOnce(Found, &[u32]) -> T) -> T {
        let graph = &self.graphs[index];
        let place = graph.reverse_postorder();
        let mut order: Vec<u32> = (0..graph.blocks.len() as u32).filter(|block| place[*block as usize] != u32::MAX).collect();
        let code = cuinstr_ptx::Code::new(self.text, &self.module.functions[index]);
        let body = Body::new(&code, graph);
        let mut slice = Slice::new(&body, &order, Depth::Registers);
        parameters::take(&mut slice, &body, not_zero);
        order.sort_by_key(|block| place[*block as usize]);
        let start = State::default();
        let fixed = vec![false; slice.slots.len()];
        let pass = Pass {
            body: &body,
            slice: &slice,
            order: &order,
            position: &place,
            closed: &|_| false,
            assumption: Assumption { asked: true, late: 0, trap },
            returns: &|statement, assumption, not_zero| self.call_returns(index, statement, assumption, not_zero),
            head: None,
            choice: None,
            edge_cost: &|_, _| None,
            fixed: &fixed,
            asks_action: &Cell::new(false),
            allowed: allotted(&order, &slice),
        };
        let starts: &[(u32, State)] = if order.is_empty() { &[] } else { &[(0, start)] };
        let found = pass.run(starts);
        then(found, &order)
    }

    /// What is proved of a loop, with all that it holds and calls.
    fn verdict(&self, index: usize, round: &LoopProof, weight: Weight) -> Verdict {
        let not_polled = |why: &str| Verdict::NotPolled { why: why.to_owned() };
        match round.proof {
            Proof::TrapOnly => Verdict::TrapOnly,
            Proof::None(_) if self.waits(index, round) => Verdict::WaitsInHardware,
            Proof::None(Why::NoPoll) => not_polled("a round may pass without a poll, and nothing bounds them"),
            Proof::None(Why::GoesOn) => not_polled("it polls, but a round may pass without that, or go on after it"),
            Proof::None(Why::TooLarge) => not_polled("it was not looked at to the end: too large"),
            Proof::None(Why::TooDeep) => not_polled("it was not looked at: too many loops are around it"),
            _ if weight.is_too_much() => Verdict::too_many(weight),
            Proof::Polled => Verdict::Polled { rounds: 0 },
            Proof::PolledWithin(_) => Verdict::Polled { rounds: weight.rounds },
            Proof::Clock { .. } => Verdict::Bounded { by: Bound::Clock },
            Proof::Counted(_) => Verdict::Bounded { by: Bound::Rounds(weight.rounds) },
        }
    }

    /// Whether what is left of a loop waits for a barrier that hardware moves on.
    fn waits(&self, index: usize, round: &LoopProof) -> bool {
        let (function, graph) = (&self.module.functions[index], &self.graphs[index]);
        round.left.iter().any(|block| {
            let block = graph.blocks[*block as usize];
            function.statements[block.first as usize..block.end as usize].iter().any(|statement| {
                let opcode = statement.whole_opcode(self.text);
                opcode.starts_with("mbarrier.try_wait") || opcode.starts_with("mbarrier.test_wait")
            })
        })
    }

    fn describe(
        &self,
        index: usize,
        round: &LoopProof,
        verdict: Verdict,
        labels: &BTreeMap<u32, &str>,
        (lines, places): (&Lines, &SourceLocations<'_>),
    ) -> Loop {
        let (function, graph) = (&self.module.functions[index], &self.graphs[index]);
        let is_shown = |block: &&u32| graph.last(**block).is_some();
        let shown = || if round.left.is_empty() { &round.blocks } else { &round.left }.iter().filter(is_shown);
        // A round ends with a jump back to the head; its place is the loop's keyword or condition.
        let back = shown().filter(|block| graph.edges(**block).iter().any(|edge| edge.to == round.head));
        let place = back.rev().chain(shown()).find_map(|block| places.find(function, graph.last(*block)?));
        let mut found = BTreeSet::new();
        for block in &round.blocks {
            let block = graph.blocks[*block as usize];
            found.extend(
                (block.first..block.end)
                    .filter_map(|statement| SourceLocations::line(function, statement))
                    .map(|point| (point.file, point.line)),
            );
        }
        let lines_of_sources = found.into_iter().take(MOST_LINES).map(|(file, line)| (places.file(file), line)).collect();
        let at = |block: u32| function.statements[graph.blocks[block as usize].first as usize].start as usize;
        let head = Some(&round.head).filter(is_shown).or(round.blocks.iter().find(is_shown)).copied().unwrap_or(0);
        let label = |block: &u32| {
            let first = graph.blocks[*block as usize].first;
            labels.get(&first).map_or_else(|| format!("line {}", lines.number(at(*block))), |label| (*label).to_owned())
        };
        Loop {
            function: function.name.to_owned(),
            kernels: Vec::new(),
            verdict,
            line: lines.number(at(head)),
            place,
            lines: lines_of_sources,
            blocks: shown().take(MOST_LINES).map(label).collect(),
            depth: round.depth,
            recursion: false,
            call_tree: false,
            marked: Vec::new(),
        }
    }

    /// Kernels that reach each function, the first few.
    fn kernels_by_function(&self, calls: &Calls) -> Vec<Vec<String>> {
        let mut reached: Vec<Vec<usize>> = vec![Vec::new(); calls.len()];
        for kernel in (0..calls.len()).filter(|index| self.module.functions[*index].is_kernel) {
            let mut work = vec![kernel];
            while let Some(function) = work.pop() {
                if reached[function].last() == Some(&kernel) || reached[function].len() >= MOST_KERNELS {
                    continue;
                }
                reached[function].push(kernel);
                work.extend(calls[function].iter().map(|(_, to)| *to as usize));
            }
        }
        let name = |kernel: usize| self.module.functions[kernel].name.to_owned();
        reached.into_iter().map(|kernels| kernels.into_iter().map(name).collect()).collect()
    }

    /// Cycles of calls: what is left of them once calls are taken out that no thread makes after the flag said stop.
    fn cycles(&self, calls: &Calls, components: &mut Components) -> Vec<Cycle> {
        let nodes: Vec<u32> = (0..calls.len() as u32).collect();
        let sets = components.find(calls.len(), &nodes, |from, nth| calls[from as usize].get(nth as usize).map(|(_, to)| Some(*to)));
        let mut found = Vec::with_capacity(sets.len());
        for mut set in sets {
            set.sort_unstable();
            let mut is_cut = |trap: bool| {
                let made: BTreeMap<u32, Vec<u32>> = set
                    .iter()
                    .map(|&index| {
                        let reached = self.follow(index as usize, trap, 0, |found, order| {
                            order
                                .iter()
                                .zip(&found.states)
                                .filter(|(_, state)| state.is_some())
                                .map(|(block, _)| *block)
                                .collect::<BTreeSet<_>>()
                        });
                        let all = calls[index as usize].iter().filter(|(at, _)| reached.contains(&self.block_of(index as usize, *at)));
                        (index, all.map(|(_, to)| *to).collect())
                    })
                    .collect();
                let next = |from: u32, nth: u32| made.get(&from).and_then(|all| all.get(nth as usize)).map(|to| Some(*to));
                components.find(calls.len(), &set, |from, nth| next(from, nth).map(|to| to.filter(|to| made.contains_key(to)))).is_empty()
            };
            let verdict = if is_cut(false) {
                Verdict::Polled { rounds: 0 }
            } else if is_cut(true) {
                Verdict::TrapOnly
            } else {
                Verdict::NotPolled { why: "functions call each other without a poll on the way".to_owned() }
            };
            found.push(Cycle { set, verdict });
        }
        found
    }

    /// Describes a cycle of calls.
    fn cycle(
        &self,
        cycle: &Cycle,
        (calls, kernels): (&Calls, &[Vec<String>]),
        (lines, places): (&Lines, &SourceLocations<'_>),
    ) -> Option<Loop> {
        let set = &cycle.set;
        let first = *set.first()?;
        let function = &self.module.functions[first as usize];
        let call = calls[first as usize].iter().find(|(_, to)| set.binary_search(to).is_ok());
        let place = call.and_then(|(statement, _)| places.find(function, *statement));
        Some(Loop {
            function: function.name.to_owned(),
            kernels: kernels[first as usize].clone(),
            verdict: cycle.verdict.clone(),
            line: lines.number(function.at.start as usize),
            lines: place.iter().map(|place| (place.file.clone(), place.line)).collect(),
            place,
            blocks: set.iter().map(|index| self.module.functions[*index as usize].name.to_owned()).collect(),
            depth: 0,
            recursion: true,
            call_tree: false,
            marked: set.iter().flat_map(|index| self.marks.within(*index as usize, |_| true, calls)).collect(),
        })
    }

    fn unknown(&self, report: &mut Report, lines: &Lines, places: &SourceLocations<'_>) {
        for function in &self.module.functions {
            let mut seen = BTreeSet::new();
            for statement in function.calls.iter().map(|call| call.statement) {
                if let Callee::Unknown(callee) = self.callees.of(function, statement)
                    && seen.insert(callee)
                {
                    report.unknown.push(UnknownCall {
                        function: function.name.to_owned(),
                        callee: callee.to_owned(),
                        line: lines.number(function.statements[statement as usize].start as usize),
                        place: places.find(function, statement),
                    });
                }
            }
        }
    }
}

fn fault(line: usize, message: &str) -> Fault {
    Fault { line, message: message.to_owned(), code: Code::UnsoundPtx }
}

/// Whether a function names the control block or the flag.
fn mentions_control(text: &str, function: &Function<'_>) -> bool {
    let (Some(first), Some(last)) = (function.statements.first(), function.statements.last()) else { return false };
    let text = &text.as_bytes()[first.start as usize..last.end as usize];
    [CONTROL, FLAG].iter().any(|name| memchr::memmem::find(text, name.as_bytes()).is_some())
}

/// The functions, each behind those that it calls as far as that is possible.
fn callees_first(calls: &Calls) -> Vec<usize> {
    let mut seen = vec![false; calls.len()];
    let mut order = Vec::with_capacity(calls.len());
    for root in 0..calls.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((function, next)) = work.pop() {
            match calls[function].get(next) {
                Some((_, to)) => {
                    work.push((function, next + 1));
                    if !std::mem::replace(&mut seen[*to as usize], true) {
                        work.push((*to as usize, 0));
                    }
                }
                None => order.push(function),
            }
        }
    }
    order
}

/// Where lines begin; only built where something is to be said.
struct Lines {
    starts: Vec<u32>,
}

impl Lines {
    fn new(text: &str) -> Self {
        Self { starts: std::iter::once(0).chain(text.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next)).collect() }
    }

    fn number(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= offset)
    }
}
