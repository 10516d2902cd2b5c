//! What goes wrong around a compilation: nvcc's own behaviour or a clear error, and nothing left behind.

use crate::project::{BINARY, Project, SPIN, expect, text};
use cuinstr_trial::ignore;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NOTHING: Vec<PathBuf> = Vec::new();

/// Waits for something that another process does; far longer than any machine takes.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(120), "{what} takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A launch whose nvcc says that it is there and waits to be killed.
fn hanging(project: &Project, ready: &str) -> Child {
    let then = format!("echo $$ > pid; mv pid {ready}; exec sleep 600");
    let mut command = project.signalled(BINARY);
    let child =
        command.args(["nvcc", "-c", "a.cu"]).env("SHIM_THEN", then).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let path = project.path().join(ready);
    wait_for("nvcc's start", || path.exists());
    child
}

fn kill(signal: &str, process: &str) {
    let status = Command::new("kill").args([signal, process.trim()]).status().expect("kill is there");
    assert!(status.success(), "kill {signal} {process}");
}

#[test]
fn nvcc_gives_the_exit_code() {
    let project = Project::new(&[("a.cu", SPIN)]);
    for (then, code) in [("exit 7", 7), ("echo broken >&2; exit 1", 1), ("kill -9 $$", 137), ("kill -11 $$", 139)] {
        let output = expect(project.launch(&["-c", "a.cu"]).env("SHIM_THEN", then), code);
        assert_eq!(text(&output.stderr), if code == 1 { "broken\n" } else { "" }, "{then}");
        assert_eq!(project.left_behind(), NOTHING, "{then}");
    }
}

#[test]
fn a_missing_nvcc_is_one_readable_error() {
    let project = Project::new(&[]);
    for words in [vec!["nvcc", "-c", "a.cu"], vec!["/nowhere/bin/nvcc", "-c", "a.cu"]] {
        let output = expect(project.command(BINARY).args(words).env("PATH", "/nowhere"), 127);
        let message = text(&output.stderr);
        assert!(message.contains("nvcc`") && message.contains("help: install the CUDA toolkit"), "{message}");
        assert_eq!(project.left_behind(), NOTHING);
    }
}

#[test]
fn an_nvcc_that_can_not_be_started_is_one_readable_error() {
    let project = Project::new(&[
        ("a.cu", SPIN),
        ("broken/nvcc", "neither a script nor a program"),
        ("lost/nvcc", "#!/nowhere/sh\n"),
        ("plain/nvcc", ""),
    ]);
    fs::create_dir_all(project.path().join("folder/nvcc")).expect("a folder");
    for name in ["broken", "lost"] {
        fs::set_permissions(project.path().join(name).join("nvcc"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    for (name, why) in
        [("broken", "can't be started"), ("lost", "can't be started"), ("plain", "there is no program"), ("folder", "there is no program")]
    {
        let nvcc = format!("{name}/nvcc");
        let output = expect(project.command(BINARY).args([&nvcc, "-c", "a.cu"]), 127);
        let message = text(&output.stderr);
        assert!(message.contains(why) && message.contains(&nvcc) && message.contains("help: "), "{message}");
        assert_eq!(project.left_behind(), NOTHING, "{name}");
    }
}

#[test]
fn a_signal_ends_nvcc_and_the_launch_and_leaves_nothing() {
    let project = Project::new(&[("a.cu", SPIN)]);
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        let ready = format!("ready{signal}");
        let mut child = hanging(&project, &ready);
        kill(signal, &child.id().to_string());
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(number), "{signal}: {status}");
        assert_eq!(project.left_behind(), NOTHING, "{signal}");
    }
}

#[test]
fn what_a_killed_build_left_is_gone_after_the_next_and_what_runs_stays() {
    let project = Project::new(&[("a.cu", SPIN)]);
    let mut alive = hanging(&project, "alive");
    let mut killed = hanging(&project, "killed");
    killed.kill().expect("it runs");
    let _ = killed.wait();
    let sessions = || {
        let base = project.left_behind().pop().expect("a folder");
        let entries = fs::read_dir(base).expect("readable").map(|entry| entry.expect("readable").file_name());
        entries.filter(|name| name.to_string_lossy().starts_with("s-")).count()
    };
    // nvcc still runs below the killed one and may need what is there.
    expect(&mut project.launch(&["-c", "a.cu"]), 0);
    assert_eq!(sessions(), 2);
    kill("-9", &fs::read_to_string(project.path().join("killed")).expect("readable"));
    wait_for("the removal of a session", || {
        expect(&mut project.launch(&["-c", "a.cu"]), 0);
        sessions() == 1
    });
    kill("-TERM", &alive.id().to_string());
    let _ = alive.wait();
    assert_eq!(project.left_behind(), NOTHING);
}

#[test]
fn source_that_bears_our_names_is_an_error() {
    for (files, named) in [
        ([("a.cu", "#include \"b.h\"\nint x;\n"), ("b.h", "#define __cuinstr_prelude_v1\n")], "b.h:1:1: error[CI004]"),
        ([("a.cu", "__device__ unsigned cuinstr_flag_v1;\n"), ("b.h", "")], "a.cu:1:21: error[CI004]"),
        ([("a.cu", "%:include \"b.h\"\n"), ("b.h", "int __cuinstr_x;\n")], "b.h:1:5: error[CI004]"),
        ([("a.cu", "#define NAME \"b.h\"\n#include NAME\n"), ("b.h", "int __cuinstr_x;\n")], "b.h:1:5: error[CI004]"),
    ] {
        let project = Project::new(&files);
        // On the device's side, and on the host's, which reads the user's own files.
        for ending in [".ii", ".cpp4.ii"] {
            let mut command = project.launch(&["-c", "a.cu"]);
            let output = expect(command.env("SHIM_SOURCES", "a.cu").env("SHIM_ENDING", ending), 1);
            assert!(text(&output.stderr).contains(named), "{ending}: {}", text(&output.stderr));
            assert!(!project.path().join(format!("toolkit/bin/a.cu{ending}")).exists());
        }
    }
    // What is named and never read is nobody's business.
    let project = Project::new(&[("a.cu", "#if 0\n#include \"b.h\"\n#endif\n"), ("b.h", "int __cuinstr_x;\n")]);
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
}

#[test]
fn gaps_are_said_once_and_are_errors_under_strict() {
    let gap = "__global__ void f() {\n    asm volatile(\"L: bra L;\");\n}\n";
    let project = Project::new(&[("a.cu", "#include \"gap.cuh\"\n"), ("gap.cuh", gap)]);
    let run = |flags: &str, code| {
        let mut command = project.launch(&["-c", "a.cu"]);
        text(&expect(command.env("SHIM_SOURCES", "a.cu a.cu").env("CUINSTR_FLAGS", flags), code).stderr)
    };
    let said = run("", 0);
    assert!(said.starts_with("gap.cuh:2:5: warning[CI013]") && said.lines().count() == 1, "{said}");
    assert_eq!(run("--quiet", 0), "");
    assert!(run("--strict", 1).starts_with("gap.cuh:2:5: error[CI013]"));
    project.write("cuinstr.toml", "[[waiver]]\ncode = 'CI013'\nreason = 'it is a test'\n");
    assert_eq!(run("--strict", 0), "");
    project.write("cuinstr.toml", "exclude = ['gap.cuh']\n");
    assert_eq!(run("--strict", 0), "");
    project.write("cuinstr.toml", "exclude = 3\n");
    assert!(run("", 3).contains("cuinstr.toml:1:11: error[CI043]"));
}

#[test]
fn a_temporary_folder_that_can_not_be_used_is_a_clear_error() {
    let project = Project::new(&[("a.cu", SPIN)]);
    let output = expect(project.launch(&["-c", "a.cu"]).env("TMPDIR", "/nowhere/at/all"), 3);
    let message = text(&output.stderr);
    assert!(message.contains("/nowhere/at/all") && message.contains("set TMPDIR"), "{message}");
    // One that others may write to is not trusted with links to run.
    let base = project.temporary().join(format!("cuinstr-{}", user()));
    fs::create_dir(&base).expect("a folder");
    fs::set_permissions(&base, fs::Permissions::from_mode(0o777)).expect("it is ours");
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
    assert!(project.preprocessed("a.cu").contains("__cuinstr_"));
    assert_eq!(project.left_behind(), std::slice::from_ref(&base));
    assert_eq!(fs::read_dir(&base).expect("readable").count(), 0);
}

fn user() -> String {
    text(&Command::new("id").arg("-u").output().expect("id is there").stdout).trim().to_owned()
}

#[test]
fn a_session_that_can_not_be_set_up_is_an_error_and_leaves_nothing() {
    let project = Project::new(&[("a.cu", SPIN)]);
    // No file can bear this name, so no link can.
    let name = "g".repeat(300);
    let output = expect(&mut project.launch(&["-ccbin", &name, "-c", "a.cu"]), 3);
    assert!(text(&output.stderr).contains("can't write"), "{}", text(&output.stderr));
    assert_eq!(project.left_behind(), NOTHING);
}

#[test]
fn an_output_that_can_not_be_written_is_an_error() {
    let project = Project::new(&[("a.cu", SPIN)]);
    // Every write fails there, as on a full disk.
    symlink("/dev/full", project.path().join("full")).expect("a link");
    let shim =
        fs::read_to_string(project.shim()).expect("readable").replace("-o \"$here/$(basename \"$source\")${SHIM_ENDING:-.ii}\"", "-o full");
    fs::write(project.shim(), shim).expect("writable");
    let output = expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 3);
    assert!(text(&output.stderr).contains("can't write `full`"), "{}", text(&output.stderr));
    assert_eq!(project.left_behind(), NOTHING);
}

/// The launch with a small or read-only file system, which it takes namespaces to mount, as the folder for temporary files. Gives its exit code, what
/// it says, and what is left there; nothing where the system does not let us.
fn on_file_system(project: &Project, options: &str) -> Option<(i32, String, String)> {
    let script = format!("mount -t tmpfs -o {options} none tmp || exit 99; \"$@\" 2>said; code=$?; ls -A tmp >left; exit $code");
    let mut command = project.command("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh", BINARY, "nvcc", "-c", "a.cu"])
        .env("SHIM_SOURCES", "a.cu");
    let code = command.output().ok()?.status.code()?;
    let read = |name: &str| fs::read_to_string(project.path().join(name)).ok();
    // Without the file that the script leaves there was no file system of ours.
    let left = read("left").filter(|_| code != 99)?;
    Some((code, read("said")?, left))
}

#[test]
fn a_full_disk_is_an_error_that_says_so_and_leaves_nothing() {
    let header = "#pragma once\n__device__ void h(volatile int* p) { while (*p) {} }\n";
    let project = Project::new(&[("a.cu", &format!("#include \"b.cuh\"\n{SPIN}")), ("b.cuh", header)]);
    if on_file_system(&project, "size=8m").is_none() {
        ignore("file systems can't be mounted here without rights");
    }
    let sizes = [
        "size=4k",
        "size=8k",
        "size=24k",
        "size=48k",
        "size=64k",
        "nr_inodes=1",
        "nr_inodes=2",
        "nr_inodes=4",
        "nr_inodes=8",
        "nr_inodes=16",
    ];
    for size in sizes {
        let (code, said, left) = on_file_system(&project, size).expect("it was possible before");
        assert_eq!((code, left.as_str()), (3, ""), "{size}: {said}");
        assert!(said.starts_with("cuinstr: error: can't ") && said.contains("help: free some space there"), "{size}: {said}");
    }
    let (code, said, left) = on_file_system(&project, "ro").expect("it was possible before");
    assert_eq!((code, left.as_str()), (3, ""), "{said}");
    assert!(said.contains("help: set TMPDIR to a folder that may be written"), "{said}");
    // Where there is room the same call does its work.
    let (code, said, left) = on_file_system(&project, "size=8m").expect("it was possible before");
    assert_eq!((code, said.as_str(), left.as_str()), (0, "", ""));
}
