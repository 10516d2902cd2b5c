//! Build systems as they are: `CMake` and make, with one word more on their command line.

use crate::project::{BINARY, Project, expect, text};
use crate::toolkit::nvcc;
use cuinstr_trial::or_ignore;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADER: &str = "#pragma once\ninline const char* place() { return __FILE__; }\n__host__ __device__ inline int work(int n) {\n    int s = 0;\n    while (n > 1) n = n % 2 ? 3 * n + 1 : n / 2, ++s;\n    return s;\n}\n";
const PART: &str = "#include \"work.cuh\"\n__device__ int part(int n) { while (n > 0) n -= work(n) + 1; return n; }\n";
const MAIN: &str = "#include \"work.cuh\"\n#include <cstdio>\n__device__ int part(int n);\nint host();\n\
                    __global__ void kernel(int* p) { while (*p) *p = part(*p); }\nint main() { std::printf(\"%s %d\\n\", place(), host()); }\n";

fn project(files: &[(&str, &str)]) -> Project {
    let project =
        Project::new(&[("include/work.cuh", HEADER), ("part.cu", PART), ("main.cu", MAIN), ("host.cpp", "int host() { return 3; }\n")]);
    for (path, text) in files {
        project.write(path, text);
    }
    project
}

/// A tool of the search path, or of `.cmake`. Without it the test is ignored, unless `CUINSTR_REQUIRE` names it.
fn tool(name: &str, requirement: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cmake/bin");
    let found = std::env::split_paths(&path).chain([fetched]).map(|folder| folder.join(name)).find(|path| path.is_file());
    or_ignore(requirement, found.ok_or_else(|| format!("there is no {name}")))
}

/// The program says what it would say without us, has our control block in it, and every object's PTX is proved.
fn check(project: &Project, program: &str, objects: &[&str], place: &str) {
    let path = project.path().join(program);
    assert_eq!(text(&expect(&mut Command::new(&path), 0).stdout), format!("{place} 3\n"));
    for object in objects {
        let proof = project.command(BINARY).args(["verify", "--format", "json", object]).output().expect("it starts");
        let report: serde_json::Value =
            serde_json::from_slice(proof.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default()).expect("JSON");
        let loops = report["report"]["loops"].as_array().expect("loops");
        assert!(!loops.is_empty(), "{object}");
        let not_polled = loops.iter().filter(|found| found["verdict"].to_string().contains("not-polled")).count();
        assert_eq!(not_polled, 0, "{object}: {}{}", text(&proof.stdout), text(&proof.stderr));
    }
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_cmake_project_is_built_with_one_variable() {
    let (nvcc, cmake, ninja) = (nvcc(), tool("cmake", "cmake"), tool("ninja", "cmake"));
    let project = project(&[(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.24)\nproject(door LANGUAGES CXX CUDA)\nadd_library(part STATIC part.cu)\n\
         target_include_directories(part PUBLIC include)\nadd_executable(program main.cu host.cpp)\ntarget_link_libraries(program part)\n\
         set_target_properties(part program PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n",
    )]);
    let define = |name: &str, value: &Path| format!("-D{name}={}", value.display());
    let mut configure = project.command(&cmake);
    configure.args(["-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_CUDA_ARCHITECTURES=90"]);
    configure.args([define("CMAKE_CUDA_COMPILER", &nvcc), define("CMAKE_MAKE_PROGRAM", &ninja)]);
    configure.arg(define("CMAKE_CUDA_COMPILER_LAUNCHER", Path::new(BINARY)));
    expect(&mut configure, 0);
    let build = || text(&expect(project.command(&cmake).args(["--build", "build", "--parallel", "2"]), 0).stdout);
    build();
    let place = project.path().canonicalize().expect("it is there").join("include/work.cuh");
    let objects = ["build/CMakeFiles/part.dir/part.cu.o", "build/CMakeFiles/program.dir/main.cu.o"];
    check(&project, "build/program", &objects, &place.to_string_lossy());
    // The dependencies are the user's own files: nothing is built twice, and a header that changes is.
    assert!(build().contains("no work to do"));
    project.write("include/work.cuh", &HEADER.replace("int s = 0", "int s = 1"));
    assert_eq!(build().matches("Building CUDA object").count(), 2);
}

#[test]
fn a_makefile_is_built_with_one_variable() {
    let (nvcc, make) = (nvcc(), tool("make", "make"));
    let project = project(&[(
        "Makefile",
        "NVCC = nvcc\nFLAGS = -Iinclude -gencode arch=compute_90,code=compute_90 -rdc=true\nprogram: part.o main.o host.o\n\t$(NVCC) $(FLAGS) $^ -o $@\n\
         %.o: %.cu\n\t$(NVCC) $(FLAGS) -MMD -c $< -o $@\n%.o: %.cpp\n\t$(CXX) -c $< -o $@\n-include part.d main.d\n",
    )]);
    let build = || {
        let launcher = format!("NVCC={BINARY} {}", nvcc.display());
        text(&expect(project.command(&make).args(["-j2", &launcher]), 0).stdout)
    };
    build();
    check(&project, "program", &["part.o", "main.o"], "include/work.cuh");
    assert!(build().contains("up to date"));
    project.write("include/work.cuh", &HEADER.replace("int s = 0", "int s = 1"));
    assert_eq!(build().matches(" -c ").count(), 2);
}

#[test]
fn ptx_is_built_for_hosts_that_load_it_themselves() {
    let (nvcc, make) = (nvcc(), tool("make", "make"));
    let project = project(&[
        ("kernel.cu", "#include \"work.cuh\"\nextern \"C\" __global__ void kernel(int* p) { while (*p != 1) *p = work(*p); }\n"),
        (
            "Makefile",
            "NVCC = nvcc\nall: kernel.ptx kernel.cubin\nkernel.ptx: kernel.cu\n\t$(NVCC) -Iinclude -arch=compute_90 -lineinfo -MMD -ptx $< -o $@\n\
             kernel.cubin: kernel.ptx\n\t$(NVCC) -arch=sm_90 -cubin $< -o $@\n-include kernel.d\n",
        ),
    ]);
    let build = |launcher: &str| {
        let compiler = format!("NVCC={launcher} {}", nvcc.display());
        text(&expect(project.command(&make).args(["-j2", &compiler]), 0).stdout)
    };
    build(BINARY);
    let read = |name: &str| std::fs::read(project.path().join(name)).expect("it is built");
    let ptx = text(&read("kernel.ptx"));
    // What a host looks for by name is there, and lines are the user's own.
    for name in
        [".visible .entry kernel(", "cuinstr_control_v1", "cuinstr_flag_v1", "__cuinstr_sites_unit", "include/work.cuh\"", "kernel.cu\""]
    {
        assert!(ptx.contains(name), "{name}");
    }
    assert!(!ptx.contains("cuinstr-"), "a path of ours");
    let proof = text(&expect(project.command(BINARY).args(["verify", "--list", "kernel.ptx"]), 0).stdout);
    assert!(proof.contains("kernel.cu:2") && proof.contains("include/work.cuh:5"), "{proof}");
    // nvcc's own step from there on has nothing to rewrite, and what it makes can be stopped all the same.
    let cubin = read("kernel.cubin");
    assert!(cubin.windows(18).any(|part| part == b"cuinstr_control_v1"));
    assert!(build(BINARY).contains("Nothing to be done"));
    project.write("include/work.cuh", &HEADER.replace("int s = 0", "int s = 1"));
    assert_eq!(build(BINARY).matches(" -o ").count(), 2);
    // Without us the same Makefile gives PTX that is not proved.
    project.write("kernel.cu", "__global__ void kernel(volatile int* p) { while (*p) {} }\n");
    build("env");
    assert!(!text(&read("kernel.ptx")).contains("cuinstr"));
    expect(project.command(BINARY).args(["verify", "kernel.ptx"]), 1);
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_cache_serves_no_object_that_was_made_without_us_or_otherwise() {
    let (nvcc, ccache) = (nvcc(), tool("ccache", "ccache"));
    let project = project(&[]);
    let link = project.link("nvcc");
    let search_path = std::env::join_paths(
        std::iter::once(nvcc.parent().expect("a folder").to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let search_path = search_path.expect("a path");
    // Whether it was compiled, and what came of it.
    let build = |compiler: &Path, flags: &str| {
        let object = project.path().join("part.o");
        let _ = std::fs::remove_file(&object);
        let mut command = project.command(&ccache);
        command.arg(compiler).args(["-arch=sm_90", "-c", "-Iinclude", "part.cu", "-o", "part.o"]);
        command.env("PATH", &search_path).env("CCACHE_DIR", project.path().join("cache")).env("CUINSTR_FLAGS", flags);
        for name in
            ["CCACHE_CONFIGPATH", "CCACHE_DISABLE", "CCACHE_COMPILERCHECK", "CCACHE_COMPILERTYPE", "CCACHE_DEPEND", "CCACHE_NODIRECT"]
        {
            command.env_remove(name);
        }
        command.env("CCACHE_LOGFILE", project.path().join("log"));
        expect(&mut command, 0);
        let log = std::fs::read_to_string(project.path().join("log")).expect("ccache writes it");
        std::fs::remove_file(project.path().join("log")).expect("it is ours");
        assert!(!log.contains("falling back to running the real compiler"), "{log}");
        let is_hit = log.contains("Result: direct_cache_hit") || log.contains("Result: preprocessed_cache_hit");
        (is_hit, std::fs::read(&object).expect("an object"))
    };
    let (hit, plain) = build(&nvcc, "");
    assert!(!hit && build(&nvcc, "") == (true, plain.clone()));
    let settings = ["", "--timeout 2s", "--polls each", "--verify"];
    let mut made = Vec::new();
    for flags in settings {
        let (hit, object) = build(&link, flags);
        assert!(!hit && object != plain, "{flags}");
        made.push(object);
    }
    for (flags, object) in settings.iter().zip(&made) {
        assert_eq!(build(&link, flags), (true, object.clone()), "{flags}");
    }
    assert!(made[0] != made[1] && made[0] != made[2]);
    // What `cuinstr.toml` says is no part of any source, and a header is.
    project.write("cuinstr.toml", "exclude = [\"part.cu\"]\n");
    assert!(!build(&link, "").0);
    std::fs::remove_file(project.path().join("cuinstr.toml")).expect("it is ours");
    assert_eq!(build(&link, ""), (true, made[0].clone()));
    project.write("include/work.cuh", &HEADER.replace("int s = 0", "int s = 1"));
    assert!(!build(&link, "").0);
    assert!(!build(&nvcc, "").0);
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}
