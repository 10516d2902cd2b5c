//! Loops whose trips are computed. All starts, bounds and steps that may come up are tried when the text is written.

use super::writer::{Jumps, Kind, Writer};
use super::{MOST_M, MOST_N};

/// A number that is a constant, or one of several in a row.
#[derive(Debug, Clone, Copy)]
struct Number {
    base: i128,
    /// How many there are, 1 for a constant.
    count: u32,
    part: Part,
}

/// What the rest of a number is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Nothing,
    /// The launch's numbers, which are the same for all threads.
    N,
    M,
    /// Last bits of what the thread has computed.
    Thread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Middle,
    Bottom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    None,
    /// With a condition that the thread computes: it can only end the loop sooner.
    Other,
    /// With whether the loop has iterated fewer times.
    And(u64),
    Or(u64),
    Xor(u64),
}

#[derive(Debug, Clone, Copy)]
struct Spec {
    width: u32,
    signed: bool,
    /// The loop goes on while the variable stands so to the bound.
    order: Order,
    start: Number,
    bound: Number,
    step: Number,
    place: Place,
    /// Whether the test is of the variable before its step.
    tests_old: bool,
    /// Whether the comparison stands in front of the loop, too.
    passes_by: bool,
    join: Join,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    NotEqual,
    Equal,
}

impl Order {
    pub(super) const ALL: [Self; 6] = [Self::Less, Self::LessEqual, Self::Greater, Self::GreaterEqual, Self::NotEqual, Self::Equal];

    pub(super) fn holds(self, left: i128, right: i128) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            Self::NotEqual => left != right,
            Self::Equal => left == right,
        }
    }

    pub(super) fn negated(self) -> Self {
        match self {
            Self::Less => Self::GreaterEqual,
            Self::LessEqual => Self::Greater,
            Self::Greater => Self::LessEqual,
            Self::GreaterEqual => Self::Less,
            Self::NotEqual => Self::Equal,
            Self::Equal => Self::NotEqual,
        }
    }

    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::NotEqual | Self::Equal => self,
        }
    }

    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Less => ("lt", "lo"),
            Self::LessEqual => ("le", "ls"),
            Self::Greater => ("gt", "hi"),
            Self::GreaterEqual => ("ge", "hs"),
            Self::NotEqual => ("ne", "ne"),
            Self::Equal => ("eq", "eq"),
        }
    }
}

impl Spec {
    /// A number as a register of this width holds it.
    fn wrapped(&self, value: i128) -> i128 {
        let low = value & ((1 << self.width) - 1);
        if self.signed && low >> (self.width - 1) != 0 { low - (1 << self.width) } else { low }
    }

    /// The most iterations for any of the numbers; none if that is more than a limit.
    fn trips(&self, most: u64) -> Option<u64> {
        let mut worst = 0;
        for start in 0..self.start.count {
            for bound in 0..self.bound.count {
                for step in 0..self.step.count {
                    let at = |number: Number, nth: u32| self.wrapped(number.base + i128::from(nth));
                    worst = worst.max(self.run(at(self.start, start), at(self.bound, bound), at(self.step, step), most)?);
                }
            }
        }
        Some(worst)
    }

    fn run(&self, start: i128, bound: i128, step: i128, most: u64) -> Option<u64> {
        let goes_on = |value: i128, trips: u64| {
            let holds = self.order.holds(value, bound);
            match self.join {
                Join::None | Join::Other => holds,
                Join::And(fewer) => holds && trips < fewer,
                Join::Or(fewer) => holds || trips < fewer,
                Join::Xor(fewer) => holds ^ (trips < fewer),
            }
        };
        let (mut value, mut trips) = (start, 0);
        if self.passes_by && !self.order.holds(start, bound) {
            return Some(0);
        }
        loop {
            if self.place == Place::Top && !goes_on(value, trips) {
                return Some(trips);
            }
            trips += 1;
            if trips > most {
                return None;
            }
            let old = value;
            value = self.wrapped(value + step);
            if self.place != Place::Top && !goes_on(if self.tests_old { old } else { value }, trips) {
                return Some(trips);
            }
        }
    }

    fn is_uniform(&self) -> bool {
        [self.start, self.bound, self.step].iter().all(|number| number.part != Part::Thread) && self.join != Join::Other
    }
}

/// Registers and literals of a loop.
struct Names {
    variable: String,
    bound: String,
    /// Iterations, where the test asks for them.
    trips: Option<String>,
}

impl Writer<'_> {
    /// A loop of at most so many iterations, with what it holds. Gives the most iterations.
    ///
    /// Over 80 lines: the parts of a loop in the order of the text.
    pub(super) fn counted(&mut self, budget: u64) -> u64 {
        let (spec, trips) = self.spec(budget);
        let scope = self.random.percent(20);
        if scope {
            self.open();
        }
        let known = self.readable.len();
        let variable = self.register(Kind::of(spec.width));
        let start = self.number(&spec, spec.start, false);
        let kind = format!("{}{}", if spec.signed { 's' } else { 'u' }, spec.width);
        self.line(&format!("mov.{kind} {variable}, {start}"));
        let bound_in_register = self.random.percent(35);
        let bound = self.number(&spec, spec.bound, bound_in_register);
        let step_in_register = self.random.percent(12);
        // Steps down are below zero, whatever the comparison's sign.
        let step = self.number(&Spec { signed: true, ..spec }, spec.step, step_in_register);
        let counts = matches!(spec.join, Join::And(_) | Join::Or(_) | Join::Xor(_));
        let counter = if counts {
            let counter = self.register(Kind::Word);
            self.line(&format!("mov.u32 {counter}, 0"));
            Some(counter)
        } else {
            None
        };
        let names = Names { variable: variable.clone(), bound, trips: counter };
        let (head, next, out) = (self.label(), self.label(), self.label());
        if spec.passes_by {
            self.branches_by(&out, |writer| writer.compares(&spec, &names, &names.variable, false));
        }
        if self.random.percent(8) {
            self.line(".pragma \"nounroll\"");
        }
        // The variable may be a copy that each iteration takes first: in front of the loop it holds something else.
        let copied =
            (spec.place == Place::Bottom && !spec.tests_old && self.random.percent(12)).then(|| self.register(Kind::of(spec.width)));
        if let Some(next) = &copied {
            self.line(&format!("mov.{kind} {next}, {variable}"));
            self.line(&format!("mov.{kind} {variable}, 5"));
        }
        self.readable.push((variable.clone(), spec.width));
        let may = self.random.percent(if self.loops.last().is_some_and(|one| !one.may) { 15 } else { 30 });
        let uniform = self.uniform;
        self.uniform &= spec.is_uniform() && !may;
        self.place(&head);
        if let Some(next) = &copied {
            self.line(&format!("mov.b{} {variable}, {next}", spec.width));
        }
        let each = (budget / trips.max(1)).saturating_sub(1);
        let ticks = self.kept.ticks.clone();
        if self.random.percent(75) {
            self.line(&format!("add.u32 {ticks}, {ticks}, 1"));
        }
        let add = self.addition(&spec, &kind, &step, copied);
        let cost = match spec.place {
            Place::Top => {
                self.branches_by(&out, |writer| writer.tests(&spec, &names, &variable, false));
                let cost = self.inside(each, Jumps { next: Some(next.clone()), out: out.clone(), may });
                if may && self.random.percent(50) {
                    // A second latch, with a step of its own.
                    let predicate = self.condition();
                    let over = self.label();
                    self.branch(&predicate, false, &over);
                    self.moves(&names, &add);
                    self.jump(&head);
                    self.place(&over);
                }
                self.place(&next);
                self.moves(&names, &add);
                self.jump(&head);
                cost
            }
            Place::Middle => {
                let before = self.inside(each / 2, Jumps { next: None, out: out.clone(), may });
                self.branches_by(&out, |writer| writer.steps_and_tests(&spec, &names, &add, false));
                let behind = self.inside(each / 2, Jumps { next: Some(head.clone()), out: out.clone(), may });
                self.jump(&head);
                before + behind
            }
            Place::Bottom => {
                let cost = self.inside(each, Jumps { next: Some(next.clone()), out: out.clone(), may });
                self.place(&next);
                if self.random.percent(70) {
                    self.branches_by(&head, |writer| writer.steps_and_tests(&spec, &names, &add, true));
                } else {
                    self.branches_by(&out, |writer| writer.steps_and_tests(&spec, &names, &add, false));
                    self.jump(&head);
                }
                cost
            }
        };
        self.place(&out);
        self.uniform = uniform;
        let last = self.low_word(&variable, spec.width);
        let hash = self.kept.hash.clone();
        self.line(&format!("xor.b32 {hash}, {hash}, {last}"));
        self.readable.truncate(known);
        if scope {
            self.close();
        }
        trips * (1 + cost)
    }

    /// What stands in a loop.
    pub(super) fn inside(&mut self, budget: u64, jumps: Jumps) -> u64 {
        self.loops.push(jumps);
        let cost = match self.random.below(10) {
            0..2 => 0,
            2..5 => {
                self.mixes(1);
                0
            }
            _ => self.statements(budget),
        };
        self.loops.pop();
        cost
    }

    /// The low 32 bits of a variable.
    pub(super) fn low_word(&mut self, name: &str, width: u32) -> String {
        if width == 32 {
            return name.to_owned();
        }
        let word = self.register(Kind::Word);
        self.line(&format!("cvt.u32.u{width} {word}, {name}"));
        word
    }

    /// The statements of a step: the value after it is in the register that comes with them.
    fn addition(&mut self, spec: &Spec, kind: &str, step: &str, copied: Option<String>) -> (Vec<String>, String) {
        let Spec { width, .. } = *spec;
        let literal = spec.step.count == 1 && !step.starts_with(|first: char| !first.is_ascii_digit() && first != '-');
        let variable = self.readable.last().map(|(name, _)| name.clone()).unwrap_or_default();
        let sign = if self.random.percent(60) { format!("s{width}") } else { kind.to_owned() };
        let added = |to: &str| match step.strip_prefix('-') {
            Some(rest) if literal && spec.step.base < 0 && spec.step.base % 3 == 0 => format!("sub.{sign} {to}, {variable}, {rest}"),
            _ => format!("add.{sign} {to}, {variable}, {step}"),
        };
        if let Some(next) = copied {
            return (vec![added(&next)], next);
        }
        if self.random.percent(25) {
            let next = self.register(Kind::of(width));
            return (vec![added(&next), format!("mov.b{width} {variable}, {next}")], next);
        }
        (vec![added(&variable)], variable)
    }

    fn moves(&mut self, names: &Names, add: &(Vec<String>, String)) {
        for statement in &add.0 {
            self.line(statement);
        }
        if let Some(trips) = &names.trips {
            self.line(&format!("add.s32 {trips}, {trips}, 1"));
        }
    }

    /// Step and test: a predicate, and how it stands where the loop goes on, or ends.
    fn steps_and_tests(&mut self, spec: &Spec, names: &Names, add: &(Vec<String>, String), goes_on: bool) -> (String, bool) {
        if let (true, Some(trips)) = (spec.tests_old, &names.trips) {
            self.line(&format!("add.s32 {trips}, {trips}, 1"));
        }
        if spec.tests_old {
            let found = self.tests(spec, names, &names.variable, goes_on);
            for statement in &add.0 {
                self.line(statement);
            }
            return found;
        }
        let (statements, next) = add;
        self.line(&statements[0]);
        if let Some(trips) = &names.trips {
            self.line(&format!("add.s32 {trips}, {trips}, 1"));
        }
        let first = self.random.percent(50);
        if let (true, Some(moved)) = (first, statements.get(1)) {
            self.line(moved);
        }
        let found = self.tests(spec, names, next, goes_on);
        if let (false, Some(moved)) = (first, statements.get(1)) {
            self.line(moved);
        }
        found
    }

    /// The whole test.
    fn tests(&mut self, spec: &Spec, names: &Names, tested: &str, goes_on: bool) -> (String, bool) {
        if spec.join == Join::None {
            return self.compares(spec, names, tested, goes_on);
        }
        let other = match (&names.trips, spec.join) {
            (Some(trips), Join::And(fewer) | Join::Or(fewer) | Join::Xor(fewer)) => {
                let predicate = self.register(Kind::Predicate);
                self.line(&format!("setp.lt.u32 {predicate}, {trips}, {fewer}"));
                predicate
            }
            _ => self.condition(),
        };
        let (opcode, opposite) = match spec.join {
            Join::Or(_) => ("or", "and"),
            Join::Xor(_) => ("xor", "xor"),
            _ => ("and", "or"),
        };
        let joined = self.register(Kind::Predicate);
        match self.random.below(3) {
            // One instruction for both.
            0 => {
                if self.random.percent(15) {
                    let (second, comparison) = (self.register(Kind::Predicate), self.comparison(spec, names, tested, spec.order.negated()));
                    self.line(&format!("setp.{}.{opcode}.{} {joined}|{second}, {}, {other}", comparison.0, comparison.1, comparison.2));
                    return (second, goes_on);
                }
                let comparison = self.comparison(spec, names, tested, spec.order);
                self.line(&format!("setp.{}.{opcode}.{} {joined}, {}, {other}", comparison.0, comparison.1, comparison.2));
                (joined, goes_on)
            }
            // What ends the loop.
            1 if opcode != "xor" => {
                let (ends, not) = (self.register(Kind::Predicate), self.register(Kind::Predicate));
                let comparison = self.comparison(spec, names, tested, spec.order.negated());
                self.line(&format!("setp.{}.{} {ends}, {}", comparison.0, comparison.1, comparison.2));
                self.line(&format!("not.pred {not}, {other}"));
                self.line(&format!("{opposite}.pred {joined}, {ends}, {not}"));
                (joined, !goes_on)
            }
            _ => {
                let holds = self.register(Kind::Predicate);
                let comparison = self.comparison(spec, names, tested, spec.order);
                self.line(&format!("setp.{}.{} {holds}, {}", comparison.0, comparison.1, comparison.2));
                let (left, right) = if self.random.percent(50) { (&holds, &other) } else { (&other, &holds) };
                self.line(&format!("{opcode}.pred {joined}, {left}, {right}"));
                (joined, goes_on)
            }
        }
    }

    /// The comparison alone.
    fn compares(&mut self, spec: &Spec, names: &Names, tested: &str, goes_on: bool) -> (String, bool) {
        let predicate = self.register(Kind::Predicate);
        let negated = self.random.percent(50);
        let order = if negated { spec.order.negated() } else { spec.order };
        let comparison = self.comparison(spec, names, tested, order);
        if self.random.percent(10) {
            // The second predicate says the opposite.
            let second = self.register(Kind::Predicate);
            self.line(&format!("setp.{}.{} {predicate}|{second}, {}", comparison.0, comparison.1, comparison.2));
            return (second, goes_on == negated);
        }
        self.line(&format!("setp.{}.{} {predicate}, {}", comparison.0, comparison.1, comparison.2));
        (predicate, goes_on != negated)
    }

    /// Name, type and operands of a comparison.
    fn comparison(&mut self, spec: &Spec, names: &Names, tested: &str, order: Order) -> (&'static str, String, String) {
        let is_literal = names.bound.starts_with(|first: char| first.is_ascii_digit() || first == '-');
        let mirrored = !is_literal && self.random.percent(25);
        let (order, operands) =
            if mirrored { (order.mirrored(), format!("{}, {tested}", names.bound)) } else { (order, format!("{tested}, {}", names.bound)) };
        let (plain, unsigned) = order.names();
        let name = if spec.signed || self.random.percent(80) { plain } else { unsigned };
        let of_bits = matches!(order, Order::NotEqual | Order::Equal);
        let sign = match self.random.below(3) {
            0 if of_bits => 'b',
            1 if of_bits && spec.width != 16 => 's',
            _ if spec.signed => 's',
            _ => 'u',
        };
        (name, format!("{sign}{}", spec.width), operands)
    }

    /// A number as a literal, or in a register.
    fn number(&mut self, spec: &Spec, number: Number, in_register: bool) -> String {
        let width = spec.width;
        let base = spec.wrapped(number.base);
        let is_large = base > i128::from(i64::MAX) || base > 0xffff_ffff && self.random.percent(50);
        let literal = if is_large { format!("0x{base:x}") } else { base.to_string() };
        if number.count == 1 && !in_register {
            return literal;
        }
        let register = self.register(Kind::of(width));
        let kind = format!("{}{width}", if spec.signed { 's' } else { 'u' });
        if number.count == 1 {
            self.line(&format!("mov.{kind} {register}, {literal}"));
            return register;
        }
        let rest = match number.part {
            Part::N => self.kept.n.clone(),
            Part::M => self.kept.m.clone(),
            Part::Nothing | Part::Thread => {
                let (value, rest) = (self.value(), self.register(Kind::Word));
                self.line(&format!("and.b32 {rest}, {value}, {}", number.count - 1));
                rest
            }
        };
        if width == 32 && base == 0 && self.random.percent(50) {
            return rest;
        }
        let rest = if width == 32 {
            rest
        } else {
            let resized = self.register(Kind::of(width));
            self.line(&format!("cvt.u{width}.u32 {resized}, {rest}"));
            resized
        };
        self.line(&format!("add.s{width} {register}, {rest}, {}", Spec { signed: true, ..*spec }.wrapped(base)));
        register
    }

    /// A loop that ends, with its most iterations.
    fn spec(&mut self, budget: u64) -> (Spec, u64) {
        for _ in 0..12 {
            let spec = self.drawn(budget);
            let all = u64::from(spec.start.count) * u64::from(spec.bound.count) * u64::from(spec.step.count);
            let most = if all > 8 { budget.min(300) } else { budget };
            if let Some(trips) = spec.trips(most).filter(|_| all <= 350) {
                return (spec, trips);
            }
        }
        let number = |base, count| Number { base, count, part: if count > 1 { Part::Thread } else { Part::Nothing } };
        let bound = number(0, if budget < 4 { 1 } else { 4 });
        let spec = Spec {
            width: 32,
            signed: true,
            order: Order::Less,
            start: number(0, 1),
            bound,
            step: number(1, 1),
            place: Place::Bottom,
            tests_old: false,
            passes_by: true,
            join: Join::None,
        };
        (spec, u64::from(bound.count))
    }

    fn drawn(&mut self, budget: u64) -> Spec {
        let width = self.random.of(&[32, 32, 32, 32, 64, 64, 16]);
        let signed = self.random.percent(50);
        let up = self.random.percent(60);
        let order = match (self.random.below(20), up) {
            (0..3, _) => Order::NotEqual,
            (3, _) => self.random.of(&Order::ALL),
            (4..13, true) => Order::Less,
            (_, true) => Order::LessEqual,
            (4..13, false) => Order::Greater,
            (_, false) => Order::GreaterEqual,
        };
        let (least, most) = if signed { (-(1 << (width - 1)), (1_i128 << (width - 1)) - 1) } else { (0, (1_i128 << width) - 1) };
        let few = i128::from(self.random.below(9) as u32);
        let start = match self.random.below(12) {
            0 => most - few,
            1 => least + few,
            2 => (1 << (width - 1)) - few,
            3 => i128::from(self.random.draw()),
            4 => i128::from(self.random.below(2000) as u32),
            5 => few,
            _ => 0,
        };
        let longest = self.random.of(&[4, 12, 40, 40, 200, 1_000, 5_000]).min(budget).max(1);
        let trips = i128::from(1 + self.random.below(longest as usize) as u32);
        let size = i128::from(self.random.of(&[1, 1, 1, 1, 1, 2, 3, 4, 7, 16, 64, 1000, 65_536, 65_537]));
        let step = if up { size } else { -size };
        let slack = i128::from(self.random.below(5) as u32) - 2;
        let near = if self.random.percent(60) { 0 } else { slack };
        // Where a bound varies, the least of it is next to the start.
        let mut bound = Number { base: start + step * trips + near, count: 1, part: Part::Nothing };
        let mut start = Number { base: start, count: 1, part: Part::Nothing };
        let mut step = Number { base: step, count: 1, part: Part::Nothing };
        match self.random.below(10) {
            0..3 => bound = self.varied(bound.base, start.base, up),
            3 => start = self.varied(start.base, start.base, true),
            4 => step = Number { base: step.base, count: 2, part: Part::Thread },
            5 => (bound, start) = (self.varied(bound.base, start.base, up), self.varied(start.base, start.base, true)),
            _ => {}
        }
        let place = self.random.of(&[Place::Bottom, Place::Bottom, Place::Bottom, Place::Top, Place::Middle]);
        let fewer = 1 + self.random.below(longest as usize) as u64;
        let join = match self.random.below(12) {
            0 | 1 => Join::Other,
            2 => Join::And(fewer),
            3 => Join::Or(fewer),
            4 => Join::Xor(fewer),
            _ => Join::None,
        };
        let tests_old = place != Place::Top && self.random.percent(12);
        Spec { width, signed, order, start, bound, step, place, tests_old, passes_by: self.random.percent(40), join }
    }

    fn varied(&mut self, base: i128, beside: i128, up: bool) -> Number {
        let small = if up { beside } else { beside - i128::from(MOST_N) };
        let base = if self.random.percent(60) { small } else { base };
        match self.random.below(6) {
            0 | 1 => Number { base, count: MOST_N + 1, part: Part::N },
            2 => Number { base, count: MOST_M + 1, part: Part::M },
            _ => Number { base, count: self.random.of(&[2, 4, 8, 16, 32]), part: Part::Thread },
        }
    }
}
