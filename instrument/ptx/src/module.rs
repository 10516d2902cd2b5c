//! A module: its directives, variables and functions.

use crate::Span;
use crate::declaration::{Parameter, Variable};
use crate::function::Function;
use crate::token::{Kind, Lexer, Token};
use std::borrow::Cow;
use std::collections::HashSet;

/// A module. Everything borrows from the text.
#[derive(Debug, Default)]
pub struct Module<'a> {
    /// `.version`, as it is spelled.
    pub version: Option<&'a str>,
    /// What `.target` lists: the architecture, and options.
    pub targets: Vec<&'a str>,
    /// Where that list stands.
    pub target: Option<Span>,
    /// Functions with a body, in order.
    pub functions: Vec<Function<'a>>,
    /// Functions that are declared without a body, in order.
    pub prototypes: Vec<Prototype<'a>>,
    /// `.alias`: a name, and the function that it stands for.
    pub aliases: Vec<(&'a str, &'a str)>,
    /// Variables at module scope, in order.
    pub variables: Vec<Variable<'a>>,
    /// Paths by the number of their `.file`, without the escapes of compilers.
    pub files: Vec<(u32, Cow<'a, str>)>,
    /// What the braces of each `.debug_str` section hold.
    pub strings: Vec<Span>,
    /// What ptxas would refuse.
    pub faults: Vec<Fault>,
}

/// A function that is declared without a body.
#[derive(Debug)]
pub struct Prototype<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it takes.
    pub parameters: Vec<Parameter<'a>>,
    /// What it returns.
    pub results: Vec<Parameter<'a>>,
    /// The declaration without its semicolon.
    pub span: Span,
}

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Offset.
    pub at: u32,
    /// What is wrong there.
    pub why: &'static str,
}

/// Most faults that are listed.
const MOST_FAULTS: usize = 100;

/// How the names of ptxas's own functions begin: it takes a call of one for an instruction, whatever its body.
const INTRINSIC: &str = "__nv_ptx_builtin_ocg_";

/// Reads a module. Never fails: what can't be made sense of is in [`Module::faults`].
#[must_use]
pub fn parse(text: &str) -> Module<'_> {
    read(text, false)
}

/// The same, perhaps with no more of each body than where it ends.
pub(crate) fn read(text: &str, skims: bool) -> Module<'_> {
    let mut reader = Reader { skims, ..Reader::new(text, 0) };
    let mut module = Module::default();
    if u32::try_from(text.len()).is_err() {
        reader.fault("the text is larger than 4 GiB");
    } else {
        reader.module(&mut module);
        reader.twice(&module);
    }
    if let Some(at) = text.trim_end_matches('\0').find('\0') {
        // The driver reads no further, also where it is in a comment.
        reader.faults.insert(0, Fault { at: at as u32, why: "a zero byte amid the text" });
    }
    if let Some(at) = reader.lexer.open_comment {
        // All behind it is hidden.
        reader.faults.insert(0, Fault { at: at as u32, why: "a comment is not closed" });
    }
    if module.version.is_none() && reader.faults.is_empty() {
        reader.faults.push(Fault { at: 0, why: "no `.version`: this is no PTX" });
    }
    module.faults = reader.faults;
    module
}

pub(crate) struct Reader<'a> {
    pub(crate) lexer: Lexer<'a>,
    pub(crate) faults: Vec<Fault>,
    /// Whether bodies are passed by.
    skims: bool,
}

/// The front of a function.
struct Head<'a> {
    name: &'a str,
    at: Span,
    results: Vec<Parameter<'a>>,
    parameters: Vec<Parameter<'a>>,
    is_kernel: bool,
}

impl<'a> Reader<'a> {
    /// From an offset on.
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { lexer: Lexer::new(text, at), faults: Vec::new(), skims: false }
    }

    /// Notes that something is wrong with the next token.
    pub(crate) fn fault(&mut self, why: &'static str) {
        self.lexer.skip();
        self.fault_at(self.lexer.at as u32, why);
    }

    /// Notes that something is wrong at an offset.
    pub(crate) fn fault_at(&mut self, at: u32, why: &'static str) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault { at, why });
        }
    }

    /// Passes all up to the next semicolon, and that; stays in front of a brace or the text's end.
    pub(crate) fn resume(&mut self) {
        while let Some(Token { kind, span }) = self.lexer.peek() {
            if matches!(kind, Kind::Mark(b'{' | b'}')) {
                return;
            }
            self.lexer.at = span.end as usize;
            if kind == Kind::Mark(b';') {
                return;
            }
        }
        self.lexer.skip();
    }

    pub(crate) fn semicolon(&mut self) {
        if !self.lexer.eat(b';') {
            self.fault("a declaration is not ended");
            self.resume();
        }
    }

    /// `"…", "…";`
    pub(crate) fn pragma(&mut self) {
        loop {
            if self.lexer.take(Kind::Text).is_none() {
                self.fault("a pragma without a string");
                return self.resume();
            }
            if !self.lexer.eat(b',') {
                return self.semicolon();
            }
        }
    }

    /// Notes functions whose names ptxas has for others.
    fn twice(&mut self, module: &Module<'a>) {
        let mut known = HashSet::with_hasher(foldhash::fast::RandomState::default());
        for (alias, _) in &module.aliases {
            known.insert(*alias);
        }
        for function in &module.functions {
            if !known.insert(function.name) {
                self.fault_at(function.at.start, "a second function of this name");
            }
            if function.name.starts_with(INTRINSIC) {
                self.fault_at(function.at.start, "a function named like one of ptxas's own");
            }
        }
    }

    fn module(&mut self, module: &mut Module<'a>) {
        loop {
            let Some(token) = self.lexer.peek() else {
                self.lexer.skip();
                return;
            };
            let start = token.span.start as usize;
            self.lexer.at = token.span.end as usize;
            let word = self.lexer.slice(token.span);
            match (token.kind, word) {
                (Kind::Dotted, ".version") => match self.lexer.take(Kind::Number) {
                    Some(version) => module.version = Some(version),
                    None => self.fault("a version that is no number"),
                },
                (Kind::Dotted, ".target") => self.target(module),
                (Kind::Dotted, ".address_size") => {
                    if self.lexer.take(Kind::Number).is_none() {
                        self.fault("an address size that is no number");
                    }
                }
                (Kind::Dotted, ".file") => self.file(module),
                (Kind::Dotted, ".section") => self.section(module),
                (Kind::Dotted, ".pragma") => self.pragma(),
                (Kind::Dotted, ".alias") => self.alias(module),
                (Kind::Dotted, ".visible" | ".extern" | ".weak" | ".common") => {
                    let mut ahead = self.lexer.clone();
                    match ahead.take(Kind::Dotted) {
                        Some(what @ (".entry" | ".func")) => {
                            self.lexer = ahead;
                            self.function(module, (word, start), what == ".entry");
                        }
                        _ => self.variables(word, 0, 0, &mut module.variables),
                    }
                }
                (Kind::Dotted, ".entry" | ".func") => self.function(module, ("", start), word == ".entry"),
                (Kind::Dotted, ".global" | ".const" | ".shared" | ".local" | ".param" | ".tex" | ".surf" | ".sampler") => {
                    self.lexer.at = start;
                    self.variables("", 0, 0, &mut module.variables);
                }
                _ => {
                    self.lexer.at = start;
                    self.fault("what begins no directive");
                    self.lexer.at = token.span.end as usize;
                }
            }
        }
    }

    /// `sm_90a, debug`
    fn target(&mut self, module: &mut Module<'a>) {
        self.lexer.skip();
        let start = self.lexer.at;
        loop {
            match self.lexer.take(Kind::Word) {
                Some(word) => module.targets.push(word),
                None => return self.fault("a target without a name"),
            }
            let end = self.lexer.at;
            if !self.lexer.eat(b',') {
                module.target = module.target.or(Some(Span::new(start, end)));
                return;
            }
        }
    }

    /// `1 "path"`, and perhaps a time and a size.
    fn file(&mut self, module: &mut Module<'a>) {
        let number = self.lexer.take(Kind::Number).and_then(|number| u32::try_from(crate::constant::unsigned(number)?).ok());
        let path = self.lexer.take(Kind::Text).and_then(|path| path.strip_prefix('"')?.strip_suffix('"'));
        let (Some(number), Some(path)) = (number, path) else { return self.fault("a file without number and path") };
        module.files.push((number, unescaped(path)));
        while self.lexer.eat(b',') {
            if self.lexer.take(Kind::Number).is_none() {
                self.fault("a file's time or size that is no number");
            }
        }
    }

    /// `NAME, FUNCTION;`
    fn alias(&mut self, module: &mut Module<'a>) {
        let name = self.lexer.take(Kind::Word);
        let is_separated = self.lexer.eat(b',');
        match (name, self.lexer.take(Kind::Word)) {
            (Some(name), Some(function)) if is_separated => {
                module.aliases.push((name, function));
                self.semicolon();
            }
            _ => {
                self.fault("an alias that names no function");
                self.resume();
            }
        }
    }

    /// `.debug_info { … }`: labels and data, with neither braces nor semicolons.
    fn section(&mut self, module: &mut Module<'a>) {
        let name = self.lexer.take(Kind::Dotted);
        if name.is_none() || !self.lexer.eat(b'{') {
            return self.fault("a section without a name or data");
        }
        let start = self.lexer.at;
        while let Some(Token { kind, span }) = self.lexer.peek() {
            match kind {
                Kind::Mark(b'}') => {
                    if name == Some(".debug_str") {
                        module.strings.push(Span { start: start as u32, end: span.start });
                    }
                    self.lexer.at = span.end as usize;
                    return;
                }
                Kind::Word | Kind::Dotted | Kind::Number | Kind::Mark(b',' | b':' | b'+' | b'-') => self.lexer.at = span.end as usize,
                _ => break,
            }
        }
        self.fault("a section is not closed");
    }

    /// What stands behind `.func` or `.entry`.
    fn function(&mut self, module: &mut Module<'a>, (linkage, start): (&'a str, usize), is_kernel: bool) {
        let Some(head) = self.head(is_kernel) else { return self.resume() };
        self.lexer.skip();
        let span = Span::new(start, self.lexer.at);
        let Head { name, at, results, parameters, is_kernel } = head;
        if self.lexer.eat(b'{') {
            let mut function = Function { name, at, is_kernel, linkage, head: span, parameters, results, ..Function::default() };
            if self.skims {
                self.skim(&mut function);
            } else {
                self.body(&mut function);
            }
            module.functions.push(function);
        } else if self.lexer.eat(b';') {
            module.prototypes.push(Prototype { name, parameters, results, span });
        } else {
            self.fault("a function without a body");
        }
    }

    /// Passes a body by.
    fn skim(&mut self, function: &mut Function<'a>) {
        let start = self.lexer.at - 1;
        match self.lexer.closing_brace() {
            Some(end) => self.lexer.at = end,
            None => self.fault("the text ends within a function"),
        }
        function.body = Span::new(start, self.lexer.at);
    }

    /// A function's front up to its body or semicolon.
    fn head(&mut self, is_kernel: bool) -> Option<Head<'a>> {
        while self.lexer.peek()?.kind == Kind::Dotted {
            if self.lexer.take(Kind::Dotted) == Some(".attribute") {
                self.parentheses();
            }
        }
        let results = self.parameters();
        let token = self.lexer.peek();
        let Some(name) = self.lexer.take(Kind::Word) else {
            self.fault("a function without a name");
            return None;
        };
        let at = token.map_or(Span::default(), |token| token.span);
        let parameters = self.parameters();
        while let Some(word) = self.lexer.take(Kind::Dotted) {
            match word {
                ".pragma" => self.pragma(),
                ".attribute" => {
                    self.parentheses();
                }
                _ => {
                    while self.lexer.take(Kind::Number).is_some() {
                        self.lexer.eat(b',');
                    }
                }
            }
        }
        Some(Head { name, at, results, parameters, is_kernel })
    }

    /// A function that is declared in a body.
    pub(crate) fn prototype(&mut self) {
        if self.head(false).is_some() {
            self.semicolon();
        } else {
            self.resume();
        }
    }
}

/// A path as compilers write it: bytes that are no ASCII, and quotes, in octal; a backslash twice. ptxas itself takes the text as it is.
fn unescaped(path: &str) -> Cow<'_, str> {
    if !path.contains('\\') {
        return Cow::Borrowed(path);
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let octal = behind
            .get(..3)
            .filter(|digits| *first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) && digits[0] < b'4');
        let (byte, length) = match octal {
            Some(digits) => (digits.iter().fold(0, |sum, digit| sum << 3 | (digit - b'0')), 4),
            None => (*first, if rest.starts_with(b"\\\\") { 2 } else { 1 }),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}
