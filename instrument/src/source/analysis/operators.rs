//! Functions that are called by no name of their own: overloaded operators, conversions, literals, and what belongs to a class's values.

use crate::source::analysis::call_graph;
use crate::source::analysis::declared_type::{Type, Types};
use crate::source::analysis::implicit_call::Implicit;
use crate::source::syntax::class;
use crate::source::syntax::declaration::is_declared;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// An overloaded operator.
#[derive(Debug)]
struct Overload<'a> {
    function: usize,
    /// The operands' types; none where the list is not plain.
    operands: Vec<Type<'a>>,
    /// Fewest and most operands.
    count: (usize, usize),
    result: Type<'a>,
    class: Option<&'a [u8]>,
    is_member: bool,
}

/// What belongs to the values of a class.
#[derive(Debug, Default)]
pub(crate) struct ClassParts<'a> {
    /// Conversions, constructors that a conversion may call, the destructor.
    pub(crate) functions: BTreeSet<usize>,
    /// Classes of its members and bases.
    pub(crate) parts: BTreeSet<&'a [u8]>,
    converts: bool,
    /// Whether a value of another type becomes one.
    is_made: bool,
    has_base: bool,
}

/// All of a fragment's.
#[derive(Debug, Default)]
pub(crate) struct Operators<'a> {
    by_sign: BTreeMap<Vec<u8>, Vec<Overload<'a>>>,
    pub(crate) classes: BTreeMap<&'a [u8], ClassParts<'a>>,
    pub(crate) literals: Vec<usize>,
    conversions: Vec<usize>,
    /// Functions of the name `get`, which a declaration of several names calls.
    pub(crate) getters: Vec<usize>,
    /// What a range-based loop calls.
    pub(crate) of_ranges: Vec<usize>,
    /// Signs that are parameters of a macro.
    pub(crate) words: BTreeSet<&'a [u8]>,
    pub(crate) has_comma: bool,
    /// Whether some `+=` takes a number on its left.
    pub(crate) has_foreign_target: bool,
    /// Names of functions.
    pub(crate) names: BTreeSet<&'a [u8]>,
    /// Braces of classes, each with the class's name.
    braces: BTreeMap<usize, &'a [u8]>,
    /// For each token that begins a function's head, or a declaration in a class, the class's brace.
    around: Vec<u32>,
    /// What the bodies of macros may call, as far as it was asked.
    behind_macros: RefCell<BTreeMap<&'a [u8], Rc<Vec<Implicit<'a>>>>>,
}

impl<'a> Operators<'a> {
    pub(crate) fn new(source: &'a [u8], fragment: &Fragment, functions: &[&Function], macros: &Macros, types: &Types<'a>) -> Self {
        let mut found = Self { around: around(source, fragment), ..Self::default() };
        for open in found.around.iter().collect::<BTreeSet<_>>().into_iter().filter(|open| **open != u32::MAX) {
            let open = *open as usize;
            let mut head = (0..open)
                .rev()
                .take(class::MOST_HEAD)
                .take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
            let key = head.find(|at| {
                class::is_class_key(source, fragment, *at) && !matches!(fragment.kind(at.wrapping_sub(1)), Some(Kind::Punct(b'<' | b',')))
            });
            let name = key.and_then(|key| {
                (key + 1..open).find(|at| fragment.kind(*at) == Some(Kind::Ident) && types.classes.contains(fragment.text(source, *at)))
            });
            if let Some(name) = name {
                found.braces.insert(open, fragment.text(source, name));
            }
        }
        for (index, function) in functions.iter().enumerate() {
            let Some(name) = function.name else { continue };
            if fragment.kind(name) == Some(Kind::Operator) {
                found.add_operator(source, fragment, macros, types, index, function, name);
                continue;
            }
            if fragment.kind(name.wrapping_sub(1)) == Some(Kind::Str) && fragment.kind(name.wrapping_sub(2)) == Some(Kind::Operator) {
                found.literals.push(index);
            }
            let text = fragment.text(source, name);
            found.names.insert(text);
            match text {
                b"get" => found.getters.push(index),
                b"begin" | b"end" => found.of_ranges.push(index),
                _ => {}
            }
            found.add_special(source, fragment, index, function, name);
        }
        for (sign, count) in [(&b"++"[..], 1), (b"*", 1), (b"!=", 2), (b"==", 2)] {
            if !found.of_ranges.is_empty() {
                let more = found.overloads(sign, Some(count), &[]);
                found.of_ranges.extend(more);
            }
        }
        found.has_comma = found.by_sign.contains_key(&b","[..]);
        let is_foreign = |(sign, overloads): (&Vec<u8>, &Vec<Overload>)| {
            sign.len() > 1
                && sign.ends_with(b"=")
                && !matches!(&sign[..], b"==" | b"!=" | b"<=" | b">=")
                && overloads.iter().any(|overload| overload.operands.first().is_none_or(Type::is_number))
        };
        found.has_foreign_target = found.by_sign.iter().any(is_foreign);
        found.read_classes(source, fragment, types);
        found
    }

    #[expect(clippy::too_many_arguments, reason = "an operator's head is read with all facts of the file")]
    fn add_operator(
        &mut self,
        source: &'a [u8],
        fragment: &Fragment,
        macros: &Macros,
        types: &Types<'a>,
        index: usize,
        function: &Function,
        name: usize,
    ) {
        let sign = sign_of(source, fragment, name);
        let class = self.class_of(source, fragment, function);
        if sign.starts_with(b"\"\"") {
            self.literals.push(index);
        }
        if fragment.of_macro.is_some() && fragment.kind(name + 1) == Some(Kind::Ident) {
            self.words.insert(fragment.text(source, name + 1));
        }
        if is_conversion(source, fragment, name) && fragment.of_macro.is_none() {
            self.conversions.push(index);
            if let Some(class) = class {
                let parts = self.classes.entry(class).or_default();
                parts.functions.insert(index);
                parts.converts = true;
            }
            return;
        }
        let Some((open, close)) = call_graph::list(fragment, function) else { return };
        let (fewest, most) = call_graph::parameters(source, fragment, Some((open, close)));
        let is_friend = (function.head.saturating_sub(8)..name).any(|at| fragment.text(source, at) == b"friend");
        let is_static = matches!(&sign[..], b"new" | b"delete" | b"new[]" | b"delete[]");
        let is_member = !is_friend && !is_static && class.is_some();
        let is_unknown = fragment.of_macro.is_some();
        let own = usize::from(is_member);
        let mut operands: Vec<Type> = class.filter(|_| is_member).map(Type::class).into_iter().collect();
        let mut from = open + 1;
        for at in open + 1..=close {
            if at == close || (fragment.is(at, b',') && !(from..at).any(|token| fragment.is(token, b'<'))) {
                if from < at {
                    operands.push(parameter(source, fragment, macros, types, from..at));
                }
                from = at + 1;
            }
        }
        let count = if is_unknown { (0, usize::MAX) } else { (fewest + own, most.saturating_add(own)) };
        let result = types.of_words(source, fragment, macros, function.head..name);
        self.by_sign.entry(sign).or_default().push(Overload { function: index, operands, count, result, class, is_member });
    }

    /// Constructors and destructors.
    fn add_special(&mut self, source: &'a [u8], fragment: &Fragment, index: usize, function: &Function, name: usize) {
        let Some(class) = self.class_of(source, fragment, function).filter(|class| *class == fragment.text(source, name)) else { return };
        let parts = self.classes.entry(class).or_default();
        let is_destructor = name > 0 && fragment.is(name - 1, b'~');
        let is_explicit = (function.head.saturating_sub(4)..name).any(|at| fragment.text(source, at) == b"explicit");
        let (fewest, most) = call_graph::parameters(source, fragment, call_graph::list(fragment, function));
        if is_destructor || !is_explicit || fewest == 0 {
            parts.functions.insert(index);
        }
        let of_own =
            call_graph::list(fragment, function).is_some_and(|(open, close)| (open..close).any(|at| fragment.text(source, at) == class));
        parts.is_made |= !is_destructor && !is_explicit && fewest <= 1 && most >= 1 && !of_own;
    }

    /// Members and bases of each class, and functions that initialise members.
    fn read_classes(&mut self, source: &'a [u8], fragment: &Fragment, types: &Types<'a>) {
        for (&open, &name) in &self.braces {
            let Some(close) = fragment.mate(open).filter(|close| *close > open) else { continue };
            let head = (0..open)
                .rev()
                .take(class::MOST_HEAD)
                .take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
            let first = head.last().unwrap_or(open);
            let parts = self.classes.entry(name).or_default();
            parts.has_base |= (first..open).any(|at| fragment.is(at, b':'));
            for at in first..close {
                let is_level = at < open || self.around.get(at).is_some_and(|around| *around == open as u32);
                let text = fragment.text(source, at);
                let is_value = !matches!(fragment.kind(at + 1), Some(Kind::Punct(b'*' | b'&') | Kind::Scope));
                if is_level && fragment.kind(at) == Some(Kind::Ident) && text != name && is_value && types.classes.contains(text) {
                    parts.parts.insert(text);
                }
            }
        }
    }

    /// The brace of the class that a token at the level of its members stands in.
    pub(crate) fn class_around(&self, at: usize) -> Option<usize> {
        self.around.get(at).filter(|open| **open != u32::MAX).map(|open| *open as usize)
    }

    /// The classes' braces, with their names.
    pub(crate) fn braces(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.braces.iter().map(|(open, name)| (*open, *name))
    }

    /// The class that a function belongs to: it stands in it, or is named with it.
    pub(crate) fn class_of(&self, source: &'a [u8], fragment: &Fragment, function: &Function) -> Option<&'a [u8]> {
        let name = function.name?;
        let first = if name > 0 && fragment.is(name - 1, b'~') { name - 1 } else { name };
        if let Some(scope) = first.checked_sub(1).filter(|scope| fragment.kind(*scope) == Some(Kind::Scope)) {
            let mut at = scope.checked_sub(1)?;
            while fragment.kind(at) != Some(Kind::Ident) || fragment.is(at + 1, b',') {
                at = at.checked_sub(1).filter(|at| scope - at < 32)?;
            }
            // Arguments of a template stand behind its name.
            if fragment.is(scope - 1, b'>') {
                let open = (at.saturating_sub(32)..scope).rev().find(|token| fragment.is(*token, b'<'))?;
                at = open.checked_sub(1)?;
            }
            return Some(fragment.text(source, at));
        }
        self.class_around(function.head).and_then(|open| self.braces.get(&open).copied())
    }

    /// The signs that the tokens from `at` on may be.
    pub(crate) fn signs_at(source: &'a [u8], fragment: &Fragment, at: usize) -> Vec<Vec<u8>> {
        let text = fragment.text(source, at);
        let mut sign = text.to_vec();
        if matches!(sign[..], [b'[']) {
            sign = b"[]".to_vec();
        }
        let mut found = vec![sign.clone()];
        for next in at + 1..(at + 3).min(fragment.len()) {
            if fragment.tokens[next].start != fragment.tokens[next - 1].end
                || !matches!(fragment.kind(next), Some(Kind::Punct(b'>' | b'*') | Kind::Op))
            {
                break;
            }
            sign.extend_from_slice(fragment.text(source, next));
            found.push(sign.clone());
        }
        match &found[0][..] {
            b"!=" => found.push(b"==".to_vec()),
            b"<" | b">" | b"<=" | b">=" => found.push(b"<=>".to_vec()),
            _ => {}
        }
        found
    }

    /// How many tokens the sign has: `>>` and `->*` are two.
    pub(crate) fn width(fragment: &Fragment, at: usize) -> usize {
        let joins = |next: usize| fragment.tokens.get(next).is_some_and(|token| token.start == fragment.tokens[next - 1].end);
        match fragment.kind(at) {
            Some(Kind::Punct(b'>')) if joins(at + 1) && fragment.is(at + 1, b'>') => 2,
            Some(Kind::Arrow) if joins(at + 1) && fragment.is(at + 1, b'*') => 2,
            _ => 1,
        }
    }

    /// The functions of that sign which these operands may fit.
    pub(crate) fn overloads(&self, sign: &[u8], count: Option<usize>, operands: &[Option<&Type<'a>>]) -> Vec<usize> {
        let overloads = self.by_sign.get(sign).map_or(&[][..], Vec::as_slice);
        // An operand may be of very many classes, which are not to be read for each overload.
        let become_any: Vec<bool> = operands.iter().map(|operand| operand.is_none_or(|operand| self.becomes_any(operand))).collect();
        let fits = |overload: &&Overload<'a>| {
            // The object of a member is converted to nothing else.
            let is_object = overload.is_member && operands.first().is_some_and(|first| first.is_some_and(Type::is_number));
            let converts = |(parameter, (operand, becomes_any)): (&Type<'a>, (Option<&Type<'a>>, &bool))| {
                *becomes_any || operand.is_none_or(|operand| self.converts(operand, parameter))
            };
            count.is_none_or(|count| overload.count.0 <= count && count <= overload.count.1)
                && !is_object
                && overload.operands.iter().zip(operands.iter().copied().zip(&become_any)).all(converts)
        };
        let mut found: BTreeSet<usize> = overloads.iter().filter(fits).map(|overload| overload.function).collect();
        found.extend(self.of_parts(sign, operands));
        found.into_iter().collect()
    }

    /// Functions of that sign which the compiler's own for these operands call: those of their members and bases.
    fn of_parts(&self, sign: &[u8], operands: &[Option<&Type<'a>>]) -> BTreeSet<usize> {
        let signs: &[&[u8]] = match sign {
            b"=" | b"==" => &[sign],
            b"<=>" => &[b"<=>", b"<", b"=="],
            _ => return BTreeSet::new(),
        };
        let mut parts: BTreeSet<&[u8]> = BTreeSet::new();
        let mut work: Vec<&[u8]> = operands.iter().copied().flatten().flat_map(|operand| operand.classes.iter().copied()).collect();
        while let Some(class) = work.pop() {
            let of_class = self.classes.get(class).into_iter().flat_map(|of_class| of_class.parts.iter().copied());
            work.extend(of_class.filter(|part| parts.insert(part)));
        }
        let is_of_part = |overload: &&Overload<'a>| {
            let first = overload.operands.first().into_iter().flat_map(|first| first.classes.iter());
            overload.class.iter().chain(first).any(|class| parts.contains(class))
        };
        let overloads = signs.iter().filter_map(|sign| self.by_sign.get(*sign)).flatten();
        overloads.filter(is_of_part).map(|overload| overload.function).collect()
    }

    /// Whether a value of the type may be passed whatever is asked for.
    fn becomes_any(&self, from: &Type<'a>) -> bool {
        from.any || from.foreign || self.classes_convert(&from.classes)
    }

    /// Whether a value of the first type, which does not become any, may be passed where the second is asked for.
    fn converts(&self, from: &Type<'a>, to: &Type<'a>) -> bool {
        if to.any || to.foreign {
            return true;
        }
        if from.is_number() {
            return to.is_number() || to.classes.iter().any(|class| self.is_made(class));
        }
        if from.vector {
            return to.vector || to.classes.iter().any(|class| self.is_made(class));
        }
        to.classes.iter().any(|class| from.classes.contains(class) || self.is_made(class))
    }

    fn classes_convert(&self, classes: &BTreeSet<&[u8]>) -> bool {
        classes.iter().any(|class| self.classes.get(class).is_none_or(|parts| parts.converts || parts.has_base))
    }

    fn is_made(&self, class: &[u8]) -> bool {
        self.classes.get(class).is_none_or(|parts| parts.is_made || parts.has_base)
    }

    pub(crate) fn may_inherit(&self, class: &[u8]) -> bool {
        self.classes.get(class).is_none_or(|parts| parts.has_base)
    }

    /// What operators of that sign return.
    pub(crate) fn result(&self, sign: &[u8]) -> Type<'a> {
        let mut overloads = self.by_sign.get(sign).into_iter().flatten();
        let Some(first) = overloads.next() else { return Type { any: true, ..Type::foreign() } };
        let mut result = first.result.clone();
        overloads.for_each(|overload| result.join(&overload.result));
        result
    }

    /// Call operators of these classes.
    pub(crate) fn call_operators_of(&self, classes: &BTreeSet<&'a [u8]>) -> Vec<usize> {
        let overloads = self.by_sign.get(&b"()"[..]).into_iter().flatten();
        overloads.filter(|overload| overload.class.is_none_or(|class| classes.contains(class))).map(|overload| overload.function).collect()
    }

    /// All call operators.
    pub(crate) fn call_operators(&self) -> impl Iterator<Item = usize> {
        self.by_sign.get(&b"()"[..]).into_iter().flatten().map(|overload| overload.function)
    }

    /// The functions that `new` and `delete` call: a destructor may be that of any class that inherits.
    pub(crate) fn allocation(&self, word: &[u8]) -> Vec<usize> {
        let both = [word.to_vec(), [word, b"[]"].concat()];
        let mut found: Vec<usize> = both.iter().flat_map(|sign| self.overloads(sign, None, &[])).collect();
        if word == b"delete" {
            found.extend(self.classes.values().flat_map(|parts| &parts.functions));
        }
        found
    }

    /// The functions that the word `operator` at the token names.
    pub(crate) fn named_at(&self, source: &'a [u8], fragment: &Fragment, at: usize) -> Vec<usize> {
        if is_conversion(source, fragment, at) {
            return self.conversions.clone();
        }
        self.overloads(&sign_of(source, fragment, at), None, &[])
    }

    /// Behind the name that the word `operator` begins.
    pub(crate) fn name_end(fragment: &Fragment, at: usize) -> usize {
        let end = (at + 1..(at + 5).min(fragment.len())).find(|end| fragment.is(*end, b'(')).unwrap_or(at + 1);
        if end == at + 1 && fragment.is(end, b'(') { at + 3 } else { end }
    }

    /// What the bodies of a macro may call: overloads of the signs in it, and what belongs to the classes that it names.
    pub(crate) fn behind_macro(&self, source: &'a [u8], macros: &Macros, name: &'a [u8]) -> Rc<Vec<Implicit<'a>>> {
        if let Some(known) = self.behind_macros.borrow().get(name) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.read_behind_macro(source, macros, name));
        self.behind_macros.borrow_mut().insert(name, Rc::clone(&found));
        found
    }

    fn read_behind_macro(&self, source: &'a [u8], macros: &Macros, name: &'a [u8]) -> Vec<Implicit<'a>> {
        if self.by_sign.is_empty() && self.classes.is_empty() {
            return Vec::new();
        }
        let (mut found, mut seen, mut work) = (Vec::new(), BTreeSet::from([name]), vec![name]);
        while let Some(name) = work.pop() {
            for body in macros.bodies_of(name) {
                for at in 0..body.len() {
                    let text = body.text(source, at);
                    if body.kind(at) == Some(Kind::Ident) {
                        if self.classes.contains_key(text) {
                            found.push(Implicit::Class(text));
                        }
                        if macros.is_defined(text) && seen.insert(text) {
                            work.push(text);
                        }
                        continue;
                    }
                    for sign in Self::signs_at(source, body, at) {
                        let functions = self.overloads(&sign, None, &[]);
                        if !functions.is_empty() {
                            found.push(Implicit::Functions(functions));
                        }
                    }
                }
            }
        }
        found
    }
}

/// The type of a parameter without its name and its default.
fn parameter<'a>(source: &'a [u8], fragment: &Fragment, macros: &Macros, types: &Types<'a>, words: Range<usize>) -> Type<'a> {
    if words.clone().any(|token| fragment.kind(token) == Some(Kind::Op) && fragment.text(source, token) == b"...") {
        return Type::any();
    }
    let end = words.clone().find(|token| fragment.kind(*token) == Some(Kind::Assign)).unwrap_or(words.end);
    let is_named = end > words.start + 1 && fragment.kind(end - 1) == Some(Kind::Ident) && is_declared(source, fragment, end - 1);
    types.of_words(source, fragment, macros, words.start..end - usize::from(is_named))
}

/// The sign behind the word `operator`.
fn sign_of(source: &[u8], fragment: &Fragment, at: usize) -> Vec<u8> {
    if fragment.is(at + 1, b'(') && fragment.is(at + 2, b')') {
        return b"()".to_vec();
    }
    let end = (at + 1..(at + 6).min(fragment.len()))
        .find(|end| fragment.is(*end, b'(') || (*end > at + 1 && fragment.is(*end, b'<')))
        .unwrap_or(at + 2);
    (at + 1..end).flat_map(|token| fragment.text(source, token).iter().copied()).collect()
}

/// Whether a type stands behind the word `operator`.
fn is_conversion(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    matches!(fragment.kind(at + 1), Some(Kind::Ident | Kind::Keyword | Kind::Scope))
        && !matches!(fragment.text(source, at + 1), b"new" | b"delete" | b"co_await")
}

/// For each token the brace of the class at whose level it stands, in a list of parameters too.
fn around(source: &[u8], fragment: &Fragment) -> Vec<u32> {
    let mut around = vec![u32::MAX; fragment.len()];
    // Braces around the token: where each ends, and the class's brace or none.
    let mut open: Vec<(usize, u32)> = Vec::new();
    for (at, class) in around.iter_mut().enumerate() {
        while open.last().is_some_and(|(close, _)| *close <= at) {
            open.pop();
        }
        *class = open.last().map_or(u32::MAX, |(_, brace)| *brace);
        if fragment.is(at, b'{')
            && let Some(close) = fragment.mate(at).filter(|close| *close > at)
        {
            open.push((close, if class::is_class(source, fragment, at) { at as u32 } else { u32::MAX }));
        }
    }
    around
}
