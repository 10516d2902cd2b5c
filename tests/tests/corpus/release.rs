//! Which barriers have a check behind them, one row a rule: loops whose released threads show nobody what they run on, and those that look
//! like them and break a rule. Whatever breaks one keeps the check at each barrier.

use crate::rewritten;
use std::fmt::Write as _;

/// What stands in front of the kernel; its body, in which each barrier is `B;`; how many of its barriers keep their check, how many checks stand behind
/// loops, and why.
type Rule = (&'static str, &'static str, usize, usize, &'static str);

#[test]
fn barriers_are_checked_where_it_matters() {
    let mut wrong = String::new();
    for (front, text, checked, behind, why) in RULES {
        let text = text.replace("B;", "__syncthreads();");
        let barriers = text.matches("__syncthreads();").count();
        let head = "__global__ void k(const int *in, int *out, int n, int rows, V view)";
        let source =
            format!("{front}\n{head} {{\n__shared__ int s[256], u[2][64];\n__shared__ int word;\nconst int t = threadIdx.x;\n{text}\n}}\n");
        let rewrite = rewritten(&source);
        let output = String::from_utf8(rewrite.output.expect("accepted")).expect("text stays text");
        let at_barrier = output.matches("{ __syncthreads(); __cuinstr_barrier_here(").count();
        let in_all = output.matches("__cuinstr_barrier_here(0x").count();
        if (at_barrier, in_all - at_barrier) != (*checked, *behind) || at_barrier > barriers {
            let _ = writeln!(wrong, "{front}\n{text}\n  {at_barrier} of {barriers} checked, {} behind: {why}", in_all - at_barrier);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const RULES: &[Rule] = &[
    // Nothing in the loop shows anything.
    ("", "for (int i = 0; i < n; ++i) { s[t] += i; B; }", 0, 1, "own memory at the thread's own place"),
    (
        "",
        "for (int i = 0; i < n; ++i) { s[t] = in[i * 256 + t]; B; for (int j = 0; j < 8; ++j) word += s[j]; B; } out[t] = word;",
        0,
        1,
        "a tile",
    ),
    ("", "for (int i = 0; i < n; ++i) { u[i & 1][t & 63] = t < n ? in[t] : 0; B; }", 0, 1, "what is asked is settled"),
    (
        "",
        "for (int i = 0; i < n; ++i) { if (t < 3) s[t] = max(s[t + 1], 7); B; if (i == n / 2) break; }",
        0,
        1,
        "a break leads to the check",
    ),
    ("", "for (int i = 0; i < n; ++i) { int d = s[t]; while (d > 1) { d /= 2; } s[t] = d; B; }", 0, 1, "a loop that polls as ever"),
    (
        "",
        "for (int i = 0; i < n; ++i) { int m[4]; if (s[t]) for (int j = 0; j < 4; ++j) m[j] = t; s[t] = m[1]; B; }",
        0,
        1,
        "the inner loop's own bounds",
    ),
    (
        "__device__ int f(int a, int b) { return a * b + max(a, 3); }",
        "for (int i = 0; i < n; ++i) { s[t] = f(s[0], t); B; }",
        0,
        1,
        "a function that computes",
    ),
    (
        "#define WIDE (4 * 4)\n#define LESS(a, b) ((a) < (b))\n#define MOST(a, b) ((a) < (b) ? (b) : (a))\n__host__ __device__ int f(int a, int b) { return(MOST(a, b)); }",
        "for (int i = 0; i < WIDE; ++i) { if (LESS(t, i) && i < WIDE) s[t + WIDE] = f(MOST(word, 3), WIDE); B; }",
        0,
        1,
        "macros that are made of constants and of what they are given",
    ),
    ("#define FROM(a) ((a) ? in[t] : 0)", "for (int i = 0; i < n; ++i) { s[t] = FROM(s[0]); B; }", 1, 0, "a macro that asks memory"),
    ("#define IF(a, b) ((a) ? (b) : 0)", "for (int i = 0; i < n; ++i) { s[t] = IF(s[0], in[t]); B; }", 1, 0, "a macro that hides who asks"),
    ("#define HERE (ELSEWHERE + 1)", "for (int i = 0; i < n; ++i) { s[HERE] = i; B; }", 1, 0, "a macro that names what nobody defines"),
    ("#define AS(a) __ldg(in + (a))", "for (int i = 0; i < n; ++i) { s[t] = AS(word); B; }", 1, 0, "a macro that calls what reads memory"),
    ("constexpr int N = 8;", "for (int i = 0; i < n; i += N) { s[t + N] = i; B; }", 0, 1, "a constant's place"),
    ("", "int low = 0; for (int i = 0; i < n; ++i) { s[low] = t; low ^= 1; B; }", 0, 1, "a name that is given settled values"),
    // Only some do: those in front of what does stay.
    ("", "for (int i = 0; i < n; ++i) { s[t] = i; B; word = s[0]; B; out[t] = word; B; }", 1, 1, "a store behind the second"),
    ("", "for (int i = 0; i < n; ++i) { B; out[i] = s[t]; B; s[t] = i; }", 1, 1, "a store behind the first"),
    // The way round, or out of sight.
    ("", "for (int i = 0; i < n; ++i) { out[i] = t; s[t] = i; B; }", 1, 0, "a store where the loop comes by again"),
    ("", "for (int i = 0; i < n && atomicAdd(out, 1); ++i) { s[t] = i; B; }", 1, 0, "an atomic in the header"),
    (
        "",
        "for (int i = 0; i < n; ++i) { s[t] = i; B; if (i == 9) break; word = s[t]; B; out[t] = i; }",
        2,
        0,
        "a break out of it, with no check behind",
    ),
    ("", "if (n > 2) for (int i = 0; i < n; ++i) { s[t] = i; B; }", 1, 0, "nothing can follow it"),
    ("", "int i = 0; while (i < n) { s[t] = i; B; ++i; }", 1, 0, "no `for`"),
    ("", "s[t] = t; B; out[t] = s[0];", 1, 0, "no loop"),
    // What shows something, or may.
    ("", "for (int i = 0; i < n; ++i) { s[t] = i; B; out[t] = s[0]; B; s[t] = 1; }", 1, 1, "a store to global memory"),
    ("", "for (int i = 0; i < n; ++i) { s[t] = i; B; out[t]++; }", 1, 0, "a step of global memory"),
    ("", "for (int i = 0; i < n; ++i) { s[t] = i; B; ++out[t]; }", 1, 0, "the same in front"),
    ("", "for (int i = 0; i < n; ++i) { s[t] = i; B; *out = i; }", 1, 0, "a store through a pointer"),
    ("", "for (int i = 0; i < n; ++i) { s[t] = i; B; word = *in; }", 1, 0, "what a pointer leads to"),
    ("", "int *q = s + t; for (int i = 0; i < n; ++i) { q[1] = i; B; }", 1, 0, "a pointer into shared memory may be any"),
    ("", "int &r = out[t]; for (int i = 0; i < n; ++i) { r = i; B; }", 1, 0, "a reference"),
    ("", "for (int i = 0; i < n; ++i) { atomicAdd(&s[t], i); B; }", 1, 0, "an atomic"),
    ("", "for (int i = 0; i < n; ++i) { s[t] = unknown(i); B; }", 1, 0, "a function from elsewhere"),
    ("__device__ int f(int *p) { return *p = 3; }", "for (int i = 0; i < n; ++i) { s[t] = f(out); B; }", 1, 0, "a function that stores"),
    (
        "__device__ int c; __device__ int f(int a) { return c = a; }",
        "for (int i = 0; i < n; ++i) { s[t] = f(i); B; }",
        1,
        0,
        "a function that stores in a variable",
    ),
    (
        "__device__ int f(int a) { return atomicAdd((int *)0, a); }",
        "for (int i = 0; i < n; ++i) { s[t] = f(i); B; }",
        1,
        0,
        "a function with an atomic",
    ),
    ("__device__ int c;", "for (int i = 0; i < n; ++i) { c = i; B; }", 1, 0, "a variable of the device"),
    ("", "for (int i = 0; i < n; ++i) { view->next = 0; B; }", 1, 0, "a member of something else"),
    ("", "for (int i = 0; i < n; ++i) { view.store(i); B; }", 1, 0, "a member function"),
    ("", "for (int i = 0; i < n; ++i) { asm volatile(\"st.global.u32 [%0], 1;\" : : \"l\"(out)); B; }", 1, 0, "assembly"),
    ("", "for (int i = 0; i < n; ++i) { printf(\"%d\", s[t]); B; }", 1, 0, "output"),
    ("", "for (int i = 0; i < n; ++i) { if (s[t] == 3) __trap(); B; }", 1, 0, "a trap"),
    ("#define STORE(x) out[t] = x", "for (int i = 0; i < n; ++i) { STORE(i); B; }", 1, 0, "a macro"),
    ("", "for (int i = 0; i < n; ++i) { STORE(i); B; }", 1, 0, "a macro that nobody knows"),
    ("", "for (int i = 0; i < n; ++i) {\n#if FAST\nout[t] = i;\n#endif\nB; }", 1, 0, "an arm"),
    ("", "for (int i = 0; i < n; ++i) { auto f = [&] { out[t] = i; }; f(); B; }", 1, 0, "a lambda"),
    // Addresses that depend on memory.
    ("", "for (int i = 0; i < n; ++i) { s[s[t]] = i; B; }", 1, 0, "a subscript from shared memory"),
    ("", "for (int i = 0; i < n; ++i) { const int at = s[t]; word = in[at]; B; }", 1, 0, "the same with a name"),
    ("", "for (int i = 0; i < n; ++i) { int at = t; if (s[t]) at = 9; word = in[at]; B; }", 1, 0, "memory decides which value it has"),
    ("", "int at = 0; for (int i = 0; i < n; ++i) { while (s[at] < 3) ++at; B; }", 1, 0, "memory decides how far it goes"),
    ("", "for (int i = 0; i < n; ++i) { word = in[word]; B; }", 1, 0, "a shared word"),
    ("", "for (int i = 0; i < n; ++i) { if (s[t]) word = in[t]; B; }", 1, 0, "memory decides whether it is read"),
    ("", "for (int i = 0; i < n; ++i) { word = s[t] ? in[t] : 0; B; }", 1, 0, "the same in an expression"),
    ("", "for (int i = 0; i < n; ++i) { word = s[t] && in[t]; B; }", 1, 0, "the same by an operator"),
    ("", "for (int i = 0; i < n; ++i) { if (s[t]) s[t - 1] = 0; B; }", 1, 0, "an own place that may be outside"),
    ("", "int at = 0; s[t] && (at = 300); for (int i = 0; i < n; ++i) { s[at] = i; B; }", 1, 0, "memory decides behind an operator"),
    (
        "__device__ void f(int &x) { x = 5000; }",
        "int at = 0; f(at); for (int i = 0; i < n; ++i) { s[at] = i; B; }",
        1,
        0,
        "a reference to it",
    ),
    ("", "int at = 0; int &r = at; r = s[t]; for (int i = 0; i < n; ++i) { s[at] = i; B; }", 1, 0, "another name for it"),
    ("", "int at = 0; int *q = &at; *q = s[t]; for (int i = 0; i < n; ++i) { s[at] = i; B; }", 1, 0, "its address is known"),
    ("", "int at = 0; std::swap(at, word); for (int i = 0; i < n; ++i) { s[at] = i; B; }", 1, 0, "an unknown function has it"),
    ("", "for (int i = 0; i < n; ++i) { word = view[t]; B; }", 1, 0, "an object's operator"),
    ("__device__ int c;", "for (int i = 0; i < n; ++i) { s[c] = i; B; }", 1, 0, "a variable of the device as a place"),
    ("", "for (int i = 0; i < n; ++i) { s[far_away] = i; B; }", 1, 0, "a name from elsewhere as a place"),
    // What memory holds may keep a thread from a barrier, or from going on.
    ("", "for (int i = 0; i < s[0]; ++i) { word = t; B; }", 1, 0, "memory decides how often"),
    ("", "for (int i = 0; i < n; ++i) { word = t; B; if (s[0]) break; }", 1, 0, "memory decides when it ends"),
    ("", "for (int i = 0; i < n; ++i) { word = t; B; if (s[0]) return; }", 1, 0, "or whether the thread does"),
    ("", "if (s[0]) { for (int i = 0; i < n; ++i) { word = t; B; } }", 1, 0, "or whether it begins"),
    ("", "for (int i = 0; i < n; ++i) { word = t; B; if (i == 3) goto out; } out: ;", 1, 0, "a jump"),
];
