//! The PTX pass behind nvcc's compiler: each form of output, what is refused, and an nvcc that is not known.

use crate::project::{BINARY, Project, SPIN, expect, text};
use crate::toolkit::nvcc;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const KERNEL: &str = "#include \"spin.cuh\"\n__device__ __noinline__ int work(volatile int* p, int n) {\n    int sum = 0;\n    for (int i = 0; i < n; ++i) sum += p[i];\n    \
                      return sum;\n}\n__global__ void kernel(int* p, int n) {\n    volatile int own[9];\n    own[n % 9] = n;\n    p[1] = own[p[2] % 9];\n    p[0] = work(p, n);\n    spin(p);\n}\n";
const HEADER: &str = "inline __device__ void spin(volatile int* p) {\n    while (*p == 0) {\n    }\n}\n";

/// A project whose header lies where the source pass does not look, and nvcc.
fn project() -> (PathBuf, Project) {
    let files = [("src/a.cu", KERNEL), ("system/spin.cuh", HEADER)];
    (nvcc(), Project::new(&files))
}

fn launch(project: &Project, nvcc: &Path, words: &[&str]) -> Command {
    let mut command = project.command(BINARY);
    command.env("CUINSTR_FLAGS", "--pass ptx").arg(nvcc).args(["-isystem", "system"]).args(words);
    command
}

fn read(project: &Project, path: &str) -> String {
    fs::read_to_string(project.path().join(path)).expect("it was written")
}

/// Whether the text is the plain one with words between its words.
fn only_adds_words(text: &str, plain: &str) -> bool {
    let mut words = text.split_whitespace();
    plain.split_whitespace().all(|word| words.any(|other| other == word))
}

#[test]
fn polls_stand_in_the_ptx_and_all_else_is_nvccs() {
    let (nvcc, project) = project();
    expect(project.command(&nvcc).args(["-isystem", "system", "-arch=sm_90", "-ptx", "src/a.cu", "-o", "plain.ptx"]), 0);
    let output = expect(&mut launch(&project, &nvcc, &["-arch=sm_90", "-ptx", "src/a.cu", "-o", "a.ptx", "--cuinstr-verify"]), 0);
    assert_eq!(text(&output.stderr), "");
    let (plain, ours) = (read(&project, "plain.ptx"), read(&project, "a.ptx"));
    assert!(only_adds_words(&ours, &plain), "{ours}");
    assert!(!ours.contains(".loc\t") && ours.contains(".local") && !ours.contains(".debug_str"), "{ours}");
    // Its sites name lines of the source, those of headers too.
    let image = cuinstr_image::read(ours.as_bytes()).expect("it is PTX");
    let sites: Vec<_> = image.site_maps[0].sites.iter().map(|site| (site.file.as_deref().unwrap_or("-"), site.line)).collect();
    assert_eq!(image.site_maps[0].file, "src/a.cu");
    assert!(sites.contains(&("system/spin.cuh", 2)) && sites.contains(&("src/a.cu", 4)), "{sites:?}");

    // Two architectures side by side, units that are linked, and nvcc's own intermediate files.
    let two = [
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90,code=[sm_90,compute_90]",
        "-t",
        "2",
        "-rdc=true",
        "-lineinfo",
    ];
    fs::create_dir(project.path().join("kept")).expect("a folder");
    expect(&mut launch(&project, &nvcc, &[&two[..], &["--keep", "--keep-dir", "kept", "-c", "src/a.cu", "-o", "a.o"]].concat()), 0);
    for arch in [80, 90] {
        let kept = read(&project, &format!("kept/a.compute_{arch}.ptx"));
        assert!(kept.contains(".loc\t") && cuinstr::verify::verify_ptx(&kept).holds(), "{arch}");
    }
    let object = fs::read(project.path().join("a.o")).expect("an object");
    let rows = |text: &str| memchr::memmem::find_iter(&object, text).count();
    assert_eq!((rows(":src/a.cu\t\n"), rows(":system/spin.cuh\t\n")), (2, 2));
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());

    // Text that is not optimised.
    expect(&mut launch(&project, &nvcc, &["-arch=sm_90", "-G", "-cubin", "src/a.cu", "-o", "a.cubin"]), 0);
    let image = fs::read(project.path().join("a.cubin")).expect("a cubin");
    assert_eq!(cuinstr_image::read(&image).expect("it is one").site_maps.len(), 1);
}

#[test]
fn what_makes_no_ptx_is_refused_and_what_asks_for_none_is_nvccs() {
    let (nvcc, project) = project();
    for words in [&["-dlto", "-c"][..], &["-optix-ir"]] {
        let output = expect(&mut launch(&project, &nvcc, &[words, &["-arch=sm_90", "src/a.cu", "-o", "out"]].concat()), 2);
        let said = text(&output.stderr);
        assert!(said.contains("makes no PTX") && said.contains("--pass source"), "{said}");
        assert!(!project.path().join("out").exists());
    }
    let output = expect(&mut launch(&project, &nvcc, &["-E", "src/a.cu"]), 0);
    let own = text(&output.stdout);
    // Caches that go by this text tell the two passes apart, and from plain nvcc.
    assert!(own.starts_with("# 1 \"<cuinstr ") && own.contains("while (*p == 0)"), "{}", &own[..100.min(own.len())]);
    let output = expect(&mut launch(&project, &nvcc, &["-E", "src/a.cu", "--cuinstr-pass=source"]), 0);
    assert_ne!(own.lines().next(), text(&output.stdout).lines().next());
    // A dry run shows nvcc's own commands, and an error is nvcc's own.
    let output = expect(&mut launch(&project, &nvcc, &["--dryrun", "-c", "src/a.cu"]), 0);
    // cargo puts build folders of ours on the loader's path.
    let shown: String = text(&output.stderr).lines().filter(|line| !line.contains("LD_LIBRARY_PATH")).collect();
    assert!(shown.contains("#$ CICC_PATH=") && !shown.contains("/cuinstr-"), "{shown}");
    let output = expect(&mut launch(&project, &nvcc, &["--no-such-option", "-c", "src/a.cu"]), 1);
    assert_eq!(text(&output.stderr).matches("no-such-option").count(), 1, "{}", text(&output.stderr));
}

#[test]
fn an_nvcc_that_is_not_known_compiles_rewritten_source() {
    let project = Project::new(&[("a.cu", SPIN)]);
    let mut command = project.launch(&["-c", "a.cu"]);
    // Its dry run says that there is a compiler, and not where.
    command.env("CUINSTR_FLAGS", "--pass ptx").env("SHIM_SOURCES", "a.cu").env("SHIM_THEN", "echo '#$ cicc a.ii -o a.ptx' >&2");
    let output = expect(&mut command, 0);
    let said = text(&output.stderr);
    assert!(said.starts_with("cuinstr: warning: polls are inserted into the source, not into the PTX: this nvcc is not known, "), "{said}");
    assert!(project.preprocessed("a.cu").contains("__cuinstr_"), "the source is rewritten");
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn a_refusal_fails_the_compilation_and_leaves_no_output() {
    let (nvcc, project) = project();
    project.write("old.cu", "__global__ void __cuinstr_mine() {}\n");
    let output = expect(&mut launch(&project, &nvcc, &["-arch=sm_90", "-ptx", "old.cu", "-o", "old.ptx"]), 1);
    assert!(text(&output.stderr).contains("error[CI004]"), "{}", text(&output.stderr));
    assert!(!project.path().join("old.ptx").exists());
    // An excluded file has none, and no polls.
    project.write("cuinstr.toml", "exclude = [\"src/*\"]\n");
    expect(&mut launch(&project, &nvcc, &["-arch=sm_90", "-ptx", "src/a.cu", "-o", "a.ptx"]), 0);
    assert!(!read(&project, "a.ptx").contains("cuinstr"));
}

/// `cicc` escapes the quote, and ptxas reads no such name.
#[test]
fn a_folder_with_a_quote_in_its_name_is_named_in_reports() {
    let (nvcc, project) = project();
    project.write("größe \"1\"/a.cu", "__global__ void kernel(int* p) { while (*p) *p = p[1]; }\n");
    let compile = |words: &[&str]| {
        let mut command = project.command(BINARY);
        expect(command.env("CUINSTR_FLAGS", "--pass ptx").arg(&nvcc).args(["-arch=sm_90", "größe \"1\"/a.cu"]).args(words), 0)
    };
    assert_eq!(text(&compile(&["-c", "-o", "a.o"]).stderr), "");
    let object = fs::read(project.path().join("a.o")).expect("it was made");
    let place = "größe \"1\"/a.cu".as_bytes();
    assert!(object.windows(place.len()).any(|part| part == place), "no report could name the source");
    compile(&["-c", "-lineinfo", "-o", "b.o"]);
}

#[test]
fn a_link_named_ptxas_assembles_what_has_polls() {
    let (nvcc, project) = project();
    let real = nvcc.with_file_name("ptxas");
    let link = project.link("ptxas");
    let ptxas = |words: &[&str]| {
        let mut command = project.command(&link);
        command.env("CUINSTR_PTXAS", &real).env("CUINSTR_FLAGS", "--verify").args(words);
        command
    };
    project.write("k.ptx", ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n");
    expect(&mut ptxas(&["-arch=sm_90", "k.ptx", "-o", "k.cubin"]), 0);
    let cubin = fs::read(project.path().join("k.cubin")).expect("a cubin");
    let maps = cuinstr_image::read(&cubin).expect("it is one").site_maps;
    assert_eq!((maps.len(), maps[0].file.as_str()), (1, "k.ptx"));
    // What has polls is assembled as it is, and what is no PTX is ptxas's own affair.
    expect(project.command(BINARY).args(["k.ptx", "-o", "own.ptx", "--quiet"]), 0);
    expect(&mut ptxas(&["-arch=sm_90", "own.ptx", "-o", "own.cubin"]), 0);
    project.write("none.ptx", "no text\n");
    expect(&mut ptxas(&["-arch=sm_90", "none.ptx", "-o", "none.cubin"]), 255);
    // Tools take the version from it, and caches tell the two apart by it.
    let said = text(&expect(&mut ptxas(&["--version"]), 0).stdout);
    assert!(said.contains("release ") && said.contains("\ncuinstr "), "{said}");
    // Messages name the user's file.
    project.write("bad.ptx", ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry bad()\n{\n\tnonsense.b32 %r1;\n}\n");
    let said = text(&expect(&mut ptxas(&["-arch=sm_90", "bad.ptx", "-o", "bad.cubin"]), 255).stderr);
    assert!(said.contains("ptxas bad.ptx, line") && !said.contains("cuinstr-"), "{said}");
    let said = text(&expect(ptxas(&["-arch=sm_90", "k.ptx"]).env("CUINSTR_PTXAS", "nowhere"), 127).stderr);
    assert!(said.contains("set CUINSTR_PTXAS to the path of NVIDIA's ptxas"), "{said}");
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

/// A kernel that never ends.
const ENDLESS: &str = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n";

#[test]
fn ptx_among_nvccs_inputs_gets_polls_by_either_pass() {
    let (nvcc, project) = project();
    project.write("k.ptx", ENDLESS);
    project.write("words", "-cubin k.ptx");
    project.write("more", "-optf words -o c.cubin");
    let holds_polls = |name: &str| {
        let bytes = fs::read(project.path().join(name)).expect("it was written");
        !cuinstr_image::read(&bytes).expect("it is code").site_maps.is_empty()
    };
    for pass in ["--cuinstr-pass=ptx", "--cuinstr-pass=source"] {
        expect(&mut launch(&project, &nvcc, &[pass, "--cuinstr-verify", "-arch=sm_90", "-cubin", "k.ptx", "-o", "a.cubin"]), 0);
        expect(&mut launch(&project, &nvcc, &[pass, "-arch=sm_90", "-dc", "k.ptx", "src/a.cu"]), 0);
        // Files of options name others.
        expect(&mut launch(&project, &nvcc, &[pass, "-arch=sm_90", "--options-file", "more"]), 0);
        for name in ["a.cubin", "k.o", "a.o", "c.cubin"] {
            assert!(holds_polls(name), "{pass} {name}");
            fs::remove_file(project.path().join(name)).expect("it goes");
        }
    }
    let mut command = launch(&project, &nvcc, &["-arch=sm_90", "-o", "d.cubin"]);
    let said = text(&expect(command.env("NVCC_APPEND_FLAGS", "-optf words"), 2).stderr);
    assert!(said.contains("`k.ptx` is named in NVCC_PREPEND_FLAGS or NVCC_APPEND_FLAGS"), "{said}");
    assert_eq!(project.left_behind(), Vec::<PathBuf>::new());
}

#[test]
fn ptxas_takes_no_input_without_polls_in_silence() {
    let (nvcc, project) = project();
    let (real, link) = (nvcc.with_file_name("ptxas"), project.link("ptxas"));
    project.write("k.ptx", ENDLESS);
    project.write("late.ptx", &format!("//{}\n{ENDLESS}", "x".repeat(1 << 17)));
    project.write("words", "-arch=sm_90 k.ptx -o a.cubin");
    let run = |line: &str, code: i32| {
        let mut command = project.command("sh");
        command.env("CUINSTR_PTXAS", &real).args(["-c", &format!("exec \"$0\" {line}")]).arg(&link);
        let said = text(&expect(&mut command, code).stderr);
        let made = project.path().join("a.cubin");
        let maps = fs::read(&made).ok().map(|bytes| cuinstr_image::read(&bytes).expect("a cubin").site_maps.len());
        let _ = fs::remove_file(made);
        (maps, said)
    };
    for line in
        ["-optf words", "-arch=sm_90 - -o a.cubin <k.ptx", "-arch=sm_90 /dev/stdin -o a.cubin <k.ptx", "-arch=sm_90 late.ptx -o a.cubin"]
    {
        assert_eq!(run(line, 0), (Some(1), String::new()), "{line}");
    }
    assert!(run("-arch=sm_90 k.ptx late.ptx -o a.cubin", 2).1.contains("assemble each file by itself"));
    assert!(run("-arch=sm_90 -ias .version", 2).1.contains("write the text to a file"));
    project.write("none.ptx", "no text\n");
    assert!(run("-arch=sm_90 none.ptx", 255).1.contains("no input of ptxas holds PTX"));
}

#[test]
fn dependency_files_list_the_configuration() {
    let (nvcc, project) = project();
    project.write("cuinstr.toml", "leave-alone = [\"work\"]\n");
    for pass in ["ptx", "source"] {
        let mut command = launch(&project, &nvcc, &["-arch=sm_90", "-M", "src/a.cu", "-o", "a.d"]);
        expect(command.arg(format!("--cuinstr-pass={pass}")), 0);
        let listed = read(&project, "a.d");
        assert!(listed.lines().any(|line| line.contains("/cuinstr.toml")) && listed.starts_with("a.o : src/a.cu"), "{pass}: {listed}");
    }
}
