//! The two ends of a kernel: where its first block says that the launch began, and which places ask before a return whether it is being stopped.

use crate::polls::emit::edits::{Edits, Insertion};
use crate::polls::emit::{self, Fuel, Spelling};
use crate::polls::find::{Cycles, Loops, NONE};
use cuinstr_ptx::{Flow, Function, Graph, Kind, Span, Statement, tokens};

/// Puts the question on the ways to a kernel's returns. Threads that return in its first lines, before anything could
/// poll, do not ask: a part of a warp may return by more than one guarded instruction. Behind that, ptxas takes the
/// warp for divided to the kernel's end.
pub(in crate::polls) fn ask(text: &str, cycles: &Cycles<'_, '_>, (spelling, fuel): (Spelling, Fuel), site: u64, edits: &mut Edits) -> bool {
    let Cycles { function, graph, loops } = cycles;
    let behind = behind_polls(function, graph, loops);
    let mut has_asked = false;
    let mut put = |at: u32, guard: Option<(&str, bool)>| {
        emit::ends::exit(&mut edits.at(at), guard);
        has_asked = true;
    };
    for (number, block) in (0..).zip(&graph.blocks).filter(|(number, _)| loops.is_reached(*number)) {
        let last = function.statements[block.end as usize - 1];
        let returns = last.flow == Flow::Return || last.flow == Flow::End && last.opcode(text) == "exit";
        if !returns || last.guarded {
            continue;
        }
        if block.end - block.first > 1 || number == 0 {
            put(last.start, None);
            continue;
        }
        // Of blocks that end with a table, the one in front alone matters.
        let before = (number > 0).then(|| number - 1).filter(|before| graph.edges_to(*before, number).next().is_some());
        let sources = graph.node_sources(number).filter(|source| (*source as usize) < graph.blocks.len()).chain(before);
        let mut sources: Vec<u32> = sources.filter(|source| loops.is_reached(*source)).collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            let from = graph.blocks[source as usize];
            let branch = function.statements[from.end as usize - 1];
            let takes = |when| graph.edges_to(source, number).any(|edge| edge.when == when);
            if branch.flow == Flow::Branch && branch.guarded && takes(Some(true)) {
                let guard = Span { start: branch.start, end: branch.opcode };
                let name = tokens(guard.of(text)).find(|token| token.kind == Kind::Word).map(|token| token.span.of(guard.of(text)));
                let is_negated = tokens(guard.of(text)).any(|token| token.kind == Kind::Mark(b'!'));
                if let Some(name) = name.filter(|_| behind[source as usize]) {
                    put(branch.start, Some((name, !is_negated)));
                }
            } else if branch.flow == Flow::Branch && !branch.guarded {
                put(branch.start, None);
            }
            if takes(Some(false)) || branch.flow != Flow::Branch && source + 1 == number {
                put(before_label(function, block.first), None);
            }
        }
    }
    if has_asked {
        let mut out = edits.at(function.body.end - 1);
        close(cycles, &mut out);
        emit::ends::returns(&mut out, spelling, fuel, is_flat(text, function), site);
    }
    has_asked
}

/// Whether a kernel never reads a second coordinate of its threads and blocks.
pub(in crate::polls) fn is_flat(text: &str, function: &Function<'_>) -> bool {
    !reads(text, function, 'y')
}

/// Whether a kernel reads this coordinate of its threads or blocks.
fn reads(text: &str, function: &Function<'_>, axis: char) -> bool {
    memchr::memmem::find(function.body.of(text).as_bytes(), format!("id.{axis}").as_bytes()).is_some()
}

/// What may stand in front of where a kernel says that it began: none of it waits for memory.
const QUICK: [&str; 12] = ["mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "setp"];

/// Has the kernel's first block say that it began. In front of the kernel's first load or branch, its threads have read their numbers anyway.
pub(in crate::polls) fn begin(text: &str, cycles: &Cycles<'_, '_>, edits: &mut Edits) {
    let Cycles { function, graph, loops } = cycles;
    let is_quick = |statement: &Statement| {
        let opcode = statement.whole_opcode(text);
        let first = opcode.split('.').next().unwrap_or("");
        statement.flow == Flow::Next && (QUICK.contains(&first) || opcode.starts_with("ld.param"))
    };
    // Not in a cycle that leads back to the first statement.
    let entry = graph
        .blocks
        .first()
        .filter(|_| loops.innermost(0) == NONE && !loops.is_in_irreducible(0))
        .map_or(&[][..], |block| &function.statements[..block.end as usize]);
    let slow = entry.iter().find(|statement| !is_quick(statement)).or(entry.last());
    let axes: Vec<char> = ['y', 'z'].into_iter().filter(|axis| reads(text, function, *axis)).collect();
    emit::ends::begins(&mut edits.at(slow.map_or(function.body.start + 1, |statement| statement.start)), &axes);
}

/// Returns where control comes to the closing brace, for what is put in front of that.
pub(in crate::polls) fn close(cycles: &Cycles<'_, '_>, out: &mut Insertion<'_>) {
    let last = cycles.function.statements.len() as u32 - 1;
    if cycles.loops.is_reached(cycles.graph.block_of(last)) {
        out.push("\tret;\n");
    }
}

/// Blocks that loops or calls lead to, and tables behind them.
fn behind_polls(function: &Function<'_>, graph: &Graph, loops: &Loops) -> Vec<bool> {
    let mut behind = vec![false; graph.node_count() as usize];
    let calls = (0..).zip(&graph.blocks).filter(|(_, block)| function.statements[block.end as usize - 1].flow == Flow::Call);
    let mut work: Vec<u32> = calls.map(|(number, _)| number).chain(loops.all.iter().map(|one| one.header)).collect();
    while let Some(node) = work.pop() {
        if !std::mem::replace(&mut behind[node as usize], true) {
            work.extend((0..).map_while(|nth| graph.step(node, nth)).flatten());
        }
    }
    behind
}

/// Offset in front of the first label of a statement.
pub(in crate::polls) fn before_label(function: &Function<'_>, statement: u32) -> u32 {
    let first = function.labels.partition_point(|label| label.statement < statement);
    let label = function.labels.get(first).filter(|label| label.statement == statement);
    label.map_or(function.statements[statement as usize].start, |label| label.at)
}
