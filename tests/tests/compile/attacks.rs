//! Programs that plain nvcc accepts and that once came out wrong: a loop without a poll and without a diagnostic, a
//! chain of calls that runs for hours between two polls, or a text that no longer compiled. Each is proved now, or
//! compiles, or is a gap with a code.

use crate::verify::judge;
use crate::{Checks, Tools, sweeps};
use cuinstr::options::Options;
use cuinstr_harness::fixtures::{Fixture, workspace};
use cuinstr_harness::unit::{Unit, call};

/// What must come of a program.
#[derive(Clone, Copy)]
enum Wanted {
    /// It compiles without a warning, and each loop is proved.
    Proved,
    /// It compiles without a warning.
    Compiles,
    /// It compiles, and `--strict` refuses it with this code.
    Gap(&'static str),
}
use Wanted::{Compiles, Gap, Proved};

/// Files of `tests/data/attacks`.
const FILES: &[(&str, Wanted)] = &[
    ("activations_multiply.cu", Proved),
    ("attributes.cu", Proved),
    ("call_tree.cu", Proved),
    ("comma_in_macro_argument.cu", Proved),
    ("constexpr_called.cu", Proved),
    ("constexpr_lambda.cu", Proved),
    ("constexpr_plain.cu", Proved),
    ("continuation.cu", Proved),
    ("continuation_comment.cu", Proved),
    ("continuation_do.cu", Proved),
    ("foreign_macro.cu", Gap("CI016")),
    ("g_attr_macro.cu", Proved),
    ("g_define_for.cu", Gap("CI017")),
    ("g_paste.cu", Gap("CI012")),
    ("kernel_macro.cu", Proved),
    ("lambda_attribute.cu", Proved),
    ("lambda_shift.cu", Proved),
    ("local_class.cu", Compiles),
    ("member_counter.cu", Compiles),
    ("ne_step.cu", Compiles),
    ("nest_then_loop.cu", Compiles),
    ("noreturn.cu", Proved),
    ("shared_48k.cu", Proved),
    ("unroll_macro.cu", Proved),
    ("dole.cu", Proved),
    ("goto2.cu", Proved),
    ("goto3.cu", Proved),
    ("lost.cu", Gap("CI012")),
    ("lost2.cu", Gap("CI012")),
];

/// Further programs of the same kinds, in C++17 unless their names say another. nvcc itself warns of the members that are defined without their attributes.
const TEXTS: &[(&str, &str, Wanted)] = &[
    (
        "a kernel that a macro of nvcc's command line marks",
        "FOREIGN_KERNEL void k(volatile int *p) { while (p[0]) ; for (int i = 0; i < p[1]; ++i) p[i] = 1; }\n",
        Proved,
    ),
    (
        "an operator defined outside of its class, constexpr",
        "struct V { int x; constexpr V operator+(V o) const; };\nconstexpr V V::operator+(V o) const { V r{x}; while (o.x > 3) { o.x = o.x % 2 ? 3 * o.x + 1 : o.x / 2; ++r.x; } return r; }\n__global__ void k(int *p) { p[0] = (V{p[0]} + V{p[1]}).x; }\n",
        Proved,
    ),
    (
        "constexpr functions that call each other",
        "constexpr int odd(int n);\nconstexpr int even(int n) { return n == 0 ? 1 : odd(n - 1); }\nconstexpr int odd(int n) { return n == 0 ? 0 : even(n - 1); }\n__global__ void k(int *p) { p[0] = even(p[0]); }\n",
        Proved,
    ),
    (
        "a macro with a loop for an attribute and a brace",
        "#define OPEN(name, type) extern \"C\" __global__ void name(type *p) {\n#define CLOSE }\nOPEN(k, volatile int)\n  int sum = 0;\n  do { for (int i = 0; i < p[1]; ++i) if (p[i]) sum += i; } while (p[0]);\n  if (sum) { while (p[2]) ; } else for (;;) if (p[3]) break;\nCLOSE\n",
        Proved,
    ),
    (
        "48 KiB in two arrays of a template's sizes",
        "template <int N> __global__ void k(int *p, int n) { __shared__ int a[N], b[2 * N]; for (int i = 0; i < n; ++i) { a[i % N] = b[i % N] = p[i]; __syncthreads(); p[i] = a[0] + b[1]; } }\ntemplate __global__ void k<4096>(int *, int);\n",
        Compiles,
    ),
    (
        "a lambda in a constant",
        "__global__ void k(int *p, int n) { constexpr int ten = [](int m) { int s = 0; for (int i = 0; i < m; ++i) s += i; return s; }(5); static_assert([] { int i = 0; while (i < 9) ++i; return i; }() == 9, \"\"); for (int i = 0; i < n; ++i) p[i] = ten; }\n",
        Proved,
    ),
    (
        "labels that are declared where blocks begin",
        "__global__ void k(volatile int *p, int n) { __label__ again, end; int i = 0; again: p[i] = 1; if (++i < n) goto again; while (*p) { __label__ x; if (p[1]) goto x; ++p[2]; x: ; } if (n) goto end; ++p[3]; end: ; }\n__host__ __device__ int f(int n) {\n#ifdef OTHER\n__label__ y;\n#else\n__label__ y;\n#endif\n__label__ z; int i = 0; y: if (++i < n) goto y; z: if (++i < 2 * n) goto z; auto l = [&](int m) { __label__ d; d: if (++i < m) goto d; return i; }; return n ? l(n) + f(n - 1) : 1; }\n__global__ void m(int *p) { for (int i : {1, 2, *p}) { __label__ z; if (i == *p) goto z; ++p[1]; z: ; } do { __label__ z; if (*p == 3) goto z; ++p[1]; z: ; } while (*p); p[0] = f(p[1]); }\n",
        Proved,
    ),
    (
        "a counter that the loop's body sets again and again",
        "__global__ void k(volatile int *p) { for (int i = 0; i < 16; ++i) i = p[3]; }\n",
        Proved,
    ),
    (
        "a counter that a macro in the loop's body sets",
        "#define next (i = p[3])\n__global__ void k(volatile int *p) { for (int i = 0; i < 16; ++i) { p[1] = next; } }\n",
        Proved,
    ),
    (
        "a kernel inside a macro's argument",
        "#define WRAP(text) text\nWRAP(__global__ void k(int *p) { p[threadIdx.x] = 1; })\nWRAP(__global__ void l(int *p, int n) { for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j) p[i + j] += i; } })\n",
        Proved,
    ),
    (
        "a function that ends in no way",
        "__attribute__((noreturn)) __device__ void stop(volatile int *p) { while (true) { p[0] += 1; } }\n__global__ void k(int *p) { if (p[0]) stop(p); }\n",
        Proved,
    ),
    (
        "calls that macros paste together",
        "#define LEVEL(n, m) __device__ __noinline__ int level_##n(int *p) { int r = 0; for (int i = 0; i < p[m]; ++i) r += level_##m(p); return r; }\n__device__ __noinline__ int level_0(int *p) { int r = 0; for (int i = 0; i < p[0]; ++i) r += p[i]; return r; }\nLEVEL(1, 0) LEVEL(2, 1) LEVEL(3, 2)\n__global__ void k(int *p) { p[9] = level_3(p); }\n",
        Proved,
    ),
    (
        "a lambda with a template list and a demand (C++20)",
        "__global__ void k(int *p) { auto f = []<class T>(T n) requires (sizeof(T) == 4) { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return n; }; p[1] = f(p[0]); }\n",
        Proved,
    ),
    (
        "demands with braces of their own (C++20)",
        "template <class T> struct R { __device__ T m(T n) const requires requires(T t) { t / 2; } { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return n; } };\n__global__ void k(int *p) { auto f = []<class T>(T n) requires requires (T t) { t + 1; } { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return n; }; p[1] = f(p[0]) + R<int>{}.m(p[2]); }\n",
        Proved,
    ),
    (
        "a pack that references name",
        "template <class... T> __host__ __device__ void ignore(const T &...) {}\nstruct A { template <class S> A(const S &) { ignore(1); } };\n__global__ void k() { ignore(1); }\n",
        Proved,
    ),
    (
        "a lambda whose type has a comma",
        "template <class A, class B> struct Two { A a; B b; };\n__global__ void k(int *p) { auto f = [](int n) -> Two<int, int> { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return {n, n}; }; p[1] = f(p[0]).a; }\n",
        Proved,
    ),
    (
        "a virtual function with a loop",
        "struct B { __device__ virtual int go(int n) = 0; };\nstruct Y final : B { __device__ int go(int n) final { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return n; } };\n__global__ void k(int *p, B **b) { Y y; B *c = p[5] ? *b : &y; p[1] = c->go(p[2]); }\n",
        Proved,
    ),
    (
        "a table of functions with loops",
        "typedef int (*F)(int);\n__device__ int a(int n) { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return n; }\n__device__ int b(int n) { while (n > 5) n = n % 2 ? 3 * n + 1 : n / 2; return n; }\n__device__ const F table[2] = {a, b};\n__global__ void k(int *p) { p[0] = table[p[1] & 1](p[1]); }\n",
        Proved,
    ),
    (
        "a function that reaches itself through a table",
        "typedef int (*F)(int);\n__device__ F table[2];\n__device__ int a(int n) { return n; }\n__device__ int b(int n) { return n > 0 ? table[n & 1](n - 1) : 0; }\n__global__ void k(int *p) { table[0] = a; table[1] = b; p[0] = table[p[1] & 1](p[1]); }\n",
        Proved,
    ),
    (
        "a constructor that constructs its like",
        "struct T { int v; __device__ T(int n) : v(n) { if (n > 3) { T t(n % 2 ? 3 * n + 1 : n / 2); v = t.v; } } };\n__global__ void k(int *p) { T t(p[0]); p[1] = t.v; }\n",
        Proved,
    ),
    (
        "an initialiser that constructs its like",
        "struct T { int v; __device__ T(int n, int *p) : v(n > 3 ? T(p[n], p).v : 0) {} };\n__global__ void k(int *p) { T t(p[0], p); p[1] = t.v; }\n",
        Gap("CI012"),
    ),
    (
        "a constexpr function of one return that calls itself",
        "constexpr int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\nstatic_assert(fib(6) == 8, \"\");\n__global__ void k(int *p) { p[1] = fib(p[0]); }\n",
        Proved,
    ),
    (
        "a tree of constexpr functions of one return",
        "constexpr int t0(int n) { while (n > 3) n = n % 2 ? 3 * n + 1 : n / 2; return n; }\nconstexpr int t1(int n) { return t0(n) + t0(n + 1); }\nconstexpr int t2(int n) { return t1(n) + t1(n + 1) + t1(n + 2); }\nconstexpr int t3(int n) { int r = 0; for (int i = 0; i < n; ++i) r += t2(n); return r; }\nconstexpr int t4(int n) { return t3(n) + t3(n + 1); }\n__global__ void k(int *p) { p[0] = t4(p[0]); }\n",
        Proved,
    ),
    (
        "a lambda that leaves a function of the host (C++20)",
        "inline auto make() { return [](int n) { while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; }; }\nusing L = decltype(make());\n__global__ void k(int *p) { L f; p[0] = f(p[1]); }\n",
        Proved,
    ),
    (
        "local classes that leave functions of the host",
        "inline auto make() { struct L { constexpr int operator()(int n) const { while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; } }; return L{}; }\ntemplate <class T> struct P { static auto get() { struct { constexpr int go(int n) const { while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; } } s; return s; } };\n__global__ void k(int *p) { decltype(make()) f; decltype(P<int>::get()) g{}; p[0] = f(p[1]) + g.go(p[2]); }\n",
        Proved,
    ),
    (
        "a lambda in noexcept (C++20)",
        "__device__ int f(int t) noexcept([] { int n = 0; while (n < 3) ++n; return n == 3; }()) { return t; }\n__global__ void k(int *p) { p[1] = f(p[0]); }\n",
        Proved,
    ),
    (
        "rounds in the compiler by the hundred thousand",
        "constexpr int f() { int s = 0; for (int i = 0; i < 500; ++i) { int n = 0; while (n < 1000) { ++n; if (n & 1) ++s; } } return s; }\nstatic_assert(f() == 250000, \"\");\n__global__ void k(volatile int *p) { while (p[0]) ; }\n",
        Compiles,
    ),
    (
        "a constexpr template that takes no literal",
        "struct S { int x; __host__ __device__ ~S() {} };\ntemplate <class T> __host__ __device__ constexpr int f(T t) { int n = t.x; while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; }\n__global__ void k(int *p) { S s{p[0]}; p[1] = f(s); }\n",
        Proved,
    ),
    (
        "attributes that a macro pastes together",
        "#define CAT(a, b) a##b\nCAT(__glo, bal__) void k(int *p) { while (p[2] > p[3]) p[2] = p[4]; }\n__global__ void l(int *p) { p[0] = 1; }\n",
        Gap("CI012"),
    ),
    (
        "captures in macros",
        "#define fn []\n#define fnv [=]\n#define FN_REF [&]\n#define CAP(...) [__VA_ARGS__]\ntemplate <class F> __device__ int each(int n, F f) { int s = 0; for (int i = 0; i < n; ++i) s += f(i); return s; }\n__global__ void k(int* p, int n) {\n  p[1] = each(n, fn(int a) { while (a > 3) a = a % 2 ? 3 * a + 1 : a / 2; return a; });\n  p[2] = each(n, fnv(int a) { while (a > n) a = a % 2 ? 3 * a + 1 : a / 2; return a; });\n  p[3] = each(n, FN_REF(int a) { while (a > n) a = a % 2 ? 3 * a + 1 : a / 2; return a; });\n  p[4] = each(n, CAP(n)(int a) { while (a > n) a = a % 2 ? 3 * a + 1 : a / 2; return a; });\n  p[5] = each(n, CAP()(int a) { while (a > 3) a = a % 2 ? 3 * a + 1 : a / 2; return a; });\n}\n",
        Proved,
    ),
    (
        "a loop for ever in a function of a value",
        "#define forever while (true)\n__device__ int f(int *p) { forever { if (*p) return 1; } }\n__host__ __device__ int g(int *p) { do if (*p) return 1; while (true); }\n__global__ void k(int *p, int n) { auto l = [&](int a) { forever { if (a > n) return a; a += p[a]; } }; p[0] = f(p) + g(p) + l(3); if (n) forever if (p[1]) break; else ++p[2]; }\n",
        Proved,
    ),
    (
        "arms that close a `do` which another loop's arms hold",
        "__global__ void k(int *p, int n) {\n#if defined(A)\n  for (int i = 0; i < n; ++i) {\n#elif defined(B)\n  while (n-- > 0) {\n#else\n  int i = 0; do {\n#endif\n    p[n]++;\n#if defined(A) || defined(B)\n  }\n#else\n  } while (++i < n);\n#endif\n}\n",
        Gap("CI012"),
    ),
];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    for (name, wanted) in FILES {
        checks.add(format!("attacks: {name}"), move |tools| {
            let path = workspace().join("tests/data/attacks").join(name);
            let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            check(tools, name, text, "-std=c++17", *wanted)
        });
    }
    for (name, text, wanted) in TEXTS {
        let standard = if name.ends_with("(C++20)") { "-std=c++20" } else { "-std=c++17" };
        checks.add(format!("attacks: {name}"), move |tools| check(tools, "attack.cu", (*text).into(), standard, *wanted));
    }
    // CI compiles each seventh.
    let each = if sweeps() { 1 } else { 7 };
    for (title, text) in implicit_calls().step_by(each) {
        let (name, standard) = title.split_once(": ").expect("a title and a standard");
        let standard = format!("-std={standard}");
        checks.add(format!("attacks: recursion: {name}"), move |tools| check(tools, "attack.cu", text.into(), &standard, Proved));
    }
    let made = texts(include_str!("../../data/attacks/made_functions.txt"));
    for (title, text) in made {
        checks.add(format!("attacks: functions of macros: {title}"), move |tools| {
            check(tools, "attack.cu", text.into(), "-std=c++17", Proved)
        });
    }
    let declared = texts(include_str!("../../data/attacks/declared_for_the_device.txt"));
    for (title, text) in declared {
        checks.add(format!("attacks: declared for the device: {title}"), move |tools| {
            check(tools, "attack.cu", text.into(), "-std=c++17", Proved)
        });
    }
    // The first two make tens of thousands of calls each, which takes nvcc minutes.
    let multiplied = texts(include_str!("../../data/attacks/multiplied_calls.txt")).skip(2);
    for (title, text) in multiplied {
        checks.add(format!("attacks: calls that multiply: {title}"), move |tools| {
            check(tools, "attack.cu", text.into(), "-std=c++17", Proved)
        });
    }
}

/// Recursion without a call's syntax: titles with standards, and texts. Each is rewritten by a test of the library.
fn implicit_calls() -> impl Iterator<Item = (&'static str, &'static str)> {
    texts(include_str!("../../data/attacks/implicit_calls.txt"))
}

/// The titles and texts of a file.
fn texts(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("\n//@ ").skip(1).map(|text| text.split_once('\n').expect("a title and a text"))
}

fn check(tools: &Tools, name: &str, text: Vec<u8>, standard: &str, wanted: Wanted) -> Result<(), String> {
    let strict = cuinstr::rewrite(&text, &Options { path: name.to_owned(), strict: true, ..Options::default() });
    let codes: Vec<&str> = strict.diagnostics.iter().map(|diagnostic| diagnostic.code.id()).collect();
    match wanted {
        Gap(code) if strict.output.is_some() || !codes.contains(&code) => return Err(format!("{codes:?}, not {code}")),
        Proved | Compiles if strict.output.is_none() => return Err(format!("refused: {codes:?}")),
        _ => {}
    }
    let mut needs = vec!["-arch=sm_80", standard, "--expt-relaxed-constexpr", "-DFOREIGN_KERNEL=__global__"];
    // nvcc reads twice as much with this.
    if text.windows(2).any(|pair| matches!(pair, b"[]" | b"[=" | b"[&" | b"](")) {
        needs.push("--extended-lambda");
    }
    let headers = vec![("mymacros.h".to_owned(), b"#define MY_HD __host__ __device__\n".to_vec())];
    let unit = Unit { needs: needs.into_iter().map(str::to_owned).collect(), beside: Vec::new(), ..Unit::new(name, text) };
    let rewritten = Unit { beside: headers, ..unit.rewrite(&Options::default())? };
    let ptx = rewritten.nvcc(&tools.nvcc, &["-Werror", "all-warnings", "-ptx"])?.expect_clean()?.text();
    // ptxas has a say, too: shared memory that is too much is found there.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::write(folder.path().join("k.ptx"), &ptx).map_err(|error| error.to_string())?;
    let words = ["-arch=sm_80", "--warning-as-error", "-o", "out", "k.ptx"].map(str::to_owned);
    call(&tools.nvcc.path.with_file_name("ptxas"), folder.path(), &words)?.expect_clean()?;
    match (wanted, judge("attack", &ptx)) {
        (Proved, Err(why)) => Err(why),
        _ => Ok(()),
    }
}
