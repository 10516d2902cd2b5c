//! Tells of loops that the compiler makes: the text has no place for a poll in them.

use super::planner::{Owner, Planner};
use crate::common::diagnostic::{Code, Diagnostic};
use crate::source::analysis::compiler_loop;
use crate::source::analysis::file_facts::FileFacts;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::pasting::Pasting;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl Planner<'_> {
    /// Learns which macros of the file bring such loops along. `names` are those of its device functions.
    pub(super) fn read_macros(&mut self, file: &Fragment, names: &[&[u8]]) {
        let (functions, call_costs) = (names.iter().copied().collect::<BTreeSet<_>>(), BTreeMap::new());
        let facts = FileFacts {
            source: self.input.source,
            lexed: self.input.lexed,
            fragment: file,
            macros: self.input.macros,
            declarations: &self.declarations,
            functions: &functions,
            others: &self.others,
            call_costs: &call_costs,
        };
        let macros = self.input.macros;
        let of_others = macros.compiler_loops().map(|(name, made)| (name.to_vec(), made)).collect();
        self.compiler_loops = compiler_loop::of_macros(&facts, &self.types, of_others);
        let names = macros.definitions().map(|(name, _)| name).chain(macros.compiler_loops().map(|(name, _)| name));
        let names = names.filter(|name| self.compiler_loops.contains_key(*name)).collect();
        self.pasted_loops = Pasting::new(self.input.source, macros, names);
    }

    /// The loops of a body that the compiler makes, each with what to tell of it. Those of a macro that is planned itself are told where it is defined.
    pub(super) fn compiler_loops_in(&self, facts: &FileFacts, range: Range<usize>) -> Vec<(usize, &'static str)> {
        let of_macro = |at: usize| {
            let name =
                Some(at).filter(|at| facts.fragment.kind(*at) == Some(Kind::Ident)).map(|at| facts.fragment.text(facts.source, at))?;
            let own = self.compiler_loops.get(name).and_then(|made| compiler_loop::of_use(facts, &[], at, *made));
            own.or_else(|| self.compiler_loops.get(*self.pasted_loops.names_of(facts.fragment, at).first()?).copied())
        };
        let made = |at: usize| compiler_loop::at(facts, &self.types, &[], at).or_else(|| of_macro(at));
        range.filter_map(|at| Some((at, made(at)?.message))).collect()
    }

    /// Tells of these, in functions that are not left alone.
    pub(super) fn tell_of_compiler_loops(
        &mut self,
        fragment: &Fragment,
        found: Vec<(usize, &'static str)>,
        owner: impl Fn(usize) -> Owner,
    ) {
        for (at, message) in found {
            let owner = owner(at);
            if owner.untouched.is_none() {
                self.plan.summary.gaps += 1;
                let diagnostic = Diagnostic::new(Code::CompilerLoop, message).at(fragment.tokens[at].range());
                self.plan.diagnostics.push(diagnostic.in_function(owner.name).help("write the loop out, so that it gets a poll"));
            }
        }
    }
}
