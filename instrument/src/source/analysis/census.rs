//! Remainders: loop keywords without a loop, loops that the parser does not see, barriers without a check.

use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::site::Kind as SiteKind;
use crate::source::syntax::asm;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::grammar::{self, Grammar, TreeKind};
use crate::source::syntax::scopes::innermost_scope;
use crate::source::syntax::source_file::SourceFile;
use crate::source::syntax::statement::{Body, Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most arms of one conditional that are tried one after the other.
const MOST_ARMS: usize = 8;

/// `do … while (0)` and its disguises: statements that only look like loops.
pub(crate) fn never_repeats(source: &[u8], fragment: &Fragment, loop_: &Loop) -> bool {
    let Some((open, close)) = loop_.header else { return false };
    if loop_.kind != LoopKind::Do {
        return false;
    }
    let (mut from, mut to) = (open + 1, close);
    while fragment.is(from, b'(') && fragment.mate(from) == Some(to - 1) {
        (from, to) = (from + 1, to - 1);
    }
    let words: Vec<&[u8]> = (from..to).map(|at| fragment.text(source, at)).collect();
    match words[..] {
        [b"0" | b"false"] => true,
        // CUTLASS writes `&x != &x` to keep compilers from warning of a constant.
        [b"&", a, b"!=", b"&", b] => a == b && !overloads_address(source),
        _ => false,
    }
}

/// Whether the text has an operator `&` with one operand, or with two: what it returns may be anything.
fn overloads_address(source: &[u8]) -> bool {
    memchr::memmem::find_iter(source, b"operator").any(|at| {
        let behind = source[at + 8..].trim_ascii_start();
        (behind.starts_with(b"&") && !matches!(behind.get(1), Some(b'&' | b'='))) || behind.starts_with(b"bitand")
    })
}

/// Loop keywords of the range that no loop was made of.
pub(crate) fn lost(fragment: &Fragment, body: &Body, range: (usize, usize)) -> Vec<usize> {
    let mut placed: BTreeSet<usize> = body.loops.iter().map(|loop_| loop_.keyword).collect();
    for loop_ in body.loops.iter().filter(|loop_| loop_.kind == LoopKind::Do) {
        placed.extend(loop_.header.and_then(|(open, _)| fragment.before(open)));
    }
    let mut lost: BTreeSet<usize> = body.lost.iter().copied().collect();
    lost.retain(|keyword| body.loops.iter().all(|loop_| loop_.keyword != *keyword));
    lost.extend(
        (range.0..range.1.min(fragment.len()))
            .filter(|at| matches!(fragment.tokens[*at].kind, Kind::For | Kind::While | Kind::Do) && !placed.contains(at)),
    );
    lost.into_iter().collect()
}

/// The kind that a lost keyword stands for.
pub(crate) fn loop_kind(fragment: &Fragment, token: usize) -> SiteKind {
    match fragment.kind(token) {
        Some(Kind::While) => SiteKind::While,
        Some(Kind::Do) => SiteKind::Do,
        _ => SiteKind::For,
    }
}

/// Indices of loops that the tree does not confirm under any choice of arms.
pub(crate) fn unseen_by_tree(
    input: &SourceFile,
    fragment: &Fragment,
    body: &Body,
    range: (usize, usize),
    grammar: &mut Grammar,
) -> Vec<usize> {
    let mut unseen: Vec<usize> = (0..body.loops.len()).collect();
    if unseen.is_empty() {
        return unseen;
    }
    let span = fragment.tokens[range.0].start as usize..fragment.tokens[range.1].end as usize;
    let blank = blanks(input, fragment, body, range, &span);
    let mut arm = None;
    let arms = most_arms(fragment, range);
    loop {
        let mut blank = blank.clone();
        if let Some(arm) = arm {
            blank.extend(other_arms(fragment, range, arm));
        }
        let seen = grammar.loops(&grammar::mask(input.source, span.clone(), &blank), span.start);
        unseen.retain(|index| {
            let loop_ = &body.loops[*index];
            let found = seen.get(&(fragment.tokens[loop_.keyword].start as usize));
            let kind = match loop_.kind {
                LoopKind::For => TreeKind::For,
                LoopKind::RangeFor => TreeKind::RangeFor,
                LoopKind::While => TreeKind::While,
                LoopKind::Do => TreeKind::Do,
            };
            found.is_none_or(|found| found.kind != kind || !ends_there(fragment, loop_, found.end))
        });
        let next = arm.map_or(0, |arm| arm + 1);
        if unseen.is_empty() || next >= arms {
            return unseen;
        }
        arm = Some(next);
    }
}

/// Whether the loop ends at the offset, in some choice of arms: several braces may close its body.
fn ends_there(fragment: &Fragment, loop_: &Loop, offset: usize) -> bool {
    if loop_.end.is_some_and(|end| fragment.tokens[end].end as usize == offset) {
        return true;
    }
    let last = fragment.tokens.partition_point(|token| (token.end as usize) < offset);
    let opener = fragment.mate(last).filter(|_| fragment.is(last, b'}') && fragment.tokens[last].end as usize == offset);
    let closer = fragment.mate(loop_.body).filter(|_| fragment.is(loop_.body, b'{'));
    opener.is_some_and(|opener| opener == loop_.body || (closer.is_some() && fragment.mate(opener) == closer))
}

/// Parts that the grammar can't read: directives, macros in front of statements, attributes.
fn blanks(input: &SourceFile, fragment: &Fragment, body: &Body, range: (usize, usize), span: &Range<usize>) -> Vec<Range<usize>> {
    let mut blank: Vec<Range<usize>> = Vec::new();
    let first = input.lexed.directives.partition_point(|directive| directive.span.end < span.start);
    blank.extend(
        input.lexed.directives[first..]
            .iter()
            .take_while(|directive| directive.span.start < span.end)
            .map(|directive| directive.span.clone()),
    );
    let bytes = |from: usize, to: usize| fragment.tokens[from].start as usize..fragment.tokens[to].end as usize;
    blank.extend(body.prefixes.iter().map(|(from, to)| bytes(*from, *to)));
    let uses = body.macro_uses.iter().filter(|use_| !is_target_macro(fragment.text(input.source, use_.name)));
    blank.extend(uses.map(|use_| bytes(use_.name, use_.arguments.map_or(use_.name, |(_, close)| close))));
    for at in range.0..range.1 {
        let token = fragment.tokens[at];
        let text = &input.source[token.range()];
        match token.kind {
            Kind::Host | Kind::Device | Kind::Global => blank.push(token.range()),
            Kind::Ident if input.macros.spaces_of(Kind::Ident, text).any() => blank.push(token.range()),
            Kind::Ident if is_target_macro(text) && fragment.is(at + 1, b'(') => {
                if let Some(close) = fragment.mate(at + 1) {
                    blank.extend(around_branches(fragment, at, close).into_iter().map(|(from, to)| bytes(from, to)));
                }
            }
            Kind::Keyword
                if matches!(text, b"__align__" | b"__launch_bounds__" | b"__attribute__" | b"alignas") && fragment.is(at + 1, b'(') =>
            {
                if let Some(close) = fragment.mate(at + 1) {
                    blank.push(bytes(at, close));
                }
            }
            Kind::Keyword if matches!(text, b"typename" | b"__restrict__" | b"__restrict") => blank.push(token.range()),
            _ => {}
        }
    }
    // Text that is never compiled is no code.
    let first = input.dead.partition_point(|dead| dead.end <= span.start);
    let here = input.dead[first..].iter().take_while(|dead| dead.start < span.end);
    blank.extend(here.map(|dead| dead.start.max(span.start)..dead.end.min(span.end)));
    blank
}

/// Whether the name is one of libcu++'s macros that take statements for one target or another: `NV_IF_TARGET(condition, (…), (…))`.
pub(crate) fn is_target_macro(name: &[u8]) -> bool {
    matches!(name, b"NV_IF_TARGET" | b"NV_IF_ELSE_TARGET" | b"NV_DISPATCH_TARGET")
}

/// The parts of such a macro's use that are no statements: all but the insides of arguments in parentheses that hold a loop.
fn around_branches(fragment: &Fragment, name: usize, close: usize) -> Vec<(usize, usize)> {
    let mut around = Vec::new();
    let (mut from, mut at) = (name, name + 2);
    while at < close {
        let Some(end) = fragment.mate(at).filter(|end| *end > at) else {
            at += 1;
            continue;
        };
        if (at..end).any(|inner| matches!(fragment.tokens[inner].kind, Kind::For | Kind::While | Kind::Do)) {
            around.push((from, at));
            from = end;
        }
        at = end + 1;
    }
    around.push((from, close));
    around
}

/// How many arms the widest conditional of the range has, within reason.
fn most_arms(fragment: &Fragment, range: (usize, usize)) -> usize {
    let (mut most, mut open) = (0, Vec::new());
    for at in range.0..range.1 {
        match fragment.tokens[at].kind {
            Kind::ArmIf => open.push(1),
            Kind::ArmElse => {
                if let Some(count) = open.last_mut() {
                    *count += 1;
                }
            }
            Kind::ArmEnd => most = most.max(open.pop().unwrap_or(0)),
            _ => {}
        }
    }
    most.min(MOST_ARMS)
}

/// Bytes of all arms but the given one of each conditional; of a conditional with fewer arms, the last is kept.
fn other_arms(fragment: &Fragment, range: (usize, usize), keep: usize) -> Vec<Range<usize>> {
    let mut others = Vec::new();
    let mut open: Vec<Vec<usize>> = Vec::new();
    for at in range.0..range.1 {
        let start = fragment.tokens[at].start as usize;
        match fragment.tokens[at].kind {
            Kind::ArmIf => open.push(vec![start]),
            Kind::ArmElse => {
                if let Some(borders) = open.last_mut() {
                    borders.push(start);
                }
            }
            Kind::ArmEnd => {
                let Some(mut borders) = open.pop() else { continue };
                let arms = borders.len();
                borders.push(start);
                // Without an `#else`, a conditional of one arm stays: the others are empty.
                let kept = keep.min(arms - 1);
                others.extend((0..arms).filter(|arm| *arm != kept).map(|arm| borders[arm]..borders[arm + 1]));
            }
            _ => {}
        }
    }
    others
}

/// Block barriers that no check follows.
pub(crate) fn barriers(
    source: &[u8],
    fragment: &Fragment,
    body: &Body,
    range: (usize, usize),
    name: impl Fn(usize) -> String,
) -> Vec<Diagnostic> {
    let checked: BTreeSet<usize> = body.barriers.iter().map(|barrier| barrier.token).collect();
    (range.0..range.1.min(fragment.len()))
        .filter(|at| !checked.contains(at))
        .filter(|at| {
            if fragment.kind(*at) == Some(Kind::Asm) {
                let text = asm::text(source, fragment, *at);
                return ["bar.sync", "barrier.sync", "barrier.cta.sync", "barrier.cluster.wait"].iter().any(|word| text.contains(word));
            }
            if fragment.kind(*at) != Some(Kind::Ident) || !fragment.is(at + 1, b'(') {
                return false;
            }
            let text = fragment.text(source, *at);
            text.starts_with(b"__syncthreads")
                || matches!(text, b"arrive_and_wait" | b"barrier_sync")
                || is_group_sync(source, fragment, *at)
        })
        .map(|at| {
            Diagnostic::new(Code::BarrierNotChecked, "after this barrier the flag is not checked")
                .at(fragment.tokens[at].range())
                .in_function(name(innermost_scope(fragment, body, at)))
        })
        .collect()
}

/// `group.sync()`.
fn is_group_sync(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    fragment.text(source, at) == b"sync"
        && fragment
            .before(at)
            .is_some_and(|before| fragment.is(before, b'.') || matches!(fragment.kind(before), Some(Kind::Arrow | Kind::Scope)))
}
