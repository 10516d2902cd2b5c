//! The example crate, built by Cargo as its users would build it.

use crate::project::{Project, text};
use crate::toolkit::nvcc;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A copy of the example, so that the test can change it, with the workspace's own choice of versions.
fn example(project: &Project) {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace");
    let source = workspace.join("examples/cargo");
    for name in ["build.rs", "src/main.rs", "cuda/steps.cu", "cuda/halve.cu", "cuda/include/collatz.cuh"] {
        project.write(name, &fs::read_to_string(source.join(name)).expect("a file of the example"));
    }
    let manifest = fs::read_to_string(source.join("Cargo.toml")).expect("a manifest");
    let workspace_path = workspace.to_str().expect("a path of UTF-8");
    project.write("Cargo.toml", &manifest.replace("../../", &format!("{workspace_path}/")));
    project.write("Cargo.lock", &fs::read_to_string(workspace.join("Cargo.lock")).expect("a lock file"));
}

/// `cargo WORDS…` in the copy. What it needs was fetched when this test was built.
fn cargo(project: &Project, nvcc: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(project.path()).args(words).args(["--offline", "--color", "never"]);
    command
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("example"))
        // Without debug information the crates of the build script and those of the program are the same, and compile once.
        .envs([("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")])
        .env("NVCC", nvcc)
        .env("TMPDIR", project.temporary());
    for name in ["CUINSTR_FLAGS", "CUINSTR_SESSION", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(name);
    }
    command.output().expect("Cargo starts")
}

#[test]
fn a_crate_with_a_build_script_is_built_and_verified() {
    let nvcc = nvcc();
    let project = Project::new(&[]);
    example(&project);
    let output = cargo(&project, &nvcc, &["run"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("27 takes 111 steps\nthe image has kernel `halve`\n"), "{said}{}", text(&output.stderr));
    // Where there is a GPU: the second launch has a zero among its numbers.
    if !said.contains("not launched: ") {
        assert!(said.contains("[12, 5, 1, 2147483648] became [1, 1, 1, 1]\n"), "{said}");
        assert!(said.contains("cuda/halve.cu:4"), "{said}");
    }

    // A kernel that the source does not have is an error of the compiler.
    let main = fs::read_to_string(project.path().join("src/main.rs")).expect("a source");
    project.write("src/main.rs", &main.replace("?.halve()?", "?.halves()?"));
    let output = cargo(&project, &nvcc, &["build"]);
    let message = text(&output.stderr);
    assert!(!output.status.success() && message.contains("no method named `halves`"), "{message}");

    // A header that changes is compiled again, and one that does not is not.
    project.write("src/main.rs", &main);
    let header = fs::read_to_string(project.path().join("cuda/include/collatz.cuh")).expect("a header");
    project.write("cuda/include/collatz.cuh", &header.replace("steps = 0", "steps = 1"));
    assert!(text(&cargo(&project, &nvcc, &["run"]).stdout).starts_with("27 takes 112 steps"));
    assert!(!text(&cargo(&project, &nvcc, &["build"]).stderr).contains("Compiling"));

    // Machine code, and both in one, name their kernels as PTX does.
    let script = fs::read_to_string(project.path().join("build.rs")).expect("a build script");
    let ptx = "build.file(\"cuda/halve.cu\").compile_image(Image::Ptx, \"halve\");";
    let others = "build.file(\"cuda/halve.cu\").verify(false).compile_image(Image::Cubin, \"halve\");\n    build.compile_image(Image::Fatbin, \"both\");";
    assert!(script.contains(ptx), "{script}");
    project.write("build.rs", &script.replace(ptx, others));
    let both = "cuinstr_runtime::include_module!(mod both);\n\nconst _: &str = both::kernel::HALVE;\n\nfn main()";
    project.write("src/main.rs", &main.replace("fn main()", both));
    let said = cargo(&project, &nvcc, &["run"]);
    assert!(text(&said.stdout).contains("the image has kernel `halve`"), "{}", text(&said.stderr));
    project.write("build.rs", &script);
    project.write("src/main.rs", &main);

    // A gap is a warning of Cargo's, and the proof does not hold for it.
    let gap = "__global__ void wait() {\n  asm volatile(\"L: bra L;\");\n}\n";
    project.write("cuda/halve.cu", &format!("{}{gap}", fs::read_to_string(project.path().join("cuda/halve.cu")).expect("a source")));
    let output = cargo(&project, &nvcc, &["build"]);
    let message = text(&output.stderr);
    assert!(!output.status.success() && message.contains("cuda/halve.cu:7:3: warning[CI013]"), "{message}");
    assert!(message.contains("it is not proved that every loop can be stopped"), "{message}");

    let output = cargo(&project, Path::new("/nowhere/nvcc"), &["build"]);
    let message = text(&output.stderr);
    assert!(!output.status.success() && message.contains("cuinstr: error: there is no program `/nowhere/nvcc`"), "{message}");
    assert_eq!(project.left_behind(), Vec::<std::path::PathBuf>::new());
}
