//! Device code that only a look at the whole file tells, and what has to be told where a poll can't stand.

use super::{check, rewritten, rewritten_as, row, told};
use cuinstr::options::{DeviceMacro, Options, Polls, Space};
use cuinstr::site::Form;
use std::fmt::Write as _;

#[test]
fn what_device_code_names_is_device_code() {
    check(&[
        row("constexpr", "constexpr int f(int n) { while (n > 9) n -= 2; return n; }\n", &["1 while polled"]),
        row(
            "named by a function that a kernel names",
            "ODD int f(int n) { while (n--) ; return n; }\nint g(int n) {\n    for (;;) if (f(n)) return n;\n}\n__global__ void k(int n) { g(n); }\n",
            &["1 while polled", "2 recursion flag", "3 for polled"],
        ),
        row(
            "named by a macro",
            "int f(int n) { while (n--) ; return n; }\n#define CALL(n) f(n)\n__global__ void k(int n) { CALL(n); }\n",
            &["1 while polled"],
        ),
        row("launched", "void k(int n) { while (n--) ; }\nvoid h() { k<<<1, 1>>>(3); }\n", &["1 while polled"]),
        row(
            "marked where it is declared",
            "struct S { __device__ void f(int n); };\nvoid S::f(int n) { while (n--) ; }\n",
            &["2 while polled"],
        ),
        row(
            "a constructor",
            "template <class T> struct C { __device__ C(T n); };\ntemplate <class T> C<T>::C(T n) { while (n--) ; }\n",
            &["2 while polled"],
        ),
        row(
            "an operator",
            "struct V { int x; };\nV operator+(V a, V b) { while (b.x--) ++a.x; return a; }\n__global__ void k(V *v) { v[0] = v[1] + v[2]; }\n",
            &["2 recursion flag", "2 while polled"],
        ),
        row(
            "marked by an attribute",
            "__attribute__((device)) void f(int n) { while (n--) ; }\n#define G __attribute__((global))\nG void k(int n) { while (n--) ; }\n",
            &["1 while polled", "3 while polled"],
        ),
        row(
            "marked by a macro of another file",
            "template <class T> ODD T f(T n) { while (n--) ; return n; }\nODD const char *g(int n) { while (n--) ; return 0; }\nODD(3) int h(int n) { while (n--) ; return 0; }\n",
            &["1 while polled", "2 while polled", "3 while polled"],
        ),
        row(
            "the host's alone",
            "struct V { int n; V(int m) : n(m) { while (n--) ; } ~V() { for (;;) ; } operator bool() const { return n; } };\nstatic std::vector<int> const &f(int n) { while (n--) ; }\nint main() { for (;;) f(3); }\n__global__ void k(int n) { g(n); }\n",
            &[],
        ),
    ]);
}

#[test]
fn code_outside_functions_is_polled() {
    check(&[
        row(
            "a macro opens the kernel",
            "#define OPEN(n) __global__ void n(int *p) {\n#define CLOSE }\nnamespace a {\nOPEN(k)\n    while (p[0]) ;\n    if (p[1]) { for (;;) { p[0] = 1; } }\nCLOSE\n}\n",
            &["5 while polled", "6 for polled"],
        ),
        told(
            "another file's macro opens it",
            "OPEN_KERNEL(k) while (p[0]) ; CLOSE_KERNEL\n",
            &["1 macro-loop none", "1 while polled"],
            &["CI010"],
        ),
        row("another file's macro is its head", "ODD_KERNEL(k, int *p) { while (p[0]) ; }\n", &["1 recursion flag", "1 while polled"]),
    ]);
}

#[test]
fn words_that_line_ends_split_are_whole() {
    check(&[
        row(
            "keywords",
            "__glo\\\nbal__ void k(int *p) { wh\\\nile (p[0]) ; d\\\n\\\no { } while (p[1]); }\n",
            &["2 while polled", "3 do polled"],
        ),
        row("a comment", "/\\\n/ while (\n__global__ void k(int *p) { while (p[0]) ; /\\\n* for (;;) ; *\\\n/ }\n", &["3 while polled"]),
    ]);
}

#[test]
fn what_can_not_be_polled_has_a_code() {
    check(&[
        told(
            "a header of a macro",
            "#define HEADER (int i = 0; i < 9; ++i)\n__global__ void k(int *p) { for HEADER p[i] = 0; }\n",
            &["2 for none"],
            &["CI012"],
        ),
        told(
            "words pasted together",
            "#define CAT(a, b) a##b\n#define VIA(a, b) CAT(a, b)\n__global__ void k(int *p) { VIA(wh, ile) (p[0]) ; int CAT(x, y) = 0; }\n",
            &["3 macro-loop none"],
            &["CI012"],
        ),
        told(
            "a part in the definition",
            "#define LE(a) a##ile (p[0])\n__global__ void k(int *p) { LE(wh) ; }\n",
            &["2 macro-loop none"],
            &["CI012"],
        ),
        told(
            "by another file's macro",
            "__global__ void k(int *p) { BOOST_PP_CAT(wh, ile) (p[0]) ; }\n",
            &["1 macro-loop none"],
            &["CI012"],
        ),
        told(
            "a keyword is a macro",
            "#define if(x) while (x)\n__global__ void k(int *p) { if (p[0]) ; }\n",
            &["1 while polled"],
            &["CI017"],
        ),
        told(
            "a type is a macro: each loop polls each time round",
            "#ifndef GUARD\n#define GUARD\n#define int char\n__global__ void k(volatile int *p) { for (int i = 0; i < 200; ++i) p[i] = 1; }\n#endif\n",
            &["4 for each"],
            &["CI017"],
        ),
        row(
            "words that stay what they are",
            "#define true 1\n#define false 0\n#define bool int\n#define inline __inline__\n__global__ void k(int *p) { while (p[0]) ; }\n",
            &["5 while polled"],
        ),
        told(
            "a header of the project",
            "#include <vector>\n#include \"mine.cuh\"\n#include <cuda_fp16.h>\n__global__ void k() { }\n",
            &[],
            &["CI016"],
        ),
    ]);
    for (front, code) in [("#define int long long\n", "CI017"), ("#include <cub/cub.cuh>\n", "CI016")] {
        let source = format!("{front}__global__ void k(int *p) {{ p[0] = 1; }}\n");
        let strict = rewritten_as(&source, &Options { strict: true, ..Options::default() });
        assert!(strict.output.is_none() && strict.diagnostics.iter().any(|diagnostic| diagnostic.code.id() == code), "{front}");
    }
}

#[test]
fn a_header_that_is_rewritten_too_is_no_gap() {
    let source = "#include \"../src/mine.cuh\"\n__global__ void k() { }\n";
    let codes = |options: Options| rewritten_as(source, &options).diagnostics.len();
    assert_eq!(codes(Options::default()), 1);
    assert_eq!(codes(Options { in_unit: true, ..Options::default() }), 0);
    assert_eq!(codes(Options { rewritten_too: vec!["a/src/mine.cuh".to_owned()], ..Options::default() }), 0);
    assert_eq!(codes(Options { rewritten_too: vec!["a/src/not_mine.cuh".to_owned()], ..Options::default() }), 1);
}

#[test]
fn a_function_in_an_arm_that_is_not_compiled_is_no_error() {
    let source = "#ifdef OTHER_LANGUAGE\nKERNEL_OF_OTHERS void f(int *p) { for (int i = threadIdx.x; i < 9; ++i) p[i] = 0; }\n#endif\n__global__ void k() { }\n";
    let strict = rewritten_as(source, &Options { strict: true, ..Options::default() });
    assert!(strict.output.is_some(), "{:?}", strict.diagnostics);
}

#[test]
fn chains_of_calls_look_where_a_function_begins() {
    let looks = |source: &str| {
        let sites = rewritten(source).sites.sites;
        sites
            .into_iter()
            .filter(|site| site.form == Form::Flag && site.kind == cuinstr::site::Kind::Recursion)
            .map(|site| site.function)
            .collect::<Vec<_>>()
    };
    let leaf = "__device__ int c(int n) { int r = 0; while (n--) r += n; return r; }\n";
    let middle = "__device__ int b(int n) { int r = 0; while (n--) r += c(n); return r; }\n";
    let kernel = |callee: &str| format!("__global__ void k(int *p, int n) {{ for (int i = 0; i < n; ++i) p[i] = {callee}(i); }}\n");
    assert!(looks(&format!("{leaf}{}", kernel("c"))).is_empty(), "two loops are few enough");
    assert_eq!(looks(&format!("{leaf}{middle}{}", kernel("b"))), ["b"]);
    assert_eq!(
        looks(&format!("{leaf}__global__ void k(int *p) {{ auto f = [&](int n) {{ while (p[n]) ++n; return n; }}; p[0] = f(1); }}\n")),
        ["k"]
    );
    assert!(looks(&format!("{leaf}__device__ int b(int n) {{ return c(n) + c(n + 1); }}\n{}", kernel("b"))).is_empty());
    // Twice as many calls at each level.
    let mut tree = leaf.to_owned();
    for level in 0..20 {
        let callee = if level == 0 { "c".to_owned() } else { format!("t{}", level - 1) };
        let _ = writeln!(tree, "__device__ int t{level}(int n) {{ return {callee}(n) + {callee}(n + 1); }}");
    }
    let found = looks(&format!("{tree}{}", kernel("t19")));
    assert_eq!(found, ["t2", "t19"], "the product grows anew behind a look");
}

#[test]
fn a_file_of_the_unit_is_told_what_the_others_name() {
    let source = "int helper(int n) { while (n--) ; return n; }\n";
    let named = Options { device_names: vec!["helper".to_owned()], ..Options::default() };
    assert_eq!((rewritten(source).summary.polled, rewritten_as(source, &named).summary.polled), (0, 1));
    let marked = DeviceMacro { name: "MINE".to_owned(), space: Space::Device };
    let source = "MINE int f(int n) { while (n--) ; return n; }\n";
    let rewrite = rewritten_as(source, &Options { device_macros: vec![marked], ..Options::default() });
    assert!(
        rewrite.sites.sites.iter().any(|site| site.form == Form::Chunk || site.form == Form::Strip),
        "known to run on the device alone"
    );
}

#[test]
fn operators_of_the_user_s_take_no_poll() {
    let source = |loops: &str| {
        format!(
            "struct M {{ int v; __device__ operator bool() const; }};\n__device__ bool operator&&(bool, M);\n__global__ void k(int *p, M m, int n) {{ {loops} }}\n"
        )
    };
    let loops = "while (m) if (p[1]) p[0] = m.v--; else break; for (int i = 0; i < n && p[i]; ++i) { if (p[i]) break; p[i] = 1; } do { p[0] = 1; } while (m);";
    for polls in [Polls::Amortised, Polls::CountDown, Polls::Each] {
        let output = rewritten_as(&source(loops), &Options { polls, ..Options::default() }).output.unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let kernel = output.rsplit("__global__").next().unwrap_or_default();
        for (before, _) in kernel.match_indices("&& (") {
            assert!(kernel[before..].starts_with("&& (__cuinstr_bool)(") || kernel[before..].starts_with("&& (__cuinstr"), "{kernel}");
        }
        assert!(kernel.contains("(__cuinstr_bool)("), "{kernel}");
    }
}

#[test]
fn counters_stand_in_front_of_a_return() {
    for wait in ["[&] { int v = *p; while (v > 3) --v; return v; }()", "({ int v = *p; while (v > 3) --v; v; })"] {
        let source = format!(
            "#define WAIT(p) {wait}\nconstexpr int g(const int *p) {{ return WAIT(p); }}\n__global__ void k(int *o) {{ o[1] = g(o); }}\n"
        );
        let output = rewritten(&source).output.unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let function = output.lines().find(|line| line.starts_with("constexpr int g(")).unwrap_or_default();
        assert!(function.contains("__cuinstr_left =") && function.contains("; return WAIT(p);"), "{function}");
    }
}

#[test]
fn attributes_are_known_however_they_are_spelled() {
    for head in [
        "#define G __location__(global)\nG void k",
        "#define G __attribute((global))\nG void k",
        "#define G [[gnu::global]]\nG void k",
        "__attribute((global)) void k",
        "[[gnu::global]] void k",
        "#define ID(x) x\nID(__global__) void k",
        "#define ID(x) x\nID(ID(__global__)) void k",
        "#define BOTH(a, t) a t\nBOTH(__global__, void) k",
        "ANY(__global__, 3) void k",
    ] {
        let rewrite = rewritten(&format!("{head}(int *p) {{ while (p[0]) ; }}\n"));
        assert_eq!((rewrite.summary.kernels, rewrite.summary.polled), (1, 1), "{head}");
    }
    check(&[
        row(
            "the whole head is a macro's arguments",
            "#define FN(a, t, n, p) a t n p\nFN(__global__, void, k, (int *p)) { while (p[0]) ; }\n",
            &["2 while polled"],
        ),
        row(
            "a list of names",
            "#define LIST(...) f(__VA_ARGS__)\nint h(int DI) { while (LIST(DI)) g(DI); return f(DI); }\n__global__ void k() { }\n",
            &[],
        ),
    ]);
}

#[test]
fn calls_that_no_parenthesis_follows_are_edges() {
    check(&[
        row(
            "a template's argument",
            "template <int (*F)(int)> __device__ int call(int n) { return F(n); }\n__device__ int f(int n) { return n > 3 ? call<f>(n / 2) : n; }\n__global__ void k(int *p) { p[1] = f(p[2]); }\n",
            &["1 recursion each", "2 recursion each"],
        ),
        row(
            "the address as one",
            "template <auto F> struct C { __device__ static int go(int n) { return F(n); } };\n__device__ int f(int n) { return n > 3 ? C<&f>::go(n / 2) : n; }\n",
            &["1 recursion each", "2 recursion each"],
        ),
        row(
            "a member's assignment",
            "struct M { int x; __device__ M &operator=(const M &o); };\nstruct O { M m; int y; };\n__device__ int g(int n) { O a, b; if (n > 3) b = a; return b.m.x; }\n__device__ M &M::operator=(const M &o) { x = g(o.x); return *this; }\n",
            &["3 recursion each", "4 recursion each"],
        ),
        row(
            "a member's comparison",
            "__device__ bool g(int n);\nstruct M { int x; __device__ bool operator==(const M &o) const { return g(o.x); } };\nstruct O { M m; __device__ bool operator==(const O &) const = default; };\n__device__ bool g(int n) { O a{{n}}; return n > 3 && a == a; }\n",
            &["2 recursion each", "4 recursion each"],
        ),
        row(
            "a sign that is a word",
            "struct V { int x; __device__ int operator~() const { V t{x / 2}; return compl t; } };\n",
            &["1 recursion each"],
        ),
        row(
            "a pointer to a member",
            "struct V { int x; __device__ int operator->*(int n) const { return *this->*(n / 2); } };\n",
            &["1 recursion each"],
        ),
    ]);
}

#[test]
fn assembly_that_may_loop_has_a_code() {
    let kernel = |text: &str| format!("__global__ void k(int *p) {{ {text} }}\n");
    for text in [
        "asm(\"L: bra L;\");",
        "asm(\"L: bra /* x */ L;\");",
        "asm(\"L: \\142ra L;\");",
        "asm(\"L: bra\\x20L;\");",
        "asm(\"ts: .branchtargets L; brx.idx %0, ts;\" :: \"r\"(p[0]));",
        "asm(\"L:\"); asm(\"bra L;\");",
        "asm(\"call.uni f, (a);\");",
        "asm(\"{\" TEXT \"}\");",
        "asm(TEXT_OF(L: bra L;));",
        "asm volatile(R\"(L:\n bra L;)\");",
    ] {
        let said: Vec<_> = rewritten(&kernel(text)).diagnostics.iter().map(|diagnostic| diagnostic.code.id()).collect();
        assert!(!said.is_empty() && said.iter().all(|code| *code == "CI013"), "{text}: {said:?}");
    }
    for text in [
        "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\\n\" :: \"r\"(p[0]), \"l\"(p));",
        "asm volatile(\"{ .reg .pred q; setp.ne.b32 q, %1, 0;\\n\" \" @q bra END;\\n\" \"mov.b32 %0, 1; END: }\" : \"=r\"(p[0]) : \"r\"(p[1]));",
        "asm(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\" : \"=r\"(p[0]), \"=r\"(p[1]) : \"r\"(p[4]));",
    ] {
        assert!(rewritten(&kernel(text)).diagnostics.is_empty(), "{text}");
    }
    check(&[
        told(
            "in a macro",
            "#define WAIT(b) asm volatile(\"L:\\n\" \"mbarrier.try_wait.b64 p, [%0];\\n\" \"bra L;\" :: \"r\"(b))\n__global__ void k(int *p) { WAIT(p[0]); }\n",
            &["1 asm-loop none"],
            &["CI013"],
        ),
        told(
            "the word is a macro",
            "#define ASM asm volatile\n__global__ void k(int *p) { ASM(\"L: bra L;\"); ASM(\"nanosleep.u32 20;\"); }\n",
            &["2 asm-loop none"],
            &["CI013"],
        ),
        told(
            "the text is an argument",
            "#define ASM(x) asm volatile(x)\n__global__ void k(int *p) { ASM(\"L: bra L;\"); }\n",
            &["1 asm-loop none"],
            &["CI013"],
        ),
        told(
            "the word is pasted together",
            "#define CAT(a, b) a##b\n__global__ void k(int *p) { CAT(as, m)(\"L: bra L;\"); }\n",
            &["2 macro-loop none"],
            &["CI012"],
        ),
        row(
            "plain text in a macro",
            "#define FENCE asm volatile(\"fence.proxy.async;\" ::: \"memory\")\n__global__ void k(int *p) { FENCE; }\n",
            &[],
        ),
    ]);
}

#[test]
fn arguments_that_become_device_code_have_a_code() {
    let front = "template <class F> __global__ void run(F f) { f(3); }\n";
    let codes = |macro_: &str, use_: &str| {
        let rewrite = rewritten(&format!("{front}#define EACH{macro_}\nvoid h(int *p) {{ {use_} }}\n"));
        rewrite.diagnostics.iter().map(|diagnostic| diagnostic.code.id()).collect::<Vec<_>>()
    };
    let braces = "(i, body) run<<<1, 1>>>([=] __device__ (int i) body)";
    assert_eq!(codes(braces, "EACH(i, { while (p[0]) ; });"), ["CI012"]);
    assert!(codes(braces, "EACH(i, { p[i] = 0; }); while (p[0]) ;").is_empty());
    assert_eq!(codes("(i, ...) run<<<1, 1>>>([=] __device__ (int i) { __VA_ARGS__ })", "EACH(i, while (p[0]) ; p[1] = i;);"), ["CI012"]);
    assert!(codes("(...) [=] __device__ (__VA_ARGS__)", "run<<<1, 1>>>(EACH(int i) { while (p[i]) ; });").is_empty());
}

#[test]
fn lines_end_where_the_compiler_says() {
    check(&[
        row("a carriage return alone", "__global__ void k(int *p) {\r // x\r while (p[0]) ;\r}\n", &["3 while polled"]),
        row(
            "a trigraph",
            "__global__ void k(int *p) { wh??/\nile (p[0]) ; // so??/\n while (p[1]) ;\n}\n",
            &["1 while polled", "3 while polled"],
        ),
        row(
            "a quote in a directive",
            "#define Q '\"' /* a quote:\n { while ( */\n__global__ void k(int *p) { while (p[0]) ; }\n",
            &["3 while polled"],
        ),
        row(
            "a raw string in a directive",
            "#define S R\"(\")\" /* a quote:\n { while ( */\n#if 1'000 /* more:\n ' */\n#endif\n__global__ void k(int *p) { while (p[0]) ; }\n",
            &["6 while polled"],
        ),
        row(
            "an address that the user makes",
            "struct X { int *p; __device__ int operator&() const { return *p; } };\n__global__ void k(int *p) { X a{p}; do { p[1] = 1; } while (&a != &a); }\n",
            &["2 do polled"],
        ),
        row("an address", "__global__ void k(int *p) { do { p[1] = 1; } while (&p != &p); }\n", &[]),
    ]);
}

#[test]
fn names_that_macros_paste_together_are_followed() {
    check(&[
        row(
            "a call",
            "#define CALL(x, n) f_##x(n)\n__device__ int f_a(int n) { return n > 3 ? CALL(a, n / 2) : n; }\n",
            &["2 recursion each"],
        ),
        row(
            "a function in a macro",
            "#define DEFINE(x) __device__ int f_##x(int n) { return n > 3 ? f_a(n / 2) : n; }\nDEFINE(a)\n__global__ void k(int *p) { p[0] = f_a(p[1]); }\n",
            &["1 recursion each"],
        ),
        row(
            "a function's name",
            "#define NAME(x) f_##x\n__device__ int f_b(int n);\n__device__ int NAME(a)(int n) { return n > 3 ? f_b(n / 2) : n; }\n__device__ int f_b(int n) { return n > 2 ? f_a(n - 1) : n; }\n",
            &["3 recursion each", "4 recursion each"],
        ),
        row(
            "others",
            "#define NAME(x) f_##x\n__device__ int f_b(int n) { return n; }\n__device__ int NAME(a)(int n) { return n > 3 ? f_b(n / 2) : g(n); }\n",
            &[],
        ),
        row(
            "a function that nothing marks",
            "#define CALL(x, p) f_##x(p)\nint f_a(int *p) { while (p[0]) ; return 1; }\n__global__ void k(int *p) { CALL(a, p); }\n",
            &["2 while polled"],
        ),
        row(
            "a macro that loops",
            "#define KW_spin(x) while (x) { }\n#define KW(n, x) KW_##n(x)\n__global__ void k(int *p) { KW(spin, p[0]); }\n",
            &["1 while polled"],
        ),
        told(
            "a macro that jumps",
            "#define J_1 goto top\n#define J(n) J_##n\n__global__ void k(int *p) { top: if (p[0]) J(1); }\n",
            &["3 macro-loop none"],
            &["CI012"],
        ),
    ]);
}
