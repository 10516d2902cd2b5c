//! Random programs: nests of loops of every kind, with what could trip an analysis in their headers, bodies and neighbourhood.
//!
//! Each way round any loop passes a tick, so that a program which never ends is cut after its budget of iterations.

mod body;
mod constant;
mod loops;
mod nest;
mod number;
mod stride;
mod walk;

use super::program::{EDGE_STATEMENT, Item, Program};
use cuinstr_harness::random::Random;
use number::Number;
use std::collections::BTreeSet;

/// Deepest nest of loops.
const DEEPEST: usize = 4;

/// What every function takes from the kernel's own parameters, and what it is given.
const PARAMETERS: &str = "int n, unsigned int u, long long w, int s, unsigned char b, unsigned int acc, int *p";
const ARGUMENTS: &str = "n, u, w, s, b, acc, p";

/// The program of a seed.
#[must_use]
pub fn program(seed: u64) -> Program {
    // Loops that are told to be long by their header alone come with some seeds; all other seeds keep their programs.
    let told = match seed % 16 {
        5 => Some(Told::Constant),
        11 => Some(Told::Stride),
        _ => None,
    };
    let mut random = Random::new(seed);
    let long = random.percent(6);
    let room = if long { 3 + random.below(6) } else { 4 + random.below(14) };
    let calm = random.percent(50);
    let hooks = match random.below(if calm { 14 } else { 7 }) {
        0 if told.is_none() => Hooks::Unknown,
        1 => Hooks::Declared,
        _ => Hooks::Cuda,
    };
    let mut generator = Generator {
        random,
        calm,
        hooks,
        long,
        room,
        front: Vec::new(),
        known: BTreeSet::new(),
        macros: Vec::new(),
        begin: Vec::new(),
        variables: Vec::new(),
        sites: 0,
        names: 0,
        loops: Vec::new(),
        leave: "return;",
        single: true,
        recursive: false,
        barred: false,
    };
    if hooks == Hooks::Declared {
        generator.need("beat", "__device__ bool beat(int site) { return __stwt(site, 0); }");
    }
    let kernel = generator.kernel(told);
    let mut items = generator.front;
    items.push(kernel);
    let budget = match told {
        _ if generator.recursive => 700,
        _ if generator.long => 300_000,
        Some(_) => 30_000,
        None => 700,
    };
    Program { seed, items, budget, sites: generator.sites, single: generator.single, macros: generator.macros }
}

/// What iterations and side effects are spelled with: functions of CUDA's own, which the rewriter knows to be harmless, functions of
/// nobody it knows, or one that the file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    Cuda,
    Unknown,
    Declared,
}

/// A loop that a kernel begins with, whose header tells that it is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// From constant to constant.
    Constant,
    /// By a stride that only the run tells.
    Stride,
}

/// A variable in sight.
#[derive(Debug, Clone)]
struct Variable {
    name: String,
    number: Number,
    /// Whether statements may change it.
    changes: bool,
}

/// A loop around the statement that is being made.
#[derive(Debug, Clone)]
struct Around {
    /// Whether `continue` passes a tick or the loop's end before long.
    continues: bool,
    /// A name for the label behind it, once something jumps there.
    way_out: Option<String>,
}

struct Generator {
    random: Random,
    /// Whether bodies leave counters and bounds alone, so that an analysis may say so and a cheaper form is taken.
    calm: bool,
    hooks: Hooks,
    long: bool,
    /// Statements that may still be made.
    room: usize,
    /// What stands in front of the kernel.
    front: Vec<Item>,
    /// Names in front that are there already.
    known: BTreeSet<&'static str>,
    macros: Vec<String>,
    /// What the kernel begins with.
    begin: Vec<Item>,
    variables: Vec<Variable>,
    sites: usize,
    names: usize,
    loops: Vec<Around>,
    /// How the function at hand is left.
    leave: &'static str,
    single: bool,
    recursive: bool,
    /// Whether no `goto` may leave: the function at hand is a lambda.
    barred: bool,
}

fn line(text: impl Into<String>) -> Item {
    Item::Line(text.into())
}

fn block(head: impl Into<String>, body: Vec<Item>) -> Item {
    Item::Block { head: head.into(), body, tail: "}".into() }
}

impl Generator {
    fn kernel(&mut self, told: Option<Told>) -> Item {
        self.parameters();
        let before = self.variables.len();
        let mut body = match told {
            Some(Told::Constant) => self.constant(),
            Some(Told::Stride) => self.stride(),
            None => Vec::new(),
        };
        if told.is_some() {
            self.variables.truncate(before);
            body = vec![block("{", body)];
        }
        if self.random.percent(12) {
            body.append(&mut self.nest());
        }
        let first = self.random.percent(90);
        if first {
            body.append(&mut self.loop_());
        }
        while self.room > 0 {
            body.append(&mut self.statement());
        }
        body.push(self.put("acc"));
        let mut all = vec![line("unsigned int acc = u;")];
        all.append(&mut self.begin);
        all.append(&mut body);
        block("__global__ void k(int n, unsigned int u, long long w, int s, unsigned char b, int *p) {", all)
    }

    fn parameters(&mut self) {
        for (name, number) in
            [("n", Number::INT), ("u", Number::UNSIGNED), ("w", Number::LONG_LONG), ("s", Number::INT), ("b", Number::UNSIGNED_CHAR)]
        {
            self.variables.push(Variable { name: name.into(), number, changes: !self.calm && self.random.percent(50) });
        }
    }

    /// Puts a definition in front, once.
    fn need(&mut self, name: &'static str, text: &str) {
        if self.known.insert(name) {
            self.front.push(line(text));
        }
    }

    /// A macro in front, under a new name.
    fn define(&mut self, prefix: &str, rest: &str) -> String {
        let name = self.name(prefix);
        self.front.push(line(format!("#define {name}{rest}")));
        self.macros.push(name.clone());
        name
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn site(&mut self) -> usize {
        self.sites += 1;
        self.sites - 1
    }

    /// The call that an iteration makes: true, of type `bool`.
    fn tick(&self, site: usize) -> String {
        match self.hooks {
            Hooks::Cuda => format!("__stwt({site}, 0)"),
            Hooks::Unknown => format!("tick({site})"),
            Hooks::Declared => format!("beat({site})"),
        }
    }

    /// A side effect that shows a value.
    fn put(&mut self, value: &str) -> Item {
        let text = self.put_text(value);
        line(format!("{text};"))
    }

    fn put_text(&mut self, value: &str) -> String {
        self.names += 1;
        let place = self.names;
        let name = if self.hooks == Hooks::Unknown { "put" } else { "__stcg" };
        format!("{name}({place}, {value})")
    }

    /// A global variable, set at the kernel's beginning.
    fn global(&mut self, value: i128) -> String {
        let name = self.name("global");
        self.front.push(line(format!("__device__ int {name};")));
        self.begin.push(line(format!("{name} = {};", value.clamp(-1000, 1000))));
        name
    }

    /// Makes statements in a scope of their own.
    fn scope(&mut self, make: impl FnOnce(&mut Self) -> Vec<Item>) -> Vec<Item> {
        let before = self.variables.len();
        let items = make(self);
        self.variables.truncate(before);
        items
    }

    /// Makes a function's body: nothing outside is in sight but parameters.
    fn function(&mut self, leave: &'static str, m: Number, statements: usize) -> Vec<Item> {
        let outside = std::mem::take(&mut self.variables);
        let loops = std::mem::take(&mut self.loops);
        let (leave, barred) = (std::mem::replace(&mut self.leave, leave), std::mem::replace(&mut self.barred, false));
        self.parameters();
        self.variables.push(Variable { name: "m".into(), number: m, changes: true });
        let room = std::mem::replace(&mut self.room, statements);
        let mut body = Vec::new();
        while self.room > 0 {
            body.append(&mut self.statement());
        }
        (self.room, self.leave, self.barred) = (room, leave, barred);
        (self.variables, self.loops) = (outside, loops);
        body
    }

    /// A function with loops of its own, in one of several spellings, and a call of it.
    fn worker(&mut self, value: &str) -> String {
        self.single = false;
        let name = self.name("work");
        let statements = 2 + self.random.below(4);
        let number = self.random.of(&[Number::INT, Number::INT, Number::UNSIGNED, Number::UNSIGNED_CHAR]);
        let mut body = Vec::new();
        let style = self.random.below(6);
        body.append(&mut self.function("return acc;", number, statements));
        body.push(line("return acc;"));
        let spelled = number.text;
        let list = format!("({spelled} m, {PARAMETERS})");
        let head = match style {
            0 => format!("__device__ __noinline__ unsigned int {name}{list} {{"),
            1 => format!("__host__ __device__ unsigned int {name}{list} {{"),
            2 => format!("template <class T> __device__ unsigned int {name}(T m, {PARAMETERS}) {{"),
            3 => {
                // By a name of its own: methods of one name count as one that may call itself.
                let method = block(format!("__device__ unsigned int run_{name}{list} {{"), body);
                let tail = "};".to_owned();
                self.front.push(Item::Block { head: format!("struct {name} {{"), body: vec![method], tail });
                return format!("acc = {name}().run_{name}(({spelled}){value}, {ARGUMENTS});");
            }
            _ => format!("__device__ unsigned int {name}{list} {{"),
        };
        self.front.push(block(head, body));
        format!("acc = {name}(({spelled}){value}, {ARGUMENTS});")
    }

    /// A function that calls itself; each call is an edge.
    fn recursion(&mut self) -> String {
        (self.single, self.recursive) = (false, true);
        let name = self.name("fall");
        let site = self.site();
        let mut body = vec![line(format!("{};", self.tick(site)))];
        body.append(&mut self.function("return acc;", Number::INT, 2));
        let next = self.random.of(&["m - 1", "m - 1", "m / 2", "m - s"]);
        let end = self.random.of(&["m <= 0", "m == 0", "m < 1"]);
        body.push(line(format!("return {end} ? acc : {name}({next}, n, u, w, s, b, acc * 31u + 1u, p);")));
        let head = format!("__device__ unsigned int {name}(int m, {PARAMETERS}) {{{EDGE_STATEMENT}");
        self.front.push(block(head, body));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Mode;
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_program() {
        let texts: Vec<_> = (0..50).map(|seed| program(seed).text(Mode::Plain)).collect();
        assert_eq!(texts, (0..50).map(|seed| program(seed).text(Mode::Plain)).collect::<Vec<_>>());
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len());
    }
}
