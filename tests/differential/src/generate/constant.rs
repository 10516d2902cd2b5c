//! Loops from constant to constant, too long to be unrolled as a whole: their strips have one length, by which the trips can be divided.

use super::super::program::{EDGE, Item, keyword};
use super::number::{Number, literal};
use super::{Around, Generator, Variable, block, line};

impl Generator {
    /// Such a loop, or one that differs from such in one thing; some in a loop, some around one.
    pub(super) fn constant(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let head = self.constant_head(&mut items);
        if self.random.percent(85) {
            items.push(head);
            return items;
        }
        // A loop around it is one that such strips are not for.
        let (counter, site) = (self.name("i"), self.site());
        let bound = self.random.of(&["3", "(n & 3)"]);
        let body = vec![line(format!("{};", self.tick(site))), head];
        items.push(block(format!("{}for (int {counter} = 0; {counter} < {bound}; {EDGE}++{counter}) {{", keyword(site)), body));
        items
    }

    fn constant_head(&mut self, items: &mut Vec<Item>) -> Item {
        let numbers = [Number::INT, Number::INT, Number::INT, Number::UNSIGNED, Number::LONG_LONG, Number::SIZE];
        let number = if self.random.percent(85) { self.random.of(&numbers) } else { Number::any(&mut self.random) };
        let steps: usize = self.random.of(&[1, 1, 1, 2, 3, 4, 8, 25, 32]);
        let amount = steps as i128;
        let trips = match self.random.below(8) {
            0..=4 => self
                .random
                .of(&[64, 90, 96, 100, 120, 128, 150, 192, 200, 250, 256, 300, 320, 400, 500, 512, 600, 640, 768, 1000, 1024, 1200]),
            5 | 6 => 60 + self.random.below(1200),
            _ => self.random.of(&[97, 127, 251, 509, 1009, 5000, 9984, 20_000]),
        } as i128;
        let start = i128::from(self.random.of(&[0, 0, 0, 0, 1, 7, -3, -40, 2_147_000_000])).max(number.min());
        let down = self.random.percent(12);
        // Behind the last value, and perhaps some more; a bound that is to be met may be missed.
        let rest = if amount > 1 && self.random.percent(30) { self.random.below(steps) as i128 } else { 0 };
        let relation = self.random.of(&["<", "<", "<", "<", "<", "<=", "<=", "!="]);
        let distance = trips * amount - rest - if relation == "<=" { self.random.below(2) as i128 } else { 0 };
        let (start, last) = if down { (start + distance, start) } else { (start, start + distance) };
        let relation = if down { relation.replace('<', ">") } else { relation.to_owned() };
        let sign = if down { "-" } else { "+" };

        let counter = self.name("i");
        let from = if self.random.percent(10) { self.spelled(start, number, items) } else { literal(start) };
        let bound = self.spelled(last, number, items);
        let by = if amount > 1 && self.random.percent(15) { self.spelled(amount, number, items) } else { literal(amount) };
        let step = match (amount, self.random.below(3)) {
            (1, 0) => format!("{sign}{sign}{counter}"),
            (1, 1) => format!("{counter}{sign}{sign}"),
            (_, 0) if self.random.percent(20) => format!("{counter} = {counter} {sign} {by}"),
            _ => format!("{counter} {sign}= {by}"),
        };
        let site = self.site();
        let prefix = if self.random.percent(30) { self.prefix(items) } else { String::new() };
        let head =
            format!("{prefix}{}for ({} {counter} = {from}; {counter} {relation} {bound}; {EDGE}{step}) {{", keyword(site), number.text);
        self.variables.push(Variable { name: counter.clone(), number, changes: self.random.percent(20) });
        self.loops.push(Around { continues: true, way_out: None });
        let mut body = vec![line(format!("{};", self.tick(site)))];
        body.append(&mut self.scope(|generator| generator.weighing(&counter)));
        let mut all = self.behind(vec![block(head, body)]);
        if all.len() == 1 { all.remove(0) } else { block("{", all) }
    }

    /// A value as a number, as a name that is a constant, or as one that only seems to be.
    fn spelled(&mut self, value: i128, number: Number, items: &mut Vec<Item>) -> String {
        let text = literal(value);
        match self.random.below(20) {
            0..=6 => text,
            7..=12 => self.define("SIZE", &format!(" {text}")),
            13 | 14 => {
                let name = self.name("SIZE");
                let type_ = if value.unsigned_abs() < 1 << 30 && self.random.percent(60) { "int" } else { "long long" };
                self.front.push(line(format!("constexpr {type_} {name} = {text};")));
                self.random.of(&["{}", "{}", "({})", "{} + 0", "2 * {} / 2"]).replace("{}", &name)
            }
            15 => {
                let name = self.define("HALF", &format!(" ({} / 2)", literal(value & !1)));
                format!("2 * {name} + {}", value & 1)
            }
            16 => {
                let name = self.name("size");
                items.push(line(format!("const {} {name} = {text};", number.text)));
                name
            }
            17 => {
                // No constant after all.
                let name = self.name("SIZE");
                items.push(line(format!("const {} {name} = ({})({text} + (b & 0));", number.text, number.text)));
                name
            }
            18 => {
                let name = self.name("SIZE");
                self.front.push(line(format!("__device__ int {name};")));
                self.begin.push(line(format!("{name} = (int){text};")));
                name
            }
            _ => {
                let name = self.name("size");
                items.push(line(format!("{} {name} = {text};", number.text)));
                self.variables.push(Variable { name: name.clone(), number, changes: true });
                name
            }
        }
    }

    /// What such a loop does: little or much, in memory or not, with loops of its own, and perhaps an end of its own.
    fn weighing(&mut self, counter: &str) -> Vec<Item> {
        let mut items = vec![line(format!("acc = acc * 31u + (unsigned int){counter};"))];
        for _ in 0..self.random.of(&[0, 0, 1, 2, 5, 12]) {
            items.push(line(self.random.of(&[
                "acc ^= acc >> 5;",
                "acc += acc << 3;",
                "acc = acc * 5u + 1u;",
                "if (acc & 1u) acc ^= 77u;",
            ])));
        }
        match self.random.below(10) {
            0 | 1 => items.push(line(format!("acc += (unsigned int)p[{counter} & 15];"))),
            2 => items.push(line(format!("acc += (unsigned int)p[p[{counter} & 15] & 15];"))),
            3 => items.push(line(format!("p[{counter} & 15] = (int)(acc & 31u);"))),
            4 => {
                let (inner, site) = (self.name("j"), self.site());
                let bound = self.random.of(&["4", "16", "(n & 7)", "s"]);
                let body = vec![line(format!("{};", self.tick(site))), line(format!("acc += (unsigned int)({inner} * 3);"))];
                items.push(block(format!("{}for (int {inner} = 0; {inner} < {bound}; {EDGE}++{inner}) {{", keyword(site)), body));
            }
            5 => items.append(&mut self.statement()),
            _ => {}
        }
        if self.random.percent(35) {
            let leave = self.leave;
            let jump = self.random.of(&["break;", "continue;", "{ acc ^= 3u; break; }", leave]);
            let rarely = self.random.of(&["acc % 257u == 3u", "acc % 7u == 3u", "(acc & 1023u) == 5u"]);
            items.push(line(format!("if ({rarely}) {jump}")));
        }
        items.push(self.put("acc"));
        items
    }
}
