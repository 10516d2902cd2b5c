//! Mutants of a source: one small change of the text each.

/// What stands in the text, and what a mutant has instead. Of two that begin alike the longer comes first.
const CHANGES: &[(&str, &str)] = &[
    ("<<", ">>"),
    (">>", "<<"),
    ("<=", "<"),
    (">=", ">"),
    ("==", "!="),
    ("!=", "=="),
    ("++", "--"),
    ("--", "++"),
    ("+=", "-="),
    ("-=", "+="),
    ("&&", "||"),
    ("||", "&&"),
    ("<", "<="),
    (">", ">="),
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("/", "*"),
    ("%", "/"),
    ("&", "|"),
    ("|", "&"),
];

/// A source with one change.
#[derive(Debug, Clone)]
pub(crate) struct Mutant {
    /// Line of the change, from 1.
    pub line: usize,
    /// What was changed.
    pub change: String,
    /// The whole source.
    pub source: String,
}

/// So many mutants of the functions above the first kernel, spread evenly over all that the operators make: an operator for another, a number
/// for the next, an assignment dropped.
///
/// The kernel itself stays as it is: it alone touches memory, and a mutant that writes out of bounds would end the context of all the others.
pub(crate) fn mutants(source: &str, most: usize) -> Vec<Mutant> {
    let end = source.find("__global__").map_or(source.len(), |at| source[..at].rfind('\n').unwrap_or(0));
    let mut all = Vec::new();
    let mut start = 0;
    for (index, line) in source[..end].split('\n').enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let mut mutant = |at: usize, length: usize, new: &str| {
            let old = &code[at..at + length];
            let (before, after) = (&source[..start + at], &source[start + at + length..]);
            all.push(Mutant { line: index + 1, change: format!("`{old}` -> `{new}`"), source: [before, new, after].concat() });
        };
        let mut at = 0;
        while at < code.len() {
            let rest = &code[at..];
            let number = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let in_name = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if number > 0 && !in_name {
                let next = rest[..number].parse::<u64>().map_or(0, |value| value + 1);
                mutant(at, number, &next.to_string());
                at += number;
            } else if let Some((old, new)) = CHANGES.iter().find(|(old, _)| rest.starts_with(old)) {
                mutant(at, old.len(), new);
                at += old.len();
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        let statement = code.trim();
        if let Some((target, _)) = statement.split_once(" = ").filter(|(target, _)| !target.contains(' ')) {
            mutant(code.find(target).unwrap_or(0), statement.len(), ";");
        }
        start += line.len() + 1;
    }
    let count = all.len();
    let chosen = (0..most.min(count)).map(|index| index * count / most.min(count).max(1));
    chosen.map(|index| all[index].clone()).collect()
}
