//! The poll form that each loop gets, one row a rule: the loops that a cheaper form is sound for, and those that look like them and break a
//! rule. A loop that breaks one must get the form that is sound for any loop.

use crate::rewritten_as;
use cuinstr::options::{Options, Polls};
use cuinstr::site::{Form, Kind};
use std::fmt::Write as _;

/// What a loop should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// No poll: it provably ends soon.
    LeftAlone,
    /// Strips of its own counter's trips.
    Strip,
    /// The same in the text, but strips of one iteration once the compiler has looked at its types; why.
    OneByOne(&'static str),
    /// Chunks of a constant number of iterations, whatever the condition is.
    Chunk,
    /// A count that the compiler may know, so that no poll is left; why it may.
    Foldable(&'static str),
    /// Anything but strips, which would not be sound; why.
    NoStrip(&'static str),
    /// The plain count-down, since even chunks would not be sound, or would cost more; why.
    CountDown(&'static str),
}

impl Wanted {
    fn accepts(self, form: Form) -> bool {
        match self {
            Self::LeftAlone => form == Form::None,
            Self::Strip | Self::OneByOne(_) => form == Form::Strip,
            Self::Chunk => form == Form::Chunk,
            Self::Foldable(_) => form == Form::Foldable,
            Self::NoStrip(_) => matches!(form, Form::Chunk | Form::CountDown | Form::Foldable),
            Self::CountDown(_) => form == Form::CountDown,
        }
    }
}

/// What stands in front of the kernel, its body, and what the loop behind `@` gets.
pub(super) type Rule = (&'static str, &'static str, Wanted);

pub(super) fn check(rules: &[Rule]) {
    let mut wrong = String::new();
    for (front, text, wanted) in rules {
        let head = "__global__ void k(int *p, int n, unsigned m, size_t z, int s, float x, int *end, volatile int *v)";
        let marked = format!("{front}\n{head} {{\n    {text}\n}}\n");
        let (before, after) = marked.split_once('@').unwrap_or_else(|| panic!("no loop is marked in {text}"));
        let line = before.matches('\n').count() as u32 + 1;
        let column = (before.len() - before.rfind('\n').map_or(0, |newline| newline + 1)) as u32 + 1;
        let source = format!("{before}{after}");
        for polls in [Polls::Amortised, Polls::Each] {
            let rewrite = rewritten_as(&source, &Options { polls, ..Options::default() });
            let loops = |kind| matches!(kind, Kind::For | Kind::RangeFor | Kind::While | Kind::Do);
            let found = rewrite.sites.sites.iter().find(|site| loops(site.kind) && (site.line, site.column) == (line, column));
            match found {
                Some(site) if polls == Polls::Amortised && wanted.accepts(site.form) => {}
                Some(site) if polls == Polls::Each && site.form == Form::Each => {}
                Some(site) => {
                    let _ = writeln!(wrong, "{front}\n{text}\n  {:?}, not {wanted:?} ({polls:?}): {:?}", site.form, site.why);
                }
                None => {
                    let _ = writeln!(wrong, "{front}\n{text}\n  no loop at {line}:{column}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

pub(super) const STRIP: Wanted = Wanted::Strip;
pub(super) const CHUNK: Wanted = Wanted::Chunk;

pub(super) const fn no_strip(why: &'static str) -> Wanted {
    Wanted::NoStrip(why)
}

pub(super) const fn foldable(why: &'static str) -> Wanted {
    Wanted::Foldable(why)
}

pub(super) const fn counts_down(why: &'static str) -> Wanted {
    Wanted::CountDown(why)
}

/// Bound and step are invariant: the trips can be counted.
const COUNTED: &[Rule] = &[
    ("", "@for (int i = 0; i < 8; ++i) p[i] = 0;", Wanted::LeftAlone),
    ("", "@for (int i = 0; i < n; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < n; i++) { p[i] = 0; }", STRIP),
    ("", "@for (int i = 0; i <= n; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = n; i > 0; --i) p[i] = 0;", STRIP),
    ("", "@for (int i = n; i >= 0; i--) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i != n; ++i) p[i] = 0;", STRIP),
    ("", "@for (unsigned i = 0; i < m; ++i) p[i] = 0;", STRIP),
    ("", "@for (size_t i = 0; i < z; ++i) p[i] = 0;", STRIP),
    ("", "@for (long long i = 0; i < z; ++i) p[i] = 0;", STRIP),
    ("", "const int last = n - 1; @for (int i = 0; i < last; ++i) p[i] = 0;", STRIP),
    ("", "int i; @for (i = 0; i < n; ++i) p[i] = 0; p[0] = i;", STRIP),
    ("", "int i = 3; @for (; i < n; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < n - 1; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = threadIdx.x; i < n; i += 4) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) break; if (p[i] == 3) continue; if (p[i] == 4) return; p[i] = i; }", STRIP),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < i; ++j) p[j] = 0; }", counts_down("the loop in it pays")),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < 4; ++j) p[j] = 0; }", STRIP),
    ("", "for (int i = 0; i < n; ++i) { @for (int j = 0; j < i; ++j) p[j] = 0; }", STRIP),
    ("", "@for (int i = 0; i < n; ++i) switch (p[i]) { case 0: p[i] = 1; break; default: continue; }", STRIP),
    ("", "\n#pragma unroll 4\n@for (int i = 0; i < n; ++i) p[i] = 0;", STRIP),
    ("", "if (s) @for (int i = 0; i < n; ++i) p[i] = 0; else p[0] = 1;", STRIP),
    ("", "@for (int i = 0; i < n; ++i) atomicAdd(p, i);", STRIP),
    ("struct Tile;", "extern Tile &t; @for (int i = 0; i < n; ++i) { p[i] = 0; t.sync(); cg::sync(t); }", STRIP),
    ("", "@for (int i = 0; i < n; ++i) p[i] = tex2D<float>(s, i, 0);", STRIP),
    ("struct Tile;", "extern Tile &t; @for (int i = 0; i < n; ++i) { p[i] = 0; t.give(i); }", no_strip("it may take a reference")),
    ("struct Tile;", "extern Tile &t; @for (int i = 0; i < n; ++i) { p[i] = 0; t.SYNC(); }", no_strip("it may be a macro")),
    ("", "@for (int i = 0; i < n; ++i) { p[i] = 0; sync(p); }", no_strip("it may be a macro")),
    ("", "@for (int i = 0; i < n; ++i) p[i] = fetch<float>(s, i, 0);", no_strip("it may take a reference")),
    ("", "@for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) p[i] = 0;", STRIP),
    ("", "const int stride = gridDim.x * blockDim.x; @for (int i = threadIdx.x; i < n; i += stride) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < n; i += s) p[i] = 0;", STRIP),
    ("", "@for (int i = n; i > 0; i -= s) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i != n; i += 2) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < 1000000; ++i) p[i] = 0;", STRIP),
    ("#define COUNT 1000000", "@for (int i = 0; i < COUNT; ++i) p[i] = 0;", STRIP),
    // Macros that stand for values change nothing, whatever they are.
    ("#define COUNT (500 * 2000)", "@for (int i = 0; i < COUNT; ++i) p[i] = 0;", STRIP),
    ("#define WIDE 64\n#define HALF (WIDE / 2)", "@for (int i = 0; i < n; i += HALF) p[i * HALF] = WIDE - 1;", STRIP),
    ("#define AT(i, j) ((i) * 16 + (j))", "@for (int i = 0; i < n; ++i) p[AT(i, 3)] = 0;", STRIP),
    ("#define DOT(a, b) ((a.x) * (b.x) + fminf(a.y, b.y))", "float4 a, b; @for (int i = 0; i < n; ++i) p[i] = DOT(a, b);", STRIP),
    ("", "\n#pragma unroll\n@for (int i = 0; i < n; ++i) p[i] = 0;", STRIP),
    // What is no constant after all is asked for in each iteration.
    ("constexpr int TILE = 32;", "@for (int i = 0; i < n; i += TILE) p[i] = 0;", STRIP),
    ("", "@for (int i = threadIdx.x; i < config::tile; i += blockDim.x) p[i] = 0;", STRIP),
    // More may have to hold: it is asked in each iteration, the relation once a strip.
    ("", "@for (int i = 0; i < n && p[i]; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < n && s && x < 2.0f; ++i) p[i] = 0;", STRIP),
    ("", "int i = threadIdx.x; @while (i < n && p[i]) { p[i] = 0; i += blockDim.x; }", STRIP),
    // At most one step an iteration: a relation that held at the strip's begin holds for as many.
    ("", "int i = 0; @while (i < n) { p[i] = 0; ++i; }", STRIP),
    // The counter may stand on the right, beside another name.
    ("", "@for (int i = 0; n > i; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = n; s <= i; --i) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; n != i; ++i) p[i] = 0;", STRIP),
    ("", "int i = 0; @while (n > i) { p[i] = 0; ++i; }", STRIP),
    ("", "int i = 0; @while (n > i && p[i]) { p[i] = 0; ++i; }", STRIP),
    ("", "@for (int *q = p; end > q; ++q) s += *q;", STRIP),
    ("", "int i = 0; @while (i < n) { if (p[i]) continue; ++i; }", STRIP),
    ("", "int i = 0; @while (i < n) { if (p[i]) ++i; }", STRIP),
    ("", "int i = n; @while (i > s) { --i; p[i] = 0; }", STRIP),
    ("", "int i = n; @while (i > s) i -= 2;", STRIP),
];

/// A pointer steps, and what it points to is written through it.
const WRITES_THROUGH: &[Rule] = &[
    ("", "@for (int *q = p; q < end; ++q) *q = 0;", STRIP),
    ("", "@for (int *q = p; q != end; ++q) { *q = 0; q[0] += 2; (*q)++; }", STRIP),
    ("", "@for (int *q = p; q < end; q += 2) { if (n) *q = *q + 1; else *q -= q[1]; }", STRIP),
    ("", "int *q = p; @while (q != end) { *q = n; ++q; }", STRIP),
    ("", "int *q = p; @do { *q = n; ++q; } while (q != end);", STRIP),
    ("struct S { int n; };", "S *last = (S *)end; @for (S *q = (S *)p; q < last; ++q) q->n = 3;", STRIP),
    ("", "int *q = p; @while (q < end) *q++ = n;", no_strip("it steps within an expression")),
    ("", "@for (int *q = p; q < end; ++q) *q++ = 0;", no_strip("it steps twice")),
    ("", "@for (int *q = p; q < end; ++q) { int **r = &q; *r = p; }", no_strip("its own address is taken")),
    ("", "int *q = p, **r = &q; @for (q = p; q < end; ++q) *r = p;", no_strip("its own address was taken")),
    ("", "@for (int *q = p; q < end; ++q) { *q = 0; q = p; }", no_strip("it is set")),
    ("", "int *last = end; @for (int *q = p; q < last; ++q) *last = 0;", no_strip("what is followed is no counter")),
];

/// A body that runs before its condition is asked.
const BODY_FIRST: &[Rule] = &[
    ("", "int i = 0; @do { p[i] = 0; ++i; } while (i < n);", STRIP),
    ("", "int i = n; @do { i -= 2; p[i] = 0; } while (i >= s);", STRIP),
    ("", "int i = 0; @do ++i; while (n > i);", STRIP),
    ("", "@do { if (p[0]) continue; --n; } while (n > s);", STRIP),
    ("", "@do p[0] -= 1; while (p[0] > 0);", CHUNK),
    ("", "@do { n = p[n]; } while (n != s);", counts_down("its body outweighs the poll")),
    ("", "int i = 0; @do { if (p[i]) break; i += s; } while (i < n);", STRIP),
    ("", "int i = 0; @do { if (p[i]) continue; ++i; } while (i < n);", STRIP),
    ("", "int i = 0; @do { if (p[i]) ++i; else p[i] = 3; } while (i != n);", STRIP),
    ("", "int i = 0; if (s) @do { ++i; } while (i < n); else p[0] = i;", STRIP),
    ("", "int i = 0;\n#pragma unroll 4\n@do { p[i] = 0; ++i; } while (i < n);", STRIP),
    ("", "int i = 0; @do { p[i] = 0; } while (++i < n);", CHUNK),
    ("", "int i = 0; @do { ++i; } while (i < n && p[i]);", CHUNK),
    ("constexpr int TILE = 32;", "int i = s; @do { i += TILE; } while (i < n);", CHUNK),
    ("", "@do { p[1] += 1; } while (p[0] != s);", CHUNK),
    ("", "@do p[1] += 1; while (atomicAdd(p, 1) < n);", CHUNK),
    ("", "@do { if (p[0]) break; p[1] += 1; } while (true); p[2] = 0;", CHUNK),
    // What breaks a rule of strips.
    ("", "int i = 0; @do { ++i; --n; } while (i < n);", no_strip("its bound changes")),
    ("", "int i = 0; @do { ++i; if (p[i]) i = 0; } while (i < n);", no_strip("its counter changes")),
    ("", "int i = 0, *q = &i; @do { ++i; *q = p[i]; } while (i < n);", no_strip("somebody has its counter's address")),
    ("", "int i = 0; @do { for (int j = 0; j < s; ++j) ++i; } while (i < n);", no_strip("it may step twice")),
    ("", "int i = 0; @do { --i; } while (i < n);", no_strip("it steps away from its bound")),
    (
        "__device__ int limit;",
        "int i = 0; @do { int limit = 3; p[limit] = 0; ++i; } while (i < limit);",
        no_strip("two things of one name"),
    ),
    ("__device__ int limit;", "int i = 0; @while (i < limit) { int limit = 3; p[limit] = 0; ++i; }", no_strip("two things of one name")),
    ("", "int i = 0; @do { ++i; } while (i < *v);", no_strip("its bound is in memory")),
    // And of chunks.
    ("", "int i = 0; @do { if (p[i]) goto out; ++i; } while (i < n); out: p[0] = 1;", counts_down("a jump leads out")),
    ("", "int i = 0; switch (s) { case 0: @do { ++i; case 1: p[i] = 0; } while (i < n); }", counts_down("a jump leads in")),
    ("", "int i = 0; @do { STEP; ++i; } while (i < n);", counts_down("a macro may be a jump")),
];

/// The threads of a block share something small: the compiler drops the poll if the bound is what it seems to be.
const SHARED: &[Rule] = &[
    ("", "@for (int i = threadIdx.x; i < 256; i += blockDim.x) p[i] = 0;", foldable("a number")),
    ("", "@for (int i = threadIdx.y; i <= 256; i += blockDim.y) p[i] = 0;", foldable("another dimension")),
    ("", "@for (unsigned i = threadIdx.x; i < 512; i += 128) p[i] = 0;", foldable("a step that is a number")),
    ("", "const int t = threadIdx.x; @for (size_t i = t; i < 512; i += 128) p[i] = 0;", foldable("a name for the index")),
    ("#define TILE 32", "@for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) p[i] = 0;", foldable("a macro for a number")),
    ("constexpr int TILE = 32;", "@for (int i = threadIdx.x; i < TILE * TILE; i += blockDim.x) p[i] = 0;", foldable("a constant")),
    ("__device__ int TILE = 32;", "@for (int i = threadIdx.x; i < TILE; i += blockDim.x) p[i] = 0;", foldable("the compiler knows better")),
    (
        "",
        "for (int j = 0; j < n; ++j) { @for (int i = threadIdx.x; i < 256; i += blockDim.x) p[i] = 0; }",
        foldable("the loop around it pays"),
    ),
    ("", "@for (int i = threadIdx.x; i < 256; i += blockDim.x) if (p[i]) break; else continue;", foldable("its end is its own")),
    // What breaks a rule is counted as any other.
    ("", "@for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = 0;", STRIP),
    ("", "@for (int i = threadIdx.x; i < 5000; i += blockDim.x) p[i] = 0;", STRIP),
    ("", "int tile = 8; @for (int i = threadIdx.x; i < tile; i += blockDim.x) ++tile;", no_strip("its bound moves")),
    ("", "int tile = 8; tile *= n; @for (int i = threadIdx.x; i < tile; i += blockDim.x) p[i] = 0;", STRIP),
    ("", "@for (int i = threadIdx.x - 8; i < 256; i += blockDim.x) p[i] = 0;", STRIP),
    ("", "int t = threadIdx.x; t -= n; @for (int i = t; i < 256; i += blockDim.x) p[i] = 0;", STRIP),
    ("", "@for (int i = n; i < 256; i += blockDim.x) p[i] = 0;", STRIP),
    (
        "__device__ void f(int &x) { x = -1000000000; }",
        "int t = threadIdx.x; f(t); @for (int i = t; i < 256; i += blockDim.x) p[i] = 0;",
        STRIP,
    ),
    ("", "@for (int i = threadIdx.x; i < 256; i += s) p[i] = 0;", STRIP),
    ("", "@for (int i = threadIdx.x; i < 256; i += 0) p[i] = 0;", no_strip("it goes nowhere")),
    ("", "@for (int i = threadIdx.x; i < 256; i -= blockDim.x) p[i] = 0;", no_strip("it goes the other way")),
    ("", "@for (int i = threadIdx.x; i != 256; i += blockDim.x) p[i] = 0;", no_strip("it may step over its end")),
    ("", "@for (unsigned char i = threadIdx.x; i < 256; i += blockDim.x) p[i] = 0;", STRIP),
    ("", "@for (int i = threadIdx.x; i < 256; i += blockDim.x) { p[i] = 0; i = n; }", no_strip("its counter changes")),
    ("", "@for (int i = threadIdx.x; i < 256 && p[i]; i += blockDim.x) p[i] = 0;", STRIP),
    ("#define blockDim (*(dim3 *)0)", "@for (int i = threadIdx.x; i < 256; i += blockDim.x) p[i] = 0;", no_strip("no block's dimension")),
    ("", "uint3 threadIdx = {}; @for (int i = threadIdx.x; i < 256; i += blockDim.x) p[i] = 0;", STRIP),
    (
        "__device__ int f(int *p) { while (*p); return 0; }",
        "@for (int i = threadIdx.x; i < 2000; i += blockDim.x) f(p);",
        counts_down("what it calls may loop"),
    ),
    ("__device__ int f(int *p) { for (int j = 0; j < 8; ++j) p[j] = 0; return 0; }", "@for (int i = 0; i < n; ++i) f(p);", STRIP),
    (
        "__device__ int f(int *p, int m) { for (int j = 0; j < m; ++j) p[j] = 0; return 0; }",
        "@for (int i = 0; i < n; ++i) f(p, n);",
        counts_down("the same"),
    ),
    ("", "@for (int i = threadIdx.x; i < 64; i += blockDim.x) { for (int j = threadIdx.x; j < 64; j += blockDim.x) p[i * j] = 0; }", STRIP),
];

/// Nothing in the header is surely of run time: the compiler may know how often the loop runs.
const MAY_BE_KNOWN: &[Rule] = &[
    ("", "@for (unsigned char i = 0; i < 200; i += 2) s += p[i];", foldable("numbers, though of a narrow type")),
    ("", "int a[3] = {1, 2, 3}; @for (int each : a) p[each] = 0;", foldable("an array's length")),
    ("", "@for (auto &each : range(p, n)) each = 0;", foldable("a range may be an array")),
    ("constexpr int N = 8;", "@for (int i = 0; i < N; ++i) p[i] = 0;", foldable("a constant, if the name means what it seems to")),
    ("", "@for (int i = 0; i < Tile::kRows; i += Tile::kStep) p[i] = 0;", foldable("a class's constants")),
    ("", "@for (int i = 0; i < count; ++i) p[i] = 0;", foldable("a name from elsewhere")),
    ("", "@for (int i = 0; i < LIMIT; ++i) p[i] = 0;", foldable("a macro from elsewhere")),
    ("", "@for (int i = s - 1; i <= s + 1; ++i) p[i] = 0;", foldable("start and bound differ by a constant")),
    ("", "for (int j = 0; j < 40000; ++j) { @for (int i = 0; i < 40; ++i) p[i * j] = 0; }", Wanted::LeftAlone),
    (
        "constexpr int N = 8;",
        "for (int j = 0; j < N; ++j) @for (int i = 0; i < N; ++i) p[i * j] = 0;",
        foldable("it counts with the loop around it"),
    ),
    ("constexpr int N = 8;", "while (p[0]) @for (int i = 0; i < N; ++i) p[i] = 0;", Wanted::CountDown("nothing can stand in front of it")),
    ("constexpr int N = 8;", "if (s) @for (int i = 0; i < N; ++i) p[i] = 0;", Wanted::CountDown("nothing can stand in front of it")),
    ("constexpr int N = 8;", "\n#pragma unroll\n@for (int i = 0; i < N; ++i) p[i] = 0;", foldable("the pragma stays the loop's own")),
    ("constexpr int N = 8;", "UNROLL @for (int i = 0; i < N; ++i) p[i] = 0;", foldable("whatever the macro says")),
    ("", "int i = 0; @while (i < 40) { p[i * s] = 0; i += 3; }", foldable("a start, a bound and a step that are numbers")),
    (
        "typedef long word;",
        "const word *q = (word *)p; const int N = 256 / sizeof(word); @for (int i = 0; i < N; ++i) p[i] = q[i];",
        foldable("what a type takes up is known"),
    ),
    // What a class holds in its type, it may.
    (
        "template <int N, class T> __device__ int size(T const &);",
        "auto t = tile(p); @for (int i = 0; i < size<1>(t); ++i) p[i] = 0;",
        foldable("a size by number"),
    ),
    (
        "constexpr __device__ int items() { return 4; }",
        "@for (int i = 0; i < items(); ++i) p[i] = 0;",
        foldable("the compiler evaluates the function"),
    ),
    (
        "template <int N> __host__ __device__ constexpr int items(int k) { return N * k; }\n#define TWO 2",
        "@for (int i = 0; i < 2 * items(TWO); i += items(1)) p[i] = 0;",
        foldable("with constants for arguments"),
    ),
    ("", "\n#pragma unroll\n@for (int i = 0; i < items(); ++i) p[i] = 0;", foldable("the pragma counts on it")),
    ("", "Tile t(p); @for (int i = 0; i < size(t); ++i) p[i] = 0;", foldable("a size")),
    ("", "Tile t(p); @for (int i = 0; i < t.size(); ++i) p[i] = 0;", foldable("a member's size")),
    (
        "template <class T> struct P { static const int items = 4; };",
        "@for (int i = 0; i < P<int>::items; ++i) p[i] = 0;",
        foldable("a member of an instance"),
    ),
    ("__device__ int size(int n) { return n; }", "int m = n; @for (int i = 0; i < size(m); ++i) p[i] = 0;", CHUNK),
    ("__device__ int size(int *n) { return *n; }", "@for (int i = 0; i < size(p); ++i) p[i] = 0;", CHUNK),
    (
        "typedef long word;",
        "const word *q = (word *)p; const word N = (word)8; @for (int i = 0; i < N; ++i) p[i] = q[i];",
        foldable("a type is no parameter"),
    ),
    ("typedef long word;", "const word N = s * sizeof(word); @for (int i = 0; i < N; ++i) p[i] = 0;", STRIP),
    (
        "constexpr int N = 8;",
        "@for (int i = 0; i < N; ++i) p[(i * N + threadIdx.x) % 8] = 0;",
        foldable("a product in brackets declares nothing"),
    ),
    (
        "constexpr int N = 8;",
        "const int M = N / 2; @for (int i = 0; i < M; ++i) p[i] = (i * M - s) + (n * N / s);",
        foldable("nor does any other"),
    ),
];

/// Several names declared at once.
const SEVERAL: &[Rule] = &[
    ("", "int i, j; @for (j = 0; j < n; ++j) p[j] = 0;", STRIP),
    ("", "int i = 1, j = 2, k; @for (k = j; k > i; --k) p[k] = 0;", STRIP),
    ("", "float *q, w; int i, j = 0; @while (j < n) { p[j] = 0; ++j; }", STRIP),
    ("", "unsigned int i, j; for (i = 0; i < n; ++i) @for (j = 0; j < i; ++j) p[j] = 0;", STRIP),
    ("__device__ int j;", "int i; @for (i = 0, j = 0; j < n; ++j) p[j] = 0;", no_strip("it is no variable of the thread's")),
    ("__device__ int j;", "struct own { int i, j; }; @for (j = 0; j < n; ++j) p[j] = 0;", no_strip("a class declares a member")),
    ("__device__ int j;", "struct own { int j; }; @for (j = 0; j < n; ++j) p[j] = 0;", no_strip("the same for the first")),
    ("", "__shared__ int i, j; @for (j = 0; j < n; ++j) p[j] = 0;", no_strip("the block shares it")),
    ("", "volatile int i, j; @for (j = 0; j < n; ++j) p[j] = 0;", no_strip("others may change it")),
    ("", "int i, j; int *q = &j; @for (j = 0; j < n; ++j) *q = 0;", no_strip("its address is known")),
    ("", "int i, j; { int k, j; @for (j = 0; j < n; ++j) p[j] = 0; }", no_strip("there are two of its name")),
    // A product in parentheses declares nothing; what stands in a list of parameters does.
    ("", "int h = p[0], w = p[1]; @for (int i = 0; i < w; ++i) p[i] = n / (h * w);", STRIP),
    ("", "int h = p[0], w = p[1]; @for (int i = 0; i < w; ++i) x += 1.0f - (float)(h * w);", STRIP),
    ("", "int h = p[0], w = p[1]; @for (int i = 0; i < w; ++i) p[i] = min(n, h * w) + max(h * w, 1);", STRIP),
    (
        "struct h;",
        "int w = p[1]; auto g = [](h *w) { return w; }; @for (int i = 0; i < w; ++i) p[i] = 0;",
        no_strip("a lambda's has its name"),
    ),
    ("struct h;", "int w = p[1]; struct f { int g(h *w); }; @for (int i = 0; i < w; ++i) p[i] = 0;", no_strip("a member's has its name")),
    ("struct h;", "int w = p[1]; struct f { f(h *w); }; @for (int i = 0; i < w; ++i) p[i] = 0;", no_strip("a constructor's has its name")),
    (
        "struct h;",
        "int w = p[1]; struct f { f operator/(h *w); }; @for (int i = 0; i < w; ++i) p[i] = 0;",
        no_strip("an operator's has its name"),
    ),
    ("struct h;", "int w = p[1]; struct f { f &&g(h *w); }; @for (int i = 0; i < w; ++i) p[i] = 0;", no_strip("behind a reference's sign")),
];

/// Strips would be sound, but nobody proves it yet.
const NOT_SEEN: &[Rule] = &[
    ("", "@for (const int *q = p, *last = p + n; q < last; q += 2) s += *q;", CHUNK),
    ("", "@for (const int *q = p; q < end; ++q) s += *q;", STRIP),
];

/// Neither strips nor chunks.
const PLAIN: &[Rule] = &[
    ("#define UNROLL _Pragma(\"unroll 4\")", "UNROLL @for (int i = 0; i < n; ++i) p[i] = 0;", counts_down("it may be unrolled as a whole")),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) goto out; p[i] = 1; } out: p[0] = 2;", counts_down("it is left by a jump")),
    ("", "@while (int found = p[n--]) { p[found] = 0; }", counts_down("the condition declares a variable")),
    ("", "@while (p[0]) { if (p[1]) goto out; } out: p[0] = 2;", counts_down("it is left by a jump")),
    ("", "@while (p[0]) { again: if (p[1]) goto again; }", counts_down("a label in it")),
    ("", "switch (s) { case 0: @while (p[0]) { p[1] = 1; case 1: p[0] = 0; } }", counts_down("a case label inside")),
    ("", "switch (s) { case 0: @while (p[0]) { p[1] = 1; default: p[0] = 0; } }", counts_down("a case label inside")),
    ("#define OUT goto out", "@while (p[0]) { OUT; } out: p[0] = 2;", counts_down("a macro may jump")),
    ("", "@while (p[0]) { LEAVE; }", counts_down("a macro that nobody knows may jump")),
    ("#define EACH @for (int i = 0; i < n; ++i)", "EACH p[i] = 0;", counts_down("it stands in a macro")),
];

/// The condition depends on data.
const OPEN: &[Rule] = &[
    ("", "@while (p[0]) p[0] -= 1;", CHUNK),
    ("", "@while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; }", CHUNK),
    ("", "@while (n--) p[n] = 0;", CHUNK),
    ("", "@while (*p++) { }", CHUNK),
    ("", "@while (atomicCAS(p, 0, 1) != 0) { }", CHUNK),
    ("", "@while (true) { if (p[0]) break; }", CHUNK),
    ("", "@while (*v == 0) { }", CHUNK),
];

#[test]
fn loops_whose_trips_can_be_counted() {
    check(COUNTED);
}

#[test]
fn pointers_that_step_over_what_they_write() {
    check(WRITES_THROUGH);
}

#[test]
fn loops_whose_body_comes_first() {
    check(BODY_FIRST);
}

#[test]
fn loops_over_what_a_block_shares() {
    check(SHARED);
}

#[test]
fn loops_whose_trips_the_compiler_may_know() {
    check(MAY_BE_KNOWN);
    check(SEVERAL);
}

#[test]
fn loops_whose_trips_nobody_counts_yet() {
    check(NOT_SEEN);
}

#[test]
fn loops_that_no_chunk_fits() {
    check(PLAIN);
}

#[test]
fn loops_that_data_decides() {
    check(OPEN);
}

/// Two headers in one have no place for a poll that both would pass, unless a brace follows.
#[test]
fn a_header_that_an_if_splits_is_told_or_polled_at_its_brace() {
    let text = |body: &str| {
        format!(
            "__global__ void k(int *p, int n) {{\n#if A\n    for (int i = 0; i < n; ++i\n#else\n    for (int i = 0; i < 2 * n; ++i\n#endif\n    ) {body}\n}}\n"
        )
    };
    let rewrite = rewritten_as(&text("p[i] = 0;"), &Options::default());
    assert!(rewrite.sites.sites.iter().filter(|site| site.kind == Kind::For).all(|site| site.form == Form::None && site.why.is_some()));
    assert!(rewrite.summary.gaps > 0 && !rewrite.diagnostics.is_empty(), "it is told");
}
