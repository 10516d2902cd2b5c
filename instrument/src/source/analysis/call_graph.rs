//! The call graph of a file's device functions, by name, and its cycles.
//!
//! Tokens offer little more than names. Overloads count as callees of one another where the numbers of arguments, and the known part of their types, allow it.
//! A function too many costs a poll at its entry; one too few could hang.

use crate::source::analysis::declared_type::Types;
use crate::source::analysis::implicit_edges::{self, ImplicitEdge};
use crate::source::analysis::induction;
use crate::source::analysis::overload::{Parameters, Vectors};
use crate::source::analysis::pasted_edges;
use crate::source::syntax::class;
use crate::source::syntax::declaration::is_declared;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::{self, Function};
use crate::source::syntax::known_names;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Calls between functions, by their index in the order of their bodies.
///
/// One more node stands for all pointers to functions: a call through one leads there, and from there to each function that is named without being
/// called. Further ones stand for many overloads each, since all calls of a name lead to all of these.
#[derive(Debug, Default)]
pub(crate) struct CallGraph {
    callees: Vec<Vec<Call>>,
    /// Nodes that stand for overloads.
    overloads: Range<usize>,
    /// How many nodes are functions.
    functions: usize,
    /// Calls without a name, of all nodes; further nodes stand for what variables hold, for any class, and for each class.
    implicit: Vec<Vec<ImplicitEdge>>,
    /// Braces of lambdas that may lead back to themselves.
    pub(crate) lambdas: BTreeSet<usize>,
}

/// That a function calls another, or names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) callee: usize,
    /// The token that says so.
    pub(crate) at: usize,
}

/// Most tokens of a list of template arguments that are read.
const MOST_TEMPLATE_ARGUMENTS: usize = 64;

/// Most overloads with the same number of parameters that are told apart.
const MOST_OVERLOADS: usize = 64;

/// How many arguments a list may have: fewest and most. Commas in template arguments make the two differ.
type Arity = (usize, usize);

impl CallGraph {
    pub(crate) fn new<'a>(
        source: &'a [u8],
        fragment: &Fragment,
        functions: &[&Function],
        macros: &Macros<'a>,
        declared: Types<'a>,
    ) -> Self {
        let all_by_name = by_name(source, fragment, functions);
        let call_operators = call_operators(fragment, functions);
        let lists: Vec<Option<(usize, usize)>> = functions.iter().map(|function| list(fragment, function)).collect();
        let takes: Vec<Arity> = lists.iter().map(|list| parameters(source, fragment, *list)).collect();
        let typed = typed(source, fragment, functions, macros, &lists);
        let (by_name, groups) = grouped(&all_by_name, &takes, functions.len() + 1);
        let made = made(source, fragment, functions, &all_by_name);
        let mut behind_macros: BTreeMap<&[u8], BTreeSet<usize>> = BTreeMap::new();
        let mut whole: BTreeMap<&[u8], bool> = BTreeMap::new();
        let pointers = functions.len();
        let addressed = addressed(source, fragment, &by_name);
        let mut callees: Vec<Vec<Call>> = functions
            .iter()
            .enumerate()
            .map(|(index, function)| {
                let mut callees = BTreeSet::new();
                let is_indirect = |at: &usize| !addressed.is_empty() && calls_a_pointer(source, fragment, macros, &by_name, *at);
                callees.extend((function.open..function.close).find(is_indirect).map(|at| Call { callee: pointers, at }));
                // Values of parameters, and a constructor's initialisers, stand in front of the body.
                for at in lists[index].map_or(function.open, |(open, _)| open)..function.close {
                    if calls_the_call_operator(source, fragment, at) {
                        callees.extend(call_operators.iter().map(|callee| Call { callee: *callee, at }));
                    } else if function.name.is_none() && calls_its_own_argument(source, fragment, at) {
                        callees.insert(Call { callee: index, at });
                    }
                    if fragment.kind(at) != Some(Kind::Ident) {
                        continue;
                    }
                    let is_parameter = lists[index].is_some_and(|(_, close)| at < close);
                    if is_parameter && (!fragment.is(at + 1, b'(') || is_declared(source, fragment, at)) {
                        continue;
                    }
                    let name = fragment.text(source, at);
                    if macros.is_defined(name) {
                        let behind = behind_macro(source, macros, name, &by_name, &mut behind_macros);
                        callees.extend(behind.iter().map(|callee| Call { callee: *callee, at }));
                    }
                    let Some(candidates) = by_name.get(name) else { continue };
                    if is_data(source, fragment, macros, at) {
                        continue;
                    }
                    let Some((gives, list)) = given(fragment, at, function.close, || made.contains(name)) else { continue };
                    let arguments =
                        list.map_or_else(Vec::new, |(open, close)| typed[index].classify(source, fragment, macros, open, close));
                    let of_class = class::of_call(source, fragment, macros, function.head, at);
                    let mut is_whole =
                        |name: &&'a [u8]| *whole.entry(name).or_insert_with(|| class::has_no_base(source, fragment, macros, name));
                    let named = class::class_of_call(fragment, function, at).map(|name| fragment.text(source, name)).filter(&mut is_whole);
                    let fits = |callee: &&usize| {
                        if let Some(group) = callee.checked_sub(functions.len() + 1) {
                            return may_meet(gives, groups[group].0);
                        }
                        may_meet(gives, takes[**callee])
                            && typed[**callee].take(&arguments)
                            && of_class.is_none_or(|of| class::holds(source, fragment, of, functions[**callee]))
                            && named.is_none_or(|of| class::may_hold(source, fragment, of, functions[**callee]))
                    };
                    callees.extend(candidates.iter().filter(fits).map(|callee| Call { callee: *callee, at }));
                }
                callees.into_iter().collect()
            })
            .collect();
        for (callees, pasted) in callees.iter_mut().zip(pasted_edges::of(source, fragment, functions, macros, &by_name)) {
            callees.extend(pasted.into_iter().map(|(callee, at)| Call { callee, at }));
        }
        callees.push(addressed.into_iter().map(|callee| Call { callee, at: 0 }).collect());
        let overloads = callees.len()..callees.len() + groups.len();
        callees.extend(groups.into_iter().map(|(_, members)| members.into_iter().map(|callee| Call { callee, at: 0 }).collect()));
        let (implicit, lambdas) = implicit_edges::all(source, fragment, functions, macros, declared, &by_name, &callees);
        callees.resize(implicit.len(), Vec::new());
        Self { callees, overloads, functions: functions.len(), implicit, lambdas }
    }

    /// Functions that lie on a cycle of calls, by the cycles' components, each with the calls between its functions. Left out are calls that only
    /// objects make of classes which templates may be instantiated with.
    pub(crate) fn cycles(&self) -> Vec<BTreeMap<usize, Vec<Call>>> {
        components(&self.edges(), self.functions)
    }

    /// The calls of all nodes, but for these.
    pub(crate) fn edges(&self) -> Vec<Vec<Call>> {
        let edges = |node: usize| {
            let implicit = self.implicit[node].iter().filter(|edge| edge.unless_numbers.is_none()).map(|edge| edge.call);
            self.callees[node].iter().copied().chain(implicit).collect::<Vec<Call>>()
        };
        (0..self.callees.len()).map(edges).collect()
    }

    /// Functions that may lie on a further cycle, which passes none of `polled`: each with the operands of its calls on it. If all of them are numbers, it
    /// makes none of these calls.
    pub(crate) fn cycles_unless_numbers(&self, polled: &BTreeSet<usize>) -> BTreeMap<usize, BTreeSet<String>> {
        let edges = |node: usize| {
            let implicit = self.implicit[node].iter().map(|edge| edge.call);
            let all = self.callees[node].iter().copied().chain(implicit);
            if polled.contains(&node) { Vec::new() } else { all.filter(|call| !polled.contains(&call.callee)).collect::<Vec<Call>>() }
        };
        let edges: Vec<Vec<Call>> = (0..self.callees.len()).map(edges).collect();
        let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for cycle in components(&edges, self.functions) {
            for (caller, calls) in cycle {
                let of_cycle = self.implicit[caller].iter().filter(|edge| calls.contains(&edge.call));
                let operands: BTreeSet<String> = of_cycle.filter_map(|edge| edge.unless_numbers.clone()).flatten().collect();
                if !operands.is_empty() {
                    found.insert(caller, operands);
                }
            }
        }
        found
    }

    /// Calls in front of functions' bodies that lead back there and pass no body on the way: no poll stops them. They stand in arguments of initialisers and in
    /// default arguments. An initialiser itself makes a part of the object or delegates, and both come to an end.
    pub(crate) fn cycles_in_heads(&self, fragment: &Fragment, functions: &[&Function]) -> Vec<BTreeMap<usize, Vec<Call>>> {
        let edges = |node: usize| {
            let Some(function) = functions.get(node) else { return self.callees[node].clone() };
            let arguments = arguments_in_head(fragment, function);
            let calls = self.callees[node].iter().copied();
            calls.filter(|call| arguments.iter().any(|range| range.contains(&call.at))).collect()
        };
        let edges: Vec<Vec<Call>> = (0..self.callees.len()).map(edges).collect();
        components(&edges, self.functions)
    }

    /// The overloads that a callee stands for, if it stands for many.
    pub(crate) fn overloads(&self, callee: usize) -> Option<impl Iterator<Item = usize>> {
        self.overloads.contains(&callee).then(|| self.callees[callee].iter().map(|call| call.callee))
    }

    /// The nodes that stand for overloads.
    pub(crate) fn overload_nodes(&self) -> Range<usize> {
        self.overloads.clone()
    }

    /// The calls of the function.
    pub(crate) fn calls_of(&self, function: usize) -> &[Call] {
        &self.callees[function]
    }

    /// All functions from which one of these can be reached, and these.
    pub(crate) fn leading_to(&self, targets: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); self.callees.len()];
        for (caller, calls) in self.callees.iter().enumerate() {
            for call in calls {
                callers[call.callee].push(caller);
            }
        }
        let mut found = BTreeSet::new();
        let mut work: Vec<usize> = targets.iter().copied().collect();
        while let Some(node) = work.pop() {
            if found.insert(node) {
                work.extend(&callers[node]);
            }
        }
        found
    }

    /// All functions that can be reached from `roots`, them included.
    pub(crate) fn reachable(&self, roots: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut work: Vec<usize> = roots.into_iter().collect();
        while let Some(node) = work.pop() {
            if found.insert(node) {
                work.extend(self.callees[node].iter().map(|call| call.callee));
            }
        }
        found
    }
}

/// What stands in brackets in front of a function's body: arguments of its initialisers, and default arguments of its own.
fn arguments_in_head(fragment: &Fragment, function: &Function) -> Vec<Range<usize>> {
    let parameters = list(fragment, function);
    let mut found = Vec::new();
    let mut at = function.head;
    while at < function.open {
        let close = fragment.mate(at).filter(|close| *close > at && *close < function.open);
        match close {
            Some(close) if parameters == Some((at, close)) => {
                let defaults = (at..close).filter(|token| fragment.kind(*token) == Some(Kind::Assign));
                found.extend(defaults.map(|assign| assign..(assign..close).find(|token| fragment.is(*token, b',')).unwrap_or(close)));
            }
            Some(close) => found.push(at..close),
            None => {}
        }
        at = close.unwrap_or(at) + 1;
    }
    found
}

/// The components of a graph that hold a cycle, each with the calls between its members: of these only the first nodes, which are functions (Tarjan's
/// algorithm, without recursion: nothing of the user's nests too deep).
pub(crate) fn components(edges: &[Vec<Call>], functions: usize) -> Vec<BTreeMap<usize, Vec<Call>>> {
    let count = edges.len();
    let (mut index, mut low) = (vec![usize::MAX; count], vec![0; count]);
    let (mut on_stack, mut stack) = (vec![false; count], Vec::new());
    let mut next = 0;
    let mut found = Vec::new();
    for root in 0..count {
        if index[root] != usize::MAX {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 {
                index[node] = next;
                low[node] = next;
                next += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&Call { callee, .. }) = edges[node].get(edge) {
                work.push((node, edge + 1));
                if index[callee] == usize::MAX {
                    work.push((callee, 0));
                } else if on_stack[callee] {
                    low[node] = low[node].min(index[callee]);
                }
                continue;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                let mut component = BTreeSet::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.insert(member);
                    if member == node {
                        break;
                    }
                }
                let calls = |member: &usize| {
                    let calls = edges[*member].iter().filter(|call| component.contains(&call.callee));
                    (*member, calls.copied().collect::<Vec<_>>())
                };
                let members = component.iter().filter(|member| **member < functions);
                let cycle: BTreeMap<usize, Vec<Call>> = members.map(calls).collect();
                if cycle.values().any(|calls| !calls.is_empty()) {
                    found.push(cycle);
                }
            }
        }
    }
    found
}

/// How many arguments a name is given, and their parentheses, if it may be called there. `made` says whether a variable of that type would call it.
fn given(fragment: &Fragment, at: usize, end: usize, made: impl Fn() -> bool) -> Option<(Arity, Option<(usize, usize)>)> {
    const ANY: Arity = (0, usize::MAX);
    let explicit = if fragment.is(at + 1, b'<') { induction::template_arguments(fragment, at + 1, end) } else { None };
    let open = explicit.unwrap_or(at) + 1;
    match fragment.kind(open) {
        Some(Kind::Punct(b'(')) => {
            let list = fragment.mate(open).map(|close| (open, close));
            Some((list.map_or(ANY, |(open, close)| arity(fragment, open, close)), list))
        }
        _ if explicit.is_some() => Some((ANY, None)),
        // Template arguments whose end is not clear; or a name alone, a function that is passed on.
        Some(Kind::Punct(b'<' | b',' | b')' | b';' | b':' | b'?' | b'}' | b']')) => Some((ANY, None)),
        Some(Kind::Punct(b'>')) if ends_template_arguments(fragment, at + 1) => Some((ANY, None)),
        // A variable of the class that the constructor or destructor is of.
        Some(Kind::Ident | Kind::Punct(b'{')) if made() => Some((ANY, None)),
        _ => None,
    }
}

/// Whether a member is named but not called, so that it holds data: the address of a function has a scope in front. A macro may call what it is given.
fn is_data(source: &[u8], fragment: &Fragment, macros: &Macros, at: usize) -> bool {
    let is_member = matches!(at.checked_sub(1).and_then(|index| fragment.kind(index)), Some(Kind::Punct(b'.') | Kind::Arrow));
    if !is_member || matches!(fragment.kind(at + 1), Some(Kind::Punct(b'(' | b'<'))) {
        return false;
    }
    let mut token = at;
    while let Some(before) = token.checked_sub(1) {
        token = match fragment.kind(before) {
            Some(Kind::Punct(b';' | b'{' | b'}')) => return true,
            Some(Kind::Punct(b')' | b']')) => match fragment.mate(before).filter(|open| *open < before) {
                Some(open) => open,
                None => return false,
            },
            Some(Kind::Punct(b'(')) => {
                let name = before.checked_sub(1).map_or(&b""[..], |name| fragment.text(source, name));
                if macros.is_defined(name) || (!name.is_empty() && name.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')) {
                    return false;
                }
                before
            }
            _ => before,
        };
    }
    true
}

/// Functions by their names.
fn by_name<'a>(source: &'a [u8], fragment: &Fragment, functions: &[&Function]) -> BTreeMap<&'a [u8], Vec<usize>> {
    let mut by_name: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        if let Some(name) = function.name.filter(|name| fragment.kind(*name) == Some(Kind::Ident)) {
            by_name.entry(fragment.text(source, name)).or_default().push(index);
        }
    }
    by_name
}

/// The parameters of each function, whose lists are given.
fn typed<'a>(
    source: &'a [u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &Macros,
    lists: &[Option<(usize, usize)>],
) -> Vec<Parameters<'a>> {
    let vectors = Vectors::new(source, fragment, macros);
    let read = |function: &Function, list: Option<_>| list.map(|list| Parameters::read(source, fragment, macros, &vectors, function, list));
    functions.iter().zip(lists).map(|(function, list)| read(function, *list).unwrap_or_default()).collect()
}

/// Names that a variable of their type calls.
fn made<'a>(source: &[u8], fragment: &Fragment, functions: &[&Function], by_name: &BTreeMap<&'a [u8], Vec<usize>>) -> BTreeSet<&'a [u8]> {
    let is_made = |named: &[usize]| named.iter().any(|index| function::is_called_by_no_name(source, fragment, functions[*index]));
    by_name.iter().filter(|(_, named)| is_made(named)).map(|(name, _)| *name).collect()
}

/// Whether a list of arguments may be as long as one of parameters.
fn may_meet(gives: Arity, takes: Arity) -> bool {
    gives.0 <= takes.1 && gives.1 >= takes.0
}

/// Overloads of one name that take the same number of arguments.
type Group = (Arity, Vec<usize>);

/// The candidates for each name. Where many functions take the same number of arguments, a node stands for them, the first of which has the number `first`.
fn grouped<'a>(by_name: &BTreeMap<&'a [u8], Vec<usize>>, takes: &[Arity], first: usize) -> (BTreeMap<&'a [u8], Vec<usize>>, Vec<Group>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut found = BTreeMap::new();
    for (name, named) in by_name {
        let mut by_arity: BTreeMap<Arity, Vec<usize>> = BTreeMap::new();
        for index in named {
            by_arity.entry(takes[*index]).or_default().push(*index);
        }
        let mut candidates = Vec::new();
        for (arity, members) in by_arity {
            if members.len() > MOST_OVERLOADS {
                candidates.push(first + groups.len());
                groups.push((arity, members));
            } else {
                candidates.extend(members);
            }
        }
        candidates.sort_unstable();
        found.insert(*name, candidates);
    }
    (found, groups)
}

/// Functions of the name `operator()`.
fn call_operators(fragment: &Fragment, functions: &[&Function]) -> Vec<usize> {
    let is_call_operator = |function: &Function| {
        let is_sign = |name: usize| fragment.is(name + 1, b'(') && fragment.is(name + 2, b')');
        function.name.is_some_and(|name| fragment.kind(name) == Some(Kind::Operator) && is_sign(name))
    };
    (0..functions.len()).filter(|index| is_call_operator(functions[*index])).collect()
}

/// Functions that are named where they are not called.
fn addressed(source: &[u8], fragment: &Fragment, by_name: &BTreeMap<&[u8], Vec<usize>>) -> BTreeSet<usize> {
    let names = (0..fragment.len()).filter(|at| is_passed_on(fragment, *at)).map(|at| fragment.text(source, at));
    names.filter_map(|name| by_name.get(name)).flatten().copied().collect()
}

/// Whether a name stands where a function's own would be passed on: nothing follows that would call it, or declare it.
fn is_passed_on(fragment: &Fragment, at: usize) -> bool {
    fragment.kind(at) == Some(Kind::Ident)
        && match fragment.kind(at + 1) {
            Some(Kind::Punct(b',' | b')' | b';' | b':' | b'?' | b'}' | b']')) => true,
            Some(Kind::Punct(b'>')) => ends_template_arguments(fragment, at + 1),
            _ => false,
        }
}

/// Whether the `>` may end a list of template arguments.
fn ends_template_arguments(fragment: &Fragment, close: usize) -> bool {
    let (mut at, mut depth) = (close, 0_u32);
    for _ in 0..MOST_TEMPLATE_ARGUMENTS {
        match fragment.kind(at) {
            Some(Kind::Punct(b'>')) => depth += 1,
            Some(Kind::Punct(b'<')) => depth -= 1,
            Some(Kind::Punct(b')' | b']' | b'}')) => at = fragment.mate(at).filter(|open| *open < at).unwrap_or(at),
            Some(Kind::Punct(b'(' | b'[' | b'{' | b';')) => return false,
            _ => {}
        }
        if depth == 0 {
            return true;
        }
        let Some(before) = at.checked_sub(1) else { return false };
        at = before;
    }
    true
}

/// Whether the token ends what is called, and that is no function's name: `table[i](…)`, `(*f)(…)`, a variable's name.
fn calls_a_pointer(source: &[u8], fragment: &Fragment, macros: &Macros, by_name: &BTreeMap<&[u8], Vec<usize>>, at: usize) -> bool {
    if !fragment.is(at + 1, b'(') {
        return false;
    }
    let name = fragment.text(source, at);
    match fragment.kind(at) {
        Some(Kind::Punct(b']' | b')')) => true,
        Some(Kind::Ident) => {
            !by_name.contains_key(name)
                && !macros.is_defined(name)
                && !name.starts_with(b"__")
                && !known_names::takes_values(name)
                && !known_names::writes_through_pointers(name)
        }
        _ => false,
    }
}

/// `(*this)(…)` and `this->operator()(…)`: a functor reaches itself, or another in this file.
fn calls_the_call_operator(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    match fragment.kind(at) {
        Some(Kind::Keyword) if fragment.text(source, at) == b"this" => fragment.is(at + 1, b')') && fragment.is(at + 2, b'('),
        Some(Kind::Operator) => fragment.is(at + 1, b'(') && fragment.is(at + 2, b')') && fragment.is(at + 3, b'('),
        _ => false,
    }
}

/// `self(self, …)`, by which a lambda reaches itself.
pub(crate) fn calls_its_own_argument(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    fragment.kind(at) == Some(Kind::Ident)
        && fragment.is(at + 1, b'(')
        && fragment.kind(at + 2) == Some(Kind::Ident)
        && fragment.text(source, at + 2) == fragment.text(source, at)
        && matches!(fragment.kind(at + 3), Some(Kind::Punct(b',' | b')')))
}

/// Functions whose names are in the bodies of a macro of this file, or of the macros that it uses. Of some that is known.
fn behind_macro<'a, 'b>(
    source: &'a [u8],
    macros: &Macros,
    of: &'a [u8],
    by_name: &BTreeMap<&[u8], Vec<usize>>,
    known: &'b mut BTreeMap<&'a [u8], BTreeSet<usize>>,
) -> &'b BTreeSet<usize> {
    let is_new = !known.contains_key(of);
    let (mut found, mut seen, mut work) = (BTreeSet::new(), BTreeSet::from([of]), Vec::from_iter(is_new.then_some(of)));
    while let Some(name) = work.pop() {
        for body in macros.bodies_of(name) {
            for token in body.tokens.iter().filter(|token| token.kind == Kind::Ident) {
                let text = &source[token.range()];
                found.extend(by_name.get(text).into_iter().flatten());
                if macros.is_defined(text) && seen.insert(text) {
                    match known.get(text) {
                        Some(behind) => found.extend(behind),
                        None => work.push(text),
                    }
                }
            }
        }
    }
    known.entry(of).or_insert(found)
}

/// Arguments or parameters between two parentheses.
fn arity(fragment: &Fragment, open: usize, close: usize) -> Arity {
    if fragment.skip_arms(open + 1) >= close {
        return (0, 0);
    }
    let (mut fewest, mut most, mut angles) = (1, 1, 0_i32);
    let mut at = open + 1;
    while at < close {
        match fragment.tokens[at].kind {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at).unwrap_or(at),
            Kind::Punct(b'<') => angles += 1,
            Kind::Punct(b'>') => angles -= 1,
            Kind::Punct(b',') => {
                most += 1;
                if angles <= 0 {
                    fewest += 1;
                }
            }
            // A pack may be any number; arms may hold several lists.
            Kind::ArmIf => return (0, usize::MAX),
            Kind::Op if fragment.tokens[at].end - fragment.tokens[at].start == 3 => return (0, usize::MAX),
            _ => {}
        }
        at += 1;
    }
    (fewest, most)
}

/// The parentheses of a function's parameters.
pub(crate) fn list(fragment: &Fragment, function: &Function) -> Option<(usize, usize)> {
    let name = function.name?;
    let is_call_operator = fragment.kind(name) == Some(Kind::Operator) && fragment.is(name + 1, b'(') && fragment.is(name + 2, b')');
    let from = if is_call_operator { name + 3 } else { name };
    let open = (from..function.open).find(|at| fragment.is(*at, b'('))?;
    Some((open, fragment.mate(open)?))
}

pub(crate) fn parameters(source: &[u8], fragment: &Fragment, list: Option<(usize, usize)>) -> Arity {
    let Some((open, close)) = list else { return (0, usize::MAX) };
    let (fewest, most) = arity(fragment, open, close);
    let is_void = close == open + 2 && fragment.text(source, open + 1) == b"void";
    let defaults = (open..close).any(|at| fragment.kind(at) == Some(Kind::Assign));
    if is_void || defaults { (0, most) } else { (fewest, most) }
}
