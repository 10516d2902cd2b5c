//! Nests of strips that are brief where they run: `for (dy = -r; dy <= r; ++dy) for (dx = -r; dx <= r; ++dx)` with an `r` of three.
//!
//! How long a strip is depends on the thread's allowance, so a counter in strips is no more the same for a warp's threads, as compilers know a
//! counter between a kernel's parameters to be, and what follows from it lives in registers of each thread. In a nest whose inner strips are
//! short that is what all its time goes to. So its text stands there twice: `if (it is not brief) { in strips } else` the user's own.
//!
//! Where the user's own runs, all starts and bounds lie near zero, so that its trips are few and known exactly whatever the counters' types; all of
//! its units are paid for before it begins; and there are no more than a nest may run for nothing. That follows from values that the nest keeps, asked
//! of in front of it. Each loop is counted down besides, by which a proof knows that it ends: of a comparison of the user's it would have
//! to keep in mind what was asked in front of the nest, and compilers ask that in many ways. The second text is the one in strips, so what runs hot
//! mostly keeps its lines.
//!
//! Nothing is counted where each loop steps by one from a value of run time. There the variables that starts and bounds are made of stand for their own
//! values, said once more with the limits that were asked for: `{ int r = pinned; for (int dy = -r; dy <= r; ++dy) … }`. By the user's own comparison
//! a proof then knows that the loop is short. (Of longer steps compilers count how many there are, and where a loop changes what begins as a constant,
//! its own counter or another number, what they have unrolled.) The nest changes none of these variables and takes none's address, or it would keep no values.

use crate::common::edit::Edit;
use crate::source::analysis::function_scope::Home;
use crate::source::analysis::induction::{self, Relation, Step};
use crate::source::analysis::strip_mine;
use crate::source::analysis::trip_count;
use crate::source::analysis::unroll::{self, Unroll};
use crate::source::plan::loop_form::{Decision, Shape};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::statement::{Body, Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Most tokens of a nest that is written twice.
const MOST_TOKENS: usize = 256;

/// Most loops inside a nest's outer one that are no constants' own: the units of all must fit in 32 bits.
const MOST_INNER: usize = 3;

/// Largest number in a start or bound: times what lies near zero it is far from overflow.
const MOST_NUMBER: i64 = 1 << 20;

/// Words that mean something else in a second place, or can't be there twice.
const ONCE: &[&[u8]] =
    &[b"static", b"extern", b"typedef", b"using", b"static_assert", b"assert", b"__shared__", b"__LINE__", b"__COUNTER__", b"__asm__"];

/// A nest that is to be written twice.
#[derive(Debug)]
pub(crate) struct Brief {
    /// Its outer loop.
    index: usize,
    /// What says how often its loops run, as text.
    rounds: String,
    /// Whether it is not brief, as text.
    question: String,
    /// What pays for it and declares what its loops are counted down in, or the variables once more, as text; and what ends the latter's scope.
    pays: String,
    closes: &'static str,
    /// Where the loops' conditions begin and end, as offsets, and what is asked in front of them.
    conditions: Vec<(usize, usize, String)>,
    /// Where their steps begin, and what is done there.
    steps: Vec<(usize, String)>,
}

/// Finds them among a kernel's loops.
pub(crate) fn nests(homes: &[Home], decisions: &[Decision]) -> Vec<Brief> {
    let Some(body) = homes.first().map(|home| home.body) else { return Vec::new() };
    let loops = body.loops.iter().enumerate();
    loops.filter_map(|(index, loop_)| of_loop(&homes[loop_.scope], decisions, index)).collect()
}

/// Writes them twice: the edits of their loops, from the one at `first` on, go into the second text.
pub(crate) fn twice(source: &[u8], fragment: &Fragment, body: &Body, nests: &[Brief], edits: &mut Vec<Edit>, first: usize) {
    for Brief { index, rounds, question, pays, closes, conditions, steps } in nests {
        let loop_ = &body.loops[*index];
        let Some(end) = loop_.end else { continue };
        let (from, to) = (fragment.tokens[loop_.keyword].start as usize, fragment.tokens[end].end as usize);
        let inside: Vec<Edit> = edits.extract_if(first.., |edit| from < edit.at && edit.at < to).collect();
        // A function that is left alone by the configuration has none.
        if inside.is_empty() {
            continue;
        }
        let strips = rewritten(source, fragment, loop_.keyword..=end, inside);
        let text = format!("{{ {rounds} if ({question}) {{ {strips} }} else {{ {pays} ");
        edits.push(Edit { at: from, closes: false, text });
        for (begin, end, asked) in conditions {
            edits.push(Edit { at: *begin, closes: false, text: format!(" __cuinstr_under_way({asked},") });
            edits.push(Edit { at: *end, closes: true, text: ")".to_owned() });
        }
        edits.extend(steps.iter().map(|(at, text)| Edit { at: *at, closes: false, text: text.clone() }));
        edits.push(Edit { at: to, closes: true, text: format!(" }} }}{closes}") });
    }
}

/// The nest of a loop, if it is to be written twice.
fn of_loop(home: &Home, decisions: &[Decision], index: usize) -> Option<Brief> {
    let (body, context) = (home.body, home.context);
    let loop_ = &body.loops[index];
    let end = loop_.end?;
    // In a loop around it the question would be asked each time.
    let is_first = loop_.outer.is_none() && loop_.scope == 0;
    let is_short = end - loop_.keyword <= MOST_TOKENS && context.fragment.of_macro.is_none();
    if !is_first || !is_short || !(loop_.keyword..=end).all(|at| may_stand_twice(home, at)) {
        return None;
    }
    let span = loop_.keyword..=end;
    let holds = |token: usize| span.contains(&token);
    let others = body.scopes.iter().skip(1).map(|scope| scope.open).chain(body.macro_uses.iter().map(|use_| use_.name));
    let others = others.chain(body.lost.iter().copied()).chain(body.labels.iter().chain(&body.barriers).map(|simple| simple.token));
    let bytes = context.fragment.tokens[loop_.keyword].start as usize..context.fragment.tokens[end].end as usize;
    let has_directive = context.lexed.directives.iter().any(|directive| bytes.contains(&directive.span.start));
    // What is declared in front has commas.
    if context.fragment.is_enclosed(loop_.keyword)
        || has_directive
        || others.into_iter().any(holds)
        || body.prefixes.iter().any(|(from, _)| holds(*from))
    {
        return None;
    }
    let inner: Vec<usize> = (index + 1..body.loops.len())
        .take_while(|at| holds(body.loops[*at].keyword))
        .filter(|at| decisions[*at].cost.left_alone.is_none())
        .collect();
    if inner.is_empty() || inner.len() > MOST_INNER || inner.iter().any(|at| body.loops[*at].outer != Some(index)) {
        return None;
    }
    let counters: Vec<&[u8]> = std::iter::once(&index)
        .chain(&inner)
        .map(|at| induction::read(context, &body.loops[*at]).map(|induction| induction.counter))
        .collect::<Option<_>>()?;
    // A variable, not what it leads to.
    let is_given_a_number = |at: usize| {
        let fragment = context.fragment;
        fragment.kind(at) == Some(Kind::Assign)
            && fragment.kind(at - 1) == Some(Kind::Ident)
            && trip_count::literal(context, &(at + 1..at + 2)).is_some()
    };
    let mut asked = Asked { pins: !span.clone().any(is_given_a_number), ..Asked::default() };
    asked.add(home, loop_, &decisions[index], loop_, &counters)?;
    let mut units = format!("{}u", asked.weights[0]);
    for at in inner {
        asked.add(home, &body.loops[at], &decisions[at], loop_, &counters)?;
        let _ = write!(units, " + __cuinstr_rounds_{} * {}u", asked.weights.len() - 1, asked.weights.last()?);
    }
    if let Some((_, _, condition)) = asked.conditions.first_mut() {
        *condition = format!("({} {condition})", asked.inner.trim_start());
    }
    let types: Vec<String> = asked.variables.iter().map(|name| format!("decltype({name})")).collect();
    let values = format!("__cuinstr_values<{}>::all", types.join(", "));
    let outside = asked.ends.iter().map(|(end, of)| format!("__cuinstr_{end}<{values}, {of} > __cuinstr_near"));
    // First of all whether what they are made of lies near zero: nothing may overflow that would not have run.
    let whole = |name: &&String| !asked.variables.iter().any(|other| other.starts_with(&format!("{name}.")));
    let far = asked.variables.iter().filter(whole).map(|name| format!("__cuinstr_far({name})"));
    let never = asked.rounds.iter().enumerate().map(|(nth, rounds)| format!("(__cuinstr_rounds_{nth} = {rounds}) == 0u"));
    let asks: Vec<String> = far.chain(outside).chain(never).collect();
    let names: Vec<String> = (0..asked.rounds.len()).map(|nth| format!("__cuinstr_rounds_{nth} = 0u")).collect();
    let rounds = format!("unsigned int {};", names.join(", "));
    let units = format!("__cuinstr_rounds_0 * ({units})");
    let question = format!("__cuinstr_long({} || {units} > __cuinstr_nest)", asks.join(" || "));
    let mut pays = format!("__cuinstr_deduct(__cuinstr_left, {units});");
    if !asked.pins {
        pays.push_str(&asked.counts);
        return Some(Brief { index, rounds, question, pays, closes: "", conditions: asked.conditions, steps: asked.steps });
    }
    // In two scopes, since in its own declaration a name means the new variable. All that is asked but whether a variable is far is reckoned of the
    // new ones, so that nothing overflows and nobody has to branch between the questions.
    let mut rounds = String::new();
    let mut again = String::new();
    for (nth, name) in asked.variables.iter().enumerate() {
        let _ = write!(rounds, "decltype(__cuinstr_pin({name})) __cuinstr_pinned_{nth} = __cuinstr_pin({name}); ");
        let _ = write!(again, " decltype(__cuinstr_pin({name})) {name} = __cuinstr_pinned_{nth};");
    }
    let _ = write!(rounds, "unsigned int {}; __attribute__((__unused__)) bool __cuinstr_strays; {{{again}", names.join(", "));
    for (nth, told) in asked.rounds.iter().enumerate() {
        let _ = write!(rounds, " __cuinstr_rounds_{nth} = {told};");
    }
    let strays: Vec<String> = asked.strays.iter().map(|of| format!("__cuinstr_stray<{values}, {of}")).collect();
    let _ = write!(rounds, " __cuinstr_strays = {}; }}", strays.join(" | "));
    let far = asked.variables.iter().map(|name| format!("__cuinstr_far({name})"));
    let many = (0..asked.rounds.len()).map(|nth| format!("__cuinstr_rounds_{nth} - 1u >= __cuinstr_near"));
    let asks: Vec<String> = far.chain(["__cuinstr_strays".to_owned()]).chain(many).map(|asked| format!("({asked})")).collect();
    let question = format!("__cuinstr_long({} | ({units} > __cuinstr_nest))", asks.join(" | "));
    let _ = write!(pays, " {{{again}");
    Some(Brief { index, rounds, question, pays, closes: " }", conditions: Vec::new(), steps: Vec::new() })
}

/// What is asked of the starts and bounds of a nest.
#[derive(Default)]
struct Asked {
    /// Where they lie, as text: which function tells it, and of what.
    ends: Vec<(&'static str, String)>,
    /// The same of what is made of values near zero, and may lie elsewhere for its type.
    strays: Vec<String>,
    /// Variables whose types the compiler has to look at.
    variables: Vec<String>,
    /// Whether they may stand for their own values once more.
    pins: bool,
    /// What each time round weighs.
    weights: Vec<u32>,
    /// How often the loops run, as texts, and declarations of what counts that down.
    rounds: Vec<String>,
    counts: String,
    /// What says it of the loops inside each time that the outer one comes round.
    inner: String,
    conditions: Vec<(usize, usize, String)>,
    steps: Vec<(usize, String)>,
}

impl Asked {
    /// Adds a loop of the nest: a strip that goes up by a constant from one value to another, which the whole nest keeps.
    fn add(&mut self, home: &Home, loop_: &Loop, decision: &Decision, outermost: &Loop, counters: &[&[u8]]) -> Option<()> {
        let context = home.context;
        let (fragment, source) = (context.fragment, context.source);
        // The outer one counts down, for the loops in it pay for themselves, but could be strip-mined.
        let strip = match &decision.shape {
            Shape::Strip(strip, Unroll::Unasked) => strip.clone(),
            Shape::CountDown if std::ptr::eq(loop_, outermost) && !decision.cost.calls => {
                strip_mine::of_loop(home, loop_).ok().filter(|_| unroll::of_loop(context, home.body, loop_) == Unroll::Unasked)?
            }
            _ => return None,
        };
        let induction = induction::read(context, loop_)
            .filter(|_| loop_.kind == LoopKind::For && strip.constants.is_empty() && strip.rest.is_none())?;
        let amount = match &induction.step {
            Step::Up => 1,
            Step::Plus(amount) => trip_count::literal(context, amount)?.value,
            _ => return None,
        };
        let goes_up = (1..=strip_mine::MOST_STEP).contains(&amount) && matches!(induction.relation, Relation::Below | Relation::AtMost);
        if !goes_up || !trip_count::is_wide_integer(context, &induction.type_) {
            return None;
        }
        let mut texts = Vec::with_capacity(2);
        for range in [&induction.start, &induction.bound] {
            // Asked in front of the nest, where no counter has its value, and nothing may divide by zero or overflow that would not have run.
            let may_stand_ahead = |at: usize| {
                let is_far = || trip_count::literal(context, &(at..at + 1)).is_some_and(|literal| literal.value > MOST_NUMBER);
                !counters.contains(&fragment.text(source, at))
                    && !matches!(fragment.kind(at), Some(Kind::Punct(b'/' | b'%' | b'\'') | Kind::Op))
                    && !is_far()
            };
            let has = |punctuation: u8| range.clone().filter(|at| fragment.is(*at, punctuation)).count();
            if has(b'*') > 1 || (has(b'*') > 0 && has(b'(') > 0) {
                return None;
            }
            let value = home.invariant(range, outermost).filter(|_| range.clone().all(may_stand_ahead))?;
            if !value.constants.is_empty() || value.text.contains('\'') {
                return None;
            }
            // A sum of what lies near zero and of numbers does not go far, and a proof can tell. A constant's name must stay one.
            let is_near = |at: usize| match fragment.tokens[at].kind {
                Kind::Number | Kind::Punct(b'+' | b'-' | b'(' | b')') => true,
                Kind::Ident if trip_count::literal(context, &(at..at + 1)).is_some() => true,
                Kind::Ident => home.is_no_constant(fragment.text(source, at), outermost),
                _ => false,
            };
            self.pins &= amount == 1 && range.clone().all(is_near) && !value.variables.is_empty();
            self.variables.extend(value.variables.into_iter().filter(|name| !self.variables.contains(name)).collect::<Vec<_>>());
            texts.push(value.text);
        }
        let words: Vec<&str> =
            induction.type_.clone().map(|at| std::str::from_utf8(fragment.text(source, at))).collect::<Result<_, _>>().ok()?;
        let (type_, start, bound) = (words.join(" "), &texts[0], &texts[1]);
        self.strays.push(format!("{type_}>(({start}), ({bound}))"));
        self.ends.extend(["starts", "ends"].map(|end| (end, format!("{type_}>(({start}), ({bound}))"))));
        let nth = self.weights.len();
        let less = i32::from(induction.relation == Relation::Below);
        self.rounds.push(format!("__cuinstr_rounds<{type_}>(({start}), ({bound}), {less}, {amount}u)"));
        let few = format!("__cuinstr_few(__cuinstr_rounds_{nth})");
        if nth == 0 {
            let _ = write!(self.counts, " unsigned int __cuinstr_few_0 = {few};");
        } else {
            let _ = write!(self.counts, " unsigned int __cuinstr_few_{nth};");
            let _ = write!(self.inner, " __cuinstr_few_{nth} = {few},");
        }
        let (open, close) = loop_.header?;
        let (first, second) = induction::semicolons(fragment, open, close)?;
        let offset = |token: usize| fragment.tokens[token].range();
        self.conditions.push((offset(first).end, offset(second).start, format!("__cuinstr_few_{nth} != 0u")));
        self.steps.push((offset(second).end, format!(" --__cuinstr_few_{nth},")));
        self.weights.push(decision.weight.strip_suffix('u')?.parse().ok()?);
        Some(())
    }
}

/// Whether a token means the same in a second place.
fn may_stand_twice(home: &Home, at: usize) -> bool {
    let (fragment, source) = (home.context.fragment, home.context.source);
    let text = fragment.text(source, at);
    match fragment.tokens[at].kind {
        // No insertion has quotes.
        Kind::Str | Kind::Char | Kind::Directive(_) | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd | Kind::Pragma => false,
        Kind::Goto | Kind::Switch | Kind::Case | Kind::Default | Kind::Try | Kind::Catch | Kind::Class | Kind::Asm | Kind::Operator => {
            false
        }
        Kind::Ident if text.starts_with(b"__sync") => false,
        _ => !ONCE.contains(&text) && text.is_ascii() && !text.contains(&b'\'') && !text.contains(&b'\\'),
    }
}

/// The text of tokens with the edits among them, on one line and without comments.
fn rewritten(source: &[u8], fragment: &Fragment, tokens: RangeInclusive<usize>, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.at, !edit.closes));
    let mut edits = edits.into_iter().peekable();
    let mut text = String::new();
    let mut end = None;
    for at in tokens {
        let token = fragment.tokens[at].range();
        while let Some(edit) = edits.next_if(|edit| edit.at <= token.start) {
            text.push_str(&edit.text);
        }
        if end.is_some_and(|end| end < token.start) {
            text.push(' ');
        }
        text.push_str(&String::from_utf8_lossy(&source[token.clone()]));
        end = Some(token.end);
    }
    text
}
