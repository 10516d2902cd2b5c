//! Macros of a translation unit's files that the compiler makes loops of. The uses may stand in other files than the definitions.

use crate::common::options::{CompilerLoop, Options};
use crate::source::analysis::compiler_loop;
use crate::source::analysis::declared_type::Types;
use crate::source::analysis::file_facts::FileFacts;
use crate::source::syntax::declaration::Declarations;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::{Kind, Lexed, Line};
use std::collections::{BTreeMap, BTreeSet};

/// These macros by their names. `options` say what is known of the unit's values and device functions.
pub(crate) fn of_macros(files: &[(&[u8], &Lexed)], options: &Options) -> BTreeMap<Vec<u8>, CompilerLoop> {
    let mut found = BTreeMap::new();
    // Most units have no such macro, and then no file is read any further.
    if !files.iter().any(|(source, lexed)| has_suspect(source, lexed)) {
        return found;
    }
    let read: Vec<(&[u8], &Lexed, Macros)> =
        files.iter().map(|(source, lexed)| (*source, *lexed, Macros::read(source, lexed, options))).collect();
    let is_due = |(source, _, macros): &(&[u8], &Lexed, Macros)| macros.bodies().any(|body| compiler_loop::is_suspect(source, body));
    let mut work: Vec<bool> = read.iter().map(is_due).collect();
    while work.contains(&true) {
        let mut learnt: BTreeSet<Vec<u8>> = BTreeSet::new();
        for ((source, lexed, macros), is_due) in read.iter().zip(&work) {
            if *is_due {
                for (name, made) in of_file(source, lexed, macros, options, &found) {
                    if compiler_loop::learn(&mut found, &name, made) {
                        learnt.insert(name);
                    }
                }
            }
        }
        let names = |source: &[u8], body: &Fragment| {
            body.tokens.iter().any(|token| token.kind == Kind::Ident && learnt.contains(&source[token.range()]))
        };
        work = read.iter().map(|(source, _, macros)| macros.bodies().any(|body| names(source, body))).collect();
    }
    found
}

/// Whether a definition may bring such a loop, by its bytes.
fn has_suspect(source: &[u8], lexed: &Lexed) -> bool {
    lexed.directives.iter().any(|directive| {
        let Line::Define(define) = &directive.line else { return false };
        let has = |word: &[u8]| memchr::memmem::find(&source[define.body.clone()], word).is_some();
        has(b"mem") || has(b"new") || has(b"delete") || (has(b"]") && has(b"{"))
    })
}

fn of_file(
    source: &[u8],
    lexed: &Lexed,
    macros: &Macros,
    options: &Options,
    known: &BTreeMap<Vec<u8>, CompilerLoop>,
) -> BTreeMap<Vec<u8>, CompilerLoop> {
    let (mut declarations, mut types) = (Declarations::default(), Types::default());
    let file = Fragment::of_file(lexed).ok();
    for fragment in file.iter().chain(macros.bodies()) {
        declarations.read(source, fragment);
    }
    if let Some(file) = &file {
        types.read(source, file, macros);
    }
    // The body of each macro takes its place.
    let Some(fragment) = macros.bodies().next() else { return BTreeMap::new() };
    let functions = options.device_functions.iter().map(String::as_bytes).collect();
    let (others, call_costs) = (BTreeSet::new(), BTreeMap::new());
    let facts = FileFacts {
        source,
        lexed,
        fragment,
        macros,
        declarations: &declarations,
        functions: &functions,
        others: &others,
        call_costs: &call_costs,
    };
    compiler_loop::of_macros(&facts, &types, known.clone())
}
