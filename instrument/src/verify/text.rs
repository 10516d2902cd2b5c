//! PTX text as functions, statements and labels. Nothing is known of instructions but what moves control: anything else is a statement.
//!
//! PTX ISA 9.0, chapters 4 (syntax) and 9.7.12 (control flow). Labels and registers declared inside braces are seen inside them only.

use std::borrow::Cow;

/// Scopes around a name that are looked through for it.
const DEEPEST: usize = 256;

/// A module as far as the proof needs it. Everything borrows from the text.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    /// `.target`, as it is spelled.
    pub(super) target: Option<&'a str>,
    /// `.version`, as it is spelled.
    pub(super) version: Option<&'a str>,
    /// Functions with a body, in order.
    pub(super) functions: Vec<Function<'a>>,
    /// Paths by the number of their `.file`.
    pub(super) files: Vec<(u32, &'a str)>,
    /// Module-scope variables: declaration with name and initial value, as spelled.
    pub(super) variables: Vec<&'a str>,
    /// Strings of the debug section by label, for names of inlined functions: the `.b8` lines behind each.
    pub(super) strings: Vec<(&'a str, &'a str)>,
    /// What is wrong with the text, with the offset.
    pub(super) faults: Vec<(usize, &'static str)>,
}

/// A `.func` or `.entry` with its body.
#[derive(Debug)]
pub(super) struct Function<'a> {
    /// Its name as the linker knows it.
    pub(super) name: &'a str,
    /// `.entry`.
    pub(super) is_kernel: bool,
    /// All between the name and the body: parameters and attributes.
    pub(super) head: &'a str,
    /// Offset of the name.
    pub(super) at: usize,
    /// Statements in order; the last is an implied `ret`.
    pub(super) statements: Vec<Statement>,
    /// Labels, sorted by name.
    pub(super) labels: Vec<Label<'a>>,
    /// The scope around each scope; the body's own is 0 and its own parent.
    pub(super) outer: Vec<u32>,
    /// `.reg` declarations: scope and what stands behind the word.
    pub(super) registers: Vec<(u32, &'a str)>,
    /// `.local`, `.shared`, `.param` and other declarations in the body, as spelled.
    pub(super) declarations: Vec<&'a str>,
    /// Distinct `.loc` lines in order; statements refer to them by index.
    pub(super) places: Vec<&'a str>,
}

/// A label and the statement that it stands in front of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label<'a> {
    pub(super) name: &'a str,
    pub(super) scope: u32,
    pub(super) statement: u32,
    /// What follows in the same statement for `.branchtargets`, `.calltargets` and `.callprototype`.
    pub(super) table: Option<&'a str>,
}

/// One statement without its semicolon.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement {
    /// Offset of its first byte: the guard's, if it has one.
    pub(super) start: u32,
    /// Offset behind its last byte.
    pub(super) end: u32,
    /// The scope it stands in.
    pub(super) scope: u32,
    /// Index of the `.loc` in force, from 1; 0 for none.
    pub(super) place: u32,
    /// What it does to control.
    pub(super) flow: Flow,
    /// Whether it has a guard (`@%p`).
    pub(super) guarded: bool,
}

/// What a statement does to control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Goes on to the next.
    Next,
    /// `bra`.
    Branch,
    /// `brx.idx`.
    Table,
    /// `call`.
    Call,
    /// `ret`.
    Return,
    /// `exit` or `trap`: the thread is gone.
    End,
}

/// Reads a module. Never fails: what can't be made sense of is in `faults`.
pub(super) fn read(text: &str) -> Module<'_> {
    let mut module = Module::default();
    if u32::try_from(text.len()).is_err() {
        module.faults.push((0, "the text is larger than 4 GiB"));
        return module;
    }
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, open_comment: None };
    reader.module(&mut module);
    module.faults.extend(reader.open_comment.map(|at| (at, "a comment is not closed")));
    if module.version.is_none_or(str::is_empty) && module.faults.is_empty() {
        module.faults.push((0, "no `.version`: this is no PTX"));
    }
    module
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// A comment that goes to the text's end, which hides whatever stands in it.
    open_comment: Option<usize>,
}

/// Bytes of names, registers and directives.
pub(super) fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut of = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            let ascii = byte as u8;
            of[byte] = ascii.is_ascii_alphanumeric() || matches!(ascii, b'_' | b'$' | b'%' | b'.') || byte >= 0x80;
            byte += 1;
        }
        of
    };
    WORD[byte as usize]
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// White space and comments.
    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'/' if self.bytes.get(self.at + 1) == Some(&b'/') => self.skip_line(),
                b'/' if self.bytes.get(self.at + 1) == Some(&b'*') => self.skip_block_comment(),
                _ => break,
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    fn skip_block_comment(&mut self) {
        let end = self.text[self.at..].find("*/");
        // What stands behind would not be seen.
        self.open_comment = self.open_comment.or(end.is_none().then_some(self.at));
        self.at = end.map_or(self.bytes.len(), |length| self.at + length + 2);
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(is_word) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn line(&mut self) -> &'a str {
        let start = self.at;
        self.skip_line();
        let line = &self.text[start..self.at];
        // A comment ends a line, but not within a path in quotes.
        let quoted = line.rfind('"').map_or(0, |at| at + 1);
        line[quoted..].find("//").map_or(line, |at| &line[..quoted + at]).trim()
    }

    /// Goes to the next of these bytes outside comments and strings; false at the text's end.
    fn find(&mut self, stops: &[u8]) -> bool {
        while let Some(byte) = self.peek() {
            if stops.contains(&byte) {
                return true;
            }
            match byte {
                b'/' if self.bytes.get(self.at + 1) == Some(&b'/') => self.skip_line(),
                b'/' if self.bytes.get(self.at + 1) == Some(&b'*') => self.skip_block_comment(),
                b'"' => self.skip_string(),
                _ => self.at += 1,
            }
        }
        false
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                // A string does not go over lines.
                b'"' | b'\n' => break,
                _ => {}
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn module(&mut self, module: &mut Module<'a>) {
        loop {
            self.skip_blank();
            let start = self.at;
            if self.peek().is_none() {
                return;
            }
            let word = self.word();
            match word {
                ".version" => module.version = Some(self.line()),
                ".target" => module.target = Some(self.line()),
                ".address_size" | ".loc" => self.skip_line(),
                ".file" => {
                    let line = self.line();
                    if let Some((number, path)) = line.split_once('"')
                        && let Ok(number) = number.trim().parse()
                    {
                        module.files.push((number, path.split('"').next().unwrap_or(path)));
                    }
                }
                ".section" => self.section(module),
                _ => self.declaration(module, start),
            }
            if self.at == start {
                // A stray byte: the text is no PTX from here on, but what follows may still hold functions.
                if module.faults.len() < 100 {
                    module.faults.push((start, "a byte that begins no statement"));
                }
                self.at += self.text[start..].chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    /// A debug section: labels and data in braces.
    fn section(&mut self, module: &mut Module<'a>) {
        let line = self.line();
        let is_strings = line.starts_with(".debug_str");
        self.skip_blank();
        if line.ends_with('{') {
            // The brace stands on the same line.
        } else if self.peek() == Some(b'{') {
            self.at += 1;
        } else {
            return;
        }
        let start = self.at;
        // Data has neither statements nor braces: these are what stands behind a section that is not closed.
        if !self.find(b"{};") || self.peek() != Some(b'}') {
            module.faults.push((start, "a section is not closed"));
            return;
        }
        let body = &self.text[start..self.at];
        self.at += 1;
        if is_strings {
            let mut rest = body;
            while let Some((label, behind)) = rest.split_once(':') {
                let end = behind.find(':').and_then(|next| behind[..next].rfind('\n')).unwrap_or(behind.len());
                module.strings.push((label.trim(), &behind[..end]));
                rest = &behind[end..];
            }
        }
    }

    /// A variable, a prototype or a function.
    fn declaration(&mut self, module: &mut Module<'a>, start: usize) {
        if !self.find(b";{") {
            if self.at > start {
                module.faults.push((start, "the text ends within a declaration"));
            }
            return;
        }
        let head = &self.text[start..self.at];
        let Some((is_kernel, name_at)) = function_name(head) else {
            // An initial value may hold braces.
            if !self.find(b";") {
                module.faults.push((start, "the text ends within a declaration"));
                return;
            }
            module.variables.push(&self.text[start..self.at]);
            self.at += 1;
            return;
        };
        let is_body = self.peek() == Some(b'{');
        self.at += 1;
        if !is_body {
            return;
        }
        let name = name_of(&head[name_at..]);
        let mut function = Function {
            name,
            is_kernel,
            head: &head[name_at + name.len()..],
            at: start + name_at,
            statements: Vec::new(),
            labels: Vec::new(),
            outer: vec![0],
            registers: Vec::new(),
            declarations: Vec::new(),
            places: Vec::new(),
        };
        if let Err(why) = self.body(&mut function) {
            module.faults.push((self.at.min(self.bytes.len()), why));
        }
        function.labels.sort_by_key(|label| (label.name, label.scope));
        module.functions.push(function);
    }

    fn body(&mut self, function: &mut Function<'a>) -> Result<(), &'static str> {
        let (mut scope, mut place) = (0_u32, 0_u32);
        let mut result = Ok(());
        loop {
            self.skip_blank();
            let start = self.at;
            let Some(byte) = self.peek() else {
                result = Err("the text ends within a function");
                break;
            };
            match byte {
                b'}' => {
                    self.at += 1;
                    if scope == 0 {
                        break;
                    }
                    scope = function.outer[scope as usize];
                }
                b'{' => {
                    self.at += 1;
                    function.outer.push(scope);
                    scope = function.outer.len() as u32 - 1;
                }
                b';' => self.at += 1,
                b'@' => {
                    result = self.statement(function, scope, place, true);
                }
                b'.' => {
                    let word = self.word();
                    if word == ".loc" {
                        let line = self.line();
                        if function.places.last() != Some(&line) {
                            function.places.push(line);
                        }
                        place = function.places.len() as u32;
                        continue;
                    }
                    if word == ".file" {
                        self.skip_line();
                        continue;
                    }
                    let behind = self.at;
                    if !self.find(b";:@{=") {
                        result = Err("the text ends within a function");
                        break;
                    }
                    // A label, a guard or a body: the declaration has lost its end, and would hide what stands behind it. An initial value
                    // may have braces.
                    if self.peek() != Some(b';') && !(self.peek() == Some(b'=') && self.find(b";")) {
                        result = Err("a declaration is not ended");
                        break;
                    }
                    if word == ".reg" {
                        function.registers.push((scope, &self.text[behind..self.at]));
                    } else {
                        function.declarations.push(&self.text[start..self.at]);
                    }
                    self.at += 1;
                }
                _ if is_word(byte) => {
                    let word_end = start + self.bytes[start..].iter().position(|&byte| !is_word(byte)).unwrap_or(self.bytes.len() - start);
                    let colon = word_end + self.bytes[word_end..].iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(0);
                    if self.bytes.get(colon) == Some(&b':') && self.bytes.get(colon + 1) != Some(&b':') {
                        self.at = colon + 1;
                        self.label(function, &self.text[start..word_end], scope)?;
                    } else {
                        result = self.statement(function, scope, place, false);
                    }
                }
                _ => {
                    result = Err("a byte that begins no statement");
                    break;
                }
            }
            if result.is_err() {
                break;
            }
        }
        let end = self.at.min(self.bytes.len()) as u32;
        function.statements.push(Statement { start: end, end, scope: 0, place, flow: Flow::Return, guarded: false });
        result
    }

    fn label(&mut self, function: &mut Function<'a>, name: &'a str, scope: u32) -> Result<(), &'static str> {
        let statement = function.statements.len() as u32;
        self.skip_blank();
        let rest = &self.text[self.at..];
        let table = if [".branchtargets", ".calltargets", ".callprototype"].iter().any(|word| rest.starts_with(word)) {
            let start = self.at;
            if !self.find(b";") {
                return Err("the text ends within a function");
            }
            self.at += 1;
            Some(&self.text[start..self.at - 1])
        } else {
            None
        };
        function.labels.push(Label { name, scope, statement, table });
        Ok(())
    }

    fn statement(&mut self, function: &mut Function<'a>, scope: u32, place: u32, guarded: bool) -> Result<(), &'static str> {
        let start = self.at;
        // Semicolons end statements; a comment inside one is rare and looked for only where a slash stands.
        loop {
            let Some(next) = memchr::memchr3(b';', b':', b'/', &self.bytes[self.at..]) else {
                self.at = self.bytes.len();
                return Err("the text ends within a function");
            };
            self.at += next;
            match self.bytes[self.at] {
                b';' => break,
                b':' if self.bytes.get(self.at + 1) == Some(&b':') => self.at += 2,
                // A label: the statement has lost its end, and would hide what stands behind it.
                b':' => return Err("a statement is not ended"),
                b'/' if self.bytes.get(self.at + 1) == Some(&b'/') => self.skip_line(),
                b'/' if self.bytes.get(self.at + 1) == Some(&b'*') => self.skip_block_comment(),
                _ => self.at += 1,
            }
        }
        let text = &self.bytes[start..self.at];
        let mut opcode = 0;
        if guarded {
            opcode = 1;
            let skip = |mut at: usize, while_: fn(u8) -> bool| {
                while text.get(at).is_some_and(|&byte| while_(byte)) {
                    at += 1;
                }
                at
            };
            opcode = skip(opcode, |byte| byte.is_ascii_whitespace() || byte == b'!');
            opcode = skip(opcode, is_word);
            opcode = skip(opcode, |byte| byte.is_ascii_whitespace());
        }
        let end = self.at as u32;
        self.at += 1;
        let flow = flow_of(&text[opcode.min(text.len())..]);
        function.statements.push(Statement { start: start as u32, end, scope, place, flow, guarded });
        Ok(())
    }
}

/// By the opcode's letters up to a dot or blank.
fn flow_of(text: &[u8]) -> Flow {
    let is =
        |word: &[u8]| text.starts_with(word) && !text.get(word.len()).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match text.first() {
        Some(b'b') if is(b"bra") => Flow::Branch,
        Some(b'b') if is(b"brx") => Flow::Table,
        Some(b'c') if is(b"call") => Flow::Call,
        Some(b'r') if is(b"ret") => Flow::Return,
        Some(b'e') if is(b"exit") => Flow::End,
        Some(b't') if is(b"trap") => Flow::End,
        _ => Flow::Next,
    }
}

/// Whether the head is a kernel's, and where the name begins in `.visible .entry NAME(…)` or `.func (.param .b32 x) NAME(…)`.
fn function_name(head: &str) -> Option<(bool, usize)> {
    let (is_kernel, word) = [(true, ".entry"), (false, ".func")].into_iter().find_map(|(is_kernel, word)| {
        head.match_indices(word)
            .find(|(at, _)| {
                let around = [at.checked_sub(1).map(|before| head.as_bytes()[before]), head.as_bytes().get(at + word.len()).copied()];
                around.iter().flatten().all(|byte| !is_word(*byte))
            })
            .map(|(at, _)| (is_kernel, at + word.len()))
    })?;
    let mut at = word;
    loop {
        let blank = head[at..].len() - head[at..].trim_start().len();
        at += blank;
        if head[at..].starts_with("//") {
            at += head[at..].find('\n')?;
        } else if head[at..].starts_with("/*") {
            at += head[at..].find("*/")? + 2;
        } else if head[at..].starts_with('(') {
            at += head[at..].find(')')? + 1;
        } else {
            break;
        }
    }
    (!name_of(&head[at..]).is_empty()).then_some((is_kernel, at))
}

fn name_of(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_word(byte) || byte == b'.').unwrap_or(text.len());
    &text[..end]
}

/// The text with a blank for each comment.
pub(super) fn uncommented(text: &str) -> Cow<'_, str> {
    if !text.contains('/') {
        return Cow::Borrowed(text);
    }
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('/') {
        let (before, behind) = rest.split_at(at);
        clean.push_str(before);
        let end = match behind.as_bytes().get(1) {
            Some(b'/') => behind.find('\n'),
            Some(b'*') => behind.find("*/").map(|at| at + 2),
            _ => {
                clean.push('/');
                Some(1)
            }
        };
        if end != Some(1) {
            clean.push(' ');
        }
        rest = end.map_or("", |end| &behind[end..]);
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

impl<'a> Function<'a> {
    /// Where a label leads, seen from a scope: the innermost of that name around it.
    pub(super) fn label(&self, mut scope: u32, name: &str) -> Option<&Label<'a>> {
        for _ in 0..DEEPEST {
            let at = self.labels.partition_point(|label| (label.name, label.scope) < (name, scope));
            if let Some(label) = self.labels.get(at).filter(|label| label.name == name && label.scope == scope) {
                return Some(label);
            }
            if scope == 0 {
                return None;
            }
            scope = self.outer[scope as usize];
        }
        None
    }
}
