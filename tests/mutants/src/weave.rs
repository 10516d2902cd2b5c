//! Puts many faults into the same text, each behind a question whether it is the one in force: they are compiled once, and run one by one.

use crate::listed::{Genre, Mutant, Place};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A change of the text that holds one fault.
#[derive(Debug)]
pub(crate) struct Edit {
    /// The fault's number, from 1.
    pub(crate) number: usize,
    /// What is replaced.
    pub(crate) range: Range<usize>,
    text: String,
}

/// The text with all edits, and where each lies in it.
pub(crate) fn weave(text: &str, edits: &[&Edit]) -> (String, Vec<(usize, Range<usize>)>) {
    let mut sorted: Vec<_> = edits.to_vec();
    sorted.sort_by_key(|edit| edit.range.start);
    let (mut out, mut places, mut at) = (String::new(), Vec::new(), 0);
    for edit in sorted {
        out.push_str(&text[at..edit.range.start]);
        let begin = out.len();
        out.push_str(&edit.text);
        places.push((edit.number, begin..out.len()));
        at = edit.range.end;
    }
    out.push_str(&text[at..]);
    (out, places)
}

/// The edit that holds a fault; nothing where it has no such form: in a constant, around a `let`.
pub(crate) fn edit(file: &syn::File, text: &str, mutant: &Mutant, number: usize) -> Option<Edit> {
    let mut finder = Finder { text, mutant, number, constants: 0, found: None };
    finder.visit_file(file);
    finder.found
}

struct Finder<'a> {
    text: &'a str,
    mutant: &'a Mutant,
    number: usize,
    constants: usize,
    found: Option<Edit>,
}

impl Finder<'_> {
    fn range(&self, node: &impl Spanned) -> Range<usize> {
        let span = node.span();
        Place::from(span.start()).offset(self.text)..Place::from(span.end()).offset(self.text)
    }

    fn begins(&self, node: &impl Spanned) -> bool {
        Place::from(node.span().start()) == self.mutant.span.start
    }

    fn is(&self, genre: Genre) -> bool {
        self.found.is_none() && self.constants == 0 && self.mutant.genre == genre
    }

    fn put(&mut self, range: Range<usize>, text: String) {
        self.found = Some(Edit { number: self.number, range, text });
    }

    fn either(&mut self, node: &impl Spanned, instead: &str) {
        let range = self.range(node);
        let text = format!("(if crate::__mutant({}) {{ {instead} }} else {{ {} }})", self.number, &self.text[range.clone()]);
        self.put(range, text);
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        self.constants += 1;
        visit(self);
        self.constants -= 1;
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() || is_opaque(&signature.output) || !self.is(Genre::FnValue) {
            return;
        }
        let (span, wanted) = (block.span(), &self.mutant.span);
        let is_it = Place::from(span.start()) <= wanted.start && wanted.end <= Place::from(span.end());
        let begins = block.stmts.first().is_some_and(|first| self.begins(first));
        if is_it && begins {
            let at = Place::from(block.brace_token.span.open().end()).offset(self.text);
            self.put(at..at, format!(" if crate::__mutant({}) {{ return {}; }} ", self.number, self.mutant.replacement));
        }
    }
}

/// Whether a function returns some type with a trait, which two ways to return can't share.
fn is_opaque(output: &syn::ReturnType) -> bool {
    struct Opaque(bool);
    impl<'ast> Visit<'ast> for Opaque {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut opaque = Opaque(false);
    opaque.visit_return_type(output);
    opaque.0
}

/// Whether an expression binds something, as an arm of `if let` does.
fn binds(expr: &syn::Expr) -> bool {
    struct Binds(bool);
    impl<'ast> Visit<'ast> for Binds {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
        fn visit_expr_block(&mut self, _: &'ast syn::ExprBlock) {}
        fn visit_expr_if(&mut self, _: &'ast syn::ExprIf) {}
        fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    }
    let mut binds = Binds(false);
    binds.visit_expr(expr);
    binds.0
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant(|finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant(|finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant(|finder| visit::visit_item_static(finder, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let is_constant = item.sig.constness.is_some();
        self.body(&item.sig, &item.block);
        self.constants += usize::from(is_constant);
        visit::visit_item_fn(self, item);
        self.constants -= usize::from(is_constant);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_constant = item.sig.constness.is_some();
        self.body(&item.sig, &item.block);
        self.constants += usize::from(is_constant);
        visit::visit_impl_item_fn(self, item);
        self.constants -= usize::from(is_constant);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if self.is(Genre::BinaryOperator) && self.begins(&expr.op) && !binds(&expr.left) && !binds(&expr.right) {
            let (left, right) = (self.range(&expr.left), self.range(&expr.right));
            let instead = format!("{} {} {}", &self.text[left], self.mutant.replacement, &self.text[right]);
            self.either(expr, &instead);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        if self.is(Genre::UnaryOperator) && self.begins(expr) {
            let inner = self.text[self.range(&expr.expr)].to_owned();
            self.either(expr, &inner);
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| &**guard).filter(|guard| !binds(guard));
        if let Some(guard) = guard.filter(|guard| self.is(Genre::MatchArmGuard) && self.begins(*guard)) {
            let instead = self.mutant.replacement.clone();
            self.either(guard, &instead);
        } else if self.is(Genre::MatchArm) && self.begins(arm) && guard.is_some() == arm.guard.is_some() {
            let pattern = self.range(&arm.pat);
            let end = guard.map_or(pattern.end, |guard| self.range(guard).end);
            let rest = guard.map_or(String::new(), |guard| format!(" && ({})", &self.text[self.range(guard)]));
            let text = format!("{} if !crate::__mutant({}){rest}", &self.text[pattern.clone()], self.number);
            self.put(pattern.start..end, text);
        }
        visit::visit_arm(self, arm);
    }
}
