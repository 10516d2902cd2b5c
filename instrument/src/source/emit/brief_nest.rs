//! The text of nests that stand there twice.

use crate::common::edit::Edit;
use crate::source::plan::brief_nest::{BriefLoop, BriefNest};
use std::fmt::Write as _;

/// The text around the two texts of a nest.
struct Question {
    /// The declarations that tell how often its loops run.
    rounds: String,
    /// Whether it is not brief.
    asked: String,
    /// The payment for the nest, and the declarations of its counters or of its variables.
    pays: String,
    /// The end of the scope of these variables.
    closes: &'static str,
}

/// The nest, once with the edits inside it and once as the user's own.
pub(super) fn edits(source: &[u8], nest: &BriefNest, inside: Vec<Edit>) -> Vec<Edit> {
    let strips = rewritten(source, nest, inside);
    let mut edits = Vec::new();
    let Question { rounds, asked, pays, closes } = if nest.pins { pinned(nest) } else { counted(nest) };
    let text = format!("{{ {rounds} if ({asked}) {{ {strips} }} else {{ {pays} ");
    edits.push(Edit { at: nest.span.start, closes: false, text });
    if !nest.pins {
        for (nth, BriefLoop { condition, .. }) in nest.loops.iter().enumerate() {
            let inner = if nth == 0 { counts_of_inner(nest) } else { String::new() };
            let asks = format!("__cuinstr_few_{nth} != 0u");
            let asks = if nth == 0 { format!("({} {asks})", inner.trim_start()) } else { asks };
            edits.push(Edit { at: condition.start, closes: false, text: format!(" __cuinstr_under_way({asks},") });
            edits.push(Edit { at: condition.end, closes: true, text: ")".to_owned() });
        }
        let steps = nest.loops.iter().enumerate();
        edits.extend(steps.map(|(nth, of)| Edit { at: of.step, closes: false, text: format!(" --__cuinstr_few_{nth},") }));
    }
    edits.push(Edit { at: nest.span.end, closes: true, text: format!(" }} }}{closes}") });
    edits
}

/// Whether the compiler knows that all variables of the nest are values.
fn values(nest: &BriefNest) -> String {
    let types: Vec<String> = nest.variables.iter().map(|name| format!("decltype({name})")).collect();
    format!("__cuinstr_values<{}>::__ci_all", types.join(", "))
}

/// All units of the nest.
fn units(nest: &BriefNest) -> String {
    let mut units = String::new();
    for (nth, BriefLoop { weight, .. }) in nest.loops.iter().enumerate() {
        let _ = if nth == 0 { write!(units, "{weight}u") } else { write!(units, " + __cuinstr_rounds_{nth} * {weight}u") };
    }
    format!("__cuinstr_rounds_0 * ({units})")
}

/// The type, the start and the bound of a loop, as the prelude's functions are given them.
fn ends(BriefLoop { type_, start, bound, .. }: &BriefLoop) -> String {
    format!("{type_}>(({start}), ({bound}))")
}

/// How often a loop runs.
fn rounds(BriefLoop { type_, start, bound, below, amount, .. }: &BriefLoop) -> String {
    format!("__cuinstr_rounds<{type_}>(({start}), ({bound}), {}, {amount}u)", i32::from(*below))
}

/// The declarations of the counters of the loops.
fn counts(nest: &BriefNest) -> String {
    let declared = |nth: usize| if nth == 0 { " = __cuinstr_few(__cuinstr_rounds_0)" } else { "" };
    let count = |nth: usize| format!(" __cuinstr_word __cuinstr_few_{nth}{};", declared(nth));
    (0..nest.loops.len()).map(count).collect::<Vec<_>>().concat()
}

/// Sets the counters of the inner loops, in each iteration of the outer one.
fn counts_of_inner(nest: &BriefNest) -> String {
    let set = |nth: usize| format!(" __cuinstr_few_{nth} = __cuinstr_few(__cuinstr_rounds_{nth}),");
    (1..nest.loops.len()).map(set).collect::<Vec<_>>().concat()
}

/// The question where all loops are counted down.
fn counted(nest: &BriefNest) -> Question {
    let (values, units) = (values(nest), units(nest));
    let both = nest.loops.iter().flat_map(|of| ["starts", "ends"].map(|end| (end, ends(of))));
    let outside = both.map(|(end, of)| format!("__cuinstr_{end}<{values}, {of} > __cuinstr_near"));
    // First whether their variables lie near zero: no expression may overflow that would not have run.
    let whole = |name: &&String| !nest.variables.iter().any(|other| other.starts_with(&format!("{name}.")));
    let far = nest.variables.iter().filter(whole).map(|name| format!("__cuinstr_far({name})"));
    let never = nest.loops.iter().enumerate().map(|(nth, of)| format!("(__cuinstr_rounds_{nth} = {}) == 0u", rounds(of)));
    let asks: Vec<String> = far.chain(outside).chain(never).collect();
    Question {
        rounds: format!("__cuinstr_word {};", declared(nest)),
        asked: format!("__cuinstr_long({} || {units} > __cuinstr_nest)", asks.join(" || ")),
        pays: format!("__cuinstr_deduct(__cuinstr_left, {units});{}", counts(nest)),
        closes: "",
    }
}

/// The question where the variables stand for their own values once more.
///
/// In two scopes, since in its own declaration a name means the new variable. Only the question whether a variable is
/// far uses the old values. All else is computed from the new ones. So nothing overflows, and no branch stands between
/// the questions.
fn pinned(nest: &BriefNest) -> Question {
    let (values, units) = (values(nest), units(nest));
    let mut told = String::new();
    let mut again = String::new();
    for (nth, name) in nest.variables.iter().enumerate() {
        let _ = write!(told, "decltype(__cuinstr_pin({name})) __cuinstr_pinned_{nth} = __cuinstr_pin({name}); ");
        let _ = write!(again, " decltype(__cuinstr_pin({name})) {name} = __cuinstr_pinned_{nth};");
    }
    let _ = write!(told, "__cuinstr_word {}; __attribute__((__unused__)) __cuinstr_bool __cuinstr_strays; {{{again}", declared(nest));
    for (nth, of) in nest.loops.iter().enumerate() {
        let _ = write!(told, " __cuinstr_rounds_{nth} = {};", rounds(of));
    }
    let strays: Vec<String> = nest.loops.iter().map(|of| format!("__cuinstr_stray<{values}, {}", ends(of))).collect();
    let _ = write!(told, " __cuinstr_strays = {}; }}", strays.join(" | "));
    let far = nest.variables.iter().map(|name| format!("__cuinstr_far({name})"));
    let many = (0..nest.loops.len()).map(|nth| format!("__cuinstr_rounds_{nth} - 1u >= __cuinstr_near"));
    let asks: Vec<String> = far.chain(["__cuinstr_strays".to_owned()]).chain(many).map(|asked| format!("({asked})")).collect();
    Question {
        rounds: told,
        asked: format!("__cuinstr_long({} | ({units} > __cuinstr_nest))", asks.join(" | ")),
        pays: format!("__cuinstr_deduct(__cuinstr_left, {units}); {{{again}"),
        closes: " }",
    }
}

/// The declarators of the variables that hold how often the loops run.
fn declared(nest: &BriefNest) -> String {
    let names: Vec<String> = (0..nest.loops.len()).map(|nth| format!("__cuinstr_rounds_{nth} = 0u")).collect();
    names.join(", ")
}

/// The nest's text with the edits among its tokens, on one line and without comments.
fn rewritten(source: &[u8], nest: &BriefNest, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.at, !edit.closes));
    let mut edits = edits.into_iter().peekable();
    let mut text = String::new();
    let mut end = None;
    for word in &nest.words {
        while let Some(edit) = edits.next_if(|edit| edit.at <= word.start) {
            text.push_str(&edit.text);
        }
        if end.is_some_and(|end| end < word.start) {
            text.push(' ');
        }
        text.push_str(&String::from_utf8_lossy(&source[word.clone()]));
        end = Some(word.end);
    }
    text
}
