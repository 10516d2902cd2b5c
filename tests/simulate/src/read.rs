//! From a text to a program: layout of variables, and names resolved. The text is read by `cuinstr-ptx`.

use crate::lower::{Operand, lower};
use crate::program::{
    Callee, Function, Initial, InitialValue, Instruction, LaneMask, Operation, Passed, Program, Register, Source, Special, Variable,
};
use crate::types::Type;
use cuinstr_ptx as ptx;
use cuinstr_ptx::{Code, Declared, Kind, Span, TableKind, Target, Token};
use std::collections::HashMap;

/// What a name outside functions stands for.
#[derive(Debug, Clone, Copy)]
enum Global {
    Variable(usize),
    /// Offset in shared memory.
    Shared(usize),
    Function(usize),
}

/// Where a variable of a function lies, and its size.
#[derive(Debug, Clone, Copy)]
enum Place {
    Param(usize, usize),
    Local(usize),
    Shared(usize),
    Register(Register),
    Global(usize),
}

#[derive(Debug, Default)]
struct Layout {
    size: usize,
}

impl Layout {
    fn add(&mut self, size: usize, align: usize) -> usize {
        let at = self.size.next_multiple_of(align.max(1));
        self.size = at + size;
        at
    }
}

impl Program {
    /// Reads a module.
    ///
    /// # Errors
    /// The first fault of a text that is no PTX.
    pub fn read(text: &str) -> Result<Self, String> {
        let module = ptx::parse(text);
        if let Some(fault) = module.faults.first() {
            return Err(format!("byte {}: {}", fault.at, fault.why));
        }
        let mut reader = Reader { text, program: Self::default(), names: HashMap::new(), shared: Layout::default(), dynamic: Vec::new() };
        reader.functions(&module);
        for variable in &module.variables {
            reader.variable(variable);
        }
        let codes: Vec<Code<'_>> = module.functions.iter().map(|function| Code::new(text, function)).collect();
        let places: Vec<Vec<Place>> = codes.iter().map(|code| reader.lay_out(code)).collect();
        // Arrays whose size the launch gives begin behind all others.
        let behind = reader.shared.size.next_multiple_of(if reader.dynamic.is_empty() { 1 } else { 1024 });
        for name in std::mem::take(&mut reader.dynamic) {
            reader.names.insert(name, Global::Shared(behind));
        }
        reader.program.shared = behind;
        for (number, variable) in module.variables.iter().enumerate() {
            reader.initialise(number, variable, &module);
        }
        for (number, (code, places)) in codes.iter().zip(&places).enumerate() {
            let body = Body { reader: &reader, function: code.function, code, places };
            let code = (0..code.function.statements.len() as u32).map(|statement| body.instruction(statement)).collect();
            reader.program.functions[number].code = code;
        }
        Ok(reader.program)
    }
}

struct Reader<'a> {
    text: &'a str,
    program: Program,
    names: HashMap<&'a str, Global>,
    shared: Layout,
    /// Arrays in shared memory without a size.
    dynamic: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn functions(&mut self, module: &ptx::Module<'a>) {
        for function in &module.functions {
            self.names.insert(function.name, Global::Function(self.program.functions.len()));
            self.program.functions.push(Function {
                name: function.name.to_owned(),
                is_kernel: function.is_kernel,
                has_body: true,
                ..Function::default()
            });
        }
        for prototype in &module.prototypes {
            if self.names.contains_key(prototype.name) {
                continue;
            }
            self.names.insert(prototype.name, Global::Function(self.program.functions.len()));
            self.program.functions.push(Function { name: prototype.name.to_owned(), ..Function::default() });
        }
        for (alias, name) in &module.aliases {
            if let Some(meant) = self.names.get(name).copied() {
                self.names.insert(alias, meant);
            }
        }
    }

    /// The size and the alignment of what is declared in a span under a name at an offset; no size for `name[]`.
    fn extent(&self, span: Span, at: u32, kind: &str) -> (Option<usize>, usize) {
        let element = element_size(kind);
        let (mut align, mut size, mut behind) = (element, Some(element), false);
        let mut previous = "";
        for token in tokens(self.text, span) {
            let word = token.span.of(self.text);
            let number = || integer(word).and_then(|value| usize::try_from(value).ok());
            if behind {
                match token.kind {
                    Kind::Mark(b']') if previous == "[" => size = None,
                    Kind::Number => size = size.zip(number()).map(|(size, count)| size.saturating_mul(count)),
                    Kind::Mark(b'[' | b']') => {}
                    _ => break,
                }
            } else if previous == ".align" {
                align = number().unwrap_or(align);
            } else if matches!(word, ".v2" | ".v4") {
                let lanes = usize::from(word.as_bytes()[2] - b'0');
                size = Some(element * lanes);
                align = element * lanes;
            }
            behind |= token.span.start == at;
            previous = word;
        }
        (size, align)
    }

    fn variable(&mut self, variable: &ptx::Variable<'a>) {
        let (size, align) = self.extent(variable.span, variable.at, variable.kind);
        let number = self.program.variables.len();
        // Variables of other spaces keep their numbers.
        let is_global = matches!(variable.space, ".global" | ".const" | "");
        let values = Vec::new();
        let kept = if is_global { size.unwrap_or(0) } else { 0 };
        self.program.variables.push(Variable { name: variable.name.to_owned(), size: kept, align, values });
        match (variable.space, size) {
            (".shared", Some(size)) => {
                let at = self.shared.add(size, align);
                self.names.insert(variable.name, Global::Shared(at));
            }
            (".shared", None) => self.dynamic.push(variable.name),
            _ => {
                self.names.insert(variable.name, Global::Variable(number));
            }
        }
    }

    /// What a module's variable holds at first.
    fn initialise(&mut self, number: usize, variable: &ptx::Variable<'a>, module: &ptx::Module<'a>) {
        let Some(initial) = variable.initial else { return };
        let size = element_size(variable.kind);
        let (mut values, mut negative, mut add) = (Vec::<Initial>::new(), false, false);
        for token in tokens(self.text, initial) {
            let word = token.span.of(self.text);
            let value = match token.kind {
                Kind::Number => {
                    let bits = integer(word).or_else(|| float(word).map(|bits| if size == 4 { single(bits) } else { double(bits) }));
                    InitialValue::Number(bits.map_or(0, |bits| if negative { bits.wrapping_neg() } else { bits }))
                }
                Kind::Word => match self.names.get(word) {
                    Some(Global::Variable(of)) => InitialValue::Variable(*of, 0),
                    Some(Global::Function(of)) => InitialValue::Function(*of),
                    _ => continue,
                },
                Kind::Mark(b'-') => {
                    negative = true;
                    continue;
                }
                Kind::Mark(b'+') => {
                    add = true;
                    continue;
                }
                Kind::Mark(b',') => {
                    (negative, add) = (false, false);
                    continue;
                }
                _ => continue,
            };
            if let (true, InitialValue::Number(more), Some(Initial { value: InitialValue::Variable(_, offset), .. })) =
                (add, value, values.last_mut())
            {
                *offset = more as i64;
            } else {
                values.push(Initial { offset: values.len() * size, size, value });
            }
            (negative, add) = (false, false);
        }
        debug_assert_eq!(module.variables[number].at, variable.at);
        self.program.variables[number].values = values;
    }

    /// Gives places to what a function declares: parameters and results, then variables.
    fn lay_out(&mut self, code: &Code<'a>) -> Vec<Place> {
        let function = code.function;
        let Some(Global::Function(number)) = self.names.get(function.name).copied() else { return Vec::new() };
        let (mut params, mut local, mut places) = (Layout::default(), Layout::default(), Vec::new());
        let known = |register| Some(code.width(register)).filter(|width| *width != 0).unwrap_or(64);
        let mut widths: Vec<u8> = std::iter::once(64).chain((0..code.register_count()).map(known)).collect();
        for parameter in function.results.iter().chain(&function.parameters) {
            if parameter.space == ".reg" {
                places.push(Place::Register(widths.len() as Register));
                widths.push((element_size(parameter.kind) * 8) as u8);
                continue;
            }
            let (size, align) = self.extent(parameter.span, parameter.at, parameter.kind);
            let size = size.unwrap_or(0);
            places.push(Place::Param(params.add(size, align), size));
        }
        for variable in &function.variables {
            let (size, align) = self.extent(variable.span, variable.at, variable.kind);
            places.push(match (variable.space, size) {
                (".local", Some(size)) => Place::Local(local.add(size, align)),
                (".shared", Some(size)) => Place::Shared(self.shared.add(size, align)),
                (".param", Some(size)) => Place::Param(params.add(size, align), size),
                _ => {
                    self.program.variables.push(Variable {
                        name: variable.name.to_owned(),
                        size: size.unwrap_or(0),
                        align,
                        values: Vec::new(),
                    });
                    Place::Global(self.program.variables.len() - 1)
                }
            });
        }
        let handed = |place: &Place| match *place {
            Place::Param(offset, size) => Passed::Memory(offset, size),
            Place::Register(register) => Passed::Register(register),
            _ => Passed::Source(Source::Number(0)),
        };
        let results = function.results.len();
        let laid = &mut self.program.functions[number];
        laid.results = places[..results].iter().map(handed).collect();
        laid.parameters = places[results..results + function.parameters.len()].iter().map(handed).collect();
        laid.widths = widths;
        laid.param_bytes = params.size;
        laid.local_bytes = local.size;
        places
    }
}

/// A function whose statements are lowered.
struct Body<'b, 'a> {
    reader: &'b Reader<'a>,
    function: &'a ptx::Function<'a>,
    code: &'b Code<'a>,
    places: &'b [Place],
}

impl Body<'_, '_> {
    fn instruction(&self, statement: u32) -> Instruction {
        let spelled = &self.function.statements[statement as usize];
        let guard = self.code.guard(statement);
        let opcode = self.code.opcode(statement);
        let text = spelled.span().of(self.reader.text);
        let operation = match guard {
            Some((None, _)) => None,
            _ => self.operation(statement, opcode),
        };
        Instruction {
            at: spelled.start,
            guard: guard.and_then(|(guard, when)| Some((guard? + 1, !when))),
            operation: operation.unwrap_or_else(|| Operation::Unknown(text.split_whitespace().collect::<Vec<_>>().join(" "))),
        }
    }

    fn operation(&self, statement: u32, opcode: &str) -> Option<Operation> {
        let operands = self.code.operands(statement);
        let to_statement = |target: &Target| match target {
            Target::Statement(to) => Some(*to as usize),
            _ => None,
        };
        match self.function.statements[statement as usize].flow {
            // The statement at the closing brace.
            _ if opcode.is_empty() => return Some(Operation::Return),
            ptx::Flow::Branch => return to_statement(&self.function.target(statement)).map(Operation::Branch),
            ptx::Flow::Table => {
                let Target::Table(table) = self.function.target(statement) else { return None };
                let TableKind::Branches(targets) = &self.function.tables[table as usize].kind else { return None };
                let targets: Option<Vec<usize>> = targets.iter().map(to_statement).collect();
                return Some(Operation::Table { index: self.value(*operands.first()?)?, targets: targets? });
            }
            ptx::Flow::Call => return self.call(operands),
            _ => {}
        }
        // A statement may hold no more constants than `floats` finds, in the same order.
        let mut floats = self.floats(statement).into_iter();
        let operands: Option<Vec<Operand>> = operands.iter().map(|operand| self.operand(*operand, &mut floats)).collect();
        let words: Vec<&str> = opcode.split('.').collect();
        Some(lower(&words, &operands?))
    }

    /// Constants with a fraction, in the order of the text.
    fn floats(&self, statement: u32) -> Vec<Float> {
        let span = self.function.statements[statement as usize].span();
        let mut found = Vec::new();
        let mut negative = false;
        for token in tokens(self.reader.text, span) {
            if token.kind == Kind::Number {
                let number = float(token.span.of(self.reader.text));
                found.extend(number.map(|number| if negative { number.negated() } else { number }));
            }
            negative = token.kind == Kind::Mark(b'-');
        }
        found
    }

    fn operand(&self, operand: ptx::Operand, floats: &mut impl Iterator<Item = Float>) -> Option<Operand> {
        Some(match operand {
            ptx::Operand::At(register, offset) => Operand::Address(Source::Register(register + 1), offset),
            ptx::Operand::AtName(name, offset) => Operand::Address(self.name(name, 0)?, offset),
            ptx::Operand::AtNumber(offset) => Operand::Address(Source::Number(0), offset),
            ptx::Operand::Constant => match floats.next()? {
                Float::Single(bits) => Operand::Single(bits),
                Float::Double(bits) => Operand::Double(bits),
            },
            ptx::Operand::Vector(list) => {
                let inner = |operand: &ptx::Operand| match operand {
                    ptx::Operand::Constant => match floats.next()? {
                        Float::Single(bits) => Some(Source::Number(u64::from(bits))),
                        Float::Double(bits) => Some(Source::Number(bits)),
                    },
                    _ => self.value(*operand),
                };
                Operand::Vector(self.code.list(list).iter().map(inner).collect::<Option<_>>()?)
            }
            ptx::Operand::Pair(list) => match self.code.list(list) {
                [one, other] => Operand::Pair(self.register(*one)?, self.register(*other)?),
                _ => return None,
            },
            _ => Operand::Value(self.value(operand)?),
        })
    }

    fn register(&self, operand: ptx::Operand) -> Option<Register> {
        match self.value(operand)? {
            Source::Register(register) => Some(register),
            _ => None,
        }
    }

    fn value(&self, operand: ptx::Operand) -> Option<Source> {
        Some(match operand {
            ptx::Operand::Register(register) => Source::Register(register + 1),
            ptx::Operand::Negated(register) => Source::Not(register + 1),
            ptx::Operand::Integer(value) => Source::Number(value as u64),
            ptx::Operand::Unsigned(value) => Source::Number(value),
            ptx::Operand::Name(name, offset) => self.name(name, offset)?,
            ptx::Operand::Sink => Source::Register(0),
            _ => return None,
        })
    }

    fn place(&self, declared: Declared) -> Option<Place> {
        match declared {
            Declared::Parameter(number) => self.places.get(number as usize).copied(),
            Declared::Variable(number) => {
                self.places.get(self.function.results.len() + self.function.parameters.len() + number as usize).copied()
            }
            _ => None,
        }
    }

    fn name(&self, name: ptx::NameId, offset: i64) -> Option<Source> {
        let name = self.code.name(name);
        let at = |base: usize| Source::Number((base as u64).wrapping_add_signed(offset));
        if let Some(place) = self.place(name.declared) {
            return Some(match place {
                Place::Param(base, _) | Place::Shared(base) => at(base),
                Place::Local(base) => Source::Local(base as i64 + offset),
                Place::Register(register) => Source::Register(register),
                Place::Global(number) => Source::Variable(number, offset),
            });
        }
        match self.reader.names.get(name.text) {
            Some(Global::Variable(number)) => Some(Source::Variable(*number, offset)),
            Some(Global::Shared(base)) => Some(at(*base)),
            Some(Global::Function(number)) => Some(Source::Function(*number)),
            None => special(name.text).map(|special| match special {
                Special::Fixed(value) => Source::Number(value),
                special => Source::Special(special),
            }),
        }
    }

    fn call(&self, operands: &[ptx::Operand]) -> Option<Operation> {
        let (results, rest) = match operands {
            [ptx::Operand::Group(list), rest @ ..] => (self.code.list(*list), rest),
            _ => (&[][..], operands),
        };
        let callee = match *rest.first()? {
            ptx::Operand::Register(register) => Callee::Pointer(Source::Register(register + 1)),
            ptx::Operand::Name(name, 0) => match self.reader.names.get(self.code.name(name).text)? {
                Global::Function(number) => Callee::Function(*number),
                _ => return None,
            },
            _ => return None,
        };
        let parameters = match rest.get(1) {
            Some(ptx::Operand::Group(list)) => self.code.list(*list),
            _ => &[],
        };
        let passed = |operand: &ptx::Operand| match *operand {
            ptx::Operand::Name(name, 0) => match self.place(self.code.name(name).declared) {
                Some(Place::Param(offset, size)) => Some(Passed::Memory(offset, size)),
                _ => self.value(*operand).map(Passed::Source),
            },
            ptx::Operand::Register(register) => Some(Passed::Register(register + 1)),
            _ => self.value(*operand).map(Passed::Source),
        };
        Some(Operation::Call {
            callee,
            results: results.iter().map(passed).collect::<Option<_>>()?,
            parameters: parameters.iter().map(passed).collect::<Option<_>>()?,
        })
    }
}

/// What a special register's name stands for.
fn special(name: &str) -> Option<Special> {
    let (name, axis) = match name.split_once('.') {
        Some((name, axis)) => (name, ["x", "y", "z"].iter().position(|found| *found == axis)?),
        None => (name, 3),
    };
    Some(match (name, axis) {
        ("%tid", 0..3) => Special::Thread(axis),
        ("%ntid", 0..3) => Special::Threads(axis),
        ("%ctaid", 0..3) => Special::Block(axis),
        ("%nctaid", 0..3) => Special::Blocks(axis),
        ("%laneid", _) => Special::Lane,
        ("%warpid", _) => Special::Warp,
        ("%nwarpid", _) => Special::Warps,
        ("%lanemask_eq", _) => Special::Lanes(LaneMask::Equal),
        ("%lanemask_lt", _) => Special::Lanes(LaneMask::Less),
        ("%lanemask_le", _) => Special::Lanes(LaneMask::LessEqual),
        ("%lanemask_gt", _) => Special::Lanes(LaneMask::Greater),
        ("%lanemask_ge", _) => Special::Lanes(LaneMask::GreaterEqual),
        ("%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo", _) => Special::Clock,
        ("%dynamic_smem_size", _) => Special::DynamicShared,
        ("%total_smem_size" | "%aggr_smem_size", _) => Special::TotalShared,
        ("%smid" | "%clock_hi" | "%globaltimer_hi" | "%is_explicit_cluster" | "%cluster_ctarank" | "%clusterid", _) => Special::Fixed(0),
        ("%cluster_ctaid" | "%envreg0" | "%envreg1" | "%envreg2", _) => Special::Fixed(0),
        ("%nsmid" | "%gridid" | "%cluster_nctarank" | "%cluster_nctaid", _) => Special::Fixed(1),
        ("WARP_SZ", _) => Special::Fixed(32),
        _ => return None,
    })
}

/// Bytes of a type such as `.b32`.
fn element_size(kind: &str) -> usize {
    Type::parse(kind.trim_start_matches('.')).map_or(if kind == ".b128" { 16 } else { 2 }, Type::bytes)
}

/// The tokens of a span that are no blanks or comments.
fn tokens(text: &str, span: Span) -> impl Iterator<Item = Token> + '_ {
    let inner = span.of(text);
    ptx::tokens(inner)
        .filter(|token| !matches!(token.kind, Kind::Blank | Kind::Comment))
        .map(move |token| Token { kind: token.kind, span: Span { start: token.span.start + span.start, end: token.span.end + span.start } })
}

fn integer(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let lower = word.to_ascii_lowercase();
    let (digits, radix) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0b") => (&lower[2..], 2),
        Some("0f" | "0d") => return None,
        Some(_) if lower.starts_with('0') => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

/// A constant with a fraction.
#[derive(Debug, Clone, Copy)]
enum Float {
    Single(u32),
    Double(u64),
}

impl Float {
    fn negated(self) -> Self {
        match self {
            Self::Single(bits) => Self::Single(bits ^ 1 << 31),
            Self::Double(bits) => Self::Double(bits ^ 1 << 63),
        }
    }
}

fn single(float: Float) -> u64 {
    match float {
        Float::Single(bits) => u64::from(bits),
        Float::Double(bits) => u64::from((f64::from_bits(bits) as f32).to_bits()),
    }
}

fn double(float: Float) -> u64 {
    match float {
        Float::Single(bits) => f64::from(f32::from_bits(bits)).to_bits(),
        Float::Double(bits) => bits,
    }
}

/// `0f3F800000`, `0d…` or a decimal number with a point or an exponent.
fn float(word: &str) -> Option<Float> {
    match word.get(..2) {
        Some("0f" | "0F") => u32::from_str_radix(&word[2..], 16).ok().map(Float::Single),
        Some("0d" | "0D") => u64::from_str_radix(&word[2..], 16).ok().map(Float::Double),
        _ if integer(word).is_none() => word.parse::<f64>().ok().map(|value| Float::Double(value.to_bits())),
        _ => None,
    }
}
