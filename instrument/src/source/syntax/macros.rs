//! Macros and their meaning: attributes of device functions, loops, whole functions. Sources are the file's own definitions, families of macros that
//! public CUDA code uses, and the configuration.

use crate::common::options::{CompilerLoop, Options, Space, UnitMacro, ValueMacro};
use crate::source::syntax::asm;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::{begins_attributes, spaces_at};
use crate::source::syntax::integer::{self, Integer};
use crate::source::syntax::macro_families::{DEVICE, HOST_DEVICE, KERNEL, LOOP_OPENERS};
use crate::source::syntax::macro_values;
use crate::source::syntax::token::{Define, Directive, Kind, Lexed, Line, Token, is_name_byte, lex, splice};
use std::collections::{BTreeMap, BTreeSet};

/// Where a function runs, as a set: several attributes add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spaces {
    pub(crate) host: bool,
    pub(crate) device: bool,
    pub(crate) global: bool,
}

impl Spaces {
    pub(crate) const HOST: Self = Self { host: true, device: false, global: false };
    pub(crate) const DEVICE: Self = Self { host: false, device: true, global: false };
    pub(crate) const GLOBAL: Self = Self { host: false, device: false, global: true };
    pub(crate) const BOTH: Self = Self { host: true, device: true, global: false };

    pub(crate) fn union(self, other: Self) -> Self {
        Self { host: self.host || other.host, device: self.device || other.device, global: self.global || other.global }
    }

    pub(crate) fn any(self) -> bool {
        self.host || self.device || self.global
    }

    /// Whether a GPU may run it.
    pub(crate) fn on_device(self) -> bool {
        self.device || self.global
    }
}

/// A macro of this file whose body holds a loop, or uses a macro that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looping {
    /// The body is a loop's header without its statement, so the statement behind the use is the loop's body.
    pub(crate) opens: bool,
}

/// All that is known of macros.
#[derive(Debug, Default)]
pub(crate) struct Macros<'a> {
    aliases: BTreeMap<&'a [u8], Spaces>,
    /// Function-like aliases of this file: a list of arguments follows.
    with_arguments: BTreeSet<&'a [u8]>,
    looping: BTreeMap<&'a [u8], Looping>,
    loop_openers: BTreeSet<&'a [u8]>,
    /// Macros of other files that open none.
    plain: BTreeSet<&'a [u8]>,
    /// Labels that a macro's body jumps to, or that of a macro which it uses.
    jumps: BTreeMap<&'a [u8], BTreeSet<&'a [u8]>>,
    /// Macros of this file that make words out of parts, or use one that does.
    pasting: BTreeSet<&'a [u8]>,
    /// Macros of this file that make attributes of what they take.
    attributing: BTreeSet<&'a [u8]>,
    /// Macros that may put their arguments into device code.
    device_makers: BTreeSet<&'a [u8]>,
    /// Macros that stand for the word `asm`.
    asm_words: BTreeSet<&'a [u8]>,
    /// Macros that hold a lambda's captures, and not its body.
    captures: BTreeSet<&'a [u8]>,
    /// Names defined in this file.
    defined: BTreeMap<&'a [u8], Vec<usize>>,
    /// Names that stand for one integer in the whole file, and where they begin to: defined once, under no condition, undefined nowhere.
    constants: BTreeMap<&'a [u8], (usize, Integer)>,
    /// Names that stand for a literal wherever they are defined.
    literals: BTreeSet<&'a [u8]>,
    /// What all files of the translation unit say of their macros.
    unit: BTreeMap<&'a [u8], &'a UnitMacro>,
    /// Those that stand for values in all files that are known.
    values: BTreeMap<Vec<u8>, ValueMacro>,
    /// Bodies of this file's macros that hold code worth reading: a loop or a device function.
    pub(crate) fragments: Vec<Fragment>,
    bodies: Vec<Fragment>,
}

/// Most labels that a macro is known to jump to; beyond, it may jump anywhere.
const MOST_LABELS: usize = 16;

/// Which bodies of macros name which macros.
struct Uses<'a> {
    names: Vec<&'a [u8]>,
    users: BTreeMap<&'a [u8], Vec<usize>>,
}

impl<'a> Uses<'a> {
    fn of(source: &'a [u8], bodies: &[(&'a [u8], &Fragment)]) -> Self {
        let names: Vec<&[u8]> = bodies.iter().map(|(name, _)| *name).collect();
        let mut users: BTreeMap<&[u8], Vec<usize>> = names.iter().map(|name| (*name, Vec::new())).collect();
        for (index, (_, body)) in bodies.iter().enumerate() {
            for token in body.tokens.iter().filter(|token| token.kind == Kind::Ident) {
                if let Some(users) = users.get_mut(&source[token.range()])
                    && users.last() != Some(&index)
                {
                    users.push(index);
                }
            }
        }
        Self { names, users }
    }

    /// Asks each body what is new of its macro, and again those that name a macro of which something is.
    fn spread(&self, mut is_new: impl FnMut(usize) -> bool) {
        let mut work: Vec<usize> = (0..self.names.len()).rev().collect();
        while let Some(index) = work.pop() {
            if is_new(index) {
                work.extend(self.users.get(self.names[index]).into_iter().flatten());
            }
        }
    }
}

/// Names that the file defines, without parameters, and where what they mark runs, if they mark functions. `options` names macros that are known
/// from elsewhere. For those who rewrite several files of one translation unit: a macro may stand in one and be used in another.
#[cfg(feature = "launcher")]
pub(crate) fn definitions(source: &[u8], lexed: &Lexed, options: &Options) -> BTreeMap<String, Option<Space>> {
    let macros = Macros::read(source, lexed, options);
    let plain = macros.defined.keys().filter(|name| !macros.with_arguments.contains(*name));
    plain
        .map(|name| {
            let spaces = macros.aliases.get(name).copied().unwrap_or_default();
            let space = match spaces {
                Spaces { global: true, .. } => Some(Space::Kernel),
                Spaces { device: true, host: true, .. } => Some(Space::HostDevice),
                Spaces { device: true, .. } => Some(Space::Device),
                _ => None,
            };
            (String::from_utf8_lossy(name).into_owned(), space)
        })
        .collect()
}

/// Whether the name says that it may be a loop.
pub(crate) fn sounds_like_a_loop(name: &[u8]) -> bool {
    ["loop", "for", "while", "repeat"].iter().any(|word| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes())))
}

/// The meaning of a word inside `__attribute__((…))`.
pub(crate) fn spaces_of_word(word: &[u8]) -> Spaces {
    match word {
        b"device" | b"__device__" => Spaces::DEVICE,
        b"global" | b"__global__" => Spaces::GLOBAL,
        b"host" | b"__host__" => Spaces::HOST,
        _ => Spaces::default(),
    }
}

impl<'a> Macros<'a> {
    /// Reads the file's definitions.
    pub(crate) fn read(source: &'a [u8], lexed: &Lexed, options: &'a Options) -> Self {
        let mut macros = Self::default();
        for (names, spaces) in [(DEVICE, Spaces::DEVICE), (HOST_DEVICE, Spaces::BOTH), (KERNEL, Spaces::GLOBAL)] {
            macros.aliases.extend(names.split_ascii_whitespace().map(|name| (name.as_bytes(), spaces)));
        }
        macros.loop_openers.extend(LOOP_OPENERS.split_ascii_whitespace().map(str::as_bytes));
        for device_macro in &options.device_macros {
            let spaces = match device_macro.space {
                Space::Kernel => Spaces::GLOBAL,
                Space::Device => Spaces::DEVICE,
                Space::HostDevice => Spaces::BOTH,
            };
            macros.aliases.insert(device_macro.name.as_bytes(), spaces);
        }
        macros.loop_openers.extend(options.loop_macros.iter().map(String::as_bytes));
        macros.plain.extend(options.plain_macros.iter().map(String::as_bytes));
        macros.unit = options.unit_macros.iter().map(|one| (one.name.as_bytes(), one)).collect();
        let jumping = options.unit_macros.iter().filter(|one| !one.labels.is_empty());
        macros.jumps.extend(jumping.map(|one| (one.name.as_bytes(), one.labels.iter().map(String::as_bytes).collect())));
        macros.read_definitions(source, lexed);
        let is_alone = options.value_macros.is_empty() && !options.in_unit;
        let values = if is_alone { macro_values::of_files(&[(source, lexed)], None) } else { options.value_macros.clone() };
        macros.values = values.into_iter().map(|value| (value.name.clone().into_bytes(), value)).collect();
        macros.read_constants(source, lexed);
        macros
    }

    /// The integer that a name stands for at an offset of this file. A definition in the text comes after those of `-D`.
    pub(crate) fn constant(&self, name: &[u8], at: usize) -> Option<Integer> {
        self.constants.get(name).filter(|(since, _)| *since < at).map(|(_, integer)| *integer)
    }

    /// Whether each definition of the name in this file is a literal, or `_Pragma("unroll")`: no part of an expression that could change anything.
    pub(crate) fn is_literal(&self, name: &[u8]) -> bool {
        self.literals.contains(name)
    }

    /// Whether the name stands for a value, wherever it is defined, with which no variable can be changed; `called` says that a parenthesis follows.
    pub(crate) fn is_harmless(&self, name: &[u8], called: bool) -> bool {
        self.values.get(name).is_some_and(|value| value.harmless && (called || !value.takes_arguments))
    }

    /// Whether the name, or a call of it, stands for one value, wherever it is defined. The value is made of constants
    /// and of the call's arguments.
    pub(crate) fn is_constant(&self, name: &[u8], called: bool) -> bool {
        self.is_literal(name) || self.values.get(name).is_some_and(|value| value.constant && value.takes_arguments == called)
    }

    /// Whether the macro of that name takes the values of its arguments.
    pub(crate) fn computes(&self, name: &[u8]) -> bool {
        self.values.get(name).is_some_and(|value| value.takes_arguments && value.harmless && value.computed)
    }

    /// The variables that a name stands for, if that is a value which is one operand, wherever it is defined.
    pub(crate) fn operand(&self, name: &[u8]) -> Option<&[String]> {
        self.values.get(name).filter(|value| value.whole).map(|value| &value.reads[..])
    }

    /// The number that a name probably stands for. Nothing that has to be right may rest on it.
    pub(crate) fn likely(&self, name: &[u8]) -> Option<i64> {
        self.values.get(name)?.likely
    }

    fn read_constants(&mut self, source: &'a [u8], lexed: &Lexed) {
        // A macro that is undefined by name, or whose name the end of a line splits, can't be followed.
        let is_split = |directive: &Directive| !matches!(directive.line, Line::Pragma) && splits_a_name(&source[directive.span.clone()]);
        if source.windows(9).any(|word| word == b"pop_macro") || lexed.directives.iter().any(is_split) {
            return;
        }
        let mut depth = 0_usize;
        let mut undefined = BTreeSet::new();
        for directive in &lexed.directives {
            match &directive.line {
                Line::If(_) => depth += 1,
                Line::Endif => depth = depth.saturating_sub(1),
                Line::Define(define) if depth == 0 && !define.function_like => {
                    let name = &source[define.name.clone()];
                    if let Some(index) = self.defined.get(name).and_then(|definitions| definitions.first())
                        && let Some(value) = integer_of(source, &self.bodies[*index])
                    {
                        self.constants.insert(name, (define.name.start, value));
                    }
                }
                Line::Other => {
                    let words = lex(source, directive.span.clone(), true).tokens;
                    undefined.extend(words.iter().map(|word| &source[word.range()]));
                }
                _ => {}
            }
        }
        let defined = &self.defined;
        // An included file, or the command line, may say otherwise.
        let (unit, values) = (&self.unit, &self.values);
        let is_redefined = |name: &[u8], own: usize| unit.get(name).is_some_and(|one| one.definitions > own);
        let is_undefined = |name: &[u8]| !undefined.contains(name) && unit.get(name).is_some_and(|one| one.undefined > 0);
        let is_constant = |name: &[u8]| values.get(name).is_some_and(|value| value.constant && !value.takes_arguments);
        self.constants.retain(|name, _| {
            let own = defined.get(name).map_or(0, Vec::len);
            own == 1 && !undefined.contains(name) && !is_undefined(name) && !is_redefined(name, own)
        });
        self.literals = defined
            .iter()
            .filter(|(_, definitions)| definitions.iter().all(|index| is_literal(source, &self.bodies[*index])))
            .filter(|(name, definitions)| !is_undefined(name) && (is_constant(name) || !is_redefined(name, definitions.len())))
            .map(|(name, _)| *name)
            .collect();
    }

    fn read_definitions(&mut self, source: &'a [u8], lexed: &Lexed) {
        let mut bodies: Vec<(&'a [u8], bool, Fragment)> = Vec::new();
        let mut takes = Vec::new();
        for directive in &lexed.directives {
            let Line::Define(define) = &directive.line else { continue };
            let fragment = Fragment::of_macro(source, define.name.clone(), define.body.clone());
            let name = &source[define.name.clone()];
            takes.push(names_a_parameter(source, define, &fragment, |_| true));
            let lists = (0..fragment.len()).filter(|at| begins_attributes(source, &fragment, *at));
            let lists: Vec<_> = lists.filter_map(|at| Some(at..fragment.mate(at + 1)?)).collect();
            if names_a_parameter(source, define, &fragment, |at| lists.iter().any(|list| list.contains(&at))) {
                self.attributing.insert(name);
            }
            self.defined.entry(name).or_default().push(bodies.len());
            bodies.push((name, define.function_like, fragment));
        }
        // A macro that uses another one has its meaning, too, in any order of definitions.
        let uses = Uses::of(source, &bodies.iter().map(|(name, _, body)| (*name, body)).collect::<Vec<_>>());
        let mut from_file: BTreeMap<&'a [u8], Spaces> = BTreeMap::new();
        uses.spread(|index| {
            let (name, function_like, body) = &bodies[index];
            let spaces = self.spaces_in(source, body);
            if body.tokens.iter().any(|token| token.is(b'{')) || !spaces.any() {
                return false;
            }
            if *function_like {
                self.with_arguments.insert(name);
            }
            let known = from_file.entry(name).or_default();
            let all = known.union(spaces);
            let is_new = all != *known;
            *known = all;
            if is_new {
                self.aliases.insert(name, all);
            }
            is_new
        });
        uses.spread(|index| {
            let (name, _, body) = &bodies[index];
            let repeats = |token: &Token| match token.kind {
                Kind::For | Kind::While | Kind::Do => true,
                Kind::Ident => self.looping.contains_key(&source[token.range()]),
                _ => false,
            };
            if from_file.contains_key(name) || !body.tokens.iter().any(repeats) {
                return false;
            }
            let known = self.looping.get(name).copied();
            let looping = Looping { opens: known.is_some_and(|known| known.opens) || self.opens_a_loop(source, body) };
            self.looping.insert(name, looping) != Some(looping)
        });
        uses.spread(|index| {
            let (name, _, body) = &bodies[index];
            let mut labels = self.jumps.get(name).cloned().unwrap_or_default();
            if labels.contains(&b""[..]) {
                return false;
            }
            for (at, token) in body.tokens.iter().enumerate() {
                match token.kind {
                    Kind::Goto => labels.extend([body.text(source, at + 1)]),
                    Kind::Ident => labels.extend(self.jumps.get(&source[token.range()]).into_iter().flatten()),
                    _ => {}
                }
            }
            if labels.len() > MOST_LABELS || labels.contains(&b""[..]) {
                labels = BTreeSet::from([&b""[..]]);
            }
            !labels.is_empty() && self.jumps.insert(name, labels.clone()) != Some(labels)
        });
        self.read_words(source, &uses, &bodies, &takes);
        self.keep(source, bodies);
    }

    /// What macros make of words: others by `##`, device code of what they take, and `asm`. `takes` says which take anything.
    fn read_words(&mut self, source: &'a [u8], uses: &Uses<'a>, bodies: &[(&'a [u8], bool, Fragment)], takes: &[bool]) {
        uses.spread(|index| {
            let (name, _, body) = &bodies[index];
            let text = body
                .tokens
                .first()
                .zip(body.tokens.last())
                .map_or(&b""[..], |(first, last)| &source[first.start as usize..last.end as usize]);
            let own = text.windows(2).any(|pair| pair == b"##" || pair == b"%:");
            let by_another = || body.tokens.iter().any(|token| token.kind == Kind::Ident && self.pasting.contains(&source[token.range()]));
            (own || by_another()) && self.pasting.insert(name)
        });
        uses.spread(|index| {
            let (name, _, body) = &bodies[index];
            let hands_on = |token: &Token| token.kind == Kind::Ident && self.device_makers.contains(&source[token.range()]);
            let makes = || self.spaces_in(source, body).on_device() || body.tokens.iter().any(hands_on);
            takes[index] && makes() && self.device_makers.insert(name)
        });
        uses.spread(|index| {
            let (name, _, body) = &bodies[index];
            asm::ends_with_word(source, body, |word| self.asm_words.contains(word)) && self.asm_words.insert(name)
        });
        uses.spread(|index| {
            let (name, _, body) = &bodies[index];
            body.holds_captures(|at| self.captures.contains(body.text(source, at))) && self.captures.insert(name)
        });
    }

    /// Keeps the bodies, and as fragments those that make a device function or a loop.
    fn keep(&mut self, source: &[u8], bodies: Vec<(&'a [u8], bool, Fragment)>) {
        for (name, _, mut fragment) in bodies {
            fragment.add_lambdas(source, |name| self.is_captures(name));
            let makes_function = fragment.tokens.iter().any(|token| token.is(b'{'))
                && fragment.tokens.iter().any(|token| self.spaces_of(token.kind, &source[token.range()]).on_device());
            let has_loop = fragment.tokens.iter().any(|token| matches!(token.kind, Kind::For | Kind::While | Kind::Do | Kind::Goto));
            let may_loop = |at| match fragment.kind(at) {
                Some(Kind::Asm) => asm::may_loop(source, &fragment, at).is_some(),
                _ => asm::use_may_loop(source, &fragment, self, at).is_some(),
            };
            if makes_function || (has_loop && self.looping.contains_key(name)) || (0..fragment.len()).any(may_loop) {
                self.fragments.push(fragment.clone());
            }
            self.bodies.push(fragment);
        }
    }

    /// Where a function runs whose head begins with these words.
    fn spaces_in(&self, source: &[u8], body: &Fragment) -> Spaces {
        (0..body.len()).fold(Spaces::default(), |spaces, at| spaces.union(spaces_at(source, body, self, at)))
    }

    /// Whether a body ends with a loop's header: `for (…)`, `while (…)`, or a use of a macro that does.
    fn opens_a_loop(&self, source: &[u8], fragment: &Fragment) -> bool {
        let Some(last) = fragment.len().checked_sub(1) else { return false };
        if !fragment.is(last, b')') {
            return false;
        }
        let Some(before) = fragment.mate(last).and_then(|open| fragment.before(open)) else { return false };
        match fragment.tokens[before].kind {
            Kind::For => true,
            // The `while` of `do … while (…)` closes a loop, it opens none.
            Kind::While => !fragment.tokens.iter().any(|token| token.kind == Kind::Do),
            Kind::Ident => {
                let name = fragment.text(source, before);
                self.loop_openers.contains(name) || self.looping.get(name).is_some_and(|looping| looping.opens)
            }
            _ => false,
        }
    }

    /// Where a function runs whose head holds this token.
    pub(crate) fn spaces_of(&self, kind: Kind, text: &[u8]) -> Spaces {
        match kind {
            Kind::Host => Spaces::HOST,
            Kind::Device => Spaces::DEVICE,
            Kind::Global => Spaces::GLOBAL,
            Kind::Ident => self.aliases.get(text).copied().unwrap_or_default(),
            _ => Spaces::default(),
        }
    }

    /// Whether an alias of this file takes arguments.
    pub(crate) fn takes_arguments(&self, name: &[u8]) -> bool {
        self.with_arguments.contains(name)
    }

    /// The macro of this file that brings a loop along.
    pub(crate) fn looping(&self, name: &[u8]) -> Option<Looping> {
        if self.looping.is_empty() { None } else { self.looping.get(name).copied() }
    }

    /// Macros of this file that bring loops or jumps along.
    pub(crate) fn repeating(&self) -> BTreeSet<&'a [u8]> {
        self.looping.keys().chain(self.jumps.keys()).copied().collect()
    }

    /// The labels that the macro of that name jumps to.
    pub(crate) fn jumps(&self, name: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.jumps.get(name).into_iter().flatten().copied()
    }

    /// Whether the macro of that name may put its arguments into device code.
    pub(crate) fn makes_device_code(&self, name: &[u8]) -> bool {
        self.device_makers.contains(name)
    }

    /// Whether the macro of that name stands for the word `asm`, whose text follows its use.
    pub(crate) fn is_asm(&self, name: &[u8]) -> bool {
        self.asm_words.contains(name)
    }

    /// Whether the macro of that name holds a lambda's captures, whose body follows its use.
    pub(crate) fn is_captures(&self, name: &[u8]) -> bool {
        self.captures.contains(name) || self.unit.get(name).is_some_and(|one| one.captures)
    }

    /// Whether this file defines the name, or another one does as a macro that may change a variable.
    pub(crate) fn is_defined(&self, name: &[u8]) -> bool {
        self.is_own(name) || self.unit.get(name).is_some_and(|one| one.changes)
    }

    /// Whether this file defines the name.
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        self.defined.contains_key(name)
    }

    /// Whether the macro of that name may leave what is around it: this file's are taken to do so.
    pub(crate) fn may_leave(&self, name: &[u8]) -> bool {
        self.is_own(name) || self.unit.get(name).is_some_and(|one| one.leaves)
    }

    /// Whether the macro of that name repeats by a text that gets no polls.
    pub(crate) fn repeats(&self, name: &[u8]) -> bool {
        self.unit.get(name).is_some_and(|one| one.repeats)
    }

    /// Whether a text that the macro of that name stands for marks a device function.
    pub(crate) fn marks(&self, name: &[u8]) -> bool {
        self.unit.get(name).is_some_and(|one| one.marks)
    }

    /// Macros of the translation unit that the compiler makes loops of.
    pub(crate) fn compiler_loops(&self) -> impl Iterator<Item = (&'a [u8], CompilerLoop)> {
        self.unit.iter().filter_map(|(name, one)| Some((*name, one.compiler_loop?)))
    }

    /// Whether the name is known to open a loop, from elsewhere.
    pub(crate) fn is_loop_opener(&self, name: &[u8]) -> bool {
        self.loop_openers.contains(name)
    }

    /// Whether the name is known to open no loop, from elsewhere.
    pub(crate) fn is_plain(&self, name: &[u8]) -> bool {
        self.plain.contains(name) && !self.loop_openers.contains(name)
    }

    /// Whether the macro of that name makes attributes of what it takes: `__attribute__((x))`.
    pub(crate) fn attributes(&self, name: &[u8]) -> bool {
        self.attributing.contains(name)
    }

    /// Where a function runs whose attributes hold this word, or a macro that stands for one.
    pub(crate) fn spaces_of_attribute(&self, source: &[u8], word: &[u8]) -> Spaces {
        let behind = self.bodies_of(word).flat_map(|body| &body.tokens).map(|token| spaces_of_word(&source[token.range()]));
        behind.fold(spaces_of_word(word), Spaces::union)
    }

    /// Whether the macro of that name makes words out of parts.
    pub(crate) fn pastes(&self, name: &[u8]) -> bool {
        self.pasting.contains(name)
    }

    /// Whether the macro of that name stands for a pragma, by its definitions in this file; by its name if it has none.
    pub(crate) fn is_pragma(&self, source: &[u8], name: &[u8]) -> bool {
        let (mut seen, mut work, mut found) = (BTreeSet::from([name]), vec![name], false);
        while let Some(name) = work.pop() {
            for body in self.bodies_of(name) {
                for token in &body.tokens {
                    let text = &source[token.range()];
                    match token.kind {
                        Kind::Pragma => found = true,
                        Kind::Ident if self.is_own(text) && seen.insert(text) => work.push(text),
                        Kind::Ident | Kind::Number | Kind::Str | Kind::Punct(b'#' | b'(' | b')' | b',') => {}
                        _ => return false,
                    }
                }
            }
        }
        let says = |word: &[u8]| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        found || (!self.is_own(name) && (says(b"unroll") || says(b"pragma")))
    }

    /// Bodies of the macro of that name in this file.
    pub(crate) fn bodies_of(&self, name: &[u8]) -> impl Iterator<Item = &Fragment> {
        self.defined.get(name).into_iter().flatten().map(|index| &self.bodies[*index])
    }

    /// All definitions of this file: the macros' names and bodies.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&'a [u8], &Fragment)> {
        self.defined.iter().flat_map(|(name, indices)| indices.iter().map(|index| (*name, &self.bodies[*index])))
    }

    /// Bodies of all macros of this file.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Fragment> {
        self.bodies.iter()
    }
}

/// Whether a macro's body holds what its use gives, at a token that counts.
fn names_a_parameter(source: &[u8], define: &Define, body: &Fragment, counts: impl Fn(usize) -> bool) -> bool {
    let parameters = &source[define.name.end..define.body.start];
    let is_parameter =
        |name: &[u8]| name == b"__VA_ARGS__" || parameters.split(|byte| !is_name_byte(*byte)).any(|parameter| parameter == name);
    let mut named = body.tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Ident && is_parameter(&source[token.range()]));
    define.function_like && named.any(|(at, _)| counts(at))
}

/// Whether a `\` at the end of a line stands between two bytes of names.
fn splits_a_name(text: &[u8]) -> bool {
    (1..text.len()).any(|at| {
        text[at] == b'\\'
            && is_name_byte(text[at - 1])
            && splice(text, at).and_then(|next| text.get(next)).is_some_and(|byte| is_name_byte(*byte))
    })
}

/// The integer that a macro's body is, in parentheses perhaps.
fn integer_of(source: &[u8], body: &Fragment) -> Option<Integer> {
    let (mut from, mut to) = (0, body.len());
    while to > from + 1 && body.is(from, b'(') && body.mate(from) == Some(to - 1) {
        (from, to) = (from + 1, to - 1);
    }
    if to == from + 1 && body.kind(from) == Some(Kind::Number) { integer::literal(body.text(source, from)) } else { None }
}

/// Whether a macro's body is one literal, with signs and parentheses perhaps, or a pragma to unroll.
fn is_literal(source: &[u8], body: &Fragment) -> bool {
    let mut depth = 0_usize;
    let mut literals = 0;
    for at in 0..body.len() {
        match body.tokens[at].kind {
            Kind::Punct(b'(') => depth += 1,
            Kind::Punct(b')') if depth > 0 => depth -= 1,
            Kind::Punct(b'-' | b'+') => {}
            Kind::Number | Kind::Char => literals += 1,
            Kind::Pragma if at == 0 && body.len() == 4 => return body.text(source, 2).windows(6).any(|word| word == b"unroll"),
            _ => return false,
        }
    }
    depth == 0 && literals == 1
}
