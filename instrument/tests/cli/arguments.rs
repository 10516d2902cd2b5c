//! The command line.

use crate::project::{COPY_ALL, Project, SPIN};
use std::fs;

#[test]
fn a_command_line_that_makes_no_sense_is_a_usage_error() {
    let project = Project::new(&[("k.cu", SPIN), ("l.cu", SPIN)]);
    for (arguments, why) in [
        ("", "Usage"),
        ("k.cu", "add `-o FILE`"),
        ("-o out.cu", "FILE"),
        ("k.cu l.cu -o -", "several files"),
        ("- - -o out", "only once"),
        ("- k.cu -o out", "no file name"),
        ("k.cu -o - --sites -", "standard output"),
        ("k.cu -o out.cu --list", "cannot be used with"),
        ("k.cu --diff --list", "cannot be used with"),
        ("k.cu -o out.cu --timeout 2", "the unit is missing: 2s"),
        ("k.cu -o out.cu --timeout 2h", "`h` is no unit"),
        ("k.cu -o out.cu --timeout 0s", "zero"),
        ("k.cu -o out.cu --fuel 0", "0 is not in"),
        ("k.cu -o out.cu --fuel 1099511627775", "is not in"),
        ("k.cu -o out.cu --budget-cycles 0", "0 is not in"),
        ("k.cu -o out.cu --polls none", "amortised, count-down, each"),
        ("k.cu -o out.cu --poll-gap 1us", "between 2us and 10ms"),
        ("k.cu -o out.cu --poll-gap 1s", "between 2us and 10ms"),
        ("k.cu -o out.cu --at-exit wait", "check, gate"),
        ("k.cu -o out.cu --format xml", "full, short, json"),
        ("k.cu -o out.cu --device-macro X", "NAME=device"),
        ("k.cu -o out.cu --device-macro X=gpu", "`gpu` is none of"),
        ("k.cu -o out.cu --no-such-option", "unexpected argument"),
        ("explain CI999", "the nearest is CI0"),
        ("explain CI55", "the nearest is CI055"),
        ("verfy k.ptx", "did you mean `cuinstr verify`?"),
        ("explian CI010", "did you mean `cuinstr explain`?"),
        ("completion bash", "did you mean `cuinstr completions`?"),
        ("complet bash", "did you mean `cuinstr completions`?"),
        ("nvc -c k.cu", "is not nvcc"),
        ("help explan", "did you mean `cuinstr help explain`?"),
        ("run --timeot 2s true", "unexpected argument '--timeot'"),
        ("completions tcsh", "bash"),
        ("k.cu l.cu -o out.cu", "write `-o out.cu/` for a folder of that name"),
        ("k.cu -o out.cu -v -q", "cannot be used with"),
        ("k.cu -o out.cu -D 2X", "`2X` is no name of a macro"),
        ("k.cu -o out.cu -DX -UX", "`X` can't be both defined and undefined"),
    ] {
        project.run(arguments).exits(2).says(why);
        assert_eq!(project.names("."), ["k.cu", "l.cu"], "{arguments}");
    }
    // The largest fuel that fits is accepted.
    project.write("cuinstr.toml", COPY_ALL.as_bytes());
    project.run("k.cu -o out.cu --fuel 1099511627774").exits(0);
}

#[test]
fn explain_lists_the_codes_and_prints_one() {
    let project = Project::new(&[]);
    let list = project.run("explain").exits(0).silent().stdout;
    assert_eq!(list.lines().count(), cuinstr::diagnostic::Code::ALL.len());
    for code in cuinstr::diagnostic::Code::ALL {
        assert!(list.contains(code.id()));
        let text = project.run(&format!("explain {}", code.id().to_lowercase())).exits(0).silent().stdout;
        assert!(text.starts_with(code.id()) && text.contains(code.explain()), "{text}");
    }
}

#[test]
fn a_file_may_be_called_like_a_subcommand() {
    let project = Project::new(&[("explain", SPIN), ("cuinstr.toml", COPY_ALL)]);
    for arguments in ["./explain -o out.cu", "-o out.cu -- explain", "-o out.cu explain"] {
        project.run(arguments).exits(0);
        assert_eq!(project.read("out.cu"), SPIN, "{arguments}");
        fs::remove_file(project.0.path().join("out.cu")).expect("it was written");
    }
    assert!(project.run("explain").exits(0).stdout.contains("CI001"));
    project.run("-- explain -o -").exits(2).says("nothing to do");
}

#[test]
fn help_documents_exit_codes_options_and_the_configuration() {
    let project = Project::new(&[]);
    let help = project.run("--help").exits(0).silent().stdout;
    for text in ["Exit codes:", "Examples:", "--timeout", "--fuel", "cuinstr.toml", "[[waiver]]"] {
        assert!(help.contains(text), "{text}: {help}");
    }
    assert_eq!(project.run("--version").exits(0).stdout, format!("cuinstr {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_completions_and_the_manual_page_are_printed() {
    let project = Project::new(&[]);
    assert_eq!(project.run("help").exits(0).stdout, project.run("--help").exits(0).stdout);
    assert!(project.run("help verify").exits(0).stdout.contains("--allow"));
    // One option, one meaning, but limits count from different moments.
    for help in ["--help", "help run", "help nvcc"] {
        assert!(project.run(help).exits(0).stdout.contains("Counts from the start of each"), "{help}");
    }
    for text in ["CUINSTR_FLAGS", "--cuinstr-timeout", "--system-headers"] {
        assert!(project.run("help nvcc").exits(0).silent().stdout.contains(text), "{text}");
    }
    for (shell, text) in [("bash", "complete -F _cuinstr"), ("zsh", "#compdef cuinstr"), ("fish", "complete -c cuinstr")] {
        assert!(project.run(&format!("completions {shell}")).exits(0).silent().stdout.contains(text), "{shell}");
    }
    let page = project.run("man").exits(0).silent().stdout;
    for text in [".TH cuinstr 1", "\\-\\-timeout", "cuinstr verify", "\\-\\-allow", "\\-\\-system\\-headers"] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_can_t_be_written_is_an_io_error() {
    let project = Project::new(&[]);
    for arguments in ["--help", "--version", "explain", "doctor", "completions bash", "man"] {
        project.shell(&format!("exec \"$1\" {arguments} > /dev/full")).exits(3).says("standard output can't be written");
    }
}

#[test]
fn doctor_says_what_works_and_what_is_missing() {
    let project = Project::new(&[("cuinstr.toml", COPY_ALL)]);
    let run = |path: &str| {
        let mut command = project.command("doctor");
        command.env("PATH", path).env_remove("CUDA_HOME").env_remove("CUDA_PATH").env("CUINSTR_TIMEOUT", "2s").env("CUINSTR_TIMEOT", "2s");
        crate::project::Run::new(&command.output().expect("it starts")).exits(0).stdout
    };
    let bare = run("");
    for text in [
        "yes  cuinstr FILE",
        "yes  cuinstr verify",
        "lacks nvcc",
        "lacks ptxas",
        "no   cuinstr run",
        "CUINSTR_TIMEOUT=2s, read by programs",
        "did you mean CUINSTR_TIMEOUT?",
        "cuinstr.toml",
    ] {
        assert!(bare.contains(text), "{text}: {bare}");
    }
    // A machine with the tools, as far as their names and answers go.
    project.write("bin/nvcc", b"#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n");
    project.write("bin/g++", b"#!/bin/sh\necho 'g++ 12'\n");
    project.write("bin/nvidia-smi", b"#!/bin/sh\ncase $1 in *driver*) echo 580.65;; *) echo '0, NVIDIA H100, 9.0';; esac\n");
    project.shell("chmod +x bin/*");
    let path = project.0.path().join("bin");
    let full = run(path.to_str().expect("a temporary folder's path is text"));
    for text in ["release 13.0", "580.65", "0: NVIDIA H100, sm_90", "yes  cuinstr nvcc", "yes  launching kernels"] {
        assert!(full.contains(text), "{text}: {full}");
    }
}

#[test]
fn a_program_is_run_with_its_own_options() {
    let project = Project::new(&[]);
    for arguments in ["run --timeout 2s no-such-program --list -x", "run -- no-such-program"] {
        project.run(arguments).exits(127).says("there is no program `no-such-program`");
    }
}

#[test]
fn a_command_without_the_library_to_preload_says_how_to_get_it() {
    let project = Project::new(&[]);
    let run = |arguments: &str| project.shell(&format!("cp \"$1\" alone && exec ./alone {arguments}"));
    run("run true").exits(3).says("build both as README says");
    assert!(run("doctor").exits(0).stdout.contains("lacks its library"));
}

#[test]
fn variables_that_nothing_reads_are_told() {
    let project = Project::new(&[("k.cu", SPIN)]);
    let run = |variable: &str, arguments: &str| {
        crate::project::Run::new(&project.command(arguments).env(variable, "2s").output().expect("it starts")).exits(0)
    };
    run("CUINSTR_TIMEOT", "k.cu -o out.cu").says("warning: nothing reads the variable CUINSTR_TIMEOT; did you mean CUINSTR_TIMEOUT?");
    run("CUINSTR_TIMEOUT", "k.cu -o out.cu").says("does not read the variable CUINSTR_TIMEOUT");
    assert!(!run("CUINSTR_TIMEOT", "k.cu -o out.cu -q").stderr.contains("CUINSTR_TIMEOT"));
}

#[test]
fn options_that_mean_nothing_for_ptx_are_told() {
    let ptx = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";
    let project = Project::new(&[("k.ptx", ptx), ("k.cu", SPIN)]);
    let run = |arguments: &str| project.run(arguments).exits(0).stderr;
    let said = run("k.ptx k.cu -o out --at-exit gate -D A=1");
    assert!(said.contains("warning: k.ptx is PTX, for which these options mean nothing: --at-exit, -D\n"), "{said}");
    assert!(!said.contains("k.cu is"), "{said}");
    assert_eq!(run("k.ptx -o out.ptx --at-exit gate -q"), "");
    assert!(!run("k.ptx -o out.ptx --polls each").contains("mean nothing"));
}

#[test]
fn verbose_says_what_became_of_each_input() {
    let project = Project::new(&[("k.cu", SPIN), ("host.cu", "int main() {}\n"), ("sub/cuinstr.toml", ""), ("sub/l.cu", SPIN)]);
    project
        .run("k.cu host.cu sub/l.cu -o out -v")
        .exits(0)
        .says("k.cu: rewritten, ")
        .says(", to out/k.cu; no cuinstr.toml")
        .says("host.cu: copied unchanged, to out/host.cu")
        .says("configuration sub/cuinstr.toml");
}

#[test]
fn colors_come_when_they_are_asked_for() {
    let project = Project::new(&[("bad.ptx", "no PTX"), ("k.cu", SPIN)]);
    let colored = |arguments: &str| {
        let run = project.run(arguments);
        run.stdout.contains('\u{1b}') || run.stderr.contains('\u{1b}')
    };
    for command in ["missing.cu -o out.cu", "verify bad.ptx", "audit missing.cu"] {
        assert!(colored(&format!("{command} --color always")), "{command}");
        assert!(!colored(&format!("{command} --color never")) && !colored(command), "{command}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn colour_and_bar_are_for_terminals_only() {
    let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    let on_terminal = |command: &str| project.shell(&format!("export TERM=xterm; exec script -qec \"$1 {command}\" /dev/null"));
    if project.shell("command -v script").code != Some(0) {
        return; // util-linux's `script` lends the terminal.
    }
    let run = on_terminal("missing.cu -o out.cu");
    assert!(run.stdout.contains("\u{1b}[") && run.stdout.contains("CI040"), "{run:?}");
    let run = project.shell("export TERM=xterm NO_COLOR=1; exec script -qec \"$1 missing.cu -o out.cu\" /dev/null");
    assert!(!run.stdout.contains("\u{1b}[") && run.stdout.contains("CI040"), "{run:?}");
    let run = project.run("missing.cu -o out.cu").exits(3);
    assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
}
