//! Approved outputs: the rewritten text and site table of every kernel, the diagnostics of every input that is refused or warned about,
//! and the prelude. `cargo insta review` accepts a change; nobody edits the files.

use cuinstr::options::{AtExit, Limits, Options, Polls};
use cuinstr::render::{self, Source};
use cuinstr::{Rewrite, rewrite};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[path = "snapshots/chance.rs"]
mod chance;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files of a folder of `kernels/` with one of the endings, in order.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("kernels").join(folder))
        .expect("the folder is part of the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| endings.iter().any(|ending| path.extension().is_some_and(|extension| extension == *ending)))
        .collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

fn check(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// The text behind the prelude, then the sites, then what was said.
fn describe(path: &str, source: &[u8], rewrite: &Rewrite) -> String {
    let mut text = String::new();
    if let Some(output) = &rewrite.output {
        text.push_str(&String::from_utf8_lossy(&output[rewrite.inserted[0].end..]).replace('\r', "\u{240d}"));
        text.push_str("\n----\n");
        for site in &rewrite.sites.sites {
            let form = site.why.clone().unwrap_or_else(|| format!("{:?}", site.form));
            let _ = writeln!(text, "{} {}:{} {:?} in {}: {form}", site.id, site.line, site.column, site.kind, site.function);
        }
    }
    let source = Source::new(path, source);
    for diagnostic in &rewrite.diagnostics {
        text.push_str(&render::full(&source, diagnostic, false));
    }
    text
}

fn check_folder(folder: &str, prefix: &str) {
    for path in files(folder, &["cu", "cuh"]) {
        let name = name_of(&path);
        let source = std::fs::read(&path).expect("a readable file");
        let options = Options { path: name.clone(), ..Options::default() };
        let rewrite = rewrite(&source, &options);
        check(&format!("{prefix}{name}"), &describe(&name, &source, &rewrite));
    }
}

#[test]
fn kernels_are_rewritten_as_approved() {
    check_folder("", "kernel-");
}

#[test]
fn hangs_are_rewritten_as_approved() {
    check_folder("hang", "hang-");
}

#[test]
fn refusals_and_warnings_are_worded_as_approved() {
    check_folder("reject", "reject-");
}

#[test]
fn polls_in_each_iteration_are_as_approved() {
    for name in ["gemm_tiled.cu", "macro_statement.cu", "constexpr_loop.cu"] {
        let source = std::fs::read(root().join("kernels").join(name)).expect("a readable file");
        let rewrite = rewrite(&source, &Options { path: name.to_owned(), polls: Polls::Each, ..Options::default() });
        check(&format!("each-{name}"), &describe(name, &source, &rewrite));
    }
}

#[test]
fn gates_are_refused_as_approved() {
    for (name, source) in [
        ("return.cu", "__global__ void k(int *p, int n) {\n    if (threadIdx.x >= n) return;\n    __syncthreads();\n    p[0] = 1;\n}\n"),
        ("cluster.cu", "__global__ void __cluster_dims__(2, 1, 1) k(int *p) {\n    p[0] = 1;\n}\n"),
        ("loop.cu", "__global__ void k(int *p) {\n    while (p[0]) {\n        __syncthreads();\n        if (p[1]) return;\n    }\n}\n"),
    ] {
        let options = Options { path: name.to_owned(), at_exit: AtExit::Gate, ..Options::default() };
        let rewrite = rewrite(source.as_bytes(), &options);
        assert_eq!(rewrite.output, None);
        check(&format!("gate-{name}"), &describe(name, source.as_bytes(), &rewrite));
    }
}

#[test]
fn the_prelude_is_as_approved() {
    let source = b"__global__ void k(volatile int* p) { while (*p) { } }\n";
    let limits = Limits { timeout_ns: Some(2_000_000_000), budget_cycles: Some(1 << 40), fuel: Some(1_000_000) };
    let rewrite = rewrite(source, &Options { path: "k.cu".to_owned(), limits, ..Options::default() });
    let output = rewrite.output.expect("accepted");
    check("prelude", &String::from_utf8_lossy(&output[rewrite.inserted[0].clone()]));
}
