//! What the operators make of kernels, by hand and of all in the repository.

use cuinstr_mutate::{Mutant, Operator, mutants, sample};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The changes that an operator makes within the body of a kernel.
#[track_caller]
fn makes(operator: Operator, body: &str, expected: &[&str]) {
    let head = "__global__ void k(float* a, int n, int i) { ";
    let source = format!("{head}{body} }}\n");
    let made: Vec<String> = mutants(&source)
        .into_iter()
        .filter(|mutant| mutant.operator == operator)
        .map(|mutant| mutant.apply(&source)[head.len()..].trim_end_matches(['\n', '}', ' ']).to_owned())
        .collect();
    assert_eq!(made, expected, "{body}");
}

#[test]
fn each_operator_makes_its_changes() {
    makes(Operator::Arithmetic, "a[0] = n * i;", &["a[0] = n / i;", "a[0] = n + i;"]);
    makes(Operator::Arithmetic, "a[0] += n;", &["a[0] -= n;", "a[0] = n;"]);
    makes(Operator::Relational, "if (i < n) a[0] = 1;", &["if (i <= n) a[0] = 1;", "if (i >= n) a[0] = 1;"]);
    makes(Operator::Logical, "if (i && n) a[0] = 1;", &["if (i || n) a[0] = 1;"]);
    makes(Operator::Bitwise, "i = n << 3 & i;", &["i = n >> 3 & i;", "i = n << 3 | i;"]);
    makes(
        Operator::Negation,
        "if (i == n) return; a[0] = i ? 1 : 2;",
        &["if (!(i == n)) return; a[0] = i ? 1 : 2;", "if (i == n) return; a[0] = !(i) ? 1 : 2;"],
    );
    makes(Operator::Constant, "a[2] = 0x0fu;", &["a[3] = 0x0fu;", "a[1] = 0x0fu;", "a[2] = 16u;", "a[2] = 14u;"]);
    makes(Operator::Deletion, "a[0] = 1; f(a);", &["; f(a);", "a[0] = 1; ;"]);
    makes(
        Operator::Barrier,
        "__syncthreads(); __syncwarp(0xf); cg::this_grid().sync(); f();",
        &[
            "; __syncwarp(0xf); cg::this_grid().sync(); f();",
            "__syncthreads(); ; cg::this_grid().sync(); f();",
            "__syncthreads(); __syncwarp(0xf); ; f();",
        ],
    );
    makes(Operator::Atomic, "atomicAdd(&a[i], 1.0f); n = atomicAdd(&i, 1);", &["*(&a[i]) += (1.0f); n = atomicAdd(&i, 1);"]);
    makes(Operator::Dimension, "i = threadIdx.x + p.x;", &["i = threadIdx.y + p.x;"]);
    makes(Operator::Index, "i = blockIdx.y * blockDim.y;", &["i = threadIdx.y * blockDim.y;", "i = blockIdx.y * gridDim.y;"]);
}

#[test]
fn a_loop_is_changed_as_a_loop() {
    makes(
        Operator::LoopBound,
        "for (int k = 0; k < n; ++k) f(k);",
        &["for (int k = 0; k <= n; ++k) f(k);", "for (int k = 0; k >= n; ++k) f(k);", "for (int k = 0; k < (n) - 1; ++k) f(k);"],
    );
    makes(
        Operator::LoopBound,
        "for (int k = n; k >= 8u; --k) f(k);",
        &["for (int k = n; k > 8u; --k) f(k);", "for (int k = n; k < 8u; --k) f(k);", "for (int k = n; k >= 7u; --k) f(k);"],
    );
    makes(Operator::LoopBound, "while (i <= 8) f();", &["while (i < 8) f();", "while (i > 8) f();", "while (i <= 9) f();"]);
    makes(
        Operator::LoopBound,
        "while (a[0] > 1.5f) f();",
        &["while (a[0] >= 1.5f) f();", "while (a[0] <= 1.5f) f();", "while (a[0] > (1.5f) + 1) f();"],
    );
    makes(Operator::Relational, "for (int k = 0; k < n; ++k) f(k);", &[]);
    // `k <= 8` is `k < 9`, and no constant's mutant again.
    makes(Operator::Constant, "for (int k = n; k < 8; ++k) f(k);", &[]);
    makes(
        Operator::Constant,
        "for (int k = n; k != 8; ++k) f(k);",
        &["for (int k = n; k != 9; ++k) f(k);", "for (int k = n; k != 7; ++k) f(k);"],
    );
    makes(Operator::LoopStep, "for (;; ++i) f(i);", &["for (;; --i) f(i);", "for (;; i += 2) f(i);", "for (;; i) f(i);"]);
    makes(Operator::LoopStep, "for (;; i += n) f(i);", &["for (;; i) f(i);", "for (;; i -= n) f(i);", "for (;; i = n) f(i);"]);
    makes(Operator::LoopBound, "while (!f(i)) g();", &["while (!(!f(i))) g();"]);
    makes(Operator::LoopBound, "do { g(); } while (i != n);", &["do { g(); } while (i == n);"]);
}

#[test]
fn only_device_functions_are_changed_and_each_is_named() {
    let source = "#define TWICE(x) ((x) * 2)\nint host(int n) { return n + 1; }\n\
        template <typename T> __device__ T half(T x) { return x / 2; }\n\
        __global__ void __launch_bounds__(256) k(int* a) { *a = half(*a) + TWICE(1 - *a); }\n";
    let made = mutants(source);
    let functions: BTreeSet<&str> = made.iter().map(|mutant| mutant.function.as_str()).collect();
    assert_eq!(functions, BTreeSet::from(["half", "k"]));
    let first = &made[0];
    assert_eq!((first.line, first.column, first.before.as_str()), (3, 57, "/"));
    let json = format!("{:?} {}", first.operator, first.operator.name());
    assert_eq!(json, "Arithmetic arithmetic");
}

#[test]
fn a_sample_is_spread_evenly_and_always_the_same() {
    let source = format!("__global__ void k(int* a) {{ {} }}\n", "*a = *a + 1; ".repeat(50));
    let all = mutants(&source);
    let some = sample(all.clone(), 20);
    assert_eq!(some.len(), 20);
    assert_eq!(some, sample(all.clone(), 20));
    let places: Vec<usize> = some.iter().filter_map(|mutant| all.iter().position(|other| other == mutant)).collect();
    assert!(places.windows(2).all(|pair| (1..=all.len() / 10).contains(&(pair[1] - pair[0]))), "{places:?}");
    assert_eq!(sample(all.clone(), 10_000), all);
    assert_eq!(sample(all, 0), []);
}

#[test]
fn every_kernel_of_the_repository_has_mutants_that_the_rewriter_takes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let mut operators: BTreeMap<Operator, usize> = BTreeMap::new();
    let (mut sources, mut without) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("a readable entry").path();
        if path.extension().is_none_or(|extension| extension != "cu") {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a file of the repository");
        let made = mutants(&source);
        if made.is_empty() {
            without.push(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        let texts: BTreeSet<String> = made.iter().map(|mutant| mutant.apply(&source)).collect();
        assert_eq!(texts.len(), made.len(), "{}: two mutants are one", path.display());
        assert!(!texts.contains(&source), "{}: a mutant is none", path.display());
        for mutant in &made {
            *operators.entry(mutant.operator).or_default() += 1;
        }
        for mutant in sample(made, 3) {
            let rewrite = cuinstr::rewrite(mutant.apply(&source).as_bytes(), &cuinstr::options::Options::default());
            assert!(rewrite.output.is_some(), "{}: {mutant:?}\n{:?}", path.display(), rewrite.diagnostics);
        }
        sources += 1;
    }
    assert!(sources > 40, "{sources}");
    // The grammar can't make sense of it: preprocessor lines split its braces.
    assert_eq!(without, [Some("brace_split.cu".to_owned())]);
    assert_eq!(operators.len(), Operator::ALL.len(), "an operator changes nothing in any kernel: {operators:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_safe_to_mutate(text in "(__global__|__device__|void k\\(\\)|[{}();<>=+*.]|for|if|threadIdx\\.x|[a-z0-9 \n\u{e4}]){0,80}") {
        for mutant in mutants(&text) {
            let Mutant { range, after, .. } = &mutant;
            prop_assert!(mutant.apply(&text).len() + range.len() == text.len() + after.len());
        }
    }
}
