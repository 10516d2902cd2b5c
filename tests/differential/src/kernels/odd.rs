//! Loops that are written in unusual ways.
//!
//! Starts, steps, bounds and tests may be any. What ends such a loop for certain counts the thread's ticks, and no compiler takes that for a counter.

use super::writer::{Jumps, Kind, Writer};

/// A loop that is written.
pub(super) struct Odd {
    pub(super) width: u32,
    pub(super) variable: String,
    pub(super) bound: String,
    pub(super) goes_up: bool,
    /// What is added in most cases, of either sign.
    pub(super) step: String,
    /// Whether it ends where the variable comes upon the bound.
    meets: bool,
    limit: Limit,
    /// Behind the loop.
    out: String,
}

/// What ends a loop for certain: most iterations, a register with as many, and the thread's ticks in front of the first.
pub(super) struct Limit {
    pub(super) trips: u64,
    most: String,
    begun: String,
}

/// Where a loop is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Middle,
    Bottom,
}

impl Writer<'_> {
    /// Such a loop. Gives the most iterations.
    pub(super) fn odd(&mut self, budget: u64) -> u64 {
        let scope = self.random.percent(25);
        if scope {
            self.open();
        }
        let known = self.readable.len();
        let limit = self.limited(budget);
        let one = self.odd_numbers(limit);
        self.odd_variables.push((one.variable.clone(), one.width));
        let cost = self.odd_loop(&one, budget);
        self.sum = None;
        self.odd_variables.pop();
        let last = self.low_word(&one.variable, one.width);
        let hash = self.kept.hash.clone();
        self.line(&format!("xor.b32 {hash}, {hash}, {last}"));
        self.readable.truncate(known);
        if scope {
            self.close();
        }
        // What a step's own cycles do is eight iterations at most.
        one.limit.trips * (9 + cost)
    }

    /// Over 80 lines: the parts of a loop in the order of the text.
    fn odd_loop(&mut self, one: &Odd, budget: u64) -> u64 {
        let (head, next, middle) = (self.label(), self.label(), self.label());
        let place = self.random.of(&[Place::Bottom, Place::Bottom, Place::Bottom, Place::Top, Place::Middle]);
        match self.random.below(8) {
            0 | 1 => {
                let out = one.out.clone();
                self.branches_by(&out, |writer| writer.odd_test(one, false));
            }
            2 => {
                let zero = self.register(Kind::Predicate);
                self.line(&format!("setp.eq.s{} {zero}, {}, 0", one.width, one.variable));
                self.branch(&zero, true, &one.out);
            }
            _ => {}
        }
        // What ends the loop stands behind all ways in.
        let ends_first = self.random.percent(50);
        let several = !ends_first && self.random.percent(12);
        if several {
            let entry = self.condition();
            self.branch(&entry, true, &middle);
        }
        self.readable.push((one.variable.clone(), one.width));
        self.place(&head);
        // Between the label and its statement stands a brace.
        let braced = !several && self.random.percent(15);
        if braced {
            self.open();
        }
        if ends_first {
            self.ends(&one.limit, &one.out);
        }
        if place == Place::Top {
            self.branches_by(&one.out, |writer| writer.odd_test(one, false));
        }
        let may = self.random.percent(30);
        let again = if ends_first && !braced { self.random.of(&[&head, &next]).clone() } else { next.clone() };
        let jumps = Jumps { next: Some(again), out: one.out.clone(), may };
        let steps_first = self.random.percent(30);
        if steps_first {
            self.odd_steps(one);
            self.sum = None;
        }
        let cost = self.inside((budget / one.limit.trips / 2).saturating_sub(9), jumps);
        self.place(&middle);
        if place == Place::Middle {
            self.branches_by(&one.out, |writer| writer.odd_test(one, false));
        }
        self.place(&next);
        if self.random.percent(10) && self.waits {
            self.line("nanosleep.u32 20");
        }
        if self.random.percent(50) {
            let low = self.low_word(&one.variable, one.width);
            let hash = self.kept.hash.clone();
            self.line(&format!("mad.lo.u32 {hash}, {hash}, 31, {low}"));
        }
        if !ends_first {
            self.ends(&one.limit, &one.out);
        }
        if braced {
            self.odd_latch(one, place, &head, steps_first);
            return cost;
        }
        let to = if several && self.random.percent(30) { &middle } else { &head };
        if place == Place::Bottom && self.random.percent(80) {
            self.branches_by(to, |writer| {
                if !steps_first {
                    writer.odd_steps(one);
                }
                writer.odd_test(one, true)
            });
        } else {
            if !steps_first {
                self.odd_steps(one);
            }
            if place == Place::Bottom {
                self.branches_by(&one.out, |writer| writer.odd_test(one, false));
            }
            self.jump(to);
        }
        self.place(&one.out);
        cost
    }

    /// The end of an iteration that stands between braces.
    fn odd_latch(&mut self, one: &Odd, place: Place, head: &str, steps_first: bool) {
        match (steps_first, self.random.percent(50)) {
            (true, _) => {}
            // As inline assembly does.
            (false, true) => self.odd_sum(one),
            (false, false) => self.odd_steps(one),
        }
        if place == Place::Bottom {
            self.keeps_predicates = true;
            let (predicate, when) = self.odd_test(one, true);
            if self.random.percent(70) {
                self.close();
                self.branch(&predicate, when, head);
            } else {
                self.branch(&predicate, when, head);
                self.close();
            }
        } else {
            self.close();
            self.jump(head);
        }
        self.place(&one.out);
    }

    /// A limit of the loop that begins here.
    pub(super) fn limited(&mut self, budget: u64) -> Limit {
        let most = self.register(Kind::Word);
        let n = self.kept.n.clone();
        // Nobody knows how large the launch's number is.
        let mut trips = u64::from(super::MOST_N) + 3;
        match self.random.of(&[1, 1, 5, 30, 100]).min(budget / 600) {
            0 => {
                self.line(&format!("shr.u32 {most}, {n}, 3"));
                self.line(&format!("add.s32 {most}, {most}, 1"));
                trips = 6;
            }
            times => {
                self.line(&format!("mad.lo.u32 {most}, {n}, {times}, 3"));
                trips *= times;
            }
        }
        let begun = self.register(Kind::Word);
        let ticks = self.kept.ticks.clone();
        self.line(&format!("mov.b32 {begun}, {ticks}"));
        Limit { trips, most, begun }
    }

    /// What the loop counts, and how.
    fn odd_numbers(&mut self, limit: Limit) -> Odd {
        let (out, empty) = (self.label(), String::new);
        let goes_up = self.random.percent(60);
        let size = self.random.of(&[1, 1, 1, 2, 3, 4, 64]);
        let step = if goes_up { size } else { -size }.to_string();
        let mut one = Odd { width: 32, variable: empty(), bound: empty(), goes_up, step, meets: self.random.percent(20), limit, out };
        match self.random.below(12) {
            0 => self.odd_rest(&mut one),
            1 => {
                // The halves of a number are others than the number.
                let (low, high, long) = (self.register(Kind::Word), self.register(Kind::Word), self.register(Kind::Long));
                self.line(&format!("mov.u64 {long}, 6"));
                self.line(&format!("mov.b64 {{{low}, {high}}}, {long}"));
                (one.variable, one.bound, one.step, one.meets) = (high, "10".to_owned(), "4".to_owned(), true);
            }
            2 => {
                one.variable = self.register(Kind::Word);
                self.line(&format!("mov.u32 {}, 1073741822", one.variable));
                let step = format!("add.s32 {0}, {0}, 357913941", one.variable);
                self.rounds(&[step]);
                (one.bound, one.step, one.meets) = ("100".to_owned(), "2".to_owned(), false);
            }
            3 | 4 if !self.odd_variables.is_empty() => {
                // Of a loop around it, which does not begin anew.
                let at = self.random.below(self.odd_variables.len());
                (one.variable, one.width) = self.odd_variables[at].clone();
                one.bound = if goes_up { self.much(one.width) } else { self.little(one.width) };
            }
            _ => {
                one.width = self.random.of(&[32, 32, 32, 32, 32, 64, 16]);
                let (least, most) = (self.little(one.width), self.much(one.width));
                let (start, bound) = if goes_up { (least, most) } else { (most, least) };
                one.variable = self.register(Kind::of(one.width));
                self.line(&format!("mov.b{} {}, {start}", one.width, one.variable));
                self.moves_off(&one.variable.clone(), one.width);
                one.bound = bound;
            }
        }
        one
    }

    /// As what an unrolled loop leaves, but for its step at times.
    fn odd_rest(&mut self, one: &mut Odd) {
        let (rest, zero) = (self.register(Kind::Word), self.register(Kind::Predicate));
        let value = self.value();
        self.line(&format!("and.b32 {rest}, {value}, 7"));
        one.variable.clone_from(&rest);
        if one.goes_up {
            one.variable = self.register(Kind::Word);
            self.line(&format!("neg.s32 {}, {rest}", one.variable));
        }
        self.line(&format!("setp.eq.s32 {zero}, {rest}, 0"));
        self.branch(&zero, true, &one.out);
        if one.goes_up { "1" } else { "-1" }.clone_into(&mut one.step);
        if self.random.percent(50) {
            let (step, part) = (self.register(Kind::Word), self.register(Kind::Word));
            let value = self.value();
            self.line(&format!("and.b32 {part}, {value}, 3"));
            self.line(&format!("add.s32 {step}, {part}, 1"));
            if !one.goes_up {
                self.line(&format!("neg.s32 {step}, {step}"));
            }
            one.step = step;
        }
        (one.bound, one.meets) = ("0".to_owned(), true);
    }

    /// A number of so many bits, of a register or literal of 32.
    pub(super) fn resized(&mut self, word: &str, width: u32) -> String {
        if width == 32 {
            return word.to_owned();
        }
        let resized = self.register(Kind::of(width));
        let sign = self.random.of(&["u", "s"]);
        self.line(&format!("cvt.{sign}{width}.{sign}32 {resized}, {word}"));
        resized
    }

    /// A number that is small in most cases.
    fn little(&mut self, width: u32) -> String {
        let word = self.register(Kind::Word);
        let value = self.value();
        match self.random.below(9) {
            0..3 => return self.random.of(&["0", "0", "1", "7", "-3"]).to_owned(),
            3 | 4 => {
                let mask = self.random.of(&[3, 6, 7, 15, 31]);
                self.line(&format!("and.b32 {word}, {value}, {mask}"));
            }
            5 => {
                self.line(&format!("and.b32 {word}, {value}, 7"));
                self.line(&format!("neg.s32 {word}, {word}"));
            }
            6 => self.half_of(&word),
            7 => self.line(&format!("min.s32 {word}, {value}, 5")),
            _ => {
                let m = self.kept.m.clone();
                self.line(&format!("mov.u32 {word}, {m}"));
            }
        }
        self.resized(&word, width)
    }

    /// A number that is larger in most cases.
    fn much(&mut self, width: u32) -> String {
        let word = self.register(Kind::Word);
        let (value, n) = (self.value(), self.kept.n.clone());
        match self.random.below(10) {
            0..3 => return self.random.of(&["8", "10", "40", "100", "1000"]).to_owned(),
            3 => {
                let mask = self.random.of(&[15, 63, 0xfff]);
                self.line(&format!("and.b32 {word}, {value}, {mask}"));
            }
            4 | 5 => self.line(&format!("mov.b32 {word}, {n}")),
            6 => {
                let opcode = self.random.of(&["min.s32", "max.s32", "min.u32", "max.u32"]);
                let thread = self.kept.thread.clone();
                self.line(&format!("{opcode} {word}, {n}, {thread}"));
            }
            7 => {
                let predicate = self.condition();
                let other = self.random.of(&["64", "0", "4000"]);
                self.line(&format!("selp.b32 {word}, {n}, {other}, {predicate}"));
            }
            8 => self.half_of(&word),
            _ => {
                self.line(&format!("and.b32 {word}, {n}, 7"));
                self.line(&format!("mul.lo.s32 {word}, {word}, 100"));
            }
        }
        self.resized(&word, width)
    }

    /// Half of a number of 64 bits.
    fn half_of(&mut self, word: &str) {
        let (other, long) = (self.register(Kind::Word), self.register(Kind::Long));
        let kept = self.kept.long.clone();
        let mask = self.random.of(&["f0000003f", "7", "3f00000000"]);
        self.line(&format!("and.b64 {long}, {kept}, 0x{mask}"));
        let halves = if self.random.percent(50) { format!("{word}, {other}") } else { format!("{other}, {word}") };
        self.line(&format!("mov.b64 {{{halves}}}, {long}"));
    }

    /// A tick, and the way out once there were too many.
    pub(super) fn ends(&mut self, limit: &Limit, out: &str) {
        let ticks = self.kept.ticks.clone();
        self.line(&format!("add.u32 {ticks}, {ticks}, 1"));
        self.branches_by(out, |writer| {
            let (since, predicate) = (writer.register(Kind::Word), writer.register(Kind::Predicate));
            writer.line(&format!("sub.s32 {since}, {ticks}, {}", limit.begun));
            writer.line(&format!("setp.ge.u32 {predicate}, {since}, {}", limit.most));
            (predicate, true)
        });
    }

    /// The test: a predicate, and how it stands where the loop goes on, or ends.
    fn odd_test(&mut self, one: &Odd, goes_on: bool) -> (String, bool) {
        let Odd { width, bound, goes_up, .. } = one;
        let sum = self.sum.take().filter(|_| self.random.percent(70));
        let variable = sum.as_ref().unwrap_or(&one.variable);
        let (on, off) = match (self.random.below(12), goes_up) {
            _ if one.meets => ("ne", "eq"),
            (0, _) => ("ne", "eq"),
            (1..4, _) => self.random.of(&[("eq", "ne"), ("gt", "le"), ("lt", "ge")]),
            (4..9, true) => ("lt", "ge"),
            (_, true) => ("le", "gt"),
            (4..9, false) => ("gt", "le"),
            (_, false) => ("ge", "lt"),
        };
        let sign = self.random.of(&["s", "s", "u"]);
        let (p, q) = (self.register(Kind::Predicate), self.register(Kind::Predicate));
        self.keeps_predicates = false;
        match self.random.below(16) {
            0..5 => self.line(&format!("setp.{on}.{sign}{width} {p}, {variable}, {bound}")),
            5 | 6 => {
                self.line(&format!("setp.{off}.{sign}{width} {p}, {variable}, {bound}"));
                return (p, !goes_on);
            }
            7 | 8 => {
                // The second predicate says the opposite. At times the loop goes on by that of the first.
                let (order, first) = (self.random.of(&[on, off]), self.random.percent(50));
                self.line(&format!("setp.{order}.{sign}{width} {p}|{q}, {variable}, {bound}"));
                return (q, goes_on == ((order == off) != first));
            }
            9 => {
                let q = self.condition();
                let joined = self.random.of(&["and", "or", "xor"]);
                self.line(&format!("setp.{on}.{joined}.{sign}{width} {p}, {variable}, {bound}, {q}"));
            }
            10 => {
                let (q, r) = (self.condition(), q);
                let joined = self.random.of(&["and", "and", "or", "xor"]);
                self.line(&format!("setp.{on}.{sign}{width} {r}, {variable}, {bound}"));
                self.line(&format!("{joined}.pred {p}, {r}, {q}"));
                if joined == "and" && self.random.percent(30) {
                    self.line(&format!("setp.{off}.{sign}{width} {r}, {variable}, {bound}"));
                    self.line(&format!("or.pred {p}, {r}, {q}"));
                    return (p, !goes_on);
                }
            }
            11 => {
                let (wide, most) = (self.register(Kind::Long), self.register(Kind::Long));
                let word = self.low_word(variable, *width);
                let limit = self.low_word(bound, if is_register(bound) { *width } else { 32 });
                self.line(&format!("mul.wide.{sign}32 {wide}, {word}, 4"));
                self.line(&format!("mul.wide.{sign}32 {most}, {limit}, 4"));
                self.line(&format!("setp.{on}.{sign}64 {p}, {wide}, {most}"));
            }
            12 => {
                let less = self.register(Kind::of(*width));
                self.line(&format!("sub.s{width} {less}, {variable}, {bound}"));
                self.line(&format!("setp.{on}.s{width} {p}, {less}, 0"));
            }
            13 => {
                let word = self.register(Kind::Word);
                self.line(&format!("set.{on}.u32.{sign}{width} {word}, {variable}, {bound}"));
                self.line(&format!("setp.ne.s32 {p}, {word}, 0"));
            }
            14 => {
                let word = self.register(Kind::Word);
                self.line(&format!("setp.{on}.{sign}{width} {q}, {variable}, {bound}"));
                self.line(&format!("selp.b32 {word}, 1, 0, {q}"));
                self.line(&format!("setp.eq.s32 {p}, {word}, 0"));
                return (p, !goes_on);
            }
            _ => {
                self.line(&format!("setp.{on}.{sign}{width} {p}, {variable}, {bound}"));
                self.line(&format!("not.pred {p}, {p}"));
                return (p, !goes_on);
            }
        }
        (p, goes_on)
    }
}

/// Whether an operand is a register, and no number.
pub(super) fn is_register(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}
