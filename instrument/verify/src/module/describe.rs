//! The report's entries: loops, call trees, cycles of calls and unknown callees, with their names, lines and places.

use crate::module::call_graph::{Callee, Calls};
use crate::module::call_trees::TooMuch;
use crate::module::functions::Functions;
use crate::module::marked::Marks;
use crate::module::recursion::Recursion;
use crate::module::report::{Loop, UnknownCall, Verdict};
use crate::module::source_location::{Lines, SourceLocations};
use crate::rank::loops::LoopProof;
use crate::rank::weight::Weight;
use cuinstr_ptx::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Most kernels that are listed for a function.
const MOST_KERNELS: usize = 8;

/// Most lines of sources that are listed for a loop.
const MOST_LINES: usize = 64;

/// What entries of a report are made of.
pub(crate) struct Describer<'d, 'a> {
    functions: &'d Functions<'a>,
    marks: &'d Marks,
    lines: &'d Lines,
    places: SourceLocations<'a>,
    /// For each function the kernels that reach it, the first few.
    kernels: Vec<Vec<String>>,
}

impl<'d, 'a> Describer<'d, 'a> {
    pub(crate) fn new(functions: &'d Functions<'a>, marks: &'d Marks, lines: &'d Lines) -> Self {
        let places = SourceLocations::new(functions.text, functions.module);
        Self { functions, marks, lines, places, kernels: kernels_by_function(functions.module, &functions.calls) }
    }

    /// The loops of a function, with what `verdict` says of each, and its calls if they weigh too much together.
    pub(crate) fn loops(
        &self,
        index: usize,
        all: &[LoopProof],
        too_much: &TooMuch,
        verdict: impl Fn(&LoopProof, Weight) -> Verdict,
    ) -> Vec<Loop> {
        let function = &self.functions.module.functions[index];
        let labels: BTreeMap<u32, &str> =
            if all.is_empty() { BTreeMap::new() } else { function.labels.iter().map(|label| (label.statement, label.name)).collect() };
        let described =
            all.iter().zip(&too_much.loops).map(|(proof, weight)| self.one_loop(index, proof, verdict(proof, *weight), &labels));
        described.chain(too_much.calls.map(|(weight, statement)| self.call_tree(index, weight, statement))).collect()
    }

    fn one_loop(&self, index: usize, proof: &LoopProof, verdict: Verdict, labels: &BTreeMap<u32, &str>) -> Loop {
        let (function, graph) = (&self.functions.module.functions[index], &self.functions.graphs[index]);
        let is_shown = |block: &&u32| graph.last(**block).is_some();
        let shown = || if proof.left.is_empty() { &proof.blocks } else { &proof.left }.iter().filter(is_shown);
        // A round ends with a jump back to the head; its place is the loop's keyword or condition.
        let back = shown().filter(|block| graph.edges(**block).iter().any(|edge| edge.to == proof.head));
        let place = back.rev().chain(shown()).find_map(|block| self.places.find(function, graph.last(*block)?));
        let mut found = BTreeSet::new();
        for block in &proof.blocks {
            let block = graph.blocks[*block as usize];
            found.extend(
                (block.first..block.end)
                    .filter_map(|statement| SourceLocations::line(function, statement))
                    .map(|point| (point.file, point.line)),
            );
        }
        let at = |block: u32| self.lines.of(function, graph.blocks[block as usize].first);
        let head = Some(&proof.head).filter(is_shown).or(proof.blocks.iter().find(is_shown)).copied().unwrap_or(0);
        let label = |block: &u32| {
            let first = graph.blocks[*block as usize].first;
            labels.get(&first).map_or_else(|| format!("line {}", at(*block)), |label| (*label).to_owned())
        };
        let is_within = |statement| proof.blocks.binary_search(&self.functions.block_of(index, statement)).is_ok();
        Loop {
            function: function.name.to_owned(),
            kernels: self.kernels[index].clone(),
            verdict,
            line: at(head),
            place,
            lines: found.into_iter().take(MOST_LINES).map(|(file, line)| (self.places.file(file), line)).collect(),
            blocks: shown().take(MOST_LINES).map(label).collect(),
            depth: proof.depth,
            recursion: false,
            call_tree: false,
            marked: self.marks.within(index, is_within, &self.functions.calls),
        }
    }

    /// A function whose calls weigh too much together; `statement` is one of them.
    fn call_tree(&self, index: usize, weight: Weight, statement: u32) -> Loop {
        let function = &self.functions.module.functions[index];
        let place = self.places.find(function, statement);
        Loop {
            function: function.name.to_owned(),
            kernels: self.kernels[index].clone(),
            verdict: Verdict::too_many(weight),
            line: self.lines.of(function, statement),
            lines: place.iter().map(|place| (place.file.clone(), place.line)).collect(),
            place,
            blocks: vec![function.name.to_owned()],
            depth: 0,
            recursion: false,
            call_tree: true,
            marked: self.marks.within(index, |_| true, &self.functions.calls),
        }
    }

    /// A cycle of calls.
    pub(crate) fn recursion(&self, Recursion { set, verdict }: &Recursion) -> Option<Loop> {
        let (functions, calls) = (&self.functions.module.functions, &self.functions.leads_to);
        let first = *set.first()? as usize;
        let function = &functions[first];
        let call = calls[first].iter().find(|(_, to)| set.binary_search(to).is_ok());
        let place = call.and_then(|(statement, _)| self.places.find(function, *statement));
        Some(Loop {
            function: function.name.to_owned(),
            kernels: self.kernels[first].clone(),
            verdict: verdict.clone(),
            line: self.lines.number(function.at.start as usize),
            lines: place.iter().map(|place| (place.file.clone(), place.line)).collect(),
            place,
            blocks: set.iter().map(|index| functions[*index as usize].name.to_owned()).collect(),
            depth: 0,
            recursion: true,
            call_tree: false,
            marked: set.iter().flat_map(|index| self.marks.within(*index as usize, |_| true, calls)).collect(),
        })
    }

    /// Calls of functions that are not in sight, each callee once for each function.
    pub(crate) fn unknown(&self) -> Vec<UnknownCall> {
        let mut all = Vec::new();
        for function in &self.functions.module.functions {
            let mut seen = BTreeSet::new();
            for statement in function.calls.iter().map(|call| call.statement) {
                if let Callee::Unknown(callee) = self.functions.callees.of(function, statement)
                    && seen.insert(callee)
                {
                    all.push(UnknownCall {
                        function: function.name.to_owned(),
                        callee: callee.to_owned(),
                        line: self.lines.of(function, statement),
                        place: self.places.find(function, statement),
                    });
                }
            }
        }
        all
    }
}

/// Kernels that reach each function, the first few.
fn kernels_by_function(module: &Module<'_>, calls: &Calls) -> Vec<Vec<String>> {
    let mut reached: Vec<Vec<usize>> = vec![Vec::new(); calls.len()];
    for kernel in (0..calls.len()).filter(|index| module.functions[*index].is_kernel) {
        let mut work = vec![kernel];
        while let Some(function) = work.pop() {
            if reached[function].last() == Some(&kernel) || reached[function].len() >= MOST_KERNELS {
                continue;
            }
            reached[function].push(kernel);
            work.extend(calls[function].iter().map(|(_, to)| *to as usize));
        }
    }
    let name = |kernel: usize| module.functions[kernel].name.to_owned();
    reached.into_iter().map(|kernels| kernels.into_iter().map(name).collect()).collect()
}
