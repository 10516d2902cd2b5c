//! What other files of a translation unit, and the command line, say of the macros that one of them uses.

use crate::options::{CompilerLoop, Options, UnitMacro, ValueMacro};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::marks;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::{Kind, Lexed, Line, Token, is_name_byte, lex};
use std::collections::{BTreeMap, BTreeSet};

/// All definitions of one name.
#[derive(Default)]
struct Definitions<'a> {
    count: usize,
    undefined: usize,
    /// Names in their texts that are no parameters.
    names: BTreeSet<&'a [u8]>,
    labels: BTreeSet<&'a [u8]>,
    /// Whether a text that stays as it is repeats, or uses a macro of which one does.
    repeats: bool,
    /// Whether a text marks a device function.
    marks: bool,
    /// Whether a text may change a variable.
    changes: bool,
    /// Whether a text leaves what is around it.
    leaves: bool,
    /// Whether a text holds a lambda's captures without its body.
    captures: bool,
    /// A loop that the compiler makes.
    compiler_loop: Option<CompilerLoop>,
    /// What `##` joins to other words: words of the text that begin or end a new one.
    joined: BTreeSet<Pasted<'a>>,
}

/// The macros of these texts, of which `unchanged` ones, the command line among them, get no polls. `values` are those that stand for values, and `loops`
/// those of which the compiler makes loops. `options` name those that mark device functions.
pub(super) fn of_unit(
    files: &[(&[u8], Lexed)],
    unchanged: &[(&[u8], Lexed)],
    values: &[ValueMacro],
    loops: &BTreeMap<Vec<u8>, CompilerLoop>,
    options: &Options,
) -> Vec<UnitMacro> {
    let marking = Macros::read(b"", &Lexed::default(), options);
    let mut all: BTreeMap<&[u8], Definitions> = BTreeMap::new();
    for (source, lexed, stays) in
        files.iter().map(|(source, lexed)| (*source, lexed, false)).chain(unchanged.iter().map(|(source, lexed)| (*source, lexed, true)))
    {
        for directive in &lexed.directives {
            match &directive.line {
                Line::Define(define) => {
                    let body = Fragment::of_macro(source, define.name.clone(), define.body.clone());
                    let parameters = if define.function_like { &source[define.name.end..define.body.start] } else { &[] };
                    all.entry(&source[define.name.clone()]).or_default().read(source, &body, parameters, stays, &marking);
                }
                Line::Other => {
                    let words = lex(source, directive.span.clone(), true).tokens;
                    let name = words.iter().map(|word| &source[word.range()]).skip_while(|word| *word != b"undef").nth(1);
                    if let Some(name) = name {
                        all.entry(name).or_default().undefined += 1;
                    }
                }
                _ => {}
            }
        }
    }
    for (name, definitions) in &mut all {
        definitions.compiler_loop = loops.get(*name).copied();
    }
    spread(&mut all);
    let harmless: BTreeSet<&[u8]> = values.iter().filter(|value| value.harmless).map(|value| value.name.as_bytes()).collect();
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let told = all.iter().map(|(name, definitions)| UnitMacro {
        name: text(name),
        definitions: definitions.count,
        undefined: definitions.undefined,
        repeats: definitions.repeats,
        marks: definitions.marks,
        changes: definitions.changes && !harmless.contains(name),
        leaves: definitions.leaves,
        captures: definitions.captures,
        labels: definitions.labels.iter().map(|label| text(label)).collect(),
        compiler_loop: definitions.compiler_loop,
    });
    told.collect()
}

/// How a name begins and ends that a macro pastes together, as far as the macro says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pasted<'a> {
    begin: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
}

impl<'a> Pasted<'a> {
    /// What it is looked for by.
    fn key(&self) -> &'a [u8] {
        self.begin.or(self.end).unwrap_or_default()
    }

    fn may_be(&self, name: &[u8]) -> bool {
        self.begin.is_none_or(|begin| name.starts_with(begin)) && self.end.is_none_or(|end| name.ends_with(end))
    }
}

/// What is true of a macro is true of those that use it, and of those that may paste its name.
fn spread<'a>(all: &mut BTreeMap<&'a [u8], Definitions<'a>>) {
    let mut users: BTreeMap<&[u8], Vec<&'a [u8]>> = BTreeMap::new();
    let mut pasters: BTreeMap<&[u8], Vec<(Pasted<'a>, &'a [u8])>> = BTreeMap::new();
    for (name, definitions) in all.iter() {
        definitions.names.iter().for_each(|used| users.entry(used).or_default().push(name));
        for pasted in &definitions.joined {
            pasters.entry(pasted.key()).or_default().push((*pasted, name));
        }
    }
    let mut work: Vec<&'a [u8]> = all.iter().filter(|(_, definitions)| definitions.says_something()).map(|(name, _)| *name).collect();
    while let Some(name) = work.pop() {
        let Some(told) = all.get(name).map(Definitions::told) else { continue };
        let parts = (1..name.len()).flat_map(|length| [&name[..length], &name[name.len() - length..]]);
        let made = all.get(name).and_then(|definitions| definitions.compiler_loop).map(|made| made.message);
        let pasting = parts.filter(|_| told.repeats || made.is_some()).filter_map(|part| pasters.get(part)).flatten();
        let pasting = pasting.filter(|(pasted, _)| pasted.may_be(name)).map(|(_, paster)| paster);
        let pasted = Told { repeats: told.repeats, marks: told.marks, made, ..Told::default() };
        let reached = users.get(name).into_iter().flatten().map(|user| (user, &told)).chain(pasting.map(|paster| (paster, &pasted)));
        for (other, told) in reached {
            if all.get_mut(other).is_some_and(|definitions| definitions.take(told)) {
                work.push(other);
            }
        }
    }
}

/// What a macro tells those that use it.
#[derive(Default)]
struct Told<'a> {
    labels: BTreeSet<&'a [u8]>,
    repeats: bool,
    marks: bool,
    changes: bool,
    leaves: bool,
    /// A loop that the compiler makes whatever a use gives.
    made: Option<&'static str>,
}

impl<'a> Definitions<'a> {
    fn told(&self) -> Told<'a> {
        let made = self.compiler_loop.filter(|made| made.parameter.is_none()).map(|made| made.message);
        Told { labels: self.labels.clone(), repeats: self.repeats, marks: self.marks, changes: self.changes, leaves: self.leaves, made }
    }

    fn says_something(&self) -> bool {
        self.repeats || self.marks || self.changes || self.leaves || self.compiler_loop.is_some() || !self.labels.is_empty()
    }

    /// Whether that was not known.
    fn take(&mut self, told: &Told<'a>) -> bool {
        let state = |now: &Self| (now.labels.len(), now.repeats, now.marks, now.changes, now.leaves, now.compiler_loop);
        let before = state(self);
        self.labels.extend(&told.labels);
        self.repeats |= told.repeats;
        self.marks |= told.marks;
        self.changes |= told.changes;
        self.leaves |= told.leaves;
        if let Some(message) = told.made
            && self.compiler_loop.is_none_or(|made| made.parameter.is_some())
        {
            self.compiler_loop = Some(CompilerLoop { message, parameter: None, factor: 1 });
        }
        before != state(self)
    }

    /// Takes the names that a body pastes together.
    fn read_pasted(&mut self, source: &'a [u8], body: &Fragment, is_parameter: impl Fn(&[u8]) -> bool) {
        let joins = |at: usize| joins(body, at);
        let begins = |at: &usize| joins(at + 1) && !(*at > 1 && joins(at - 2));
        for begin in (0..body.len()).filter(begins) {
            let parts = std::iter::successors(Some(begin), |at| joins(at + 1).then_some(at + 3)).filter(|at| *at < body.len());
            let word =
                |at: usize| Some(&source[body.tokens[at].range()]).filter(|text| body.kind(at) == Some(Kind::Ident) && !is_parameter(text));
            let parts: Vec<Option<&[u8]>> = parts.map(word).collect();
            match (parts.first().copied().flatten(), parts.last().copied().flatten()) {
                // What stands in the middle may be anywhere in the name.
                (None, None) => {
                    let middle = parts.into_iter().flatten();
                    self.joined
                        .extend(middle.flat_map(|part| [Pasted { begin: Some(part), end: None }, Pasted { begin: None, end: Some(part) }]));
                }
                (begin, end) => _ = self.joined.insert(Pasted { begin, end }),
            }
        }
    }

    fn read(&mut self, source: &'a [u8], body: &Fragment, parameters: &[u8], stays: bool, marking: &Macros) {
        let is_parameter = |text: &[u8]| text == b"__VA_ARGS__" || parameters.split(|byte| !is_name_byte(*byte)).any(|one| one == text);
        self.count += 1;
        self.repeats |= stays && (repeats(source, body) || calls_itself(source, body));
        self.marks |= (0..body.len()).any(|at| marks(source, body, marking, at));
        self.captures |= body.holds_captures(|_| false);
        self.read_pasted(source, body, is_parameter);
        for (at, token) in body.tokens.iter().enumerate() {
            let text = &source[token.range()];
            self.leaves |= matches!(token.kind, Kind::Break | Kind::Continue | Kind::Return | Kind::Goto);
            match token.kind {
                Kind::Goto => _ = self.labels.insert(body.text(source, at + 1)),
                Kind::Assign | Kind::OpAssign | Kind::Step | Kind::Asm => self.changes = true,
                Kind::Punct(b'#') if joins(body, at) => self.changes = true,
                Kind::Ident if !is_parameter(text) => {
                    self.changes |= !text.starts_with(b"__") && text.iter().any(u8::is_ascii_lowercase);
                    self.names.insert(text);
                }
                _ => {}
            }
        }
    }
}

/// Whether the token and the next are `##`.
fn joins(body: &Fragment, at: usize) -> bool {
    body.is(at, b'#') && body.is(at + 1, b'#')
}

/// Whether the text may run again and again: `do … while (0)` runs once.
fn repeats(source: &[u8], body: &Fragment) -> bool {
    let count = |kind: Kind| body.tokens.iter().filter(|token| token.kind == kind).count();
    let is_once = |at: usize| {
        let zero = body.text(source, at + 2);
        body.is(at + 1, b'(') && matches!(zero, b"0" | b"false" | b"NULL") && body.is(at + 3, b')')
    };
    let is_loop = |(at, token): (usize, &Token)| match token.kind {
        Kind::For | Kind::Goto => true,
        Kind::While => !is_once(at),
        _ => false,
    };
    let text =
        body.tokens.first().zip(body.tokens.last()).map_or(&b""[..], |(first, last)| &source[first.start as usize..last.end as usize]);
    let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
    body.tokens.iter().enumerate().any(is_loop)
        || count(Kind::Do) != count(Kind::While)
        || (count(Kind::Asm) > 0 && (has(b"bra") || has(b"brx") || has(b"call")))
}

/// Whether the text defines a function that names itself.
fn calls_itself(source: &[u8], body: &Fragment) -> bool {
    let defines = |at: usize| {
        let close = body.mate(at + 1).filter(|close| *close > at && body.is(at + 1, b'('))?;
        // Words such as `const` may stand between the parameters and the brace.
        let open = (close + 1..body.len()).find(|at| !matches!(body.kind(*at), Some(Kind::Keyword | Kind::Ident)))?;
        let end = body.mate(open).filter(|_| body.is(open, b'{'))?;
        Some((body.text(source, at), open..end))
    };
    let mut functions = (0..body.len()).filter(|at| body.kind(*at) == Some(Kind::Ident)).filter_map(defines);
    functions.any(|(name, mut inside)| inside.any(|at| body.text(source, at) == name))
}

/// The definitions among the lines of a text, as a text of their own, and what is said of their names.
pub(super) fn definitions_of(text: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    let mut is_open = false;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let begin = line.trim_ascii_start();
        let word = begin.strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        if is_open || word.is_some_and(|word| word.starts_with(b"define") || word.starts_with(b"undef")) {
            found.extend_from_slice(line);
            is_open = line.trim_ascii_end().ends_with(b"\\");
        }
    }
    found.push(b'\n');
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[&'static str], unchanged: &[&'static str]) -> Vec<String> {
        let read = |texts: &[&'static str]| -> Vec<(&'static [u8], Lexed)> {
            texts.iter().map(|text| (text.as_bytes(), lex(text.as_bytes(), 0..text.len(), false))).collect()
        };
        let tell = |one: UnitMacro| {
            let flags = [
                (one.repeats, " repeats"),
                (one.marks, " marks"),
                (one.changes, " changes"),
                (one.leaves, " leaves"),
                (one.captures, " captures"),
            ];
            let flags: String = flags.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect();
            format!(
                "{} {}-{}{flags}{}",
                one.name,
                one.definitions,
                one.undefined,
                one.labels.iter().flat_map(|label| [" >", label]).collect::<String>()
            )
        };
        of_unit(&read(files), &read(unchanged), &[], &BTreeMap::new(), &Options::default()).into_iter().map(tell).collect()
    }

    #[test]
    fn what_a_macro_may_do_those_that_use_it_may_do_too() {
        let own = "#define MINE spin\n#define AGAIN(x) if (x) goto top\n#define VIA AGAIN(1)\n#define EACH for (;;)\n#define N 8\n#undef N\n#define BY(x) my_##x\n#define HOST(x) void host_##x##_(int)\n";
        let theirs = "#define spin while (*o)\n#define ONCE(x) do { x; } while (0)\n#define my_spin(c) while (c)\n#define spin_(c) while (c)\n#define N 9\n\
                      #define WAIT asm(\"bra L;\")\n#define next (i = 3)\n#define UNROLL _Pragma(\"unroll\")\n#define MARK __forceinline__\n";
        assert_eq!(
            told(&[own], &[theirs]),
            [
                "AGAIN 1-0 changes leaves >top",
                "BY 1-0 repeats changes",
                "EACH 1-0",
                "HOST 1-0 changes",
                "MARK 1-0",
                "MINE 1-0 repeats changes",
                "N 2-1",
                "ONCE 1-0",
                "UNROLL 1-0",
                "VIA 1-0 changes leaves >top",
                "WAIT 1-0 repeats changes",
                "my_spin 1-0 repeats",
                "next 1-0 changes",
                "spin 1-0 repeats changes",
                "spin_ 1-0 repeats",
            ]
        );
    }

    #[test]
    fn captures_of_lambdas_are_told() {
        let text = "#define ALL [&](int i) { }\n#define AT(i) at[i]\n#define BY(x) [=](int x)\n#define LET [=]\n";
        assert_eq!(told(&[text], &[]), ["ALL 1-0 changes", "AT 1-0 changes", "BY 1-0 changes captures", "LET 1-0 changes captures"]);
    }

    #[test]
    fn lines_of_definitions_are_found_with_those_they_go_on_in() {
        let text = b"int x;\n # define A \\\n  b\nint y;\n#undef A\n#include \"c.h\"\n";
        assert_eq!(definitions_of(text), b" # define A \\\n  b\n#undef A\n\n");
    }
}
