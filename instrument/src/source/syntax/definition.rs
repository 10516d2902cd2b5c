//! Function definitions without an attribute, and code outside every function.
//!
//! A function is device code if device code names it. It may be `constexpr`, marked by a macro of another file, or declared elsewhere. Such a function
//! gets polls that do nothing on the host and in the compiler's own evaluation, so one function too many costs nothing there.

use crate::common::options::Options;
use crate::source::syntax::asm;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::{Function, Head, Marked, TAKES_LIST, is_constexpr_method, is_lambda_body, marks};
use crate::source::syntax::macros::{Macros, Spaces};
use crate::source::syntax::pasting::Pasting;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Variables and functions that only device code can use.
const COORDINATES: &[&[u8]] =
    &[b"threadIdx", b"blockIdx", b"__syncthreads", b"__syncwarp", b"__shfl_sync", b"__shfl_down_sync", b"__ballot_sync"];

/// The parts of a file's text.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Unmarked functions.
    unmarked: Vec<Definition>,
    /// Runs of tokens outside every function and at one level of braces.
    outside: Vec<Range<usize>>,
    /// Uses of macros in the other runs, which make device functions of texts that get no polls.
    made_elsewhere: Vec<usize>,
}

#[derive(Debug)]
struct Definition {
    function: Function,
    /// Whether a GPU may run it although nothing in this file names it.
    suspect: bool,
}

/// The device code of a file.
#[derive(Debug, Default)]
pub(crate) struct DeviceCode {
    /// Functions by the index of their opening brace.
    pub(crate) functions: BTreeMap<usize, Function>,
    /// Runs of tokens outside every function that hold statements: a macro opens the function around them.
    pub(crate) outside: Vec<Range<usize>>,
    /// Unmarked functions that use names of device code only.
    pub(crate) unmarked: Vec<usize>,
    /// Uses of macros outside every function, which make device functions of texts that get no polls.
    pub(crate) made_elsewhere: Vec<usize>,
}

/// Finds the device code of a file.
pub(crate) fn device_code(source: &[u8], fragment: &Fragment, macros: &Macros, options: &Options) -> DeviceCode {
    let Marked { mut functions, declared } = crate::source::syntax::function::find(source, fragment, macros);
    let definitions = Definitions::read(source, fragment, macros, &functions, options);
    let mut named: BTreeSet<&[u8]> = declared.iter().map(|name| fragment.text(source, *name)).collect();
    named.extend(options.device_names.iter().map(String::as_bytes));
    named.extend(launched(source, fragment));
    named.extend(definitions.pasted(source, fragment, macros));
    let chosen = definitions.choose(source, fragment, macros, &functions, named);
    let mut unmarked = Vec::new();
    for index in chosen {
        let function = definitions.unmarked[index].function.clone();
        if (function.open..function.close).any(|at| COORDINATES.contains(&fragment.text(source, at))) {
            unmarked.push(function.open);
        }
        functions.entry(function.open).or_insert(function);
    }
    DeviceCode { functions, outside: definitions.outside, unmarked, made_elsewhere: definitions.made_elsewhere }
}

/// Names in a file, for those who rewrite several files of one unit.
#[cfg(feature = "launcher")]
#[derive(Debug, Default)]
pub(crate) struct FileNames {
    /// What its device code uses, or declares.
    pub(crate) used: BTreeSet<Vec<u8>>,
    /// Its functions that nothing marks.
    pub(crate) unmarked: BTreeSet<Vec<u8>>,
    /// Its device functions, and those that it declares.
    pub(crate) device: BTreeSet<Vec<u8>>,
}

/// The names of a file.
#[cfg(feature = "launcher")]
pub(crate) fn names(source: &[u8], fragment: &Fragment, macros: &Macros, options: &Options) -> FileNames {
    let Marked { functions, declared } = crate::source::syntax::function::find(source, fragment, macros);
    let definitions = Definitions::read(source, fragment, macros, &functions, options);
    let mut named: BTreeSet<&[u8]> = declared.iter().map(|name| fragment.text(source, *name)).collect();
    named.extend(options.device_names.iter().map(String::as_bytes));
    named.extend(launched(source, fragment));
    named.extend(definitions.pasted(source, fragment, macros));
    let name_of = |function: &Function| function.name.map(|name| fragment.text(source, name).to_vec());
    let is_function = |name: &&usize| fragment.is(**name + 1, b'(');
    let device = declared.iter().filter(is_function).map(|name| fragment.text(source, *name).to_vec()).collect();
    let mut found = FileNames { device, used: named.iter().map(|name| name.to_vec()).collect(), ..FileNames::default() };
    found.unmarked.extend(definitions.unmarked.iter().filter_map(|definition| name_of(&definition.function)));
    let chosen = definitions.choose(source, fragment, macros, &functions, named);
    for function in functions.values().chain(chosen.into_iter().map(|index| &definitions.unmarked[index].function)) {
        found.device.extend(name_of(function));
        let idents = (function.head..function.close).filter(|at| fragment.kind(*at) == Some(Kind::Ident));
        found.used.extend(idents.map(|at| fragment.text(source, at).to_vec()));
    }
    found
}

/// Whether a loop may begin at the token.
pub(crate) fn is_loop(source: &[u8], fragment: &Fragment, macros: &Macros, at: usize) -> bool {
    match fragment.kind(at) {
        Some(Kind::For | Kind::While | Kind::Do | Kind::Goto) => true,
        Some(Kind::Asm) => asm::may_loop(source, fragment, at).is_some(),
        Some(Kind::Ident) => {
            macros.looping(fragment.text(source, at)).is_some_and(|looping| looping.opens)
                || asm::use_may_loop(source, fragment, macros, at).is_some()
        }
        _ => false,
    }
}

/// Whether a use of a macro outside every function makes a device function, or the rest of one, of a text that may repeat and gets no polls.
fn makes_device_function(source: &[u8], fragment: &Fragment, macros: &Macros, at: usize) -> bool {
    let name = fragment.text(source, at);
    if fragment.kind(at) != Some(Kind::Ident) || !macros.repeats(name) {
        return false;
    }
    let is_head = |at: &usize| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}')));
    let mut head = (0..at).rev().take_while(is_head);
    macros.marks(name) || head.any(|at| marks(source, fragment, macros, at))
}

/// Names in front of `<<<`: kernels.
fn launched<'a>(source: &'a [u8], fragment: &'a Fragment) -> impl Iterator<Item = &'a [u8]> {
    let is_launch = |at: &usize| fragment.kind(*at) == Some(Kind::Op) && fragment.text(source, *at) == b"<<<";
    (0..fragment.len()).filter(is_launch).filter_map(|at| {
        let before = fragment.before(at)?;
        let name = if fragment.is(before, b'>') { before_template_list(fragment, before)? } else { before };
        (fragment.kind(name) == Some(Kind::Ident)).then(|| fragment.text(source, name))
    })
}

/// The token in front of the template arguments that end with the `>` at `close`.
fn before_template_list(fragment: &Fragment, close: usize) -> Option<usize> {
    let (mut at, mut depth) = (close, 0_u32);
    loop {
        match fragment.kind(at)? {
            Kind::Punct(b'>') => depth += 1,
            Kind::Punct(b'<') => depth -= 1,
            Kind::Punct(b')' | b']') => at = fragment.mate(at).filter(|open| *open < at)?,
            Kind::Punct(b';' | b'{' | b'}') => return None,
            _ => {}
        }
        at = fragment.before(at)?;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The `>` that ends the template list which begins at the `<` at `open`.
fn template_list_end(fragment: &Fragment, open: usize, to: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0_u32);
    while at < to {
        match fragment.kind(at)? {
            Kind::Punct(b'<') => depth += 1,
            Kind::Punct(b'>') => depth -= 1,
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at).filter(|close| *close > at)?,
            Kind::Punct(b';' | b'}') => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

impl Definitions {
    fn read(source: &[u8], fragment: &Fragment, macros: &Macros, marked: &BTreeMap<usize, Function>, options: &Options) -> Self {
        let scanner = Scanner { source, fragment, macros, marked, classes: Vec::new(), segment: 0, out: Self::default() };
        let mut found = scanner.run();
        // Declarations are no code, but in a file that stands in a function.
        let is_code = |range: &Range<usize>| options.is_piece || range.clone().any(|at| is_loop(source, fragment, macros, at));
        let others = found.outside.extract_if(.., |range| !is_code(range)).flatten();
        found.made_elsewhere = others.filter(|at| makes_device_function(source, fragment, macros, *at)).collect();
        found
    }

    /// Names of functions that uses of macros paste together, anywhere.
    fn pasted<'a>(&self, source: &'a [u8], fragment: &Fragment, macros: &'a Macros<'a>) -> BTreeSet<&'a [u8]> {
        let names = self.unmarked.iter().filter_map(|definition| definition.function.name).map(|name| fragment.text(source, name));
        let pasting = Pasting::new(source, macros, names.collect());
        let uses = (0..fragment.len()).filter(|at| macros.pastes(fragment.text(source, *at)));
        uses.flat_map(|at| pasting.names_of(fragment, at)).collect()
    }

    /// Indices of the functions that a GPU may run.
    fn choose<'a>(
        &self,
        source: &'a [u8],
        fragment: &'a Fragment,
        macros: &'a Macros,
        marked: &BTreeMap<usize, Function>,
        named: BTreeSet<&'a [u8]>,
    ) -> BTreeSet<usize> {
        let mut by_name: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        let mut chosen = BTreeSet::new();
        let mut work: Vec<usize> = Vec::new();
        for (index, Definition { function, suspect }) in self.unmarked.iter().enumerate() {
            let name = function.name.map(|name| fragment.text(source, name));
            by_name.entry(name.unwrap_or_default()).or_default().push(index);
            if *suspect && chosen.insert(index) {
                work.push(index);
            }
        }
        let mut reader = Names { source, fragment, macros, seen: BTreeSet::new(), found: named.into_iter().collect() };
        for function in marked.values() {
            reader.read(function.head..function.close);
        }
        for range in &self.outside {
            reader.read(range.clone());
        }
        loop {
            while let Some(name) = reader.next() {
                for index in by_name.get(name).into_iter().flatten() {
                    if chosen.insert(*index) {
                        work.push(*index);
                    }
                }
            }
            let Some(index) = work.pop() else { return chosen };
            reader.read(self.unmarked[index].function.head..self.unmarked[index].function.close);
        }
    }
}

/// Names in device code, each once, those in the bodies of its macros included.
struct Names<'a> {
    source: &'a [u8],
    fragment: &'a Fragment,
    macros: &'a Macros<'a>,
    seen: BTreeSet<&'a [u8]>,
    found: Vec<&'a [u8]>,
}

impl<'a> Names<'a> {
    fn read(&mut self, range: Range<usize>) {
        let fragment = self.fragment;
        self.found.extend(range.filter(|at| fragment.kind(*at) == Some(Kind::Ident)).map(|at| fragment.text(self.source, at)));
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let name = self.found.pop()?;
            if !self.seen.insert(name) {
                continue;
            }
            for body in self.macros.bodies_of(name) {
                let idents = body.tokens.iter().filter(|token| token.kind == Kind::Ident);
                self.found.extend(idents.map(|token| &self.source[token.range()]));
            }
            return Some(name);
        }
    }
}

/// Reads declarations, one after the other.
struct Scanner<'a> {
    source: &'a [u8],
    fragment: &'a Fragment,
    macros: &'a Macros<'a>,
    marked: &'a BTreeMap<usize, Function>,
    /// Classes around the current token: where each ends, and its name.
    classes: Vec<(usize, &'a [u8])>,
    /// Where the current run of tokens outside of functions began.
    segment: usize,
    out: Definitions,
}

/// The parts of a declaration so far.
#[derive(Clone, Copy, Default)]
struct Declaration {
    start: usize,
    /// The parenthesis that opens the parameters.
    parameters: Option<usize>,
    /// A value follows.
    assigned: bool,
    /// The word of a class, union, enumeration or namespace.
    class: Option<usize>,
    /// A statement, which only a function can hold.
    statement: bool,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> Definitions {
        let mut at = 0;
        let mut parentheses = 0;
        let mut now = Declaration::default();
        while at < self.fragment.len() {
            while self.classes.last().is_some_and(|(close, _)| *close < at) {
                self.classes.pop();
            }
            at = if at < parentheses { self.in_parentheses(at) } else { self.token(at, &mut now, &mut parentheses) };
        }
        self.cut(self.fragment.len(), self.fragment.len());
        self.out
    }

    /// Ends the run of tokens at `end`; the next begins at `next`.
    fn cut(&mut self, end: usize, next: usize) {
        if self.segment < end {
            self.out.outside.push(self.segment..end);
        }
        self.segment = next;
    }

    /// Passes a function's body, whose braces are given.
    fn pass(&mut self, open: usize, close: usize) -> usize {
        self.cut(open, close + 1);
        close + 1
    }

    fn in_parentheses(&mut self, at: usize) -> usize {
        if !self.fragment.is(at, b'{') {
            return at + 1;
        }
        self.body_in_expression(at).unwrap_or(at + 1)
    }

    /// Behind the body of a marked function or a lambda that begins at the brace, if one does.
    fn body_in_expression(&mut self, at: usize) -> Option<usize> {
        let close = self.fragment.mate(at).filter(|close| *close > at)?;
        if self.marked.contains_key(&at) {
            return Some(self.pass(at, close));
        }
        if !is_lambda_body(self.fragment, at) {
            return None;
        }
        let function =
            Function { name: None, head: at, open: at, close, spaces: Spaces::BOTH, constexpr: true, tile: false, marked: false };
        self.out.unmarked.push(Definition { function, suspect: true });
        Some(self.pass(at, close))
    }

    fn token(&mut self, at: usize, now: &mut Declaration, parentheses: &mut usize) -> usize {
        let fragment = self.fragment;
        let fresh = |start| Declaration { start, ..Declaration::default() };
        match fragment.tokens[at].kind {
            Kind::Punct(b';') => *now = fresh(at + 1),
            Kind::Punct(b'}') => {
                self.cut(at, at + 1);
                *now = fresh(at + 1);
            }
            Kind::Punct(b'{') => return self.brace(at, now),
            Kind::Punct(b'(') => {
                let close = fragment.mate(at).filter(|close| *close > at).unwrap_or(at);
                let head = Head { source: self.source, fragment, macros: self.macros };
                if now.parameters.is_none() && !now.assigned && head.is_parameter_list(at, close) {
                    now.parameters = Some(at);
                }
                *parentheses = close;
            }
            Kind::Punct(b'[') => return fragment.mate(at).filter(|close| *close > at).unwrap_or(at) + 1,
            Kind::Punct(b':') if now.class.is_none() && !now.assigned && !now.statement => {
                let head = Head { source: self.source, fragment, macros: self.macros };
                match now.parameters.and_then(|_| head.after_initialisers(at)) {
                    Some(open) => return self.brace(open, now),
                    None => *now = fresh(at + 1),
                }
            }
            Kind::Assign if at.checked_sub(1).and_then(|before| fragment.kind(before)) != Some(Kind::Operator) => now.assigned = true,
            Kind::Class => now.class = now.class.or(Some(at)),
            Kind::Keyword if fragment.text(self.source, at) == b"template" && fragment.is(at + 1, b'<') => {
                return template_list_end(fragment, at + 1, fragment.len()).unwrap_or(at) + 1;
            }
            Kind::For | Kind::While | Kind::Do | Kind::If | Kind::Switch | Kind::Goto | Kind::Return | Kind::Else => now.statement = true,
            _ => {}
        }
        at + 1
    }

    fn brace(&mut self, at: usize, now: &mut Declaration) -> usize {
        let fragment = self.fragment;
        let Some(close) = fragment.mate(at).filter(|close| *close > at) else { return at + 1 };
        if fragment.opens_requirements(at) {
            return close + 1;
        }
        let before = Declaration { start: close + 1, ..Declaration::default() };
        if now.statement || now.start == at {
            *now = before;
            return close + 1;
        }
        if let Some(next) = self.body_in_expression(at) {
            if !now.assigned {
                *now = before;
            }
            return next;
        }
        if let Some(open) = now.parameters.filter(|_| !now.assigned && (now.class.is_none() || self.list_before(at).is_some())) {
            self.definition(open, at, close, now.start);
            *now = before;
            return self.pass(at, close);
        }
        if let Some(class) = now.class {
            self.classes.push((close, self.class_name(class, at)));
        }
        if !now.assigned {
            self.cut(at, at + 1);
            *now = Declaration { start: at + 1, ..Declaration::default() };
        }
        at + 1
    }

    /// The list of parameters, with qualifiers perhaps, in front of the brace.
    fn list_before(&self, brace: usize) -> Option<usize> {
        let mut at = brace;
        loop {
            at = self.fragment.before(at)?;
            match self.fragment.kind(at) {
                Some(Kind::Punct(b')')) => return self.fragment.mate(at),
                Some(Kind::Keyword) => {}
                _ => return None,
            }
        }
    }

    /// The last name in front of a class's bases or brace.
    fn class_name(&self, class: usize, brace: usize) -> &'a [u8] {
        let mut name: &[u8] = b"";
        let mut at = class + 1;
        while at < brace {
            match self.fragment.tokens[at].kind {
                Kind::Ident => name = self.fragment.text(self.source, at),
                Kind::Punct(b'(' | b'[') => at = self.fragment.mate(at).unwrap_or(at).max(at),
                Kind::Punct(b':' | b'<') => break,
                _ => {}
            }
            at += 1;
        }
        name
    }

    /// A function with those parameters and that body.
    fn definition(&mut self, parameters: usize, open: usize, close: usize, start: usize) {
        let fragment = self.fragment;
        let head = Head { source: self.source, fragment, macros: self.macros };
        let name = head.name_before(parameters);
        let constexpr = (start..open).any(|at| fragment.kind(at) == Some(Kind::Constexpr));
        let is_operator = name.is_some_and(|name| fragment.kind(name) == Some(Kind::Operator));
        let uses_device = || (open..close).any(|at| COORDINATES.contains(&fragment.text(self.source, at)));
        let suspect = constexpr || is_operator || self.has_unknown_word(start, name, parameters) || uses_device();
        let function = Function { name, head: start, open, close, spaces: Spaces::BOTH, constexpr, tile: false, marked: false };
        // Heads in several arms of an `#if` share the closing brace.
        let twins: Vec<usize> = (open + 1..close).filter(|at| fragment.is(*at, b'{') && fragment.mate(*at) == Some(close)).collect();
        for twin in twins {
            self.out.unmarked.push(Definition { function: Function { open: twin, ..function.clone() }, suspect });
        }
        self.out.unmarked.push(Definition { function, suspect });
        let is_type_derived = (start..parameters).any(|at| fragment.text(self.source, at) == b"auto")
            && !(parameters..open).any(|at| fragment.kind(at) == Some(Kind::Arrow));
        if is_type_derived && !suspect {
            self.leaving(open, close);
        }
    }

    /// Lambdas and `constexpr` methods in the body of a function whose type is `auto`: their types leave it, and device code may call them without
    /// naming the function. What a lambda refers to stays behind, and so does the lambda.
    fn leaving(&mut self, open: usize, close: usize) {
        let fragment = self.fragment;
        for at in open + 1..close {
            let Some(end) = fragment.mate(at).filter(|end| fragment.is(at, b'{') && *end > at) else { continue };
            let (name, leaves) = if let Some(captures) = fragment.captures_of(at) {
                let mut inside = fragment.mate(captures).unwrap_or(captures)..captures;
                (None, !inside.any(|at| fragment.text(self.source, at) == b"&"))
            } else {
                let list = self.list_before(at).filter(|_| is_constexpr_method(fragment, at));
                let head = Head { source: self.source, fragment, macros: self.macros };
                (list.and_then(|list| head.name_before(list)), list.is_some())
            };
            if leaves && !self.marked.contains_key(&at) {
                let head = name.unwrap_or(at);
                let function =
                    Function { name, head, open: at, close: end, spaces: Spaces::BOTH, constexpr: true, tile: false, marked: false };
                self.out.unmarked.push(Definition { function, suspect: true });
            }
        }
    }

    /// Whether a name stands in a head that is no type: a macro of another file, which may be an attribute.
    fn has_unknown_word(&self, start: usize, name: Option<usize>, parameters: usize) -> bool {
        let (fragment, source) = (self.fragment, self.source);
        let Some(name) = name else { return true };
        let (first, is_special) = self.qualified_name(name);
        let mut types = 0;
        let mut was_builtin = false;
        let mut at = start;
        while at < first {
            let text = fragment.text(source, at);
            let has_list = fragment.is(at + 1, b'(');
            let builtin = matches!(fragment.kind(at), Some(Kind::Keyword)) && is_builtin_type(text);
            types += u32::from(builtin && !was_builtin);
            was_builtin = builtin || (was_builtin && matches!(text, b"const" | b"volatile"));
            match fragment.tokens[at].kind {
                Kind::Keyword if text == b"template" && fragment.is(at + 1, b'<') => {
                    at = template_list_end(fragment, at + 1, first).unwrap_or(at);
                }
                Kind::Keyword if text == b"decltype" => types += 1,
                Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at).unwrap_or(at).max(at),
                Kind::Ident if self.macros.is_own(text) || self.macros.is_plain(text) || TAKES_LIST.contains(&text) => {}
                Kind::Ident if has_list => return true,
                Kind::Ident => {
                    types += 1;
                    at = self.end_of_name(at, first);
                }
                _ => {}
            }
            at += 1;
        }
        let is_macro = self.macros.is_own(fragment.text(source, name));
        types > u32::from(!is_special) || (types == 0 && !is_special && !is_macro && name < parameters)
    }

    /// The last token of a name with its qualifiers and template arguments.
    fn end_of_name(&self, mut at: usize, end: usize) -> usize {
        loop {
            if self.fragment.is(at + 1, b'<')
                && let Some(close) = template_list_end(self.fragment, at + 1, end)
            {
                at = close;
            }
            if self.fragment.kind(at + 1) != Some(Kind::Scope) || at + 2 >= end {
                return at;
            }
            at += 2;
        }
    }

    /// Where a function's name begins with its qualifiers, and whether it has no type: a constructor, a destructor, a conversion.
    fn qualified_name(&self, name: usize) -> (usize, bool) {
        let (fragment, source) = (self.fragment, self.source);
        let text = fragment.text(source, name);
        let mut first = name;
        let mut class = self.classes.last().map(|(_, name)| *name);
        let is_destructor = name.checked_sub(1).is_some_and(|before| fragment.is(before, b'~'));
        first -= usize::from(is_destructor);
        while let Some(scope) = first.checked_sub(1).filter(|at| fragment.kind(*at) == Some(Kind::Scope)) {
            first = scope;
            let Some(before) = fragment.before(scope) else { break };
            let owner = if fragment.is(before, b'>') { before_template_list(fragment, before) } else { Some(before) };
            let Some(owner) = owner.filter(|owner| fragment.kind(*owner) == Some(Kind::Ident)) else { break };
            if scope + 1 == name || (is_destructor && scope + 2 == name) {
                class = Some(fragment.text(source, owner));
            }
            first = owner;
        }
        let is_conversion = fragment.kind(name) == Some(Kind::Operator)
            && matches!(fragment.kind(name + 1), Some(Kind::Ident | Kind::Keyword))
            && !matches!(fragment.text(source, name + 1), b"new" | b"delete");
        (first, is_destructor || is_conversion || class == Some(text))
    }
}

fn is_builtin_type(word: &[u8]) -> bool {
    matches!(
        word,
        b"void" | b"bool" | b"char" | b"short" | b"int" | b"long" | b"float" | b"double" | b"signed" | b"unsigned" | b"wchar_t" | b"auto"
    )
}
