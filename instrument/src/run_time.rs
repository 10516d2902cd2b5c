//! What is surely not known before the kernel runs. A loop whose trips the compiler may know stays the user's own loop, so that it can be
//! unrolled as a whole and arrays that it indexes can live in registers.

use crate::declaration::is_declared;
use crate::induction;
use crate::invariant::Home;
use crate::read_only;
use crate::statement::Loop;
use crate::token::Kind;
use std::ops::Range;

/// How many declarations are followed from one to another.
const DEPTH: usize = 4;

impl Home<'_> {
    /// Whether the value of the tokens is known at run time only, for they name something that is.
    pub(crate) fn is_of_run_time(&self, range: Range<usize>, loop_: &Loop) -> bool {
        self.any_of_run_time(range, Some(loop_), DEPTH)
    }

    fn any_of_run_time(&self, range: Range<usize>, loop_: Option<&Loop>, depth: usize) -> bool {
        let (fragment, source) = (self.context.fragment, self.context.source);
        range.into_iter().any(|at| match fragment.tokens[at].kind {
            Kind::Punct(b'[') | Kind::Arrow => true,
            Kind::Ident => {
                let name = fragment.text(source, at);
                let is_member = at > 0 && matches!(fragment.kind(at - 1), Some(Kind::Punct(b'.') | Kind::Scope));
                !is_member
                    && (matches!(name, b"threadIdx" | b"blockIdx" | b"blockDim" | b"gridDim")
                        || (fragment.is(at + 1, b'(') && !read_only::is_by_value(self.context, at))
                        || (depth > 0 && self.is_variable_of_run_time(name, loop_, depth - 1)))
            }
            _ => false,
        })
    }

    /// Whether the function has a variable of that name whose value comes from its caller, from memory or from a loop.
    fn is_variable_of_run_time(&self, name: &[u8], loop_: Option<&Loop>, depth: usize) -> bool {
        let (fragment, source) = (self.context.fragment, self.context.source);
        let mut outer = loop_.and_then(|loop_| loop_.outer);
        while let Some(index) = outer {
            let around = &self.body.loops[index];
            if let Some(found) = induction::read(self.context, around)
                && found.counter == name
                && !found.type_.is_empty()
            {
                // A counter of a loop that may be unrolled is a constant in each copy.
                return [found.start, found.bound].into_iter().any(|range| self.any_of_run_time(range, Some(around), depth));
            }
            outer = around.outer;
        }
        let mut declared = None;
        for at in self.range.clone() {
            if fragment.kind(at) != Some(Kind::Ident) || fragment.text(source, at) != name {
                continue;
            }
            let before = at.checked_sub(1).and_then(|index| fragment.kind(index));
            if matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) {
                continue;
            }
            if is_declared(source, fragment, at) {
                declared = declared.or(Some(at));
            } else if matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::OpAssign | Kind::Step)) || before == Some(Kind::Step) {
                return declared.is_some();
            }
        }
        let Some(at) = declared else { return false };
        if at < self.open {
            return true;
        }
        let end = (at..self.range.end).find(|index| fragment.is(*index, b';')).unwrap_or(at);
        self.any_of_run_time(at + 1..end, None, depth)
    }
}
