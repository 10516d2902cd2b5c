//! The induction variable of a loop: its start, its relation to the bound, and its step, as ranges of tokens. Nothing is judged here.

use crate::source::analysis::file_facts::FileFacts;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::statement::{Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// Most tokens of a template's arguments in a bound.
const MOST_ARGUMENTS: usize = 16;

/// How a counter is compared with its bound, the counter standing on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
    Not,
}

/// The effect of a step on the counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `++i`, `i++`.
    Up,
    /// `--i`, `i--`.
    Down,
    /// `i += amount`.
    Plus(Range<usize>),
    /// `i -= amount`.
    Minus(Range<usize>),
    /// `i *= amount`.
    Times(Range<usize>),
    /// `i /= amount`.
    Divided(Range<usize>),
    /// `i <<= amount`.
    Left(Range<usize>),
    /// `i >>= amount`.
    Right(Range<usize>),
}

/// A counter with all that its header says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Induction<'a> {
    pub(crate) counter: &'a [u8],
    /// The words in front of the counter where the header declares it; empty if it only assigns.
    pub(crate) type_: Range<usize>,
    /// The counter's first value; empty if the header gives none.
    pub(crate) start: Range<usize>,
    pub(crate) relation: Relation,
    pub(crate) bound: Range<usize>,
    /// The rest of the condition, from its `&&` on; empty if there is none.
    pub(crate) rest: Range<usize>,
    pub(crate) step: Step,
    /// The step where it stands in the body of a `while`; empty if in the header.
    pub(crate) in_body: Range<usize>,
}

/// Reads the header of a `for` that has one counter, one relation and one step. A `while` or `do` needs such a
/// condition, and its step once in its body.
pub(crate) fn read<'a>(facts: &FileFacts<'a>, loop_: &Loop) -> Option<Induction<'a>> {
    let (open, close) = loop_.header?;
    match loop_.kind {
        LoopKind::For => {
            let (first, second) = semicolons(facts.fragment, open, close)?;
            conditions(facts, first + 1, second)?.into_iter().flatten().find_map(|condition| {
                let Condition { counter, relation, bound, rest } = condition;
                let step = step(facts, counter, second + 1..close)?;
                let (type_, start) = start(facts, counter, open + 1..first)?;
                Some(Induction { counter, type_, start, relation, bound, rest, step, in_body: 0..0 })
            })
        }
        LoopKind::While | LoopKind::Do => conditions(facts, open + 1, close)?.into_iter().flatten().find_map(|condition| {
            let Condition { counter, relation, bound, rest } = condition;
            let in_body = step_in_body(facts, counter, loop_)?;
            let step = step(facts, counter, in_body.clone())?;
            Some(Induction { counter, type_: 0..0, start: 0..0, relation, bound, rest, step, in_body })
        }),
        LoopKind::RangeFor => None,
    }
}

/// The one statement of the body that changes the counter, if it is no part of a loop inside.
fn step_in_body(facts: &FileFacts, counter: &[u8], loop_: &Loop) -> Option<Range<usize>> {
    let (fragment, source) = (facts.fragment, facts.source);
    let is_step = |at: usize| matches!(fragment.kind(at), Some(Kind::Step));
    let mut found = None;
    let mut at = loop_.body;
    while at <= loop_.body_end? {
        if fragment.kind(at) == Some(Kind::Ident) && fragment.text(source, at) == counter {
            let first = if is_step(at - 1) { at - 1 } else { at };
            // `*q = 0` changes the target of the pointer.
            let is_assigned = matches!(fragment.kind(at + 1), Some(Kind::OpAssign | Kind::Assign)) && !fragment.is(at - 1, b'*');
            let changes = first < at || is_step(at + 1) || is_assigned;
            if changes {
                let end = (at..=loop_.body_end?).find(|end| fragment.is(*end, b';'))?;
                found = Some((found.is_none().then_some(first..end))?);
            }
        }
        at += 1;
    }
    let found = found?;
    // A loop or a lambda around it would run it more than once.
    let repeats = (loop_.body..found.start).any(|at| {
        matches!(fragment.kind(at), Some(Kind::For | Kind::While | Kind::Do))
            || (fragment.is(at, b']') && (fragment.is(at + 1, b'(') || fragment.is(at + 1, b'{')))
    });
    let begins = matches!(fragment.kind(found.start - 1), Some(Kind::Punct(b';' | b'{' | b'}' | b')') | Kind::Else | Kind::Do));
    (begins && !repeats).then_some(found)
}

/// The two semicolons of a `for` header.
pub(crate) fn semicolons(fragment: &Fragment, open: usize, close: usize) -> Option<(usize, usize)> {
    let mut found = Vec::with_capacity(2);
    let mut at = open + 1;
    while at < close {
        match fragment.tokens[at].kind {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at)?,
            Kind::Punct(b';') => found.push(at),
            // Two headers in one: neither is known to be the one that is compiled.
            Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd => return None,
            _ => {}
        }
        at += 1;
    }
    match found[..] {
        [first, second] => Some((first, second)),
        _ => None,
    }
}

/// The parts of a condition on a counter.
struct Condition<'a> {
    counter: &'a [u8],
    relation: Relation,
    bound: Range<usize>,
    rest: Range<usize>,
}

/// `i < bound`, or `bound > i`, and perhaps more behind a `&&`: read with what stands on the left as the counter, and on the right, if that
/// is a name. The bound holds no operator that binds less than the relation, and no second relation.
fn conditions<'a>(facts: &FileFacts<'a>, from: usize, to: usize) -> Option<[Option<Condition<'a>>; 2]> {
    let (fragment, source) = (facts.fragment, facts.source);
    let mut at = from;
    let mut found = None;
    let (mut to, end) = (to, to);
    while at < to {
        match fragment.tokens[at].kind {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at)?,
            // `static_cast<int>(n)`.
            Kind::Punct(b'<') if at > from && fragment.text(source, at - 1) == b"static_cast" => {
                at = (at + 1..to.min(at + 8)).find(|end| fragment.is(*end, b'>'))?;
            }
            // `size<1>(tensor)`, `Policy<T>::items`. That may be two comparisons after all. Then a truth value stands
            // where the compiler wants a number or a type with a value, and nothing is known of the loop.
            Kind::Punct(b'<') if at > from && template_arguments(fragment, at, to).is_some() => at = template_arguments(fragment, at, to)?,
            Kind::Punct(b'<' | b'>') => found = Some((found.is_none().then_some(at))?),
            Kind::Op if matches!(fragment.text(source, at), b"<=" | b">=" | b"!=") => found = Some((found.is_none().then_some(at))?),
            Kind::Op if fragment.text(source, at) == b"&&" => {
                to = at;
                continue;
            }
            Kind::Op if matches!(fragment.text(source, at), b"==" | b"||") => return None,
            Kind::Punct(b'&' | b'|' | b'^' | b'?' | b',' | b':') | Kind::Assign | Kind::OpAssign | Kind::Step => return None,
            _ => {}
        }
        at += 1;
    }
    let sign = found?;
    let relation = match fragment.text(source, sign) {
        b"<" => Relation::Below,
        b">" => Relation::Above,
        b"<=" => Relation::AtMost,
        b">=" => Relation::AtLeast,
        _ => Relation::Not,
    };
    let rest = to..end;
    let mut at = rest.start;
    while at < rest.end {
        match fragment.tokens[at].kind {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at)?,
            Kind::Op if fragment.text(source, at) == b"||" => return None,
            Kind::Punct(b'?' | b',' | b':') | Kind::Assign | Kind::OpAssign => return None,
            _ => {}
        }
        at += 1;
    }
    let is_name = |range: &Range<usize>| range.len() == 1 && fragment.kind(range.start) == Some(Kind::Ident);
    let (left, right) = (from..sign, sign + 1..to);
    if left.is_empty() || right.is_empty() {
        return None;
    }
    let mirrored = match relation {
        Relation::Below => Relation::Above,
        Relation::Above => Relation::Below,
        Relation::AtMost => Relation::AtLeast,
        Relation::AtLeast => Relation::AtMost,
        Relation::Not => Relation::Not,
    };
    let read = |name: &Range<usize>, bound: &Range<usize>, relation: Relation| {
        let counter = fragment.text(source, name.start);
        is_name(name).then(|| Condition { counter, relation, bound: bound.clone(), rest: rest.clone() })
    };
    Some([read(&left, &right, relation), read(&right, &left, mirrored)])
}

/// Where the arguments of a template end that begin at a `<`, if a call or a member follows them.
pub(crate) fn template_arguments(fragment: &Fragment, open: usize, to: usize) -> Option<usize> {
    if fragment.kind(open.checked_sub(1)?) != Some(Kind::Ident) {
        return None;
    }
    let mut depth = 0usize;
    for at in open..to.min(open + MOST_ARGUMENTS) {
        match fragment.kind(at)? {
            Kind::Punct(b'<') => depth += 1,
            Kind::Punct(b'>') => depth -= 1,
            Kind::Ident | Kind::Keyword | Kind::Number | Kind::Scope | Kind::Punct(b',') => {}
            _ => return None,
        }
        if depth == 0 {
            return (fragment.is(at + 1, b'(') || fragment.kind(at + 1) == Some(Kind::Scope)).then_some(at);
        }
    }
    None
}

/// `int i = 0`, `i = 0`, or nothing.
fn start(facts: &FileFacts, counter: &[u8], header: Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
    let fragment = facts.fragment;
    if header.is_empty() {
        return Some((header.clone(), header));
    }
    let mut at = header.start;
    let mut assign = None;
    while at < header.end {
        match fragment.tokens[at].kind {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at)?,
            Kind::Assign => assign = Some((assign.is_none().then_some(at))?),
            // A second variable, which may be bound to the first.
            Kind::Punct(b',') => return None,
            _ => {}
        }
        at += 1;
    }
    let assign = assign?;
    if assign == header.start || fragment.kind(assign - 1) != Some(Kind::Ident) || fragment.text(facts.source, assign - 1) != counter {
        return None;
    }
    Some((header.start..assign - 1, assign + 1..header.end))
}

fn step(facts: &FileFacts, counter: &[u8], range: Range<usize>) -> Option<Step> {
    let text = |index: usize| facts.fragment.text(facts.source, index);
    if range.len() == 2 {
        return match (text(range.start), text(range.start + 1)) {
            (b"++", name) | (name, b"++") if name == counter => Some(Step::Up),
            (b"--", name) | (name, b"--") if name == counter => Some(Step::Down),
            _ => None,
        };
    }
    if range.len() < 3 || text(range.start) != counter {
        return None;
    }
    let amount = range.start + 2..range.end;
    match text(range.start + 1) {
        b"+=" => Some(Step::Plus(amount)),
        b"-=" => Some(Step::Minus(amount)),
        b"*=" => Some(Step::Times(amount)),
        b"/=" => Some(Step::Divided(amount)),
        b"<<=" => Some(Step::Left(amount)),
        // `>>=` comes as `>`, `>=`.
        b">" if range.len() > 3 && text(range.start + 2) == b">=" => Some(Step::Right(range.start + 3..range.end)),
        _ => None,
    }
}
