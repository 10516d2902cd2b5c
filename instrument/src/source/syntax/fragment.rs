//! A run of tokens that is read as one piece of code: the file, or the body of a macro. It pairs brackets, also where the arms of an `#if` open
//! different ones.

use crate::source::syntax::condition::arms;
use crate::source::syntax::token::{Directive, Kind, Lexed, Line, Token, alternative, lex};
use std::ops::Range;

/// Stands for "no token".
pub(crate) const NONE: u32 = u32::MAX;

/// Tokens with matched brackets.
#[derive(Debug, Clone)]
pub(crate) struct Fragment {
    /// Tokens without directives, but with the borders of `#if` arms; arms that are never compiled (`#if 0`) are gone.
    pub(crate) tokens: Vec<Token>,
    /// For each bracket its partner, else [`NONE`]. Openers in several arms share one closer; it points to the first.
    pub(crate) mates: Vec<u32>,
    /// The macro whose body this is.
    pub(crate) of_macro: Option<Range<usize>>,
    /// Where files are included.
    includes: Vec<usize>,
    /// For each token, whether it stands between parentheses.
    enclosed: Vec<bool>,
    /// For each token and the end, the brace that it stands in; [`NONE`] also between other brackets.
    openers: Vec<u32>,
    /// The braces of lambdas' bodies in their order, each with the `]` that ends the captures, or the macro that holds them.
    lambdas: Vec<(u32, u32)>,
}

impl Fragment {
    /// The file as one fragment, or the offset of a bracket that has no partner under any choice of arms.
    pub(crate) fn of_file(lexed: &Lexed) -> Result<Self, usize> {
        let tokens = live_tokens(&lexed.tokens, &lexed.directives);
        let (mates, unbalanced) = match_brackets(&tokens, false);
        let (mates, unbalanced) = match unbalanced {
            None => (mates, None),
            Some(first) => {
                let (other, still) = match_brackets(&tokens, true);
                if still.is_none() { (other, None) } else { (mates, Some(first)) }
            }
        };
        match unbalanced {
            Some(token) => Err(tokens[token].start as usize),
            None => Ok(Self { includes: live_includes(&lexed.directives), ..Self::new(tokens, mates, None) }),
        }
    }

    /// The body of a macro. Its brackets need not match: a macro may open what another closes.
    pub(crate) fn of_macro(source: &[u8], name: Range<usize>, body: Range<usize>) -> Self {
        let tokens = lex(source, body, true).tokens;
        let (mates, _) = match_brackets(&tokens, false);
        Self::new(tokens, mates, Some(name))
    }

    fn new(tokens: Vec<Token>, mates: Vec<u32>, of_macro: Option<Range<usize>>) -> Self {
        let (enclosed, openers) = (enclosed(&tokens, &mates), openers(&tokens, &mates));
        let mut new = Self { includes: Vec::new(), enclosed, openers, tokens, mates, of_macro, lambdas: Vec::new() };
        let lambda = |close: usize| Some((new.lambda_body(close)? as u32, close as u32));
        let mut lambdas: Vec<(u32, u32)> = (0..new.len()).filter(|at| new.ends_captures(*at)).filter_map(lambda).collect();
        lambdas.sort_unstable();
        new.lambdas = lambdas;
        new
    }

    /// Whether it holds a lambda's captures, or a token that stands for some, and no brace behind them.
    pub(crate) fn holds_captures(&self, stands_for: impl Fn(usize) -> bool) -> bool {
        let last = (0..self.len()).rev().find(|at| self.is(*at, b'{') || self.ends_captures(*at) || stands_for(*at));
        last.is_some_and(|last| !self.is(last, b'{'))
    }

    /// Adds the lambdas whose captures a macro holds: `f(CAPTURES (int n) { … })`.
    pub(crate) fn add_lambdas(&mut self, source: &[u8], is_captures: impl Fn(&[u8]) -> bool) {
        for at in 0..self.len() {
            if self.kind(at) == Some(Kind::Ident)
                && is_captures(self.text(source, at))
                && let Some(body) = self.lambda_body(at)
                && let Err(place) = self.lambdas.binary_search_by_key(&(body as u32), |(open, _)| *open)
            {
                self.lambdas.insert(place, (body as u32, at as u32));
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn kind(&self, index: usize) -> Option<Kind> {
        self.tokens.get(index).map(|token| token.kind)
    }

    pub(crate) fn is(&self, index: usize, byte: u8) -> bool {
        self.kind(index) == Some(Kind::Punct(byte))
    }

    /// The partner of the bracket at `index`.
    pub(crate) fn mate(&self, index: usize) -> Option<usize> {
        self.mates.get(index).filter(|mate| **mate != NONE).map(|mate| *mate as usize)
    }

    /// Whether the token stands between parentheses, which may hold arguments of a macro: a comma divides these wherever it has no parentheses of its own.
    pub(crate) fn is_enclosed(&self, index: usize) -> bool {
        self.enclosed.get(index).copied().unwrap_or(false)
    }

    /// The brace that a token stands in; nothing if another bracket is nearer.
    pub(crate) fn opener(&self, index: usize) -> Option<usize> {
        self.openers.get(index.min(self.len())).filter(|open| **open != NONE).map(|open| *open as usize)
    }

    /// The token's text; of an operator that is a word, the sign that it stands for.
    pub(crate) fn text<'a>(&self, source: &'a [u8], index: usize) -> &'a [u8] {
        let Some(token) = self.tokens.get(index) else { return &[] };
        let text = &source[token.range()];
        match token.kind {
            Kind::Op | Kind::OpAssign | Kind::Punct(_) if text.len() > 1 => alternative(text).unwrap_or(text),
            _ => text,
        }
    }

    /// Whether a file is included between the two tokens.
    pub(crate) fn includes_between(&self, from: usize, to: usize) -> bool {
        let (Some(from), Some(to)) = (self.tokens.get(from), self.tokens.get(to)) else { return false };
        let first = self.includes.partition_point(|at| *at < from.end as usize);
        self.includes.get(first).is_some_and(|at| *at < to.start as usize)
    }

    /// Where statements may begin behind the brace: GNU's declarations of labels (`__label__ a, b;`) come before any.
    pub(crate) fn behind_label_declarations(&self, source: &[u8], open: usize) -> usize {
        let (mut at, mut depth) = (open + 1, 0_usize);
        let mut found = self.tokens[open].end as usize;
        loop {
            match self.kind(at) {
                Some(Kind::ArmIf) => depth += 1,
                Some(Kind::ArmElse) if depth > 0 => {}
                Some(Kind::ArmEnd) if depth > 0 => depth -= 1,
                Some(Kind::Ident) if self.text(source, at) == b"__label__" => {
                    let Some(end) = (at..self.len()).find(|end| self.is(*end, b';')) else { return found };
                    at = end;
                    // Behind an `#endif` text may stand in front of the next token only.
                    let next = self.skip_arms(end + 1);
                    let ends = (end + 1..next).filter(|arm| self.kind(*arm) == Some(Kind::ArmEnd)).count();
                    found = match self.tokens.get(next) {
                        _ if depth == 0 => self.tokens[end].end as usize,
                        Some(token) if ends >= depth => token.start as usize,
                        _ => found,
                    };
                }
                _ => return found,
            }
            at += 1;
        }
    }

    /// The next token from `index` on that is no border of an arm.
    pub(crate) fn skip_arms(&self, mut index: usize) -> usize {
        while matches!(self.kind(index), Some(Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd)) {
            index += 1;
        }
        index
    }

    /// The `]` that ends the captures, or the macro that holds them, of the lambda whose body opens at the brace.
    pub(crate) fn captures_of(&self, open: usize) -> Option<usize> {
        let found = self.lambdas.binary_search_by_key(&(open as u32), |(open, _)| *open).ok()?;
        Some(self.lambdas[found].1 as usize)
    }

    /// Whether the token is a `]` that ends a lambda's captures rather than a subscript, an array's length or an attribute.
    pub(crate) fn ends_captures(&self, close: usize) -> bool {
        let Some(open) = self.mate(close).filter(|open| *open < close && self.is(close, b']')) else { return false };
        let is_attribute = self.is(open + 1, b'[') && self.mate(open + 1) == Some(close - 1);
        let before = self.before(open).map(|before| self.tokens[before].kind);
        !is_attribute && !matches!(before, Some(Kind::Ident | Kind::Str | Kind::Number | Kind::Operator | Kind::Punct(b')' | b']' | b'[')))
    }

    /// The brace of the body behind a lambda's captures: template list, requirements, parameters, specifiers, attributes and type stand between.
    fn lambda_body(&self, close: usize) -> Option<usize> {
        let mut at = close + 1;
        loop {
            match self.kind(at)? {
                // What `requires` demands stands in braces, too.
                Kind::Punct(b'{') if !self.opens_requirements(at) => return Some(at),
                Kind::Punct(b'(' | b'[' | b'{') => at = self.mate(at).filter(|mate| *mate > at)?,
                Kind::Punct(b';' | b'}' | b')' | b']' | b':' | b'?') => return None,
                // A template's parameter may have a default.
                Kind::Assign if !self.is(close + 1, b'<') => return None,
                Kind::For | Kind::While | Kind::Do | Kind::If | Kind::Switch | Kind::Return | Kind::Goto => return None,
                _ => {}
            }
            at += 1;
        }
    }

    /// Whether the brace opens what an expression demands: `requires { … }`, `requires (T a) { … }`.
    pub(crate) fn opens_requirements(&self, open: usize) -> bool {
        let kind = |index: Option<usize>| index.map(|index| self.tokens[index].kind);
        let before = self.before(open);
        if kind(before) == Some(Kind::Requires) {
            return true;
        }
        let list = before.filter(|before| self.is(*before, b')')).and_then(|close| self.mate(close)).filter(|list| *list < open);
        let word = list.and_then(|list| self.before(list)).filter(|word| self.tokens[*word].kind == Kind::Requires);
        // Behind a head, `requires (…)` is a demand of its own, and the brace that follows opens the body.
        let in_expression = |word| {
            matches!(
                kind(self.before(word)),
                Some(Kind::Requires | Kind::Op | Kind::Assign | Kind::Return | Kind::Punct(b'(' | b'!' | b','))
            )
        };
        word.is_some_and(in_expression)
    }

    /// The last token before `index` that is no border of an arm.
    pub(crate) fn before(&self, index: usize) -> Option<usize> {
        (0..index).rev().find(|at| !matches!(self.tokens[*at].kind, Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd))
    }
}

/// For each token, whether it stands between parentheses.
fn enclosed(tokens: &[Token], mates: &[u32]) -> Vec<bool> {
    let mut until = 0;
    let inside = |(index, token): (usize, &Token)| {
        let is_inside = index < until;
        if token.is(b'(') && mates[index] != NONE {
            until = until.max(mates[index] as usize);
        }
        is_inside
    };
    tokens.iter().enumerate().map(inside).collect()
}

/// For each token and the end, the brace that it stands in. What stands in front of a bracket's partner tells of what stands behind it.
fn openers(tokens: &[Token], mates: &[u32]) -> Vec<u32> {
    let mut openers = vec![NONE];
    for (index, token) in tokens.iter().enumerate() {
        openers.push(match token.kind {
            Kind::Punct(b'{') => index as u32,
            Kind::Punct(b'(' | b'[') => NONE,
            Kind::Punct(b'}' | b')' | b']') => openers.get(mates[index] as usize).copied().unwrap_or(NONE),
            _ => openers[index],
        });
    }
    openers
}

/// Drops directives and dead arms; marks the borders of the others.
fn live_tokens(tokens: &[Token], directives: &[Directive]) -> Vec<Token> {
    let arms = arms(directives);
    let mut out = Vec::with_capacity(tokens.len());
    let mut live = true;
    for token in tokens {
        if let Kind::Directive(index) = token.kind {
            let arm = &arms[index as usize];
            out.extend(arm.border.map(|kind| Token { kind, ..*token }));
            live = arm.live;
        } else if live {
            out.push(*token);
        }
    }
    out
}

/// Where files are included, but in arms that are never compiled.
fn live_includes(directives: &[Directive]) -> Vec<usize> {
    let arms = arms(directives);
    let includes = directives.iter().zip(&arms).filter(|(directive, arm)| directive.line == Line::Include && arm.live);
    includes.map(|(directive, _)| directive.span.start).collect()
}

/// Matches brackets, following the first arm of each conditional (the last, if `prefer_last`) behind its end. Returns the first
/// bracket that found no partner.
fn match_brackets(tokens: &[Token], prefer_last: bool) -> (Vec<u32>, Option<usize>) {
    // The stack is a tree of nodes that point to their parents, so that keeping one for an `#if` costs nothing.
    struct Node {
        token: u32,
        parent: u32,
        depth: u32,
    }
    struct Arms {
        saved: u32,
        first_end: Option<u32>,
    }
    let mut mates = vec![NONE; tokens.len()];
    let mut nodes: Vec<Node> = Vec::new();
    let mut arms: Vec<Arms> = Vec::new();
    let mut twins: Vec<(u32, u32)> = Vec::new();
    let mut top = NONE;
    let mut unbalanced = None;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{') => {
                let depth = if top == NONE { 1 } else { nodes[top as usize].depth + 1 };
                nodes.push(Node { token: index as u32, parent: top, depth });
                top = nodes.len() as u32 - 1;
            }
            Kind::Punct(close @ (b')' | b']' | b'}')) => {
                let open = match close {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if top == NONE || !tokens[nodes[top as usize].token as usize].is(open) {
                    unbalanced = unbalanced.or(Some(index));
                    continue;
                }
                let opener = nodes[top as usize].token;
                mates[index] = opener;
                if mates[opener as usize] == NONE {
                    mates[opener as usize] = index as u32;
                }
                top = nodes[top as usize].parent;
            }
            Kind::ArmIf => arms.push(Arms { saved: top, first_end: None }),
            Kind::ArmElse => {
                if let Some(arm) = arms.last_mut() {
                    arm.first_end = arm.first_end.or(Some(top));
                    top = arm.saved;
                }
            }
            Kind::ArmEnd => {
                let Some(Arms { first_end: Some(first), .. }) = arms.pop() else { continue };
                let (kept, other) = if prefer_last { (top, first) } else { (first, top) };
                // Openers at the same depth in two arms wait for the same closer.
                let (mut a, mut b) = (kept, other);
                while a != b && a != NONE && b != NONE {
                    let (node_a, node_b) = (&nodes[a as usize], &nodes[b as usize]);
                    if node_a.depth == node_b.depth {
                        twins.push((node_b.token, node_a.token));
                    }
                    if node_a.depth >= node_b.depth {
                        a = node_a.parent;
                    }
                    if node_b.depth >= node_a.depth {
                        b = node_b.parent;
                    }
                }
                top = kept;
            }
            _ => {}
        }
    }
    for (other, kept) in twins {
        if mates[other as usize] == NONE {
            mates[other as usize] = mates[kept as usize];
        }
    }
    if top != NONE && unbalanced.is_none() {
        unbalanced = Some(nodes[top as usize].token as usize);
    }
    (mates, unbalanced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str) -> Result<Fragment, usize> {
        Fragment::of_file(&lex(text.as_bytes(), 0..text.len(), false))
    }

    #[test]
    fn arms_that_open_different_braces_share_the_closer() {
        let text = "{\n#ifdef A\n if (x) {\n#else\n for (;;) {\n#endif\n f(); } }";
        let fragment = fragment(text).expect("balanced");
        let opens: Vec<usize> = (0..fragment.len()).filter(|index| fragment.is(*index, b'{')).collect();
        assert_eq!(fragment.mate(opens[1]), fragment.mate(opens[2]));
        assert_eq!(fragment.mate(opens[0]), Some(fragment.len() - 1));
    }

    #[test]
    fn a_bracket_without_a_partner_is_found() {
        assert_eq!(fragment("{ ( }").unwrap_err(), 4);
        assert_eq!(fragment("a }").unwrap_err(), 2);
        assert_eq!(fragment("{ a").unwrap_err(), 0);
        assert!(fragment("#if 0\n }}} ' \" {\n#endif\nint x;").is_ok());
        assert!(fragment("#if 1\n{\n#else\n{{{\n#endif\n}").is_ok());
        assert!(fragment("#ifdef __cplusplus\nextern \"C\" {\n#endif\nint x;\n#ifdef __cplusplus\n}\n#endif\n").is_ok());
        assert!(fragment("#if 0\n{\n#elif B\n{\n#else\n{\n#endif\n}").is_ok());
        assert!(fragment("#if A\n{\n#elif 0\n({[\n#elif !1 // off\n}}\n#else\n{\n#endif\n}").is_ok());
        assert!(fragment("#if A\n{\n#elif 1\n{\n#else\n({[\n#endif\n}").is_ok());
        assert!(fragment("#if 0 /* off */\n({[\n#endif\nint x;").is_ok());
    }

    #[test]
    fn statements_begin_behind_the_labels_that_a_block_declares() {
        for (text, behind) in [
            ("{ int i; }", " int i; }"),
            ("{ __label__ a; __label__ b, c; a: ; }", " a: ; }"),
            ("{ __label__ a; int i; __label__ b; }", " int i; __label__ b; }"),
            ("{\n#ifdef A\n__label__ a;\n#else\n__label__ b;\n#endif\nint i; }", "int i; }"),
            ("{ __label__ c;\n#ifdef A\nint i;\n#endif\n}", "\n#ifdef A\nint i;\n#endif\n}"),
            ("{\n#ifdef A\n__label__ a;\n#endif\n__label__ b; int i; }", " int i; }"),
        ] {
            let fragment = fragment(text).expect("balanced");
            assert_eq!(&text[fragment.behind_label_declarations(text.as_bytes(), 0)..], behind, "{text}");
        }
    }
}
