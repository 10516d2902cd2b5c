//! Statements and expressions: what a loop's body may do to the loop, and what only looks as if it did.

use super::super::program::Item;
use super::number::Number;
use super::{ARGUMENTS, Generator, Variable, block, line};

impl Generator {
    /// A name in sight, of a variable that may be changed.
    fn changeable(&mut self) -> Option<Variable> {
        let some: Vec<&Variable> = self.variables.iter().filter(|variable| variable.changes).collect();
        if some.is_empty() {
            return None;
        }
        // What was declared last is most likely to decide the loop at hand.
        let last = some.len().saturating_sub(4);
        let at = if self.random.percent(70) { last + self.random.below(some.len() - last) } else { self.random.below(some.len()) };
        Some(some[at].clone())
    }

    /// An integer.
    pub(super) fn value(&mut self) -> String {
        if self.variables.is_empty() {
            return "acc".into();
        }
        let last = self.variables.len().saturating_sub(5);
        let at = if self.random.percent(80) {
            last + self.random.below(self.variables.len() - last)
        } else {
            self.random.below(self.variables.len())
        };
        let name = self.variables[at].name.clone();
        match self.random.below(12) {
            0..=5 => name,
            6 => format!("({name} & 7)"),
            7 => format!("p[{name} & 15]"),
            8 => format!("({name} ^ 5)"),
            9 => format!("(int)({name} + 1u)"),
            10 => self.random.below(9).to_string(),
            _ => "acc".into(),
        }
    }

    /// Something that is true now and then.
    pub(super) fn condition(&mut self) -> String {
        let value = self.value();
        match self.random.below(8) {
            0 | 1 => format!("({value} & 3) == {}", self.random.below(4)),
            2 => format!("{value} > {}", self.random.below(12)),
            3 => format!("{value} == {}", self.random.below(8)),
            4 => format!("acc % {}u == 0u", 2 + self.random.below(6)),
            5 => format!("p[{value} & 15] > {}", self.random.below(20)),
            6 => format!("(acc ^ (unsigned int){value}) & {}u", 1 << self.random.below(3)),
            _ => format!("{value} != {}", self.random.below(9)),
        }
    }

    /// One statement; a few where it needs company.
    pub(super) fn statement(&mut self) -> Vec<Item> {
        self.room = self.room.saturating_sub(1);
        if self.room == 0 {
            let value = self.value();
            return vec![self.put(&value)];
        }
        let value = self.value();
        if self.long && self.loops.len() == 1 && self.random.percent(40) {
            return self.loop_();
        }
        let choice = self.random.below(100);
        // What would keep an analysis from vouching for the loop: changes, and what might hide them.
        let odd = matches!(choice, 59..=70 | 82..=91 | 94 | 95);
        match if odd && self.calm && self.random.percent(95) { 0 } else { choice } {
            0..=15 => vec![self.put(&value)],
            16..=25 => vec![line(format!("acc = acc * 31u + (unsigned int){value};"))],
            26..=28 => vec![line(format!("p[{value} & 15] = (int)(acc & 31u);"))],
            29..=48 => self.loop_(),
            49..=58 => self.jump(),
            59..=70 => self.change(),
            71..=77 => self.if_(),
            78..=81 => self.switch(),
            82..=84 => self.shadow(),
            85..=87 => self.lambda(),
            88..=90 => self.call(),
            91 => vec![line(format!("atomicAdd(p + ({value} & 15), 1);"))],
            92..=93 => self.local(),
            94 => self.arms(),
            95 => self.guard(),
            _ => vec![self.put(&value)],
        }
    }

    fn local(&mut self) -> Vec<Item> {
        let name = self.name("x");
        let value = self.value();
        let number = Number::any(&mut self.random);
        let item = line(format!("{} {name} = ({}){value};", number.text, number.text));
        self.variables.push(Variable { name, number, changes: true });
        vec![item]
    }

    /// Leaves a round, a loop, a nest or the function.
    fn jump(&mut self) -> Vec<Item> {
        let condition = self.condition();
        let Some(innermost) = self.loops.last() else {
            return vec![line(format!("if ({condition}) acc += 9u;"))];
        };
        let continues = innermost.continues;
        match self.random.below(12) {
            0..=4 => vec![line(format!("if ({condition}) break;"))],
            5..=8 if continues => vec![line(format!("if ({condition}) continue;"))],
            9 => vec![line(format!("if ({condition}) {}", self.leave))],
            10 if !self.barred => {
                // Out of several loops at once.
                let at = self.random.below(self.loops.len());
                let label = self.loops[at].way_out.clone().unwrap_or_else(|| self.name("out"));
                self.loops[at].way_out = Some(label.clone());
                vec![line(format!("if ({condition}) goto {label};"))]
            }
            11 if !self.barred => {
                let label = self.name("behind");
                let (first, second) = (self.put("acc"), self.put("s"));
                vec![block("{", vec![line(format!("if ({condition}) goto {label};")), first, line(format!("{label}:")), second])]
            }
            _ => vec![line(format!("if ({condition}) {{ acc ^= 3u; break; }}"))],
        }
    }

    /// Changes a variable that may decide a loop, in ways that are easy and hard to see.
    fn change(&mut self) -> Vec<Item> {
        let Some(Variable { name, number, .. }) = self.changeable() else {
            return vec![self.put("acc")];
        };
        let plain = number.text;
        let change = match self.random.below(30) {
            0..=3 => format!("++{name};"),
            4 | 5 => format!("{name} += 2;"),
            6 | 7 => format!("{name} -= 1;"),
            8 => format!("{name} = ({plain}){};", self.value()),
            9 => format!("{name} = 0;"),
            10 => format!("{name} ^= 1;"),
            11 => format!("{{ auto &alias = {name}; alias += 1; }}"),
            12 => format!("{{ auto *address = &{name}; *address += 1; }}"),
            13 => format!("({name})++;"),
            14 => {
                self.need("bump", "template <class T> __device__ void bump(T &x) { ++x; }");
                format!("bump({name});")
            }
            15 => format!("[&] {{ ++{name}; }}();"),
            16 if !name.contains('.') && !name.starts_with("global") => format!("[&{name}](int by) {{ {name} += by; }}(1);"),
            17 => {
                let other = self.define("AGAIN_", &format!(" {name} += 1"));
                format!("{other};")
            }
            18 => {
                let other = self.define("TWICE_", "(x) (x) += 2");
                format!("{other}({name});")
            }
            19 => format!("acc += (unsigned int){name}++;"),
            20 => format!("p[{name} & 7] = (int)({name} += 1) & 15;"),
            21 => format!("acc += sizeof({name}++);"),
            22 => format!("*&{name} -= 1;"),
            23 => format!("if (({name} = ({plain})({name} + 1)) == 3) acc ^= 5u;"),
            24 => format!("static_cast<void>(--{name});"),
            25 => format!("{name} = {name};"),
            // Reads that look like changes.
            26 => format!("acc += (unsigned int)-{name};"),
            27 => format!("acc += (unsigned int)({name} == 3);"),
            28 => format!("{{ auto copy = {name}; copy += 4; acc += (unsigned int)copy; }}"),
            _ => format!("[=]() mutable {{ return {name}; }}();"),
        };
        let captures_member = change.starts_with("[=]") && name.contains('.');
        if captures_member {
            return vec![self.put(&name)];
        }
        if self.random.percent(45) {
            let condition = self.condition();
            vec![line(format!("if ({condition}) {{ {change} }}"))]
        } else {
            vec![line(change)]
        }
    }

    fn if_(&mut self) -> Vec<Item> {
        let condition = self.condition();
        let then = self.one_statement();
        let mut items = vec![Item::Block { head: format!("if ({condition})"), body: then, tail: String::new() }];
        if self.random.percent(40) {
            // An `else` after a bare body might find another `if`.
            let Some(Item::Block { body, .. }) = items.pop() else { return Vec::new() };
            items.push(block(format!("if ({condition}) {{"), body));
            let other = self.one_statement();
            items.push(Item::Block { head: "else".into(), body: other, tail: String::new() });
            return vec![block("{", items)];
        }
        items
    }

    fn switch(&mut self) -> Vec<Item> {
        let value = self.value();
        let mut body = Vec::new();
        for case in 0..=self.random.below(3) {
            body.push(line(format!("case {case}:")));
            let mut inside = self.scope(Self::statement);
            // What declares needs braces of its own.
            body.append(&mut if inside.len() == 1 { inside } else { vec![block("{", std::mem::take(&mut inside))] });
            let continues = self.loops.last().is_some_and(|around| around.continues);
            match self.random.below(4) {
                0 | 1 => body.push(line("break;")),
                2 if continues => body.push(line("continue;")),
                _ => {}
            }
        }
        body.push(line("default: acc += 1u;"));
        let body = body.into_iter().map(|item| if declares(&item) { block("{", vec![item]) } else { item }).collect();
        vec![block(format!("switch ((int){value} & 3) {{"), body)]
    }

    /// A variable of the same name as one outside.
    fn shadow(&mut self) -> Vec<Item> {
        let Some(Variable { name, .. }) = self.changeable() else { return self.local() };
        if name.contains('.') || name.starts_with("global") {
            return self.local();
        }
        let put = self.put(&name);
        let inside = vec![line(format!("unsigned int {name} = acc & 15u;")), line(format!("{name} += 3u;")), put];
        vec![block("{", inside)]
    }

    /// A function in the middle, which may hold loops and see what is around it.
    fn lambda(&mut self) -> Vec<Item> {
        self.single = false;
        let name = self.name("local");
        let (captures, mutable) = self.random.of(&[("[&]", ""), ("[&]", ""), ("[=, &acc]", " mutable")]);
        let variables = self.variables.clone();
        let loops = std::mem::take(&mut self.loops);
        let leave = std::mem::replace(&mut self.leave, "return;");
        let barred = std::mem::replace(&mut self.barred, true);
        self.variables.push(Variable { name: "m".into(), number: Number::INT, changes: true });
        let before = self.begin.len();
        let body = self.scope(|generator| {
            let mut items = generator.statement();
            items.append(&mut generator.statement());
            items
        });
        debug_assert!(self.begin.len() >= before);
        (self.variables, self.loops, self.leave, self.barred) = (variables, loops, leave, barred);
        let value = self.value();
        vec![block(
            "{",
            vec![
                Item::Block { head: format!("auto {name} = {captures}(int m){mutable} {{"), body, tail: "};".into() },
                line(format!("{name}((int){value});")),
            ],
        )]
    }

    fn call(&mut self) -> Vec<Item> {
        let value = self.value();
        match self.random.below(5) {
            0 => {
                self.need(
                    "triangle",
                    &format!(
                        "__host__ __device__ constexpr int triangle(int m) {{ int sum = 0; for (int j = 0; j < m; {}++j) sum += j; return sum; }}",
                        super::super::program::EDGE
                    ),
                );
                self.need("triangle_4", "static_assert(triangle(4) == 6, \"a loop that the compiler runs\");");
                self.single = false;
                vec![line(format!("acc += (unsigned int)triangle((int)({value} & 15));"))]
            }
            1 | 2 if self.front.len() < 16 && self.loops.len() < 3 => {
                let call = self.worker(&value);
                vec![line(call)]
            }
            3 if self.front.len() < 16 => {
                let name = self.recursion();
                vec![line(format!("acc = {name}((int)({value} & 7), {ARGUMENTS});"))]
            }
            _ => {
                self.need("half_of", "__device__ int half_of(int x) { return x / 2; }");
                vec![line(format!("acc += (unsigned int)half_of((int){value});"))]
            }
        }
    }

    /// A part of the text that the preprocessor decides about.
    fn arms(&mut self) -> Vec<Item> {
        let (first, second) = (self.put("acc"), self.put("s"));
        vec![line(self.random.of(&["#if 1", "#ifdef __cplusplus", "#if 0"])), first, line("#else"), second, line("#endif")]
    }

    /// An object whose end has a side effect.
    fn guard(&mut self) -> Vec<Item> {
        self.need("Guard", "struct Guard { unsigned int &acc; __device__ ~Guard() { acc = acc * 7u + 1u; } };");
        let name = self.name("guard");
        let mut items = vec![line(format!("Guard {name}{{acc}};"))];
        items.append(&mut self.scope(Self::statement));
        vec![block("{", items)]
    }
}

/// Whether a line declares a variable, as far as the generator's own spellings go.
fn declares(item: &Item) -> bool {
    matches!(item, Item::Line(text) if text.split(['=', '(']).next().is_some_and(|head| head.trim().contains(' ')) && text.contains(" = "))
}
