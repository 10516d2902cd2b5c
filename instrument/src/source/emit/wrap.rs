//! Long lines of rewritten source on several lines.
//!
//! An insertion holds no newline: it may stand in a macro's body or argument, and lines keep their numbers. Where it stands in
//! neither, a line can be broken among what was inserted, and `#line` gives the rest its number again. Compilers see the same
//! tokens in the same lines.

use crate::common::rewrite::Rewrite;
use crate::source::syntax::token::{Kind, Lexed, Token, lex};
use std::ops::Range;

/// Fewest bytes of a line that is broken, where there is a choice.
const FEWEST: usize = 60;

/// Functions of the prelude among whose arguments a line may be broken: those that weigh loops, by sums of any length.
const FUNCTIONS: [&str; 6] =
    ["__cuinstr_shift", "__cuinstr_share", "__cuinstr_tick", "__cuinstr_trips", "__cuinstr_weigh", "__cuinstr_weigh_shares"];

/// A place where a line may be broken.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    /// Brackets around it, of templates too.
    depth: usize,
}

/// A break: the place, how many spaces before it go, and what comes instead.
struct Break {
    at: usize,
    spaces: usize,
    text: String,
}

impl Rewrite {
    /// The same with lines of at most so many bytes, as far as they can be broken: not in macros, and not in the user's own text.
    pub fn wrapped(mut self, longest: usize) -> Self {
        let (Some(text), Some(prelude)) = (&self.output, self.inserted.first()) else { return self };
        let start = prelude.end;
        let places = places(text, start, &self.inserted);
        let mut breaks: Vec<Break> = Vec::new();
        let (mut at, mut number) = (start, 0);
        while at < text.len() {
            let end = memchr(text, at);
            number += 1;
            let line = at..end;
            let is_part = text[..at].ends_with(b"\\\n") || text[line.clone()].ends_with(b"\\");
            if line.len() > longest && !is_part {
                let here = places.partition_point(|place| place.at <= at)..places.partition_point(|place| place.at < end);
                broken(text, &line, number, longest, &places[here], &self.inserted, &mut breaks);
            }
            at = end + 1;
        }
        if !breaks.is_empty() {
            let (output, inserted) = apply(text, &self.inserted, &breaks);
            (self.output, self.inserted) = (Some(output), inserted);
        }
        self
    }
}

/// Where the line at that offset ends.
fn memchr(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| at + end)
}

/// Where lines may be broken: where insertions begin and end, and at spaces in them, unless a macro's arguments may lie around.
fn places(text: &[u8], start: usize, inserted: &[Range<usize>]) -> Vec<Place> {
    let lexed = lex(text, start..text.len(), false);
    let end = first_own_number(text, &lexed);
    let mut places = Vec::new();
    // The open brackets, and how many of them may hold arguments.
    let (mut open, mut arguments): (Vec<(u8, bool)>, usize) = (Vec::new(), 0);
    // Of a template's arguments, as they stand in insertions: no space stands beside their brackets.
    let mut angles = 0_usize;
    let mut before: Option<Token> = None;
    let is_function = |token: Token| FUNCTIONS.iter().any(|name| text[token.range()] == *name.as_bytes());
    for token in lexed.tokens.iter().filter(|token| !matches!(token.kind, Kind::Directive(_))) {
        let at = token.start as usize;
        if at >= end {
            break;
        }
        let begins = !matches!(token.kind, Kind::Punct(b'(' | b')' | b',' | b';' | b'[' | b']' | b'>'));
        let is_ours = || {
            let index = inserted.partition_point(|range| range.start <= at);
            let range = inserted[..index].last().filter(|range| at <= range.end);
            range.is_some_and(|range| at == range.start || at == range.end || text[at - 1] == b' ')
        };
        if begins && arguments == 0 && is_ours() {
            places.push(Place { at, depth: open.len() + angles });
        }
        match token.kind {
            Kind::Punct(bracket @ (b'(' | b'[' | b'{')) => {
                let may_hold = bracket == b'(' && before.is_some_and(|token| token.kind == Kind::Ident && !is_function(token));
                arguments += usize::from(may_hold);
                open.push((bracket, may_hold));
            }
            Kind::Punct(bracket @ (b')' | b']' | b'}')) => match open.pop() {
                Some((b'(', may_hold)) if bracket == b')' => arguments -= usize::from(may_hold),
                Some((b'[', _)) if bracket == b']' => {}
                Some((b'{', _)) if bracket == b'}' => {}
                // Arms of a condition with brackets of their own: what lies around is not known from here on.
                _ => break,
            },
            Kind::Punct(b'<') if before.is_some_and(|token| token.kind == Kind::Ident) && text[at - 1] != b' ' => angles += 1,
            Kind::Punct(b'>') if text[at - 1] != b' ' => angles = angles.saturating_sub(1),
            Kind::Punct(b';') => angles = 0,
            _ => {}
        }
        before = Some(*token);
    }
    places
}

/// Where the user's text numbers its lines itself.
fn first_own_number(text: &[u8], lexed: &Lexed) -> usize {
    let numbers = |span: &Range<usize>| {
        let line = text[span.clone()].trim_ascii_start();
        let rest = line.strip_prefix(b"#").unwrap_or(line).trim_ascii_start();
        rest.starts_with(b"line") || rest.first().is_some_and(u8::is_ascii_digit)
    };
    lexed.directives.iter().map(|directive| &directive.span).find(|span| numbers(span)).map_or(text.len(), |span| span.start)
}

/// Breaks one line: at each end of what fits, where the fewest brackets are open.
fn broken(
    text: &[u8],
    line: &Range<usize>,
    number: usize,
    longest: usize,
    places: &[Place],
    inserted: &[Range<usize>],
    breaks: &mut Vec<Break>,
) {
    let own = text[line.clone()].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let indent = [&text[line.start..line.start + own], b"    "].concat();
    let indent = String::from_utf8_lossy(&indent);
    // Nothing but space is no line.
    let mut from = line.start + own;
    let mut room = longest - own;
    while line.end - from > room {
        let fits = |place: &&Place| place.at > from && place.at - from <= room;
        let long: Vec<&Place> = places.iter().filter(fits).filter(|place| place.at - from >= FEWEST).collect();
        let best = long.iter().copied().min_by_key(|place| (place.depth, std::cmp::Reverse(place.at)));
        let any = || places.iter().filter(fits).max_by_key(|place| place.at);
        let Some(place) = best.or_else(any).or_else(|| places.iter().find(|place| place.at > from)) else { return };
        let index = inserted.partition_point(|range| range.start < place.at);
        let ours = inserted[..index].last().filter(|range| place.at <= range.end).map_or(place.at, |range| range.start);
        let spaces = text[ours..place.at].iter().rev().take_while(|byte| **byte == b' ').count();
        breaks.push(Break { at: place.at, spaces, text: format!("\n#line {number}\n{indent}") });
        from = place.at;
        room = longest - indent.len();
    }
}

/// The text with its breaks, which are part of the insertions that they stand in.
fn apply(text: &[u8], inserted: &[Range<usize>], breaks: &[Break]) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut out = Vec::with_capacity(text.len() + breaks.len() * 32);
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(inserted.len());
    let (mut copied, mut next) = (0, breaks.iter().peekable());
    let mut copy = |out: &mut Vec<u8>, until: usize, includes: bool| {
        while let Some(Break { at, spaces, text: new }) = next.next_if(|next| next.at < until || includes && next.at == until) {
            out.extend_from_slice(&text[copied..at - spaces]);
            out.extend_from_slice(new.as_bytes());
            copied = *at;
        }
        out.extend_from_slice(&text[copied..until]);
        copied = until;
    };
    for range in inserted {
        copy(&mut out, range.start, false);
        let start = out.len();
        copy(&mut out, range.end, true);
        ranges.push(start..out.len());
    }
    copy(&mut out, text.len(), true);
    (out, ranges)
}

#[cfg(test)]
mod tests {
    use crate::common::options::Options;
    use crate::source::rewrite;

    /// The rewritten text behind the prelude, with lines of at most so many bytes; without breaks it must be that without a limit.
    fn wrapped(source: &str, longest: usize) -> String {
        let plain = rewrite(source.as_bytes(), &Options { path: "a.cu".to_owned(), ..Options::default() });
        let wrapped = plain.clone().wrapped(longest);
        assert_eq!(wrapped.original().as_deref(), Some(source.as_bytes()));
        let behind = |rewrite: &crate::Rewrite| {
            let output = rewrite.output.as_ref().expect("it is rewritten");
            String::from_utf8(output[rewrite.inserted[0].end..].to_vec()).expect("it is text")
        };
        let words = |text: &str| text.split_ascii_whitespace().collect::<String>();
        let text = behind(&wrapped);
        let mut joined = String::new();
        let mut number = 0;
        for line in text.lines() {
            if let Some(told) = line.strip_prefix("#line ").filter(|told| !told.contains('"')) {
                assert_eq!(told.parse::<usize>(), Ok(number), "{text}");
                number -= 1;
            } else {
                number += 1;
                joined.extend([line, "\n"]);
            }
        }
        assert_eq!(words(&joined), words(&behind(&plain)));
        text
    }

    const LOOPS: &str = "__global__ void k(int *p, int n) {\n    for (int i = 0; i < n; ++i) p[i] = 1;\n\twhile (*p) { f(p, [&] { while (p[1]) { } }); }\n}\n";

    #[test]
    fn lines_are_broken_among_what_was_inserted_and_keep_their_numbers() {
        let text = wrapped(LOOPS, 120);
        assert!(text.lines().any(|line| line == "#line 2"), "{text}");
        let long: Vec<&str> = text.lines().filter(|line| line.len() > 120).collect();
        assert!(
            long.iter().all(|line| line.contains("f(p, [&]")) && long.len() == 1,
            "arguments of what may be a macro stay on one line: {text}"
        );
        assert_eq!(wrapped(LOOPS, 100_000), wrapped(LOOPS, 5_000));
        assert!(!wrapped(LOOPS, 100_000).contains("#line"));
    }

    #[test]
    fn sums_of_weights_are_broken_since_no_macro_takes_them() {
        let prelude = crate::source::emit::prelude::body();
        for name in super::FUNCTIONS {
            assert!(prelude.contains(&format!("{name}(")) && !prelude.contains(&format!("#define {name}(")), "{name}");
        }
        let inner = "for (int j = 0; j < 4; ++j) { p[j] += i; for (int k = 0; k < 4; ++k) p[k] *= j; }";
        let text = wrapped(
            &format!(
                "__global__ void k(int *p, int n) {{\n    for (int i = 0; i < n; ++i) {{\n        {inner}\n        {inner}\n        {inner}\n    }}\n}}\n"
            ),
            200,
        );
        assert!(text.contains("#line") && text.lines().all(|line| line.len() <= 200), "{text}");
    }

    #[test]
    fn macros_and_lines_with_numbers_of_their_own_stay() {
        let in_macro = "#define LOOP(n) \\\n  for (int i = 0; i < n; ++i) p[i] = 1;\n__global__ void k(int *p, int n) { LOOP(n) }\n#define ONE(n) for (int i = 0; i < n; ++i) p[i] = 1;\n";
        let text = wrapped(in_macro, 100);
        assert!(text.lines().filter(|line| line.contains("for (int i")).all(|line| line.len() > 100), "{text}");
        for own in ["#line 7 \"b.y\"\n", "# 7 \"b.y\"\n"] {
            assert!(!wrapped(&format!("{own}{LOOPS}"), 100).replace(own, "").contains("#line"), "{own}");
        }
        let torn = "__device__ void f(int *p) {\n#if A\n  M(p) {\n#else\n  while (*p) {\n#endif\n    while (p[1]) ; } }\n";
        wrapped(torn, 80);
    }
}
