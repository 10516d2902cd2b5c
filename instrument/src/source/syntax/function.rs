//! Device functions, found by their tokens: an attribute, or a macro that stands for one, then a head, then a body.
//!
//! Only sure cases are taken. A head is followed from its first attribute to the brace of its body, through launch bounds, templates, requirements,
//! initialiser lists and trailing types. Variables, declarations and types may have attributes, too, but they have no body.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::{Macros, Spaces};
use crate::source::syntax::token::Kind;
use std::collections::BTreeMap;

/// A function that a GPU may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// Index of the name's token, if it has one.
    pub(crate) name: Option<usize>,
    /// Index of the attribute that the head begins with.
    pub(crate) head: usize,
    /// Indices of the braces of the body.
    pub(crate) open: usize,
    pub(crate) close: usize,
    pub(crate) spaces: Spaces,
    pub(crate) constexpr: bool,
    /// `__tile__` code: no threads.
    pub(crate) tile: bool,
    /// Whether an attribute, or a macro that is known to stand for one, marks it.
    pub(crate) marked: bool,
}

/// Most tokens in front of a lambda's or method's brace that are read.
const MOST_HEAD: usize = 32;

/// Attributes and operators that take a list in parentheses which is no list of parameters.
pub(crate) const TAKES_LIST: &[&[u8]] = &[
    b"__launch_bounds__",
    b"__attribute__",
    b"__attribute",
    b"__location__",
    b"__declspec",
    b"alignas",
    b"__align__",
    b"__cluster_dims__",
    b"__maxnreg__",
    b"__block_size__",
    b"decltype",
    b"noexcept",
    b"explicit",
    b"requires",
    b"sizeof",
    b"alignof",
    b"throw",
    b"typeof",
    b"__typeof__",
    b"static_assert",
];

/// A head behind an attribute.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    /// Device functions, nested ones included, by the index of their opening brace.
    pub(crate) functions: BTreeMap<usize, Function>,
    /// Names of functions that are declared for the device, and not defined, as indices of tokens.
    pub(crate) declared: Vec<usize>,
}

/// Finds all device functions that a fragment marks.
pub(crate) fn find(source: &[u8], fragment: &Fragment, macros: &Macros) -> Marked {
    let mut marked = Marked::default();
    let mut index = 0;
    while index < fragment.len() {
        let is_tile = fragment.tokens[index].kind == Kind::BlockShare;
        if !is_tile && !spaces_at(source, fragment, macros, index).any() {
            index += 1;
            continue;
        }
        let (function, next) = Head { source, fragment, macros }.follow(index, &mut marked.declared);
        if let Some(function) = function {
            marked.functions.entry(function.open).or_insert(function);
        }
        index = next.max(index + 1);
    }
    marked
}

/// Whether the token begins a list of attributes: `__attribute__((…))` by any of its names, or `[[…]]`.
pub(crate) fn begins_attributes(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    match fragment.kind(at) {
        Some(Kind::Keyword) => {
            matches!(fragment.text(source, at), b"__attribute__" | b"__attribute" | b"__location__" | b"__declspec")
                && fragment.is(at + 1, b'(')
        }
        Some(Kind::Punct(b'[')) => fragment.is(at + 1, b'['),
        _ => false,
    }
}

/// Where a function runs whose head holds this token: `__device__`, a macro for it, `__attribute__((device))`.
pub(crate) fn spaces_at(source: &[u8], fragment: &Fragment, macros: &Macros, at: usize) -> Spaces {
    let token = fragment.tokens[at];
    let text = &source[token.range()];
    match token.kind {
        Kind::Host | Kind::Device | Kind::Global | Kind::Ident => macros.spaces_of(token.kind, text),
        _ if begins_attributes(source, fragment, at) => {
            let close = fragment.mate(at + 1).unwrap_or(at);
            (at..close)
                .fold(Spaces::default(), |spaces, inner| spaces.union(macros.spaces_of_attribute(source, fragment.text(source, inner))))
        }
        _ => Spaces::default(),
    }
}

/// Whether a function whose head holds this token may run on a GPU: the compiler's option `--expt-relaxed-constexpr` lets device code call any that
/// is `constexpr`.
pub(crate) fn marks(source: &[u8], fragment: &Fragment, macros: &Macros, at: usize) -> bool {
    fragment.kind(at) == Some(Kind::Constexpr) || spaces_at(source, fragment, macros, at).on_device()
}

/// Reads the head of a function.
pub(crate) struct Head<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) fragment: &'a Fragment,
    pub(crate) macros: &'a Macros<'a>,
}

impl Head<'_> {
    /// Follows a head from its first attribute. Returns the function, if there is one, and where to look for the next attribute. A function that
    /// is only declared is noted.
    fn follow(&self, start: usize, declared: &mut Vec<usize>) -> (Option<Function>, usize) {
        let fragment = self.fragment;
        let mut spaces = Spaces::default();
        let mut tile = false;
        let mut parameters: Option<usize> = None;
        let mut name = None;
        let mut after_arguments_of_alias = false;
        let mut at = start;
        // The attributes that end a head may be followed by others of the next: where a body was found, go on inside it.
        while at < fragment.len() {
            let token = fragment.tokens[at];
            let text = &self.source[token.range()];
            match token.kind {
                Kind::Host | Kind::Device | Kind::Global | Kind::Ident => {
                    let added = self.macros.spaces_of(token.kind, text);
                    spaces = spaces.union(added);
                    if added.any() && token.kind == Kind::Ident && self.macros.takes_arguments(text) && fragment.is(at + 1, b'(') {
                        let Some(close) = fragment.mate(at + 1) else { return (None, at + 1) };
                        name = name.or_else(|| (at + 2 < close).then_some(at + 2));
                        after_arguments_of_alias = true;
                        at = close;
                    }
                }
                Kind::BlockShare => tile = true,
                Kind::Keyword => spaces = spaces.union(spaces_at(self.source, fragment, self.macros, at)),
                Kind::Punct(b'(') => {
                    let Some(close) = fragment.mate(at) else { return (None, at) };
                    if parameters.is_none() && self.is_parameter_list(at, close) {
                        parameters = Some(at);
                        name = name.or_else(|| self.name_before(at));
                    } else if self.fragment.before(at).is_some_and(|before| fragment.kind(before) == Some(Kind::Operator)) {
                        name = fragment.before(at);
                    }
                    at = close;
                }
                Kind::Punct(b'[') => {
                    let Some(close) = fragment.mate(at) else { return (None, at) };
                    spaces = spaces.union(spaces_at(self.source, fragment, self.macros, at));
                    at = close;
                }
                // An attribute in a macro's arguments: they are all of the head, or the declaration goes on behind them.
                Kind::Punct(b')') if fragment.is(at + 1, b'{') && parameters.is_none() && self.is_macro_use(start, at) => {
                    name = self.last_name(start, at);
                    after_arguments_of_alias = true;
                }
                Kind::Punct(b')') if parameters.is_none() && self.is_macro_use(start, at) => {}
                Kind::Punct(b'{') => {
                    if fragment.opens_requirements(at) {
                        let Some(close) = fragment.mate(at) else { return (None, at) };
                        at = close + 1;
                        continue;
                    }
                    let is_body = parameters.is_some() || after_arguments_of_alias || self.is_lambda_head(start);
                    return self.body(is_body, start, at, (name, spaces, tile));
                }
                Kind::Punct(b':') if parameters.is_some() => {
                    let Some(open) = self.after_initialisers(at) else { return (None, at + 1) };
                    return self.body(true, start, open, (name, spaces, tile));
                }
                Kind::Assign if name_is_operator(fragment, at) => {}
                Kind::Punct(b',') if parameters.is_none() => {}
                // `= default`, `= 0`, an initial value, a further declarator: no body.
                Kind::Punct(b';' | b'}' | b':' | b')' | b',') | Kind::Assign => {
                    if spaces.on_device() {
                        declared.extend(name.filter(|_| parameters.is_some()));
                        self.declarators(start, declared);
                    }
                    return (None, at);
                }
                Kind::For | Kind::While | Kind::Do | Kind::If | Kind::Switch | Kind::Return | Kind::Goto => return (None, at),
                _ => {}
            }
            at += 1;
        }
        (None, at)
    }

    /// Notes the functions of a declaration whose attribute stands at `start`. Each has a list of parameters, or a type's name says that it is one
    /// (`__device__ F f, g;`), or the attribute stands behind its list (`int f(int) __attribute__((device));`).
    fn declarators(&self, start: usize, declared: &mut Vec<usize>) {
        let fragment = self.fragment;
        declared.extend(self.name_in_front(start));
        let (mut at, mut begin) = (start, start);
        let (mut has_list, mut is_assigned, mut name) = (false, false, None);
        while at < fragment.len() {
            match fragment.tokens[at].kind {
                Kind::Punct(b'(' | b'[' | b'{') => {
                    let Some(close) = fragment.mate(at).filter(|close| *close > at) else { return };
                    if fragment.is(at, b'{') && has_list {
                        return;
                    }
                    if fragment.is(at, b'(') && !has_list && !is_assigned && self.is_parameter_list(at, close) {
                        (has_list, name) = (true, self.name_before(at));
                    }
                    at = close;
                }
                Kind::Assign if !name_is_operator(fragment, at) => is_assigned = true,
                Kind::Punct(b',' | b';' | b'}' | b':' | b')') => {
                    if !has_list && !is_assigned {
                        name = self.name_before(at).filter(|name| *name > begin);
                    }
                    declared.extend(name);
                    if !fragment.is(at, b',') {
                        return;
                    }
                    (begin, has_list, is_assigned, name) = (at, false, false, None);
                }
                // Another declaration, among the arguments of a macro.
                Kind::Host | Kind::Device | Kind::Global if begin > start => return,
                _ => {}
            }
            at += 1;
        }
    }

    /// The name of the function whose list of parameters ends in front of the attribute at `start`.
    fn name_in_front(&self, start: usize) -> Option<usize> {
        let fragment = self.fragment;
        let mut at = start;
        loop {
            at = fragment.before(at)?;
            match fragment.tokens[at].kind {
                Kind::Punct(b')') => {
                    let open = fragment.mate(at)?;
                    if self.is_parameter_list(open, at) {
                        return self.name_before(open);
                    }
                    at = open;
                }
                Kind::Punct(b']') => at = fragment.mate(at)?,
                Kind::Keyword | Kind::Arrow => {}
                _ => return None,
            }
        }
    }

    /// Whether the parenthesis closes the arguments of a macro which hold the attribute.
    fn is_macro_use(&self, attribute: usize, close: usize) -> bool {
        let open = self.fragment.mate(close).filter(|open| *open < attribute);
        let Some(name) = open.and_then(|open| self.fragment.before(open)) else { return false };
        // The name of an alias may be a value's as well.
        let is_sure = self.fragment.kind(attribute) != Some(Kind::Ident) || self.macros.is_defined(self.fragment.text(self.source, name));
        self.fragment.kind(name) == Some(Kind::Ident) && is_sure
    }

    /// The last of a macro's arguments that is a name, in front of the parenthesis that closes them.
    fn last_name(&self, from: usize, close: usize) -> Option<usize> {
        let mut at = close;
        while at > from + 1 {
            at -= 1;
            if self.fragment.is(at, b')') {
                at = self.fragment.mate(at)?;
            } else if self.fragment.kind(at) == Some(Kind::Ident) && matches!(self.fragment.kind(at + 1), Some(Kind::Punct(b',' | b')'))) {
                return Some(at);
            }
        }
        None
    }

    /// The function whose head begins and whose body opens there, with its name, where it runs, and whether it is tile code.
    fn body(
        &self,
        is_body: bool,
        head: usize,
        open: usize,
        (name, spaces, tile): (Option<usize>, Spaces, bool),
    ) -> (Option<Function>, usize) {
        let Some(close) = self.fragment.mate(open).filter(|_| is_body) else { return (None, open + 1) };
        let mut function = Function { name, head, open, close, spaces, constexpr: false, tile, marked: true };
        // Attributes between the last declaration's end and the first attribute: `constexpr __device__`, `__host__` under a macro.
        for index in (function.head.saturating_sub(24)..function.head).rev() {
            let token = self.fragment.tokens[index];
            match token.kind {
                Kind::Punct(b';' | b'{' | b'}' | b')' | b'(' | b',') | Kind::Assign => break,
                Kind::Constexpr => function.constexpr = true,
                Kind::BlockShare => function.tile = true,
                _ => {}
            }
        }
        let head = &self.fragment.tokens[function.head..open];
        function.constexpr |= head.iter().any(|token| token.kind == Kind::Constexpr);
        // A kernel is no host function, although other macros in front may say so.
        if function.spaces.global {
            function.spaces.host = false;
        }
        ((function.spaces.on_device() || function.tile).then_some(function), open + 1)
    }

    /// Whether the list at `open` holds the parameters of the function whose head this is.
    pub(crate) fn is_parameter_list(&self, open: usize, close: usize) -> bool {
        let fragment = self.fragment;
        let Some(before) = fragment.before(open) else { return false };
        let text = fragment.text(self.source, before);
        if TAKES_LIST.contains(&text) {
            return false;
        }
        let names = match fragment.tokens[before].kind {
            Kind::Operator => return false,
            // A lambda's list, an attribute between name and list, an operator's name, a conversion's type.
            Kind::Ident
            | Kind::Host
            | Kind::Device
            | Kind::Global
            | Kind::Keyword
            | Kind::Op
            | Kind::OpAssign
            | Kind::Assign
            | Kind::Step
            | Kind::Arrow => true,
            Kind::Str => true,
            Kind::Punct(byte) => matches!(byte, b')' | b']' | b'>' | b'*' | b'&') || self.is_operator_sign(before),
            _ => false,
        };
        if !names {
            return false;
        }
        // A group behind `template <` is an expression; the parameters' list is followed by a body, its end, or what may stand between.
        match fragment.kind(fragment.skip_arms(close + 1)) {
            Some(Kind::Punct(byte)) => matches!(byte, b'{' | b';' | b':' | b',' | b')' | b'[' | b'&'),
            Some(Kind::Assign | Kind::Arrow | Kind::Try | Kind::Op | Kind::Constexpr | Kind::Requires) => true,
            Some(Kind::Keyword) => {
                let next = fragment.text(self.source, fragment.skip_arms(close + 1));
                matches!(next, b"const" | b"volatile" | b"noexcept" | b"override" | b"final" | b"mutable" | b"throw")
                    || begins_attributes(self.source, fragment, fragment.skip_arms(close + 1))
            }
            // `) MACRO {` or `) MACRO(…) {`, or `) __device__ {`: followed by a name, it was an attribute's list.
            Some(Kind::Ident | Kind::Host | Kind::Device | Kind::Global) => self.ends_head(before, fragment.skip_arms(close + 1)),
            None => true,
            _ => false,
        }
    }

    /// Whether nothing but attributes stands between the list that ends before `at` and the body: `f(int n) MACRO {`. In
    /// `BOUNDS(128) f(int n) {` the first list is the attribute's; capitals tell the two apart.
    fn ends_head(&self, named: usize, mut at: usize) -> bool {
        let is_capital = |index: usize| self.fragment.text(self.source, index).iter().all(|byte| !byte.is_ascii_lowercase());
        let first = at;
        loop {
            at = self.fragment.skip_arms(at);
            match self.fragment.kind(at) {
                Some(Kind::Ident | Kind::Host | Kind::Device | Kind::Global | Kind::Keyword | Kind::Requires) => at += 1,
                Some(Kind::Punct(b'(')) => return !is_capital(named) || is_capital(first),
                Some(Kind::Punct(b'{' | b';') | Kind::Arrow | Kind::Assign) => return true,
                _ => return false,
            }
        }
    }

    fn is_operator_sign(&self, index: usize) -> bool {
        (1..=2).any(|back| index.checked_sub(back).and_then(|at| self.fragment.kind(at)) == Some(Kind::Operator))
    }

    pub(crate) fn name_before(&self, open: usize) -> Option<usize> {
        let mut at = open;
        loop {
            at = self.fragment.before(at)?;
            match self.fragment.tokens[at].kind {
                _ if self.is_operator_sign(at) => {
                    return (at.saturating_sub(2)..at).rev().find(|index| self.fragment.kind(*index) == Some(Kind::Operator));
                }
                Kind::Ident if !self.macros.spaces_of(Kind::Ident, self.fragment.text(self.source, at)).any() => return Some(at),
                Kind::Host | Kind::Device | Kind::Global | Kind::Ident => {}
                Kind::Punct(b')') => at = self.fragment.mate(at)?,
                Kind::Punct(b']') => at = self.fragment.mate(at).filter(|open| begins_attributes(self.source, self.fragment, *open))?,
                Kind::Punct(b'>') => {
                    // Explicit template arguments: the name stands before them.
                    let mut depth = 0_i32;
                    loop {
                        if self.fragment.is(at, b'>') {
                            depth += 1;
                        } else if self.fragment.is(at, b'<') {
                            depth -= 1;
                        } else if self.fragment.is(at, b')') {
                            at = self.fragment.mate(at)?;
                        }
                        if depth == 0 {
                            break;
                        }
                        at = self.fragment.before(at)?;
                    }
                    if self.is_operator_sign(at) {
                        return Some(at);
                    }
                }
                Kind::Operator => return Some(at),
                _ => return None,
            }
        }
    }

    /// Whether the attribute at `start` belongs to a lambda: `[…] __device__ {` or `[…](…) __device__ {`.
    fn is_lambda_head(&self, start: usize) -> bool {
        let Some(before) = self.fragment.before(start) else { return false };
        let bracket = match self.fragment.tokens[before].kind {
            Kind::Punct(b']') => before,
            Kind::Punct(b')') => {
                let Some(inner) = self.fragment.mate(before).and_then(|open| self.fragment.before(open)) else { return false };
                if !self.fragment.is(inner, b']') {
                    return false;
                }
                inner
            }
            _ => return false,
        };
        self.fragment.ends_captures(bracket)
    }

    /// The brace of the body behind a constructor's initialisers, whose colon stands at `colon`.
    pub(crate) fn after_initialisers(&self, colon: usize) -> Option<usize> {
        let mut at = colon + 1;
        loop {
            // To the group that initialises one member or base.
            loop {
                match self.fragment.kind(at)? {
                    Kind::Punct(b'(' | b'{') => break,
                    Kind::Punct(b';' | b'}' | b')') => return None,
                    _ => at += 1,
                }
            }
            at = self.fragment.skip_arms(self.fragment.mate(at)? + 1);
            if self.fragment.kind(at) == Some(Kind::Op) {
                at += 1;
            }
            match self.fragment.kind(at)? {
                Kind::Punct(b',') => at += 1,
                Kind::Punct(b'{') => return Some(at),
                Kind::Try => return self.fragment.is(at + 1, b'{').then_some(at + 1),
                Kind::Ident | Kind::Keyword => {}
                _ => return None,
            }
        }
    }
}

/// Whether calls of the function do not bear its name: a lambda, an operator, a destructor, a constructor.
pub(crate) fn is_called_by_no_name(source: &[u8], fragment: &Fragment, function: &Function) -> bool {
    let Some(name) = function.name else { return true };
    if fragment.kind(name) == Some(Kind::Operator) {
        return true;
    }
    let before = name.checked_sub(1);
    if before.is_some_and(|before| fragment.is(before, b'~')) {
        return true;
    }
    // A constructor has no type: nothing but attributes and the like stands in front, or the class of the same name does.
    let owner = before.filter(|before| fragment.kind(*before) == Some(Kind::Scope)).and_then(|scope| fragment.before(scope));
    if owner.is_some_and(|owner| fragment.text(source, owner) == fragment.text(source, name)) {
        return true;
    }
    (function.head..name).all(|at| match fragment.kind(at) {
        Some(Kind::Host | Kind::Device | Kind::Constexpr) => true,
        Some(Kind::Keyword) => {
            matches!(fragment.text(source, at), b"explicit" | b"inline" | b"__forceinline__" | b"__noinline__" | b"__inline__")
        }
        _ => false,
    })
}

fn name_is_operator(fragment: &Fragment, assign: usize) -> bool {
    assign.checked_sub(1).and_then(|at| fragment.kind(at)) == Some(Kind::Operator)
}

/// Whether the brace opens the body of a lambda.
pub(crate) fn is_lambda_body(fragment: &Fragment, at: usize) -> bool {
    fragment.captures_of(at).is_some()
}

/// Whether the compiler may evaluate the function in an expression whose body opens there: a method or lambda that says
/// `constexpr`, or stands in a statement that does. A lambda without captures may be one without saying so.
pub(crate) fn may_be_evaluated(fragment: &Fragment, open: usize) -> bool {
    let is_plain = fragment.captures_of(open).is_some_and(|close| fragment.mate(close) == Some(close - 1));
    is_plain || head_before(fragment, open).any(|kind| kind == Kind::Constexpr)
}

/// Whether the brace opens the body of something with `constexpr` in its head that is no statement: `if constexpr (…) {` is one.
pub(crate) fn is_constexpr_method(fragment: &Fragment, open: usize) -> bool {
    let is_statement = |kind| matches!(kind, Kind::If | Kind::For | Kind::While | Kind::Switch | Kind::Assign);
    head_before(fragment, open).any(|kind| kind == Kind::Constexpr) && !head_before(fragment, open).any(is_statement)
}

/// The tokens of the head that ends in front of the brace, from the last one on.
fn head_before(fragment: &Fragment, open: usize) -> impl Iterator<Item = Kind> {
    let tokens = fragment.tokens[open.saturating_sub(MOST_HEAD)..open].iter().rev();
    tokens.map(|token| token.kind).take_while(|kind| !matches!(kind, Kind::Punct(b';' | b'{' | b'}')))
}
