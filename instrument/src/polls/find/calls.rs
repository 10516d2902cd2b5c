//! Calls: which functions poll where they begin, since calls alone may lead back to them, or to too many activations.

use cuinstr_ptx::{Call, Callee, Calls, Components, Function, Module, is_system};
use std::collections::BTreeMap;

/// Most activations below a function that does not poll where it begins.
const MOST: u32 = 1 << 12;

/// What is known of a module's calls.
#[derive(Debug)]
pub(in crate::polls) struct Activations<'a> {
    /// Whom each function calls in the module, then whom others may call from out of sight, then lists of functions.
    in_sight: Vec<Vec<u32>>,
    at_entry: Vec<bool>,
    unwinds: Vec<bool>,
    repeats: Vec<Vec<u32>>,
    below: Vec<bool>,
    outside: Vec<(&'a str, u32)>,
}

impl<'a> Activations<'a> {
    /// `pays` tells whether a function that is called has a loop that is not left alone.
    pub(in crate::polls) fn new(text: &'a str, module: &Module<'a>, pays: impl Fn(&Function<'a>) -> bool) -> Self {
        let calls = Calls::new(text, module);
        let count = module.functions.len();
        // The last node stands for all that is out of sight. It may call what the linker sees, and what has its address taken.
        let outer = count as u32;
        let mut edges: Vec<Vec<u32>> = vec![Vec::new(); count + 1];
        let (mut lists, mut by_list) = (Vec::new(), BTreeMap::new());
        let mut outside = Vec::new();
        let mut sees_out = false;
        for (function, from) in module.functions.iter().zip(&mut edges) {
            for call in &function.calls {
                match calls.callee(function, call) {
                    Callee::Known(to) => from.push(to),
                    // A kernel that launches itself again and again may run for ever, too.
                    Callee::Pointer(all) | Callee::Launch(all) => from.push(*by_list.entry(all.as_ptr()).or_insert_with(|| {
                        lists.push(all.to_vec());
                        outer + lists.len() as u32
                    })),
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
        // A node for all that a pointer may lead to: each call is one edge.
        edges.append(&mut lists);
        outside.sort_unstable();
        outside.dedup_by_key(|(name, _)| *name);
        let is_called = called(&edges);
        let has_loop: Vec<bool> = module.functions.iter().zip(&is_called).map(|(function, called)| *called && pays(function)).collect();
        let mut at_entry = entries(&edges, count);
        let in_sight = in_sight(&edges, &module.functions);
        let unwinds = unwind(&in_sight, &has_loop, &mut at_entry);
        let leads = leads_to_loops(&edges, &has_loop, &mut at_entry);
        let below = below(&edges, &has_loop, &at_entry);
        let leads_to_loops = |function: &Function<'a>, call: &Call<'a>| match calls.callee(function, call) {
            Callee::Known(to) => leads[to as usize],
            Callee::Pointer(all) => by_list.get(&all.as_ptr()).is_some_and(|node| leads[*node as usize]),
            Callee::Launch(_) | Callee::Outside(_) | Callee::Lost => false,
        };
        let of_function = |function: &Function<'a>| {
            function.calls.iter().filter(|call| leads_to_loops(function, call)).map(|call| call.statement).collect()
        };
        let repeats = if has_loop.contains(&true) { module.functions.iter().map(of_function).collect() } else { Vec::new() };
        Self { in_sight, at_entry, unwinds, repeats, below, outside }
    }

    /// The statements of a function that call loops that pay, before anything polls.
    pub(in crate::polls) fn repeats(&self, function: u32) -> &[u32] {
        self.repeats.get(function as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether a function polls where it begins.
    pub(in crate::polls) fn polls_at_entry(&self, function: u32) -> bool {
        self.at_entry[function as usize]
    }

    /// Whether a function calls itself, by way of others or not, or such a function leads to it. Activations return one behind the other, and what stands
    /// behind the call runs as often as a stack holds them, without a poll between.
    pub(in crate::polls) fn unwinds(&self, function: u32) -> bool {
        self.unwinds[function as usize]
    }

    /// Whether a function calls one that polls.
    pub(in crate::polls) fn polls_below(&self, function: u32) -> bool {
        self.below[function as usize]
    }

    /// Functions that run in a kernel with one that `has` something: what calls lead to it, and what calls lead to from there. A kernel that is launched runs
    /// in blocks of its own. What is out of sight is left out.
    pub(in crate::polls) fn together(&self, functions: &[Function<'a>], has: impl Fn(&Function<'a>) -> bool) -> Vec<bool> {
        let with = (0..).zip(functions).filter(|(_, function)| has(function)).map(|(index, _)| index).collect();
        let above = led_to(&callers(&self.in_sight), with);
        let mut all = led_to(&self.in_sight, (0..).zip(&above).filter(|(_, is_above)| **is_above).map(|(node, _)| node).collect());
        all.truncate(functions.len());
        all
    }

    /// Functions that are called and have no body in the module, with the offset of a call.
    pub(in crate::polls) fn outside(&self) -> &[(&'a str, u32)] {
        &self.outside
    }
}

/// Functions on cycles of calls, and those below which there are too many activations.
fn entries(edges: &[Vec<u32>], count: usize) -> Vec<bool> {
    let mut at_entry = on_cycles(edges);
    // What polls where it begins counts as one.
    let mut activations = vec![1_u32; edges.len()];
    callees_first(edges, |node| {
        // A list of functions is none itself.
        let is_list = node > count;
        let counts_as_one = |to: &u32| *to as usize <= count && at_entry[*to as usize];
        let below = edges[node].iter().map(|to| if counts_as_one(to) { 1 } else { activations[*to as usize] });
        activations[node] = below.fold(u32::from(!is_list), u32::saturating_add);
        at_entry[node] |= activations[node] > MOST;
    });
    at_entry.truncate(count);
    at_entry
}

/// Which nodes lie on cycles.
fn on_cycles(edges: &[Vec<u32>]) -> Vec<bool> {
    let nodes: Vec<u32> = (0..edges.len() as u32).collect();
    let mut found = vec![false; edges.len()];
    for component in Components::default().find(edges.len(), &nodes, |node, nth| edges[node as usize].get(nth as usize).map(|to| Some(*to)))
    {
        for member in component {
            found[member as usize] = true;
        }
    }
    found
}

/// Calls of functions of the module: without launches, and without what is out of sight.
fn in_sight(edges: &[Vec<u32>], functions: &[Function<'_>]) -> Vec<Vec<u32>> {
    let is_called = |to: &u32| functions.get(*to as usize).map_or(*to as usize > functions.len(), |function| !function.is_kernel);
    edges.iter().map(|all| all.iter().copied().filter(is_called).collect()).collect()
}

/// Recursive functions, and those that they lead to: each activation that returns may call these. Those with loops poll where they begin.
fn unwind(edges: &[Vec<u32>], has_loop: &[bool], at_entry: &mut [bool]) -> Vec<bool> {
    let below = led_to(edges, (0..).zip(on_cycles(edges)).filter(|(_, is_one)| *is_one).map(|(node, _)| node).collect());
    for (at_entry, (below, has_loop)) in at_entry.iter_mut().zip(below.iter().zip(has_loop)) {
        *at_entry |= *below && *has_loop;
    }
    below
}

/// Visits each function behind those that it calls. Where calls lead back, one of them comes first.
fn callees_first(edges: &[Vec<u32>], mut visit: impl FnMut(usize)) {
    let mut is_met = vec![false; edges.len()];
    let mut work: Vec<(u32, usize)> = Vec::new();
    for root in 0..edges.len() as u32 {
        work.push((root, 0));
        while let Some((node, nth)) = work.pop() {
            if nth == 0 && std::mem::replace(&mut is_met[node as usize], true) {
                continue;
            }
            if let Some(&to) = edges[node as usize].get(nth) {
                work.push((node, nth + 1));
                work.push((to, 0));
                continue;
            }
            visit(node as usize);
        }
    }
}

/// Which functions are called.
fn called(edges: &[Vec<u32>]) -> Vec<bool> {
    let mut called = vec![false; edges.len()];
    for to in edges.iter().flatten() {
        called[*to as usize] = true;
    }
    called
}

/// Which functions lead to a loop before anything polls. One whose own loops may call such a function polls where it begins, too: each activation has an
/// allowance of its own, and those of three such functions multiply to too many rounds.
fn leads_to_loops(edges: &[Vec<u32>], has_loop: &[bool], at_entry: &mut [bool]) -> Vec<bool> {
    let mut leads = vec![false; edges.len()];
    callees_first(edges, |node| {
        let leads_below = edges[node].iter().any(|to| leads[*to as usize]);
        match has_loop.get(node) {
            Some(has_loop) => {
                at_entry[node] |= *has_loop && leads_below;
                leads[node] = !at_entry[node] && (*has_loop || leads_below);
            }
            // What is out of sight leads nowhere, a list of functions to each of them.
            None => leads[node] = node > has_loop.len() && leads_below,
        }
    });
    leads
}

/// Who calls each node.
fn callers(edges: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut callers: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |to| (from, *to))) {
        callers[to as usize].push(from as u32);
    }
    callers
}

/// The nodes of `work`, and all that these lead to.
fn led_to(edges: &[Vec<u32>], mut work: Vec<u32>) -> Vec<bool> {
    let mut found = vec![false; edges.len()];
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut found[node as usize], true) {
            work.extend(&edges[node as usize]);
        }
    }
    found
}

/// Functions that lead to a poll by calls.
fn below(edges: &[Vec<u32>], has_loop: &[bool], at_entry: &[bool]) -> Vec<bool> {
    let count = has_loop.len();
    let callers = callers(edges);
    let mut below = vec![false; edges.len()];
    let polls = |at: &u32| has_loop[*at as usize] || at_entry[*at as usize] && !callers[*at as usize].is_empty();
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
    use super::{MOST, entries, leads_to_loops};

    #[test]
    fn a_function_polls_at_its_entry_where_too_much_is_called_below_it() {
        let leaf = |calls: u32| entries(&[vec![1; calls as usize], vec![], vec![]], 2);
        assert_eq!(leaf(MOST - 1), [false, false]);
        assert_eq!(leaf(MOST), [true, false]);
    }

    #[test]
    fn a_function_whose_loops_call_loops_polls_where_it_begins() {
        // Each calls the next one, and all but 2 have loops.
        let edges = [vec![1], vec![2], vec![3], vec![], vec![]];
        let mut at_entry = [false; 4];
        let leads = leads_to_loops(&edges, &[true, true, false, true], &mut at_entry);
        assert_eq!((at_entry, &leads[..4]), ([false, true, false, false], [true, false, true, true].as_slice()));
    }
}
