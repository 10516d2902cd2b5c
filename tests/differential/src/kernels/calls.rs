//! Functions that a kernel calls: by name, through pointers, in trees, and back into themselves.

use super::writer::{Kind, Role, Writer};
use cuinstr_harness::random::Random;
use std::fmt::Write as _;

/// A function that may be called.
#[derive(Debug, Clone)]
pub(super) struct Callee {
    name: String,
    /// Most iterations of one call.
    cost: u64,
    /// Deepest that it may go; it does not call itself if that is zero.
    depth: u32,
    /// An array of addresses that this function and another one like it stand in.
    table: Option<String>,
}

const PARAMETERS: &str = "(.param .b32 a_, .param .b64 out_, .param .b64 data_, .param .b32 n_, .param .b32 depth_)";

/// Functions of a kernel, as text and to be called.
pub(super) fn functions(seed: u64, random: &mut Random, budget: u64, leaves: bool, text: &mut String) -> Vec<Callee> {
    let mut known: Vec<Callee> = Vec::new();
    let count = 1 + random.below(3);
    for nth in 0..count {
        let name = format!("f{seed}_{nth}");
        match random.below(10) {
            0..6 => {
                let cost = function(seed, random, &name, (budget / 4, leaves), &known, &mut |_| 0, text);
                known.push(Callee { name, cost, depth: 0, table: None });
            }
            6 | 7 => known.push(recursive(seed, random, &name, (budget, leaves), &known, text)),
            8 => known.push(tree(seed, random, &name, (budget, leaves), text)),
            _ => known.push(mutual(seed, random, &name, (budget, leaves), text)),
        }
    }
    let plain: Vec<usize> = (0..known.len()).filter(|nth| known[*nth].depth == 0).collect();
    if let [first, .., last] = plain[..] {
        let table = format!("table{seed}");
        let space = random.of(&["global", "const"]);
        let _ = writeln!(text, ".{space} .align 8 .u64 {table}[2] = {{{}, {}}};\n", known[first].name, known[last].name);
        let cost = known[first].cost.max(known[last].cost);
        let name = format!("{space}:{table}");
        known.push(Callee { name: known[first].name.clone(), cost, depth: 0, table: Some(name) });
    }
    known
}

/// One function, with more that it does before its end. Gives the most iterations.
fn function(
    seed: u64,
    random: &mut Random,
    name: &str,
    (budget, leaves): (u64, bool),
    known: &[Callee],
    more: &mut dyn FnMut(&mut Writer<'_>) -> u64,
    text: &mut String,
) -> u64 {
    let mut writer = Writer::new(seed, random, Role::Function { leaves }, known.to_vec());
    let mut cost = if writer.random.percent(70) { writer.repeats(budget) } else { writer.statements(budget) };
    cost += more(&mut writer);
    let body = writer.finish();
    // What is declared in front has its linkage there.
    let visible = if name.ends_with("_b") { "" } else { random.of(&["", "", ".visible ", ".weak "]) };
    let _ = write!(text, "{visible}.func (.param .b32 result_) {name}{PARAMETERS}\n{{\n{body}}}\n\n");
    cost + 1
}

/// Calls itself, once or twice, with one less to go.
fn recursive(seed: u64, random: &mut Random, name: &str, (budget, leaves): (u64, bool), known: &[Callee], text: &mut String) -> Callee {
    let (times, depth) = random.of(&[(1, 3), (1, 7), (2, 3)]);
    let activations = if times == 1 { u64::from(depth) + 1 } else { (1 << (depth + 1)) - 1 };
    let own = Callee { name: name.to_owned(), cost: 0, depth, table: None };
    let cost = function(
        seed,
        random,
        name,
        (budget / 4 / activations, leaves),
        known,
        &mut |writer| {
            let (end, predicate, left) = (writer.label(), writer.register(Kind::Predicate), writer.register(Kind::Word));
            writer.line(&format!("ld.param.u32 {left}, [depth_]"));
            writer.line(&format!("setp.eq.u32 {predicate}, {left}, 0"));
            writer.branch(&predicate, true, &end);
            writer.line(&format!("add.s32 {left}, {left}, -1"));
            let mut cost = 0;
            for _ in 0..times {
                writer.call(&own, &left);
                // Loops behind the call, in front of the next one at times.
                if writer.random.percent(40) {
                    cost += writer.repeats(budget / 8 / activations);
                }
            }
            writer.place(&end);
            cost
        },
        text,
    );
    Callee { cost: cost * activations, ..own }
}

/// Two functions that call each other.
fn mutual(seed: u64, random: &mut Random, name: &str, (budget, leaves): (u64, bool), text: &mut String) -> Callee {
    let (depth, other) = (5, format!("{name}_b"));
    let _ = write!(text, ".func (.param .b32 result_) {other}{PARAMETERS};\n\n");
    let mut cost = 0;
    for (own, next) in [(name, other.as_str()), (other.as_str(), name)] {
        let next = Callee { name: next.to_owned(), cost: 0, depth, table: None };
        let one = function(
            seed,
            random,
            own,
            (budget / 24, leaves),
            &[],
            &mut |writer| {
                let (end, predicate, left) = (writer.label(), writer.register(Kind::Predicate), writer.register(Kind::Word));
                writer.line(&format!("ld.param.u32 {left}, [depth_]"));
                writer.line(&format!("setp.ne.u32 {predicate}, {left}, 0"));
                writer.branch(&predicate, false, &end);
                writer.line(&format!("sub.s32 {left}, {left}, 1"));
                writer.call(&next, &left);
                writer.place(&end);
                0
            },
            text,
        );
        cost = one.max(cost);
    }
    Callee { name: name.to_owned(), cost: cost * u64::from(depth + 1), depth, table: None }
}

/// Functions each of which calls the next from one of many places.
fn tree(seed: u64, random: &mut Random, name: &str, (budget, leaves): (u64, bool), text: &mut String) -> Callee {
    let (levels, places) = random.of(&[(5, 8), (3, 4), (4, 6)]);
    let mut below = Callee { name: String::new(), cost: 0, depth: 0, table: None };
    for level in (0..levels).rev() {
        let own = if level == 0 { name.to_owned() } else { format!("{name}_{level}") };
        let called = below.clone();
        let is_last = level == levels - 1;
        let cost = function(
            seed,
            random,
            &own,
            (budget / 4 / levels, leaves),
            &[],
            &mut |writer| {
                if is_last {
                    return 0;
                }
                let (value, place, predicate) = (writer.value(), writer.register(Kind::Word), writer.register(Kind::Predicate));
                writer.line(&format!("and.b32 {place}, {value}, 7"));
                for nth in 0..places {
                    let over = writer.label();
                    writer.line(&format!("setp.eq.u32 {predicate}, {place}, {nth}"));
                    writer.branch(&predicate, false, &over);
                    writer.call(&called, "0");
                    writer.place(&over);
                }
                called.cost
            },
            text,
        );
        below = Callee { name: own, cost, depth: 0, table: None };
    }
    below
}

impl Writer<'_> {
    /// A call of a function that is known, if there is one that ends soon enough.
    pub(super) fn called(&mut self, budget: u64) -> u64 {
        let fits: Vec<Callee> = self.functions.iter().filter(|callee| callee.cost < budget).cloned().collect();
        if fits.is_empty() {
            self.mixes(1);
            return 0;
        }
        let callee = fits[self.random.below(fits.len())].clone();
        let depth = match callee.depth {
            0 => "0".to_owned(),
            most if self.random.percent(30) => most.to_string(),
            most => {
                // All of these are a power of two less one, or a number that is above such a one.
                let mask = if most == 5 { 3 } else { most };
                let (value, word) = (self.value(), self.register(Kind::Word));
                self.line(&format!("and.b32 {word}, {value}, {mask}"));
                word
            }
        };
        self.call(&callee, &depth);
        callee.cost + 1
    }

    /// A call with what the thread has computed.
    pub(super) fn call(&mut self, callee: &Callee, depth: &str) {
        let (result, hash) = (self.register(Kind::Word), self.kept.hash.clone());
        let (slot, data, n) = (self.kept.slot.clone(), self.kept.data.clone(), self.kept.n.clone());
        let mut target = callee.name.clone();
        let mut prototype = String::new();
        if let Some((space, table)) = callee.table.as_deref().and_then(|table| table.split_once(':')) {
            let (at, wide, base, pointer) =
                (self.register(Kind::Word), self.register(Kind::Long), self.register(Kind::Long), self.register(Kind::Long));
            self.line(&format!("and.b32 {at}, {hash}, 1"));
            self.line(&format!("mul.wide.u32 {wide}, {at}, 8"));
            self.line(&format!("mov.u64 {base}, {table}"));
            self.line(&format!("add.s64 {wide}, {base}, {wide}"));
            self.line(&format!("ld.{space}.u64 {pointer}, [{wide}]"));
            let label = self.label();
            self.raw(&format!(
                "\t{label}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b64 _, .param .b32 _, .param .b32 _);\n"
            ));
            target = pointer;
            prototype = format!(", {label}");
        }
        self.raw("\t{\n");
        self.line(".param .b32 p0");
        self.line(".param .b64 p1");
        self.line(".param .b64 p2");
        self.line(".param .b32 p3");
        self.line(".param .b32 p4");
        self.line(".param .b32 p5");
        for (at, (value, bits)) in [(&*hash, 32), (&*slot, 64), (&*data, 64), (&*n, 32), (depth, 32)].into_iter().enumerate() {
            self.line(&format!("st.param.b{bits} [p{at}], {value}"));
        }
        if self.random.percent(15) {
            let predicate = self.condition();
            self.line(&format!("@{predicate} call (p5), {target}, (p0, p1, p2, p3, p4){prototype}"));
            // Without the call nothing is there.
            self.line(&format!("ld.param.b32 {result}, [p5]"));
            self.line(&format!("selp.b32 {result}, {result}, 3, {predicate}"));
        } else {
            let uni = if self.uniform && prototype.is_empty() { ".uni" } else { "" };
            self.line(&format!("call{uni} (p5), {target}, (p0, p1, p2, p3, p4){prototype}"));
            self.line(&format!("ld.param.b32 {result}, [p5]"));
        }
        self.raw("\t}\n");
        self.line(&format!("mad.lo.u32 {hash}, {hash}, 31, {result}"));
    }
}
