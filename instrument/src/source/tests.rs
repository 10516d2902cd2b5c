//! What the source pass counts and tells, in small sources.

use crate::diagnostic::{Code, Diagnostic};
use crate::options::{Options, UnitMacro};
use crate::{Rewrite, rewrite};

/// The line that a diagnostic is about.
fn line_of(text: &str, diagnostic: &Diagnostic) -> usize {
    let at = diagnostic.primary.as_ref().expect("it has a place").span.start;
    text[..at].matches('\n').count() + 1
}

fn rewritten(body: &str) -> Rewrite {
    let source = format!("#define AGAIN goto again\n__global__ void k(int* p) {{ {body} }}\n");
    rewrite(source.as_bytes(), &Options { path: "a.cu".to_owned(), ..Options::default() })
}

#[test]
fn loops_that_have_no_poll_are_counted_and_told() {
    for (body, loops) in [
        ("again: p[0]++; if (*p) AGAIN;", 1),
        ("again: p[0]++; if (*p) AGAIN; if (p[1]) AGAIN;", 2),
        ("while p[0] { p[0]--; }", 1),
        ("if (p[0]) for; if (p[1]) for; p[2] = 2;", 2),
    ] {
        let rewrite = rewritten(body);
        assert_eq!((rewrite.summary.loops, rewrite.summary.polled, rewrite.summary.gaps), (loops, 0, loops), "{body}");
        assert!(rewrite.diagnostics.iter().all(|diagnostic| diagnostic.code == Code::NotPolled), "{body}: {:?}", rewrite.diagnostics);
    }
    // It jumps ahead.
    assert_eq!(rewritten("if (*p) AGAIN; p[0]++; again: p[1]++;").summary.loops, 0);
}

#[test]
fn a_text_may_begin_with_the_declaration_of_a_bound() {
    let text = "int m;\n__global__ void k(float* p) { __shared__ float s[32]; for (int i = threadIdx.x; i < m; i += blockDim.x) { s[i] = p[i]; __syncthreads(); p[i] = s[m]; } }\n";
    let rewrite = rewrite(text.as_bytes(), &Options { path: "a.cu".to_owned(), ..Options::default() });
    assert_eq!(rewrite.summary.loops, 1);
}

#[test]
fn a_macro_of_another_file_is_told_where_it_may_open_a_loop() {
    for (body, is_told) in [
        ("each(i, 3) if (p[i]) p[0] = i;", true),
        ("each(i, 3) return;", true),
        ("EACH(i, 3) p[i] = 0;", true),
        ("EACH(i, 3) { p[i] = 0; }", true),
        ("apply(i, 3) { p[i] = 0; }", false),
        ("for_each(i, 3) p[i] = 0;", true),
        ("apply(p, 3) p[i] = 0;", false),
        ("UNROLL(3) p[0] = 0;", false),
    ] {
        let told = rewritten(body).diagnostics.iter().any(|diagnostic| diagnostic.code == Code::UnknownLoopMacro);
        assert_eq!(told, is_told, "{body}");
    }
}

/// The texts of a file of `tests/data/attacks` and their titles.
fn texts(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("\n//@ ").skip(1).map(|text| text.split_once('\n').expect("a title and a text"))
}

/// The functions whose calls are polled.
fn polled_calls(text: &str) -> (Rewrite, Vec<String>) {
    let rewrite = rewrite(text.as_bytes(), &Options { path: "a.cu".to_owned(), ..Options::default() });
    let is_polled = |site: &&crate::site::Site| site.kind == crate::site::Kind::Recursion && site.form == crate::site::Form::Each;
    let polled = rewrite.sites.sites.iter().filter(is_polled).map(|site| format!("{}:{}", site.line, site.function)).collect();
    (rewrite, polled)
}

#[test]
fn recursion_without_the_syntax_of_a_call_is_polled() {
    let all = texts(include_str!("../../../tests/data/attacks/implicit_calls.txt"));
    let silent: Vec<&str> = all.filter(|(_, text)| polled_calls(text).1.is_empty()).map(|(title, _)| title).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn operators_of_numbers_call_nothing() {
    let mut wrong = Vec::new();
    for (title, text) in texts(include_str!("../../../tests/data/attacks/operators_of_numbers.txt")) {
        let (rewrite, polled) = polled_calls(text);
        if !polled.is_empty() || rewrite.summary.gaps > 0 {
            wrong.push((title, polled, rewrite.diagnostics));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_call_in_an_initialiser_that_leads_back_is_named() {
    let gaps = |text: &str| polled_calls(text).0.summary.gaps;
    assert_eq!(gaps("struct Deep { int x; __device__ Deep(int n) : x(n > 0 ? Deep(n - 1).x : 0) {} };\n"), 1);
    // Initialisers make parts of an object, which come to an end.
    let parts = "
        template <int N> struct Vector {
          int words[N];
          class Iterator {
            Vector& vec_;
            int bit_;
           public:
            __device__ Iterator(Iterator const& it) : vec_(it.vec_), bit_(it.bit_) {}
            __device__ Iterator(Vector& vec, int start = 0) : vec_(vec), bit_(start) {}
            __device__ operator bool() const { return true; }
          };
          __device__ Vector(bool value = true) { words[0] = value; }
          __device__ Iterator begin() { return Iterator(*this); }
        };
    ";
    assert_eq!(gaps(parts), 0);
}

#[test]
fn a_nest_stands_twice_only_if_each_of_its_tokens_may() {
    let stands_twice = |body: &str| {
        let nest = format!("for (int y = -r; y <= r; ++y) for (int x = -r; x <= r; ++x) {{ {body} }}");
        let output = rewritten(&format!("const int r = p[0] / 2; int sum = 0; {nest} p[1] = sum;")).output.expect("it is rewritten");
        String::from_utf8_lossy(&output).contains("if (__cuinstr_long(")
    };
    assert!(stands_twice("sum += p[y + x];"));
    for body in [
        "sum += p[y]; asm(x);",
        "switch (x) { case 1: sum += 1; default: sum += p[y]; }",
        "if (x) goto skip; sum += p[y]; skip: ;",
        "class S { int a; } s; sum += p[y];",
        "sum += p[y]; p.operator+(x);",
        "try { sum += p[y]; } catch (int) { }",
        "__syncwarp(); sum += p[y];",
        "sum += p[y] + 1'000;",
        "sum += p[y] + \"a\"[0];",
    ] {
        assert!(!stands_twice(body), "{body}");
    }
}

/// The titles of texts that get the code, and of those that don't.
fn told(file: &'static str, code: Code) -> (Vec<&'static str>, Vec<&'static str>) {
    let options = Options { path: "a.cu".to_owned(), ..Options::default() };
    let is_told = |text: &str| rewrite(text.as_bytes(), &options).diagnostics.iter().any(|diagnostic| diagnostic.code == code);
    let (told, silent): (Vec<_>, Vec<_>) = texts(file).partition(|(_, text)| is_told(text));
    let titles = |texts: Vec<(&'static str, &'static str)>| texts.into_iter().map(|(title, _)| title).collect();
    (titles(told), titles(silent))
}

#[test]
fn loops_that_the_compiler_makes_are_told() {
    let (_, silent) = told(include_str!("../../../tests/data/attacks/compiler_loops.txt"), Code::CompilerLoop);
    assert!(silent.is_empty(), "{silent:#?}");
    let (told, _) = told(include_str!("../../../tests/data/attacks/no_compiler_loops.txt"), Code::CompilerLoop);
    assert!(told.is_empty(), "{told:#?}");
}

/// The titles of texts in which a function checks where it begins, and of the others.
fn checked(file: &'static str) -> (Vec<&'static str>, Vec<&'static str>) {
    let options = Options { path: "a.cu".to_owned(), ..Options::default() };
    let is_checked = |text: &str| {
        let is_check = |site: &crate::site::Site| site.kind == crate::site::Kind::Recursion && site.form != crate::site::Form::None;
        rewrite(text.as_bytes(), &options).sites.sites.iter().any(is_check)
    };
    let (checked, others): (Vec<_>, Vec<_>) = texts(file).partition(|(_, text)| is_checked(text));
    let titles = |texts: Vec<(&'static str, &'static str)>| texts.into_iter().map(|(title, _)| title).collect();
    (titles(checked), titles(others))
}

#[test]
fn calls_that_multiply_out_of_sight_check() {
    let (_, others) = checked(include_str!("../../../tests/data/attacks/multiplied_calls.txt"));
    assert!(others.is_empty(), "{others:#?}");
    let (checked, _) = checked(include_str!("../../../tests/data/attacks/few_calls.txt"));
    assert!(checked.is_empty(), "{checked:#?}");
}

#[test]
fn functions_that_macros_make_poll_if_they_lead_back() {
    let (_, others) = checked(include_str!("../../../tests/data/attacks/made_functions.txt"));
    assert!(others.is_empty(), "{others:#?}");
    let plain = "#define DEF(name) __device__ int name(int n) { return twice(n) + 1; }\n__device__ int twice(int n) { return 2 * n; }\nDEF(once)\n__global__ void k(int *p) { *p = once(*p) + twice(*p); }\n";
    assert!(polled_calls(plain).1.is_empty());
}

#[test]
fn a_macro_may_stand_for_the_word_that_opens_a_loop() {
    let text = "#define REPEAT do\n__global__ void k(volatile int *p) { int n = 0; REPEAT { n++; } while (p[0]); p[1] = n; }\n";
    let out = rewrite(text.as_bytes(), &Options::default());
    let out = String::from_utf8(out.output.unwrap()).unwrap();
    // Nothing stands between the block and its condition.
    assert!(out.contains("} while ("), "{out}");
}

#[test]
fn a_macro_may_stand_for_an_attribute() {
    let text = b"#define GLB global\n__attribute__((GLB)) void k(volatile int *p) { while (*p) p[1]++; }\n";
    assert_eq!(rewrite(text, &Options::default()).sites.sites.iter().filter(|site| site.line == 2).count(), 3);
}

#[test]
fn an_attribute_that_is_pasted_may_mark_device_code() {
    for (marks, text) in [
        (true, "#define G(x) __attribute__((glo##x))\nG(bal) void k(volatile int *p) { while (*p) p[1]++; }\n"),
        (false, "#define G(x) __attribute__((glo##x))\nG(ve) void k(volatile int *p) { while (*p) p[1]++; }\n__global__ void l() {}\n"),
        (true, "#define X(a) __attribute__((a))\nX(global) void k(volatile int *p) { while (*p) p[1]++; }\n__global__ void l() {}\n"),
        (
            true,
            "#define ATTR(...) __attribute__((__VA_ARGS__))\n#define Y(a) ATTR(a)\nY(device) int f(volatile int *p) { while (*p); return 1; }\n__global__ void l() {}\n",
        ),
        (true, "#include \"kern.h\"\nX(global) void k(volatile int *p) { while (*p) p[1]++; }\n__global__ void l() {}\n"),
        (
            true,
            "#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n__attribute__((CAT(glo, bal))) void k(volatile int *p) { while (*p); }\n__global__ void l() {}\n",
        ),
        (false, "#define X(a) __attribute__((a))\nX(noinline) void k(int device) { }\n__global__ void l() {}\n"),
        (false, "#define G(x) f(glo##x)\nG(bal) void k(volatile int *p) { while (*p) p[1]++; }\n__global__ void l() {}\n"),
    ] {
        let told = rewrite(text.as_bytes(), &Options::default()).diagnostics;
        assert_eq!(told.iter().any(|one| one.code == Code::NotPolled), marks, "{text}: {told:?}");
    }
}

#[test]
fn functions_that_a_declaration_marks_poll() {
    let loops = |text: &str| text.matches("while (").count();
    let polled = |text: &str| rewrite(text.as_bytes(), &Options::default()).summary.polled;
    let all = texts(include_str!("../../../tests/data/attacks/declared_for_the_device.txt"));
    let silent: Vec<&str> = all.filter(|(_, text)| polled(text) != loops(text)).map(|(title, _)| title).collect();
    assert!(silent.is_empty(), "{silent:#?}");
    // The last declarator ends where the declaration does.
    let other = "__device__ int f(int);\nint h(int n) { while (n != 1) --n; return n; }\n__global__ void k() {}\n";
    assert_eq!(polled(other), 0);
}

#[test]
fn types_that_leave_a_host_function_may_be_called_by_the_device() {
    let body = "(int n) { while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; }";
    for (polled, text) in [
        (1, format!("inline auto make() {{ return []{body}; }}\nusing L = decltype(make());\n")),
        (1, format!("inline decltype(auto) make() {{ struct L {{ constexpr int operator(){body} }}; return L{{}}; }}\n")),
        (1, format!("template <class T> struct P {{ static auto get() {{ struct {{ constexpr int go{body} }} s; return s; }} }};\n")),
        (0, format!("inline int call(int m) {{ return []{body}(m); }}\n")),
        (0, format!("inline auto call() -> int {{ return []{body}(3); }}\n")),
        (0, format!("inline auto make(int m) {{ return [&m]{body}; }}\n")),
        (0, "inline auto make(int m) { if constexpr (sizeof(int) == 4) { while (m != 1) --m; } return m; }\n".to_owned()),
    ] {
        let text = text + "__global__ void k(int *p) { p[0] = 1; }\n";
        assert_eq!(rewrite(text.as_bytes(), &Options::default()).summary.polled, polled, "{text}");
    }
}

#[test]
fn a_loop_in_a_head_that_only_the_compiler_evaluates_is_no_gap() {
    let loop_ = "[] { int n = 0; while (n < 3) ++n; return n == 3; }()";
    let gaps = |text: String| rewrite(text.as_bytes(), &Options::default()).summary.gaps;
    assert_eq!(gaps(format!("__device__ int f(int t) noexcept({loop_}) {{ return t; }}\n")), 0);
    assert_eq!(gaps(format!("struct S {{ int x; __device__ S() noexcept(true) : x({loop_}) {{}} }};\n")), 1);
}

#[test]
fn a_round_that_the_compiler_may_evaluate_makes_no_call() {
    let output = |head: &str| {
        let text = format!("{head} int f(int n) {{ while (n != 1) n = n % 2 ? 3 * n + 1 : n / 2; return n; }}\n");
        let output = rewrite(text.as_bytes(), &Options::default()).output.expect("it is rewritten");
        String::from_utf8_lossy(&output).contains("__cuinstr_in_round(__cuinstr_tick")
    };
    assert!(output("constexpr") && output("__device__ constexpr"));
    // Elsewhere the compiler warns of the question.
    assert!(!output("__device__") && !output("__host__ __device__"));
}

#[test]
fn a_while_that_may_end_another_arms_do_is_told() {
    let text = "__global__ void k(int *p, int n) {\n#ifdef A\nfor (;;) {\n#else\ndo {\n#endif\np[n]++;\n#ifdef A\n}\n#else\n} while (*p);\n#endif\nwhile (p[1]) ;\nif (n) { } while (p[2]) ;\n}\n";
    let rewrite = rewrite(text.as_bytes(), &Options { path: "a.cu".to_owned(), ..Options::default() });
    let told: Vec<usize> = rewrite.diagnostics.iter().filter(|one| one.code == Code::NotPolled).map(|one| line_of(text, one)).collect();
    assert_eq!(told, [5, 11]);
    let output = String::from_utf8(rewrite.output.expect("it is rewritten")).expect("it is text");
    assert!(output.contains("} while (*p);") && !output.contains("while (p[2]) ;"), "{output}");
}

#[test]
fn captures_may_stand_in_a_macro() {
    let elsewhere = UnitMacro {
        name: "L".to_owned(),
        definitions: 1,
        undefined: 0,
        repeats: false,
        marks: false,
        changes: false,
        leaves: false,
        captures: true,
        labels: Vec::new(),
        compiler_loop: None,
    };
    let options = Options { path: "a.cu".to_owned(), unit_macros: vec![elsewhere], ..Options::default() };
    for define in ["#define L [=]", "#define L []", "#define L [&](int b)", "#define L OTHER", "#define L [b = 3]", ""] {
        let text = format!(
            "#define OTHER [&]\n{define}\n__global__ void k(int *p, int n) {{ p[0] = f(n, L(int a) {{ while (g(a)) ; return a; }}); }}\n"
        );
        let options = if define.is_empty() { &options } else { &Options { path: "a.cu".to_owned(), ..Options::default() } };
        let output = rewrite(text.as_bytes(), options).output.expect("it is rewritten");
        let output = String::from_utf8(output).expect("it is text");
        assert!(output.contains("L(int a) { __cuinstr_word __cuinstr_pace;"), "{output}");
    }
}
