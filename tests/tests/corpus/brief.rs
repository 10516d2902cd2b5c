//! Which nests stand there twice, one row a rule.

use crate::rewritten;
use std::fmt::Write as _;

/// The kernel's body, whether a nest of it stands there twice, and why.
type Rule = (&'static str, bool, &'static str);

#[test]
fn nests_that_may_be_brief_stand_there_twice() {
    let mut wrong = String::new();
    for (text, wanted, why) in RULES {
        let source = format!("__global__ void k(int *p, int n, unsigned m, short h, float x)\n{{\n{text}\n}}\n");
        let rewrite = rewritten(&source);
        let output = String::from_utf8(rewrite.output.expect("accepted")).expect("text stays text");
        let twice = output.matches("__cuinstr_deduct(__cuinstr_left, __cuinstr_rounds").count();
        if twice != usize::from(*wanted) {
            let _ = writeln!(wrong, "{text}\n  {twice} times: {why}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const RULES: &[Rule] = &[
    ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) p[i * j] = 0;", true, "both go up between values that stay"),
    (
        "for (int i = -n; i <= n; ++i) { for (unsigned j = 1; j < m; j += 2) p[j] = 0; for (int j = 0; j < n; ++j) p[j] = 1; }",
        true,
        "two inside",
    ),
    ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) for (int l = 0; l < 3; ++l) p[i * j] = l;", true, "a constant's own inside"),
    (
        "for (int k = 0; k < n; ++k) for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) p[k + i * j] = 0;",
        false,
        "each time round the outermost it would be asked",
    ),
    (
        "for (int i = 0; i < n; ++i) for (int j = 0; j < h; ++j) { if (p[j]) break; if (p[i]) continue; p[i] = 1; }",
        true,
        "what ends it early",
    ),
    ("auto f = [&] { for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) p[i * j] = 0; }; while (p[0]) f();", false, "no kernel's own"),
    ("for (int i = 0; i < n; ++i) p[i] = 0;", false, "one loop alone"),
    ("for (int i = 0; i < n; ++i) for (int j = 0; j < i; ++j) p[i * j] = 0;", false, "its bound changes with the outer one"),
    ("for (int i = 0; i < n; ++i) for (int j = i; j < n; ++j) p[i * j] = 0;", false, "its start does"),
    ("for (int i = 0; i < n; ++i) { const int r = n - i; for (int j = 0; j < r; ++j) p[j] = 0; }", false, "its bound is declared inside"),
    ("for (int i = 0; i < n; ++i) for (int j = 0; j < n / m; ++j) p[j] = 0;", false, "a division that may be by zero"),
    ("for (int i = 0; i < n; ++i) for (int j = 0; j < p[0]; ++j) p[j] = 0;", false, "its bound is in memory"),
    ("for (int i = 0; i < n; ++i) for (int j = n; j > 0; --j) p[j] = 0;", false, "it goes down"),
    ("for (int i = 0; i < n; ++i) for (int j = 0; j != n; ++j) p[j] = 0;", false, "it may pass its bound by"),
    ("for (int i = 0; i < n; ++i) for (int j = 0; j < n; j += n) p[j] = 0;", false, "its step is no number"),
    ("for (int i = 0; i < n; ++i) for (short j = 0; j < n; ++j) p[j] = 0;", false, "a narrow counter may wrap"),
    ("for (int i = 0; i < n; ++i) { int j; for (j = 0; j < n; ++j) p[j] = 0; }", false, "its counter has another's type"),
    ("for (int i = 0; i < n; ++i) { int j = 0; while (j < n) { p[j] = 0; ++j; } }", false, "no `for`"),
    ("for (int i = 0; i < n; ++i) { while (p[i]) --p[i]; for (int j = 0; j < n; ++j) p[j] = 0; }", false, "another loop beside it"),
    ("for (int i = 0; i < n; ++i) {\n#pragma unroll 2\nfor (int j = 0; j < n; ++j) p[j] = 0; }", false, "a pragma"),
    ("for (int i = 0; i < n; ++i) { __syncthreads(); for (int j = 0; j < n; ++j) p[j] = 0; }", false, "a barrier"),
    (
        "for (int i = 0; i < n; ++i) { static __shared__ int s[4]; for (int j = 0; j < n; ++j) s[j] = 0; }",
        false,
        "a variable that would be two",
    ),
    ("for (int i = 0; i < n; ++i) { p[i] = 'a'; for (int j = 0; j < n; ++j) p[j] = 0; }", false, "quotes"),
    ("for (int i = 0; i < n; ++i) { assert(n < 9); for (int j = 0; j < n; ++j) p[j] = 0; }", false, "it would name another line"),
    ("for (int i = 0; i < n; ++i) { auto f = [] { return 1; }; for (int j = 0; j < n; ++j) p[j] = f(); }", false, "a lambda"),
    ("for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j) p[j] = 0; if (p[i]) goto out; } out: ;", false, "a jump"),
];

#[test]
fn brief_nests_from_values_of_run_time_count_nothing() {
    let mut wrong = String::new();
    for (text, wanted, why) in UNCOUNTED {
        let source = format!("__global__ void k(int *p, int n, unsigned m, short h, int3 s)\n{{\n{text}\n}}\n");
        let rewrite = rewritten(&source);
        let output = String::from_utf8(rewrite.output.expect("accepted")).expect("text stays text");
        let body = &output[output.find("__global__ void k(").expect("the kernel")..];
        let (pinned, counted) = (body.contains("__cuinstr_pin("), body.contains("--__cuinstr_few_"));
        if (pinned, counted) != (*wanted, !*wanted) {
            let _ = writeln!(wrong, "{text}\n  pinned {pinned}, counted {counted}: {why}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The kernel's body, which has a brief nest; whether its variables stand there twice, or its rounds are counted; and why.
const UNCOUNTED: &[Rule] = &[
    ("for (int i = -n; i <= n; ++i) for (int j = -n; j < n + 1; j++) p[i * j] = 0;", true, "each goes from a parameter on"),
    ("const int a = h - n; for (int i = a; i <= h; ++i) for (unsigned j = m; j < n; ++j) p[i * j] = 0;", true, "several names and types"),
    (
        "for (int i = -n; i <= n; ++i) for (int j = 0; j <= n; ++j) p[i * j] = 0;",
        false,
        "compilers count what they unroll of the inner one",
    ),
    ("for (int i = 1; i <= n; ++i) for (int j = -n; j <= n; ++j) p[i * j] = 0;", false, "the outer one's start is a constant"),
    (
        "for (int i = -n; i <= n; ++i) { int t = 0; for (int j = -n; j <= n; ++j) t += p[j]; p[i] = t; }",
        false,
        "another number begins anew",
    ),
    ("for (int i = -n; i <= n; ++i) for (int j = -n; j <= n; j += 2) p[i * j] = 0;", false, "a step that is not one"),
    ("for (int i = -n; i <= n; ++i) for (int j = -n; j <= 2 * n; ++j) p[i * j] = 0;", false, "a product may go far"),
    ("for (int i = -n; i <= n; ++i) for (int j = -n; j <= s.x; ++j) p[i * j] = 0;", false, "no name of a variable"),
    (
        "constexpr int a = sizeof(int); for (int i = -n; i <= n; ++i) for (int j = -n; j <= n + a; ++j) { int t[a]; p[i * j] = t[a]; }",
        false,
        "a constant that the nest may need as one",
    ),
];
