//! Loops by strides that only the run tells, as of a grid's threads: mostly no power of two, over distances up to all that a counter holds.

use super::super::program::{EDGE, Item, keyword};
use super::number::Number;
use super::{Around, Generator, Variable, block, line};

impl Generator {
    /// Such a loop, some in a loop of few rounds.
    pub(super) fn stride(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        let head = self.stride_head(&mut items);
        if self.random.percent(75) {
            items.push(head);
            return items;
        }
        let (counter, site) = (self.name("i"), self.site());
        let body = vec![line(format!("{};", self.tick(site))), head];
        items.push(block(format!("{}for (int {counter} = 0; {counter} < (n & 3); {EDGE}++{counter}) {{", keyword(site)), body));
        items
    }

    fn stride_head(&mut self, items: &mut Vec<Item>) -> Item {
        let number = self.random.of(&[Number::INT, Number::INT, Number::UNSIGNED, Number::UNSIGNED, Number::LONG_LONG, Number::SIZE]);
        let bits = 4 + self.random.below(28) as u32;
        let distance = (1 << (bits - 1)) + self.random.below(1 << (bits - 1)) as i128;
        // The rounds are as many as a run may take, and hit the bound or pass it.
        let most = self.random.of(&[3, 10, 40, 200, 1000, 5000]);
        let rounds = 1 + self.random.below(most) as i128;
        let near = self.random.of(&[-1, 0, 0, 1, 2]);
        let step = (distance / rounds + near).clamp(1, i128::from(i32::MAX));
        let distance = match self.random.below(4) {
            0 => step * (distance / step),
            1 => (step * (distance / step) + 1).min(number.max()),
            _ => distance,
        };
        let origin = self.random.of(&["0", "0", "blockIdx.x * blockDim.x + threadIdx.x", "s", "(n & 255)"]);
        let down = self.random.percent(20);
        let type_ = number.text;

        let (counter, end) = (self.name("i"), self.name("end"));
        items.push(line(format!("const {type_} {end} = ({type_})({distance}ll + (b & 0));")));
        // Each as it stands in kernels: a product of the grid's dimensions, in place or in a variable of any type.
        let text = match self.random.below(5) {
            0 => format!("gridDim.x * blockDim.x * {step}u"),
            1 => format!("blockDim.x * {step}"),
            _ => {
                let name = self.name("stride");
                let own = if self.random.percent(70) { number } else { Number::any(&mut self.random) };
                let product = self.random.of(&["gridDim.x * blockDim.x * {}u", "{} + (b & 0)", "(b & 0) + {}u"]);
                let constant = self.random.of(&["const ", ""]);
                items.push(line(format!("{constant}{} {name} = ({})({});", own.text, own.text, product.replace("{}", &step.to_string()))));
                name
            }
        };
        let relation = self.random.of(&["<", "<", "<", "<=", "!="]);
        let site = self.site();
        let prefix = self.prefix(items);
        let head = if down {
            let relation = relation.replace('<', ">");
            format!("{type_} {counter} = {end}; {counter} {relation} 0; {EDGE}{counter} -= {text}")
        } else {
            format!("{type_} {counter} = ({type_})({origin}); {counter} {relation} {end}; {EDGE}{counter} += {text}")
        };
        self.variables.push(Variable { name: counter.clone(), number, changes: false });
        self.loops.push(Around { continues: true, way_out: None });
        let mut body = vec![line(format!("{};", self.tick(site))), line(format!("acc = acc * 31u + (unsigned int){counter};"))];
        match self.random.below(8) {
            0 => body.push(line(format!("if (acc % 61u == 3u) {}", self.random.of(&["break;", "continue;"])))),
            1 => body.push(line(format!("acc += (unsigned int)p[p[{counter} & 15] & 15];"))),
            2 => body.append(&mut self.scope(Self::statement)),
            _ => {}
        }
        body.push(self.put(&counter));
        let mut all = self.behind(vec![block(format!("{prefix}{}for ({head}) {{", keyword(site)), body)]);
        if all.len() == 1 { all.remove(0) } else { block("{", all) }
    }
}
