//! With nvcc itself: each form of its output, names, messages and dependencies are those of a plain compilation.

use crate::project::{BINARY, Project, expect, text};
use cuinstr_trial::or_ignore;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// nvcc of `CUDA_HOME`, of the search path or of `.cuda`. Without one the test is ignored with the reason, unless `CUINSTR_REQUIRE` names it.
pub(crate) fn nvcc() -> PathBuf {
    let home = std::env::var_os("CUDA_HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cuda/bin");
    let folders = home.into_iter().chain(std::env::split_paths(&path)).chain([fetched]);
    let found = folders.map(|folder| folder.join("nvcc")).find(|path| path.is_file()).and_then(|path| path.canonicalize().ok());
    or_ignore("nvcc", found.ok_or_else(|| "there is no nvcc".into()))
}

const KERNEL: &str = "#include \"work.cuh\"\n#include <cstdio>\n\n__global__ void kernel(int* p, int n) {\n    for (int i = 0; i < n; ++i) p[i] = work(n);\n}\n\n\
                      int main() {\n    std::printf(\"%s:%d %s\\n\", __FILE__, __LINE__, place());\n    return 0;\n}\n";

const HEADER: &str = "#pragma once\ninline const char* place() { return __FILE__; }\n__host__ __device__ inline int work(int n) {\n    int steps = 0;\n    \
                      while (n > 1) {\n        n = n % 2 ? 3 * n + 1 : n / 2;\n        ++steps;\n    }\n    return steps;\n}\n";

/// Two copies of one project, and nvcc.
struct Twins {
    nvcc: PathBuf,
    plain: Project,
    ours: Project,
}

impl Twins {
    fn new() -> Self {
        let files = [("src/a.cu", KERNEL), ("include/work.cuh", HEADER), ("words.txt", "-c src/a.cu -Iinclude -lineinfo")];
        Self { nvcc: nvcc(), plain: Project::new(&files), ours: Project::new(&files) }
    }

    /// The same words plainly and by the launcher.
    fn run(&self, words: &[&str]) -> (Output, Output) {
        let run = |project: &Project, command: &mut Command| {
            let output = command.args(words).output().expect("it starts");
            assert_eq!(project.left_behind(), Vec::<PathBuf>::new(), "{words:?}");
            output
        };
        (run(&self.plain, &mut self.plain.command(&self.nvcc)), run(&self.ours, self.ours.command(BINARY).arg(&self.nvcc)))
    }

    /// The same, which must succeed and say the same.
    fn same(&self, words: &[&str]) {
        let (plain, ours) = self.run(words);
        assert!(plain.status.success(), "{words:?}: {}", text(&plain.stderr));
        let shown = (ours.status.code(), text(&ours.stdout), text(&ours.stderr));
        assert_eq!(shown, (plain.status.code(), text(&plain.stdout), text(&plain.stderr)), "{words:?}");
        let (plain, ours) = (files(&self.plain), files(&self.ours));
        assert_eq!(ours.keys().collect::<Vec<_>>(), plain.keys().collect::<Vec<_>>(), "{words:?}");
        for (name, bytes) in &ours {
            let has = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
            assert!(!has(b"/cuinstr-"), "{words:?}: {name} holds a path of ours");
            if Path::new(name).extension().is_some_and(|extension| extension == "d") {
                assert_eq!(text(bytes), text(&plain[name]), "{words:?}: {name}");
            }
        }
    }
}

/// All files of a project by their paths, without those of the shim.
fn files(project: &Project) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![project.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(project.path()).expect("it lies there").to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).expect("readable"));
            }
        }
    }
    found
}

#[test]
fn each_form_of_output_is_nvccs_own_and_rewritten() {
    let twins = Twins::new();
    let strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"];
    twins.same(&[&["-Iinclude", "-c", "src/a.cu", "-MD", "-MT", "made.o", "-g", "-lineinfo"][..], &strict[..]].concat());
    twins.same(&["-I", "include", "-ptx", "-lineinfo", "src/a.cu"]);
    twins.same(&["-Iinclude", "-fatbin", "-arch=sm_90", "src/a.cu", "-o", "a.fatbin"]);
    twins.same(&["-Iinclude", "-M", "src/a.cu", "-o", "all.d"]);
    twins.same(&["-Iinclude", "-MM", "src/a.cu"]);
    twins.same(&["--options-file", "words.txt", "-o", "optf.o"]);
    // As builds ask for what a compiler can do.
    twins.same(&["-x", "cu", "-c", "/dev/null", "-o", "none.o"]);
    let ptx = twins.ours.path().join("a.ptx");
    let proof = expect(Command::new(BINARY).arg("verify").arg("--list").arg(&ptx), 0);
    assert!(text(&proof.stdout).contains("include/work.cuh:5"), "{}", text(&proof.stdout));
    let plain = Command::new(BINARY).arg("verify").arg(twins.plain.path().join("a.ptx")).output().expect("it starts");
    assert_eq!(plain.status.code(), Some(1), "the plain kernel is not proved, so the proof says something");
}

#[test]
fn sources_outputs_and_temporary_folders_may_bear_any_name_that_nvcc_takes() {
    let twins = Twins::new();
    let (source, output) = ("it's a größe;日本/ein (Kern) & #1.cu", "out put/ö'.o");
    for project in [&twins.plain, &twins.ours] {
        project.write(source, KERNEL);
        project.write("out put/none", "");
        fs::remove_dir(project.temporary()).expect("it is empty");
        fs::create_dir(project.path().join("it's größe")).expect("a folder");
        std::os::unix::fs::symlink("it's größe", project.temporary()).expect("a link");
    }
    twins.same(&["-Iinclude", "-c", source, "-o", output, "-MD", "-lineinfo"]);
    let object = fs::read(twins.ours.path().join(output)).expect("readable");
    assert!(object.windows(15).any(|part| part == b"cuinstr_flag_v1"), "the object can be stopped");
}

#[test]
fn a_program_of_several_units_links_and_says_what_the_plain_one_says() {
    let twins = Twins::new();
    for project in [&twins.plain, &twins.ours] {
        project.write("b.txt", "#include \"work.cuh\"\n__global__ void other(int* p) { while (*p) { *p = work(*p); } }\n");
        project.write("c.cpp", "int c() { return 1; }\n");
    }
    twins.same(&["-Iinclude", "-rdc=true", "-ccbin", "g++", "-x", "cu", "src/a.cu", "b.txt", "c.cpp", "-o", "program"]);
    let says = |project: &Project| text(&expect(&mut project.command(project.path().join("program")), 0).stdout);
    assert_eq!(says(&twins.ours), says(&twins.plain));
    assert_eq!(says(&twins.ours), "src/a.cu:9 include/work.cuh\n");
    let program = fs::read(twins.ours.path().join("program")).expect("readable");
    let maps = cuinstr_image::read(&program).expect("it has parts").site_maps;
    let files: BTreeSet<&str> = maps.iter().map(|map| &*map.file).collect();
    assert_eq!(files, BTreeSet::from(["b.txt", "include/work.cuh", "src/a.cu"]));
    assert!(program.windows(15).any(|part| part == b"cuinstr_flag_v1"), "the program can be stopped");
}

#[test]
fn messages_are_nvccs_own() {
    let twins = Twins::new();
    for (file, source) in [
        ("src/bad.cu", "#include \"work.cuh\"\n__global__ void k(int* p) {\n    p[0] = nothing;\n}\n"),
        ("src/warned.cu", "__global__ void k(int* p) {\n    int unused;\n    p[0] = 1;\n}\n"),
        ("src/missing.cu", "#include \"not there.h\"\n"),
        ("src/host.cu", "int f() { return undeclared(); }\n"),
    ] {
        for project in [&twins.plain, &twins.ours] {
            project.write(file, source);
        }
        let (plain, ours) = twins.run(&["-Iinclude", "-c", file, "-o", "bad.o"]);
        assert_eq!((ours.status.code(), text(&ours.stderr)), (plain.status.code(), text(&plain.stderr)), "{file}");
        assert!(!plain.stderr.is_empty(), "{file}");
    }
}

/// A wait that no poll can end.
const WAITER: &str = r#"
template <class T> __global__ void waiter(T *p) {
  __shared__ unsigned long long barrier;
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  asm volatile("{ .reg .pred P; L: mbarrier.try_wait.parity.shared.b64 P, [%0], 0; @!P bra L; }" :: "r"(at) : "memory");
  *p = 1;
}
template __global__ void waiter<int>(int *);
"#;

#[test]
fn a_compilation_fails_if_the_proof_does() {
    let nvcc = nvcc();
    // A loop in a system's header is none of ours to rewrite, and none that can be stopped.
    let hidden = "__device__ inline void hidden(volatile int* p) { while (*p) { } }\n";
    let user = "#include <hidden.h>\n__global__ void kernel(int* p) { hidden(p); }\n";
    let project = Project::new(&[("a.cu", KERNEL), ("include/work.cuh", HEADER), ("system/hidden.h", hidden), ("b.cu", user)]);
    let run = |words: &[&str], code| {
        let mut command = project.command(BINARY);
        command.arg(&nvcc).args(["-Iinclude", "-isystem", "system", "-lineinfo"]).args(words).env("CUINSTR_FLAGS", "--verify");
        text(&expect(&mut command, code).stderr)
    };
    assert_eq!(run(&["-c", "a.cu", "-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"], 0), "");
    assert!(project.path().join("a.o").is_file());
    for (words, output) in
        [(&["-c", "b.cu"][..], "b.o"), (&["-ptx", "b.cu"], "b.ptx"), (&["-cubin", "-arch=sm_90", "b.cu", "-o", "b.bin"], "b.bin")]
    {
        let message = run(words, 1);
        assert!(message.contains("system/hidden.h:1:") && message.contains("error[CI050]"), "{message}");
        assert!(!project.path().join(output).exists(), "{output}");
    }
    project.write("c.cu", WAITER);
    let message = run(&["-cubin", "-arch=sm_90", "c.cu"], 1);
    assert!(message.contains("c.cu:5:3: error[CI052]: a loop in `waiter<int>` waits in hardware\n"), "{message}");
    assert!(run(&["-c", "a.cu", "--keep"], 2).contains("do not go together"));
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
    assert!(
        fs::read_dir(project.path()).expect("readable").all(|entry| entry
            .expect("readable")
            .path()
            .extension()
            .is_none_or(|ending| ending != "ptx"))
    );
}

#[test]
fn the_toolkits_own_device_headers_are_rewritten_when_asked() {
    let nvcc = nvcc();
    let source = "#include <cooperative_groups.h>\n__global__ void steps(int* p) {\n    auto grid = cooperative_groups::this_grid();\n    \
                  for (int i = 0; i < p[0]; ++i) grid.sync();\n}\n";
    let project = Project::new(&[("a.cu", source)]);
    let run = |flags: &str, code| {
        let mut command = project.command(BINARY);
        command.arg(&nvcc).args(["-c", "a.cu", "-lineinfo", "-Werror", "all-warnings", "-MD", "-Xcompiler", "-Wall,-Wextra,-Werror"]);
        text(&expect(command.env("CUINSTR_FLAGS", flags), code).stderr)
    };
    // The wait for all other blocks is a loop in a header of the toolkit.
    let message = run("--verify", 1);
    assert!(message.contains("cooperative_groups/details/sync.h") && message.contains("error[CI050]"), "{message}");
    assert_eq!(run("--verify --system-headers", 0), "");
    let dependencies = fs::read_to_string(project.path().join("a.d")).expect("readable");
    assert!(dependencies.contains("cooperative_groups/details/sync.h") && !dependencies.contains("/cuinstr-"), "{dependencies}");
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_program_whose_launches_can_be_paused_is_built() {
    let nvcc = nvcc();
    let project =
        Project::new(&[("a.cu", "__global__ void k(volatile int* p) { while (*p) { } }\nint main() { k<<<1, 1>>>(nullptr); }\n")]);
    for words in [["-std=c++14", "-rdc=false"], ["-std=c++17", "-rdc=true"]] {
        let mut command = Command::new(BINARY);
        command.current_dir(project.path()).env("CUINSTR_FLAGS", "--pausable").env("TMPDIR", project.temporary());
        expect(command.arg(&nvcc).args(words).args(["-arch=sm_90", "a.cu", "-o", "a"]), 0);
    }
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}
