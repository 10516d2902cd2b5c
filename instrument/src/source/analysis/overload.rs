//! Overloads that a call can't choose, told from text: a number is no vector.
//!
//! Headers of vector functions (`float3 clamp(float3 v, float a, float b) { return make_float3(clamp(v.x, a, b), …); }`) call the overload for numbers,
//! component by component. By names alone each of them seems to call itself, and would be polled at each call.

use crate::source::syntax::declaration;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::BTreeSet;

/// Words that make a number's type.
const NUMBERS: &[&[u8]] = &[b"bool", b"char", b"short", b"int", b"long", b"float", b"double", b"unsigned", b"signed"];

/// The class of a parameter or an argument, as far as its tokens tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Number,
    Vector,
    Unknown,
}

/// A function's parameters: the class and the name of each.
#[derive(Debug, Default)]
pub(crate) struct Parameters<'a> {
    list: Vec<(Class, &'a [u8])>,
    /// Whether the body is one `return` of an expression without braces, so that the names can mean nothing else in it: lambdas, blocks and
    /// declarations need braces or a statement of their own.
    is_expression: bool,
}

impl<'a> Parameters<'a> {
    /// Reads the list between two parentheses, and the body behind it. A list that is not plain tells nothing.
    pub(crate) fn read(
        source: &'a [u8],
        fragment: &Fragment,
        macros: &Macros,
        vectors: &Vectors,
        function: &Function,
        (open, close): (usize, usize),
    ) -> Self {
        let Some(entries) = entries(fragment, open, close) else { return Self::default() };
        let list = entries.into_iter().map(|(from, to)| parameter(source, fragment, macros, vectors, from, to)).collect();
        let is_return = fragment.kind(function.open + 1) == Some(Kind::Return) && fragment.is(function.close - 1, b';');
        let is_plain = (function.open + 2..function.close - 1)
            .all(|at| !matches!(fragment.kind(at), Some(Kind::Punct(b'{' | b'}' | b';') | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd)));
        Self { list, is_expression: is_return && is_plain }
    }

    /// The classes of a call's arguments between two parentheses, in this function's body.
    pub(crate) fn classify(&self, source: &[u8], fragment: &Fragment, macros: &Macros, open: usize, close: usize) -> Vec<Class> {
        let entries = if self.is_expression { entries(fragment, open, close) } else { None };
        let one = |(from, to)| self.argument(source, fragment, macros, from, to);
        entries.into_iter().flatten().map(one).collect()
    }

    /// A parameter by its name, or a component of one.
    fn argument(&self, source: &[u8], fragment: &Fragment, macros: &Macros, from: usize, to: usize) -> Class {
        let name = fragment.text(source, from);
        let class = self.list.iter().find(|(_, known)| *known == name).map_or(Class::Unknown, |(class, _)| *class);
        if fragment.kind(from) != Some(Kind::Ident) || macros.is_defined(name) {
            return Class::Unknown;
        }
        match to - from {
            1 => class,
            3 if class == Class::Vector && fragment.is(from + 1, b'.') => {
                let component = fragment.text(source, from + 2);
                let is_component = matches!(component, b"x" | b"y" | b"z" | b"w") && !macros.is_defined(component);
                if is_component { Class::Number } else { Class::Unknown }
            }
            _ => Class::Unknown,
        }
    }

    /// Whether arguments of these classes could be passed: not where a number meets a vector.
    pub(crate) fn take(&self, arguments: &[Class]) -> bool {
        let meets = |((parameter, _), argument): (&(Class, &[u8]), &Class)| *parameter == Class::Vector && *argument == Class::Number;
        !self.list.iter().zip(arguments).any(meets)
    }
}

/// The entries of a plain list; none where there are templates, packs, defaults, arms of `#if`, or nothing at all.
fn entries(fragment: &Fragment, open: usize, close: usize) -> Option<Vec<(usize, usize)>> {
    let (mut found, mut from, mut at) = (Vec::new(), open + 1, open + 1);
    while at < close {
        match fragment.kind(at)? {
            Kind::Punct(b'(' | b'[') => at = fragment.mate(at)?,
            Kind::Punct(b'<' | b'>' | b'{') | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd => return None,
            Kind::Op if fragment.tokens[at].end - fragment.tokens[at].start == 3 => return None,
            Kind::Punct(b',') => {
                found.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found.push((from, close));
    found.iter().all(|(from, to)| from < to).then_some(found)
}

/// `[const] TYPE [const] [&] NAME`.
fn parameter<'a>(source: &'a [u8], fragment: &Fragment, macros: &Macros, vectors: &Vectors, from: usize, to: usize) -> (Class, &'a [u8]) {
    let name = fragment.text(source, to - 1);
    if fragment.kind(to - 1) != Some(Kind::Ident) || macros.is_defined(name) {
        return (Class::Unknown, b"");
    }
    let is_reference = fragment.is(to - 2, b'&');
    let words = (from..to - 1 - usize::from(is_reference)).map(|at| fragment.text(source, at)).filter(|word| *word != b"const");
    let words: Vec<&[u8]> = words.collect();
    let class = match words.as_slice() {
        [word] if vectors.0.contains(word) => Class::Vector,
        [_, ..] if words.iter().all(|word| NUMBERS.contains(word)) => Class::Number,
        _ => Class::Unknown,
    };
    (class, name)
}

/// The names of CUDA's vector types that mean them in this file: it declares none of these itself.
#[derive(Debug)]
pub(crate) struct Vectors<'a>(BTreeSet<&'a [u8]>);

impl<'a> Vectors<'a> {
    pub(crate) fn new(source: &'a [u8], fragment: &Fragment, macros: &Macros) -> Self {
        let is_vector = |name: &[u8]| declaration::is_vector(name) && !macros.is_defined(name);
        let (mut used, mut declared) = (BTreeSet::new(), BTreeSet::new());
        for at in (1..fragment.len()).filter(|at| fragment.kind(*at) == Some(Kind::Ident) && is_vector(fragment.text(source, *at))) {
            let name = fragment.text(source, at);
            let is_declared = matches!(
                fragment.text(source, at - 1),
                b"struct" | b"class" | b"union" | b"enum" | b"using" | b"typename" | b"namespace" | b"::"
            ) || matches!(fragment.kind(at + 1), Some(Kind::Punct(b';') | Kind::Assign | Kind::Scope));
            if is_declared {
                declared.insert(name)
            } else {
                used.insert(name)
            };
        }
        Self(used.difference(&declared).copied().collect())
    }
}
