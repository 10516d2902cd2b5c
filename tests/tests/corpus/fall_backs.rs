//! The rules that `forms.rs` has no row for: where a loop stands, what was asked for, and where its header leads.

use super::forms::{CHUNK, Rule, STRIP, Wanted, check, counts_down, foldable, no_strip};
use crate::rewritten_as;
use cuinstr::options::{Limits, Options, Polls, ValueMacro};
use cuinstr::site::{Form, Kind};

/// Rules of where the loop stands, beside what it is.
const PLACES: &[Rule] = &[
    (
        "__host__ __device__ void f(int *p, int n) { @for (int i = 0; i < n; ++i) p[i] = 0; }",
        "f(p, n);",
        counts_down("the host runs it too"),
    ),
    ("__host__ __device__ void f(int *p) { @while (p[0]) --p[0]; }", "f(p);", counts_down("the host runs it too")),
    (
        "constexpr int N = 80; __host__ __device__ void f(int *p) { @for (int i = 0; i < N; ++i) p[i * p[1]] = 0; }",
        "f(p);",
        foldable("the host runs it too, which has no poll"),
    ),
    ("__device__ int f(int *p) { @while (true) { if (p[0]) return 1; } }", "f(p);", counts_down("the function's end is out of reach")),
    ("__device__ int f(int *p) { @for (;;) { if (p[0]) return 1; } }", "f(p);", counts_down("the function's end is out of reach")),
    ("__device__ int f(int *p) { @for (;;) { if (p[0]) break; } return 1; }", "f(p);", CHUNK),
    ("__device__ void f(int *p) { @for (;;) { if (p[0]) return; } }", "f(p);", CHUNK),
    (
        "",
        "@while (p[0]) { for (int i = threadIdx.x; i < 256; i += blockDim.x) p[i] = 0; }",
        counts_down("the loop inside is long where a block has few threads"),
    ),
    (
        "__device__ void g(int *p, int n) { while (p[n]) --p[n]; }",
        "@for (int i = 0; i < n; ++i) g(p, i);",
        counts_down("what it calls may loop for long, and has an allowance of its own"),
    ),
    ("", "if (s) @for (auto &each : range(p, n)) each = 0;", counts_down("nothing can stand in front of it")),
    ("", "\n#pragma unroll_completely\n@for (int i = 0; i < n; ++i) p[i] = 0;", counts_down("another compiler's pragma")),
    ("", "\n#pragma GCC unroll 4\n@for (int i = 0; i < n; ++i) p[i] = 0;", counts_down("another compiler's pragma")),
    ("", "\n#pragma nounroll\n@for (int i = 0; i < n; ++i) p[i] = 0;", STRIP),
];

/// The step leads away, nowhere, or past the bound, as far as the text tells.
const STRAY_STEPS: &[Rule] = &[
    ("", "@for (int i = 0; i < n; --i) p[0] = i;", no_strip("it leads away")),
    ("", "@for (int i = n; i >= s; ++i) p[0] = i;", no_strip("it leads away")),
    ("", "@for (int i = 0; i < n; i += -1) p[0] = i;", no_strip("it leads away")),
    ("", "@for (int i = 0; i < n; i -= -1) p[0] = i;", no_strip("nobody reckons with two signs")),
    ("", "@for (int i = 0; i < n; i += 0) p[0] = i;", no_strip("it leads nowhere")),
    ("", "@for (int i = 0; i != n; i += s) p[0] = i;", no_strip("it may skip the bound, by how much nobody knows")),
    ("", "@for (int i = 0; i != n; i += 100000000) p[0] = i;", no_strip("it may skip the bound by more than a strip")),
    ("", "@for (int i = 0; i < n; i += 100000000) p[0] = i;", STRIP),
];

/// Objects that can be called, which may change what they are given, and nothing else.
const CALLED_OBJECTS: &[Rule] = &[
    (
        "struct Max { template <class T> __device__ T operator()(T &&t, T &u) const { return t > u ? t : u; } };",
        "@for (int i = 0; i < n; ++i) p[i] = Max()(p[i], s);",
        STRIP,
    ),
    (
        "struct Next { __device__ int operator()(int &x) const { return x = 0; } };",
        "Next next; @for (int i = 0; i < n; ++i) p[i] = next(i);",
        no_strip("an object is called with the counter"),
    ),
    (
        "struct Next { __device__ int operator()(int &x) const { return x = 0; } };",
        "@for (int i = 0; i < n; ++i) p[i] = Next()(i) + 1;",
        no_strip("the same without a name"),
    ),
    (
        "struct Next { __device__ int operator()(int &x) const { return x = 0; } };",
        "Next next; @for (int i = 0; i < n; ++i) p[i] = (next)(i) + 1;",
        no_strip("the same behind parentheses"),
    ),
];

/// Loops up to an element of an array, which something may write.
const ELEMENTS: &[Rule] = &[
    (
        "__device__ int f(const int *__restrict__ row, int *q, int i) { int sum = 0; @for (int j = row[i]; j < row[i + 1]; ++j) q[j] = row[j]; return sum; }",
        "f(p, p, n);",
        STRIP,
    ),
    (
        "__device__ int f(const unsigned *const __restrict__ row, int *q, int i) { int sum = 0; @for (unsigned j = 0; j < row[i + blockIdx.x]; ++j) { q[j] = 0; __syncthreads(); } return sum; }",
        "f(p, p, n);",
        STRIP,
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = row[i]; j < row[i + 1]; ++j) { int at = q[j]; sum += q[at] * max(j, 2); } return sum; }",
        "f(p, p, n);",
        STRIP,
    ),
    (
        "__device__ int f(int *row, const float *q, int i) { int sum = 0; @for (int j = threadIdx.x; j < row[i]; j += blockDim.x) sum += __float2int_rn(q[j]); return sum; }",
        "f(p, p, n);",
        STRIP,
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = row[i]; j < row[i + 1]; ++j) q[j] = 0; return sum; }",
        "f(p, p, n);",
        no_strip("it may write what it ends at"),
    ),
    (
        "__device__ int f(int *__restrict__ row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) row[j] = 0; return sum; }",
        "f(p, p, n);",
        no_strip("the same by its own name"),
    ),
    (
        "__device__ int f(const volatile int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) sum += q[j]; return sum; }",
        "f(p, p, n);",
        no_strip("others may write it"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) { __syncthreads(); sum += q[j]; } return sum; }",
        "f(p, p, n);",
        no_strip("others write it while this thread waits"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) atomicAdd(&q[j], 1); return sum; }",
        "f(p, p, n);",
        no_strip("an atomic writes it"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) sum += g(q[j]); return sum; }",
        "f(p, p, n);",
        no_strip("a function may write it"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) asm volatile(\"\"); return sum; }",
        "f(p, p, n);",
        no_strip("assembly may write it"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) { *q = j; } return sum; }",
        "f(p, p, n);",
        no_strip("it writes through a pointer"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) sum += q[j], i = 1; return sum; }",
        "f(p, p, n);",
        no_strip("the index changes"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) { sum += q[j]; ++row; } return sum; }",
        "f(p, p, n);",
        no_strip("the array is another"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; row = q + 1; @for (int j = 0; j < row[i]; ++j) sum += q[j]; return sum; }",
        "f(p, p, n);",
        no_strip("the array was another"),
    ),
    (
        "__device__ int f(const T *__restrict__ row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) sum += q[j]; return sum; }",
        "f(p, p, n);",
        no_strip("nobody knows what elements are"),
    ),
    (
        "__device__ int f(const int *__restrict__ *row, int *q, int i) { int sum = 0; @for (int j = 0; j < row[i][0]; ++j) sum += q[j]; return sum; }",
        "f(p, p, n);",
        no_strip("an array of arrays"),
    ),
    (
        "__device__ int f(const int *row, int *q, int i) { int sum = 0; int j = 0; @do { ++j; } while (j < row[i]); return sum; }",
        "f(p, p, n);",
        no_strip("a do comes by there late"),
    ),
    (
        "__device__ int f(const int *row, View q, int i) { int sum = 0; @for (int j = 0; j < row[i]; ++j) sum += q[j]; return sum; }",
        "f(p, p, n);",
        no_strip("an object's operator may write it"),
    ),
];

/// The trips seem to be known, and are not.
const NOT_KNOWN: &[Rule] = &[
    ("", "int i; if (s) i = n; @for (; i < 40; ++i) p[i * s] = 0;", STRIP),
    ("", "@for (int i = f(); i < 40; ++i) p[i * s] = 0;", STRIP),
    ("", "@for (int i = 0; i < 40 + n; ++i) p[i * s] = 0;", STRIP),
    ("", "@for (int i = s; i < n + 1; ++i) p[i] = 0;", STRIP),
    ("", "@for (int i = 0; i < 40; i += n) p[i] = 0;", STRIP),
    ("__device__ int items();", "@for (int i = 0; i < items(); ++i) p[i] = 0;", no_strip("a function of another file may run for long")),
    ("constexpr int items(int n) { return 2 * n; }", "@for (int i = 0; i < items(n); ++i) p[i] = 0;", CHUNK),
    ("", "\n#pragma unroll\n@for (int i = 0; i < items(n); ++i) p[i] = 0;", CHUNK),
    ("", "\n#pragma unroll 4\n@for (int i = 0; i < items(); ++i) p[i] = 0;", CHUNK),
];

/// A name of which the text tells enough, and one that only looks like it.
const NAMES: &[Rule] = &[
    ("__device__ const uint32_t *first(const uint32_t *q);", "@for (uint32_t i = 0; i < 8; ++i) p[i] = 0;", Wanted::LeftAlone),
    ("constexpr uint32_t kN = 4; static uint32_t other(int);", "@for (uint32_t i = 0; i < 8; ++i) p[i] = 0;", Wanted::LeftAlone),
    ("struct uint32_t { int a; };", "@for (uint32_t i = 0; i < 8; ++i) p[i] = 0;", foldable("the type may be anything")),
    ("int uint32_t;", "@for (::uint32_t i = 0; i < 8; ++i) p[i] = 0;", foldable("a variable has that name")),
    ("template <class T> __constant__ T mask[9];", "@for (int i = 0; i < n; ++i) x += mask<float>[i];", STRIP),
    ("template <class T> __constant__ T mask[9];", "@for (int i = 0; i < n; ++i) mask<float>[i++] = x;", no_strip("it is stepped")),
    ("", "@for (int i = 0; i < n; ++i) x = x > [&i] { return ++i; }();", no_strip("what begins with a bracket changes it")),
    ("", "@for (int i = 0; i < n; ++i) p[i] = x < INFINITY;", STRIP),
    ("#define INFINITY (++i, x)", "@for (int i = 0; i < n; ++i) p[i] = x < INFINITY;", no_strip("this file says what it is")),
    ("struct S { int a; }; __device__ void f(struct S *Y, int n) { @for (int i = 0; i < n; ++i) Y[i].a = 0; }", "f(0, n);", STRIP),
    ("", "@for (int i = 0; i < n; ++i) x += __low2float(__halves2half2(x, i));", STRIP),
    (
        "__device__ half __halves2half2(half, int &);",
        "@for (int i = 0; i < n; ++i) x += __low2float(__halves2half2(x, i));",
        no_strip("it is this file's"),
    ),
    ("", "@for (int i = 0; i < n; ++i) p[i] = s == FIRST_MODE;", no_strip("nobody says what it is")),
];

#[test]
fn loops_by_the_names_in_them() {
    check(NAMES);
}

#[test]
fn loops_by_where_they_stand() {
    check(PLACES);
}

#[test]
fn a_step_that_leads_elsewhere_is_not_strip_mined() {
    check(STRAY_STEPS);
}

#[test]
fn loops_up_to_an_element_that_nothing_writes_run_in_strips() {
    check(ELEMENTS);
}

#[test]
fn objects_that_are_called_change_what_they_are_given_and_nothing_else() {
    check(CALLED_OBJECTS);
}

#[test]
fn trips_that_only_seem_to_be_known_are_not_folded() {
    check(NOT_KNOWN);
}

/// The forms of a text's loops, in its order.
fn forms(text: &str, options: &Options) -> Vec<Form> {
    let rewrite = rewritten_as(text, options);
    rewrite.sites.sites.iter().filter(|site| site.kind == Kind::For).map(|site| site.form).collect()
}

/// Fuel is paid for by each iteration, and a count-down is what was asked for: then no form runs iterations that were paid for together. Where
/// the compiler may know the trips, the look is dropped under fuel all the same, and what burns stays.
#[test]
fn what_is_asked_for_decides_before_what_a_loop_is() {
    let text = "__global__ void k(int *p, int n) {\n    for (int i = 0; i < n; ++i) p[i] = 0;\n    for (int i = 0; i < 400; ++i) p[i * n] = 0;\n    \
                for (int i = 0; i < 1000; ++i) { p[i * n] = p[i] + p[n]; p[n] = p[i] - n; p[i] = p[n] * p[i + n]; }\n}\n";
    let fuel = |polls| Options { polls, limits: Limits { fuel: Some(1000), ..Limits::default() }, ..Options::default() };
    let plain = |polls| Options { polls, ..Options::default() };
    assert_eq!(forms(text, &plain(Polls::Amortised)), [Form::Strip, Form::Foldable, Form::Strip]);
    assert_eq!(forms(text, &plain(Polls::CountDown)), [Form::CountDown; 3]);
    assert_eq!(forms(text, &fuel(Polls::Amortised)), [Form::CountDown, Form::Foldable, Form::Foldable]);
    assert_eq!(forms(text, &fuel(Polls::CountDown)), [Form::CountDown; 3]);
    assert_eq!(forms(text, &fuel(Polls::Each)), [Form::Each; 3]);
}

/// Beyond so many loops in a function nobody compares each with each.
#[test]
fn a_function_with_too_many_loops_counts_down() {
    let text =
        |loops: usize| format!("__global__ void k(int *p, int n) {{\n{}}}\n", "for (int i = 0; i < n; ++i) p[i] = 0;\n".repeat(loops));
    let is = |form: Form| move |found: &Form| *found == form;
    assert!(forms(&text(100), &Options::default()).iter().all(is(Form::Strip)));
    assert!(forms(&text(1025), &Options::default()).iter().all(is(Form::CountDown)));
}

/// What the text of a foldable loop tells the compiler: all of its header, where that is the whole truth, or a count alone.
#[test]
fn a_header_is_told_where_it_says_how_often_the_loop_runs() {
    let rows = [
        ("for (int i = 0; i < 400; ++i) p[i * n] = 0;", "__cuinstr_tick_known<!0"),
        ("for (int i = 0; i <= 400; i += 2) p[i * n] = 0;", "__cuinstr_tick_known<!0"),
        ("for (int i = 0; i < 400; ++i) { p[i * n] = 0; if (p[n]) ++i; }", "__cuinstr_tick_known<!1"),
        ("int i; for (i = 0; i < 400; ++i) p[i * n] = 0;", "__cuinstr_tick_known<!1"),
        ("for (int i = 400; i > 0; --i) p[i * n] = 0;", "__cuinstr_tick_nest"),
        ("for (int i = 0; i != 400; ++i) p[i * n] = 0;", "__cuinstr_tick_nest"),
        ("int i = 0; while (i < 400) { p[i * n] = 0; ++i; }", "__cuinstr_tick_nest"),
    ];
    for (loop_, poll) in rows {
        let source = format!("__global__ void k(int *p, int n) {{\n    {loop_}\n}}\n");
        let output = rewritten_as(&source, &Options::default()).output.expect("it is rewritten");
        let output = String::from_utf8(output).expect("it is text");
        let text = output.rsplit("#line 1").next().unwrap_or_default();
        assert!(text.contains(poll), "{loop_} has no {poll}:\n{text}");
    }
}

/// What a macro of another file stands for is known where the unit's files were read; its variables have to keep their values.
#[test]
fn macros_of_other_files_are_values_where_those_files_say_so() {
    let value = |name: &str, reads: &[&str], likely: Option<i64>| ValueMacro {
        name: name.to_owned(),
        takes_arguments: false,
        harmless: reads.is_empty(),
        computed: false,
        whole: true,
        constant: reads.is_empty(),
        reads: reads.iter().map(|read| (*read).to_owned()).collect(),
        likely,
    };
    let known =
        [value("WIDTH", &[], Some(2048)), value("BOUND", &["n"], Some(2048)), value("TILE", &[], Some(16)), value("OTHER", &[], None)];
    let rows = [
        ("for (int i = 0; i < n; ++i) p[i * WIDTH] = 0;", Form::Strip, Form::Chunk),
        ("for (int i = 0; i < n; ++i) p[i * OTHER] = 0;", Form::Strip, Form::Chunk),
        ("for (int i = 0; i < BOUND; ++i) p[i * s] = 0;", Form::Strip, Form::Foldable),
        // What it stands for changes.
        ("for (int i = 0; i < BOUND; ++i) { p[i * s] = 0; --n; }", Form::Chunk, Form::Foldable),
        // So many iterations no compiler unrolls as a whole.
        ("for (int i = 0; i < WIDTH; ++i) p[i * s] = 0;", Form::Strip, Form::Foldable),
        ("for (int i = 0; i < TILE; ++i) p[i * s] = 0;", Form::Foldable, Form::Foldable),
        ("for (int i = 0; i < OTHER; ++i) p[i * s] = 0;", Form::Foldable, Form::Foldable),
        // Of these nobody knows anything.
        ("for (int i = 0; i < n; ++i) p[i * ANOTHER] = 0;", Form::Chunk, Form::Chunk),
    ];
    for (loop_, with, without) in rows {
        let text = format!("__global__ void k(int *p, int n, int s) {{\n    {loop_}\n}}\n");
        let options = Options { value_macros: known.to_vec(), ..Options::default() };
        assert_eq!((forms(&text, &options), forms(&text, &Options::default())), (vec![with], vec![without]), "{loop_}");
    }
}

/// A strip is a constant number of iterations where numbers say how many there are, or names do that the compiler takes for constants.
#[test]
fn a_loop_of_known_trips_is_cut_evenly() {
    let rows = [
        ("for (int i = 0; i < 100000; ++i) p[i * n] = 0;", Some("!0, !0>")),
        ("for (int i = 4; i <= 100000; i += 2) p[i * n] = 0;", Some("__cuinstr_even_at_most<")),
        ("for (int i = 0; i < count; ++i) p[i * n] = 0;", Some("__cuinstr_constant(count), __cuinstr_constant(")),
        // Known at run time, in part or as a whole.
        ("for (int i = 0; i < n; ++i) p[i * n] = 0;", None),
        ("for (int i = 0; i < blockDim.x; ++i) p[i * n] = 0;", None),
        ("for (int i = n; i < 100000; ++i) p[i * n] = 0;", None),
        ("for (int i = 0; i < 100000; i += n) p[i * n] = 0;", None),
        ("for (int i = 100000; i > 0; --i) p[i * n] = 0;", None),
        ("for (int i = 0; i != 100000; ++i) p[i * n] = 0;", None),
        // A proof does not follow it there.
        ("for (int j = 0; j < n; ++j) for (int i = 0; i < 100000; ++i) p[i * j] = 0;", None),
    ];
    for (loop_, wanted) in rows {
        let text = format!("constexpr int count = 100000;\n__global__ void k(int *p, int n) {{\n    {loop_}\n}}\n");
        let output = rewritten_as(&text, &Options::default()).output.expect("it is rewritten");
        let output = String::from_utf8(output).expect("it is text");
        let text = output.rsplit("#line 1").next().unwrap_or_default();
        match wanted {
            Some(wanted) => assert!(text.contains("__cuinstr_even_") && text.contains(wanted), "{text}"),
            None => assert!(!text.contains("__cuinstr_even_"), "{text}"),
        }
    }
}

/// A loop that runs as often as a counter around it says is unrolled with that one or not at all: sixteen times sixteen copies are none that a compiler makes
/// unasked.
#[test]
fn a_triangle_is_unrolled_if_it_is_a_small_one() {
    let asked = |trips: u32| {
        let source = format!(
            "__global__ void k(double *t) {{\n    double a[{trips}];\n    for (int c = 0; c < {trips}; ++c)\n        for (int r = {trips} - 1; r > c; --r) a[r] = a[r] + (a[r] - a[r - 1]) / ((1 << (2 * c + 1)) - 1) * t[r];\n}}\n"
        );
        let output = rewritten_as(&source, &Options::default()).output.unwrap_or_default();
        output.windows(24).filter(|text| text.starts_with(b"__cuinstr_pragma(unroll)")).count()
    };
    assert_eq!((asked(4), asked(17)), (2, 0));
}

/// A loop around one that takes from the allowance stays rolled, as compilers leave it: unrolled, it would be as many copies of the other's polls.
#[test]
fn a_short_loop_around_one_that_pays_is_not_unrolled_for_the_compiler() {
    let unrolls = |loop_: &str| {
        let text = format!("constexpr int few = 16;\n__global__ void k(int *p, int n) {{\n    {loop_}\n}}\n");
        let output = rewritten_as(&text, &Options::default()).output.expect("it is rewritten");
        String::from_utf8(output)
            .expect("it is text")
            .rsplit("#line 1")
            .next()
            .is_some_and(|text| text.contains("__cuinstr_pragma(unroll)"))
    };
    assert!(unrolls("for (int i = 0; i < few; ++i) p[i * n] = 0;"));
    assert!(!unrolls("for (int i = 0; i < few; ++i) for (int j = 0; j < n; ++j) p[i * j] = 0;"));
}
