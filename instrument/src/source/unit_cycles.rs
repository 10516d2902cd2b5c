//! Cycles of calls that pass several files of a translation unit. Each file knows of its own.

use crate::common::options::Options;
use crate::source::analysis::call_graph::CallGraph;
use crate::source::analysis::declared_type::Types;
use crate::source::analysis::descent::{self, Descent};
use crate::source::syntax::definition;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::lex;
use std::collections::BTreeSet;

/// For each of these texts: where the bodies begin of its functions that lie on a cycle with functions of others, and that these call. A poll in each
/// leaves no cycle but those within one file.
pub(crate) fn entered(files: &[&[u8]], options: &Options) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); files.len()];
    // As if all of it stood in one file.
    let text = files.iter().flat_map(|file| [file, &b"\n"[..]]).collect::<Vec<_>>().concat();
    let mut begins = Vec::with_capacity(files.len());
    let mut length = 0;
    for file in files {
        begins.push(length);
        length += file.len() + 1;
    }
    let lexed = lex(&text, 0..text.len(), false);
    let Ok(fragment) = Fragment::of_file(&lexed) else { return found };
    let macros = Macros::read(&text, &lexed, options);
    let code = definition::device_code(&text, &fragment, &macros, options);
    let functions: Vec<&Function> = code.functions.values().collect();
    let place = |function: usize| fragment.tokens[functions[function].open].start as usize;
    let file = |function: usize| begins.partition_point(|begin| *begin <= place(function)) - 1;
    if (1..functions.len()).all(|function| file(function) == file(0)) {
        return found;
    }
    let mut types = Types::default();
    types.read(&text, &fragment, &macros);
    let calls = CallGraph::new(&text, &fragment, &functions, &macros, types);
    let mut cycles = calls.cycles();
    cycles.retain(|cycle| cycle.keys().map(|function| file(*function)).collect::<BTreeSet<_>>().len() > 1);
    let ends = descent::of_cycles(&text, &fragment, &functions, &macros, &cycles);
    for cycle in &cycles {
        let is_indirect = cycle.values().flatten().any(|call| call.callee >= functions.len());
        let from_others = cycle.iter().flat_map(|(caller, calls)| calls.iter().map(|call| (*caller, call.callee)));
        let from_others = from_others.filter(|(caller, callee)| *callee < functions.len() && file(*caller) != file(*callee));
        // What a pointer or a variable leads to may stand in any file.
        let entered: BTreeSet<usize> = from_others.map(|(_, callee)| callee).chain(cycle.keys().copied().filter(|_| is_indirect)).collect();
        for function in entered.into_iter().filter(|function| !matches!(ends.get(function), Some(Descent::Instances | Descent::Deduced))) {
            found[file(function)].push(place(function) - begins[file(function)]);
        }
    }
    found
}
