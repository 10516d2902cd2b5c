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
        ("explain CI999", "`cuinstr explain` lists them"),
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
