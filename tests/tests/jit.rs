//! `cuinstr_runtime::jit` with the real NVRTC and no GPU: modules, symbols, messages on the user's own lines, and what is said where NVRTC is
//! not whole. Without nvcc, beside which NVRTC lies, each test shows as ignored with the reason, or fails where `CUINSTR_REQUIRE` names it.
//!
//! The loader looks for libraries in the folders that it was started with. So the tests run in a process of their own,
//! and each test that needs another folder in a further one.

use cuinstr::options::{Limits, Options, Pass};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::process;
use cuinstr_harness::unit::Nvrtc;
use cuinstr_runtime::image::{Arch, Form};
use cuinstr_runtime::jit::{Compiled, Program, ProgramError, Severity};
use cuinstr_trial::or_ignore;
use cuinstr_trial::trial;
use libtest_mimic::Arguments;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Set for the process that runs the tests: the folder of NVRTC.
const FOLDER: &str = "CUINSTR_TEST_NVRTC";

/// Set for a process that only prints the error of one compilation.
const PROBE: &str = "CUINSTR_TEST_PROBE";

const LIMIT: Duration = Duration::from_secs(300);
const SM_80: Arch = Arch { number: 80, suffix: None };

type Test = fn() -> Result<(), String>;

const GEMM: &str = "template <typename T, int N>\n__global__ void gemm(T* c, int n)\n{\n\tfor (int i = 0; i < n; ++i) {\n\t\tc[i] *= N;\n\t}\n}\nextern \"C\" __global__ void spin(volatile int* flag) { while (!*flag) {} }\n";

fn main() -> ExitCode {
    if std::env::var_os(PROBE).is_some() {
        let error = Program::from_cuda(GEMM).compile(SM_80).err();
        println!("{}", error.map_or_else(|| "no error".to_owned(), |error| error.to_string()));
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let nvrtc = Nvcc::find().and_then(|nvcc| Nvrtc::of(&nvcc, Path::new("")));
    if let (Ok(nvrtc), None) = (&nvrtc, std::env::var_os(FOLDER)) {
        let Ok(program) = std::env::current_exe() else { return ExitCode::FAILURE };
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).env(FOLDER, nvrtc.folder()).env("LD_LIBRARY_PATH", nvrtc.folder());
        return match command.status() {
            Ok(status) if status.success() => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        };
    }
    let tests: [(&str, Test); 11] = [
        ("a source becomes a cubin with its sites and symbols", cubin),
        ("an architecture that NVRTC does not know becomes PTX", ptx),
        ("options, macros and headers reach the compiler", options),
        ("errors stand on the user's own lines", errors),
        ("warnings stand on the user's own lines", warnings),
        ("a name that is no kernel's is an error", unknown_name),
        ("polls are put into the PTX that NVRTC makes", ptx_pass),
        ("PTX becomes a module without NVRTC", from_ptx),
        ("many compile at the same time", at_the_same_time),
        ("without NVRTC the error says what to install", no_nvrtc),
        ("without its builtins the error names their folder", no_builtins),
    ];
    let trials = tests.map(|(name, test)| {
        let found = nvrtc.as_ref().map(|_| ()).map_err(Clone::clone);
        trial(format!("jit: {name}"), move || {
            or_ignore("nvcc", found);
            test()
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

fn compile(program: &Program) -> Result<Compiled, String> {
    program.compile(SM_80).map_err(|error| error.to_string())
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:#?}\nwhere this was expected:\n{expected:#?}")) }
}

fn cubin() -> Result<(), String> {
    let mut program = Program::from_cuda(GEMM);
    let compiled = compile(program.file("src/gemm.cu").instantiate("gemm<float, 16>").instantiate("spin"))?;
    same(&(compiled.form, compiled.arch), &(Form::Cubin, SM_80))?;
    same(&compiled.symbols["gemm<float, 16>"].as_str(), &"_Z4gemmIfLi16EEvPT_i")?;
    same(&compiled.symbols["spin"].as_str(), &"spin")?;
    same(&compiled.sites.file.as_str(), &"src/gemm.cu")?;
    let image = cuinstr_image::read(&compiled.code).map_err(|error| error.to_string())?;
    same(&image.site_maps, &vec![compiled.sites])?;
    let mut names: Vec<String> = image.kernels().into_iter().map(|kernel| kernel.name).collect();
    names.sort();
    same(&names, &vec!["gemm<float, 16>".to_owned(), "spin".to_owned()])
}

fn ptx() -> Result<(), String> {
    let compiled = Program::from_cuda(GEMM).compile(Arch { number: 9999, suffix: None }).map_err(|error| error.to_string())?;
    let image = cuinstr_image::read(&compiled.code).map_err(|error| error.to_string())?;
    same(&(compiled.form, image.form), &(Form::Ptx, Form::Ptx))?;
    same(&image.parts[0].arch, &Some(compiled.arch))?;
    same(&image.site_maps, &vec![compiled.sites])
}

fn options() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::write(folder.path().join("size.h"), "#define SIZE 7\n").map_err(|error| error.to_string())?;
    let text = "#include \"size.h\"\nstatic_assert(SIZE == 7 && TWICE == 14 && __cplusplus == 202002L, \"\");\n__global__ void f() {}\n";
    let limits = Limits { timeout_ns: Some(1), ..Limits::default() };
    let mut program = Program::from_cuda(text);
    program.include(folder.path()).define("TWICE", "14").option("--std=c++20").rewriting(Options { limits, ..Options::default() });
    same(&compile(&program)?.sites.file.as_str(), &"kernel.cu")
}

fn errors() -> Result<(), String> {
    let text = "template <typename T> __device__ T twice(T x) { return x.y + x; }\n__global__ void gemm(float* c, int n)\n{\n\tfor (int i = 0; i < n; ++i) { c[i] += nothing; while (n) c[i] += twice(c[i]); }\n    for (int j = 0; j < n; ++j) if (j == bar(j)) return;\n}\n";
    let error = Program::from_cuda(text).file("src/gemm.cu").compile(SM_80).err().ok_or("it compiles")?;
    let ProgramError::Compile { messages, text } = error else { return Err(format!("{error:?}")) };
    let found: Vec<_> = messages
        .iter()
        .filter(|message| message.severity == Severity::Error)
        .map(|message| (message.file.as_str(), message.line, message.column, message.text.as_str()))
        .collect();
    let instance = "expression must have class type but it has type \"float\"\ndetected during instantiation of \"T twice(T) [with T=float]\" at line 4";
    let expected = vec![
        ("src/gemm.cu", 4, Some(40), "identifier \"nothing\" is undefined"),
        ("src/gemm.cu", 5, Some(42), "identifier \"bar\" is undefined"),
        ("src/gemm.cu", 1, Some(56), instance),
    ];
    same(&found, &expected)?;
    let shown = "src/gemm.cu(4): error: identifier \"nothing\" is undefined\n  \tfor (int i = 0; i < n; ++i) { c[i] += nothing; while (n) c[i] += twice(c[i]); }\n  \t                                      ^\n";
    if text.contains(shown) && !text.contains("__cuinstr") { Ok(()) } else { Err(text) }
}

fn warnings() -> Result<(), String> {
    let compiled = compile(&Program::from_cuda("__global__ void f(int n) { int unused; while (n) {} }\n"))?;
    let found: Vec<_> = compiled.warnings.iter().map(|warning| (warning.severity, warning.line, warning.column)).collect();
    same(&found, &vec![(Severity::Warning, 1, Some(32))])
}

fn unknown_name() -> Result<(), String> {
    let error = Program::from_cuda(GEMM).instantiate("gem<float>").compile(SM_80).err().ok_or("it compiles")?;
    let said = error.to_string();
    if said.contains("gem") { Ok(()) } else { Err(said) }
}

fn at_the_same_time() -> Result<(), String> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|index| scope.spawn(move || compile(Program::from_cuda(GEMM).instantiate(format!("gemm<int, {index}>"))))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "it panicked")?.map(drop))
    })
}

/// What a process says that has this folder alone on the loader's path.
fn probe(folder: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.env(PROBE, "1").env("LD_LIBRARY_PATH", folder).env_remove("CUDA_HOME").env_remove("CUDA_PATH");
    process::run(&mut command, LIMIT).map(|finished| finished.stdout).map_err(|error| error.to_string())
}

fn no_nvrtc() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let said = probe(folder.path())?;
    // A machine may have one of its own where the loader always looks.
    let is_right = said.contains("NVRTC (libnvrtc) is not on the loader's path") && said.contains("LD_LIBRARY_PATH");
    if is_right || said.starts_with("no error") { Ok(()) } else { Err(said) }
}

fn no_builtins() -> Result<(), String> {
    let whole = std::env::var_os(FOLDER).ok_or("the folder of NVRTC is not known")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    for entry in Path::new(&whole).read_dir().map_err(|error| error.to_string())?.flatten() {
        let name = entry.file_name();
        let shown = name.to_string_lossy();
        // A copy: NVRTC finds what lies beside the file that a link names.
        if shown.starts_with("libnvrtc.so") && !shown.contains("alt") {
            std::fs::copy(entry.path(), folder.path().join(&name)).map_err(|error| error.to_string())?;
        }
    }
    let said = probe(folder.path())?;
    let beside = format!("into {}, beside libnvrtc", folder.path().display());
    if said.starts_with("NVRTC can't open libnvrtc-builtins.so") && said.contains(&beside) { Ok(()) } else { Err(said) }
}

/// The whole of the PTX: loops of headers, too, and the lines of the source.
fn ptx_pass() -> Result<(), String> {
    let mut program = Program::from_cuda(GEMM);
    program.file("src/gemm.cu").pass(Pass::Ptx).instantiate("gemm<float, 4>").define("UNUSED", "1");
    let compiled = program.compile(SM_80).map_err(|error| error.to_string())?;
    let text = String::from_utf8(compiled.code.clone()).map_err(|error| error.to_string())?;
    check(compiled.form == Form::Ptx && compiled.arch == SM_80, "it is PTX of what was asked for")?;
    check(cuinstr::verify::verify_ptx(&text).holds(), "each loop can be stopped")?;
    check(text.contains(&compiled.symbols["gemm<float, 4>"]), "symbols are those of the PTX")?;
    let sites: Vec<_> = compiled.sites.sites.iter().map(|site| (site.file.clone().unwrap_or_default(), site.line)).collect();
    check(sites.iter().any(|(file, line)| file.ends_with("src/gemm.cu") && *line == 8), &format!("{sites:?}"))?;
    let image = cuinstr_image::read(&compiled.code).map_err(|error| error.to_string())?;
    check(image.site_maps == [compiled.sites.clone()], "the module holds its sites")?;
    // What does not compile is said on the user's own lines, and what the pass refuses with its code.
    let error =
        Program::from_cuda("__global__ void f() {\n    int x = y;\n}\n").pass(Pass::Ptx).compile(SM_80).err().ok_or("it compiles")?;
    check(matches!(&error, ProgramError::Compile { messages, .. } if messages[0].line == 2), &error.to_string())?;
    let error = Program::from_cuda("__global__ void __cuinstr_mine() {}\n").pass(Pass::Ptx).compile(SM_80).err().ok_or("it compiles")?;
    check(error.to_string().contains("error[CI004]"), &error.to_string())
}

fn from_ptx() -> Result<(), String> {
    let plain = Program::from_cuda(GEMM).compile_plain(Arch { number: 9999, suffix: None }).map_err(|error| error.to_string())?;
    check(plain.form == Form::Ptx && plain.code.ends_with(b"\0"), "the text as NVRTC gives it")?;
    let compiled = Program::from_ptx(plain.code).file("gemm.ptx").pass(Pass::Source).compile(SM_80).map_err(|error| error.to_string())?;
    let text = String::from_utf8(compiled.code).map_err(|error| error.to_string())?;
    check(cuinstr::verify::verify_ptx(&text).holds() && compiled.sites.file == "gemm.ptx", "each loop can be stopped")?;
    let error = Program::from_ptx(text).compile(SM_80).err().ok_or("it was instrumented before")?;
    check(error.to_string().starts_with("the source can't be rewritten:\nkernel.ptx:"), &error.to_string())
}

fn check(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}
