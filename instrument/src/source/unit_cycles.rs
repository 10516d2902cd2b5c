//! What files of a translation unit are to each other: cycles of calls that pass several of them, and files that stand in functions of others.

use crate::common::options::Options;
use crate::source::analysis::call_graph::{Call, CallGraph};
use crate::source::analysis::declared_type::Types;
use crate::source::analysis::descent::{self, Descent};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::{condition, definition};
use crate::source::unit_text::UnitText;
use std::collections::BTreeSet;

/// What the other files of a unit do with one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Role {
    /// Where the bodies begin of its functions that lie on a cycle with functions of others, and that these call. A poll in each leaves no cycle but those
    /// within one file.
    pub(crate) entered: BTreeSet<usize>,
    /// Whether another may include it within a device function.
    pub(crate) is_piece: bool,
}

/// The roles of these files, given as names and texts.
pub(crate) fn roles(files: &[(&str, &[u8])], options: &Options) -> Vec<Role> {
    let mut roles = vec![Role::default(); files.len()];
    if files.len() < 2 {
        return roles;
    }
    // A file alone may hold half of a function; with those that include it, it is whole.
    let unit = UnitText::new(files);
    let lexed = condition::read(&unit.text);
    if let Ok(fragment) = Fragment::of_file(&lexed) {
        find(&unit, &fragment, &Macros::read(&unit.text, &lexed, options), options, &mut roles);
        return roles;
    }
    // Where files stand in functions is not known then.
    for role in &mut roles {
        role.is_piece = true;
    }
    let unit = UnitText::of_whole(files);
    let lexed = condition::read(&unit.text);
    if let Ok(fragment) = Fragment::of_file(&lexed) {
        find(&unit, &fragment, &Macros::read(&unit.text, &lexed, options), options, &mut roles);
    }
    roles
}

fn find(unit: &UnitText, fragment: &Fragment, macros: &Macros, options: &Options, roles: &mut [Role]) {
    let text = &unit.text;
    let code = definition::device_code(text, fragment, macros, options);
    let functions: Vec<&Function> = code.functions.values().collect();
    let place = |token: usize| unit.place(fragment.tokens[token].start as usize);
    let file = |function: usize| place(functions[function].open).0;
    for (index, function) in functions.iter().enumerate() {
        let bytes = fragment.tokens[function.open].start as usize..fragment.tokens[function.close].end as usize;
        for piece in unit.files_in(bytes).filter(|piece| *piece != file(index)) {
            roles[piece].is_piece = true;
        }
    }
    let mut types = Types::default();
    types.read(text, fragment, macros);
    let calls = CallGraph::new(text, fragment, &functions, macros, types);
    // A call may stand in a file that is a piece of the function around it.
    let is_from_other = |caller: usize, call: &Call| {
        let caller_file = file(caller);
        call.callee < functions.len() && (file(call.callee) != caller_file || (call.at > 0 && place(call.at).0 != caller_file))
    };
    let mut cycles = calls.cycles();
    cycles.retain(|cycle| {
        let crosses = cycle.iter().any(|(caller, calls)| calls.iter().any(|call| is_from_other(*caller, call)));
        crosses || cycle.keys().map(|function| file(*function)).collect::<BTreeSet<_>>().len() > 1
    });
    let ends = descent::of_cycles(text, fragment, &functions, macros, &cycles);
    for cycle in &cycles {
        let is_indirect = cycle.values().flatten().any(|call| call.callee >= functions.len());
        let from_others = cycle.iter().flat_map(|(caller, calls)| calls.iter().map(|call| (*caller, call)));
        let from_others = from_others.filter(|(caller, call)| is_from_other(*caller, call)).map(|(_, call)| call.callee);
        // What a pointer or a variable leads to may stand in any file.
        let entered: BTreeSet<usize> = from_others.chain(cycle.keys().copied().filter(|_| is_indirect)).collect();
        for function in entered.into_iter().filter(|function| !matches!(ends.get(function), Some(Descent::Instances | Descent::Deduced))) {
            let (file, offset) = place(functions[function].open);
            roles[file].entered.insert(offset);
        }
    }
}
