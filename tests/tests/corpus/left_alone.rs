//! Loops that provably end soon have no poll. A mutated one must not be taken for such a loop, however it hides what it does.

use crate::rewritten;
use cuinstr::site::{Form, Kind, Site};

/// A kernel's only loop, with what stands in front of the kernel.
fn only_loop(front: &str, text: &str) -> Site {
    let source = format!("{front}\n__global__ void k(int *p, int n) {{\n    {text}\n}}\n");
    let rewrite = rewritten(&source);
    let mut loops = rewrite.sites.sites.into_iter().filter(|site| matches!(site.kind, Kind::For | Kind::While | Kind::Do));
    let found = loops.next().unwrap_or_else(|| panic!("no loop in {source}"));
    assert!(loops.next().is_none(), "more than one loop in {source}");
    found
}

#[test]
fn loops_that_provably_end_soon_are_left_alone() {
    for (front, text, trips) in [
        ("", "for (int i = 0; i < 8; ++i) p[i] = 0;", 8),
        ("", "for (int i = 0; i < 8; i++) { p[i] = 0; }", 8),
        ("", "for (int i = 0; i <= 8; ++i) p[i] = 0;", 9),
        ("", "for (int i = 7; i >= 0; --i) p[i] = 0;", 8),
        ("", "for (int i = 8; i > 0; i--) p[i] = 0;", 8),
        ("", "for (int i = 0; i != 8; ++i) p[i] = 0;", 8),
        ("", "for (int i = 0; i < 9; i += 4) p[i] = 0;", 3),
        ("", "for (int i = 8; i > 0; i -= 3) p[i] = 0;", 3),
        ("", "for (int i = -4; i < 4; ++i) p[i] = 0;", 8),
        ("", "for (int i = 8; i < 4; ++i) p[i] = 0;", 0),
        ("", "for (unsigned i = 0; i < 8u; ++i) p[i] = 0;", 8),
        ("", "for (unsigned int i = 8; i > 0; --i) p[i] = 0;", 8),
        ("", "for (size_t i = 0; i < 8; ++i) p[i] = 0;", 8),
        ("", "for (std::uint32_t i = 0; i < 8; ++i) p[i] = 0;", 8),
        ("", "for (long long i = 0; i < 8; ++i) p[i] = 0;", 8),
        ("#define WIDTH 16", "for (int i = 0; i < WIDTH; ++i) p[i] = 0;", 16),
        ("#define WIDTH (16)\n#define STEP 2u", "for (int i = 0; i < WIDTH; i += STEP) p[i] = 0;", 8),
        ("", "for (int i = 0; i < 8; ++i) p[i] = min(i, n) + (float)i + __ldg(p + i);", 8),
        ("", "for (int i = 0; i < 8; ++i) { if (p[i]) continue; if (p[i] == i) break; p[i] = i * 2; }", 8),
    ] {
        let found = only_loop(front, text);
        assert_eq!((found.form, found.why.as_deref()), (Form::None, Some(&*format!("runs at most {trips} times"))), "{text}");
    }
}

/// Loops with a mistake: what stands in front of the kernel, and the text inside it.
const MUTATED: &[(&str, &str)] = &[
    // The step.
    ("", "for (int i = 0; i < 8; i += 0) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; --i) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; i -= 1) p[i] = 0;"),
    ("", "for (int i = 8; i > 0; ++i) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; i += -1) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; ++n) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; i) p[i] = 0;"),
    ("", "for (int i = 0; i < 8;) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; i = i) p[i] = 0;"),
    ("", "for (int i = 8; i >= 0; i >>= 1) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; i *= 2) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; i += n) p[i] = 0;"),
    ("", "for (int i = 0; i < 8; ++i, --i) p[i] = 0;"),
    // The condition.
    ("", "for (int i = 0; i != 8; i += 3) p[i] = 0;"),
    ("", "for (int i = 8; i != 0; ++i) p[i] = 0;"),
    ("", "for (int i = 0; i < n; ++i) p[i] = 0;"),
    ("", "for (int i = 0; n < 8; ++i) p[i] = 0;"),
    ("", "for (int i = 0; i < 8 || n; ++i) p[i] = 0;"),
    ("", "for (int i = 0; i <= 8 + n; ++i) p[i] = 0;"),
    ("", "for (int i = 0; true; ++i) p[i] = 0;"),
    ("", "for (int i = 0; i == i; ++i) p[i] = 0;"),
    ("", "for (int i = 0; i < 100000000; ++i) p[0] = i;"),
    ("", "for (int i = 0; i - 8; ++i) p[i] = 0;"),
    // The counter's type.
    ("", "for (unsigned i = 8; i >= 0; --i) p[i] = 0;"),
    ("", "for (unsigned i = 9; i > 0; i -= 2) p[i] = 0;"),
    ("", "for (unsigned char i = 0; i < 300; ++i) ++n;"),
    ("", "for (char i = 0; i < 200; ++i) ++n;"),
    ("", "for (uint8_t i = 0; i < 256; ++i) ++n;"),
    ("", "for (short i = 0; i < 8; ++i) p[i] = 0;"),
    ("", "for (float i = 0; i < 8; ++i) p[0] = 0;"),
    ("", "for (auto i = 0; i < 8; ++i) p[i] = 0;"),
    ("", "for (Counter i = 0; i < 8; ++i) p[i] = 0;"),
    ("", "for (volatile int i = 0; i < 8; ++i) p[i] = 0;"),
    ("", "for (int &i = p[0]; i < 8; ++i) p[1] = 0;"),
    ("", "for (unsigned i = -1; i > 0; --i) p[i] = 0;"),
    ("", "int i; for (i = 0; i < 8; ++i) p[i] = 0;"),
    // The body.
    ("", "for (int i = 0; i < 8; ++i) { p[i] = 0; i = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) p[i--] = 0;"),
    ("", "for (int i = 0; i < 8; ++i) { --i; }"),
    ("", "for (int i = 0; i < 8; ++i) { i -= 1; }"),
    ("", "for (int i = 0; i < 8; ++i) { i <<= n; }"),
    ("", "for (int i = 0; i < 8; ++i) { int &r = i; r = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { auto &&r = i; r = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { int *q = &i; *q = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { g(i); }"),
    ("", "for (int i = 0; i < 8; ++i) { g(n, i, p); }"),
    ("", "for (int i = 0; i < 8; ++i) { g(&i); }"),
    ("", "for (int i = 0; i < 8; ++i) { S s{i}; }"),
    ("", "for (int i = 0; i < 8; ++i) { asm volatile(\"mov.s32 %0, 0;\" : \"+r\"(i)); }"),
    ("", "for (int i = 0; i < 8; ++i) { [&] { i = 0; }(); }"),
    ("", "for (int i = 0; i < 8; ++i) { (i) = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { std::swap(i, n); }"),
    ("", "for (int i = 0; i < 8; ++i) { again: if (p[i]) goto again; }"),
    ("#define RESET i = 0", "for (int i = 0; i < 8; ++i) { RESET; }"),
    ("#define UNDO(x) --x", "for (int i = 0; i < 8; ++i) { UNDO(i); }"),
    ("", "for (int i = 0; i < 8; ++i) { MAY_DO_ANYTHING(p); }"),
    ("", "for (int i = 0; i < 8; ++i) { (0, i) = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { int &r(i); r = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { int &r{i}; r = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { int &r = (i); r = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { auto *q = &(i); *q = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { auto *q = std::addressof(i); *q = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { i ^= 1; }"),
    ("", "for (int i = 0; i < 8; ++i) { i %= 2; }"),
    ("", "for (int i = 0; i < 8; ++i) { i |= 0, i &= 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { (--(i)); }"),
    ("", "for (int i = 0; i < 8; ++i) { --(i); }"),
    ("", "for (int i = 0; i < 8; ++i) { (i)--; }"),
    ("", "for (int i = 0; i < 8; ++i) { (i) -= 1; }"),
    ("", "for (int i = 0; i < 8; ++i) { f = [&i] { i = 0; }; }"),
    ("", "for (int i = 0; i < 8; ++i) { auto f = [&j = i] { j = 0; }; f(); }"),
    ("", "for (int i = 0; i < 8; ++i) { g<&i>(); }"),
    ("", "for (int i = 0; i < 8; ++i) { g((i)); }"),
    ("", "for (int i = 0; i < 8; ++i) { for (int &j : {i}) j = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { atomicSub(&i, 1); }"),
    ("", "for (int i = 0; i < 8; ++i) { atomicExch_block(&i, 0); }"),
    ("", "for (int i = 0; i < 8; ++i) { __sincosf(1.0f, reinterpret_cast<float*>(&i), &x); }"),
    ("", "for (int i = 0; i < 8; ++i) { reset(i); }"),
    ("#define reset(x) x = 0", "for (int i = 0; i < 8; ++i) { reset(i); }"),
    ("", "for (int i = 0; i < 8; ++i) { i = i - 1; }"),
    ("", "for (int i = 0; i < 8; ++i) { *&i = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { const_cast<int&>(i) = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { (int&)i = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { static_cast<int&>(i) -= 1; }"),
    ("#define FINE ++i", "for (int i = 0; i < 8; FINE) { p[0] = 1; }"),
    ("", "for (int i = 2147483640; i <= 2147483647; ++i) p[0] = 0;"),
    ("", "for (int i = 0; i < 0x7fffffff; ++i) p[0] = 0;"),
    ("", "for (int i = 0; i < 8u - 9u; ++i) p[0] = 0;"),
    ("", "for (unsigned i = 0; i != 4294967295u; --i) p[0] = 0;"),
    ("", "for (int i = 0, j = 0; j < 8; ++i) p[0] = 0;"),
    ("", "for (int j = 0, i = 0; i < 8; ++i) p[0] = (j = 1);"),
    ("", "for (int i = 0, &r = i; i < 8; ++i) r = 0;"),
    ("", "for (int i = 0, *q = &i; i < 8; ++i) *q = 0;"),
    ("#define BODY(x) x", "for (int i = 0; i < 8; ++i) { BODY(--i); }"),
    ("#define REPEAT(x) for (int x = 0; x < 8; ++x)", "REPEAT(j) { --j; }"),
    ("#define N 8\n#define FILL(N) for (int i = 0; i < N; ++i) p[i] = 0", "FILL(n);"),
    // The constants.
    ("#define WIDTH n", "for (int i = 0; i < WIDTH; ++i) p[i] = 0;"),
    ("#define WIDTH 8\n#undef WIDTH\n#define WIDTH n", "for (int i = 0; i < WIDTH; ++i) p[i] = 0;"),
    ("#if A\n#define WIDTH 8\n#else\n#define WIDTH n\n#endif", "for (int i = 0; i < WIDTH; ++i) p[i] = 0;"),
    ("#define STEP 0", "for (int i = 0; i < 8; i += STEP) p[i] = 0;"),
];

/// Loops that are left alone although they may run for ever. One that no longer is goes to the list above.
const KNOWN_HOLES: &[(&str, &str)] = &[
    // `>>=` is taken for a comparison.
    ("", "for (int i = 0; i < 8; ++i) { i >>= 1; }"),
    // The counter is one side of a conditional lvalue.
    ("", "for (int i = 0; i < 8; ++i) { (p ? i : n) = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { int &r = p ? i : n; r = 0; }"),
    ("", "for (int i = 0; i < 8; ++i) { g(p ? i : n); }"),
    // Any function whose name begins with two underscores is taken for CUDA's own, and so is a macro of that name.
    ("", "for (int i = 0; i < 8; ++i) { __my_reset(i); }"),
    ("#define __reset(x) x = 0", "for (int i = 0; i < 8; ++i) { __reset(i); }"),
    ("#define printf(x) x = 0", "for (int i = 0; i < 8; ++i) { printf(i); }"),
    // A macro from elsewhere that takes no arguments, in place of a statement.
    ("", "for (int i = 0; i < 8; ++i) { p[0] = 1; RESET }"),
    ("", "for (int i = 0; i < 8; ++i) { p[0] = 1; RESET; }"),
    // A macro of this file in place of a keyword, one behind another macro, one that pastes.
    ("#define int unsigned char", "for (int i = 0; i < 300; ++i) ++n;"),
    ("#define RESET2 RESET\n#define RESET i = 0", "for (int i = 0; i < 8; ++i) { RESET2; }"),
    ("#define GLUE(a, b) a##b", "for (int ab = 0; ab < 8; ++ab) { GLUE(a, b) = 0; }"),
    // A comparison with an unsigned literal is unsigned.
    ("", "for (int i = 7; i >= 0u; --i) p[i] = 0;"),
    ("", "for (long i = 7; i >= 0ul; --i) p[i] = 0;"),
    ("#define ZERO 0u", "for (int i = 7; i >= ZERO; --i) p[i] = 0;"),
    // The loop of a macro whose arguments make up its body.
    ("#define REPEAT(body) for (int i = 0; i < 8; ++i) { body; }", "REPEAT(--i)"),
    ("#define FILL(i, ...) for (int i = 0; i < 8; ++i) { __VA_ARGS__; }", "FILL(j, --j);"),
    ("#define FILL(op) for (int i = 0; i < 8; ++i) { op i; }", "FILL(--);"),
    // The constant is defined below its use.
    ("__device__ int f(int *p, int WIDTH) { for (int i = 0; i < WIDTH; ++i) p[i] = 0; }\n#define WIDTH 8", ""),
];

fn is_left_alone(front: &str, text: &str) -> Option<String> {
    let source = format!("{front}\n__global__ void k(int *p, int n) {{\n    {text}\n}}\n");
    let sites = rewritten(&source).sites.sites;
    let found = sites.into_iter().find(|site| site.kind == Kind::For).unwrap_or_else(|| panic!("no loop in {source}"));
    (found.form != Form::CountDown).then(|| format!("{front}\n{text}\n  {:?}\n", found.why))
}

#[test]
fn a_mutated_loop_is_not_left_alone() {
    let wrong: String = MUTATED.iter().filter_map(|(front, text)| is_left_alone(front, text)).collect();
    assert!(wrong.is_empty(), "left alone:\n{wrong}");
}

#[test]
fn what_is_known_to_be_wrong_is_still_wrong() {
    let fixed: Vec<_> = KNOWN_HOLES.iter().filter(|(front, text)| is_left_alone(front, text).is_none()).collect();
    assert!(fixed.is_empty(), "these are polled now; move them to `MUTATED`: {fixed:#?}");
}

#[test]
fn a_loop_around_loops_that_end_soon_is_weighed_with_them() {
    let nest = |counts: &[u32]| {
        let head = |(depth, count): (usize, &u32)| format!("for (int i{depth} = 0; i{depth} < {count}; ++i{depth}) ");
        let heads: Vec<String> = counts.iter().enumerate().map(head).collect();
        let heads = heads.concat();
        let rewrite = rewritten(&format!("__global__ void k(int *p) {{\n    {heads} p[i0] += 1;\n}}\n"));
        rewrite.sites.sites.iter().filter(|site| site.kind == Kind::For).map(|site| site.form).collect::<Vec<_>>()
    };
    assert_eq!(nest(&[4, 4]), [Form::None; 2]);
    assert_eq!(nest(&[1000, 1000]).first(), Some(&Form::CountDown), "a million rounds are not soon");
    // 4^9 rounds: each loop is short, the nest is not.
    assert!(nest(&[4; 9]).contains(&Form::CountDown));
    let calls = rewritten(
        "__device__ void slow(int n) { while (n--) f(n); }\n__global__ void k() {\n    for (int i = 0; i < 64; ++i) slow(64);\n}\n",
    );
    let outer = calls.sites.sites.iter().find(|site| site.kind == Kind::For).expect("a loop");
    assert_eq!(outer.form, Form::CountDown, "its body calls a function with a loop");
}
