//! Who calls whom among a file's device functions, by name, and which functions can so reach themselves.
//!
//! Names are all that tokens offer: overloads count as one another's callees where the numbers of arguments allow it. A function too many
//! costs a poll at its entry; one too few could hang.

use crate::fragment::Fragment;
use crate::function::Function;
use crate::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Calls between functions, by their index in the order of their bodies.
#[derive(Debug, Default)]
pub(crate) struct CallGraph {
    callees: Vec<Vec<usize>>,
}

/// How many arguments a list may have: fewest and most. Commas in template arguments make the two differ.
type Arity = (usize, usize);

impl CallGraph {
    pub(crate) fn new(source: &[u8], fragment: &Fragment, functions: &[&Function]) -> Self {
        let mut by_name: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (index, function) in functions.iter().enumerate() {
            if let Some(name) = function.name.filter(|name| fragment.kind(*name) == Some(Kind::Ident)) {
                by_name.entry(fragment.text(source, name)).or_default().push(index);
            }
        }
        let takes: Vec<Arity> = functions.iter().map(|function| parameters(source, fragment, function)).collect();
        let callees = functions
            .iter()
            .map(|function| {
                let mut callees = BTreeSet::new();
                for at in function.open..function.close {
                    if fragment.kind(at) != Some(Kind::Ident) {
                        continue;
                    }
                    let Some(candidates) = by_name.get(fragment.text(source, at)) else { continue };
                    let gives = match fragment.kind(at + 1) {
                        Some(Kind::Punct(b'(')) => fragment.mate(at + 1).map_or((0, usize::MAX), |close| arity(fragment, at + 1, close)),
                        // Explicit template arguments; or a name alone, a function that is passed on.
                        Some(Kind::Punct(b'<' | b',' | b')' | b';')) => (0, usize::MAX),
                        _ => continue,
                    };
                    callees.extend(candidates.iter().filter(|callee| gives.0 <= takes[**callee].1 && gives.1 >= takes[**callee].0));
                }
                callees.into_iter().collect()
            })
            .collect();
        Self { callees }
    }

    /// Functions that lie on a cycle of calls (Tarjan's components, without recursion: nothing of the user's nests too deep).
    pub(crate) fn recursive(&self) -> BTreeSet<usize> {
        let count = self.callees.len();
        let (mut index, mut low) = (vec![usize::MAX; count], vec![0; count]);
        let (mut on_stack, mut stack) = (vec![false; count], Vec::new());
        let mut next = 0;
        let mut found = BTreeSet::new();
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
                if let Some(&callee) = self.callees[node].get(edge) {
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
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member] = false;
                        component.push(member);
                        if member == node {
                            break;
                        }
                    }
                    if component.len() > 1 || self.callees[node].contains(&node) {
                        found.extend(component);
                    }
                }
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
                work.extend(&self.callees[node]);
            }
        }
        found
    }
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

fn parameters(source: &[u8], fragment: &Fragment, function: &Function) -> Arity {
    let Some(name) = function.name else { return (0, usize::MAX) };
    let Some(open) = (name..function.open).find(|at| fragment.is(*at, b'(')) else { return (0, usize::MAX) };
    let Some(close) = fragment.mate(open) else { return (0, usize::MAX) };
    let (fewest, most) = arity(fragment, open, close);
    let is_void = close == open + 2 && fragment.text(source, open + 1) == b"void";
    let defaults = (open..close).any(|at| fragment.kind(at) == Some(Kind::Assign));
    if is_void || defaults { (0, most) } else { (fewest, most) }
}
