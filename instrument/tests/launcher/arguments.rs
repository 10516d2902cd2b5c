//! Command lines: what reaches nvcc, and whether source is rewritten on the way.

use crate::project::{BINARY, Project, SPIN, expect, text};
use cuinstr_trial::ignore;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Command lines in which there is CUDA source, or may be.
const CUDA: &[&str] = &[
    "a.cu",
    "-c a.cu",
    "-c a.cu -o a.o",
    "-c a.cu -o=a.o",
    "--compile a.cu --output-file a.o",
    "-dc a.cu",
    "--device-c a.cu",
    "-dw a.cu -o a.o",
    "-rdc=true -c a.cu",
    "-rdc true -c a.cu",
    "--relocatable-device-code=true a.cu b.cu -o prog",
    "-ptx a.cu",
    "-ptx a.cu -o out/a.ptx",
    "-cubin -arch=sm_90 a.cu",
    "-fatbin -gencode arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=[sm_90,compute_90] a.cu",
    "-optix-ir a.cu",
    "-E a.cu",
    "--preprocess a.cu -o a.ii",
    "-M a.cu",
    "-MM a.cu -MT target",
    "-MD -MF a.d -MT a.o -c a.cu",
    "-MMD -MP -c a.cu",
    "--generate-dependencies-with-compile --dependency-output a.o.d -DTORCH_EXTENSION_NAME=x --compiler-options -fPIC -c a.cu -o a.o",
    "-cuda a.cu",
    "a.cu b.cpp c.o libd.a -o prog",
    "a.cu b.cu c.cu -c -odir build",
    "-x cu a.txt",
    "-x=cu a.txt -c",
    "--x cu a.txt",
    "-c -x cu a.cpp -o a.o",
    "-x c++ a.cpp -x cu b.cpp",
    "@words.txt",
    "--options-file words.txt -o a.o",
    "-optf words.txt",
    "-optf=words.txt,flags.txt",
    "-Iinclude -I include2 --include-path=a,b -isystem sys a.cu",
    "-include pre.h a.cu",
    "-DNAME=\"value\" -UOTHER -D X=1 a.cu",
    "-Xcompiler -Wall,-Wextra -Xcompiler=-fPIC a.cu",
    "-Xptxas -v -Xptxas=-O3 -Xlinker -rpath a.cu",
    "-Werror all-warnings -diag-suppress 20012 a.cu",
    "-std=c++17 -O3 --use_fast_math -lineinfo a.cu",
    "-std c++20 -G -g a.cu",
    "-t 4 -arch=all a.cu",
    "--threads=2 --split-compile 2 a.cu",
    "-forward-unknown-to-host-compiler -fopenmp a.cu",
    "-v a.cu",
    "--keep --keep-dir keep a.cu",
    "-shared -Xcompiler -fPIC a.cu -o liba.so",
    "-lib a.cu b.cu -o liba.a",
    "-run a.cu",
    "-time times.csv a.cu",
    "-m64 -maxrregcount 32 -maxrregcount=64 -e kernel a.cu",
    "-default-stream per-thread -cudart shared a.cu",
    "-code=sm_90 -arch compute_90 a.cu -lineinfo",
    "-c dir.d/a.cu",
    "-o a.cu.o -c a.cu",
];

/// Command lines without any: nvcc is not even watched.
const OTHER: &[&str] = &[
    "a.o b.o -o prog",
    "-dlink a.o b.o -o dlink.o",
    "-lib a.o -o liba.a",
    "-c a.cpp -o a.o",
    "-c a.c",
    "-shared a.o -lcudart -L/lib -o liba.so",
    "a.ptx -cubin",
    "--help",
    "-h",
    "--list-gpu-arch",
    "-code-ls",
    "-cubin -o a.cubin a.ptx -arch=sm_90",
    "--unknown",
    "-link a.o -Xlinker --as-needed",
    "",
];

fn project() -> Project {
    Project::new(&[("words.txt", "-c a.cu -DX='a b'"), ("flags.txt", "-O2"), ("a.cu", SPIN)])
}

#[test]
fn every_word_reaches_nvcc_as_it_was_given() {
    assert!(CUDA.len() + OTHER.len() >= 60);
    let project = project();
    for (lines, has_cuda) in [(CUDA, true), (OTHER, false)] {
        for line in lines {
            let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
            let output = expect(&mut project.launch(&words), 0);
            let (was_watched, mut given) = project.record();
            // Beside a cubin or fatbin nvcc keeps its PTX, which tells the calls that need polls.
            let further = given.split_off(words.len().min(given.len()));
            let may_keep = has_cuda && (line.contains("-cubin") || line.contains("-fatbin"));
            assert!(
                further.is_empty() || (may_keep && further.len() == 3 && further[..2] == ["--keep", "--keep-dir"]),
                "{line}: {further:?}"
            );
            assert_eq!((was_watched, given), (has_cuda, words.iter().map(|word| (*word).to_owned()).collect()), "{line}");
            assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()), "{line}");
            assert_eq!(project.left_behind(), Vec::<std::path::PathBuf>::new(), "{line}");
        }
    }
}

#[test]
fn each_name_of_the_launcher_does_the_same() {
    let project = project();
    let shim = project.shim();
    let calls = [
        (Path::new(BINARY).to_owned(), vec!["nvcc"]),
        (Path::new(BINARY).to_owned(), vec![shim.to_str().expect("UTF-8")]),
        (project.link("cuinstr-nvcc"), vec![]),
        (project.link("nvcc"), vec![]),
    ];
    for (program, first) in calls {
        let _ = fs::remove_file(project.path().join("toolkit/bin/record"));
        expect(project.command(&program).args(&first).args(["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
        assert_eq!(project.record(), (true, vec!["-c".to_owned(), "a.cu".to_owned()]), "{}", program.display());
        assert!(project.preprocessed("a.cu").contains("__cuinstr_"), "{}", program.display());
    }
    // A link that comes first on the search path does not find itself.
    let links = project.path().join("links");
    let path = std::env::join_paths([links.clone(), shim.parent().expect("a folder").to_owned(), "/usr/bin".into(), "/bin".into()])
        .expect("a path");
    expect(project.command(links.join("nvcc")).arg("--version").env("PATH", path), 0);
}

#[test]
fn a_launcher_below_a_launcher_does_nothing_twice() {
    let project = project();
    let link = project.link("nvcc");
    // A wrapper that calls the launcher by itself.
    project.write("wrapper/nvcc", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", link.display()));
    let wrapper = project.path().join("wrapper/nvcc");
    expect(project.command("chmod").arg("+x").arg(&wrapper), 0);
    expect(project.command(BINARY).arg(&wrapper).args(["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
    assert_eq!(project.preprocessed("a.cu").matches(" __cuinstr_guard(").count(), 1);
}

#[test]
fn another_compiler_is_refused_by_its_name() {
    let project = project();
    for (name, help) in [
        ("clang++", "nvcc only"),
        ("/opt/nvidia/nvc++", "nvcc only"),
        ("hipcc", "nvcc only"),
        ("g++-13", "nvcc only"),
        ("ccache", "in front"),
    ] {
        let output = expect(project.command(BINARY).args([name, "-c", "a.cu"]), 2);
        let message = text(&output.stderr);
        assert!(message.contains("is not nvcc") && message.contains(help), "{name}: {message}");
    }
}

#[test]
fn the_version_tells_our_objects_from_plain_ones_and_one_set_of_options_from_another() {
    let project = project();
    let mut lines = BTreeSet::new();
    for flags in ["", "--timeout 2s", "--timeout 3s", "--polls each", "--fuel 100", "--strict"] {
        let output = text(&expect(project.launch(&["--version"]).env("CUINSTR_FLAGS", flags), 0).stdout);
        let (first, last) = output.trim_end().split_once('\n').expect("two lines");
        assert_eq!(first, "shim release 13.0");
        assert!(last.starts_with(concat!("cuinstr ", env!("CARGO_PKG_VERSION"), ", options ")), "{last}");
        lines.insert(last.to_owned());
    }
    assert_eq!(lines.len(), 6, "{lines:?}");
    project.write("cuinstr.toml", "leave-alone = [\"spin\"]\n");
    assert!(!lines.contains(text(&expect(&mut project.launch(&["--version"]), 0).stdout).lines().last().expect("a line")));
}

#[test]
fn preprocessed_text_that_caches_go_by_tells_one_set_of_options_from_another() {
    let project = project();
    let head = |flags: &str, ending: &str| {
        let mut command = project.launch(&["-E", "a.cu"]);
        expect(command.env("SHIM_SOURCES", "a.cu").env("SHIM_ENDING", ending).env("CUINSTR_FLAGS", flags), 0);
        project.preprocessed_as("a.cu", ending).lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    // `--verify` changes no text, and yet decides whether there is an object.
    let heads: BTreeSet<_> = ["", "--timeout 2s", "--verify"].into_iter().map(|flags| head(flags, ".ii")).collect();
    assert_eq!(heads.len(), 3, "{heads:?}");
    for head in heads {
        assert!(head[0].starts_with("# 1 \"<cuinstr ") && head[1].starts_with("# 1 \"/dev/null\""), "{head:?}");
    }
    // Steps of a compilation are nobody's to cache.
    for ending in [".cpp1.ii", ".cpp4.ii"] {
        assert!(!head("", ending).concat().contains("/dev/null"), "{ending}");
    }
}

#[test]
fn options_come_by_a_variable() {
    let project = project();
    let run = |flags: &str, code| {
        text(&expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu").env("CUINSTR_FLAGS", flags), code).stderr)
    };
    run("--timeout 2s --device-macro 'DEV=device'", 0);
    assert!(fs::read_to_string(project.path().join("toolkit/bin/a.cu.ii")).expect("preprocessed").contains("2000000000ull"));
    assert!(run("--time 2s", 2).contains("in CUINSTR_FLAGS: --time 2s"));
    assert!(run("--timeout '2s", 2).contains("a quote in CUINSTR_FLAGS has no partner"));
    assert!(run("--timeout 2", 2).contains("the unit is missing"));
    assert!(run("other.cu", 2).contains("other.cu"));
    assert!(run("--config nowhere.toml", 3).contains("nowhere.toml"));
}

#[test]
fn a_host_compiler_that_is_named_is_stood_in_for() {
    let project = project();
    let gcc = ["/usr/bin/gcc", "/bin/gcc"].into_iter().find(|path| Path::new(path).exists());
    let gcc = gcc.unwrap_or_else(|| ignore("there is no gcc in /usr/bin or /bin"));
    project.write("ccbin.txt", &format!("-ccbin {gcc} -c a.cu"));
    let folder = Path::new(gcc).parent().and_then(Path::to_str).expect("a folder");
    for words in [
        vec!["-ccbin", gcc, "-c", "a.cu"],
        vec![&*format!("-ccbin={gcc}"), "-c", "a.cu"],
        vec!["--compiler-bindir", folder, "-c", "a.cu"],
        vec!["-optf", "ccbin.txt"],
    ] {
        let mut command = project.launch(&words);
        // As nvcc does, the shim calls the compiler that it was told of.
        let host = "$(for word in \"$@\"; do case $word in */host/*|*/host) echo ${word#*=};; esac; done | sed 's:/host$:/host/gcc:')";
        let shim = fs::read_to_string(project.shim()).expect("readable").replace("${SHIM_HOST:-gcc}", host);
        fs::write(project.shim(), shim).expect("writable");
        expect(command.env("SHIM_SOURCES", "a.cu"), 0);
        assert!(project.preprocessed("a.cu").contains("__cuinstr_"), "{words:?}");
        let (_, seen) = project.record();
        assert!(seen.iter().any(|word| word.contains("/host")) && seen.contains(&"a.cu".to_owned()), "{seen:?}");
    }
    for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"] {
        let value = if name == "NVCC_CCBIN" { gcc.to_owned() } else { format!("-O2 -ccbin {gcc}") };
        let project = Project::new(&[("a.cu", SPIN)]);
        let mut command = project.launch(&["-c", "a.cu"]);
        expect(command.env(name, &value), 0);
        let seen = project.variable(name);
        assert!(seen.contains("/host/gcc") && !seen.contains(&format!(" {gcc}")), "{name}: {seen}");
    }
}

#[test]
fn commands_that_nvcc_prints_hold_no_path_of_ours() {
    let project = project();
    let then = "echo \"#$ PATH=$PATH\" >&2; echo \"stdout $PATH\"";
    let output = expect(project.launch(&["--dryrun", "a.cu"]).env("SHIM_THEN", then), 0);
    for stream in [text(&output.stdout), text(&output.stderr)] {
        assert!(stream.contains("toolkit/bin") && !stream.contains("cuinstr-"), "{stream}");
    }
}

#[test]
fn source_that_nvcc_compiles_behind_our_back_is_an_error() {
    let project = project();
    let shim = fs::read_to_string(project.shim()).expect("readable").replace("${SHIM_HOST:-gcc}", "/usr/bin/env -u CUINSTR_SESSION true");
    fs::write(project.shim(), shim).expect("writable");
    let output = expect(&mut project.launch(&["-c", "a.cu"]), 3);
    assert!(text(&output.stderr).contains("nothing was rewritten"), "{}", text(&output.stderr));
}
