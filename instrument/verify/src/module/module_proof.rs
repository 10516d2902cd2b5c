//! The proof of a module: from proofs of single loops to the report.

use crate::domain::value::Assumption;
use crate::interpret::parameters::NotZero;
use crate::module::call_graph::{Callee, callees_first};
use crate::module::describe::Describer;
use crate::module::functions::{Answers, Functions};
use crate::module::marked::Marks;
use crate::module::recursion;
use crate::module::report::{Assumption as Granted, Bound, Code, Fault, Report, Verdict};
use crate::module::source_location::Lines;
use crate::module::stores::{self, Surroundings};
use crate::module::weights::weigh;
use crate::program::cfg::Components;
use crate::program::control_block::{CONTROL, CONTROL_ALIGN, CONTROL_BYTES, FLAG, FLAG_LINE};
use crate::rank::loops::{LoopProof, Proof, Why};
use crate::rank::nest::connected;
use crate::rank::precision::rounds;
use crate::rank::weight::Weight;
use cuinstr_ptx::{Function, Module, Run, each_share, is_system};
use std::ops::Range;

/// The report about a module.
pub(crate) fn report(text: &str, module: &Module<'_>, run: &Run<'_>) -> Report {
    let functions = Functions::new(text, module);
    let lines = Lines::new(text);
    let mut faults: Vec<Fault> = module.faults.iter().map(|found| fault(lines.number(found.at as usize), found.why)).collect();
    faults.extend(misnamed(text, module, &lines));
    faults.extend(misshapen(module, functions.passes_by_cache, &lines));
    let mut all: Vec<Vec<LoopProof>> = Vec::with_capacity(module.functions.len());
    let mut assumptions = pointers(&functions, &lines);
    for (proofs, more, taken) in each_share(&module.functions, run, |share| prove_all(&functions, share, &lines)) {
        all.extend(proofs);
        faults.extend(more);
        assumptions.extend(taken);
    }
    let answers = Answers::new(&functions);
    let mut recursions = recursion::find(&functions, &answers, &mut Components::default());
    let (heavy, linkages) = weigh((&functions, &answers), &all, &recursions);
    for (function, weight) in heavy.cycles {
        let recursion = recursions.iter_mut().find(|recursion| recursion.set.binary_search(&function).is_ok());
        if let Some(recursion) = recursion.filter(|recursion| matches!(recursion.verdict, Verdict::Polled { .. })) {
            recursion.verdict = Verdict::too_many(weight);
        }
    }
    let marks = Marks::read(text, module);
    let describer = Describer::new(&functions, &marks, &lines);
    let mut loops = Vec::new();
    for (index, (all, too_much)) in all.iter().zip(&heavy.functions).enumerate() {
        loops.extend(describer.loops(index, all, too_much, |proof, weight| verdict(&functions, index, proof, weight)));
    }
    loops.extend(recursions.iter().filter_map(|recursion| describer.recursion(recursion)));
    loops.sort_by_key(|found| (found.line, found.depth));
    Report {
        target: module.target.map(|target| target.of(text).to_owned()),
        kernels: module.functions.iter().filter(|function| function.is_kernel).map(|function| function.name.to_owned()).collect(),
        loops,
        unknown: describer.unknown(),
        faults,
        assumptions,
        links: linkages,
        has_own_control: module.variables.iter().any(|variable| variable.name == CONTROL && variable.linkage.is_empty()),
        marked: marks.all(&functions.calls, &callees_first(&functions.calls)),
    }
}

/// Declarations that would make other loads look like polls, or that hold the address of what a poll reads.
fn misnamed(text: &str, module: &Module<'_>, lines: &Lines) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_other = module.variables.iter().any(|variable| variable.name == CONTROL && variable.space != ".global");
    let is_hidden = module.functions.iter().any(|function| {
        let registers = function.registers.iter().map(|declared| declared.name);
        let parameters = function.results.iter().chain(&function.parameters).map(|parameter| parameter.name);
        let variables = function.variables.iter().map(|variable| variable.name);
        registers.chain(parameters).chain(variables).any(|name| name == CONTROL)
    });
    let functions = module.functions.iter().map(|function| function.name);
    let declared = module.prototypes.iter().map(|prototype| prototype.name).chain(module.aliases.iter().map(|(alias, _)| *alias));
    let is_function = functions.chain(declared).any(|name| name == CONTROL);
    if is_other || is_hidden || is_function {
        faults.push(fault(1, &format!("`{CONTROL}` is something else than a variable in global memory")));
    }
    let scoped = module.functions.iter().flat_map(|function| &function.variables);
    for variable in module.variables.iter().chain(scoped).filter(|variable| variable.name != CONTROL) {
        if variable.initial_names(text).any(|name| matches!(name, CONTROL | FLAG)) {
            let message = format!("`{}` holds the address of the control block or of the flag", variable.name);
            faults.push(Fault { line: lines.number(variable.at as usize), message, code: Code::ControlWritten });
        }
    }
    faults
}

/// A control block that is too small for what polls read of it, or a flag that shares what the first cache keeps with other variables.
fn misshapen(module: &Module<'_>, passes_by_cache: bool, lines: &Lines) -> Vec<Fault> {
    let mut faults = Vec::new();
    for variable in &module.variables {
        let (least, align) = match variable.name {
            CONTROL => (CONTROL_BYTES, CONTROL_ALIGN),
            // What loads keep of the flag matters only to polls that keep it out of the first cache.
            FLAG if passes_by_cache => (FLAG_LINE, FLAG_LINE),
            _ => continue,
        };
        // Of a variable that another unit defines the size may be left out.
        let bytes = variable.bytes.or((variable.linkage == ".extern").then_some(least));
        if bytes.is_none_or(|bytes| bytes < least) || variable.align.is_none_or(|given| given % align != 0) {
            let message = format!("`{}` has fewer than {least} bytes, or lies at no multiple of {align}", variable.name);
            faults.push(fault(lines.number(variable.at as usize), &message));
        }
    }
    faults
}

/// The loops of each function of a share, what is wrong with these functions, and what is taken for granted.
fn prove_all(functions: &Functions<'_>, share: Range<usize>, lines: &Lines) -> (Vec<Vec<LoopProof>>, Vec<Fault>, Vec<Granted>) {
    let (answers, mut components, mut said) = (Answers::new(functions), Components::default(), <(Vec<Fault>, Vec<Granted>)>::default());
    let all = share.map(|index| prove((functions, &answers), index, &mut components, lines, &mut said)).collect();
    (all, said.0, said.1)
}

/// The loops of a function, with what is proved of each by itself.
fn prove(
    (functions, answers): (&Functions<'_>, &Answers<'_, '_>),
    index: usize,
    components: &mut Components,
    lines: &Lines,
    (faults, granted): &mut (Vec<Fault>, Vec<Granted>),
) -> Vec<LoopProof> {
    let (function, graph) = (&functions.module.functions[index], &functions.graphs[index]);
    for &statement in &graph.lost {
        faults.push(fault(lines.of(function, statement), "a branch to a label that is not there"));
    }
    let read = || cuinstr_ptx::Code::new(functions.text, function);
    let mut code = mentions_control(functions.text, function).then(read);
    if let Some(code) = &code {
        let is_debug = functions.module.targets.contains(&"debug");
        let bytes = |name: &str| functions.module.variables.iter().find(|variable| variable.name == name)?.bytes;
        let surroundings = Surroundings {
            passes_by_cache: functions.passes_by_cache,
            is_debug,
            control_bytes: bytes(CONTROL).unwrap_or(CONTROL_BYTES),
            flag_bytes: bytes(FLAG).unwrap_or(FLAG_LINE),
        };
        let (forbidden, taken) = stores::forbidden(&functions.body(index, code), surroundings);
        granted.extend(taken.map(|at| {
            Granted {
                function: function.name.to_owned(),
                line: lines.of(function, at),
                message:
                    "what a debug build keeps on the stack is not followed: nothing is stored through an address of the control block there"
                        .to_owned(),
            }
        }));
        for (statement, what) in forbidden {
            let line = lines.of(function, statement);
            faults.push(Fault { line, message: what.to_owned(), code: Code::ControlWritten });
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
    let mut body = functions.body(index, &code);
    body.note_loops(&sets, &order);
    let returns = |statement: u32, assumption: Assumption, not_zero: NotZero| answers.call_returns(index, statement, assumption, not_zero);
    let mut all: Vec<LoopProof> = Vec::new();
    let mut position = Vec::new();
    for new in rounds(&mut body, &order, &sets, (components, &mut position), &returns) {
        let offset = all.len();
        all.extend(new.into_iter().map(|proof| LoopProof { parent: proof.parent.map(|parent| parent + offset), ..proof }));
    }
    all
}

/// Calls through pointers in a module that others are linked to, the first of each function: they are taken to stay in the module.
fn pointers<'a>(functions: &Functions<'a>, lines: &Lines) -> Vec<Granted> {
    let is_shared = |function: &Function<'_>| !function.is_kernel && matches!(function.linkage, ".visible" | ".weak");
    // A name that is declared, and is no function of the module.
    let is_outside = |name: &str| !is_system(name) && functions.module.functions.iter().all(|function| function.name != name);
    let is_linked =
        functions.module.functions.iter().any(is_shared) || functions.module.prototypes.iter().any(|prototype| is_outside(prototype.name));
    let first = |function: &Function<'a>| {
        let mut calls = function.calls.iter().map(|call| call.statement);
        let at = calls.find(|at| matches!(functions.callees.of(function, *at), Callee::Pointer(_)))?;
        Some(Granted {
            function: function.name.to_owned(),
            line: lines.of(function, at),
            message: "a call through a pointer leads to a function of this module, and not to one that is linked to it".to_owned(),
        })
    };
    if is_linked { functions.module.functions.iter().filter_map(first).collect() } else { Vec::new() }
}

/// What is proved of a loop, with all that it holds and calls.
fn verdict(functions: &Functions<'_>, index: usize, proof: &LoopProof, weight: Weight) -> Verdict {
    let not_polled = |why: &str| Verdict::NotPolled { why: why.to_owned() };
    match proof.proof {
        Proof::TrapOnly => Verdict::TrapOnly,
        Proof::None(_) if waits(functions, index, proof) => Verdict::WaitsInHardware,
        Proof::None(Why::NoPoll) => not_polled("a round may pass without a poll, and nothing bounds them"),
        Proof::None(Why::GoesOn) => not_polled("it polls, but a round may pass without that, or go on after it"),
        Proof::None(Why::TooLarge | Why::CutShort) => not_polled("it was not looked at to the end: too large"),
        Proof::None(Why::Unrolled) => not_polled("it ends by itself, but `ptxas` unrolls it and may pass its end"),
        Proof::None(Why::TooDeep) => not_polled("it was not looked at: too many loops are around it"),
        _ if weight.is_too_much() => Verdict::too_many(weight),
        Proof::Polled => Verdict::Polled { rounds: 0 },
        Proof::PolledWithin(_) => Verdict::Polled { rounds: weight.rounds },
        Proof::Clock { .. } => Verdict::Bounded { by: Bound::Clock },
        Proof::Counted(_) => Verdict::Bounded { by: Bound::Rounds(weight.rounds) },
    }
}

/// Whether what is left of a loop waits for a barrier that hardware moves on.
fn waits(functions: &Functions<'_>, index: usize, proof: &LoopProof) -> bool {
    let (function, graph) = (&functions.module.functions[index], &functions.graphs[index]);
    proof.left.iter().any(|block| {
        let block = graph.blocks[*block as usize];
        function.statements[block.first as usize..block.end as usize].iter().any(|statement| {
            let opcode = statement.whole_opcode(functions.text);
            opcode.starts_with("mbarrier.try_wait") || opcode.starts_with("mbarrier.test_wait")
        })
    })
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
