//! A record of what the proof knows of texts: of each in `tests/data/ptx`, and of many that chance changes.
//!
//! Other tests say what must hold. This one notices that something is another than before: a value that is known less well, a sum that is not followed
//! any more, a limit of effort that is reached sooner. Such a change is no fault in itself. Its line says in which text to look.

use crate::domain::interval::Interval;
use crate::domain::name::NO_NAME;
use crate::domain::state::State;
use crate::domain::value::{Kind, Value};
use crate::interpret::loop_invariant::follow;
use crate::interpret::slice::Slice;
use crate::interpret::slicing::Depth;
use crate::interpret::work::{Work, allotted};
use crate::module::functions::{Answers, Functions};
use crate::module::module_proof;
use crate::program::cfg::Components;
use crate::rank::nest::{connected, rounds_by};
use crate::rank::precision::rounds;
use cuinstr_ptx::{Code, parse};
use std::fmt::{self, Write};
use std::path::Path;

/// Most steps of a text that is changed by chance, at all looks together: others take long.
const LARGEST: usize = 200;

/// FNV-1a of all that is written to it.
struct Sum(u64);

impl Sum {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn short(&self) -> u32 {
        (self.0 ^ self.0 >> 32) as u32
    }
}

impl Write for Sum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Ok(())
    }
}

/// What the looks at a text know. Of values: how many there are, and how many of them are numbers, have bounds, a name, a sum, a relation to a register
/// and a kind.
struct Known {
    sum: Sum,
    sets: usize,
    steps: usize,
    work: usize,
    values: [usize; 7],
}

impl Known {
    fn new() -> Self {
        Self { sum: Sum::new(), sets: 0, steps: 0, work: 0, values: [0; 7] }
    }

    fn count(&mut self, state: &State, slice: &Slice<'_>) {
        for (slot, value) in state.iter() {
            let width = slice.slots[slot as usize].1.clamp(1, 64);
            let Value { range, name, ref kind, ref delta, ref form } = *value;
            let is = [
                true,
                range.value(width).is_some(),
                range != Interval::full(width),
                name != NO_NAME,
                form.is_some(),
                delta.is_some(),
                *kind != Kind::Plain,
            ];
            self.values.iter_mut().zip(is).for_each(|(count, is)| *count += usize::from(is));
        }
    }

    /// Looks at each set of blocks of a text at each depth, each set with what those in front of it left behind; and then as the proof does.
    fn look(&mut self, text: &str) {
        let module = parse(text);
        let functions = Functions::new(text, &module);
        let answers = Answers::new(&functions);
        let mut components = Components::default();
        for (index, function) in module.functions.iter().enumerate() {
            let (graph, code) = (&functions.graphs[index], Code::new(text, function));
            let order = graph.reverse_postorder();
            let sets = connected(graph, &order, &mut components);
            let returns = |statement, assumption, not_zero| answers.call_returns(index, statement, assumption, not_zero);
            let mut position = Vec::new();
            let new = || {
                let mut body = functions.body(index, &code);
                body.note_loops(&sets, &order);
                body
            };
            for nth in 0..4 {
                let mut body = new();
                for set in &sets {
                    let depth = [Depth::Shallow, Depth::SumsFor(set), Depth::Registers, Depth::Sums][nth];
                    let slice = Slice::new(&body, set, depth);
                    let budget = allotted(set, &slice);
                    let mut work = Work {
                        body: &body,
                        slice: &slice,
                        rpo: &order,
                        position: &mut position,
                        components: &mut components,
                        returns: &returns,
                        counted: &[],
                        is_last: true,
                        budget,
                        asks_action: false,
                    };
                    let base = follow(&mut work, set);
                    self.work += budget - work.budget;
                    base.states.iter().flatten().for_each(|state| self.count(state, &slice));
                    self.steps += slice.steps.len();
                    let found = rounds_by(&mut body, &order, (set, set), &slice, (&mut components, &mut position), (&returns, None, true));
                    let _ = write!(self.sum, "{slice:?} {:?} {:?} {found:?}", base.states, base.back);
                }
            }
            self.sets += sets.len();
            let found = rounds(&mut new(), &order, &sets, (&mut components, &mut position), &returns);
            let _ = write!(self.sum, "{found:?}");
        }
        let _ = write!(self.sum, "{:?}", module_proof::report(text, &module, &|count, work| (0..count).for_each(work)));
    }

    fn line(&self) -> String {
        let values = self.values.map(|count| count.to_string()).join(" ");
        format!("{:08x} {} {} {}, {values}", self.sum.short(), self.sets, self.steps, self.work)
    }
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }
}

/// Opcodes that take the same operands, in which a name of a type stands for those of that width.
const ALIKE: [&[&str]; 10] = [
    &[
        "add.s32",
        "sub.s32",
        "sub.u32",
        "min.s32",
        "min.u32",
        "max.s32",
        "max.u32",
        "and.b32",
        "or.b32",
        "xor.b32",
        "shl.b32",
        "shr.u32",
        "shr.s32",
        "mul.lo.s32",
        "mul.hi.u32",
        "mul.hi.s32",
        "div.u32",
        "div.s32",
        "rem.u32",
        "rem.s32",
    ],
    &[
        "add.s64",
        "sub.s64",
        "min.s64",
        "min.u64",
        "max.s64",
        "max.u64",
        "and.b64",
        "or.b64",
        "xor.b64",
        "mul.lo.s64",
        "mul.hi.u64",
        "mul.hi.s64",
        "div.u64",
        "rem.s64",
    ],
    &["mov.u32", "mov.b32", "neg.s32", "not.b32", "abs.s32", "popc.b32", "clz.b32", "brev.b32"],
    &["mov.u64", "mov.b64", "neg.s64", "not.b64", "abs.s64"],
    &["cvt.u64.u32", "cvt.s64.s32"],
    &["cvt.u32.u64", "cvt.s32.s64"],
    &["mul.wide.u32", "mul.wide.s32"],
    &["mad.lo.s32", "mad.lo.u32", "mad.hi.u32", "lop3.b32"],
    &["ld.relaxed.sys.u32", "ld.global.u32", "ld.volatile.global.u32"],
    &["and.pred", "or.pred", "xor.pred"],
];

const ORDERS: [&str; 10] = [".lt.", ".le.", ".gt.", ".ge.", ".eq.", ".ne.", ".lo.", ".ls.", ".hi.", ".hs."];

/// Instructions that are put in: for `R`, `D` and `P` stands a register of 32 or 64 bits, or a predicate, for `N` a number.
const MORE: [&str; 38] = [
    "add.s32 R, R, N;",
    "add.s32 R, R, R;",
    "sub.s32 R, R, R;",
    "sub.s32 R, N, R;",
    "mov.u32 R, R;",
    "mov.u32 R, N;",
    "neg.s32 R, R;",
    "not.b32 R, R;",
    "add.f32 R, R, R;",
    "and.b32 R, R, N;",
    "and.b32 R, R, -N;",
    "shl.b32 R, R, N;",
    "shr.u32 R, R, N;",
    "shr.s32 R, R, N;",
    "mul.lo.s32 R, R, N;",
    "mul.hi.u32 R, R, N;",
    "mul.wide.u32 D, R, N;",
    "mul.wide.s32 D, R, N;",
    "mad.lo.s32 R, R, N, R;",
    "mad.lo.cc.u32 R, R, N, R;",
    "mad.wide.s32 D, R, N, D;",
    "rem.u32 R, R, N;",
    "div.u32 R, R, N;",
    "min.u32 R, R, R;",
    "max.u32 R, R, R;",
    "min.s32 R, R, N;",
    "max.s32 R, R, N;",
    "selp.b32 R, R, N, P;",
    "selp.b32 R, R, R, P;",
    "cvt.u32.u64 R, D;",
    "cvt.u64.u32 D, R;",
    "cvt.s64.s32 D, R;",
    "add.s64 D, D, N;",
    "setp.lt.u32 P, R, N;",
    "setp.ne.s32 P, R, R;",
    "bfe.u32 R, R, N, N;",
    "mov.b64 {R, R}, D;",
    "mov.b64 D, {R, R};",
];

/// Words of a text with where they begin: names, registers, numbers and opcodes.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_word = |byte: char| byte.is_ascii_alphanumeric() || "%$_.-@!".contains(byte);
    let mut found = Vec::new();
    for word in text.split(|byte| !is_word(byte)).filter(|word| !word.is_empty()) {
        found.push((word.as_ptr() as usize - text.as_ptr() as usize, word));
    }
    found
}

/// The letters in front of a register's number.
fn letters(register: &str) -> &str {
    register.trim_end_matches(|byte: char| byte.is_ascii_digit())
}

/// The text with one more instruction, or with a branch back to a label.
fn put_in(text: &str, code: usize, dice: &mut Dice) -> Option<String> {
    let all = words(&text[code..]);
    let register = |class: &str, dice: &mut Dice| {
        let of: Vec<&str> = all.iter().map(|(_, word)| *word).filter(|word| letters(word) == class && *word != class).collect();
        if of.is_empty() { None } else { Some(dice.of(&of)) }
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let first = text[..code].matches('\n').count() + 1;
    let places: Vec<usize> = (first..lines.len()).filter(|at| lines[*at].ends_with(';') && lines[*at].starts_with('\t')).collect();
    let at = *places.get(dice.below(places.len().max(1)))?;
    if dice.below(5) == 0 {
        let later: Vec<usize> = places.into_iter().filter(|later| *later > at && *later < at + 12).collect();
        let end = *later.get(dice.below(later.len().max(1)))?;
        let branch = format!("\t@{} bra $Z{};", register("%p", dice)?, text.len());
        lines.insert(end, branch);
        lines.insert(at, format!("$Z{}:", text.len()));
    } else {
        let mut line = "\t".to_owned();
        for letter in dice.of(&MORE).chars() {
            match letter {
                'R' => line += register("%r", dice)?,
                'D' => line += register("%rd", dice)?,
                'P' => line += register("%p", dice)?,
                'N' => line += dice.of(&["1", "2", "3", "4", "7", "8", "16", "31", "100", "65536"]),
                _ => line.push(letter),
            }
        }
        lines.insert(at, line);
    }
    Some(lines.join("\n"))
}

/// The text with another operator, comparison, register, number, label or guard, or without one of its lines or with two that changed places.
fn change(text: &str, dice: &mut Dice) -> String {
    let body = text.find('{').map_or(0, |at| at + 1);
    let code = text[body..].find("\n$").map_or(body, |at| body + at);
    let all = words(&text[code..]);
    if all.is_empty() {
        return text.to_owned();
    }
    let put = |at: usize, old: &str, new: &str| format!("{}{new}{}", &text[..code + at], &text[code + at + old.len()..]);
    for _ in 0..40 {
        if dice.below(3) == 0
            && let Some(text) = put_in(text, code, dice)
        {
            return text;
        }
        let (at, word) = all[dice.below(all.len())];
        let kin = |is_kin: &dyn Fn(&str) -> bool| all.iter().map(|(_, other)| *other).filter(|other| is_kin(other)).collect::<Vec<_>>();
        let changed = if let Some(alike) = ALIKE.iter().find(|alike| alike.contains(&word)) {
            put(at, word, dice.of(alike))
        } else if let (true, Some(order)) = (word.starts_with("setp"), ORDERS.iter().find(|order| word.contains(**order))) {
            let new = word.replace(order, dice.of(&ORDERS));
            let new = if dice.below(3) > 0 { new } else { new.replace(".s32", ".u32").replace(".s64", ".u64") };
            put(at, word, &new)
        } else if let Ok(number) = word.parse::<i64>() {
            let near = [number.wrapping_add(1), number.wrapping_sub(1), number.wrapping_neg(), number.wrapping_mul(2), number / 2];
            let new = near.get(dice.below(8)).copied().unwrap_or_else(|| [0, 1, 2, 3, 4, 16, 1 << 31][dice.below(7)]);
            put(at, word, &new.to_string())
        } else if word.starts_with('%') {
            put(at, word, dice.of(&kin(&|other| letters(other) == letters(word))))
        } else if word.starts_with("@%") || word.starts_with("@!") {
            let new = if word.starts_with("@!") { word.replace('!', "") } else { word.replace('@', "@!") };
            put(at, word, &new)
        } else if word.starts_with('$') {
            put(at, word, dice.of(&kin(&|other| other.starts_with('$'))))
        } else {
            let mut lines: Vec<&str> = text.lines().collect();
            let nth = text[..code + at].matches('\n').count();
            let other = nth + 1 + dice.below(2);
            match dice.below(3) {
                0 if !lines[nth].contains(['{', '}', '$']) => drop(lines.remove(nth)),
                1 if other < lines.len() && !lines[nth..=other].iter().any(|line| line.contains(['{', '}'])) => lines.swap(nth, other),
                _ => continue,
            }
            lines.join("\n")
        };
        if changed != text {
            return changed;
        }
    }
    text.to_owned()
}

/// Writes down what is known of the texts of these folders, and of so many that chance makes of each.
fn record(name: &str, folders: &[&str], count: u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ptx");
    let mut paths = Vec::new();
    for folder in folders {
        let files = std::fs::read_dir(root.join(folder)).expect("the folder is there");
        paths
            .extend(files.map(|file| file.expect("it can be read").path()).filter(|path| path.extension().is_some_and(|end| end == "ptx")));
    }
    paths.sort();
    let mut said = String::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("it is text");
        let name = path.strip_prefix(&root).expect("it is below").display();
        let (mut known, mut changed) = (Known::new(), Known::new());
        known.look(&text);
        for seed in 1..=if known.steps < LARGEST { count } else { 0 } {
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ text.len() as u64);
            let times = 1 + dice.below(4);
            changed.look(&(0..times).fold(text.clone(), |text, _| change(&text, &mut dice)));
        }
        let _ = writeln!(said, "{name} {}; {}", known.line(), changed.line());
    }
    insta::with_settings!({ snapshot_path => "../../../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, said);
    });
}

#[test]
fn as_much_is_known_as_before_of_texts_that_are_proved() {
    record("proof_knows", &["", "plain", "proof"], 16);
}

#[test]
fn as_much_is_known_as_before_of_texts_that_attack_the_proof() {
    record("proof_knows_attacks", &["attacks"], 4);
}
