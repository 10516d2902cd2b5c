//! The text of one function: names, registers, labels and scopes.

use super::calls::Callee;
use super::{SLOT, THREADS};
use cuinstr_harness::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What a register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Predicate,
    Half,
    Word,
    Long,
    Float,
}

impl Kind {
    const ALL: [(Self, &'static str); 5] =
        [(Self::Predicate, "pred"), (Self::Half, "b16"), (Self::Word, "b32"), (Self::Long, "b64"), (Self::Float, "f32")];

    /// The kind of an integer of so many bits.
    pub(super) fn of(width: u32) -> Self {
        match width {
            16 => Self::Half,
            32 => Self::Word,
            _ => Self::Long,
        }
    }
}

/// Where a function stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A kernel; `leaves` tells whether threads may leave it one by one.
    Kernel { leaves: bool },
    /// A function; the same of the kernel that calls it.
    Function { leaves: bool },
}

/// Labels of a loop that its body may jump to.
#[derive(Debug, Clone)]
pub(super) struct Jumps {
    /// Begins the next iteration.
    pub(super) next: Option<String>,
    /// Ends the loop.
    pub(super) out: String,
    /// Whether the body jumps at all: threads part then.
    pub(super) may: bool,
}

/// Registers that each function has from the start.
pub(super) struct Kept {
    /// Two hashes of 32 bits, one of 64, one number with a fraction, and iterations so far.
    pub(super) hash: String,
    pub(super) other: String,
    pub(super) long: String,
    pub(super) float: String,
    pub(super) ticks: String,
    /// Number of the thread in its block.
    pub(super) thread: String,
    /// Address of the thread's slot, and of the words.
    pub(super) slot: String,
    pub(super) data: String,
    /// The launch's numbers.
    pub(super) n: String,
    pub(super) m: String,
}

/// Prefixes of registers in the order of [`Kind::ALL`].
const STYLES: [[&str; 5]; 6] = [
    ["%p", "%rs", "%r", "%rd", "%f"],
    ["%p", "%rs", "%r", "%rd", "%f"],
    ["p_", "h_", "w_", "d_", "f_"],
    ["$p", "$h", "$w", "$d", "$f"],
    ["%_p$", "%_h$", "%_w$", "%_d$", "%_f$"],
    ["pred", "bra", "add", "ret", "exit"],
];

/// Bytes in front of a scope whose names it may hide.
const NEAR: usize = 600;

/// Names and numbers of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !one.is_ascii_alphanumeric() && !matches!(one, '_' | '$' | '%')).filter(|word| !word.is_empty())
}

pub(super) struct Writer<'r> {
    pub(super) seed: u64,
    pub(super) random: &'r mut Random,
    pub(super) role: Role,
    pub(super) functions: Vec<Callee>,
    pub(super) kept: Kept,
    /// Whether all threads of the block come here together.
    pub(super) uniform: bool,
    /// Loops around the place, the innermost last.
    pub(super) loops: Vec<Jumps>,
    /// Variables that may be read: name and bits.
    pub(super) readable: Vec<(String, u32)>,
    /// The array in shared memory, once it is filled.
    pub(super) shared: Option<String>,
    out: String,
    /// Declarations that stand in front.
    front: String,
    style: usize,
    by_name: bool,
    labels: usize,
    counts: [usize; 5],
    /// Open scopes: where their declarations stand, these, and how many.
    scopes: Vec<(usize, String, usize)>,
    ways: u32,
    /// Whether new predicates are of the whole function: what is asked behind a scope.
    pub(super) keeps_predicates: bool,
    /// What a step has just computed, and its variable holds now.
    pub(super) sum: Option<String>,
    /// Variables of unusual loops around the place: name and bits.
    pub(super) odd_variables: Vec<(String, u32)>,
    /// Whether the module's version has `nanosleep`.
    pub(super) waits: bool,
}

impl<'r> Writer<'r> {
    pub(super) fn new(seed: u64, random: &'r mut Random, role: Role, functions: Vec<Callee>) -> Self {
        let (style, by_name) = (random.below(STYLES.len()), random.percent(25));
        let none = String::new;
        let kept = Kept {
            hash: none(),
            other: none(),
            long: none(),
            float: none(),
            ticks: none(),
            thread: none(),
            slot: none(),
            data: none(),
            n: none(),
            m: none(),
        };
        let mut writer = Self {
            seed,
            random,
            role,
            functions,
            kept,
            uniform: matches!(role, Role::Kernel { .. }),
            loops: Vec::new(),
            readable: Vec::new(),
            shared: None,
            out: String::new(),
            front: String::new(),
            style,
            by_name,
            labels: 0,
            counts: [0; 5],
            scopes: Vec::new(),
            ways: 0,
            keeps_predicates: false,
            sum: None,
            odd_variables: Vec::new(),
            waits: !(seed / super::GROUP).is_multiple_of(8),
        };
        writer.begin();
        writer
    }

    fn begin(&mut self) {
        let [hash, other, ticks, thread, n, m] = [(); 6].map(|()| self.outer(Kind::Word));
        let [long, slot, data] = [(); 3].map(|()| self.outer(Kind::Long));
        let float = self.outer(Kind::Float);
        self.line(&format!("mov.u32 {thread}, %tid.x"));
        self.line(&format!("ld.param.u64 {data}, [data_]"));
        self.line(&format!("ld.param.u64 {slot}, [out_]"));
        self.line(&format!("ld.param.u32 {n}, [n_]"));
        if matches!(self.role, Role::Kernel { .. }) {
            let (block, at) = (self.outer(Kind::Word), self.outer(Kind::Word));
            let wide = self.outer(Kind::Long);
            self.line(&format!("ld.param.u32 {m}, [m_]"));
            if self.random.percent(70) {
                for address in [&data, &slot] {
                    self.line(&format!("cvta.to.global.u64 {address}, {address}"));
                }
            }
            self.line(&format!("mov.u32 {block}, %ctaid.x"));
            self.line(&format!("mad.lo.s32 {at}, {block}, {THREADS}, {thread}"));
            self.line(&format!("mul.wide.u32 {wide}, {at}, {SLOT}"));
            self.line(&format!("add.s64 {slot}, {slot}, {wide}"));
            self.line(&format!("mad.lo.u32 {hash}, {at}, 0x9e3779b1, {}", self.seed % 100_003));
        } else {
            self.line(&format!("ld.param.u32 {hash}, [a_]"));
            self.line(&format!("min.u32 {m}, {n}, 6"));
        }
        self.line(&format!("xor.b32 {other}, {hash}, 0x5bd1e995"));
        self.line(&format!("mul.wide.u32 {long}, {hash}, 0x85ebca6b"));
        self.line(&format!("mov.f32 {float}, 0f3F800000"));
        self.line(&format!("mov.u32 {ticks}, 0"));
        self.readable = vec![(hash.clone(), 32), (other.clone(), 32), (thread.clone(), 32), (n.clone(), 32)];
        self.kept = Kept { hash, other, long, float, ticks, thread, slot, data, n, m };
    }

    /// The function's statements, with the way out at the end.
    pub(super) fn finish(mut self) -> String {
        self.leave();
        self.out.truncate(self.out.trim_end().len());
        self.out.push('\n');
        let mut text = self.front.clone();
        for ((_, declared), (prefix, count)) in Kind::ALL.iter().zip(STYLES[self.style].iter().zip(self.counts)) {
            if count == 0 {
                continue;
            }
            if self.by_name {
                let names: Vec<String> = (1..=count).map(|number| format!("{prefix}{number}")).collect();
                let _ = writeln!(text, "\t.reg .{declared} {};", names.join(", "));
            } else {
                let _ = writeln!(text, "\t.reg .{declared} {prefix}<{}>;", count + 1);
            }
        }
        text + &self.out
    }

    /// Writes what the thread has computed, and ends it, or the function.
    pub(super) fn leave(&mut self) {
        self.ways += 1;
        let ways = self.ways;
        let Kept { hash, other, long, float, ticks, slot, .. } = &self.kept;
        let (hash, other, long, float, ticks, slot) =
            (hash.clone(), other.clone(), long.clone(), float.clone(), ticks.clone(), slot.clone());
        let (word, sum) = (self.outer(Kind::Word), self.outer(Kind::Long));
        self.line(&format!("mov.b32 {word}, {float}"));
        self.line(&format!("xor.b32 {word}, {word}, {other}"));
        self.line(&format!("mad.wide.u32 {sum}, {hash}, 0x9e3779b1, {long}"));
        if matches!(self.role, Role::Function { .. }) && (self.random.percent(80) || !self.leaves() || self.loops.is_empty()) {
            let high = self.outer(Kind::Word);
            self.line(&format!("mad.lo.u32 {word}, {ticks}, 0x85ebca6b, {word}"));
            self.line(&format!("cvt.u32.u64 {high}, {sum}"));
            self.line(&format!("xor.b32 {word}, {word}, {high}"));
            self.line(&format!("st.param.b32 [result_], {word}"));
            self.line("ret");
            return;
        }
        self.line(&format!("st.global.u64 [{slot}], {sum}"));
        self.line(&format!("st.global.u32 [{slot}+8], {ticks}"));
        self.line(&format!("mad.lo.u32 {word}, {word}, 256, {ways}"));
        self.line(&format!("st.global.u32 [{slot}+12], {word}"));
        let is_kernel = matches!(self.role, Role::Kernel { .. });
        let end = if is_kernel { self.random.of(&["ret", "ret", "exit"]) } else { "exit" };
        self.line(end);
    }

    /// Whether threads may leave one by one.
    pub(super) fn leaves(&self) -> bool {
        matches!(self.role, Role::Kernel { leaves: true } | Role::Function { leaves: true })
    }

    /// A statement.
    pub(super) fn line(&mut self, statement: &str) {
        let noise = self.random.below(120);
        match noise {
            0 => self.out.push_str("\t// @%p1 bra $L; {\n"),
            1 => self.out.push_str("\t/* ret; */"),
            2 => self.out.push_str("\n\r\n"),
            _ => {}
        }
        let (indent, end) = if noise == 3 { ("", "; ") } else { ("\t", ";\n") };
        let _ = write!(self.out, "{indent}{statement}{end}");
    }

    /// Text that is no statement.
    pub(super) fn raw(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A declaration in front of the function's statements.
    pub(super) fn declare(&mut self, text: &str) {
        self.front.push_str(text);
    }

    /// A new label.
    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        self.label_of(self.labels)
    }

    fn label_of(&self, number: usize) -> String {
        match self.style {
            0 => format!("$L__BB0_{number}"),
            1 => format!("L{number}"),
            2 => format!("_{number}"),
            3 => format!("$x${number}"),
            4 => format!("bra_{number}$"),
            _ => format!("loop_{number}"),
        }
    }

    /// Puts a label here.
    pub(super) fn place(&mut self, label: &str) {
        let end = self.random.of(&["\n", "\n", " ", "\t// a label\n"]);
        let _ = write!(self.out, "{label}:{end}");
    }

    /// A register of the whole function.
    fn outer(&mut self, kind: Kind) -> String {
        self.counts[kind as usize] += 1;
        format!("{}{}", STYLES[self.style][kind as usize], self.counts[kind as usize])
    }

    /// A register, of the scope around the place at times.
    pub(super) fn register(&mut self, kind: Kind) -> String {
        if self.scopes.is_empty() || self.random.percent(50) || self.keeps_predicates && kind == Kind::Predicate {
            return self.outer(kind);
        }
        let depth = self.scopes.len();
        let Some((_, declared, count)) = self.scopes.last_mut() else { return String::new() };
        *count += 1;
        // Scopes beside each other have the same names for other registers.
        let name = format!("{}x{depth}_{count}", STYLES[self.style][kind as usize]);
        let _ = writeln!(declared, "\t.reg .{} {name};", Kind::ALL[kind as usize].1);
        name
    }

    /// Opens a scope with declarations of its own.
    pub(super) fn open(&mut self) {
        self.out.push_str("\t{\n");
        self.scopes.push((self.out.len(), String::new(), 0));
    }

    /// Writes something, in a scope of its own so many times of a hundred.
    pub(super) fn at_times_in_scope<T>(&mut self, percent: usize, write: impl FnOnce(&mut Self) -> T) -> T {
        let has_scope = self.random.percent(percent);
        if has_scope {
            self.open();
        }
        let written = write(self);
        if has_scope {
            self.close();
        }
        written
    }

    /// Closes it. Names that stand in front of it and not in it mean something else between the braces, at times.
    pub(super) fn close(&mut self) {
        let Some((at, mut declared, _)) = self.scopes.pop() else { return };
        if self.random.percent(60) {
            let (front, inner) = self.out.split_at(at);
            let from = front.len().saturating_sub(NEAR);
            let near: Vec<&str> = words(front.get(from..).unwrap_or(front)).collect();
            let held: BTreeSet<&str> = words(inner).collect();
            let hidden: BTreeSet<&str> = (0..4).map(|_| near[self.random.below(near.len())]).filter(|name| !held.contains(name)).collect();
            for name in hidden {
                declared.push_str(&self.hides(name));
            }
            let number = 1 + self.random.below(self.labels.max(1));
            let label = self.label_of(number);
            if !held.contains(&*label) && self.random.percent(50) {
                let _ = writeln!(self.out, "{label}:");
            }
        }
        self.out.insert_str(at, &declared);
        self.out.push_str("\t}\n");
    }

    /// Declares a register with the name of another one, and writes it.
    fn hides(&self, name: &str) -> String {
        let is_number = |rest: &str| rest.parse::<usize>().is_ok();
        let kind = Kind::ALL.iter().zip(STYLES[self.style]).find(|(_, prefix)| name.strip_prefix(prefix).is_some_and(is_number));
        let Some(((_, declared), _)) = kind else { return String::new() };
        let value = match *declared {
            "f32" => "0f40000000",
            "pred" => "1",
            _ => "5",
        };
        format!("\t.reg .{declared} {name};\n\tmov.{declared} {name}, {value};\n")
    }

    /// A value of 32 bits that is at hand.
    pub(super) fn value(&mut self) -> String {
        let at = self.random.below(self.readable.len());
        let (name, width) = self.readable[at].clone();
        if width == 32 {
            return name;
        }
        let word = self.register(Kind::Word);
        self.line(&format!("cvt.u32.u{width} {word}, {name}"));
        word
    }

    /// A branch where a predicate is as said.
    pub(super) fn branch(&mut self, predicate: &str, when: bool, to: &str) {
        let not = if when { "" } else { "!" };
        self.line(&format!("@{not}{predicate} bra {to}"));
    }

    /// A branch by a test that comes with how its predicate stands where the branch is taken. Both may stand between braces.
    pub(super) fn branches_by(&mut self, to: &str, test: impl FnOnce(&mut Self) -> (String, bool)) {
        if !self.random.percent(20) {
            let (predicate, when) = test(self);
            return self.branch(&predicate, when, to);
        }
        let (kept, word) = (self.register(Kind::Predicate), self.register(Kind::Word));
        self.open();
        let (predicate, when) = test(self);
        match self.random.below(3) {
            0 => {
                self.branch(&predicate, when, to);
                self.close();
            }
            1 => {
                self.line(&format!("mov.pred {kept}, {predicate}"));
                self.close();
                self.branch(&kept, when, to);
            }
            // As compilers write the end of inline assembly.
            _ => {
                self.line(&format!("selp.b32 {word}, 1, 0, {predicate}"));
                self.close();
                self.line(&format!("setp.ne.s32 {kept}, {word}, 0"));
                self.branch(&kept, when, to);
            }
        }
    }

    /// A jump.
    pub(super) fn jump(&mut self, to: &str) {
        let opcode = self.random.of(&["bra", "bra", "bra.uni"]);
        self.line(&format!("{opcode} {to}"));
    }
}
