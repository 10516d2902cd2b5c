//! Loops that end soon by what an iteration does to their variable, or seem to.
//!
//! Where all that may come up is tried and ends, the loop needs no other end. Else the thread's ticks end it.

use super::counted::Order;
use super::odd::Limit;
use super::writer::{Jumps, Kind, Writer};

/// Most starts, steps and bounds that are tried together.
const MOST_TRIED: usize = 800;

/// Most iterations of a loop that nothing else ends.
const MOST_TRIPS: u64 = 300;

/// A literal or a register, and all that it may hold. Nothing is known of it where that is empty.
pub(super) struct Drawn {
    pub(super) name: String,
    pub(super) of: Vec<u64>,
}

/// What an iteration does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// `shr.u`, `shr.b`, `shr.s` or `shl.b`.
    Shifts(&'static str),
    /// Half of a number with a sign, rounded towards zero.
    Halves,
    /// The register is added so often.
    Adds(u32),
}

/// Such a loop.
pub(super) struct Walk {
    pub(super) width: u32,
    pub(super) signed: bool,
    /// It goes on while the variable stands so to the bound.
    pub(super) order: Order,
    pub(super) start: Drawn,
    pub(super) by: Drawn,
    pub(super) bound: Drawn,
    pub(super) step: Step,
}

impl Walk {
    fn low(&self, value: u64) -> u64 {
        if self.width == 64 { value } else { value & ((1 << self.width) - 1) }
    }

    fn as_signed(&self, value: u64) -> i64 {
        let unused = 64 - self.width;
        (value << unused).cast_signed() >> unused
    }

    fn next(&self, value: u64, by: u64) -> u64 {
        let is_out = by >= u64::from(self.width);
        let next = match self.step {
            Step::Shifts("shr.s") => (self.as_signed(value) >> by.min(63)).cast_unsigned(),
            Step::Shifts(_) if is_out => 0,
            Step::Shifts("shl.b") => value << by,
            Step::Shifts(_) => value >> by,
            Step::Halves => (self.as_signed(self.low(value.wrapping_add(value >> (self.width - 1)))) >> 1).cast_unsigned(),
            Step::Adds(times) => value.wrapping_add(by.wrapping_mul(times.into())),
        };
        self.low(next)
    }

    fn goes_on(&self, value: u64, bound: u64) -> bool {
        let number = |value: u64| if self.signed { self.as_signed(value).into() } else { i128::from(value) };
        self.order.holds(number(value), number(bound))
    }

    /// The most iterations for all that may come up; none if that is more than a limit, or not known.
    fn trips(&self, most: u64) -> Option<u64> {
        let (starts, steps, bounds) = (&self.start.of, &self.by.of, &self.bound.of);
        let tried = starts.len() * steps.len() * bounds.len();
        if !(1..=MOST_TRIED).contains(&tried) {
            return None;
        }
        let mut worst = 1;
        for (start, by, bound) in
            starts.iter().flat_map(|start| steps.iter().flat_map(move |by| bounds.iter().map(move |bound| (start, by, bound))))
        {
            // The test may be one iteration late.
            let (mut value, bound, mut trips) = (self.low(*start), self.low(*bound), 1);
            while self.goes_on(value, bound) {
                value = self.next(value, *by);
                trips += 1;
                if trips > most {
                    return None;
                }
            }
            // What begins beyond its bound may come back.
            value = self.next(self.low(*start), *by);
            let mut late = 1;
            while self.goes_on(value, bound) {
                value = self.next(value, *by);
                late += 1;
                if late > most {
                    return None;
                }
            }
            worst = worst.max(trips).max(late + 1);
        }
        Some(worst)
    }
}

/// Registers and ends of a loop while it is written.
pub(super) struct Written {
    pub(super) walk: Walk,
    pub(super) variable: String,
    /// What ends it, where its numbers may not. It may be broken in any way then.
    pub(super) limit: Option<Limit>,
}

impl Writer<'_> {
    /// Such a loop. Gives the most iterations.
    pub(super) fn walks(&mut self, walk: Walk, budget: u64) -> u64 {
        let known = self.readable.len();
        let ends = walk.trips(budget.min(MOST_TRIPS)).filter(|_| self.random.percent(75));
        let limit = if ends.is_none() { Some(self.limited(budget)) } else { None };
        let trips = ends.or_else(|| limit.as_ref().map(|limit| limit.trips)).unwrap_or(1);
        let variable = self.register(Kind::of(walk.width));
        self.line(&format!("mov.b{} {variable}, {}", walk.width, walk.start.name));
        let one = Written { walk, variable, limit };
        let odd = self.odd_variables.len();
        if one.limit.is_some() && self.random.percent(50) {
            // Loops within it may move it.
            self.odd_variables.push((one.variable.clone(), one.walk.width));
        }
        self.readable.push((one.variable.clone(), one.walk.width));
        let cost = self.walk(&one, (budget / trips / 2).saturating_sub(9));
        self.odd_variables.truncate(odd);
        self.sum = None;
        let last = self.low_word(&one.variable, one.walk.width);
        let hash = self.kept.hash.clone();
        self.line(&format!("xor.b32 {hash}, {hash}, {last}"));
        self.readable.truncate(known);
        trips * (9 + cost)
    }

    fn walk(&mut self, one: &Written, each: u64) -> u64 {
        let [head, next, out] = [(); 3].map(|()| self.label());
        if self.random.percent(35) {
            self.branches_by(&out, |writer| writer.walk_test(one, false));
        }
        let (at_top, tests_old, ends_first) = (self.random.percent(25), self.random.percent(15), self.random.percent(50));
        self.place(&head);
        match &one.limit {
            Some(limit) if ends_first => self.ends(limit, &out),
            Some(_) => {}
            None => self.ticked(),
        }
        if at_top {
            self.branches_by(&out, |writer| writer.walk_test(one, false));
        }
        let may = self.random.percent(30);
        let cost = self.inside(each, Jumps { next: Some(next.clone()), out: out.clone(), may });
        self.place(&next);
        if let Some(limit) = one.limit.as_ref().filter(|_| !ends_first) {
            self.ends(limit, &out);
        }
        if self.random.percent(30) {
            let low = self.low_word(&one.variable, one.walk.width);
            let hash = self.kept.hash.clone();
            self.line(&format!("mad.lo.u32 {hash}, {hash}, 31, {low}"));
        }
        let last = |writer: &mut Self, goes_on: bool| {
            if tests_old {
                let found = writer.walk_test(one, goes_on);
                writer.walk_step(one);
                return found;
            }
            writer.walk_step(one);
            writer.walk_test(one, goes_on)
        };
        if at_top {
            self.walk_step(one);
            self.jump(&head);
        } else if self.random.percent(75) {
            self.branches_by(&head, |writer| last(writer, true));
        } else {
            self.branches_by(&out, |writer| last(writer, false));
            self.jump(&head);
        }
        self.place(&out);
        cost
    }

    /// A step, between braces at times.
    fn walk_step(&mut self, one: &Written) {
        self.sum = None;
        let braced = self.random.percent(15);
        if braced {
            self.open();
        }
        match one.walk.step {
            Step::Adds(times) => self.adds(one, times),
            Step::Shifts(_) | Step::Halves => self.shifted(one),
        }
        if braced {
            self.close();
            self.sum = None;
        }
    }

    /// The test: a predicate, and how it stands where the loop goes on, or ends.
    fn walk_test(&mut self, one: &Written, goes_on: bool) -> (String, bool) {
        let Walk { width, signed, order, bound, .. } = &one.walk;
        let sum = self.sum.take().filter(|_| self.random.percent(60));
        let tested = sum.as_ref().unwrap_or(&one.variable).clone();
        let negated = self.random.percent(50);
        let order = if negated { order.negated() } else { *order };
        let of_bits = matches!(order, Order::NotEqual | Order::Equal);
        let sign = match (of_bits, signed) {
            (true, _) => self.random.of(&["b", "u", "s"]),
            (false, true) => "s",
            (false, false) => "u",
        };
        let mirrored = self.random.percent(20) && super::odd::is_register(&bound.name);
        let (name, operands) = if mirrored {
            (order.mirrored().names(), format!("{}, {tested}", bound.name))
        } else {
            (order.names(), format!("{tested}, {}", bound.name))
        };
        let name = if sign == "u" && self.random.percent(20) { name.1 } else { name.0 };
        let (p, q) = (self.register(Kind::Predicate), self.register(Kind::Predicate));
        match self.random.below(12) {
            0 => {
                // The second predicate says the opposite.
                self.line(&format!("setp.{name}.{sign}{width} {p}|{q}, {operands}"));
                return (q, goes_on == negated);
            }
            // What is joined can only end the loop sooner.
            1 => {
                let other = self.condition();
                let joined = if negated { "or" } else { "and" };
                self.line(&format!("setp.{name}.{joined}.{sign}{width} {p}, {operands}, {other}"));
            }
            2 => {
                let other = self.condition();
                let joined = if negated { "or" } else { "and" };
                self.line(&format!("setp.{name}.{sign}{width} {q}, {operands}"));
                self.line(&format!("{joined}.pred {p}, {other}, {q}"));
            }
            _ => self.line(&format!("setp.{name}.{sign}{width} {p}, {operands}")),
        }
        (p, goes_on != negated)
    }

    /// A number as a literal, or in a register.
    pub(super) fn fixed(&mut self, number: i64, (width, signed): (u32, bool), in_register: bool) -> Drawn {
        let unused = 64 - width;
        let low = number.cast_unsigned() << unused >> unused;
        let of = vec![low];
        let literal = if signed { ((low << unused).cast_signed() >> unused).to_string() } else { format!("0x{low:x}") };
        if !in_register {
            return Drawn { name: literal, of };
        }
        let name = self.register(Kind::of(width));
        self.line(&format!("mov.b{width} {name}, {literal}"));
        Drawn { name, of }
    }

    /// Last bits of what the thread has computed, and so much more.
    pub(super) fn bits(&mut self, mask: u32, more: u32, width: u32) -> Drawn {
        let (value, word) = (self.value(), self.register(Kind::Word));
        self.line(&format!("and.b32 {word}, {value}, {mask}"));
        if more > 0 {
            self.line(&format!("add.s32 {word}, {word}, {more}"));
        }
        Drawn { name: self.resized(&word, width), of: (more..=mask + more).map(u64::from).collect() }
    }

    /// A special register whose value is known.
    pub(super) fn special(&mut self, special: &str, value: u32, width: u32) -> Drawn {
        let word = self.register(Kind::Word);
        self.line(&format!("mov.u32 {word}, {special}"));
        Drawn { name: self.resized(&word, width), of: vec![value.into()] }
    }

    /// A register of 32 bits that holds no more than a number.
    pub(super) fn up_to(&mut self, word: &str, most: u32, width: u32) -> Drawn {
        // A copy: the loop may write it.
        let copy = self.register(Kind::Word);
        self.line(&format!("mov.b32 {copy}, {word}"));
        Drawn { name: self.resized(&copy, width), of: (0..=most).map(u64::from).collect() }
    }

    /// What the thread has computed, of which nothing is known.
    pub(super) fn any(&mut self, width: u32) -> Drawn {
        let (value, copy) = (self.value(), self.register(Kind::Word));
        self.line(&format!("mov.b32 {copy}, {value}"));
        Drawn { name: self.resized(&copy, width), of: Vec::new() }
    }
}
