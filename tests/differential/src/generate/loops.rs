//! Loops that count: `for` with every kind of counter, bound, relation and step, and the `while` and `do` that people write for them.

use super::super::program::{EDGE, EDGE_STATEMENT, Item, LONE_EDGE, keyword};
use super::number::{Number, literal};
use super::{Around, DEEPEST, Generator, Variable, block, line};

/// Where a counter is meant to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// A counter, from where to where.
struct Range {
    number: Number,
    way: Way,
    start: i128,
    bound: i128,
}

impl Generator {
    /// A loop with whatever must stand in front of it.
    pub(super) fn loop_(&mut self) -> Vec<Item> {
        self.room = self.room.saturating_sub(1);
        if self.loops.len() >= DEEPEST {
            return vec![self.put("acc")];
        }
        let before = self.variables.len();
        let mut items = match self.random.below(100) {
            0..=51 => self.counted_for(),
            52..=63 => self.counted_while(),
            64..=73 => self.walk(),
            74..=80 => self.open_while(),
            81..=87 => self.do_while(),
            88..=91 => self.range_for(),
            92..=94 => self.jump_back(),
            95..=96 => self.duff(),
            _ => self.loop_of_macro(),
        };
        self.variables.truncate(before);
        // In the middle of a block declarations would clash with nothing: names are never used twice. Braces now and then keep them in.
        if items.len() > 1 && self.random.percent(30) {
            items = vec![block("{", items)];
        }
        items
    }

    fn range(&mut self) -> Range {
        let plain = self.calm && self.random.percent(40);
        let number =
            if plain { self.random.of(&[Number::INT, Number::INT, Number::UNSIGNED, Number::SIZE]) } else { Number::any(&mut self.random) };
        let way = if self.random.percent(65) { Way::Up } else { Way::Down };
        let small = |generator: &mut Self| generator.random.below(14) as i128;
        let (mut start, mut bound) = if self.long && number.bits >= 32 && self.random.percent(65) {
            // A nest of long loops and of loops that are just too long to be short.
            (0, i128::from(self.random.of(&[70_000, 131_072, 200_000, 1 << 20, 20, 100, 250, 300, 1000, 4000])))
        } else {
            match self.random.below(if plain { 6 } else { 10 }) {
                // Small, perhaps from below zero.
                0..=5 => (small(self) / 4, small(self)),
                6 if number.signed => (-small(self), small(self)),
                // Up to the type's end, or past it.
                7 => (number.max() - small(self), number.max() - small(self) / 4),
                8 => (number.max() - small(self), (number.max() + small(self) / 4).min(i128::from(u64::MAX))),
                // Down to its other end.
                _ => (number.min() + small(self) / 4, number.min() + small(self)),
            }
        };
        let reversed = self.random.percent(8);
        if (way == Way::Down) != reversed {
            (start, bound) = (bound.clamp(number.min(), number.max()), start);
        }
        Range { number, way, start, bound }
    }

    /// An expression for the bound, with what must be declared in front of it. Over 80 lines: an arm for each way to write it.
    fn bound(&mut self, range: &Range, before: &mut Vec<Item>) -> String {
        let value = range.bound;
        let text = literal(value);
        let type_ = range.number.text;
        let fits = value >= range.number.min() && value <= range.number.max();
        let small = value.unsigned_abs() < 1 << 20;
        if self.calm && small && self.random.percent(20) {
            if self.random.percent(60) {
                return text;
            }
            let part = self.random.below(9) as i128;
            if self.random.percent(50) && fits && value >= 0 {
                let name = self.name("SIZE");
                self.front.push(line(format!("constexpr int {name} = {value};")));
                return self.random.of(&["{}", "({})", "{} + 0", "2 * {} / 2", "{} - 1"]).replace("{}", &name);
            }
            return format!("{} + {part}", literal(value - part));
        }
        if self.calm && self.random.percent(55) {
            // The same value, but not before the kernel runs, and perhaps of another type.
            let number = if self.random.percent(50) { Number::any(&mut self.random) } else { range.number };
            let (name, value) = (self.name("end"), literal(value.clamp(number.min(), number.max())));
            let constant = self.random.of(&["", "", "const "]);
            before.push(line(format!("{constant}{} {name} = ({})({value} + (b & 0));", number.text, number.text)));
            return name;
        }
        match self.random.below(if !small {
            9
        } else if self.calm {
            14
        } else {
            22
        }) {
            0..=3 => text,
            4 | 5 if fits => {
                let name = self.name("end");
                let constant = self.random.percent(40);
                before.push(line(format!("{}{type_} {name} = {text};", if constant { "const " } else { "" })));
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: !constant });
                name
            }
            6 if fits => {
                let (name, reference) = (self.name("end"), self.name("limit"));
                before.push(line(format!("{type_} {name} = {text};")));
                before.push(line(format!("const {type_} &{reference} = {name};")));
                self.variables.push(Variable { name, number: range.number, changes: true });
                reference
            }
            7 => {
                let name = self.define("LAST", &format!(" {text}"));
                if self.random.percent(50) { name } else { format!("({name})") }
            }
            8 if fits => {
                self.need("box", "struct Box { long long wide; int n; unsigned long long most; };");
                let name = self.name("box");
                let member = if range.number.signed { "wide" } else { "most" };
                before.push(line(format!("Box {name} = {{}};")));
                before.push(line(format!("{name}.{member} = {text};")));
                let member = format!("{name}.{member}");
                let number =
                    if range.number.signed { Number::LONG_LONG } else { Number { text: "unsigned long long", bits: 64, signed: false } };
                self.variables.push(Variable { name: member.clone(), number, changes: true });
                member
            }
            9..=12 => self.random.of(&["n", "u", "w", "b", "n", "s"]).into(),
            13 => self.random.of(&["n - 1", "n / 2", "2 * u", "w + 1", "n + s", "-n", "(n)", "(long long)u", "n ? n : 3"]).into(),
            14 => {
                let name = self.global(value);
                self.variables.push(Variable { name: name.clone(), number: Number::INT, changes: true });
                name
            }
            15 => {
                self.need("half_of", "__device__ int half_of(int x) { return x / 2; }");
                format!("half_of({})", literal(value.clamp(-1000, 1000) * 2))
            }
            16 => {
                // A bound that moves each time it is asked.
                let name = self.global(value);
                let function = self.name("moving");
                let change = self.random.of(&["+= 1", "-= 1", "= -{}", "^= 1"]).replace("{}", &name);
                self.front.push(line(format!("__device__ int {function}() {{ {name} {change}; return {name}; }}")));
                format!("{function}()")
            }
            17 => format!("p[{}]", self.random.below(12)),
            18 => "sizeof(acc) * 3".into(),
            19 => format!("min(n, {})", literal(value)),
            20 => "*p".into(),
            _ => text,
        }
    }

    /// The condition, with what must be declared in front of it.
    fn condition_of(&mut self, counter: &str, range: &Range, before: &mut Vec<Item>) -> String {
        let relation = match (range.way, self.random.below(20)) {
            (Way::Up, 0..=10) => "<",
            (Way::Up, 11..=13) => "<=",
            (Way::Down, 0..=7) => ">",
            (Way::Down, 8..=13) => ">=",
            (_, 14..=17) => "!=",
            _ => self.random.of(&["<", "<=", ">", ">=", "!=", "=="]),
        };
        let bound = self.bound(range, before);
        let mirrored = match relation {
            "<" => ">",
            "<=" => ">=",
            ">" => "<",
            ">=" => "<=",
            other => other,
        };
        match self.random.below(if self.calm { 18 } else { 24 }) {
            0..=13 => format!("{counter} {relation} {bound}"),
            14..=17 => format!("{bound} {mirrored} {counter}"),
            18 => format!("({counter} {relation} {bound})"),
            19 => {
                let more = self.condition();
                format!("{counter} {relation} {bound} && {more}")
            }
            20 => format!("acc++, {counter} {relation} {bound}"),
            21 => format!("!({counter} {mirrored} {bound})"),
            22 => format!("(int){counter} {relation} {bound}"),
            _ => {
                let changed = self.random.of(&["{} + 1", "{} * 2", "{} - 1", "-{}", "{}++", "++{}"]).replace("{}", counter);
                format!("{changed} {relation} {bound}")
            }
        }
    }

    /// The step, with what must be declared in front of it; empty now and then.
    fn step(&mut self, counter: &str, way: Way, before: &mut Vec<Item>) -> String {
        let (one, sign) = match way {
            Way::Up => ("++", "+"),
            Way::Down => ("--", "-"),
        };
        match self.random.below(if self.calm { 30 } else { 40 }) {
            0..=9 => format!("{one}{counter}"),
            10..=15 => format!("{counter}{one}"),
            16..=19 => format!("{counter} {sign}= {}", self.random.of(&["2", "3", "1", "4u", "16", "2"])),
            20..=22 => {
                let name = self.name("stride");
                let number = Number::any(&mut self.random);
                let value = self.random.of(&[1, 2, 3, 1, 0, -1, 7, 64]).clamp(number.min(), number.max());
                let constant = self.random.percent(40);
                let late = if self.random.percent(50) { " + (b & 0)" } else { "" };
                before.push(line(format!("{}{} {name} = {}{late};", if constant { "const " } else { "" }, number.text, literal(value))));
                self.variables.push(Variable { name: name.clone(), number, changes: !constant });
                format!("{counter} {sign}= {name}")
            }
            23..=25 => format!("{counter} {sign}= s"),
            26 => format!("{counter} {sign}= {}", self.random.of(&["blockDim.x * gridDim.x", "blockDim.x", "gridDim.x * 2"])),
            27 => format!("{counter} = {counter} {sign} {}", self.random.of(&["1", "2", "s"])),
            28 => format!("{counter} {sign}= {}", self.random.of(&["0", "-1", "-2", "0u", "-1u"])),
            29 => format!("{one}{counter}, acc += 3"),
            30 => format!("acc += 5, {one}{counter}"),
            31 => format!("{counter} {}", self.random.of(&["*= 2", "<<= 1", "/= 2", ">>= 1", "^= 1", "%= 5"])),
            32 => format!("{counter} {sign}= p[{}]", self.random.below(4)),
            33 => {
                self.need("half_of", "__device__ int half_of(int x) { return x / 2; }");
                format!("{counter} {sign}= half_of(2)")
            }
            34 => {
                self.need("bump", "template <class T> __device__ void bump(T &x) { ++x; }");
                format!("bump({counter})")
            }
            35 => format!("{counter}{}", self.random.of(&["++", "--"])),
            36 => format!("({counter} {sign}= 1)"),
            37 => "s ^= 1".into(),
            38 => String::new(),
            _ => format!("{one}{counter}"),
        }
    }

    /// What may stand between a loop and what is in front of it.
    pub(super) fn prefix(&mut self, items: &mut Vec<Item>) -> String {
        match self.random.below(30) {
            0 => items.push(line("#pragma unroll")),
            1 => items.push(line("#pragma unroll 4")),
            2 => return "_Pragma(\"unroll 2\") ".into(),
            3 => {
                if self.known.insert("UNROLL") {
                    self.front.push(line("#define UNROLL _Pragma(\"unroll 4\")"));
                    self.macros.push("UNROLL".into());
                }
                return "UNROLL ".into();
            }
            4 => return "/* counted */ ".into(),
            5 => {
                let name = self.name("here");
                return format!("{name}: ");
            }
            _ => {}
        }
        String::new()
    }

    /// A loop over a block's share of something that is small, or seems to be.
    fn shared_for(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let counter = self.name("i");
        let number = self.random.of(&[Number::INT, Number::INT, Number::UNSIGNED, Number::SIZE, Number::UNSIGNED_CHAR]);
        let value = if self.long { self.random.of(&[20, 100, 1000, 4000, 5000]) } else { self.random.below(14) as i128 };
        let start = self.random.of(&["threadIdx.x", "threadIdx.x", "thread", "0"]);
        if start == "thread" {
            items.push(line("const int thread = threadIdx.x;".to_owned()));
        }
        let bound = if self.random.percent(20) { self.define("TILE", &format!(" {value}")) } else { self.name("tile") };
        match self.random.below(4) {
            _ if bound.starts_with("TILE") => {}
            0 | 1 => self.front.push(line(format!("constexpr int {bound} = {value};"))),
            2 => items.push(line(format!("const int {bound} = {value};"))),
            _ => {
                // It is what it seems to be at first only.
                items.push(line(format!("int {bound} = {value};")));
                self.variables.push(Variable { name: bound.clone(), number: Number::INT, changes: true });
            }
        }
        self.variables.push(Variable { name: counter.clone(), number, changes: true });
        let limit = self.random.of(&["{}", "{}", "{} / 2", "{} * 2", "({} + 1)"]).replace("{}", &bound);
        let relation = self.random.of(&["<", "<", "<="]);
        let step = self.random.of(&["blockDim.x", "blockDim.x", "blockDim.y", "2", "0", "n"]);
        let site = self.site();
        let prefix = self.prefix(&mut items);
        let head = format!(
            "{prefix}{}for ({} {counter} = {start}; {counter} {relation} {limit}; {EDGE}{counter} += {step})",
            keyword(site),
            number.text
        );
        items.append(&mut self.finish(head, Some(site), ""));
        vec![block("{", items)]
    }

    fn counted_for(&mut self) -> Vec<Item> {
        if self.random.percent(8) {
            return self.shared_for();
        }
        let range = self.range();
        let mut items = Vec::new();
        let (init, counter) = self.counter(&range, &mut items);
        let number = self.variables.iter().find(|variable| variable.name == counter).map_or(range.number, |variable| variable.number);
        let range = Range { number, ..range };
        let is_float = init.starts_with("float") || init.starts_with("double");
        let (condition, step) = if is_float {
            let patterns = ["++{}", "{} += 1", "{} -= 1", "{} += 2", "{} += 0.5f"];
            (format!("{counter} < {}", self.random.below(12)), self.random.of(&patterns).replace("{}", &counter))
        } else {
            let condition = if self.random.percent(3) { String::new() } else { self.condition_of(&counter, &range, &mut items) };
            let condition = self.and_more(condition);
            (condition, self.step(&counter, range.way, &mut items))
        };
        let edge = if step.is_empty() { LONE_EDGE } else { EDGE };
        let tick = self.random.percent(4);
        let site = self.site();
        // The tick may be all that the condition or the step has beside it: then the body may be anything, even empty.
        let ticked = self.tick(site);
        let condition = if tick { format!("{ticked}{}{condition}", if condition.is_empty() { "" } else { " && " }) } else { condition };
        let comment = self.random.of(&["", "", "", "", "", "", "", "", "/* , */ ", "\n      "]);
        let prefix = self.prefix(&mut items);
        let head = format!("{prefix}{}for ({init}; {comment}{condition}; {edge}{step})", keyword(site));
        items.append(&mut self.finish(head, (!tick).then_some(site), ""));
        // A counter from before the loop is still there behind it.
        if init.is_empty() || init.starts_with(&format!("{counter} =")) {
            items.push(self.put(&counter));
        }
        items
    }

    /// A condition of which the relation is the first part only: the rest is asked once an iteration, whatever it does.
    fn and_more(&mut self, condition: String) -> String {
        let is_plain = !condition.is_empty() && !condition.contains([',', '?', '|']);
        if !is_plain || !self.random.percent(15) {
            return condition;
        }
        let more = self.random.of(&[
            "acc % 7u != 3u",
            "(acc & 12u) != 4u && acc != 9u",
            "(acc += 5u) % 11u != 4u",
            "(p[3] += 1) % 9 != 8",
            "n != 77",
        ]);
        format!("{condition} && {more}")
    }

    /// The counter of a `for`: what its header begins with, and the counter's name. Over 80 lines: an arm for each way to write it.
    fn counter(&mut self, range: &Range, items: &mut Vec<Item>) -> (String, String) {
        let name = self.name("i");
        let type_ = range.number.text;
        let start = match self.random.below(12) {
            0 => {
                self.random.of(&["n", "u", "w", "b", "-s", "n - 4", "threadIdx.x", "p[2]", "blockIdx.x * blockDim.x + threadIdx.x"]).into()
            }
            _ if self.calm && self.random.percent(30) => format!("{} + (b & 0)", literal(range.start)),
            _ => literal(range.start),
        };
        let style = if self.calm && self.random.percent(80) { 23 } else { self.random.below(24) };
        match style {
            0 | 1 => {
                items.push(line(format!("{type_} {name} = {start};")));
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                (String::new(), name)
            }
            2 | 3 => {
                items.push(line(format!("{type_} {name};")));
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                (format!("{name} = {start}"), name)
            }
            4 => {
                let global = self.global(0);
                self.variables.push(Variable { name: global.clone(), number: Number::INT, changes: true });
                (format!("{global} = {start}"), global)
            }
            5 => {
                self.need("box", "struct Box { long long wide; int n; unsigned long long most; };");
                items.push(line(format!("Box {name} = {{}};")));
                let member = format!("{name}.{}", self.random.of(&["n", "wide", "most"]));
                let number = match &member[name.len() + 1..] {
                    "n" => Number::INT,
                    "wide" => Number::LONG_LONG,
                    _ => Number { text: "unsigned long long", bits: 64, signed: false },
                };
                self.variables.push(Variable { name: member.clone(), number, changes: true });
                (format!("{member} = {start}"), member)
            }
            6 => {
                items.push(line(format!("{type_} {name}_ = {start}, &{name} = {name}_;")));
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                self.variables.push(Variable { name: format!("{name}_"), number: range.number, changes: true });
                (String::new(), name)
            }
            7 => {
                items.push(line(format!("volatile {type_} {name} = {start};")));
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                (String::new(), name)
            }
            8 => {
                let other = self.name("j");
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                self.variables.push(Variable { name: other.clone(), number: range.number, changes: true });
                (format!("{type_} {name} = {start}, {other} = 0"), name)
            }
            9 => {
                let alias = self.name("index");
                let text = if self.random.percent(50) { format!("using {alias} = {type_};") } else { format!("typedef {type_} {alias};") };
                self.front.push(line(text));
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                (format!("{alias} {name} = {start}"), name)
            }
            10 if range.number.bits >= 32 => {
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                (format!("auto {name} = ({type_}){start}"), name)
            }
            11 => {
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                let init = self.random.of(&["{t} {i}({s})", "{t} {i} = ({t})({s})", "{t} {i} = static_cast<{t}>({s})"]);
                (init.replace("{t}", type_).replace("{i}", &name).replace("{s}", &start), name)
            }
            12 if range.start.unsigned_abs() < 1000 => {
                let float = self.random.of(&["float", "double"]);
                // It is in nobody's sight: integers' operators do not fit it.
                (format!("{float} {name} = {}", literal(range.start)), name)
            }
            _ => {
                self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
                (format!("{type_} {name} = {start}"), name)
            }
        }
    }

    /// The body of a loop behind its head. With a site it begins with a tick; a loop whose head ticks has none. `edge` is what stands behind
    /// the body's brace, or around a bare body.
    pub(super) fn finish(&mut self, head: String, site: Option<usize>, edge: &str) -> Vec<Item> {
        let bare = edge.is_empty() && self.random.percent(25);
        let tick = site.map(|site| self.tick(site));
        self.loops.push(Around { continues: true, way_out: None });
        if bare {
            let body = self.bare(tick);
            return self.behind(vec![Item::Block { head, body, tail: String::new() }]);
        }
        let mut body: Vec<Item> = tick.map(|tick| line(format!("{tick};"))).into_iter().collect();
        let mut more = self.scope(|generator| {
            let count = generator.random.below(4);
            let mut items = Vec::new();
            for _ in 0..=count {
                items.append(&mut generator.statement());
            }
            items
        });
        body.append(&mut more);
        self.behind(vec![block(format!("{head} {{{edge}"), body)])
    }

    /// The loop that was opened last, with the label behind it that something jumps to.
    pub(super) fn behind(&mut self, mut loop_: Vec<Item>) -> Vec<Item> {
        let Some(label) = self.loops.pop().and_then(|around| around.way_out) else { return loop_ };
        loop_.push(line(format!("{label}: ;")));
        vec![block("{", loop_)]
    }

    /// One statement as a body: it ticks, or the head of its loop does.
    fn bare(&mut self, tick: Option<String>) -> Vec<Item> {
        let value = self.value();
        let put = self.put_text(&value);
        match (tick, self.random.below(6)) {
            (Some(tick), 0 | 1) => vec![line(format!("{tick}, {put};"))],
            (Some(tick), 2) => vec![line(format!("if ({tick} && {}) {put};", self.condition()))],
            (Some(tick), 3) => vec![line(format!("if (!{tick} || {}) break;", self.condition()))],
            (Some(tick), 4) => {
                let inner = self.scope(Self::one_loop);
                vec![Item::Block { head: format!("if ({tick})"), body: inner, tail: String::new() }]
            }
            (Some(tick), _) => {
                let other = self.put_text("acc");
                vec![line(format!("if ({tick} && {}) {put}; else {other};", self.condition()))]
            }
            (None, 0) => vec![line(";")],
            (None, _) => vec![line(format!("{put};"))],
        }
    }

    /// A loop that is one statement.
    fn one_loop(&mut self) -> Vec<Item> {
        let items = self.loop_();
        if items.len() == 1 { items } else { vec![block("{", items)] }
    }

    /// `while` and `do` with a counter that a person sees at once.
    fn counted_while(&mut self) -> Vec<Item> {
        let range = self.range();
        let mut items = Vec::new();
        let name = self.name("i");
        items.push(line(format!("{} {name} = {};", range.number.text, literal(range.start))));
        self.variables.push(Variable { name: name.clone(), number: range.number, changes: true });
        let condition = self.condition_of(&name, &range, &mut items);
        let condition = self.and_more(condition);
        let step = self.step(&name, range.way, &mut items);
        let step = if step.is_empty() { format!("{name} += 1") } else { step };
        // At most one step an iteration.
        let step = if self.random.percent(12) { format!("if (acc % 3u != 1u) {step}") } else { step };
        let first = self.random.percent(30);
        let site = self.site();
        let tick = self.tick(site);
        let prefix = self.prefix(&mut items);
        let is_do = self.random.percent(25);
        let declares = is_do && self.random.percent(30);
        self.loops.push(Around { continues: first || is_do, way_out: None });
        let mut inside = self.scope(|generator| {
            let mut inside = Vec::new();
            for _ in 0..=generator.random.below(3) {
                inside.append(&mut generator.statement());
            }
            inside
        });
        let mut body = vec![line(format!("{tick};"))];
        if declares {
            // Not in sight of the condition.
            body.push(line(format!("int {name}_inside = 3;")));
        }
        let step = line(format!("{step};"));
        if first {
            body.push(step);
            body.append(&mut inside);
        } else {
            body.append(&mut inside);
            body.push(step);
        }
        let loop_ = vec![if is_do {
            let head = format!("{prefix}{}do {{{EDGE_STATEMENT}", keyword(site));
            Item::Block { head, body, tail: format!("}} while ({condition});") }
        } else {
            block(format!("{prefix}{}while ({condition}) {{{EDGE_STATEMENT}", keyword(site)), body)
        }];
        items.append(&mut self.behind(loop_));
        items.push(self.put(&name));
        items
    }
}
