//! The shapes of loops, jumps and kernels.

use crate::{check, rewritten, row, told};
use cuinstr::site::Kind;
use std::fmt::Write as _;

/// Over 80 lines: a table with a row for each shape.
#[test]
fn the_shapes_of_loops_are_told_apart() {
    check(&[
        row(
            "grid-stride",
            "__global__ void k(int *p, int n) {\n    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) p[i] = 0;\n}\n",
            &["2 for polled"],
        ),
        row("literal bound", "__global__ void k(int *p) {\n    for (int i = 0; i < 8; ++i) p[i] = 0;\n}\n", &["2 for none"]),
        row(
            "ALL_CAPS bound, defined here",
            "#define WIDTH 8\n__global__ void k(int *p) {\n    for (int i = 0; i < WIDTH; ++i) p[i] = 0;\n}\n",
            &["3 for none"],
        ),
        row(
            "ALL_CAPS bound, from elsewhere",
            "__global__ void k(int *p) {\n    for (int i = 0; i < WIDTH; ++i) p[i] = 0;\n}\n",
            &["2 for polled"],
        ),
        row("for (;;)", "__global__ void k(int *p) {\n    for (;;) if (p[0]) break;\n}\n", &["2 for polled"]),
        row(
            "while (true)",
            "__global__ void k(int *p) {\n    while (true) { if (p[0]) break; }\n    while (1) if (p[0]) return;\n}\n",
            &["2 while polled", "3 while polled"],
        ),
        row(
            "a barrier inside",
            "__global__ void k(int *p, int n) {\n    for (int s = n; s > 0; s >>= 1) {\n        p[s] += 1;\n        __syncthreads();\n    }\n}\n",
            &["2 for polled", "4 barrier flag"],
        ),
        told(
            "a barrier as a value",
            "__global__ void k(int *p, int n) {\n    while (__syncthreads_or(p[n])) --n;\n}\n",
            &["2 while polled"],
            &["CI021"],
        ),
        row(
            "break, continue and return inside",
            "__global__ void k(int *p, int n) {\n    for (int i = 0; i < n; ++i) {\n        if (p[i] == 1) continue;\n        if (p[i] == 2) break;\n        if (p[i] == 3) return;\n    }\n}\n",
            &["2 for polled"],
        ),
        row(
            "body not a block",
            "__global__ void k(int *p, int n) {\n    for (int i = 0; i < n; ++i) p[i] = 0;\n    while (p[n]) --n;\n    do ++n; while (p[n]);\n    for (int x : p) f(x);\n    while (p[n]);\n}\n",
            &["2 for polled", "3 while polled", "4 do polled", "5 range-for polled", "6 while polled"],
        ),
        row(
            "body an if with else",
            "__global__ void k(int *p, int n) {\n    while (p[n]) if (n & 1) f(n); else if (n & 2) g(n); else h(n);\n    p[0] = 1;\n}\n",
            &["2 while polled"],
        ),
        row(
            "nested, one line",
            "__global__ void k(int *p, int n) {\n    for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) while (p[j]) p[j] -= i;\n}\n",
            &["2 for polled", "2 for polled", "2 while polled"],
        ),
        row(
            "a declaration in the condition",
            "__global__ void k(int *p) {\n    while (int n = p[0]) { p[0] = n - 1; }\n}\n",
            &["2 while polled"],
        ),
        row(
            "range-for with an initialiser",
            "__global__ void k(int n) {\n    for (auto list = g(n); auto &x : list) x = 0;\n}\n",
            &["2 range-for polled"],
        ),
        row(
            "C++ spin loops",
            "__global__ void k(volatile int *p, unsigned *lock, cuda::atomic_ref<int> a) {\n    while (*p == 0) { }\n    while (atomicCAS(lock, 0u, 1u) != 0u);\n    while (a.load(cuda::memory_order_acquire) == 0) __nanosleep(20);\n    do { } while (atomicExch(lock, 1u));\n}\n",
            &["2 while polled", "3 while polled", "4 while polled", "5 do polled"],
        ),
        told(
            "asm spin loops",
            "__device__ void wait(unsigned bar, unsigned phase) {\n    asm volatile(\"{\\n .reg .pred P1;\\n LAB_WAIT:\\n mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\\n @P1 bra DONE;\\n bra LAB_WAIT;\\n DONE:\\n }\" :: \"r\"(bar), \"r\"(phase));\n}\n",
            &["2 asm-loop none"],
            &["CI013"],
        ),
        row(
            "grid.sync inside",
            "__global__ void k(int n) {\n    auto grid = cooperative_groups::this_grid();\n    while (n--) { f(n); g(); }\n}\n",
            &["3 while polled"],
        ),
        told(
            "grid.sync after the flag",
            "__global__ void k(int n) {\n    auto grid = cooperative_groups::this_grid();\n    while (n--) { f(n); grid.sync(); }\n}\n",
            &["3 while polled"],
            &["CI021"],
        ),
    ]);
    let mut nest = "__global__ void k(int n) {\n".to_owned();
    for depth in 0..9 {
        let _ = writeln!(nest, "for (int i{depth} = 0; i{depth} < n; ++i{depth})");
    }
    nest.push_str("f(n);\n}\n");
    let rewrite = rewritten(&nest);
    assert_eq!((rewrite.summary.loops, rewrite.summary.polled), (9, 9), "the deepest nest there is");
    assert!(rewrite.diagnostics.is_empty());
}

#[test]
fn what_only_looks_like_a_loop_is_none() {
    check(&[
        row(
            "do { } while (0)",
            "__global__ void k(int n) {\n    do { f(n); } while (0);\n    do f(n); while (false);\n    do { if (n) break; } while ((0));\n}\n",
            &[],
        ),
        row("CUTLASS's do {;} while (&x != &x)", "__global__ void k(int n) {\n    do {;} while (&n != &n);\n}\n", &[]),
        row("another variable", "__global__ void k(int n, int m) {\n    do {;} while (&n != &m);\n}\n", &["2 do polled"]),
        row("in a macro", "#define CHECK(x) do { if (!(x)) f(); } while (0)\n__global__ void k(int n) {\n    CHECK(n);\n}\n", &[]),
        row(
            "words in comments, strings and names",
            "__global__ void k(int n) {\n    // for (;;) while (1) do\n    /* while (true) */ f(\"for (;;)\", R\"x(while (1))x\", 'f');\n    int for_each = n, dot = 0, meanwhile = 1;\n    S{.do_it = 1}; x->while_; p.for_();\n}\n",
            &[],
        ),
        row("host code", "void host(int n) { while (n--) f(n); for (;;) g(); }\n__global__ void k(int n) { f(n); }\n", &[]),
        row("under #if 0", "__global__ void k(int n) {\n#if 0\n    while (n--) f(n);\n#endif\n    f(n);\n}\n", &[]),
        row("a declaration and a call", "__global__ void k(int n);\n__device__ int f(int);\n__global__ void l(int n) { f(n); }\n", &[]),
    ]);
}

/// Over 80 lines: a table with a row for each jump and call.
#[test]
fn jumps_and_calls_that_repeat_are_sites() {
    check(&[
        row("backward goto", "__global__ void k(int *p) {\nagain:\n    if (p[0]) goto again;\n    p[0] = 1;\n}\n", &["3 goto polled"]),
        row("forward goto", "__global__ void k(int *p) {\n    if (p[0]) goto done;\n    p[0] = 1;\ndone:\n    return;\n}\n", &[]),
        row(
            "forward goto, of a macro",
            "#define FAIL(x) if (x) goto done\n__global__ void k(int *p) {\n    FAIL(p[0]);\n    p[0] = 1;\ndone:\n    return;\n}\n",
            &[],
        ),
        told(
            "backward goto, of a macro",
            "#define RETRY goto again\n#define UNLESS(x) if (!(x)) RETRY\n__global__ void k(int *p) {\nagain:\n    UNLESS(p[0]);\n    RETRY;\n}\n",
            &["5 goto none", "6 goto none"],
            &["CI012", "CI012"],
        ),
        row(
            "goto a label that a macro makes",
            "#define AGAIN again:\n__global__ void k(int *p) {\n    AGAIN\n    p[0]++;\n    goto again;\n}\n",
            &["5 goto polled"],
        ),
        told(
            "goto a computed place",
            "__global__ void k(int *p) {\n    void *q = &&again;\nagain:\n    p[0]++;\n    goto *q;\n}\n",
            &["5 goto none"],
            &["CI012"],
        ),
        row(
            "recursion through a macro",
            "#define DOWN(n) down(n)\n__device__ int down(int n) { return n ? DOWN(n + 1) : 0; }\n",
            &["2 recursion each"],
        ),
        row(
            "recursion by a name that is chosen",
            "__device__ int a(int n);\n__device__ int b(int n) {\n    auto f = n ? a : b;\n    return f(n);\n}\n",
            &["2 recursion each"],
        ),
        row(
            "recursion",
            "__device__ int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }\n__global__ void k(int *p) { p[0] = fact(p[1]); }\n",
            &["1 recursion each"],
        ),
        row(
            "mutual recursion",
            "__device__ int odd(int n);\n__device__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }\n__device__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n",
            &["2 recursion each", "3 recursion each"],
        ),
        row(
            "recursion of a functor",
            "struct F {\n    __device__ int operator()(int n) { return n ? (*this)(n + 1) : 0; }\n};\nstruct G {\n    __device__ int operator()(int n) { return n ? this->operator()(n + 1) : 0; }\n};\n",
            &["2 recursion each", "5 recursion each"],
        ),
        row(
            "recursion of a lambda that is its own argument",
            "__global__ void k(int *p) {\n    auto f = [](auto&& self, int n) -> int { return n ? self(self, n + 1) : 0; };\n    auto g = [] __device__ (auto&& self, int n) -> int { return n ? self(self, n + 1) : 0; };\n    p[0] = f(f, 3) + g(g, 4);\n}\n",
            &["2 recursion each", "3 recursion each"],
        ),
        row(
            "templates that hand on types",
            "template <class T> __device__ auto a(T const& t) { return all(t, [](auto const& x) { return a(x); }); }\ntemplate <int N, class T, class U> __device__ auto b(const T& t, U&& u) { return all(t, [&](auto x) { return n::b<N>(x, u) + b<N - 1>(get<0>(t), u); }); }\n",
            &["1 recursion each", "2 recursion each"],
        ),
        row(
            "templates whose parameters tell no type, or another",
            "template <class T> __device__ auto a(V<T> const& t) { return all(t, [](auto const& x) { return a(x); }); }\ntemplate <class T> __device__ auto b(T const& t) { return all(t, [](auto const& x) { return b<V<int>>(x); }); }\ntemplate <class T> __device__ auto c(T const& t) { return all(t, [](auto const& x) { using T = int; return c(x); }); }\ntemplate <class T> __device__ auto d(T const& t, int n) { return all(t, [](auto const& x) { return d(x, 1); }); }\ntemplate <class T> __device__ auto e(T const&... t) { return all([](auto const&... x) { return e(x...); }, t...); }\n",
            &["1 recursion each", "2 recursion each", "3 recursion each", "4 recursion each", "5 recursion each"],
        ),
        row(
            "members of classes that are named with their arguments",
            "template <int I, class T> struct tile {\n    static __device__ int row(int n) { if constexpr (I > 8) return tile<8, T>::row(n); return n; }\n    static __device__ int last(int n) { return 2 * tile<I / 2, T>::last(n - 1); }\n};\n",
            &["2 recursion each", "3 recursion each"],
        ),
        row(
            "members of classes that have bases, or where a constant is asked for",
            "template <int I> struct tile : B<I> {\n    static __device__ int row(int n) { return tile<8>::row(n); }\n};\ntemplate <int I> struct box {\n    static __device__ int row(int n) { const int a[box<8>::row(1)] = {}; return a[n]; }\n    static constexpr __device__ int last(int n) { return box<8>::last(n); }\n    static __device__ int first(int n) { return first(n) + box<8>::first(n); }\n};\n",
            &["2 recursion each", "5 recursion each", "6 recursion each", "7 recursion each"],
        ),
        row(
            "members of instances that count up, or down",
            "template <template <int> class F, int end, int current = 0> struct up {\n    template <class... A> static __device__ void run(A&&... a) { F<current>::go(a...); up<F, end, current + 1>::run(a...); }\n};\ntemplate <template <int> class F, int end> struct up<F, end, end> {\n    template <class... A> static __device__ void run(A...) {}\n};\ntemplate <size_t N> struct down final {\n    static __device__ int run(int n) { return down<N - 1>::run(n) + n; }\n};\ntemplate <size_t N> struct tree {\n    static __device__ int run(int n) { return tree<N - 1>::run(n) + tree<N - 1>::run(n + 1); }\n};\n",
            &["2 recursion none", "8 recursion none", "11 recursion each"],
        ),
        row(
            "members of instances that may come by again",
            "template <int N> struct both {\n    static __device__ int run(int n) { return both<N - 1>::run(n) + both<N + 1>::run(n); }\n};\ntemplate <unsigned char N> struct narrow {\n    static __device__ int run(int n) { return narrow<N + 1>::run(n); }\n};\ntemplate <int N, int M> struct special {};\ntemplate <int N> struct special<8, N> {\n    static __device__ int run(int n) { return special<8, N + 1>::run(n); }\n};\ntemplate <int N> struct based : both<N> {\n    static __device__ int run(int n) { return based<N + 1>::run(n); }\n};\ntemplate <int N> struct other {\n    static __device__ int run(int n) { return other<7 + 1>::run(n); }\n};\ntemplate <int M, int N> struct swapped {\n    static __device__ int run(int n) { return swapped<N + 1, M>::run(n); }\n};\n",
            &["2 recursion each", "5 recursion each", "9 recursion each", "12 recursion each", "15 recursion each", "18 recursion each"],
        ),
        row(
            "members of instances whose class says more in front of its name",
            "template <int N> struct __align__(8) odd {\n    static __device__ int run(int n) { return odd<8 - N>::run(n); }\n};\ntemplate <> struct odd<0> {};\nstruct even {\n    static __device__ int run(int n) { return n; }\n};\n",
            &["2 recursion each"],
        ),
        row(
            "a member of a function's name, and one that a macro calls",
            "#define call(of) of(1)\n__device__ float scale(P p, P *q) { return powf(p.scale, q->scale) + (p.scale == 0.f); }\n__device__ int twice(P p) { return call(p.twice); }\n__device__ int again(P p) { return CALL(p.again); }\n__device__ int once(P p) { return p.once(1); }\n",
            &["3 recursion each", "4 recursion each", "5 recursion each"],
        ),
        row(
            "explicit arguments of a template leave the others to be counted",
            "template <class T> __device__ int load(T *p, int at, int of) { return p[at + of]; }\ntemplate <class T> __device__ int load(T *p) { return load<T>(p, 1, 2); }\ntemplate <class T> __device__ int again(T *p) { return again<int>(p); }\n",
            &["3 recursion each"],
        ),
        row(
            "a chain of calls is none",
            "__device__ int a(int n) { return n; }\n__device__ int b(int n) { return a(n); }\n__device__ int c(int n) { return b(a(n)); }\n",
            &[],
        ),
    ]);
    // A kernel that launches itself starts another grid: each has an entry and an exit of its own.
    let own = rewritten("__global__ void k(int n) {\n    if (n) k<<<1, 1>>>(n - 1);\n}\n");
    assert_eq!(own.sites.sites.iter().filter(|site| site.kind == Kind::Entry).count(), 1);
}

/// Kinds of a kernel's own two sites, of all kernels in the file.
fn ends(source: &str) -> Vec<(Kind, u32)> {
    let ends = rewritten(source).sites.sites.into_iter().filter(|site| matches!(site.kind, Kind::Entry | Kind::Exit));
    ends.map(|site| (site.kind, site.line)).collect()
}

#[test]
fn kernels_have_an_entry_and_an_exit_and_nothing_else_has() {
    let entry_and_exit = |from, to| vec![(Kind::Entry, from), (Kind::Exit, to)];
    for (name, source, expected) in [
        ("no return", "__global__ void k(int *p) {\n    p[0] = 1;\n}\n", entry_and_exit(1, 3)),
        (
            "a guard return",
            "__global__ void k(int *p, int n) {\n    if (threadIdx.x >= n) return;\n    p[0] = 1;\n}\n",
            entry_and_exit(1, 4),
        ),
        (
            "a guard return and a barrier",
            "__global__ void k(int *p, int n) {\n    if (threadIdx.x >= n) return;\n    __syncthreads();\n    p[0] = 1;\n}\n",
            entry_and_exit(1, 5),
        ),
        (
            "a template with launch bounds",
            "template <class T, int N>\n__global__ void __launch_bounds__(N)\nk(T *p) {\n    p[0] = 1;\n}\n",
            entry_and_exit(3, 5),
        ),
        (
            "returns of a lambda are no exits",
            "__global__ void k(int *p) {\n    auto f = [](int x) { if (x) return 1; return 2; };\n    struct S { __device__ int g() { return 3; } };\n    p[0] = f(1);\n}\n",
            entry_and_exit(1, 5),
        ),
        ("a device function has neither", "__device__ int f(int n) {\n    if (n) return 1;\n    return 2;\n}\n", vec![]),
        ("a device lambda has neither", "void h() {\n    each([=] __device__ (int i) { return; });\n}\n", vec![]),
    ] {
        assert_eq!(ends(source), expected, "{name}");
    }
    let explicit = "template <class T> __global__ void k(T *p) { p[0] = 1; }\ntemplate __global__ void k<int>(int *);\ntemplate <> __global__ void k<float>(float *p) {\n    p[0] = 2;\n}\n";
    assert_eq!(ends(explicit), [entry_and_exit(1, 1), entry_and_exit(3, 5)].concat());
}
