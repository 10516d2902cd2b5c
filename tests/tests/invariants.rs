//! The design's invariants, each as a test of that name: over the kernels, and over text that nobody wrote.

use cuinstr::diagnostic::{Code, Severity};
use cuinstr::options::{AtExit, DeviceMacro, Limits, Options, Polls, Space};
use cuinstr::site::{Form, Kind};
use cuinstr::{Rewrite, rewrite};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn kernels() -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for folder in ["kernels", "kernels/hang"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("the folder is part of the repository") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh") {
                found.push((
                    path.file_name().expect("a file").to_string_lossy().into_owned(),
                    std::fs::read(&path).expect("a readable file"),
                ));
            }
        }
    }
    found.sort();
    assert!(found.len() > 90);
    found
}

fn all_options() -> Vec<Options> {
    let base = Options { path: "a.cu".to_owned(), ..Options::default() };
    let limits = Limits { timeout_ns: Some(1), budget_cycles: Some(2), fuel: Some(3) };
    vec![
        base.clone(),
        Options { polls: Polls::Each, ..base.clone() },
        Options { limits, ..base.clone() },
        Options { at_exit: AtExit::Gate, ..base },
    ]
}

/// Rules that hold for whatever text goes in.
fn check_rules(source: &[u8], options: &Options) -> Rewrite {
    let first = rewrite(source, options);
    assert_eq!(first, rewrite(source, options), "the same text and options give the same output");
    let refused = first.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(first.output.is_none(), refused, "there is an output exactly if there is no error");
    for diagnostic in &first.diagnostics {
        for label in diagnostic.primary.iter().chain(&diagnostic.secondary) {
            assert!(label.span.start <= label.span.end && label.span.end <= source.len(), "{diagnostic:?}");
        }
    }
    let polls = first.sites.sites.iter().filter(|site| site.form != Form::None).count();
    assert_eq!(first.summary.polls, polls, "the summary counts the sites with a poll");
    assert!(first.summary.polled + first.summary.bounded <= first.summary.loops, "{:?}", first.summary);
    let Some(output) = &first.output else { return first };
    assert_eq!(first.original().as_deref(), Some(source), "without what was inserted the text is the input");
    for (index, range) in first.inserted.iter().enumerate() {
        let text = &output[range.clone()];
        if index == 0 {
            assert!(text.ends_with(b"#line 1 \"a.cu\"\n"));
            continue;
        }
        let forbidden = text.iter().find(|byte| matches!(byte, b'\n' | b'#' | b'"' | b'\''));
        assert_eq!(forbidden.map(|byte| char::from(*byte)), None, "inserted text may stand in a macro");
        let mut names = Vec::new();
        for word in String::from_utf8_lossy(text).split(|byte: char| !(byte.is_ascii_alphanumeric() || byte == '_')) {
            names.push(word.to_owned());
        }
        for name in names.iter().filter(|name| name.starts_with(|byte: char| byte.is_ascii_alphabetic() || byte == '_')) {
            // Words of the language, members of what is ours, and what the header of the loop that the text stands in names itself.
            let is_ours = ["__cuinstr_", "__ci_"].iter().any(|ours| name.starts_with(ours))
                || matches!(name.as_str(), "unsigned" | "int" | "long" | "true" | "false" | "for" | "void" | "bool" | "auto" | "decltype")
                || matches!(name.as_str(), "if" | "else" | "const" | "unroll" | "__builtin_constant_p" | "__attribute__" | "__unused__");
            let is_theirs =
                || text.windows(10).any(|word| word == b"__cuinstr_") && source.windows(name.len()).any(|word| word == name.as_bytes());
            assert!(is_ours || is_theirs(), "inserted text names {name}");
        }
    }
    let again = rewrite(output, options);
    assert_eq!(again.output, None, "its own output is refused");
    assert!(again.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::OwnOutput));
    first
}

#[test]
fn insert_only_same_line_numbers_deterministic_and_refuses_its_own_output() {
    for (name, source) in kernels() {
        for options in all_options() {
            let rewrite = check_rules(&source, &options);
            let gate_refused = options.at_exit == AtExit::Gate;
            assert!(rewrite.output.is_some() || gate_refused, "{name}: {:#?}", rewrite.diagnostics);
        }
    }
}

/// The first comma of ours that would divide the arguments of a macro: it stands between parentheses, and a bracket of another kind is nearer.
fn dividing_comma(rewrite: &Rewrite) -> Option<usize> {
    let output = rewrite.output.as_ref()?;
    let mut brackets = Vec::new();
    let mut at = rewrite.inserted[0].end;
    while at < output.len() {
        let is_ours =
            rewrite.inserted[..rewrite.inserted.partition_point(|range| range.start <= at)].last().is_some_and(|range| at < range.end);
        let rest = &output[at..];
        let length = |end: &[u8], from: usize| {
            rest[from..].windows(end.len()).position(|part| part == end).map_or(rest.len(), |to| from + to + end.len())
        };
        at += match rest[0] {
            b'/' if rest.starts_with(b"//") => length(b"\n", 2),
            b'/' if rest.starts_with(b"/*") => length(b"*/", 2),
            b'"' => length(b"\"", 1),
            b'(' | b'[' | b'{' => {
                brackets.push(rest[0]);
                1
            }
            b')' | b']' | b'}' => {
                brackets.pop();
                1
            }
            b',' if is_ours && brackets.contains(&b'(') && brackets.last() != Some(&b'(') => return Some(at),
            _ => 1,
        };
    }
    None
}

#[test]
fn no_comma_of_ours_divides_the_arguments_of_a_macro() {
    for (name, source) in kernels() {
        // Each file as a macro's argument, as far as its text can be one.
        let text = String::from_utf8_lossy(&source);
        if text.lines().any(|line| line.trim_start().starts_with('#')) || text.contains("R\"") {
            continue;
        }
        let wrapped = format!("#define ALL(...) __VA_ARGS__\nALL(\n{text}\n)\n");
        for options in all_options().into_iter().filter(|options| options.at_exit != AtExit::Gate) {
            let rewrite = rewrite(wrapped.as_bytes(), &options);
            assert!(rewrite.output.is_some(), "{name}: {:#?}", rewrite.diagnostics);
            let around = |at: usize| {
                String::from_utf8_lossy(&rewrite.output.as_ref().expect("just seen")[at.saturating_sub(200)..at + 40]).into_owned()
            };
            assert_eq!(dividing_comma(&rewrite).map(around), None, "{name}");
        }
    }
}

#[test]
fn each_loop_keyword_in_device_code_belongs_to_one_site() {
    for (name, source) in kernels() {
        let rewrite = rewrite(&source, &Options { path: name.clone(), ..Options::default() });
        let mut places: Vec<(u32, u32)> = rewrite
            .sites
            .sites
            .iter()
            .filter(|site| matches!(site.kind, Kind::For | Kind::RangeFor | Kind::While | Kind::Do))
            .map(|site| (site.line, site.column))
            .collect();
        let count = places.len();
        places.dedup();
        assert_eq!(count, places.len(), "{name}: two sites at one keyword");
        assert_eq!(rewrite.summary.loops, rewrite.summary.polled + rewrite.summary.bounded, "{name}: a loop is neither polled nor bounded");
    }
}

#[test]
fn fuel_and_polls_each_leave_no_loop_alone() {
    for (name, source) in kernels() {
        let fuel = Limits { fuel: Some(100), ..Limits::default() };
        for options in [Options { limits: fuel, ..Options::default() }, Options { polls: Polls::Each, ..Options::default() }] {
            let rewrite = rewrite(&source, &Options { path: name.clone(), ..options });
            let alone =
                rewrite.sites.sites.iter().any(|site| site.form == Form::None && matches!(site.kind, Kind::For | Kind::While | Kind::Do));
            assert!(!alone, "{name}");
        }
    }
}

#[test]
fn nesting_ten_thousand_deep_overflows_no_stack() {
    let deep = 10_000;
    for (open, close) in [
        ("{", "}"),
        ("(", ")"),
        ("for (;;) {", "}"),
        ("for (;;) ", ";"),
        ("if (x) ", ";"),
        ("if (x) ; else ", ";"),
        ("do ", " while (x);"),
        ("[&] { ", " }();"),
        ("while (", ") ;"),
        ("#if A\n{", "\n}\n#endif\n"),
    ] {
        let source = format!("__global__ void k(int x) {{ {} x = 1; {} }}\n", open.repeat(deep), close.repeat(deep));
        let options = Options { path: "a.cu".to_owned(), ..Options::default() };
        let _ = check_rules(source.as_bytes(), &options);
    }
}

/// Pieces of CUDA, whole and broken, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "__global__ void k(int n) {",
        "__device__ int f(int *p, int n)",
        "__host__ __device__ constexpr",
        "}",
        "{",
        "(",
        ")",
        ";",
        "[",
        "]",
        "<",
        ">",
        "for (int i = 0; i < n; ++i)",
        "for (int i = 0; i < 8; i++) {",
        "for (auto x : v)",
        "while (n--)",
        "while (int y = n)",
        "do {",
        "} while (n > 0);",
        "do",
        "while (0);",
        "goto top;",
        "top:",
        "switch (n) { case 1:",
        "default:",
        "if (n)",
        "else",
        "return;",
        "return n;",
        "x = 1;",
        "f(n);",
        "__syncthreads();",
        "#if A\n",
        "\n#else\n",
        "\n#elif B\n",
        "\n#endif\n",
        "\n#pragma unroll\n",
        "_Pragma(\"unroll\")",
        "UNROLL",
        "MACRO(i, n)",
        "\n#define LOOP(i, n) for (int i = 0; i < n; ++i)\n",
        "LOOP(i, n) {",
        "[&](int j) {",
        "[=] __device__ {",
        "asm volatile(\"L: bra L;\");",
        "struct S {",
        "try",
        "catch (...)",
        "template <class T>",
        "operator()",
        ": a(n), b{n}",
        "-> int",
        "\"for (\"",
        "'{'",
        "R\"(",
        ")\"",
        "/*",
        "*/",
        "// {\n",
        "\\\n",
        "\u{e9}",
        "#if 0\n",
        "MY_DEVICE",
        "__launch_bounds__(256)",
        ",",
        "=",
        "= {1, 2}",
        "// cuinstr: allow(CI013) fine\n",
        "continue;",
        "break;",
        "__tile_global__",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.join(" "))
}

fn options() -> impl Strategy<Value = Options> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(each, gate, limited, strict)| Options {
        path: "a.cu".to_owned(),
        polls: if each { Polls::Each } else { Polls::Amortised },
        at_exit: if gate { AtExit::Gate } else { AtExit::Check },
        limits: if limited { Limits { timeout_ns: Some(1), budget_cycles: None, fuel: Some(9) } } else { Limits::default() },
        device_macros: vec![DeviceMacro { name: "MY_DEVICE".to_owned(), space: Space::HostDevice }],
        strict,
        ..Options::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), options in options()) {
        let _ = check_rules(&bytes, &options);
    }

    #[test]
    fn never_panics_on_pieces_of_cuda(text in pieces(), options in options()) {
        let _ = check_rules(text.as_bytes(), &options);
    }

    #[test]
    fn never_panics_on_a_kernel_with_a_hole(file in 0_usize..90, from in any::<prop::sample::Index>(), length in 0_usize..200, options in options()) {
        let (_, mut source) = kernels().swap_remove(file);
        let from = from.index(source.len());
        source.drain(from..(from + length).min(source.len()));
        let _ = check_rules(&source, &options);
    }
}
