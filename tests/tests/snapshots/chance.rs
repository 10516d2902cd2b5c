//! What the rewriter makes of sources by chance: the random programs of `cuinstr_differential`, and kernels that chance changes.
//!
//! A line for each text or two holds a checksum of the rewritten text, the sites and the diagnostics. So it tells that something is another than
//! before, and where to look. Whether it is right is asked elsewhere.

use super::{check, files, name_of};
use cuinstr::options::{AtExit, Options, Polls};
use cuinstr::rewrite;
use cuinstr::site::Form;
use cuinstr_differential::generate;
use cuinstr_differential::program::Mode;
use cuinstr_harness::digest::digest;
use cuinstr_harness::random::Random;
use rayon::prelude::*;
use std::fmt::Write as _;

/// Random programs, and changes of each kernel.
const PROGRAMS: u64 = 400;

const CHANGED: u64 = 12;

/// Words that stand for each other.
const ALIKE: &[&[&str]] = &[
    &["<", "<=", ">", ">=", "!=", "=="],
    &["++", "--"],
    &["+=", "-=", "*=", "<<=", ">>=", "="],
    &["+", "-", "*", "/", "%", "&", "|", "^", "&&", "||", "<<", ">>"],
    &["int", "unsigned", "short", "char", "float", "size_t", "bool", "int64_t"],
    &["while", "if", "switch"],
    &["break", "continue", "return"],
    &["const", "static", "volatile", "constexpr"],
    &["void", "int", "bool"],
    &["0", "1", "2", "3", "4", "8", "16", "32", "100", "1024", "65536", "2000000", "0x10", "16u", "1ll"],
];

/// Headers of loops: `I` is the counter, `O` that of the loop around.
const HEADERS: &[&str] = &[
    "for (int I = 0; I < n; ++I)",
    "for (int I = -n; I <= n; ++I)",
    "for (int I = n; I < m + 3; ++I)",
    "for (int I = n * 2; I < n * (m + 1); ++I)",
    "for (int I = 0; I < 8; ++I)",
    "for (int I = 0; I < 4096; ++I)",
    "for (int I = O; I < 8; ++I)",
    "for (int I = 0; I < O; ++I)",
    "for (int I = O; I < n; I += 4)",
    "for (unsigned I = threadIdx.x; I < n; I += blockDim.x)",
    "for (;;)",
    "\n#pragma unroll\nfor (int I = 0; I < 4; ++I)",
    "\n#pragma unroll 1\nfor (int I = 0; I < 8; ++I)",
    "for (int I = n; I > 0; I /= 2)",
    "while (n > m)",
];

const BODIES: &[&str] = &[
    "s += I * O;",
    "s = 0; p[I] = O;",
    "if (p[I]) break; p[O] = s;",
    "if (p[I]) return P; n += p[O];",
    "s += g(p, I);",
    "__syncthreads(); p[I] += p[O];",
    "p[I] = __expf(p[O]) * s + __sinf(p[I + 1]); p[I + 2] = p[O + 3] / s; s += p[I + 4] * p[O + 5]; p[O] += rsqrtf(s); s -= p[I] % 7; p[O + 8] = s;",
];

const FUNCTIONS: &[&str] = &["__device__ void", "__device__ int", "__device__ void *", "__device__ float *"];

/// Statements that are put in.
const MORE: &[&str] = &[
    "break;",
    "continue;",
    "return;",
    "__syncthreads();",
    "__syncwarp();",
    "i += 2;",
    "n = 3;",
    "int n = 3;",
    "const int r = n;",
    "while (true) { }",
    "for (;;) { if (n) break; }",
    "for (int a = 0; a < 4; ++a) p[a] = 0;",
    "for (int a = -n; a <= n; ++a) for (int b = -n; b <= n; ++b) s += a * b;",
    "for (int a = 0; a < n; ++a) { for (int b = a; b < n * 2 + 1; ++b) s += b; }",
    "for (int a = i; a < n; a += blockDim.x) s += a;",
    "do { --n; } while (n > 0);",
    "switch (n) { case 1: break; default: continue; }",
    "goto out; out: ;",
    "asm volatile(\"\");",
    "if (n > 3) { return; } else",
    "\n#pragma unroll\n",
    "\n#pragma unroll 1\n",
    "\n#if X\n",
    "\n#else\n",
    "\n#endif\n",
    "{",
    "}",
    "(",
    ")",
    "EACH(i, n)",
    "auto f = [&](int m) { while (m--) p[m] = 0; };",
];

/// Words, numbers and operators with where they begin.
fn words(text: &str) -> Vec<(usize, &str)> {
    let class = |byte: char| match byte {
        _ if byte.is_ascii_alphanumeric() || byte == '_' => 0,
        '<' | '>' | '=' | '!' | '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' => 1,
        _ => 2,
    };
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (at, byte) in text.char_indices().filter(|(_, byte)| byte.is_ascii()) {
        match found.last_mut() {
            Some((from, word)) if *from + word.len() == at && class(byte) < 2 && word.ends_with(|last| class(last) == class(byte)) => {
                *word = &text[*from..=at];
            }
            _ if class(byte) < 2 => found.push((at, &text[at..=at])),
            _ => {}
        }
    }
    found
}

/// The text with another word, or with a line more or less.
fn change(text: &str, random: &mut Random) -> String {
    let all = words(text);
    let (at, word) = all[random.below(all.len())];
    let put = |new: &str| format!("{}{new}{}", &text[..at], &text[at + word.len()..]);
    let mut lines: Vec<&str> = text.lines().collect();
    let nth = random.below(lines.len());
    match random.below(8) {
        0..=3 => {
            let (_, other) = all[random.below(all.len())];
            ALIKE.iter().find(|alike| alike.contains(&word)).map_or_else(|| put(other), |alike| put(random.of(alike)))
        }
        4 => put(""),
        5 => {
            lines.remove(nth);
            lines.join("\n")
        }
        6 => {
            let copy: Vec<&str> = lines[nth..].iter().take(1 + random.below(4)).copied().collect();
            let to = random.below(lines.len());
            lines.splice(to..to, copy);
            lines.join("\n")
        }
        _ => {
            let places: Vec<usize> = text.match_indices([';', '{', '}']).map(|(at, _)| at + 1).collect();
            let to = if places.is_empty() { text.len() } else { random.of(&places) };
            format!("{} {} {}", &text[..to], random.of(MORE), &text[to..])
        }
    }
}

/// What is made of a text under several options: a checksum, and counts of loops and of polls by their forms.
fn made(texts: &[String]) -> String {
    let options = |polls, at_exit| Options { polls, at_exit, path: "a.cu".to_owned(), ..Options::default() };
    let all =
        [options(Polls::Amortised, AtExit::default()), options(Polls::CountDown, AtExit::default()), options(Polls::Each, AtExit::Gate)];
    let (mut whole, mut loops, mut forms) = (String::new(), 0, std::collections::BTreeMap::<String, usize>::new());
    for (text, options) in texts.iter().flat_map(|text| all.iter().map(move |options| (text, options))) {
        let rewrite = rewrite(text.as_bytes(), options);
        // The prelude has a record of its own.
        let from = rewrite.inserted.first().map_or(0, |prelude| prelude.end);
        let output = rewrite.output.as_deref().map(|output| String::from_utf8_lossy(&output[from..]).into_owned());
        let _ = write!(whole, "{output:?} {:?} {:?} {:?}", rewrite.sites, rewrite.diagnostics, rewrite.summary);
        loops += rewrite.summary.loops;
        for site in rewrite.sites.sites.iter().filter(|site| site.form != Form::None) {
            *forms.entry(format!("{:?}", site.form)).or_default() += 1;
        }
    }
    let forms: Vec<String> = forms.iter().map(|(form, count)| format!("{form} {count}")).collect();
    format!("{} {loops} loops, {}\n", &digest([whole.as_bytes()])[..8], forms.join(", "))
}

#[test]
fn random_programs_are_rewritten_as_before() {
    let texts: Vec<String> = (0..PROGRAMS).map(|seed| generate::program(seed).text(Mode::Plain)).collect();
    let lines: Vec<String> = texts.par_chunks(4).map(made).collect();
    check("chance_programs", &lines.concat());
}

#[test]
fn nests_are_rewritten_as_before() {
    let nest = |outer: &str, inner: &str, nth: usize| {
        let (body, function) = (BODIES[nth].replace('I', "j").replace('O', "i"), FUNCTIONS[nth % FUNCTIONS.len()]);
        let (outer, inner) = (outer.replace('O', "n").replace('I', "i"), inner.replace('I', "j").replace('O', "i"));
        let (of_kernel, of_function) = (body.replace('P', ""), body.replace('P', "0"));
        format!(
            "__device__ int g(int *p, int a);\n\
             __global__ void k(int *p, int n, int m) {{ int s = 0, i = 0, j = 0; {outer} {{ {inner} {{ {of_kernel} }} }} }}\n\
             {function} l(int *p, int n, int m, int i) {{ int s = 0, j = 0; {inner} {{ {of_function} }} }}\n"
        )
    };
    let pairs: Vec<(&str, &str)> = HEADERS.iter().flat_map(|outer| HEADERS.iter().map(|inner| (*outer, *inner))).collect();
    let line = |(outer, inner): &(&str, &str)| {
        let texts: Vec<String> = (0..BODIES.len()).map(|nth| nest(outer, inner, nth)).collect();
        format!("{} {{ {} }} {}", outer.replace('\n', " ").trim(), inner.replace('\n', " ").trim(), made(&texts))
    };
    let lines: Vec<String> = pairs.par_iter().map(line).collect();
    check("chance_nests", &lines.concat());
}

#[test]
fn kernels_that_chance_changes_are_rewritten_as_before() {
    let paths: Vec<_> = ["", "hang"].into_iter().flat_map(|folder| files(folder, &["cu", "cuh"])).collect();
    let line = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let changed = (0..CHANGED).map(|seed| {
            let mut random = Random::new(seed);
            (0..=random.below(4)).fold(text.clone(), |text, _| change(&text, &mut random))
        });
        format!("{} {}", name_of(path), made(&changed.collect::<Vec<_>>()))
    };
    let lines: Vec<String> = paths.par_iter().map(line).collect();
    check("chance_kernels", &lines.concat());
}
