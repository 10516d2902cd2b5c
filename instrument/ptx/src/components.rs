//! Strongly connected components.

/// Finds strongly connected components that repeat: those of more than one node, and nodes that lead to themselves. In reverse topological order
/// (Tarjan 1972, without recursion). Scratch space is kept between calls, so that a call costs what it looks at.
#[derive(Debug, Default)]
pub struct Components {
    index: Vec<u32>,
    low: Vec<u32>,
    stack: Vec<u32>,
    work: Vec<(u32, u32)>,
}

const NEW: u32 = u32::MAX;
const PLACED: u32 = u32::MAX - 1;

impl Components {
    /// Nodes are numbers below `count`, and `nodes` are those to look at. `next(node, n)` is the node's n-th way on, `Some(None)` where that
    /// leaves the set, and None behind the last.
    pub fn find(&mut self, count: usize, nodes: &[u32], next: impl Fn(u32, u32) -> Option<Option<u32>>) -> Vec<Vec<u32>> {
        self.index.resize(count.max(self.index.len()), NEW);
        self.low.resize(count.max(self.low.len()), 0);
        let mut found = Vec::new();
        let mut order = 0;
        let mut met: Vec<u32> = Vec::new();
        for &root in nodes {
            if self.index[root as usize] != NEW {
                continue;
            }
            self.work.push((root, 0));
            while let Some((node, edge)) = self.work.pop() {
                let at = node as usize;
                if edge == 0 {
                    self.index[at] = order;
                    self.low[at] = order;
                    order += 1;
                    self.stack.push(node);
                    met.push(node);
                }
                if let Some(to) = next(node, edge) {
                    self.work.push((node, edge + 1));
                    let Some(to) = to else { continue };
                    match self.index[to as usize] {
                        NEW => self.work.push((to, 0)),
                        PLACED => {}
                        index => self.low[at] = self.low[at].min(index),
                    }
                    continue;
                }
                if let Some(&(parent, _)) = self.work.last() {
                    self.low[parent as usize] = self.low[parent as usize].min(self.low[at]);
                }
                if self.low[at] == self.index[at] {
                    let from = self.stack.iter().rposition(|&other| other == node).unwrap_or(0);
                    let component = self.stack.split_off(from);
                    for &member in &component {
                        self.index[member as usize] = PLACED;
                    }
                    if component.len() > 1 || (0..).map_while(|edge| next(node, edge)).any(|to| to == Some(node)) {
                        found.push(component);
                    }
                }
            }
        }
        for node in met {
            self.index[node as usize] = NEW;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(edges: &[&[u32]]) -> Vec<Vec<u32>> {
        let nodes: Vec<u32> = (0..edges.len() as u32).collect();
        let mut found =
            Components::default().find(edges.len(), &nodes, |node, edge| edges[node as usize].get(edge as usize).map(|to| Some(*to)));
        for component in &mut found {
            component.sort_unstable();
        }
        found
    }

    #[test]
    fn what_leads_back_is_a_component() {
        assert_eq!(components(&[&[1], &[2], &[]]), Vec::<Vec<u32>>::new());
        assert_eq!(components(&[&[1], &[0, 2], &[2]]), [vec![2], vec![0, 1]]);
        assert_eq!(components(&[&[1, 2], &[3], &[3], &[0]]), [vec![0, 1, 2, 3]]);
    }
}
