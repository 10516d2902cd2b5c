//! Functions that macros make, on cycles of calls with functions of the file. The call graph of the file does not hold them, since the text has no such
//! functions, and that of the macro's body holds none of the file.

use crate::source::analysis::call_graph::{Call, CallGraph, components};
use crate::source::analysis::expansion::Expansion;
use crate::source::analysis::purity;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::{self, Function};
use crate::source::syntax::macros::Macros;
use crate::source::syntax::pasting::Pasting;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// A macro that makes functions.
struct Maker<'a> {
    name: &'a [u8],
    /// Names of these, as its body spells them.
    functions: BTreeSet<&'a [u8]>,
    /// Whether the uses decide some of the names.
    names_by_use: bool,
    /// Whether it calls what its uses name.
    calls_by_use: bool,
}

/// The macros whose functions may lie on such a cycle.
pub(crate) fn on_cycles<'a>(
    source: &'a [u8],
    file: &Fragment,
    functions: &[&Function],
    graph: &CallGraph,
    macros: &'a Macros<'a>,
    expansion: &Expansion<'a>,
) -> BTreeSet<&'a [u8]> {
    let makers: Vec<Maker> = macros.fragments.iter().filter_map(|body| maker(source, body, macros)).collect();
    if makers.is_empty() {
        return BTreeSet::new();
    }
    let mut defined: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    let mut open: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        defined.entry(function.name.map_or(&b""[..], |name| file.text(source, name))).or_default().push(index);
    }
    for (index, function) in functions.iter().enumerate() {
        for at in (function.head..function.close).filter(|at| file.kind(*at) == Some(Kind::Ident) && file.is(at + 1, b'(')) {
            if !defined.contains_key(file.text(source, at)) {
                open.entry(file.text(source, at)).or_default().push(index);
            }
        }
    }
    // What macros make may be called by others of that kind only.
    for (_, body) in macros.definitions() {
        let called = (0..body.len()).filter(|at| body.kind(*at) == Some(Kind::Ident) && body.is(at + 1, b'('));
        for name in called.map(|at| body.text(source, at)).filter(|name| !defined.contains_key(name)) {
            open.entry(name).or_default();
        }
    }
    let uses = uses(source, file, macros, &makers.iter().map(|maker| maker.name).collect());
    let made_of = Pasting::new(source, macros, open.keys().copied().collect());
    let called_of = Pasting::new(source, macros, defined.keys().copied().collect());
    let mut edges: Vec<Vec<Call>> = vec![Vec::new(); makers.len()];
    edges.extend(
        graph
            .edges()
            .into_iter()
            .map(|calls| calls.into_iter().map(|call| Call { callee: call.callee + makers.len(), ..call }).collect::<Vec<_>>()),
    );
    let mut made: BTreeMap<&[u8], BTreeSet<usize>> = BTreeMap::new();
    let mut named: Vec<BTreeSet<&[u8]>> = Vec::with_capacity(makers.len());
    for (index, maker) in makers.iter().enumerate() {
        let mut own = maker.functions.clone();
        let mut words: BTreeSet<&[u8]> = expansion.words_of(maker.name).into_keys().collect();
        for (fragment, at) in uses.get(maker.name).into_iter().flatten() {
            let close = fragment.mate(at + 1).filter(|close| *close > *at && fragment.is(at + 1, b'(')).unwrap_or(*at);
            let arguments = || (*at..close).filter(|at| fragment.kind(*at) == Some(Kind::Ident)).map(|at| fragment.text(source, at));
            if maker.names_by_use {
                own.extend(arguments());
                own.extend(made_of.names_of(fragment, *at));
            }
            if maker.calls_by_use {
                words.extend(arguments());
                words.extend(called_of.names_of(fragment, *at));
                words.extend(made_of.names_of(fragment, *at));
            }
        }
        for name in own.into_iter().filter(|name| open.contains_key(name)) {
            made.entry(name).or_default().insert(index);
        }
        named.push(words);
    }
    for (name, makers_of) in &made {
        for caller in open.get(name).into_iter().flatten() {
            edges[makers.len() + caller].extend(makers_of.iter().map(|callee| Call { callee: *callee, at: 0 }));
        }
    }
    for (index, words) in named.iter().enumerate() {
        let of_file = words.iter().filter_map(|word| defined.get(word)).flatten().map(|callee| callee + makers.len());
        let of_macros = words.iter().filter_map(|word| made.get(word)).flatten().copied();
        edges[index] = of_file.chain(of_macros).map(|callee| Call { callee, at: 0 }).collect();
    }
    components(&edges, makers.len()).into_iter().flat_map(BTreeMap::into_keys).map(|index| makers[index].name).collect()
}

fn maker<'a>(source: &'a [u8], body: &Fragment, macros: &Macros) -> Option<Maker<'a>> {
    let functions = function::find(source, body, macros).functions;
    let name = body.of_macro.clone().filter(|_| !functions.is_empty())?;
    let parameters = purity::parameters(source, name.end);
    let is_pasted = |at: usize| body.is(at + 1, b'#') || at.checked_sub(1).is_some_and(|before| body.is(before, b'#'));
    let names: BTreeSet<usize> = functions.values().filter_map(|function| function.name).collect();
    let by_use = |at: usize| parameters.contains(body.text(source, at)) || is_pasted(at) || macros.pastes(body.text(source, at));
    let is_call = |at: &usize| body.kind(*at) == Some(Kind::Ident) && body.is(at + 1, b'(') && !names.contains(at);
    Some(Maker {
        name: &source[name],
        functions: names.iter().filter(|at| !by_use(**at)).map(|at| body.text(source, *at)).collect(),
        names_by_use: names.iter().any(|at| by_use(*at)),
        calls_by_use: (0..body.len()).filter(is_call).any(by_use),
    })
}

/// The uses of these macros, in the file and in bodies of other macros.
fn uses<'a, 'b>(
    source: &'a [u8],
    file: &'b Fragment,
    macros: &'b Macros<'a>,
    of: &BTreeSet<&'a [u8]>,
) -> BTreeMap<&'a [u8], Vec<(&'b Fragment, usize)>> {
    let mut found: BTreeMap<&[u8], Vec<(&Fragment, usize)>> = BTreeMap::new();
    for fragment in std::iter::once(file).chain(macros.bodies()) {
        for at in (0..fragment.len()).filter(|at| fragment.kind(*at) == Some(Kind::Ident) && of.contains(fragment.text(source, *at))) {
            found.entry(fragment.text(source, at)).or_default().push((fragment, at));
        }
    }
    found
}
