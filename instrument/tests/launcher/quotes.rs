//! Messages of nvcc and of its compilers quote the user's own lines: each is the very text that a plain compilation prints.

use crate::project::{BINARY, Project, SPIN, expect, text};
use crate::toolkit::nvcc;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

/// Lines in which polls stand, and something unused behind these: the compiler quotes them.
const KERNEL: &str = r#"#include <cassert>
#include "work.cuh"
#warning "look here"
#define SPIN(n, body) for (int q = 0; q < (n); ++q) { body }
#define STR(x) #x
__device__ int many(int *p, int n) {
	while (*p) { int a1; }
    SPIN(n, int m1; while (p[1]) { int m2; }) int m3;
	if (n > 3)	for (int i = 0; i<n;++i) p[i]++; int t4; /* c */ do { p[2]--; int d5; } while(p[2]>0); int d6;
    const char *s = u8"éé漢	"; p[0] = s[0]; while (p[3]) p[3]--; int u7;
    for (int i = 0; i < n; ++i) { assert(p[i] > 0); int as8; }
    const char *str = STR(for (;;) { if (*p) break; }); int s9;
    return 1; while (*p) {} int unreached;
}
__global__ void k(int *p, int n) { int w; many(p, n); work(p); __syncthreads(); int w2; }
template <class T> __device__ T tmpl(T *p) { while (*p) { T in_t; unsigned z = *p; if (z < 0) return 1; } return 0; }
__global__ void k2(int *p) { tmpl(p); }
static int on_the_host(int n) { int unused; while (n--) { int inner; } return n; }
"#;

const HEADER: &str = "#pragma once\n__device__ inline void work(int* p) { while (*p) { int in_header; } int behind; }\n";

/// Two copies of a project.
fn projects(source: &str) -> (Project, Project) {
    let files = [("a.cu", source), ("work.cuh", HEADER)];
    (Project::new(&files), Project::new(&files))
}

/// The plain compilation, and ours.
fn commands(nvcc: &Path, plain: &Project, ours: &Project, words: &[&str]) -> (Command, Command) {
    let (mut by_nvcc, mut by_us) = (plain.command(nvcc), ours.command(BINARY));
    by_nvcc.args(words);
    by_us.arg(nvcc).args(words).env("CUINSTR_FLAGS", "--quiet");
    (by_nvcc, by_us)
}

/// What both print, which must quote lines with polls.
fn both(nvcc: &Path, source: &str, words: &[&str]) -> (Output, Output) {
    let (plain, ours) = projects(source);
    let (mut by_nvcc, mut by_us) = commands(nvcc, &plain, &ours, words);
    let (expected, found) = (by_nvcc.output().expect("it starts"), by_us.output().expect("it starts"));
    assert_eq!(text(&found.stdout), text(&expected.stdout));
    assert_eq!(found.status.code(), expected.status.code(), "{}", text(&found.stderr));
    assert!(ours.left_behind().is_empty());
    (expected, found)
}

#[test]
fn warnings_are_those_of_a_plain_compilation() {
    let nvcc = nvcc();
    let (expected, found) = both(&nvcc, KERNEL, &["-arch=sm_90", "-std=c++17", "-ptx", "a.cu"]);
    assert_eq!(text(&found.stderr), text(&expected.stderr));
    for name in ["a1", "m2", "m3", "d5", "d6", "u7", "as8", "s9", "w2"] {
        assert!(text(&expected.stderr).contains(&format!("variable \"{name}\" was declared")), "{}", text(&expected.stderr));
    }
    let (expected, found) = both(&nvcc, KERNEL, &["-arch=sm_90", "-std=c++17", "-ptx", "-Werror", "all-warnings", "a.cu"]);
    assert_eq!(text(&found.stderr), text(&expected.stderr));
    assert_ne!(expected.status.code(), Some(0));
}

#[test]
fn errors_of_the_preprocessor_and_of_the_compiler_are_those_of_a_plain_compilation() {
    let nvcc = nvcc();
    let too_few =
        "#define TWO(a, b) a + b\n__device__ int f(int* p) { while (*p) { --*p; } return TWO(*p); }\n#define AGAIN 1\n#define AGAIN 2\n";
    let latin = "__device__ int f(int* p) { while (*p) { --*p; } const char* s = \"\u{e9}\"; return undeclared; }\n";
    for source in [too_few, latin] {
        let (expected, found) = both(&nvcc, source, &["-arch=sm_90", "-ptx", "a.cu"]);
        assert_eq!(text(&found.stderr), text(&expected.stderr));
        assert!(text(&expected.stderr).contains("error"), "{}", text(&expected.stderr));
    }
}

#[test]
fn messages_of_compilers_that_run_at_a_time_and_of_the_hosts_are_those_of_plain_ones() {
    let nvcc = nvcc();
    let archs = ["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"];
    let words = [&["-t", "2", "-Xcompiler", "-Wall", "-std=c++17", "-c", "a.cu", "-o", "a.o"][..], &archs].concat();
    let (expected, found) = both(&nvcc, KERNEL, &words);
    // Which of them prints first is not the same twice.
    let sorted = |output: &Output| {
        let mut lines: Vec<String> = text(&output.stderr).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&found), sorted(&expected));
    assert!(text(&expected.stderr).contains("-Wunused"), "{}", text(&expected.stderr));
}

#[test]
fn where_both_streams_are_one_their_order_is_kept() {
    let project = Project::new(&[("a.cu", SPIN)]);
    let mut command = project.command("sh");
    command.arg("-c").arg(format!("'{BINARY}' nvcc -c a.cu 2>&1 | cat"));
    let printed = expect(command.env("SHIM_THEN", "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; printf '  at the end'"), 0);
    let lines: Vec<String> = (1..6).map(|number| format!("out {number}\nerr {number}\n")).collect();
    assert_eq!(text(&printed.stdout), lines.concat() + "  at the end");
}

/// What a command prints to a terminal.
fn on_terminal(command: &mut Command) -> Vec<u8> {
    let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&reader).and_then(|()| unlockpt(&reader)).expect("a terminal");
    let path = ptsname(&reader, Vec::new()).expect("a path");
    let writer = OpenOptions::new().read(true).write(true).open(path.to_str().expect("a path")).expect("a terminal");
    command.stdout(writer.try_clone().expect("a file")).stderr(writer).env("TERM", "xterm");
    let mut child = command.spawn().expect("it starts");
    // The command holds its own ends of the terminal.
    *command = Command::new("true");
    let mut printed = Vec::new();
    // The last reader of a terminal that nobody writes to gets an error.
    let _ = File::from(reader).read_to_end(&mut printed);
    child.wait().expect("it ends");
    printed
}

#[test]
fn a_terminal_gets_its_colours() {
    let nvcc = nvcc();
    let (plain, ours) = projects(KERNEL);
    let (mut by_nvcc, mut by_us) = commands(&nvcc, &plain, &ours, &["-arch=sm_90", "-std=c++17", "-ptx", "a.cu"]);
    let expected = text(&on_terminal(&mut by_nvcc));
    assert_eq!(text(&on_terminal(&mut by_us)), expected);
    assert!(expected.contains("\u{1b}[") && expected.contains("a1"), "{expected}");
}

#[test]
fn a_reader_that_has_gone_ends_no_build() {
    let nvcc = nvcc();
    let (_, ours) = projects(KERNEL);
    let mut command = ours.command("sh");
    command.arg("-c").arg(format!("'{BINARY}' '{}' -arch=sm_90 -std=c++17 -ptx a.cu 2>&1 >&- | true", nvcc.display()));
    expect(command.env("CUINSTR_FLAGS", "--quiet"), 0);
    assert!(ours.left_behind().is_empty() && ours.path().join("a.ptx").is_file());
}
