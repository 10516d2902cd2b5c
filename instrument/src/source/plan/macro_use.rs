//! Uses of macros in statement position. A macro may open a loop, or jump.

use super::planner::{Known, Owner, Planner};
use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::site::{Form, Kind as SiteKind};
use crate::source::analysis::census;
use crate::source::plan::backward_goto;
use crate::source::plan::placement::{self, Place};
use crate::source::syntax::scopes::innermost_scope;
use crate::source::syntax::statement::{self, Body};
use crate::source::syntax::token::Kind;

impl Planner<'_> {
    /// A use of a macro that jumps back: its text is shared by places that may jump ahead, so it is told and not polled.
    pub(super) fn jump_of_macro(&mut self, known: &Known, owners: &[Owner], body: &Body, at: usize) {
        let fragment = known.fragment;
        let macros = self.input.macros;
        if macros.jumps(fragment.text(self.input.source, at)).any(|label| !backward_goto::is_ahead(body, at, label)) {
            let owner = &owners[innermost_scope(fragment, body, at)];
            if owner.untouched.is_none() {
                self.plan.summary.loops += 1;
                self.gap(Code::NotPolled, "this macro may jump back: it is not polled", fragment, at, owner, SiteKind::Goto);
            }
        }
    }

    /// A use of a macro that repeats by a text which gets no polls.
    pub(super) fn repeating_macro(&mut self, known: &Known, owner: &Owner, at: usize) {
        if owner.untouched.is_none() && self.input.macros.repeats(known.fragment.text(self.input.source, at)) {
            self.plan.summary.loops += 1;
            let message = "this macro of the command line, or of a header that is not rewritten, may repeat: it is not polled";
            self.gap(Code::NotPolled, message, known.fragment, at, owner, SiteKind::MacroLoop);
        }
    }

    /// A use of a macro that this file does not define, or that is known to open a loop.
    pub(super) fn macro_use(&mut self, known: &Known, owner: &Owner, use_: &statement::MacroUse, budget: &mut bool) {
        let fragment = known.fragment;
        let macros = self.input.macros;
        let name = fragment.text(self.input.source, use_.name);
        if owner.untouched.is_some()
            || macros.is_own(name)
            || macros.is_plain(name)
            || macros.repeats(name)
            || census::is_target_macro(name)
        {
            return;
        }
        let opener = macros.is_loop_opener(name);
        let capital = !name.iter().any(u8::is_ascii_lowercase);
        let like =
            |words: &[&str]| words.iter().any(|word| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes())));
        let behind = use_.arguments.map_or(use_.name, |(_, close)| close);
        let next = fragment.skip_arms(behind + 1);
        let before_keyword = !matches!(fragment.kind(next), Some(Kind::Ident | Kind::Punct(b'{')));
        let suspicious = if use_.block.is_some() {
            capital || crate::source::syntax::macros::sounds_like_a_loop(name)
        } else if before_keyword || (capital && !placement::is_declarator(fragment, next)) {
            !like(&["unroll", "pragma", "likely", "assert", "check"])
        } else {
            like(&["loop", "for_each", "foreach", "while", "repeat"])
        };
        if !opener && !suspicious {
            return;
        }
        let at = fragment.tokens[use_.name].start as usize;
        let text = String::from_utf8_lossy(name).into_owned();
        let report = |planner: &mut Self, message: String| {
            let help = format!("if it opens a loop, name it in cuinstr.toml: loop-macros = [\"{text}\"]");
            planner.plan.summary.gaps += 1;
            planner.plan.diagnostics.push(
                Diagnostic::new(Code::UnknownLoopMacro, message)
                    .at(fragment.tokens[use_.name].range())
                    .in_function(owner.name.clone())
                    .help(help),
            );
        };
        if opener {
            self.plan.summary.loops += 1;
        }
        let place = match use_.block {
            // Only where no arm of an `#if` lies between: another may hold another brace.
            Some(block) if block == behind + 1 => Some(Place::Brace { at: fragment.behind_label_declarations(self.input.source, block) }),
            None if opener && placement::is_plain_statement(fragment, &[], behind + 1, use_.end) => {
                use_.end.map(|end| Place::Wrap { open: fragment.tokens[behind].end as usize, close: fragment.tokens[end].end as usize })
            }
            _ => None,
        };
        let Some(place) = place else {
            if opener {
                return self.gap(Code::NotPolled, "this loop has no place for a poll", fragment, use_.name, owner, SiteKind::MacroLoop);
            }
            self.site(SiteKind::MacroLoop, at, owner, Form::None, Some("the macro is not known".to_owned()));
            return report(self, format!("`{text}` is not defined here: if it opens a loop, that loop is not polled"));
        };
        let site = self.site(SiteKind::MacroLoop, at, owner, owner.style.form(), None);
        *budget = true;
        self.poll(place, owner.style, site);
        if opener {
            self.plan.summary.polled += 1;
        } else {
            report(self, format!("`{text}` is not defined here: polled at its brace in case it opens a loop"));
        }
    }
}
