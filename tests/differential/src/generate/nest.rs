//! Nests between values that they keep, at a kernel's beginning: they may be brief, and stand there twice then.

use super::super::program::{EDGE, Item, keyword};
use super::number::Number;
use super::{Generator, block, line};

impl Generator {
    /// Two loops, one in the other, or three, two of them in the first.
    pub(super) fn nest(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let values: Vec<String> = (0..2).map(|_| self.kept(&mut items)).collect();
        let (head, counter) = self.rung(&values);
        let site = self.site();
        let mut body = vec![line(format!("{};", self.tick(site)))];
        if self.random.percent(25) {
            body.push(line("acc += 3u;"));
        }
        for _ in 0..=usize::from(self.random.percent(20)) {
            let (inner, second) = self.rung(&values);
            let inner_site = self.site();
            let mut most = vec![line(format!("{};", self.tick(inner_site)))];
            most.push(line(format!("acc = acc * 31u + (unsigned int)({counter} * 7 + {second} + {});", values[0])));
            let ends = ["", "", "if (acc % 11u == 3u) break;", "if (acc % 5u == 3u) continue;", "if (acc % 97u == 3u) return;"];
            most.push(line(self.random.of(&ends)));
            most.push(self.put(&second));
            body.push(block(format!("{}{} {{", keyword(inner_site), inner), most));
        }
        items.push(block(format!("{}{} {{", keyword(site), head), body));
        items
    }

    /// A value that nothing changes: near zero, or as it comes.
    fn kept(&mut self, items: &mut Vec<Item>) -> String {
        let name = self.name("kept");
        let numbers = [Number::INT, Number::INT, Number::INT, Number::UNSIGNED, Number::LONG_LONG, Number::SIZE, Number::UNSIGNED_CHAR];
        let number = self.random.of(&numbers);
        let from = self.random.of(&["n", "s", "b", "u", "w"]);
        let near = self.random.of(&["({} & 7)", "({} & 15) - 6", "({} & 255) - 2", "{} % 260", "{} % 520", "{}"]);
        let keeps = self.random.of(&["const ", ""]);
        items.push(line(format!("{keeps}{} {name} = ({})({});", number.text, number.text, near.replace("{}", from))));
        name
    }

    /// The head of a loop from one of the values, or from a number, to one of them, and its counter.
    fn rung(&mut self, values: &[String]) -> (String, String) {
        let counter = self.name("i");
        let number = self.random.of(&[Number::INT, Number::INT, Number::INT, Number::UNSIGNED, Number::LONG_LONG, Number::SIZE]);
        let mut end = |patterns: &[&'static str]| {
            let value = &values[self.random.below(values.len())];
            self.random.of(patterns).replace("{}", value)
        };
        let start = end(&["-{}", "-{}", "{}", "{} - 3", "0", "1", "-2"]);
        let bound = end(&["{}", "{}", "{}", "{} + 1", "{} - 2", "2 * {}"]);
        let relation = self.random.of(&["<", "<="]);
        let step = self.random.of(&["++{}", "{}++", "{} += 1", "{} += 2", "{} += 3"]).replace("{}", &counter);
        (format!("for ({} {counter} = {start}; {counter} {relation} {bound}; {EDGE}{step})", number.text), counter)
    }
}
