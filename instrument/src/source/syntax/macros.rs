//! Macros and their meaning: attributes of device functions, loops, whole functions. Sources are the file's own definitions, families of macros that
//! public CUDA code uses, and the configuration.

use crate::common::options::{Options, Space, UnitMacro, ValueMacro};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::integer::{self, Integer};
use crate::source::syntax::macro_values;
use crate::source::syntax::token::{Directive, Kind, Lexed, Line, Token, is_name_byte, lex, splice};
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

/// Families of public code bases, each name as it is spelled there.
const DEVICE: &str = "CUTLASS_DEVICE CUTE_DEVICE _CCCL_DEVICE _CCCL_DEVICE_API _CCCL_VISIBILITY_HIDDEN_DEVICE C10_DEVICE AT_DEVICE \
    RAFT_DEVICE_INLINE_FUNCTION KOKKOS_IMPL_DEVICE_FUNCTION AMREX_GPU_DEVICE RAJA_DEVICE MFEM_DEVICE CUDA_DEV CUDA_DEVICE GPU_DEVICE \
    DEVICE_INLINE DEVICE_FUNCTION DEVICE_FUNC FORCEINLINE_DEVICE INLINE_DEVICE CUDF_DEVICE THRUST_DEVICE_FUNCTION THRUST_DEVICE \
    _CG_QUALIFIER _CG_STATIC_QUALIFIER _CG_CONSTEXPR_QUALIFIER _CUB_DEVICE __cuda_device__ DI TV_DEVICE_INLINE HIP_DEVICE QUALIFIERS_DEVICE";
const HOST_DEVICE: &str = "CUTLASS_HOST_DEVICE CUTE_HOST_DEVICE CUTE_HOST_DEVICE_RTC _CCCL_HOST_DEVICE _CCCL_HOST_DEVICE_API _CCCL_API \
    _CCCL_HIDE_FROM_ABI _CCCL_PUBLIC_API _CCCL_NODEBUG_API _CCCL_TRIVIAL_API _LIBCUDACXX_HIDE_FROM_ABI _LIBCUDACXX_INLINE_VISIBILITY \
    C10_HOST_DEVICE C10_HOST_DEVICE_INLINE AT_HOST_DEVICE GPU_LAMBDA HDI RAFT_INLINE_FUNCTION EIGEN_DEVICE_FUNC KOKKOS_FUNCTION \
    KOKKOS_INLINE_FUNCTION KOKKOS_FORCEINLINE_FUNCTION KOKKOS_LAMBDA KOKKOS_CLASS_LAMBDA AMREX_GPU_HOST_DEVICE RAJA_HOST_DEVICE \
    MFEM_HOST_DEVICE CUDA_CALLABLE CUDA_HOSTDEV HOST_DEVICE HOSTDEVICE HOST_DEVICE_INLINE XGBOOST_DEVICE XGBOOST_HOST_DEV_INLINE \
    XGBOOST_DEV_INLINE CUDF_HOST_DEVICE CUDF_KERNEL_HOST_DEVICE CUB_RUNTIME_FUNCTION THRUST_FUNCTION THRUST_RUNTIME_FUNCTION \
    TV_HOST_DEVICE_INLINE TV_HOST_DEVICE GPU_CALLABLE HEMI_DEV_CALLABLE HEMI_DEV_CALLABLE_INLINE DEAL_II_HOST_DEVICE \
    __hostdev__ __host_device__ SIM_HOST_DEVICE PXL_HD CELER_FUNCTION CELER_FORCEINLINE_FUNCTION ALPAKA_FN_ACC ALPAKA_FN_HOST_ACC \
    OPENMC_HOST_DEVICE NVBENCH_HOST_DEVICE QUDA_HOST_DEVICE __device_host__ TORCH_HOST_DEVICE FBGEMM_HOST_DEVICE";
const KERNEL: &str = "CUTLASS_GLOBAL CUDF_KERNEL RAFT_KERNEL CUVS_KERNEL _CCCL_KERNEL_ATTRIBUTES CUB_DETAIL_KERNEL_ATTRIBUTES \
    THRUST_DETAIL_KERNEL_ATTRIBUTES CCCL_DETAIL_KERNEL_ATTRIBUTES AMREX_GPU_GLOBAL GPU_KERNEL CUDA_GLOBAL CUML_KERNEL RAJA_GLOBAL";
/// Macros that open a loop over the elements that belong to this thread.
const LOOP_OPENERS: &str = "CUDA_KERNEL_LOOP CUDA_KERNEL_LOOP_TYPE CUDA_1D_KERNEL_LOOP CUDA_1D_KERNEL_LOOP_T CUDA_2D_KERNEL_LOOP \
    CUDA_2D_KERNEL_BLOCK_LOOP GPU_KERNEL_LOOP GPU_1D_KERNEL_LOOP GPU_1D_KERNEL_LOOP_T KERNEL_LOOP KERNEL_LOOP_TYPE CUDA_1D_LOOP \
    GRID_STRIDE_LOOP GRID_STRIDE_RANGE CUDA_GRID_STRIDE_LOOP CUDA_KERNEL_LOOP_X CUDA_KERNEL_LOOP_Y GPU_GRID_STRIDE_RANGE FOR_RANGE_LOOP \
    MFEM_FOREACH_THREAD MFEM_FOREACH_THREAD_DIRECT FOREACH_THREAD CUDA_LOOP HIP_KERNEL_LOOP";

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

/// Letters of the longest word that is looked for where macros paste words together.
const LONGEST_PASTED: usize = 10;

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
        let values =
            if options.value_macros.is_empty() { macro_values::of_files(&[(source, lexed)], None) } else { options.value_macros.clone() };
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
        for directive in &lexed.directives {
            let Line::Define(define) = &directive.line else { continue };
            let fragment = Fragment::of_macro(source, define.name.clone(), define.body.clone());
            let name = &source[define.name.clone()];
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
        self.keep(source, bodies);
    }

    /// Keeps the bodies, and as fragments those that make a device function or a loop.
    fn keep(&mut self, source: &[u8], bodies: Vec<(&'a [u8], bool, Fragment)>) {
        for (name, _, fragment) in bodies {
            let makes_function = fragment.tokens.iter().any(|token| token.is(b'{'))
                && fragment.tokens.iter().any(|token| self.spaces_of(token.kind, &source[token.range()]).on_device());
            let has_loop = fragment.tokens.iter().any(|token| matches!(token.kind, Kind::For | Kind::While | Kind::Do | Kind::Goto));
            if makes_function || (has_loop && self.looping.contains_key(name)) {
                self.fragments.push(fragment.clone());
            }
            self.bodies.push(fragment);
        }
    }

    /// Where a function runs whose head begins with these words.
    fn spaces_in(&self, source: &[u8], body: &Fragment) -> Spaces {
        let is_attribute = |token: &Token| token.kind == Kind::Keyword && &source[token.range()] == b"__attribute__";
        let has_attribute = body.tokens.iter().any(is_attribute);
        body.tokens.iter().fold(Spaces::default(), |spaces, token| {
            let text = &source[token.range()];
            let named = if has_attribute { spaces_of_word(text) } else { Spaces::default() };
            spaces.union(self.spaces_of(token.kind, text)).union(named)
        })
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

    /// The labels that the macro of that name jumps to.
    pub(crate) fn jumps(&self, name: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.jumps.get(name).into_iter().flatten().copied()
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

    /// Whether the name is known to open a loop, from elsewhere.
    pub(crate) fn is_loop_opener(&self, name: &[u8]) -> bool {
        self.loop_openers.contains(name)
    }

    /// Whether the name is known to open no loop, from elsewhere.
    pub(crate) fn is_plain(&self, name: &[u8]) -> bool {
        self.plain.contains(name) && !self.loop_openers.contains(name)
    }

    /// Whether a use of a macro may make a word that repeats out of parts, by `##`: of words in its arguments or in its definition. A macro of another
    /// file is taken to do so if its name is in capitals.
    pub(crate) fn may_paste_a_loop(&self, source: &[u8], fragment: &Fragment, at: usize) -> bool {
        self.may_paste(source, fragment, at, &[b"for", b"while", b"do", b"goto"])
    }

    /// The same for the words that mark device functions.
    pub(crate) fn may_paste_an_attribute(&self, source: &[u8], fragment: &Fragment, at: usize) -> bool {
        self.may_paste(source, fragment, at, &[b"__device__", b"__global__"])
    }

    fn may_paste(&self, source: &[u8], fragment: &Fragment, at: usize, words: &[&[u8]]) -> bool {
        let name = fragment.text(source, at);
        let is_foreign = || !self.is_own(name) && name.len() > 1 && !name.iter().any(u8::is_ascii_lowercase) && fragment.is(at + 1, b'(');
        if fragment.kind(at) != Some(Kind::Ident) || !(self.pasting.contains(name) || is_foreign()) {
            return false;
        }
        let close = if fragment.is(at + 1, b'(') { fragment.mate(at + 1) } else { None };
        let arguments = (at + 1..close.unwrap_or(at)).map(|argument| fragment.text(source, argument));
        let mut work: Vec<&[u8]> = arguments.chain([name]).collect();
        let mut parts: BTreeSet<&[u8]> = BTreeSet::new();
        while let Some(name) = work.pop() {
            if name.len() < LONGEST_PASTED && parts.insert(name) || self.is_own(name) && parts.insert(name) {
                work.extend(self.bodies_of(name).flat_map(|body| body.tokens.iter().map(|token| &source[token.range()])));
            }
        }
        words.iter().any(|word| {
            // How far the word can be put together; the whole of it is no part.
            let mut reached = vec![false; word.len() + 1];
            reached[0] = true;
            for end in 1..=word.len() {
                reached[end] = (0..end).any(|start| reached[start] && end - start < word.len() && parts.contains(&word[start..end]));
            }
            reached[word.len()]
        })
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

    /// Bodies of all macros of this file.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &Fragment> {
        self.bodies.iter()
    }
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
