//! The grammar's stumbling blocks.

use crate::{check, rewritten, row, told};
use cuinstr::options::{Options, Polls};
use cuinstr::rewrite;
use cuinstr_harness::process::processor_time;
use std::fmt::Write as _;
use std::time::Duration;

#[test]
fn a_macro_in_front_of_the_keyword_hides_no_loop() {
    // 94 % of all loops that the parser loses.
    check(&[
        row(
            "before for",
            "__global__ void k(int n) {\n    CUTLASS_PRAGMA_UNROLL\n    for (int i = 0; i < n; ++i) f(i);\n}\n",
            &["3 for polled"],
        ),
        row("with a count", "__global__ void k(int n) {\n    UNROLL(4) for (int i = 0; i < n; ++i) { f(i); }\n}\n", &["2 for polled"]),
        row(
            "two of them, which look like a declaration",
            "__global__ void k(int n) {\n    CUTLASS_PRAGMA_NO_UNROLL LIKELY\n    for (; n; --n) f(n);\n}\n",
            &["3 for polled"],
        ),
        row("before while", "__global__ void k(int n) {\n    CUTE_UNROLL\n    while (n--) f(n);\n}\n", &["3 while polled"]),
        row("before do", "__global__ void k(int n) {\n    CUTE_UNROLL\n    do { f(n); } while (n--);\n}\n", &["3 do polled"]),
        row(
            "on outer and inner loop",
            "__global__ void k(int n) {\n    UNROLL\n    for (int i = 0; i < n; ++i)\n        UNROLL\n        for (int j = 0; j < n; ++j) f(i, j);\n}\n",
            &["3 for polled", "5 for polled"],
        ),
        row(
            "as the body of an if",
            "__global__ void k(int n) {\n    if (n > 4)\n        UNROLL\n        for (; n; --n) f(n);\n    else\n        UNROLL\n        while (n--) f(n);\n}\n",
            &["4 for polled", "7 while polled"],
        ),
        row(
            "behind a label and a case",
            "__global__ void k(int n) {\n    switch (n) {\n    case 1:\n        UNROLL\n        for (; n; --n) f(n);\n    default:\n        UNROLL\n        do f(n); while (n--);\n    }\n}\n",
            &["5 for polled", "8 do polled"],
        ),
    ]);
}

#[test]
fn functions_are_found_by_the_macros_that_mark_them() {
    // 69 % of device functions.
    for family in [
        "CUTLASS_DEVICE",
        "CUTLASS_HOST_DEVICE",
        "CUTE_DEVICE",
        "CUTE_HOST_DEVICE",
        "_CCCL_API",
        "_CCCL_DEVICE",
        "_CCCL_HOST_DEVICE",
        "C10_DEVICE",
        "C10_HOST_DEVICE",
        "DI",
        "HDI",
        "THRUST_DEVICE_FUNCTION",
        "EIGEN_DEVICE_FUNC",
        "KOKKOS_INLINE_FUNCTION",
    ] {
        for head in [
            format!("{family} void f(int n)"),
            format!("{family}\nstatic inline int f(int n)"),
            format!("struct S {{ {family} S& operator+=(int n)"),
            format!("template <class T> {family} T f(T n) noexcept"),
            format!("struct S {{ {family} S(int n) : a(n), b{{n}}"),
        ] {
            let end = if head.starts_with("struct") { "};" } else { "" };
            let source = format!("{head} {{ while (n--) g(n); }} {end}\n");
            let rewrite = rewritten(&source);
            assert_eq!((rewrite.summary.functions, rewrite.summary.polled), (1, 1), "{source}");
            assert!(rewrite.diagnostics.is_empty(), "{source}{:?}", rewrite.diagnostics);
        }
    }
    for (definition, kernels) in [
        ("#define MY_DEVICE __device__ __forceinline__", 0),
        ("#define MY_DEVICE __host__ __device__", 0),
        ("#define INNER __device__\n#define MY_DEVICE INNER inline", 0),
        ("#ifdef __CUDACC__\n#define MY_DEVICE __device__\n#else\n#define MY_DEVICE\n#endif", 0),
        ("#define MY_DEVICE CUTLASS_DEVICE", 0),
        ("#define MY_DEVICE __global__", 1),
    ] {
        let rewrite = rewritten(&format!("{definition}\nMY_DEVICE void f(int n) {{ while (n--) g(n); }}\n"));
        assert_eq!((rewrite.summary.functions, rewrite.summary.kernels, rewrite.summary.polled), (1, kernels, 1), "{definition}");
    }
    check(&[
        row(
            "a macro made of a name",
            "#define KERNEL(name) __global__ void name\nKERNEL(k)(int n) { while (n--) g(n); }\n",
            &["2 while polled"],
        ),
        row(
            "a whole function in a macro",
            "#define MAKE(name) __device__ void name(int n) { while (n--) g(n); }\nMAKE(a)\nMAKE(b)\n",
            &["1 while polled"],
        ),
        told(
            "an unknown macro",
            "ODD_MARK void k(int *p) { for (int i = threadIdx.x; p[i]; ++i) p[i] = 0; }\n",
            &["1 for polled"],
            &["CI014"],
        ),
    ]);
}

#[test]
fn device_lambdas_are_read() {
    // 87 % of them contain an error for the parser.
    check(&[
        row(
            "[=] __device__ (int i)",
            "void h(int n) {\n    each(n, [=] __device__ (int i) { while (g(i)) ++i; });\n}\n",
            &["2 recursion flag", "2 while polled"],
        ),
        row(
            "no space",
            "void h(int n) {\n    each(n, [=]__device__(int i) { while (g(i)) ++i; });\n}\n",
            &["2 recursion flag", "2 while polled"],
        ),
        row(
            "host and device, mutable, typed",
            "void h(int n) {\n    auto f = [=] __host__ __device__ (auto x) mutable -> int { while (x--) ; return 0; };\n}\n",
            &["2 recursion flag", "2 while polled"],
        ),
        row(
            "marked by a macro",
            "void h(int n) {\n    each(n, [=] GPU_LAMBDA (int i) { while (g(i)) ++i; });\n    all(KOKKOS_LAMBDA(int i) { while (g(i)) ++i; });\n}\n",
            &["2 recursion flag", "2 while polled", "3 recursion flag", "3 while polled"],
        ),
        row("no parameters", "void h(int n) {\n    each(n, [=] __device__ { for (;;) g(); });\n}\n", &["2 recursion flag", "2 for polled"]),
        row(
            "inside a kernel",
            "__global__ void k(int n) {\n    auto f = [&](int i) { while (g(i)) ++i; return i; };\n    f(n);\n}\n",
            &["2 recursion flag", "2 while polled"],
        ),
        row(
            "inside a lambda",
            "__global__ void k(int n) {\n    auto f = [&](int i) {\n        return [=](int j) { while (g(i, j)) ++j; return j; };\n    };\n}\n",
            &["3 recursion flag", "3 while polled"],
        ),
    ]);
}

#[test]
fn what_the_parser_loses_silently_is_not_lost() {
    check(&[
        row(
            "LOOP_MACRO(i, n) { … }, defined here",
            "#define EACH(i, n) for (int i = 0; i < (n); ++i)\n__global__ void k(int n) {\n    EACH(i, n) { f(i); }\n}\n",
            &["1 for polled"],
        ),
        row(
            "LOOP_MACRO(i, n) { … }, of a known family",
            "__global__ void k(int n) {\n    CUDA_KERNEL_LOOP(i, n) { f(i); }\n}\n",
            &["2 macro-loop polled"],
        ),
        row(
            "LOOP_MACRO(i, n) statement, of a known family",
            "__global__ void k(int n) {\n    CUDA_KERNEL_LOOP(i, n) f(i);\n}\n",
            &["2 macro-loop polled"],
        ),
        told(
            "LOOP_MACRO(i, n) { … }, unknown",
            "__global__ void k(int n) {\n    EACH_INDEX(i, n) { f(i); }\n}\n",
            &["2 macro-loop polled"],
            &["CI010"],
        ),
        told(
            "LOOP_MACRO(i, n) statement, unknown",
            "__global__ void k(int n) {\n    FOR_EACH_INDEX(i, n)\n        f(i);\n}\n",
            &["2 macro-loop none"],
            &["CI010"],
        ),
        row("MACRO while (x) {}", "__global__ void k(int n) {\n    UNROLL while (n) { --n; }\n}\n", &["2 while polled"]),
        row("MACRO do … while", "__global__ void k(int n) {\n    UNROLL do --n; while (n);\n}\n", &["2 do polled"]),
        row(
            "SPIN(x); hides a while",
            "#define SPIN(p) while (atomicCAS(p, 0, 1) != 0)\n__global__ void k(int *p) {\n    SPIN(p);\n}\n",
            &["1 while polled"],
        ),
        row(
            "a whole loop in a macro",
            "#define DRAIN(q) do { while (*(q)) --*(q); } while (0)\n__global__ void k(int *q) {\n    DRAIN(q);\n}\n",
            &["1 while polled"],
        ),
        row(
            "a loop two macros deep",
            "#define EACH(i, n) for (int i = 0; i < (n); ++i)\n#define GRID(i, j, n) EACH(i, n) EACH(j, n)\n__global__ void k(int n) {\n    GRID(i, j, n) f(i, j);\n}\n",
            &["1 for polled"],
        ),
    ]);
}

#[test]
fn an_unroll_pragma_stays_with_its_loop() {
    check(&[
        row(
            "as the body of an outer loop without braces",
            "__global__ void k(int n) {\n    for (int i = 0; i < n; ++i)\n        #pragma unroll\n        for (int j = 0; j < n; ++j)\n            f(i, j);\n}\n",
            &["2 for polled", "4 for polled"],
        ),
        row(
            "as the body of a while without braces",
            "__global__ void k(int n) {\n    while (n--)\n#pragma unroll 4\n        for (int j = 0; j < n; ++j) f(j);\n}\n",
            &["2 while polled", "4 for polled"],
        ),
        row(
            "_Pragma on the line",
            "__global__ void k(int n) {\n    _Pragma(\"unroll 4\") for (int j = 0; j < n; ++j) f(j);\n}\n",
            &["2 for polled"],
        ),
        row(
            "before while and do",
            "__global__ void k(int n) {\n    #pragma unroll 1\n    while (n--) f(n);\n    #pragma unroll 1\n    do f(n); while (++n < 9);\n}\n",
            &["3 while polled", "5 do polled"],
        ),
    ]);
    let marks = [
        "#pragma unroll\n",
        "#pragma unroll 4\n",
        "#pragma unroll (N)\n",
        "#pragma nounroll\n",
        "_Pragma(\"unroll\")\n",
        "CUTLASS_PRAGMA_UNROLL\n",
        "UNROLL(8) ",
        "/* unroll */ ",
    ];
    let loops = [
        "for (int i = 0; i < n; ++i) f(i);",
        "for (auto x : list) f(x);",
        "while (n--) f(n);",
        "do f(n); while (n--);",
        "for (;;) { if (f(n)) break; }",
    ];
    for mark in marks {
        for (outer, end) in [("", ""), ("while (g()) ", ""), ("for (;;) ", ""), ("if (n) ", " else f(0);"), ("do ", " while (g());")] {
            for inner in loops {
                for polls in [Polls::Amortised, Polls::Each] {
                    let source = format!("__global__ void k(int n) {{\n    {outer}\n    {mark}    {inner}{end}\n}}\n");
                    let options = Options { path: "a.cu".to_owned(), polls, ..Options::default() };
                    let rewrite = rewrite(source.as_bytes(), &options);
                    let output = String::from_utf8(rewrite.output.expect("accepted")).expect("text stays text");
                    let keyword = inner.split([' ', '(']).next().expect("a keyword");
                    // In front of a loop of ours around the user's, a pragma of ours comes last and counts; the user's stands inside.
                    let mut kept = vec![format!("{mark}    {keyword} "), format!("{mark}    __cuinstr_rolled {keyword} ")];
                    // Chunks of a `do` stand in a `while` of ours, behind which the pragma is said again.
                    if keyword == "do" && (mark.starts_with("/*") || mark.starts_with("UNROLL(")) {
                        kept.push(format!("{mark}    while (__cuinstr_again("));
                    } else if keyword == "do" && output.contains("ull)) __cuinstr_pragma(") {
                        kept.push(format!("{mark}    __cuinstr_rolled while (__cuinstr_again("));
                    }
                    assert!(kept.iter().any(|kept| output.contains(kept)), "{source}\n{output}");
                }
            }
        }
    }
}

#[test]
fn arms_of_conditionals_may_open_different_braces() {
    check(&[
        row(
            "two heads, one body",
            "__global__ void k(int n) {\n#ifdef A\n    for (int i = 0; i < n; ++i) {\n#else\n    for (int i = n; i-- > 0;) {\n#endif\n        f(i);\n    }\n}\n",
            &["3 for polled", "5 for polled"],
        ),
        row(
            "a loop or none",
            "__global__ void k(int n) {\n#if A\n    while (n--) {\n#else\n    {\n#endif\n        f(n);\n    }\n}\n",
            &["3 while polled"],
        ),
        row(
            "an if around a loop in one arm",
            "__global__ void k(int n) {\n#if A\n    if (n) {\n#endif\n        while (n--) f(n);\n#if A\n    }\n#endif\n}\n",
            &["5 while polled"],
        ),
        row(
            "two signatures, one body",
            "#if A\n__global__ void k(int n) {\n#else\n__global__ void k(int n, int m) {\n#endif\n    while (n--) f(n);\n}\n",
            &["6 while polled"],
        ),
        row(
            "an arm in the middle of a loop",
            "__global__ void k(int n) {\n    while (n--) {\n#if A\n        if (f(n)) {\n#else\n        if (g(n)) {\n#endif\n            break;\n        }\n    }\n}\n",
            &["2 while polled"],
        ),
    ]);
    let split = rewritten(
        "__global__ void k(int n) {\n    for (int i = 0;\n#if A\n         i < n; ++i) {\n#else\n         i < 2 * n; i += 2) {\n#endif\n        f(i);\n    }\n}\n",
    );
    assert_eq!(split.summary.loops, 1, "a header that arms split is one keyword");
    assert_eq!(split.summary.polled + split.summary.gaps, 1, "and is polled or told: {:?}", split.diagnostics);
}

#[test]
fn attributes_in_odd_places_hide_nothing() {
    check(&[
        row("__launch_bounds__(a)", "__global__ void __launch_bounds__(256) k(int n) { while (n--) f(n); }\n", &["1 while polled"]),
        row(
            "__launch_bounds__(a, b)",
            "template <int B> __global__ __launch_bounds__(B * 32, (B > 4) ? 1 : 2) void k(int n) { while (n--) f(n); }\n",
            &["1 while polled"],
        ),
        row(
            "__launch_bounds__(a, b, c)",
            "__global__ void __launch_bounds__(256, 1, 2) k(int n) { while (n--) f(n); }\n",
            &["1 while polled"],
        ),
        row("__cluster_dims__", "__global__ void __cluster_dims__(2, 1, 1) k(int n) { while (n--) f(n); }\n", &["1 while polled"]),
        row("__cluster_dims__ first", "__cluster_dims__(2, 1, 1) __global__ void k(int n) { while (n--) f(n); }\n", &["1 while polled"]),
        row(
            "__align__(N) declarations",
            "struct __align__(16) V { float x[4]; };\n__global__ void k(int n) {\n    __shared__ __align__(16) float s[4];\n    while (n--) f(s, n);\n}\n",
            &["4 while polled"],
        ),
        row(
            "alignas, __grid_constant__, __restrict__",
            "__global__ void k(const __grid_constant__ P p, int *__restrict__ q) {\n    alignas(16) int a[4];\n    while (q[p.n]) f(a);\n}\n",
            &["3 while polled"],
        ),
        row(
            "typename T::X{} as a value",
            "template <class T> __device__ int f(T t, int n) {\n    g(typename T::X{}, typename T::Y{n});\n    while (n--) h(typename T::X{});\n    return n;\n}\n",
            &["3 while polled"],
        ),
        row(
            "NV_IF_TARGET",
            "__device__ void f(int n) {\n    NV_IF_TARGET(NV_PROVIDES_SM_80, (while (n--) g(n);), (do g(n); while (n--);));\n    while (n) --n;\n}\n",
            &["2 while polled", "2 do polled", "3 while polled"],
        ),
        row(
            "NV_IF_ELSE_TARGET without a semicolon, one inside another",
            "__device__ void f(int n) {\n    NV_IF_ELSE_TARGET(NV_IS_HOST, (h(n);), (NV_IF_TARGET(NV_PROVIDES_SM_80, (while (n--) g(n);))))\n    g(n);\n    NV_DISPATCH_TARGET(NV_IS_HOST, (for (;;) g(n);), NV_IS_DEVICE, (g(n);))\n    for (; n; --n) g(n);\n}\n",
            &["2 while polled", "4 for polled", "5 for polled"],
        ),
        row(
            "a requires clause and if constexpr",
            "template <class T> requires (sizeof(T) == 4) __device__ void f(T n) {\n    if constexpr (N > 4) { while (n--) g(n); } else while (n--) h(n);\n}\n",
            &["2 while polled", "2 while polled"],
        ),
        row(
            "a template template parameter",
            "template <template <class, int> class V, class T> __global__ void k(V<T, 4> v, int n) { while (n--) f(v); }\n",
            &["1 while polled"],
        ),
        row(
            "a launch inside device code",
            "__global__ void k(int n) {\n    while (n--) k<<<1, n < 4 ? 32 : 64>>>(n);\n}\n",
            &["2 while polled"],
        ),
        row(
            "inline assembly between loops",
            "__global__ void k(int n, int x) {\n    while (n--) asm volatile(\"{ .reg .pred p; setp.ne.s32 p, %0, 0; }\" :: \"r\"(x) : \"memory\");\n}\n",
            &["2 while polled"],
        ),
        row(
            "an extern \"C\" kernel",
            "extern \"C\" __global__ void k(int n) { while (n--) f(n); }\nextern \"C\" {\n__global__ void l(int n) { while (n--) f(n); }\n}\n",
            &["1 while polled", "3 while polled"],
        ),
    ]);
}

#[test]
fn a_header_of_three_megabytes_is_read_in_one_go() {
    let mut source = String::from("#pragma once\n");
    let mut functions = 0;
    while source.len() < 2_900_000 {
        let _ = write!(
            source,
            "template <class T, int N>\nCUTLASS_HOST_DEVICE T reduce_{functions}(T const (&values)[N], int count) {{\n    T sum = T(0);\n    CUTLASS_PRAGMA_UNROLL\n    \
             for (int i = 0; i < count; ++i) {{\n        sum += values[i] * T({functions});\n    }}\n#if defined(__CUDA_ARCH__)\n    while (sum > T(N)) {{\n#else\n    if (sum > T(N)) {{\n#endif\n        \
             sum -= T(N);\n    }}\n    return sum;\n}}\n\n"
        );
        functions += 1;
    }
    let since = processor_time();
    let rewrite = rewritten(&source);
    let took = processor_time().saturating_sub(since);
    assert_eq!(rewrite.summary.functions, functions);
    assert_eq!((rewrite.summary.loops, rewrite.summary.polled, rewrite.summary.gaps), (2 * functions, 2 * functions, 0));
    assert_eq!(rewrite.original().as_deref(), Some(source.as_bytes()));
    // 0.3 s is what the parser alone takes in a release build; a debug build is far from a quadratic algorithm still.
    assert!(took < Duration::from_secs(120), "{took:?}");
}

#[test]
fn classes_that_refer_to_each_other_in_a_circle_are_read_soon() {
    let mut source = String::new();
    for class in 0..400 {
        let next = (class + 1) % 400;
        let _ = writeln!(
            source,
            "struct C{next};\nstruct C{class} {{ C{next} part; __device__ C{class} operator+(const C{class} &o) const {{ C{class} r; r.part = part + o.part; return r; }} }};"
        );
    }
    let since = processor_time();
    let rewrite = rewritten(&source);
    let took = processor_time().saturating_sub(since);
    assert_eq!(rewrite.original().as_deref(), Some(source.as_bytes()));
    // 1.4 s in a debug build. If each operand's classes are read for each overload, it is 34 s.
    assert!(took < Duration::from_secs(12), "{took:?}");
}

#[test]
fn an_unknown_macro_that_may_open_a_loop_is_told() {
    let tell = |text: &str| {
        let rewrite = rewritten(&format!("__global__ void k(int *p, int n) {{\n    {text}\n}}\n"));
        rewrite.diagnostics.iter().any(|diagnostic| diagnostic.code.id() == "CI010")
    };
    for text in [
        "EACH_INDEX(i, n)\n        f(i);",
        "EACH_INDEX(i, n) p[i] = 0;",
        "EACH_INDEX(i, n) sum += i;",
        "EACH_INDEX(i, n) ++p[i];",
        "EACH_INDEX(i, n) this->f(i);",
        "EACH_INDEX(i, n) if (p[i]) f(i);",
        "EACH_INDEX(i, n) { f(i); }",
        "EACH_INDEX(i, n) EACH_INDEX(j, n) f(i, j);",
        "if (n) EACH_INDEX(i, n) f(i);",
        "FOREVER { f(n); }",
        "for_each_index(i, n) f(i);",
    ] {
        assert!(tell(text), "{text}");
    }
    for text in [
        "EACH_INDEX(i, n);",
        "EACH_INDEX(i, n)",
        "EACH_INDEX(i, n); f(n);",
        "if (n) { EACH_INDEX(i, n) }",
        "VECTOR(float, 4) v;",
        "VECTOR(float, 4) v, w;",
        "SHARED(float) v[32];",
        "ALIGNED(16) Thing v = n;",
        "KERNEL_ASSERT(n) f(n);",
        "CUDA_CHECK(n) f(n);",
        "UNROLL(4) for (int i = 0; i < n; ++i) f(i);",
        "x = SQUARE(n) * f(n);",
        "int v = Vec{n}.x;",
        "f(n) + g(n);",
    ] {
        assert!(!tell(text), "{text}");
    }
}
