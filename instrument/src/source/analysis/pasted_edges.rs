//! The edges of the call graph by names that macros paste together.

use crate::source::analysis::purity;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::pasting::{Parts, Pasting};
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a function's pasted name.
enum Name<'a> {
    /// A use of a macro makes it.
    Use(Parts<'a>),
    /// It stands in a macro's body: its first and last parts, but for parameters.
    Ends(Option<&'a [u8]>, Option<&'a [u8]>),
}

impl Name<'_> {
    fn may_be(&self, name: &[u8]) -> bool {
        match self {
            Self::Use(parts) => parts.make(name),
            Self::Ends(first, last) => first.is_none_or(|first| name.starts_with(first)) && last.is_none_or(|last| name.ends_with(last)),
        }
    }
}

/// The calls of each function by such names, or of functions with such names: each callee, and the token that names it.
pub(crate) fn of<'a>(
    source: &'a [u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &'a Macros<'a>,
    by_name: &BTreeMap<&'a [u8], Vec<usize>>,
) -> Vec<BTreeSet<(usize, usize)>> {
    let pasting = Pasting::new(source, macros, by_name.keys().copied().collect());
    let named = functions.iter().enumerate();
    let pasted: Vec<(usize, Name)> =
        named.filter_map(|(index, function)| Some((index, name_of(source, fragment, macros, &pasting, function.name?)?))).collect();
    let calls = |function: &&Function| {
        let mut found = BTreeSet::new();
        for at in (function.open..function.close).filter(|at| fragment.kind(*at) == Some(Kind::Ident)) {
            let name = fragment.text(source, at);
            if macros.pastes(name) || !macros.is_defined(name) {
                let callees = pasting.names_of(fragment, at).into_iter().filter_map(|name| by_name.get(name)).flatten();
                found.extend(callees.map(|callee| (*callee, at)));
            }
            if fragment.is(at + 1, b'(') && !macros.is_defined(name) {
                let callees = pasted.iter().filter(|(_, pasted)| pasted.may_be(name));
                found.extend(callees.map(|(callee, _)| (*callee, at)));
            }
        }
        found
    };
    functions.iter().map(calls).collect()
}

fn name_of<'a>(source: &'a [u8], fragment: &Fragment, macros: &Macros, pasting: &Pasting<'a>, name: usize) -> Option<Name<'a>> {
    if macros.pastes(fragment.text(source, name)) && fragment.is(name + 1, b'(') {
        return pasting.parts(fragment, name).map(Name::Use);
    }
    let is_pasted = |at: usize| fragment.is(at, b'#') && fragment.is(at + 1, b'#');
    let (mut first, mut last) = (name, name);
    while first >= 3 && is_pasted(first - 2) {
        first -= 3;
    }
    while is_pasted(last + 1) {
        last += 3;
    }
    let parameters = fragment.of_macro.as_ref().map_or_else(BTreeSet::new, |name| purity::parameters(source, name.end));
    let spelled = |at: usize| Some(fragment.text(source, at)).filter(|part| !parameters.contains(part));
    (first < last).then(|| Name::Ends(spelled(first), spelled(last)))
}
