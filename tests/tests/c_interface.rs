//! The C interface as C and C++ programs see it: the header is what the library was compiled to, and programs compile, link and run. What needs a
//! GPU is `scripts/gpu-hosts`.

#[macro_use]
extern crate cuinstr_trial;

use cuinstr_c::layout;
use cuinstr_harness::fixtures::workspace;
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::process;
use cuinstr_trial::or_ignore;
use object::{Object as _, ObjectSymbol as _};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion"];
const SAID: &str = "all as it should be\n";

/// The library, which cargo puts beside the programs of its tests.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("a program has a path");
    program.with_file_name("libcuinstr_c.so")
}

fn include() -> PathBuf {
    workspace().join("runtime/c/include")
}

fn header() -> String {
    std::fs::read_to_string(include().join("cuinstr.h")).expect("a file of the repository")
}

/// Runs a compiler or a program to its end, and gives what it printed.
fn run(command: &mut Command) -> String {
    let finished = process::run(command, LIMIT).expect("a C and C++ compiler is part of the set-up");
    assert!(finished.success(), "{command:?}\n{}{}", finished.stdout, finished.stderr);
    finished.stdout
}

/// A folder with the library under the names by which programs are linked and loaded.
fn installed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libcuinstr.so", "libcuinstr.so.1"] {
        std::os::unix::fs::symlink(library(), folder.path().join(name)).expect("a link");
    }
    folder
}

fn compile(compiler: &str, source: &Path, program: &Path, arguments: &[&str]) {
    let mut command = Command::new(compiler);
    command.args(WARNINGS).args(arguments).arg("-I").arg(include()).arg(source).arg("-o").arg(program);
    let folder = program.parent().expect("a file in a folder");
    run(command.arg("-L").arg(folder).arg(format!("-Wl,-rpath,{}", folder.display())).args(["-lcuinstr", "-lpthread"]));
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = header();
    let mut code = String::new();
    for (index, part) in header.split("/*").enumerate() {
        code.push_str(if index == 0 { part } else { part.split_once("*/").map_or("", |(_, code)| code) });
    }
    let calls = code.match_indices('(').filter_map(|(at, _)| {
        let before = &code[..at];
        let name = &before[before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |start| start + 1)..];
        name.starts_with("cuinstr_").then(|| name.to_owned())
    });
    calls.collect()
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let bytes = std::fs::read(library()).expect("cargo builds the library before its tests");
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).expect("an ELF file");
    let is_defined = |symbol: &object::read::elf::ElfSymbol<'_, '_, _>| symbol.is_definition() && symbol.is_global();
    let defined = file.dynamic_symbols().filter(is_defined);
    let exported: BTreeSet<String> = defined.map(|symbol| symbol.name().expect("a name").to_owned()).collect();
    assert_eq!(exported, declared());
}

#[test]
fn the_header_is_laid_out_as_the_library_was_compiled() {
    let table = layout::table();
    let mut program = String::from("#include <stdio.h>\n#include \"cuinstr.h\"\nint main(void) {\n");
    for line in table.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let _ = match words[0] {
            "constant" => writeln!(program, "    printf(\"constant {0} %d\\n\", {0});", words[1]),
            "struct" => writeln!(program, "    printf(\"struct {0} %zu\\n\", sizeof({0}));", words[1]),
            _ => {
                let (name, field) = words[1].split_once('.').expect("struct.field");
                let size = format!("sizeof((({name} *)0)->{field})");
                writeln!(program, "    printf(\"field {name}.{field} %zu %zu\\n\", offsetof({name}, {field}), {size});")
            }
        };
    }
    program.push_str("    return 0;\n}\n");
    let folder = installed();
    let source = folder.path().join("layout.c");
    std::fs::write(&source, program).expect("a file");
    let built = folder.path().join("layout");
    compile("gcc", &source, &built, &["-std=c99"]);
    assert_eq!(run(&mut Command::new(built)), table);
    // Each enumerator and each struct of the header stands in the table.
    for name in header().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("CUINSTR_")) {
        let is_helper = name.ends_with("_INIT") || ["CUINSTR_H", "CUINSTR_HPP"].contains(&name);
        assert!(is_helper || table.contains(&format!("constant {name} ")), "{name} is not in the table of runtime/c/src/layout.rs");
    }
    assert_eq!(header().matches("typedef struct cuinstr_").count(), layout::shapes().len() + 5, "five more are handles");
}

/// What programs compiled before rely on. Lines may be added, at a struct's end too; none may change or go.
#[test]
fn the_interface_keeps_what_it_has_promised() {
    let mut now = layout::table();
    for function in declared() {
        let _ = writeln!(now, "function {function}");
    }
    let path = workspace().join("runtime/c/abi.txt");
    if std::env::var_os("CUINSTR_WRITE_ABI").is_some() {
        std::fs::write(&path, &now).expect("a file of the repository");
    }
    let promised = std::fs::read_to_string(&path).expect("a file of the repository");
    let grown = |line: &str| line.starts_with("struct ");
    let lost: Vec<&str> = promised.lines().filter(|line| !grown(line) && !now.lines().any(|other| other == *line)).collect();
    assert!(lost.is_empty(), "programs compiled before break on these: {lost:#?}");
    assert_eq!(now, promised, "the interface has grown: run this test with CUINSTR_WRITE_ABI=1, and read the difference");
}

#[test]
fn a_c_program_uses_and_misuses_it_without_harm() {
    let folder = installed();
    let built = folder.path().join("program");
    compile("gcc", &workspace().join("tests/data/c_program.c"), &built, &["-std=c99", "-D_POSIX_C_SOURCE=200809L"]);
    assert_eq!(run(&mut Command::new(built)), SAID);
}

#[test]
fn the_owners_of_cpp_compile_under_each_standard_and_give_back_what_they_own() {
    let folder = installed();
    let built = folder.path().join("program");
    for standard in ["-std=c++11", "-std=c++20"] {
        compile("g++", &workspace().join("tests/data/cpp_program.cpp"), &built, &[standard, "-fno-rtti"]);
        assert_eq!(run(&mut Command::new(&built)), SAID, "{standard}");
    }
}

#[test]
fn guards_of_cpp_over_the_stand_in_driver() {
    let folder = installed();
    cuinstr_stand_in::client::install(folder.path()).expect("the stand-in beside this program");
    let built = folder.path().join("program");
    compile("g++", &workspace().join("tests/data/guarded.cpp"), &built, &["-std=c++11", "-Wl,--no-as-needed", "-lcuda"]);
    assert_eq!(run(Command::new(&built).env("LD_LIBRARY_PATH", folder.path())), SAID);
}

#[test]
fn c_suspends_and_resumes_a_process_over_the_stand_in_driver() {
    let folder = installed();
    cuinstr_stand_in::client::install(folder.path()).expect("the stand-in beside this program");
    let built = folder.path().join("program");
    compile("gcc", &workspace().join("tests/data/processes.c"), &built, &["-std=c99", "-D_POSIX_C_SOURCE=200809L"]);
    let mut program = Command::new(&built);
    program.arg(folder.path()).arg(env!("CARGO_BIN_EXE_checkpoint-helper")).env("LD_LIBRARY_PATH", folder.path());
    assert_eq!(run(program.env("CUINSTR_STAND_IN", format!("processes {}", folder.path().display()))), SAID);
}

#[test]
fn c_saves_memory_and_restores_it_over_the_stand_in_driver() {
    let folder = installed();
    cuinstr_stand_in::client::install(folder.path()).expect("the stand-in beside this program");
    let built = folder.path().join("program");
    compile("gcc", &workspace().join("tests/data/snapshots.c"), &built, &["-std=c99", "-Wl,--no-as-needed", "-lcuda"]);
    assert_eq!(run(Command::new(&built).arg(folder.path()).env("LD_LIBRARY_PATH", folder.path())), SAID);
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let toolkit = nvcc.path.parent().and_then(Path::parent).expect("bin/nvcc of a toolkit").join("include").display().to_string();
    let words = ["-std=c99", "-isystem", &toolkit, "-Wl,--no-as-needed", "-lcuda"];
    compile("gcc", &workspace().join("runtime/c/examples/snapshot.c"), &built, &words);
    let counted = || {
        let said = run(Command::new(&built).arg(folder.path().join("counter")).env("LD_LIBRARY_PATH", folder.path()));
        said.split_once(" at ").map(|(count, address)| (count.to_owned(), address.to_owned())).expect("a count and an address")
    };
    let [first, second] = [counted(), counted()];
    assert_eq!((first.0.as_str(), second.0.as_str(), &first.1), ("1", "2", &second.1));
}

#[test]
fn a_launch_that_c_paused_goes_on_in_another_process_over_the_stand_in_driver() {
    let folder = installed();
    cuinstr_stand_in::client::install(folder.path()).expect("the stand-in beside this program");
    let built = folder.path().join("program");
    compile("gcc", &workspace().join("tests/data/paused.c"), &built, &["-std=c99", "-Wl,--no-as-needed", "-lcuda"]);
    let file = folder.path().join("snapshot");
    let told = |word: &str| run(Command::new(&built).arg(word).arg(&file).env("LD_LIBRARY_PATH", folder.path()));
    let left = told("save");
    let left: u32 = left.strip_suffix(" blocks are left\n").and_then(|left| left.parse().ok()).expect("a number");
    assert!((1..60).contains(&left), "{left}");
    assert_eq!(told("restore"), "60 blocks have run once\n");
}

#[test]
fn the_examples_compile() {
    let nvcc = or_ignore("nvcc", Nvcc::find());
    let examples = workspace().join("runtime/c/examples");
    let folder = installed();
    let rewritten = folder.path().join("halve.inst.cu");
    let source = std::fs::read(examples.join("halve.cu")).expect("a file of the repository");
    let options = cuinstr::options::Options { path: "halve.cu".into(), ..cuinstr::options::Options::default() };
    std::fs::write(&rewritten, cuinstr::rewrite(&source, &options).output.expect("it is sound")).expect("a file");
    let toolkit = nvcc.path.parent().and_then(Path::parent).expect("bin/nvcc of a toolkit").join("include");
    let mut gcc = Command::new("gcc");
    gcc.args(WARNINGS).args(["-std=c99", "-c", "-o"]).arg(folder.path().join("example.o"));
    run(gcc.arg("-isystem").arg(&toolkit).arg("-I").arg(include()).arg(examples.join("stop_a_hang.c")));
    let program = folder.path().join("example").display().to_string();
    let folders =
        [format!("-I{}", include().display()), format!("-I{}", folder.path().display()), format!("-L{}", folder.path().display())];
    let mut arguments = vec!["-std=c++17", "-Werror", "all-warnings", "-arch=sm_80", "-lcuinstr", "-o", &program];
    arguments.extend(folders.iter().map(String::as_str));
    let example = examples.join("stop_a_hang_cpp.cu").display().to_string();
    arguments.push(&example);
    let compiled = nvcc.run(arguments).expect("nvcc starts");
    assert!(compiled.success(), "{}{}", compiled.stdout, compiled.stderr);
    // No device is in sight of this process, whatever the machine has.
    let mut blind = Command::new(&program);
    let told = process::run(blind.env("CUDA_VISIBLE_DEVICES", "").env("LD_LIBRARY_PATH", folder.path()), LIMIT).expect("it starts");
    assert!(!told.success() && told.stderr.contains("no memory on a GPU: "), "{told:?}");
    for (name, most) in [("snapshot.c", 40), ("stop_a_hang.c", 40), ("stop_a_hang_cpp.cu", 40)] {
        let text = std::fs::read_to_string(examples.join(name)).expect("a file of the repository");
        assert!(text.lines().count() < most, "{name} is longer than an example may be");
    }
}

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
