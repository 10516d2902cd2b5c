//! Loops that look like those a cheaper form is sound for, and break a rule of it: each must get a form that is sound for any loop.

use crate::forms::{Rule, Wanted, check, no_strip};

/// The counter changes elsewhere than in the step, or may.
const COUNTER_CHANGES: &[Rule] = &[
    ("", "@for (int i = 0; i < n; ++i) { i += s; }", no_strip("the body adds to it")),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) --i; }", no_strip("the body takes from it")),
    ("", "@for (int i = 0; i < n; ++i) p[i++] = 0;", no_strip("in a subscript")),
    ("", "@for (int i = 0; i < n; ++i) { (i) = s; }", no_strip("behind parentheses")),
    ("", "@for (int i = 0; i < n; ++i) { p[0] = i = s; }", no_strip("in a chain")),
    ("", "@for (int i = 0; i < n; ++i) { for (; i < s; ++i) p[i] = 0; }", no_strip("an inner loop has the same counter")),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < 9; ++j, --i) p[j] = 0; }", no_strip("in an inner step")),
    ("", "@for (int i = 0; i < n; ++i) { while (i-- > s) p[0] = 0; }", no_strip("in an inner condition")),
    ("", "@for (int i = 0; i < n; ++i) { int *q = &i; *q = 0; }", no_strip("its address is taken")),
    ("", "int i; int *q = &i; @for (i = 0; i < n; ++i) *q = 0;", no_strip("its address was taken before")),
    ("", "@for (int i = 0; i < n; ++i) { int &r = i; r = 0; }", no_strip("a reference to it")),
    ("", "int i, &r = i; @for (i = 0; i < n; ++i) r = 0;", no_strip("a reference to it from before")),
    ("", "@for (int i = 0; i < n; ++i) { auto &&r = i; r = 0; }", no_strip("a reference that is deduced")),
    ("", "@for (int i = 0; i < n; ++i) { [&] { --i; }(); }", no_strip("captured by reference")),
    ("", "@for (int i = 0; i < n; ++i) { [&i] { --i; }(); }", no_strip("captured by reference, by name")),
    ("", "int i; auto f = [&] { --i; }; @for (i = 0; i < n; ++i) f();", no_strip("captured before the loop")),
    ("", "@for (int i = 0; i < n; ++i) f(i);", no_strip("an unknown function may take it by reference")),
    ("__device__ void f(int &x) { --x; }", "@for (int i = 0; i < n; ++i) f(i);", no_strip("a function takes it by reference")),
    ("template <class T> __device__ void f(T &&x) { --x; }", "@for (int i = 0; i < n; ++i) f(i);", no_strip("a forwarding reference")),
    ("", "@for (int i = 0; i < n; ++i) std::swap(i, s);", no_strip("it is swapped")),
    ("", "@for (int i = 0; i < n; ++i) atomicSub(&i, 1);", no_strip("an atomic changes it")),
    ("", "@for (int i = 0; i < n; ++i) asm(\"\" : \"+r\"(i));", no_strip("assembly changes it")),
    ("#define SKIP ++i", "@for (int i = 0; i < n; ++i) { SKIP; }", no_strip("a macro of this file changes it")),
    ("#define SKIP(x) (x) += 2", "@for (int i = 0; i < n; ++i) { SKIP(i); }", no_strip("a macro changes its argument")),
    ("", "@for (int i = 0; i < n; ++i) { SKIP; p[i] = 0; }", no_strip("a macro that nobody knows")),
    ("#define SAME i", "@for (int i = 0; i < n; ++i) { SAME = 3; }", no_strip("a macro is another name of it")),
    ("#define OTHER(a) a", "@for (int i = 0; i < n; ++i) { OTHER(i) = 3; }", no_strip("a macro hands it on")),
    ("#define MORE(a, b) ((a) > (b) ? (a) : (b))", "@for (int i = 0; i < n; ++i) { MORE(i, s) = 3; }", no_strip("one of two is changed")),
    ("#define CALL(f) (f(i) + 1)", "@for (int i = 0; i < n; ++i) p[0] = CALL(take);", no_strip("a macro may give it away")),
    ("#define LESS (i -= 2)", "@for (int i = 0; i < n; ++i) p[0] = LESS;", no_strip("a macro changes it in passing")),
    (
        "#define WIDE 8\n#undef WIDE\n#define WIDE i++",
        "@for (int i = 0; i < n; ++i) p[WIDE] = 0;",
        no_strip("one of two definitions changes it"),
    ),
    ("", "@for (int i = 0; i < n; ++i) {\n#include \"body.inc\"\n}", no_strip("a file that nobody knows")),
    ("", "@for (int i = 0; i < n; ++i) {\n#if FAST\n++i;\n#endif\np[i] = 0; }", no_strip("an arm changes it")),
    ("#define i n", "@for (int i = 0; i < s; ++i) p[0] = i;", no_strip("its name is a macro")),
    (
        "",
        "int i; if (s) goto in; @for (i = 0; i < n; ++i) { p[0] = 1; in: p[i] = 0; }",
        no_strip("a jump into the body passes the start by"),
    ),
    ("", "switch (s) { case 0: int i; @for (i = 0; i < n; ++i) { p[0] = 1; case 1: p[0] = 0; } }", no_strip("a case label inside")),
    (
        "__device__ int half_of(int x) { return x / 2; }",
        "@for (int i = 0; i < n; ++i) p[i] = half_of(i);",
        no_strip("a function of the file may take it by reference"),
    ),
];

/// The bound changes, or may.
const BOUND_CHANGES: &[Rule] = &[
    ("", "@for (int i = 0; i < n; ++i) { --n; }", no_strip("the body changes it")),
    ("", "@for (int i = 0; i < n; ++i) { if (p[i]) n = p[i]; }", no_strip("the body sets it")),
    ("", "@for (int i = 0; i < n; ++i, --n) p[i] = 0;", no_strip("the step changes it")),
    ("", "@for (int i = 0; i < n--; ++i) p[i] = 0;", no_strip("the condition changes it")),
    ("", "@for (int i = 0; i < n; ++i) { for (int j = 0; j < n; --n) p[j] = 0; }", no_strip("an inner loop changes it")),
    ("", "@for (int i = 0; i < p[0]; ++i) p[i] = 0;", no_strip("it lies in memory that the body writes")),
    ("", "@for (int i = 0; i < *p; ++i) p[i] = 0;", no_strip("it lies in memory that the body writes")),
    ("", "@for (int i = 0; i < *v; ++i) p[i] = 0;", no_strip("it is volatile")),
    ("", "@for (int i = 0; i < atomicAdd(p, 0); ++i) p[i] = 0;", no_strip("it is asked of an atomic")),
    ("__device__ int last;", "@for (int i = 0; i < last; ++i) p[i] = 0;", no_strip("others may write the global")),
    (
        "__device__ int last; __device__ void f() { ++last; }",
        "@for (int i = 0; i < last; ++i) f();",
        no_strip("a function writes the global"),
    ),
    ("", "@for (int i = 0; i < f(); ++i) p[i] = 0;", no_strip("it is a function's")),
    ("", "@for (int i = 0; i < count; ++i) p[i] = 0;", no_strip("nobody knows what it is")),
    ("struct S { int n; };", "S *q = (S *)p; @for (int i = 0; i < q->n; ++i) p[i] = 0;", no_strip("a member behind a pointer")),
    ("", "int last = n; int *q = &last; @for (int i = 0; i < last; ++i) *q = 3;", no_strip("its address was taken")),
    ("", "int last = n; auto f = [&] { --last; }; @for (int i = 0; i < last; ++i) f();", no_strip("it was captured by reference")),
    ("", "int &last = *p; @for (int i = 0; i < last; ++i) p[i] = 0;", no_strip("it is a reference")),
    ("", "int last = n; @for (int i = 0; i < last; ++i) f(last);", no_strip("an unknown function may take it by reference")),
    ("#define last (--n)", "@for (int i = 0; i < last; ++i) p[i] = 0;", no_strip("it is a macro that does something")),
    ("#define last (n - 1)", "@for (int i = 0; i < last; ++i) { p[i] = 0; --n; }", no_strip("what its macro stands for changes")),
    ("#define last (*p)", "@for (int i = 0; i < last; ++i) p[i] = 0;", no_strip("its macro asks memory")),
    ("#define last n && s", "@for (int i = 0; i < last; ++i) { p[i] = 0; }", no_strip("its macro is more than one operand")),
    ("", "@for (int i = 0; i < n - i; ++i) p[i] = 0;", no_strip("it depends on the counter")),
    ("", "@for (int i = 0; i < n; ++i) asm(\"\" : \"+r\"(n));", no_strip("assembly changes it")),
    (
        "struct S { __device__ operator int() const { return 3; } };",
        "S last; @for (int i = 0; i < last; ++i) p[i] = 0;",
        no_strip("it is converted by a function"),
    ),
    ("", "__shared__ int last; @for (int i = 0; i < last; ++i) p[i] = 0;", no_strip("other threads may write it")),
    ("", "static int last; @for (int i = 0; i < last; ++i) p[i] = 0;", no_strip("other threads may write it")),
];

/// The step is not one invariant amount.
const ODD_STEPS: &[Rule] = &[
    ("", "@for (int i = 0; i < n; i += s) { --s; }", no_strip("the body changes it")),
    ("", "@for (int i = 0; i < n; i += s--) p[i] = 0;", no_strip("the step changes it")),
    ("", "@for (int i = 0; i < n; i += p[i]) p[i] = 0;", no_strip("it lies in memory")),
    ("", "@for (int i = 0; i < n; i += f()) p[i] = 0;", no_strip("it is a function's")),
    ("", "@for (int i = 0; i < n; i += *v) p[i] = 0;", no_strip("it is volatile")),
    ("", "@for (int i = 1; i < n; i += i) p[i] = 0;", no_strip("it grows")),
    ("", "@for (int i = 1; i < n; i *= 2) p[i] = 0;", no_strip("it multiplies")),
    ("", "@for (int i = 1; i < n; i <<= 1) p[i] = 0;", no_strip("it shifts")),
    ("", "@for (int i = n; i > 0; i >>= 1) p[i] = 0;", Wanted::LeftAlone),
    ("", "@for (int i = 0; i < n; i = p[i]) p[0] = 0;", no_strip("it follows a list")),
    ("", "@for (int i = 0; i < n;) p[i] = 0;", no_strip("there is none")),
    ("", "@for (int i = 0; i < n; ++s) p[i] = 0;", no_strip("it steps another variable")),
    ("", "@for (int i = 0; i < n; ++i, --i) p[i] = 0;", no_strip("two steps")),
    ("", "@for (int i = 0; i < n; f(i)) p[i] = 0;", no_strip("a function steps")),
    ("", "int i = 0; @while (i < n) { if (p[i]) ++i; ++i; }", no_strip("two steps")),
    ("", "int i = 0; @while (i < n) { for (int j = 0; j < s; ++j) ++i; }", no_strip("a loop inside steps")),
    ("", "int i = 0; @while (i < n) { [&] { ++i; }(); }", no_strip("a function inside steps")),
    ("", "int i = 0; @while (i < n) { p[i++] = 0; }", no_strip("the step is no statement")),
    ("", "int i = 0; @while (i < n) { int &r = i; ++i; r = 0; }", no_strip("a reference to it")),
    ("", "int i = 0; @while (i < n) { i = p[i]; }", no_strip("it follows a list")),
    ("", "int i = 0; @while (i < n) { --i; }", no_strip("it leads away")),
];

/// The condition is not one comparison.
const ODD_CONDITIONS: &[Rule] = &[
    ("", "@for (int i = 0; i < n && --n; ++i) p[i] = 0;", no_strip("what else has to hold changes the bound")),
    ("", "@for (int i = 0; i < n && f(i); ++i) p[i] = 0;", no_strip("a function may take the counter by reference")),
    ("", "@for (int i = 0; p[i] && i < n; ++i) p[i] = 0;", no_strip("the relation is not asked first")),
    ("", "@for (int i = 0; i < n && p[i] || s; ++i) p[i] = 0;", no_strip("`||`")),
    ("", "@for (int i = 0; i < n || p[0]; ++i) p[i] = 0;", no_strip("`||`")),
    ("", "@for (int i = 0; --s, i < n; ++i) p[i] = 0;", no_strip("a comma")),
    ("", "@for (int i = 0; (i < n) | s; ++i) p[i] = 0;", no_strip("a bit")),
    ("", "@for (int i = 0; i < n == s; ++i) p[i] = 0;", no_strip("compared again")),
    ("", "@for (int i = 0; i < n ? p[i] : s; ++i) p[i] = 0;", no_strip("a choice")),
    ("", "@for (int i = 0; i == n; ++i) p[i] = 0;", no_strip("it goes on while equal")),
    ("", "@for (int i = 0; !(i == n); ++i) p[i] = 0;", no_strip("a negation")),
    ("", "@for (int i = n; i; --i) p[i] = 0;", no_strip("no comparison")),
    ("", "@for (int i = n; i - s; --i) p[i] = 0;", no_strip("a difference")),
    ("", "@for (int i = 0; ; ++i) { if (p[i]) break; }", no_strip("there is none")),
    ("", "@for (int i = 0; i++ < n;) p[i] = 0;", no_strip("it steps")),
    ("", "@for (int i = 0; (i = p[i]) < n; ++i) p[0] = 0;", no_strip("it assigns")),
    ("", "@for (int i = 0; f(i) < n; ++i) p[i] = 0;", no_strip("a function's value")),
    ("", "@for (int i = 0; p[i] < n; ++i) p[i] = 0;", no_strip("an element's value")),
    ("", "@for (int i = 0; i * i < n; ++i) p[i] = 0;", no_strip("a square")),
    ("", "@for (int i = 0; (char)i < n; ++i) p[i] = 0;", no_strip("a narrower value")),
    ("", "@for (int i = 0; s < n; ++i) p[i] = 0;", no_strip("another variable")),
];

/// The counter is no plain integer or pointer.
const ODD_TYPES: &[Rule] = &[
    ("", "@for (float i = 0; i < x; i += 1.0f) p[0] += 1;", Wanted::OneByOne("a step may be lost in rounding")),
    ("", "@for (double i = 0; i < n; ++i) p[0] += 1;", Wanted::OneByOne("a step may be lost in rounding")),
    ("", "@for (int i = 0; i < x; ++i) p[i] = 0;", Wanted::OneByOne("the bound is no integer")),
    ("", "@for (int i = 0; i < n; i += x) p[i] = 0;", Wanted::OneByOne("the step is no integer")),
    ("", "@for (bool i = false; i != true; i = !i) p[0] += 1;", no_strip("bool")),
    ("", "@for (volatile int i = 0; i < n; ++i) p[0] += 1;", no_strip("volatile")),
    ("", "@for (std::atomic<int> i = 0; i < n; ++i) p[0] += 1;", Wanted::OneByOne("atomic")),
    ("", "@for (cuda::atomic<int> i(0); i < n; ++i) p[0] += 1;", no_strip("atomic")),
    ("", "@for (Index i = 0; i < n; ++i) p[0] += 1;", Wanted::OneByOne("nobody knows the type")),
    ("", "@for (my::size_t i = 0; i < n; ++i) p[0] += 1;", Wanted::OneByOne("nobody knows the type")),
    (
        "struct It { int at; __device__ It &operator++(); __device__ bool operator<(int) const; };",
        "@for (It i{0}; i < n; ++i) p[0] += 1;",
        no_strip("operators of the user's"),
    ),
    ("using size_t = float;", "@for (size_t i = 0; i < n; ++i) p[0] += 1;", Wanted::OneByOne("the file says what the word means")),
    (
        "enum E { A, B }; __device__ E &operator++(E &e);",
        "@for (E i = A; i < n; ++i) p[0] += 1;",
        Wanted::OneByOne("operators of the user's"),
    ),
    ("", "@for (auto i = f(); i < n; ++i) p[0] += 1;", Wanted::OneByOne("a deduced type")),
    ("", "@for (int &i = *p; i < n; ++i) p[1] += 1;", no_strip("the counter lies elsewhere")),
    ("", "@for (*p = 0; *p < n; ++*p) p[1] += 1;", no_strip("the counter lies in memory")),
    ("", "@for (p[0] = 0; p[0] < n; ++p[0]) p[1] += 1;", no_strip("the counter lies in memory")),
    ("struct S { int i; };", "S *q = (S *)p; @for (q->i = 0; q->i < n; ++q->i) p[1] += 1;", no_strip("the counter is a member")),
    ("__device__ int i;", "@for (i = 0; i < n; ++i) p[1] += 1;", no_strip("others may write the global")),
    ("", "__shared__ int i; @for (i = 0; i < n; ++i) p[1] += 1;", no_strip("other threads write it")),
    ("", "@for (static int i = 0; i < n; ++i) p[1] += 1;", no_strip("other threads write it")),
    ("struct S { int b : 4; };", "S q; @for (q.b = 0; q.b < n; ++q.b) p[1] += 1;", no_strip("a bit-field wraps")),
];

/// A constant of this file whose name is something else where the loop stands.
const OTHER_CONSTANTS: &[Rule] = &[
    ("constexpr int N = 8;", "enum { N = 1000000000 }; @for (int i = 0; i < N; ++i) p[0] += 1;", no_strip("an enumerator")),
    (
        "constexpr int N = 8; struct P { int a, b; };",
        "auto [N, M] = P{1000000000, 2}; @for (int i = 0; i < N; ++i) p[0] += 1;",
        no_strip("a binding"),
    ),
    ("constexpr int N = 8;", "[p, N = 1000000000] { @for (int i = 0; i < N; ++i) p[0] += 1; }();", no_strip("a capture")),
    ("constexpr int N = 8;", "[N(1000000000)](int *p) { @for (int i = 0; i < N; ++i) p[0] += 1; }(p);", no_strip("a capture")),
    ("struct S { static constexpr int N = 8; };\n#include \"more.h\"", "@for (int i = 0; i < N; ++i) p[0] += 1;", no_strip("a class's")),
    (
        "namespace a { constexpr int N = 8; }\n#include \"more.h\"",
        "@for (int i = 0; i < N; ++i) p[0] += 1;",
        no_strip("another namespace's"),
    ),
    (
        "__device__ void f() { constexpr int N = 8; }\n#include \"more.h\"",
        "@for (int i = 0; i < N; ++i) p[0] += 1;",
        no_strip("another function's"),
    ),
    ("", "{ constexpr int N = 8; }\n@for (int i = 0; i < N; ++i) p[0] += 1;", no_strip("another block's")),
];

/// The text is not what the compiler sees.
const ODD_TEXT: &[Rule] = &[
    ("#define TO(n) i < n; ++i", "@for (int i = 0; TO(n)) p[i] = 0;", no_strip("a macro holds parts of the header")),
    ("#define BELOW <", "@for (int i = 0; i BELOW n; ++i) p[i] = 0;", no_strip("a macro is the relation")),
    ("#define STEP i -= 1", "@for (int i = 0; i < n; STEP) p[i] = 0;", no_strip("a macro is the step")),
    ("", "@for (int i = 0; i < LIMIT; ++i) p[i] = 0;", no_strip("a macro from elsewhere may do anything")),
    ("#define for(x) for (x)", "@for (int i = 0; i < n; ++i) p[i] = 0;", no_strip("the keyword is a macro")),
    ("#define if(x) --i; if (x)", "@for (int i = 0; i < n; ++i) { if (p[i]) p[i] = 0; }", no_strip("a word of the body is a macro")),
    ("", "@for (int i = 0; i -\\\n= n; ++i) p[i] = 0;", no_strip("a token goes over the end of a line")),
    (
        "struct A { __device__ A &operator+=(int &x) { x = 0; return *this; } };",
        "A a; @for (int i = 0; i < n; ++i) { a += i; }",
        no_strip("an operator of this file changes its operand"),
    ),
];

#[test]
fn a_counter_that_may_change_elsewhere_is_not_strip_mined() {
    check(COUNTER_CHANGES);
}

#[test]
fn a_bound_that_may_change_is_not_strip_mined() {
    check(BOUND_CHANGES);
}

#[test]
fn a_step_that_is_not_one_amount_is_not_strip_mined() {
    check(ODD_STEPS);
}

#[test]
fn a_condition_that_is_not_one_comparison_is_not_strip_mined() {
    check(ODD_CONDITIONS);
}

#[test]
fn a_counter_of_another_type_is_not_strip_mined() {
    check(ODD_TYPES);
}

#[test]
fn a_constant_that_may_be_another_is_not_believed() {
    check(OTHER_CONSTANTS);
}

#[test]
fn a_text_that_macros_change_is_not_strip_mined() {
    check(ODD_TEXT);
}
