//! Loops that do not count: over pointers, iterators and arrays, while something holds, by jumping back, and loops that macros bring.

use super::super::program::{CLOSE, EDGE, EDGE_STATEMENT, Item, LONE_EDGE, OPEN, keyword};
use super::number::{Number, literal};
use super::{Around, Generator, Variable, block, line};

/// An iterator of the user's, whose operators do more than they say.
const ITERATOR: &str = "struct Walk { int at; int stride; \
    __device__ Walk &operator++() { at += stride; return *this; } \
    __device__ Walk operator++(int) { Walk before = *this; at += stride; return before; } \
    __device__ Walk &operator+=(int by) { at += by * stride; return *this; } \
    __device__ bool operator!=(const Walk &other) const { return at < other.at; } \
    __device__ bool operator<(const Walk &other) const { return at < other.at; } \
    __device__ int operator-(const Walk &other) const { return at - other.at; } \
    __device__ int operator*() const { return at; } };";

/// A range of the user's.
const RANGE: &str = "struct Range { int from; int to; \
    __device__ Walk begin() const { return Walk{from, 1}; } __device__ Walk end() const { return Walk{to, 1}; } };";

impl Generator {
    /// A loop over a pointer or an iterator.
    pub(super) fn walk(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let name = self.name("at");
        let site = self.site();
        let prefix = self.prefix(&mut items);
        let keyword = keyword(site);
        let head = if self.random.percent(60) {
            let type_ = self.random.of(&["int *", "const int *", "auto *", "auto "]);
            let bound = self.random.of(&["p + 16", "p + (n & 31)", "&p[b & 15]", "p + 8", "p", "last"]);
            let step = self.random.of(&["++{}", "{}++", "{} += 2", "{} += 3", "{} += s", "{} = {} + 1", "--{}", "{} -= 1", "++{}, ++acc"]);
            let relation =
                self.random.of(&["{} < {end}", "{} != {end}", "{end} != {}", "{end} > {}", "{} <= {end}", "{} - p < 12", "{} > {end}"]);
            let start = self.random.of(&["p", "p", "p", "p + 3", "p + 12"]);
            let declares = bound == "last" && type_.ends_with('*');
            let more = if declares { ", *last = p + 16" } else { "" };
            let bound = if declares || bound != "last" { bound } else { "p + 16" };
            let last = self.name("last");
            let bound = if self.calm && self.random.percent(60) {
                items.insert(0, line(format!("const int *{last} = {};", if declares { "p + 16" } else { bound })));
                last.as_str()
            } else {
                bound
            };
            let condition = relation.replace("{end}", bound).replace("{}", &name);
            let step = step.replace("{}", &name);
            format!("{prefix}{keyword}for ({type_}{name} = {start}{more}; {condition}; {EDGE}{step})")
        } else {
            self.need("Walk", ITERATOR);
            let start = self.random.of(&["Walk{0, 1}", "Walk{0, 2}", "Walk{3, s}", "Walk{9, -1}", "Walk{0, 0}"]);
            let condition = self.random.of(&["{} != Walk{n, 0}", "{} < Walk{12, 0}", "*{} < n", "Walk{8, 1} - {} > 0"]);
            let step = self.random.of(&["++{}", "{}++", "{} += 1", "{} += s", "++{}, ++acc"]);
            let type_ = self.random.of(&["Walk", "auto"]);
            format!(
                "{prefix}{keyword}for ({type_} {name} = {start}; {}; {EDGE}{})",
                condition.replace("{}", &name),
                step.replace("{}", &name)
            )
        };
        let read = if head.contains("Walk") {
            format!("acc = acc * 31u + (unsigned int)*{name};")
        } else {
            // A pointer that goes astray is not followed.
            format!("acc = acc * 31u + (unsigned int)({name} - p) + ({name} >= p && {name} < p + 64 ? (unsigned int)*{name} : 0u);")
        };
        let tick = self.tick(site);
        if self.random.percent(20) {
            items.push(Item::Block { head, body: vec![line(format!("{tick}, {read}"))], tail: String::new() });
            return items;
        }
        self.loops.push(Around { continues: true, way_out: None });
        let mut body = vec![line(format!("{tick};")), line(read)];
        if !head.contains("Walk") && !head.contains("const int *") && self.random.percent(40) {
            let write = self.random.of(&["*{} = (int)(acc & 7u)", "*{} += 3", "{}[0] ^= 5", "(*{})++", "++*{}"]).replace("{}", &name);
            body.push(line(format!("if ({name} >= p && {name} < p + 64) {write};")));
        }
        body.append(&mut self.scope(Self::statement));
        self.close_loop(block(format!("{head} {{"), body), &mut items);
        items
    }

    fn close_loop(&mut self, loop_: Item, items: &mut Vec<Item>) {
        items.append(&mut self.behind(vec![loop_]));
    }

    /// A condition that ends sooner or later, perhaps, and may have side effects; with what must be declared in front of it.
    fn open_condition(&mut self, before: &mut Vec<Item>) -> String {
        let number = Number::any(&mut self.random);
        let name = self.name("left");
        let value = if self.long { 90_000.min(number.max()) } else { self.random.below(12) as i128 };
        match self.random.below(16) {
            choice @ 0..=7 => {
                before.push(line(format!("{} {name} = {};", number.text, literal(value))));
                self.variables.push(Variable { name: name.clone(), number, changes: true });
                let patterns = ["{}--", "{}-- > 0", "--{} > 0", "{}-- != 0", "{} && {}--", "0 < {}--", "{} -= 1", "--{}"];
                patterns[choice].replace("{}", &name)
            }
            8 => {
                before.push(line(format!("int *{name} = p;")));
                format!("{name} < p + 60 && *{name}++")
            }
            9 => {
                self.need("next", "__device__ bool next(int &left) { left -= 1; return left > 0; }");
                before.push(line(format!("int {name} = {value};")));
                self.variables.push(Variable { name: name.clone(), number: Number::INT, changes: true });
                format!("next({name})")
            }
            10 => {
                before.push(line(format!("unsigned int {name} = acc | 1u;")));
                format!("({name} >>= 1) != 0u")
            }
            11 => {
                before.push(line(format!("unsigned int {name} = acc % 97u + 2u;")));
                format!("({name} = {name} % 2u ? 3u * {name} + 1u : {name} / 2u) > 1u")
            }
            12 => {
                before.push(line(format!("int {name} = {value};")));
                self.variables.push(Variable { name: name.clone(), number: Number::INT, changes: true });
                format!("acc += 7u, {name}-- > 0 || acc % 3u == 0u")
            }
            13 => "true".into(),
            14 => "1".into(),
            _ => {
                before.push(line(format!("bool {name} = true;")));
                let condition = self.condition();
                format!("{name} && ({name} = {condition}, true)")
            }
        }
    }

    /// `while`, or a `for` without a counter.
    pub(super) fn open_while(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let site = self.site();
        let tick = self.tick(site);
        let keyword = keyword(site);
        let condition = self.open_condition(&mut items);
        let prefix = self.prefix(&mut items);
        let value = self.value();
        match self.random.below(12) {
            0 => {
                let put = self.put_text(&value);
                items.push(line(format!("{prefix}{keyword}while ({EDGE}{condition}) {tick}, {put};")));
            }
            1 => items.push(line(format!("{prefix}{keyword}while ({EDGE}{tick} && ({condition})) ;"))),
            2 => {
                let head = format!("{prefix}{keyword}while ({EDGE}{condition})");
                let inner =
                    Item::Block { head: format!("if ({tick} && {})", self.condition()), body: self.one_statement(), tail: String::new() };
                items.push(Item::Block { head, body: vec![inner], tail: String::new() });
            }
            3 => {
                // Declared in the condition, and gone at the end of each round.
                let name = self.name("found");
                let from = self.name("left");
                items.insert(0, line(format!("int {from} = {};", self.random.below(9))));
                let declared = self.random.of(&["int {f} = {l}--", "auto {f} = --{l}", "const int {f} = {l} -= 2", "bool {f} = {l}-- > 1"]);
                let declared = declared.replace("{f}", &name).replace("{l}", &from);
                self.loops.push(Around { continues: true, way_out: None });
                let mut body = vec![line(format!("{tick};")), line(format!("acc += (unsigned int){name};"))];
                body.append(&mut self.scope(Self::statement));
                self.close_loop(block(format!("{keyword}while ({declared}) {{{EDGE_STATEMENT}"), body), &mut items);
            }
            4 => {
                self.loops.push(Around { continues: true, way_out: None });
                let mut body = vec![line(format!("{tick};"))];
                body.append(&mut self.scope(Self::statement));
                let head = format!("{prefix}{keyword}for (; {condition}; {LONE_EDGE}) {{");
                self.close_loop(block(head, body), &mut items);
            }
            5 => {
                self.loops.push(Around { continues: true, way_out: None });
                let mut body = vec![line(format!("if (!{tick} || {}) break;", self.condition()))];
                body.append(&mut self.scope(Self::statement));
                self.close_loop(block(format!("{prefix}{keyword}for (;;{LONE_EDGE}) {{"), body), &mut items);
            }
            _ => {
                self.loops.push(Around { continues: true, way_out: None });
                let mut body = vec![line(format!("{tick};"))];
                body.append(&mut self.scope(|generator| {
                    let mut items = generator.statement();
                    items.append(&mut generator.statement());
                    items
                }));
                self.close_loop(block(format!("{prefix}{keyword}while ({condition}) {{{EDGE_STATEMENT}"), body), &mut items);
            }
        }
        items
    }

    /// `do`, which runs at least once.
    pub(super) fn do_while(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let site = self.site();
        let tick = self.tick(site);
        let condition = self.open_condition(&mut items);
        let prefix = self.prefix(&mut items);
        let keyword = keyword(site);
        if self.random.percent(25) {
            let value = self.value();
            let put = self.put_text(&value);
            items.push(line(format!("{prefix}{keyword}do {tick}, {put}; while ({EDGE}{condition});")));
            return items;
        }
        self.loops.push(Around { continues: true, way_out: None });
        let mut body = vec![line(format!("{tick};"))];
        body.append(&mut self.scope(Self::statement));
        let head = format!("{prefix}{keyword}do {{{EDGE_STATEMENT}");
        self.close_loop(Item::Block { head, body, tail: format!("}} while ({condition});") }, &mut items);
        items
    }

    pub(super) fn range_for(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let (name, table) = (self.name("each"), self.name("table"));
        let site = self.site();
        let tick = self.tick(site);
        let type_ = self.random.of(&["int", "auto", "const int &", "auto &", "unsigned int"]);
        let range = if self.random.percent(30) {
            self.need("Walk", ITERATOR);
            self.need("Range", RANGE);
            if type_ == "auto &" { "Range{0, 0}".to_owned() } else { "Range{1, n & 15}".to_owned() }
        } else {
            items.push(line(format!("int {table}[5] = {{1, (int)(acc & 15u), 3, n, 5}};")));
            table.clone()
        };
        let type_ = if range.starts_with("Range") { "int" } else { type_ };
        let keyword = keyword(site);
        let head = format!("{keyword}for ({type_} {name} : {range})");
        let read = format!("acc = acc * 31u + (unsigned int){name};");
        if self.random.percent(30) {
            items.push(line(format!("{head} {OPEN}{tick}, {read}{CLOSE}")));
            return items;
        }
        self.loops.push(Around { continues: true, way_out: None });
        let mut body = vec![line(format!("{tick};")), line(read)];
        body.append(&mut self.scope(Self::statement));
        self.close_loop(block(format!("{head} {{{EDGE_STATEMENT}"), body), &mut items);
        items
    }

    /// A loop made of a label and a jump.
    pub(super) fn jump_back(&mut self) -> Vec<Item> {
        if self.barred {
            return self.range_for();
        }
        let (label, name) = (self.name("again"), self.name("round"));
        let number = Number::any(&mut self.random);
        let site = self.site();
        let tick = self.tick(site);
        let mut items = vec![line(format!("{} {name} = {};", number.text, self.random.below(4)))];
        self.variables.push(Variable { name: name.clone(), number, changes: true });
        items.push(line(format!("{label}:")));
        items.push(line(format!("{tick};")));
        let inside = self.scope(Self::statement);
        items.push(block("{", inside));
        let bound = self.random.below(9);
        let condition =
            self.random.of(&["++{} < {b}", "{}++ != {b}", "--{} > 0", "{}-- > 0"]).replace("{}", &name).replace("{b}", &bound.to_string());
        items.push(line(match self.random.below(3) {
            0 => format!("if ({condition}) {OPEN}goto {label};{CLOSE}"),
            1 => format!("if ({condition}) {{ acc += 2u;{EDGE_STATEMENT} goto {label}; }}"),
            _ => format!("if (!({condition})) acc ^= 1u; else {OPEN}goto {label};{CLOSE}"),
        }));
        vec![block("{", items)]
    }

    /// A loop that is entered in the middle, by a case label or a jump.
    pub(super) fn duff(&mut self) -> Vec<Item> {
        let name = self.name("left");
        let number = Number::any(&mut self.random);
        let site = self.site();
        let tick = self.tick(site);
        let keyword = keyword(site);
        let mut items = vec![line(format!("{} {name} = {};", number.text, 1 + self.random.below(5)))];
        self.variables.push(Variable { name: name.clone(), number, changes: true });
        let value = self.value();
        let (first, second) = (self.put(&value), self.put("acc"));
        let other = line("acc = acc * 3u + 1u;");
        match self.random.below(4) {
            0 => {
                let body = vec![line(format!("{tick};")), first, line("case 3:"), other, line("case 1:"), second];
                let head = format!("case 0: {keyword}do {{{EDGE_STATEMENT}");
                let loop_ = Item::Block { head, body, tail: format!("}} while ({name}-- > 1);") };
                items.push(block("switch (n & 3) {", vec![loop_]));
            }
            1 => {
                let body = vec![line(format!("{tick};")), first, line("case 2:"), other, line("default:"), second];
                let bound = self.random.of(&["7", "n", "b", "w"]);
                let loop_ = block(format!("case 0: {keyword}for ({name} = 1; {name} < {bound}; {EDGE}++{name}) {{"), body);
                items.push(block(format!("switch ((n + {}) & 3) {{", self.random.below(3)), vec![loop_]));
            }
            2 => {
                let body = vec![line(format!("{tick};")), first, line("case 2:"), second];
                let loop_ = block(format!("case 1: {keyword}while ({name}-- > 0) {{{EDGE_STATEMENT}"), body);
                items.push(block("switch (u & 3u) {", vec![loop_]));
            }
            _ if self.barred => items.push(first),
            _ => {
                let label = self.name("inside");
                items.push(line(format!("if ({}) goto {label};", self.condition())));
                let body = vec![line(format!("{tick};")), first, line(format!("{label}:")), other, second];
                let bound = self.random.of(&["6", "n", "b", "w"]);
                items.push(block(format!("{keyword}for ({name} = 0; {name} < {bound}; {EDGE}++{name}) {{"), body));
            }
        }
        vec![block("{", items)]
    }

    /// A loop whose head, or all of it, stands in a macro.
    pub(super) fn loop_of_macro(&mut self) -> Vec<Item> {
        let name = self.name("i");
        let site = self.site();
        let tick = self.tick(site);
        let bound = self.random.of(&["n", "8", "b", "half(acc) + 3", "(int)(acc & 15u)"]).replace("half(acc)", "(int)(acc & 7u)");
        let read = format!("acc = acc * 31u + (unsigned int){name};");
        // Loops of macros are found by name, not by place: their iterations are not held against the gap.
        self.single = false;
        match self.random.below(3) {
            0 => {
                let each = self.define("EACH_", &format!("(i, end) for (int i = 0; i < (end); {EDGE}++i)"));
                vec![block(format!("{each}({name}, {bound}) {{"), vec![line(format!("{tick};")), line(read)])]
            }
            1 => {
                let down = self.define("DOWN_", &format!("(i, from) for (int i = (from); i-- > 0; {LONE_EDGE})"));
                vec![block(format!("{down}({name}, {bound}) {{"), vec![line(format!("{tick};")), line(read)])]
            }
            _ => {
                let all = self.define(
                    "SPIN_",
                    &format!("(i, end) do {{ int i = 0; while (i < (end)) {{{EDGE_STATEMENT} {tick}; acc = acc * 31u + (unsigned int)i; ++i; }} }} while (0)"),
                );
                vec![line(format!("{all}({name}, {bound});"))]
            }
        }
    }

    /// One statement where a block may stand.
    pub(super) fn one_statement(&mut self) -> Vec<Item> {
        let items = self.scope(Self::statement);
        if items.len() == 1 && !matches!(&items[0], Item::Line(text) if text.starts_with('#') || text.contains(" = ")) {
            items
        } else {
            vec![block("{", items)]
        }
    }
}
