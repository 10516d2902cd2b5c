//! Calls: which functions poll where they begin, since calls alone may lead back to them, or to too many activations.

use super::Loops;
use cuinstr_ptx::{Callee, Calls, Components, Graph, Module, is_system};

/// Most activations below a function that does not poll where it begins.
const MOST: u32 = 1 << 12;

/// What is known of a module's calls.
#[derive(Debug)]
pub(in crate::polls) struct Activations<'a> {
    at_entry: Vec<bool>,
    below: Vec<bool>,
    outside: Vec<(&'a str, u32)>,
}

impl<'a> Activations<'a> {
    pub(in crate::polls) fn new(text: &'a str, module: &Module<'a>) -> Self {
        let calls = Calls::new(text, module);
        let count = module.functions.len();
        // The last node stands for all that is out of sight. It may call what the linker sees, and what has its address taken.
        let outer = count as u32;
        let mut edges: Vec<Vec<u32>> = vec![Vec::new(); count + 1];
        let mut outside = Vec::new();
        let mut sees_out = false;
        for (function, from) in module.functions.iter().zip(&mut edges) {
            for call in &function.calls {
                match calls.callee(function, call) {
                    Callee::Known(to) => from.push(to),
                    // A kernel that launches itself again and again may run for ever, too.
                    Callee::Pointer(all) | Callee::Launch(all) => from.extend(all),
                    Callee::Outside(name) if is_system(name) => {}
                    Callee::Outside(name) => {
                        outside.push((name, function.statements[call.statement as usize].opcode));
                        from.push(outer);
                    }
                    Callee::Lost => {
                        outside.push(("what a pointer leads to", function.statements[call.statement as usize].opcode));
                        from.push(outer);
                    }
                }
            }
            sees_out |= from.contains(&outer);
        }
        if sees_out {
            let is_visible = |at: &usize| {
                let function = &module.functions[*at];
                let head = function.head.of(text);
                !function.is_kernel && (head.contains(".visible") || head.contains(".weak"))
            };
            let mut called: Vec<u32> = (0..count).filter(is_visible).map(|at| at as u32).collect();
            called.extend(calls.addressed());
            edges[count] = called;
        }
        outside.sort_unstable();
        outside.dedup_by_key(|(name, _)| *name);
        let at_entry = entries(&edges, count);
        let below = below(module, &edges, &at_entry);
        Self { at_entry, below, outside }
    }

    /// Whether a function polls where it begins.
    pub(in crate::polls) fn polls_at_entry(&self, function: u32) -> bool {
        self.at_entry[function as usize]
    }

    /// Whether a function calls one that polls.
    pub(in crate::polls) fn polls_below(&self, function: u32) -> bool {
        self.below[function as usize]
    }

    /// Functions that are called and have no body in the module, with the offset of a call.
    pub(in crate::polls) fn outside(&self) -> &[(&'a str, u32)] {
        &self.outside
    }
}

/// Functions on cycles of calls, and those below which there are too many activations.
fn entries(edges: &[Vec<u32>], count: usize) -> Vec<bool> {
    let nodes: Vec<u32> = (0..edges.len() as u32).collect();
    let mut at_entry = vec![false; edges.len()];
    for component in Components::default().find(edges.len(), &nodes, |node, nth| edges[node as usize].get(nth as usize).map(|to| Some(*to)))
    {
        for member in component {
            at_entry[member as usize] = true;
        }
    }
    // Activations below each function, callees first. What polls where it begins counts as one.
    let mut activations = vec![0_u32; edges.len()];
    let mut work: Vec<(u32, usize)> = Vec::new();
    for root in nodes {
        work.push((root, 0));
        while let Some((node, nth)) = work.pop() {
            if nth == 0 && activations[node as usize] != 0 {
                continue;
            }
            if nth == 0 {
                activations[node as usize] = 1;
            }
            if let Some(&to) = edges[node as usize].get(nth) {
                work.push((node, nth + 1));
                work.push((to, 0));
                continue;
            }
            let below = edges[node as usize].iter().map(|to| if at_entry[*to as usize] { 1 } else { activations[*to as usize] });
            activations[node as usize] = below.fold(1_u32, u32::saturating_add);
            if activations[node as usize] > MOST {
                at_entry[node as usize] = true;
            }
        }
    }
    at_entry.truncate(count);
    at_entry
}

/// Functions that lead to a poll by calls.
fn below(module: &Module<'_>, edges: &[Vec<u32>], at_entry: &[bool]) -> Vec<bool> {
    let count = module.functions.len();
    let mut callers: Vec<Vec<u32>> = vec![Vec::new(); count + 1];
    for (from, to) in edges.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |to| (from, *to))) {
        callers[to as usize].push(from as u32);
    }
    let mut below = vec![false; count + 1];
    // A function without callers is not asked for its loops.
    let has_loop = |at: u32| !Loops::new(&Graph::new(&module.functions[at as usize])).all.is_empty();
    let polls = |at: &u32| !callers[*at as usize].is_empty() && (at_entry[*at as usize] || has_loop(*at));
    let mut work: Vec<u32> = (0..count as u32).filter(polls).chain([count as u32]).collect();
    while let Some(node) = work.pop() {
        for &caller in &callers[node as usize] {
            if !std::mem::replace(&mut below[caller as usize], true) {
                work.push(caller);
            }
        }
    }
    below.truncate(count);
    below
}

#[cfg(test)]
mod tests {
    use super::{MOST, entries};

    #[test]
    fn a_function_polls_at_its_entry_where_too_much_is_called_below_it() {
        let leaf = |calls: u32| entries(&[vec![1; calls as usize], vec![], vec![]], 2);
        assert_eq!(leaf(MOST - 1), [false, false]);
        assert_eq!(leaf(MOST), [true, false]);
    }
}
