//! The functions of a module, and what each does once the flag says stop.
//!
//! [`Functions`] is what the text says. [`Answers`] is what was found of functions by one who asks, in the order in which they were asked about.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::body::Body;
use crate::interpret::parameters::{self, NotZero};
use crate::interpret::pass::{Found, Pass};
use crate::interpret::slice::Slice;
use crate::interpret::slicing::Depth;
use crate::interpret::work::allotted;
use crate::module::call_graph::{Callee, Callees};
use crate::program::cfg::Graph;
use crate::program::local_by_number::is_named_by_number;
use cuinstr_ptx::{Code, Function, Module};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Deepest chain of calls that is followed for whether a callee stops.
const DEEPEST: u32 = 32;

/// Most ways to say of a function's parameters which are not zero.
const MOST_GIVEN: usize = 4;

/// The functions of a module.
pub(crate) struct Functions<'a> {
    pub(crate) text: &'a str,
    pub(crate) module: &'a Module<'a>,
    pub(crate) graphs: Vec<Graph>,
    pub(crate) callees: Callees<'a>,
    /// For each function its calls of functions of the module.
    pub(crate) calls: Vec<Vec<(u32, u32)>>,
    /// The same with the kernels that it launches.
    pub(crate) leads_to: Vec<Vec<(u32, u32)>>,
    /// Whether a poll may rely on a flag that is not in the first cache.
    pub(crate) passes_by_cache: bool,
    /// Whether some function that may be called names local memory by a number, once that was asked.
    names_local_by_number: OnceLock<bool>,
}

/// Whether functions return if the flag says stop.
pub(crate) struct Answers<'f, 'a> {
    functions: &'f Functions<'a>,
    /// By whether that is under `trap`, and by which of a function's parameters are not zero.
    returns: RefCell<BTreeMap<(usize, bool, NotZero), bool>>,
    depth: Cell<u32>,
}

impl<'a> Functions<'a> {
    pub(crate) fn new(text: &'a str, module: &'a Module<'a>) -> Self {
        let callees = Callees::new(module, text);
        let calls = callees.known(module);
        let launches = callees.launches(module);
        let leads_to = calls.iter().zip(launches).map(|(calls, launches): (&Vec<_>, _)| [calls.clone(), launches].concat()).collect();
        let graphs = module.functions.iter().map(Graph::new).collect();
        let passes_by_cache = memchr::memmem::find(text.as_bytes(), b"L1::no_allocate").is_some();
        Self { text, module, graphs, callees, calls, leads_to, passes_by_cache, names_local_by_number: OnceLock::new() }
    }

    /// A function, to prove something of it.
    pub(crate) fn body<'b>(&'b self, index: usize, code: &'b Code<'b>) -> Body<'b> {
        Body::new(code, &self.graphs[index], || self.calls[index].is_empty() || !self.names_local_by_number())
    }

    /// Whether some function that may be called names local memory by a number.
    fn names_local_by_number(&self) -> bool {
        let mentions = |function: &Function<'_>, word: &str| memchr::memmem::find(function.body.of(self.text).as_bytes(), word.as_bytes());
        let names = |function: &Function<'_>| {
            let may = !function.is_kernel && ["local", "stack"].iter().any(|word| mentions(function, word).is_some());
            may && is_named_by_number(&Code::new(self.text, function))
        };
        *self.names_local_by_number.get_or_init(|| self.module.functions.iter().any(names))
    }

    /// The block of a function that the statement lies in.
    pub(crate) fn block_of(&self, function: usize, statement: u32) -> u32 {
        self.graphs[function].blocks.partition_point(|block| block.end <= statement) as u32
    }
}

impl<'f, 'a> Answers<'f, 'a> {
    pub(crate) fn new(functions: &'f Functions<'a>) -> Self {
        Self { functions, returns: RefCell::default(), depth: Cell::new(0) }
    }

    /// Whether a call returns to its caller.
    pub(crate) fn call_returns(&self, function: usize, statement: u32, assumption: Assumption, not_zero: NotZero) -> bool {
        if !assumption.asked {
            return true;
        }
        let function = &self.functions.module.functions[function];
        match self.functions.callees.of(function, statement) {
            Callee::Known(index) => self.returns(index as usize, assumption.trap, not_zero),
            Callee::Pointer(all) => all.iter().any(|index| self.returns(*index as usize, assumption.trap, 0)),
            Callee::Launch(_) | Callee::System(_) | Callee::Unknown(_) => true,
        }
    }

    /// Whether a function may return once the flag says stop.
    pub(crate) fn returns(&self, index: usize, trap: bool, not_zero: NotZero) -> bool {
        let key = (index, trap, not_zero);
        if let Some(known) = self.returns.borrow().get(&key) {
            return *known;
        }
        let many = self.returns.borrow().range((index, trap, 0)..=(index, trap, NotZero::MAX)).count() > MOST_GIVEN;
        if many || self.depth.get() >= DEEPEST {
            return true;
        }
        // A function that is asked about while it is being looked at calls itself: then nothing is claimed.
        self.returns.borrow_mut().insert(key, true);
        self.depth.set(self.depth.get() + 1);
        let answer = self.follow(index, trap, not_zero, |found, _| found.returns);
        self.depth.set(self.depth.get() - 1);
        self.returns.borrow_mut().insert(key, answer);
        answer
    }

    /// The blocks of a function that a thread reaches once the flag says stop, and whether it may return.
    pub(crate) fn reached(&self, index: usize, trap: bool) -> (BTreeSet<u32>, bool) {
        self.follow(index, trap, 0, |found, order| {
            let states = order.iter().zip(&found.states);
            (states.filter(|(_, state)| state.is_some()).map(|(block, _)| *block).collect(), found.returns)
        })
    }

    /// Follows a whole function from its entry with the flag saying stop.
    fn follow<T>(&self, index: usize, trap: bool, not_zero: NotZero, then: impl FnOnce(Found, &[u32]) -> T) -> T {
        let functions = self.functions;
        let graph = &functions.graphs[index];
        let place = graph.reverse_postorder();
        let mut order: Vec<u32> = (0..graph.blocks.len() as u32).filter(|block| place[*block as usize] != u32::MAX).collect();
        let code = Code::new(functions.text, &functions.module.functions[index]);
        let body = functions.body(index, &code);
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
            counted: &[],
            head: None,
            until_return: false,
            choice: None,
            edge_cost: &|_, _| None,
            keeps_out: false,
            fixed: &fixed,
            asks_action: &Cell::new(false),
            allowed: allotted(&order, &slice),
        };
        let starts: &[(u32, State)] = if order.is_empty() { &[] } else { &[(0, start)] };
        let found = pass.run(starts);
        then(found, &order)
    }
}
