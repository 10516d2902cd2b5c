//! The poll form that each loop gets, one row a rule: the loops that a cheaper form is sound for, and those that look like them and break a
//! rule. A loop that breaks one must get the form that is sound for any loop.

use crate::rewritten_as;
use cuinstr::options::{Options, Polls};
use cuinstr::site::{Form, Kind};
use std::fmt::Write as _;

/// What a loop should get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// No poll: it provably ends soon.
    LeftAlone,
    /// A chunk of its own induction variable's trips; what is strip-mined.
    Strip(Shape),
    /// A constant chunk around a condition that depends on data.
    Chunk,
    /// The plain count-down; why nothing better is sound.
    CountDown(&'static str),
}

/// What makes a loop's trips countable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A `for` with an integer.
    For,
    /// A `for` whose step is a variable, or known at run time only: zero and the wrong sign fall back there.
    Stride,
    /// A `for` with a pointer or an iterator.
    Pointer,
    /// `while` or `do` with a counter.
    While,
}

/// The site map's word for it. As long as there is no cheaper form, all loops that poll count down.
fn form(wanted: Wanted) -> Form {
    match wanted {
        Wanted::LeftAlone => Form::None,
        Wanted::Strip(_) | Wanted::Chunk | Wanted::CountDown(_) => Form::CountDown,
    }
}

/// What stands in front of the kernel, its body, and what the loop behind `@` gets.
type Rule = (&'static str, &'static str, Wanted);

fn check(rules: &[Rule]) {
    let mut wrong = String::new();
    for (front, text, wanted) in rules {
        let head = "__global__ void k(int *p, int n, unsigned m, size_t z, int s, float x, int *end, volatile int *v)";
        let marked = format!("{front}\n{head} {{\n    {text}\n}}\n");
        let (before, after) = marked.split_once('@').unwrap_or_else(|| panic!("no loop is marked in {text}"));
        let line = before.matches('\n').count() as u32 + 1;
        let column = (before.len() - before.rfind('\n').map_or(0, |newline| newline + 1)) as u32 + 1;
        let source = format!("{before}{after}");
        for (polls, expected) in [(Polls::Amortised, form(*wanted)), (Polls::Each, Form::Each)] {
            let rewrite = rewritten_as(&source, &Options { polls, ..Options::default() });
            let loops = |kind| matches!(kind, Kind::For | Kind::RangeFor | Kind::While | Kind::Do);
            let found = rewrite.sites.sites.iter().find(|site| loops(site.kind) && (site.line, site.column) == (line, column));
            match found {
                Some(site) if site.form == expected => {}
                Some(site) => {
                    let _ = writeln!(wrong, "{front}\n{text}\n  {:?}, not {expected:?} ({wanted:?}): {:?}", site.form, site.why);
                }
                None => {
                    let _ = writeln!(wrong, "{front}\n{text}\n  no loop at {line}:{column}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const FOR: Wanted = Wanted::Strip(Shape::For);
const STRIDE: Wanted = Wanted::Strip(Shape::Stride);
const POINTER: Wanted = Wanted::Strip(Shape::Pointer);
const WHILE: Wanted = Wanted::Strip(Shape::While);

const fn falls_back(why: &'static str) -> Wanted {
    Wanted::CountDown(why)
}

/// Bound and step are invariant: the trips can be counted.
const COUNTED: &[Rule] = &[
    ("", "@for (int i = 0; i < 8; ++i) p[i] = 0;", Wanted::LeftAlone),
    ("", "@for (int i = 0; i < n; ++i) p[i] = 0;", FOR),
    ("", "@for (int i = 0; i < n; i++) { p[i] = 0; }", FOR),
    ("", "@for (int i = 0; i <= n; ++i) p[i] = 0;", FOR),
    ("", "@for (int i = n; i > 0; --i) p[i] = 0;", FOR),
    ("", "@for (int i = n; i >= 0; i--) p[i] = 0;", FOR),
    ("", "@for (int i = 0; i != n; ++i) p[i] = 0;", FOR),
    ("", "@for (int i = 0; n > i; ++i) p[i] = 0;", FOR),
    ("", "@for (unsigned i = 0; i < m; ++i) p[i] = 0;", FOR),
    ("", "@for (size_t i = 0; i < z; ++i) p[i] = 0;", FOR),
    ("", "@for (long long i = 0; i < z; ++i) p[i] = 0;", FOR),
    ("", "@for (unsigned char i = 0; i < 200; i += 2) s += p[i];", FOR),
    ("", "@for (int i = 0; i < 1000000; ++i) p[i] = 0;", FOR),
    ("#define COUNT 1000000", "@for (int i = 0; i < COUNT; ++i) p[i] = 0;", FOR),
    ("", "const int last = n - 1; @for (int i = 0; i < last; ++i) p[i] = 0;", FOR),
    ("", "int i; @for (i = 0; i < n; ++i) p[i] = 0; p[0] = i;", FOR),
    ("", "int i = 3; @for (; i < n; ++i) p[i] = 0;", FOR),
    ("", "@for (int i = 0; i < n - 1; ++i) p[i] = 0;", FOR),
    ("", "@for (int i = threadIdx.x; i < n; i += 4) p[i] = 0;", FOR),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) break; if (p[i] == 3) continue; if (p[i] == 4) return; p[i] = i; }", FOR),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < i; ++j) p[j] = 0; }", FOR),
    ("", "for (int i = 0; i < n; ++i) { @for (int j = 0; j < i; ++j) p[j] = 0; }", FOR),
    ("", "@for (int i = 0; i < n; ++i) switch (p[i]) { case 0: p[i] = 1; break; default: continue; }", FOR),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) goto out; p[i] = 1; } out: p[0] = 2;", FOR),
    ("", "\n#pragma unroll 4\n@for (int i = 0; i < n; ++i) p[i] = 0;", FOR),
    ("#define UNROLL _Pragma(\"unroll 4\")", "UNROLL @for (int i = 0; i < n; ++i) p[i] = 0;", FOR),
    ("", "if (s) @for (int i = 0; i < n; ++i) p[i] = 0; else p[0] = 1;", FOR),
    ("", "@for (int i = 0; i < n; ++i) atomicAdd(p, i);", FOR),
    ("__device__ int half_of(int x) { return x / 2; }", "@for (int i = 0; i < n; ++i) p[i] = half_of(i);", FOR),
    ("", "@for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) p[i] = 0;", STRIDE),
    ("", "const int stride = gridDim.x * blockDim.x; @for (int i = threadIdx.x; i < n; i += stride) p[i] = 0;", STRIDE),
    ("", "@for (int i = 0; i < n; i += s) p[i] = 0;", STRIDE),
    ("", "@for (int i = n; i > 0; i -= s) p[i] = 0;", STRIDE),
    ("", "@for (int i = 0; i != n; i += 2) p[i] = 0;", STRIDE),
    ("", "@for (int *q = p; q < end; ++q) *q = 0;", POINTER),
    ("", "@for (int *q = p; q != end; ++q) *q = 0;", POINTER),
    ("", "@for (const int *q = p, *last = p + n; q < last; q += 2) s += *q;", POINTER),
    ("", "int i = 0; @while (i < n) { p[i] = 0; ++i; }", WHILE),
    ("", "int i = n; @while (i > 0) { --i; p[i] = 0; }", WHILE),
    ("", "int i = 0; @do { p[i] = 0; ++i; } while (i < n);", WHILE),
];

/// The condition depends on data.
const OPEN: &[Rule] = &[
    ("", "@while (p[0]) p[0] -= 1;", Wanted::Chunk),
    ("", "@while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; }", Wanted::Chunk),
    ("", "@while (n--) p[n] = 0;", Wanted::Chunk),
    ("", "@while (*p++) { }", Wanted::Chunk),
    ("", "@while (atomicCAS(p, 0, 1) != 0) { }", Wanted::Chunk),
    ("", "@while (true) { if (p[0]) break; }", Wanted::Chunk),
    ("", "@do { n = p[n]; } while (n != s);", Wanted::Chunk),
    ("", "@do p[0] -= 1; while (p[0] > 0);", Wanted::Chunk),
    ("", "@while (*v == 0) { }", Wanted::Chunk),
];

/// The counter changes elsewhere than in the step, or may.
const COUNTER_CHANGES: &[Rule] = &[
    ("", "@for (int i = 0; i < n; ++i) { i += s; }", falls_back("the body adds to it")),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) --i; }", falls_back("the body takes from it")),
    ("", "@for (int i = 0; i < n; ++i) p[i++] = 0;", falls_back("in a subscript")),
    ("", "@for (int i = 0; i < n; ++i) { (i) = s; }", falls_back("behind parentheses")),
    ("", "@for (int i = 0; i < n; ++i) { p[0] = i = s; }", falls_back("in a chain")),
    ("", "@for (int i = 0; i < n; ++i) { for (; i < s; ++i) p[i] = 0; }", falls_back("an inner loop has the same counter")),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < 9; ++j, --i) p[j] = 0; }", falls_back("in an inner step")),
    ("", "@for (int i = 0; i < n; ++i) { while (i-- > s) p[0] = 0; }", falls_back("in an inner condition")),
    ("", "@for (int i = 0; i < n; ++i) { int *q = &i; *q = 0; }", falls_back("its address is taken")),
    ("", "int i; int *q = &i; @for (i = 0; i < n; ++i) *q = 0;", falls_back("its address was taken before")),
    ("", "@for (int i = 0; i < n; ++i) { int &r = i; r = 0; }", falls_back("a reference to it")),
    ("", "int i, &r = i; @for (i = 0; i < n; ++i) r = 0;", falls_back("a reference to it from before")),
    ("", "@for (int i = 0; i < n; ++i) { auto &&r = i; r = 0; }", falls_back("a reference that is deduced")),
    ("", "@for (int i = 0; i < n; ++i) { [&] { --i; }(); }", falls_back("captured by reference")),
    ("", "@for (int i = 0; i < n; ++i) { [&i] { --i; }(); }", falls_back("captured by reference, by name")),
    ("", "int i; auto f = [&] { --i; }; @for (i = 0; i < n; ++i) f();", falls_back("captured before the loop")),
    ("", "@for (int i = 0; i < n; ++i) f(i);", falls_back("an unknown function may take it by reference")),
    ("__device__ void f(int &x) { --x; }", "@for (int i = 0; i < n; ++i) f(i);", falls_back("a function takes it by reference")),
    ("template <class T> __device__ void f(T &&x) { --x; }", "@for (int i = 0; i < n; ++i) f(i);", falls_back("a forwarding reference")),
    ("", "@for (int i = 0; i < n; ++i) std::swap(i, s);", falls_back("it is swapped")),
    ("", "@for (int i = 0; i < n; ++i) atomicSub(&i, 1);", falls_back("an atomic changes it")),
    ("", "@for (int i = 0; i < n; ++i) asm(\"\" : \"+r\"(i));", falls_back("assembly changes it")),
    ("#define SKIP ++i", "@for (int i = 0; i < n; ++i) { SKIP; }", falls_back("a macro of this file changes it")),
    ("#define SKIP(x) (x) += 2", "@for (int i = 0; i < n; ++i) { SKIP(i); }", falls_back("a macro changes its argument")),
    ("", "@for (int i = 0; i < n; ++i) { SKIP; p[i] = 0; }", falls_back("a macro that nobody knows")),
    ("", "@for (int i = 0; i < n; ++i) {\n#include \"body.inc\"\n}", falls_back("a file that nobody knows")),
    ("", "@for (int i = 0; i < n; ++i) {\n#if FAST\n++i;\n#endif\np[i] = 0; }", falls_back("an arm changes it")),
    ("#define i n", "@for (int i = 0; i < s; ++i) p[0] = i;", falls_back("its name is a macro")),
    (
        "",
        "int i; if (s) goto in; @for (i = 0; i < n; ++i) { p[0] = 1; in: p[i] = 0; }",
        falls_back("a jump into the body passes the start by"),
    ),
    ("", "switch (s) { case 0: int i; @for (i = 0; i < n; ++i) { p[0] = 1; case 1: p[0] = 0; } }", falls_back("a case label inside")),
];

/// The bound changes, or may.
const BOUND_CHANGES: &[Rule] = &[
    ("", "@for (int i = 0; i < n; ++i) { --n; }", falls_back("the body changes it")),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) n = p[i]; }", falls_back("the body sets it")),
    ("", "@for (int i = 0; i < n; ++i, --n) p[i] = 0;", falls_back("the step changes it")),
    ("", "@for (int i = 0; i < n--; ++i) p[i] = 0;", falls_back("the condition changes it")),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < n; --n) p[j] = 0; }", falls_back("an inner loop changes it")),
    ("", "@for (int i = 0; i < p[0]; ++i) p[i] = 0;", falls_back("it lies in memory that the body writes")),
    ("", "@for (int i = 0; i < *p; ++i) p[i] = 0;", falls_back("it lies in memory that the body writes")),
    ("", "@for (int i = 0; i < *v; ++i) p[i] = 0;", falls_back("it is volatile")),
    ("", "@for (int i = 0; i < atomicAdd(p, 0); ++i) p[i] = 0;", falls_back("it is asked of an atomic")),
    ("__device__ int last;", "@for (int i = 0; i < last; ++i) p[i] = 0;", falls_back("others may write the global")),
    (
        "__device__ int last; __device__ void f() { ++last; }",
        "@for (int i = 0; i < last; ++i) f();",
        falls_back("a function writes the global"),
    ),
    ("", "@for (int i = 0; i < f(); ++i) p[i] = 0;", falls_back("it is a function's")),
    ("", "@for (int i = 0; i < count; ++i) p[i] = 0;", falls_back("nobody knows what it is")),
    ("struct S { int n; };", "S *q = (S *)p; @for (int i = 0; i < q->n; ++i) p[i] = 0;", falls_back("a member behind a pointer")),
    ("", "int last = n; int *q = &last; @for (int i = 0; i < last; ++i) *q = 3;", falls_back("its address was taken")),
    ("", "int last = n; auto f = [&] { --last; }; @for (int i = 0; i < last; ++i) f();", falls_back("it was captured by reference")),
    ("", "int &last = *p; @for (int i = 0; i < last; ++i) p[i] = 0;", falls_back("it is a reference")),
    ("", "int last = n; @for (int i = 0; i < last; ++i) f(last);", falls_back("an unknown function may take it by reference")),
    ("#define last (--n)", "@for (int i = 0; i < last; ++i) p[i] = 0;", falls_back("it is a macro that does something")),
    ("", "@for (int i = 0; i < n - i; ++i) p[i] = 0;", falls_back("it depends on the counter")),
    ("", "@for (int i = 0; i < n; ++i) asm(\"\" : \"+r\"(n));", falls_back("assembly changes it")),
    (
        "struct S { __device__ operator int() const { return 3; } };",
        "S last; @for (int i = 0; i < last; ++i) p[i] = 0;",
        falls_back("it is converted by a function"),
    ),
    ("", "__shared__ int last; @for (int i = 0; i < last; ++i) p[i] = 0;", falls_back("other threads may write it")),
    ("", "static int last; @for (int i = 0; i < last; ++i) p[i] = 0;", falls_back("other threads may write it")),
];

/// The step is not one invariant amount.
const ODD_STEPS: &[Rule] = &[
    ("", "@for (int i = 0; i < n; i += s) { --s; }", falls_back("the body changes it")),
    ("", "@for (int i = 0; i < n; i += s--) p[i] = 0;", falls_back("the step changes it")),
    ("", "@for (int i = 0; i < n; i += p[i]) p[i] = 0;", falls_back("it lies in memory")),
    ("", "@for (int i = 0; i < n; i += f()) p[i] = 0;", falls_back("it is a function's")),
    ("", "@for (int i = 0; i < n; i += *v) p[i] = 0;", falls_back("it is volatile")),
    ("", "@for (int i = 1; i < n; i += i) p[i] = 0;", falls_back("it grows")),
    ("", "@for (int i = 1; i < n; i *= 2) p[i] = 0;", falls_back("it multiplies")),
    ("", "@for (int i = 1; i < n; i <<= 1) p[i] = 0;", falls_back("it shifts")),
    ("", "@for (int i = n; i > 0; i >>= 1) p[i] = 0;", falls_back("it shifts")),
    ("", "@for (int i = 0; i < n; i = p[i]) p[0] = 0;", falls_back("it follows a list")),
    ("", "@for (int i = 0; i < n;) p[i] = 0;", falls_back("there is none")),
    ("", "@for (int i = 0; i < n; ++s) p[i] = 0;", falls_back("it steps another variable")),
    ("", "@for (int i = 0; i < n; ++i, --i) p[i] = 0;", falls_back("two steps")),
    ("", "@for (int i = 0; i < n; f(i)) p[i] = 0;", falls_back("a function steps")),
    ("", "int i = 0; @while (i < n) { if (p[i]) continue; ++i; }", falls_back("`continue` passes the step by")),
    ("", "int i = 0; @while (i < n) { if (p[i]) ++i; }", falls_back("only some rounds step")),
];

/// The condition is not one comparison.
const ODD_CONDITIONS: &[Rule] = &[
    ("", "@for (int i = 0; i < n && p[i]; ++i) p[i] = 0;", falls_back("`&&`")),
    ("", "@for (int i = 0; i < n || p[0]; ++i) p[i] = 0;", falls_back("`||`")),
    ("", "@for (int i = 0; --s, i < n; ++i) p[i] = 0;", falls_back("a comma")),
    ("", "@for (int i = 0; (i < n) | s; ++i) p[i] = 0;", falls_back("a bit")),
    ("", "@for (int i = 0; i < n == s; ++i) p[i] = 0;", falls_back("compared again")),
    ("", "@for (int i = 0; i < n ? p[i] : s; ++i) p[i] = 0;", falls_back("a choice")),
    ("", "@for (int i = 0; i == n; ++i) p[i] = 0;", falls_back("it goes on while equal")),
    ("", "@for (int i = 0; !(i == n); ++i) p[i] = 0;", falls_back("a negation")),
    ("", "@for (int i = n; i; --i) p[i] = 0;", falls_back("no comparison")),
    ("", "@for (int i = n; i - s; --i) p[i] = 0;", falls_back("a difference")),
    ("", "@for (int i = 0; ; ++i) { if (p[i]) break; }", falls_back("there is none")),
    ("", "@for (int i = 0; i++ < n;) p[i] = 0;", falls_back("it steps")),
    ("", "@for (int i = 0; (i = p[i]) < n; ++i) p[0] = 0;", falls_back("it assigns")),
    ("", "@for (int i = 0; f(i) < n; ++i) p[i] = 0;", falls_back("a function's value")),
    ("", "@for (int i = 0; p[i] < n; ++i) p[i] = 0;", falls_back("an element's value")),
    ("", "@for (int i = 0; i * i < n; ++i) p[i] = 0;", falls_back("a square")),
    ("", "@for (int i = 0; (char)i < n; ++i) p[i] = 0;", falls_back("a narrower value")),
    ("", "@for (int i = 0; s < n; ++i) p[i] = 0;", falls_back("another variable")),
];

/// The counter is no plain integer or pointer.
const ODD_TYPES: &[Rule] = &[
    ("", "@for (float i = 0; i < x; i += 1.0f) p[0] += 1;", falls_back("a step may be lost in rounding")),
    ("", "@for (double i = 0; i < n; ++i) p[0] += 1;", falls_back("a step may be lost in rounding")),
    ("", "@for (int i = 0; i < x; ++i) p[i] = 0;", falls_back("the bound is no integer")),
    ("", "@for (int i = 0; i < n; i += x) p[i] = 0;", falls_back("the step is no integer")),
    ("", "@for (bool i = false; i != true; i = !i) p[0] += 1;", falls_back("bool")),
    ("", "@for (volatile int i = 0; i < n; ++i) p[0] += 1;", falls_back("volatile")),
    ("", "@for (std::atomic<int> i = 0; i < n; ++i) p[0] += 1;", falls_back("atomic")),
    ("", "@for (cuda::atomic<int> i(0); i < n; ++i) p[0] += 1;", falls_back("atomic")),
    ("", "@for (Index i = 0; i < n; ++i) p[0] += 1;", falls_back("nobody knows the type")),
    ("", "@for (my::size_t i = 0; i < n; ++i) p[0] += 1;", falls_back("nobody knows the type")),
    (
        "struct It { int at; __device__ It &operator++(); __device__ bool operator<(int) const; };",
        "@for (It i{0}; i < n; ++i) p[0] += 1;",
        falls_back("operators of the user's"),
    ),
    ("using size_t = float;", "@for (size_t i = 0; i < n; ++i) p[0] += 1;", falls_back("the file says what the word means")),
    ("enum E { A, B }; __device__ E &operator++(E &e);", "@for (E i = A; i < n; ++i) p[0] += 1;", falls_back("operators of the user's")),
    ("", "@for (auto i = f(); i < n; ++i) p[0] += 1;", falls_back("a deduced type")),
    ("", "@for (int &i = *p; i < n; ++i) p[1] += 1;", falls_back("the counter lies elsewhere")),
    ("", "@for (*p = 0; *p < n; ++*p) p[1] += 1;", falls_back("the counter lies in memory")),
    ("", "@for (p[0] = 0; p[0] < n; ++p[0]) p[1] += 1;", falls_back("the counter lies in memory")),
    ("struct S { int i; };", "S *q = (S *)p; @for (q->i = 0; q->i < n; ++q->i) p[1] += 1;", falls_back("the counter is a member")),
    ("__device__ int i;", "@for (i = 0; i < n; ++i) p[1] += 1;", falls_back("others may write the global")),
    ("", "__shared__ int i; @for (i = 0; i < n; ++i) p[1] += 1;", falls_back("other threads write it")),
    ("", "@for (static int i = 0; i < n; ++i) p[1] += 1;", falls_back("other threads write it")),
    ("struct S { int b : 4; };", "S q; @for (q.b = 0; q.b < n; ++q.b) p[1] += 1;", falls_back("a bit-field wraps")),
    ("", "int a[3] = {1, 2, 3}; @for (int each : a) p[each] = 0;", falls_back("a range")),
    ("", "@for (auto &each : range(p, n)) each = 0;", falls_back("a range of anything")),
];

/// The text is not what the compiler sees.
const ODD_TEXT: &[Rule] = &[
    ("#define TO(n) i < n; ++i", "@for (int i = 0; TO(n)) p[i] = 0;", falls_back("a macro holds parts of the header")),
    ("#define BELOW <", "@for (int i = 0; i BELOW n; ++i) p[i] = 0;", falls_back("a macro is the relation")),
    ("#define STEP i -= 1", "@for (int i = 0; i < n; STEP) p[i] = 0;", falls_back("a macro is the step")),
    ("", "@for (int i = 0; i < LIMIT; ++i) p[i] = 0;", falls_back("a macro from elsewhere may do anything")),
    ("#define for(x) for (x)", "@for (int i = 0; i < n; ++i) p[i] = 0;", falls_back("the keyword is a macro")),
    ("#define int unsigned char", "@for (int i = 0; i < n; ++i) p[i] = 0;", falls_back("the type is a macro")),
    ("#define if(x) --i; if (x)", "@for (int i = 0; i < n; ++i) { if (p[i]) p[i] = 0; }", falls_back("a word of the body is a macro")),
    ("", "@for (int i = 0; i -\\\n= n; ++i) p[i] = 0;", falls_back("a token goes over the end of a line")),
    (
        "struct A { __device__ A &operator+=(int &x) { x = 0; return *this; } };",
        "A a; @for (int i = 0; i < n; ++i) { a += i; }",
        falls_back("an operator of this file changes its operand"),
    ),
];

#[test]
fn loops_whose_trips_can_be_counted() {
    check(COUNTED);
}

#[test]
fn loops_that_data_decides() {
    check(OPEN);
}

#[test]
fn a_counter_that_may_change_elsewhere_counts_down() {
    check(COUNTER_CHANGES);
}

#[test]
fn a_bound_that_may_change_counts_down() {
    check(BOUND_CHANGES);
}

#[test]
fn a_step_that_is_not_one_amount_counts_down() {
    check(ODD_STEPS);
}

#[test]
fn a_condition_that_is_not_one_comparison_counts_down() {
    check(ODD_CONDITIONS);
}

#[test]
fn a_counter_of_another_type_counts_down() {
    check(ODD_TYPES);
}

#[test]
fn a_text_that_macros_change_counts_down() {
    check(ODD_TEXT);
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
