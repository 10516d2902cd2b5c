//! A random program as a tree of text, so that it can be rendered in two ways and made smaller.

/// Stands in front of a loop's keyword: the number of its iterations' site follows, then [`END`].
const LOOP: char = '\u{1}';
/// Ends a mark.
const END: char = '\u{2}';

/// In front of an expression that is evaluated on each back edge.
pub const EDGE: &str = "\u{3}";
/// Where an expression may stand that is evaluated on each back edge.
pub const LONE_EDGE: &str = "\u{4}";
/// Where a statement may stand that each back edge comes by.
pub const EDGE_STATEMENT: &str = "\u{5}";
/// In front of a statement that each back edge comes by, [`CLOSE`] behind it.
pub const OPEN: &str = "\u{6}";
/// See [`OPEN`].
pub const CLOSE: &str = "\u{7}";

/// Each mark, with its text in the model. A `constexpr` function may hold them.
const MARKS: [(&str, &str); 5] = [
    (EDGE, "(__builtin_is_constant_evaluated() ? (void)0 : host_edge()), "),
    (LONE_EDGE, "host_edge()"),
    (EDGE_STATEMENT, " host_edge();"),
    (OPEN, "{ host_edge(); "),
    (CLOSE, " }"),
];

/// The mark in front of the keyword of the loop whose iterations tick at `site`.
#[must_use]
pub fn keyword(site: usize) -> String {
    format!("{LOOP}{site}{END}")
}

/// A piece of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A statement, a declaration or a directive.
    Line(String),
    /// A head, what is inside it, and what closes it.
    Block {
        /// Up to the brace, if there is one.
        head: String,
        /// What is inside.
        body: Vec<Item>,
        /// From the brace on.
        tail: String,
    },
}

/// A loop in a rendered program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Site of its iterations.
    pub site: usize,
    /// Line of its keyword, from 1.
    pub line: u32,
    /// Column of its keyword in bytes, from 1.
    pub column: u32,
}

/// How a program is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// What the rewriter gets.
    Plain,
    /// The same with a call at each back edge: the model that fuel is compared with.
    Model,
}

/// A program: a CUDA source with one kernel `k` and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// What it was made from.
    pub seed: u64,
    /// The whole source.
    pub items: Vec<Item>,
    /// Iterations of all loops together after which it is cut.
    pub budget: u32,
    /// Number of sites where iterations tick.
    pub sites: usize,
    /// Whether all loops lie in the kernel itself and so share one allowance.
    pub single: bool,
    /// Macros that it defines.
    pub macros: Vec<String>,
}

impl Program {
    /// A program that a person wrote. `@0 ` stands in front of the keyword of the loop whose iterations tick at site 0; the other marks are
    /// `@,` ([`EDGE`]), `@.` ([`LONE_EDGE`]), `@;` ([`EDGE_STATEMENT`]), `@{` ([`OPEN`]) and `@}` ([`CLOSE`]).
    #[must_use]
    pub fn written(seed: u64, text: &str, budget: u32) -> Self {
        let spelled = [("@,", EDGE), ("@.", LONE_EDGE), ("@;", EDGE_STATEMENT), ("@{", OPEN), ("@}", CLOSE)];
        let text = spelled.iter().fold(text.to_owned(), |text, (mark, meaning)| text.replace(mark, meaning));
        let text = (0..16).fold(text, |text, site| text.replace(&format!("@{site} "), &keyword(site)));
        let sites = text.matches(LOOP).count();
        let items = text.lines().map(|line| Item::Line(line.to_owned())).collect();
        Self { seed, items, budget, sites, single: !text.contains("[&]"), macros: Vec::new() }
    }

    /// Whether it holds a lambda that may hold loops.
    #[must_use]
    pub fn has_lambda(&self) -> bool {
        self.text(Mode::Plain).contains("](int m)")
    }

    /// The source.
    #[must_use]
    pub fn text(&self, mode: Mode) -> String {
        let mut raw = String::new();
        render(&self.items, 0, &mut raw);
        let mut text = String::with_capacity(raw.len());
        let mut at = raw.as_str();
        while let Some(mark) = at.find(LOOP) {
            text.push_str(&at[..mark]);
            at = at[mark..].find(END).map_or("", |end| &at[mark + end + 1..]);
        }
        text.push_str(at);
        MARKS.iter().fold(text, |text, (mark, model)| text.replace(mark, if mode == Mode::Model { model } else { "" }))
    }

    /// Where its loops stand in the plain text.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let mut raw = String::new();
        render(&self.items, 0, &mut raw);
        let raw = MARKS.iter().fold(raw, |text, (mark, _)| text.replace(mark, ""));
        let mut places = Vec::new();
        for (index, line) in raw.lines().enumerate() {
            let mut removed = 0;
            for (at, _) in line.match_indices(LOOP) {
                let Some(end) = line[at..].find(END) else { continue };
                let site = line[at + 1..at + end].parse().unwrap_or(0);
                places.push(Place { site, line: index as u32 + 1, column: (at - removed) as u32 + 1 });
                removed += end + 1;
            }
        }
        places
    }
}

fn render(items: &[Item], depth: usize, out: &mut String) {
    for item in items {
        match item {
            Item::Line(line) => push(line, depth, out),
            Item::Block { head, body, tail } => {
                push(head, depth, out);
                render(body, depth + 1, out);
                push(tail, depth, out);
            }
        }
    }
}

fn push(line: &str, depth: usize, out: &mut String) {
    if line.is_empty() {
        return;
    }
    if !line.starts_with('#') {
        out.push_str(&"  ".repeat(depth));
    }
    out.push_str(line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_say_where_loops_and_edges_are_and_leave_nothing_behind() {
        let head = format!("{}for (int i = 0; i < 3; {EDGE}++i) {}while (f()) {{{EDGE_STATEMENT}", keyword(7), keyword(12));
        let inner = format!("{}for (;;{LONE_EDGE}) {OPEN}f();{CLOSE}", keyword(3));
        let items = vec![Item::Block { head, body: vec![Item::Line(inner)], tail: "}".into() }];
        let program = Program { seed: 1, items, budget: 1, sites: 13, single: true, macros: Vec::new() };
        assert_eq!(program.text(Mode::Plain), "for (int i = 0; i < 3; ++i) while (f()) {\n  for (;;) f();\n}\n");
        let model = program.text(Mode::Model);
        assert_eq!(model.matches("host_edge()").count(), 4);
        assert!(model.ends_with("  for (;;host_edge()) { host_edge(); f(); }\n}\n"), "{model}");
        let found: Vec<_> = program.places().iter().map(|place| (place.site, place.line, place.column)).collect();
        assert_eq!(found, [(7, 1, 1), (12, 1, 29), (3, 2, 3)]);
    }
}
