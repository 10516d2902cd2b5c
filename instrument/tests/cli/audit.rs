//! `cuinstr audit`: what libclang sees against what the rewriter places. Without libclang, or without CUDA headers, these are ignored, or
//! fail where `CUINSTR_REQUIRE` names `clang`.

use cuinstr_trial::or_ignore;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Kernels of many shapes: macros, lambdas, templates, `goto`, headers.
const SLICE: &[&str] = &[
    "gemm_tiled",
    "cg_tiles",
    "duff",
    "goto_probe",
    "lambda_generic",
    "macro_loop",
    "macro_statement",
    "monte_carlo",
    "one_liners",
    "range_for",
    "template_unroll",
    "hang/header_function",
    "hang/macro_head",
    "hang/macro_spin",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_owned()
}

/// The command with a toolkit: that of `CUDA_HOME`, or the one that `scripts/fetch-cuda` fetched.
fn audit(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuinstr"));
    command.current_dir(root()).arg("audit").args(args);
    if std::env::var_os("CUDA_HOME").is_none_or(|home| home.is_empty()) && root().join(".cuda/include").is_dir() {
        command.env("CUDA_HOME", root().join(".cuda"));
    }
    command
}

/// What it answered. Without libclang the test is ignored.
fn answer(args: &[&str]) -> Output {
    let output = audit(args).output().expect("the command runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let can_run = !errors.contains("[CI058]") && !errors.contains("[CI059]");
    or_ignore("clang", if can_run { Ok(output) } else { Err(errors.lines().next().unwrap_or_default().to_owned()) })
}

/// Lines and columns of the loops in the answer that lie in a file, and those without a site.
fn loops(json: &str, file: &str) -> (BTreeSet<(u64, u64)>, Vec<String>) {
    let answer: serde_json::Value = serde_json::from_str(json).expect("the answer is JSON");
    let all = answer["loops"].as_array().expect("there is a list of loops");
    let own = all.iter().filter(|found| found["written"]["file"] == file && found["cover"] != "never-repeats");
    let number = |value: &serde_json::Value| value.as_u64().expect("places are numbers");
    let places = own.map(|found| (number(&found["written"]["line"]), number(&found["written"]["column"]))).collect();
    (places, all.iter().filter(|found| found["cover"] == "none").map(ToString::to_string).collect())
}

/// The same of the rewriter's own sites.
fn sites(file: &str) -> BTreeSet<(u64, u64)> {
    let listed = Command::new(env!("CARGO_BIN_EXE_cuinstr")).current_dir(root()).args([file, "--list", "--format", "json", "-q"]).output();
    let listed = listed.expect("the command runs");
    let map: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("a site map is JSON");
    let is_loop = |site: &&serde_json::Value| matches!(site["kind"].as_str(), Some("for" | "range-for" | "while" | "do" | "goto"));
    let all = map["sites"].as_array().expect("there is a list of sites");
    all.iter().filter(is_loop).filter_map(|site| Some((site["line"].as_u64()?, site["column"].as_u64()?))).collect()
}

#[test]
fn every_loop_that_clang_sees_in_a_kernel_has_a_site_and_every_site_is_a_loop_that_it_sees() {
    for kernel in SLICE {
        let file = format!("kernels/{kernel}.cu");
        let output = answer(&["--format", "json", &file, "--", "-std=c++17"]);
        let (seen, without) = loops(&String::from_utf8_lossy(&output.stdout), &file);
        assert_eq!(without, Vec::<String>::new(), "{file}");
        let expected = sites(&file);
        let clang_lacks: Vec<_> = expected.difference(&seen).collect();
        assert!(clang_lacks.is_empty(), "{file}: clang does not see {clang_lacks:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_loop_of_a_system_header_is_listed_where_device_code_reaches_it() {
    let output = answer(&["kernels/cg_grid_sync.cu"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let of_header = |line: &&str| line.contains("in a header of the system") && line.contains("cooperative_groups");
    assert!(text.lines().any(|line| of_header(&line)), "{text}");
    let output = answer(&["kernels/saxpy.cu"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("in a header of the system, not"), "no other loops");
}

#[test]
fn a_header_that_says_that_it_is_the_systems_is_the_users_own_below_a_folder_of_the_users() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for (path, function) in [("own/own.cuh", "own"), ("system/theirs.cuh", "theirs")] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        let text =
            format!("#pragma once\n#pragma GCC system_header\n__device__ inline void {function}(volatile int* p) {{ while (*p) {{}} }}\n");
        std::fs::write(path, text).expect("the file can be written");
    }
    let file = folder.path().join("a.cu");
    std::fs::write(&file, "#include <own.cuh>\n#include <theirs.cuh>\n__global__ void go(volatile int* p) { own(p); theirs(p); }\n")
        .expect("writable");
    let (file, path) = (file.to_string_lossy().into_owned(), |name: &str| folder.path().join(name).to_string_lossy().into_owned());
    let output = answer(&[&file, "--", &format!("-I{}", path("own")), "-isystem", &path("system")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("own.cuh:3:47: while in `own`: polled"), "{text}");
    assert!(text.contains("while in `theirs`: in a header of the system, not rewritten"), "{text}");
    assert!(text.contains("2 loops in device code: 1 polled"), "{text}");
}

#[test]
fn a_loop_that_only_the_preprocessor_shows_is_found_to_have_no_site() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("hidden.cu");
    let text = "ON_GPU void spin(volatile int* flag) {\n  int rest = REST;\n}\n__global__ void go(volatile int* flag) { spin(flag); }\n";
    std::fs::write(&file, text).expect("the file can be written");
    let file = file.to_string_lossy().into_owned();
    let output = answer(&[&file, "--", "-DON_GPU=__device__", "-DREST=0; while (*flag == 0) rest = 1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("hidden.cu:2:14: while in `spin`: NO SITE"), "{text}");
}

#[test]
fn without_libclang_it_says_what_to_install() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    // An empty folder: nothing else is searched if this is set.
    let output = audit(&["kernels/saxpy.cu", "--cuda-path"]).arg(folder.path()).env("LIBCLANG_PATH", folder.path()).output();
    let errors = String::from_utf8_lossy(&output.expect("the command runs").stderr).into_owned();
    assert!(errors.contains("CI059") && errors.contains("--cuda-path"), "{errors}");
    std::fs::create_dir(folder.path().join("include")).expect("a folder can be made");
    std::fs::write(folder.path().join("include/cuda_runtime.h"), "").expect("a file can be written");
    let output = audit(&["kernels/saxpy.cu", "--cuda-path"]).arg(folder.path()).env("LIBCLANG_PATH", folder.path()).output();
    let output = output.expect("the command runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("CI058") && errors.contains("apt-get install libclang"), "{errors}");
    assert_eq!(output.status.code(), Some(3), "a tool that is missing is no finding");
}
