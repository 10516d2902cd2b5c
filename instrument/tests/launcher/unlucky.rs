//! What unlucky and hostile users do: signals at odd moments, caches in odd places, names and folders that nobody would choose.

use crate::project::{BINARY, Project, SPIN, expect, text};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const NOTHING: Vec<PathBuf> = Vec::new();

/// Runs the launch with an nvcc that does this, in a process group of its own; once nvcc has said that it is ready, that command is run with the number
/// of the launch's process in `$launch`.
fn disturbed(project: &Project, before: &str, then: &str, disturb: &str) -> (std::process::ExitStatus, Duration) {
    let _ = fs::remove_file(project.path().join("ready"));
    let mut command = project.signalled("sh");
    command.args(["-c", &format!("{before}; exec \"$@\""), "sh", BINARY, "nvcc", "-c", "a.cu"]).env("SHIM_THEN", then).process_group(0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let since = Instant::now();
    while !project.path().join("ready").exists() {
        assert!(since.elapsed() < Duration::from_secs(120), "nvcc does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let since = Instant::now();
    expect(Command::new("sh").args(["-c", disturb]).env("launch", child.id().to_string()), 0);
    (child.wait().expect("it ends"), since.elapsed())
}

#[test]
fn a_ctrl_c_leaves_nvcc_the_time_to_tidy_up() {
    let project = Project::new(&[("a.cu", SPIN)]);
    // nvcc's own way: what it runs dies of the signal, then it removes its files, and a second signal would end it there.
    // It may come before that begins, too.
    let then = "trap told=1 INT; touch ready; while [ -z \"$told\" ]; do sleep 0.05; done; trap - INT; sleep 0.2; touch tidy; exit 2";
    let (status, _) = disturbed(&project, ":", then, "kill -INT -$launch");
    assert_eq!(status.signal(), Some(2), "{status}");
    assert!(project.path().join("tidy").exists());
    assert_eq!(project.left_behind(), NOTHING);
}

#[test]
fn a_signal_that_does_not_keep_nvcc_from_its_work_fails_nothing() {
    let project = Project::new(&[("a.cu", SPIN)]);
    // One that only the launch is sent; nvcc ignores it while it waits for what it runs.
    let (status, _) = disturbed(&project, ":", "trap '' INT; touch ready; sleep 1; exit 0", "kill -INT $launch");
    assert_eq!(status.code(), Some(0), "{status}");
    assert_eq!(project.left_behind(), NOTHING);
}

#[test]
fn signals_that_were_ignored_from_the_beginning_stay_ignored() {
    let project = Project::new(&[("a.cu", SPIN)]);
    // As by `nohup`, and by a shell for what it runs in the background.
    let (status, _) = disturbed(&project, "trap '' HUP INT", "touch ready; sleep 1", "kill -HUP -$launch; kill -INT -$launch");
    assert_eq!(status.code(), Some(0), "{status}");
    assert_eq!(project.left_behind(), NOTHING);
}

#[test]
fn a_cache_that_would_take_us_for_nothing_is_refused() {
    let project = Project::new(&[("a.cu", SPIN)]);
    let links = project.link("nvcc").parent().expect("a folder").to_owned();
    let other = "/bin/true".to_owned();
    for (prefix, refused) in [(BINARY.to_owned(), true), (format!("{other} {}", links.join("nvcc").display()), true), (other, false)] {
        let mut command = project.launch(&["-c", "a.cu"]);
        let output = expect(command.env("CCACHE_PREFIX", &prefix).env("CCACHE_DISABLE", "1"), if refused { 2 } else { 0 });
        assert_eq!(text(&output.stderr).contains("put ccache in front of a link"), refused, "{prefix}: {}", text(&output.stderr));
    }
    // Not below a cache.
    expect(project.launch(&["-c", "a.cu"]).env("CCACHE_PREFIX", BINARY).env_remove("CCACHE_DISABLE"), 0);
}

#[test]
fn an_object_that_is_not_what_it_seems_does_not_stay() {
    let project = Project::new(&[("a.cu", SPIN)]);
    // nvcc has a compiler of its own, and nothing is rewritten.
    for words in [&["-c", "a.cu"][..], &["-c", "a.cu", "-o", "other.o"]] {
        let output =
            expect(project.launch(words).env("SHIM_HOST", "/usr/bin/env -u CUINSTR_SESSION true").env("SHIM_THEN", "touch a.o other.o"), 3);
        assert!(text(&output.stderr).contains("nothing was rewritten"), "{}", text(&output.stderr));
        assert!(!project.path().join(if words.len() > 2 { "other.o" } else { "a.o" }).exists());
    }
}

#[test]
fn the_folder_for_temporary_files_may_bear_any_name() {
    for name in ["with:colon", "with blank", "-dash", "$HOME", "qu\"ote", "new\nline"] {
        let project = Project::new(&[("a.cu", SPIN)]);
        fs::create_dir(project.path().join(name)).expect("a folder");
        for folder in [PathBuf::from(name), project.path().join(name)] {
            expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu").env("TMPDIR", &folder), 0);
            assert!(project.preprocessed("a.cu").contains("__cuinstr_"), "{name}");
            assert_eq!(fs::read_dir(project.path().join(name)).expect("readable").count(), 0, "{name}");
        }
    }
    // An empty name is none.
    let project = Project::new(&[("a.cu", SPIN)]);
    expect(project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu").env("TMPDIR", ""), 0);
    assert!(project.preprocessed("a.cu").contains("__cuinstr_"));
}

#[test]
fn an_answer_that_is_cut_short_is_an_error() {
    let project = Project::new(&[("a.cu", SPIN)]);
    let shim = fs::read_to_string(project.shim()).expect("readable").replace("-o \"$here/$(basename \"$source\")${SHIM_ENDING:-.ii}\"", "");
    fs::write(project.shim(), shim).expect("writable");
    let full = fs::File::options().write(true).open("/dev/full").expect("it is there");
    let output = expect(project.launch(&["-E", "a.cu"]).env("SHIM_SOURCES", "a.cu").stdout(Stdio::from(full)).stderr(Stdio::piped()), 3);
    assert!(text(&output.stderr).contains("can't write to standard output"), "{}", text(&output.stderr));
    // Who reads no more than the beginning has what it wants.
    let mut command = project.command("sh");
    let output = expect(command.args(["-c", "\"$@\" | head -c 4", "sh", BINARY, "nvcc", "-E", "a.cu"]).env("SHIM_SOURCES", "a.cu"), 0);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("# 1 ".to_owned(), String::new()));
    assert_eq!(project.left_behind(), NOTHING);
}

#[test]
fn what_nvcc_complains_of_is_left_to_it() {
    let project = Project::new(&[("a.cu", SPIN), ("-x.cu", SPIN)]);
    fs::create_dir(project.path().join("empty")).expect("a folder");
    symlink("/nowhere", project.path().join("dangling")).expect("a link");
    for words in [
        &["-optf", "nowhere.txt", "-c", "a.cu"][..],
        &["-optf", "empty", "-c", "a.cu"],
        &["@nowhere.txt", "-c", "a.cu"],
        &["-I", "@folder", "-o", "@object", "-c", "a.cu"],
        &["-ccbin", "", "-c", "a.cu"],
        &["-ccbin=", "-c", "a.cu"],
        &["-ccbin", "/nowhere/g++", "-c", "a.cu"],
        &["-ccbin", "empty", "-c", "a.cu"],
        &["-ccbin", "./dangling", "-c", "a.cu"],
    ] {
        let output = expect(project.launch(words).env("SHIM_SOURCES", "a.cu"), 0);
        assert_eq!((project.record().1, text(&output.stderr)), (words.iter().map(|word| (*word).to_owned()).collect(), String::new()));
    }
    let file = project.path().join("toolkit/bin/broken");
    fs::write(&file, "neither a script nor a program").expect("writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let output = expect(
        project.launch(&["-c", "a.cu"]).env("SHIM_SOURCES", "a.cu").env("SHIM_HOST", "g++").env("PATH", path_with_broken(&project)),
        127,
    );
    let said = text(&output.stderr);
    assert!(said.contains("the host compiler") && said.contains("can't be started") && said.contains("-ccbin"), "{said}");
    assert_eq!(project.left_behind(), NOTHING);
}

/// A search path with a `g++` in front that can't be started.
fn path_with_broken(project: &Project) -> std::ffi::OsString {
    let folder = project.path().join("broken");
    fs::create_dir(&folder).expect("a folder");
    fs::rename(project.path().join("toolkit/bin/broken"), folder.join("g++")).expect("it is ours");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [folder, project.path().join("toolkit/bin")].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).expect("a path")
}
