//! Reading and writing: what may go wrong, and what is never done.

use crate::project::{COPY_ALL, Project, Run, SPIN};
use std::fs;
use std::path::Path;

#[test]
fn an_input_that_can_t_be_read_is_an_io_error() {
    let project = Project::new(&[("folder/k.cu", SPIN)]);
    project.run("missing.cu -o out.cu").exits(3).says("error[CI040]: the file does not exist").says("--> missing.cu");
    project.run("folder -o out.cu").exits(3).says("CI040").says("a folder");
    assert!(!project.has("out.cu"));
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_an_io_error() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(&[("k.cu", SPIN)]);
    fs::set_permissions(project.0.path().join("k.cu"), fs::Permissions::from_mode(0o000)).expect("we own it");
    if fs::read(project.0.path().join("k.cu")).is_ok() {
        return; // Root reads everything.
    }
    project.run("k.cu -o out.cu").exits(3).says("CI040").says("may not be read");
}

#[test]
fn the_input_is_never_overwritten() {
    let project = Project::new(&[("k.cu", SPIN), ("sub/l.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    for arguments in
        ["k.cu -o k.cu", "k.cu -o ./sub/../k.cu", "k.cu -o .", "k.cu sub/l.cu -o sub", "k.cu --sites k.cu", "k.cu -o cuinstr.toml"]
    {
        project.run(arguments).exits(1).says("error[CI041]");
        assert_eq!((project.read("k.cu"), project.read("sub/l.cu")), (SPIN.to_owned(), SPIN.to_owned()), "{arguments}");
        assert_eq!(project.read("cuinstr.toml"), COPY_ALL, "{arguments}");
    }
}

#[cfg(unix)]
#[test]
fn the_input_is_never_overwritten_through_a_link() {
    let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    let root = project.0.path();
    std::os::unix::fs::symlink("k.cu", root.join("soft.cu")).expect("links can be made");
    fs::hard_link(root.join("k.cu"), root.join("hard.cu")).expect("links can be made");
    for arguments in ["k.cu -o soft.cu", "k.cu -o hard.cu", "soft.cu -o k.cu", "hard.cu -o soft.cu"] {
        project.run(arguments).exits(1).says("error[CI041]");
    }
    project.shell("\"$1\" - -o k.cu < k.cu").exits(1).says("CI041");
    project.shell("\"$1\" k.cu -o - >> k.cu").exits(1).says("CI041");
    assert_eq!(project.read("k.cu"), SPIN);
}

#[cfg(unix)]
#[test]
fn what_an_output_link_points_to_is_replaced() {
    let project = Project::new(&[("k.cu", SPIN), ("real/old.cu", "old"), ("cuinstr.toml", COPY_ALL)]);
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, project.0.path().join(name)).expect("links can be made");
    link("real/old.cu", "there.cu");
    link("real/new.cu", "dangling.cu");
    project.run("k.cu -o there.cu").exits(0);
    project.run("k.cu -o dangling.cu").exits(0);
    assert_eq!((project.read("real/old.cu"), project.read("real/new.cu")), (SPIN.to_owned(), SPIN.to_owned()));
    assert!(project.0.path().join("there.cu").is_symlink() && project.0.path().join("dangling.cu").is_symlink());
    link("loop.cu", "loop.cu");
    project.run("k.cu -o loop.cu").exits(3).says("CI042");
}

#[cfg(unix)]
#[test]
fn an_output_has_the_permissions_of_a_fresh_file() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    project.shell("umask 027; exec \"$1\" k.cu -o out.cu").exits(0);
    assert_eq!(fs::metadata(project.0.path().join("out.cu")).expect("it is there").permissions().mode() & 0o777, 0o640);
}

#[test]
fn an_output_that_can_t_be_written_is_an_io_error() {
    let project = Project::new(&[("k.cu", SPIN), ("l.cu", SPIN), ("file", ""), ("locked.cu", "old"), ("cuinstr.toml", COPY_ALL)]);
    let locked = project.0.path().join("locked.cu");
    let mut permissions = fs::metadata(&locked).expect("it is there").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&locked, permissions).expect("we own it");
    let before = project.names(".");
    for (arguments, why) in [
        ("k.cu -o no/such/folder.cu", "folder does not exist"),
        ("k.cu -o locked.cu", "may not be written"),
        ("k.cu -o file/out.cu", "can't be written"),
        ("k.cu l.cu -o file", "need a folder"),
    ] {
        project.run(arguments).exits(3).says("error[CI042]").says(why);
        assert_eq!(project.names("."), before, "{arguments}");
    }
    assert_eq!(project.read("locked.cu"), "old");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_io_error_and_leaves_nothing_half_written() {
    let project = Project::new(&[("k.cu", SPIN), ("out.cu", "old"), ("cuinstr.toml", COPY_ALL)]);
    project.run("k.cu -o /dev/full").exits(3).says("error[CI042]").says("the disk is full");
    project.shell("exec \"$1\" k.cu -o - > /dev/full").exits(3).says("standard output can't be written");
    // No file may grow at all: the write of the temporary file fails after it was made.
    project.shell("trap '' XFSZ; ulimit -f 0; exec \"$1\" k.cu -o out.cu").exits(3).says("CI042");
    assert_eq!(project.read("out.cu"), "old");
    assert_eq!(project.names("."), ["cuinstr.toml", "k.cu", "out.cu"], "no temporary file is left");
}

#[cfg(target_os = "linux")]
#[test]
fn where_few_threads_can_be_started_fewer_do_the_work() {
    let project = Project::new(&[("k.cu", SPIN), ("l.cu", SPIN), ("k.ptx", &long_ptx())]);
    // A thread takes address space: of 500 not one fits into the least of these.
    for kilobytes in [1_000_000, 400_000, 100_000] {
        let limited = format!("export RAYON_NUM_THREADS=500; ulimit -v {kilobytes}; exec \"$1\"");
        let verified = project.shell(&format!("{limited} verify k.ptx")).exits(0);
        assert!(verified.stdout.contains("800 kernels, 800 loops"), "{kilobytes}: {verified:?}");
        project.shell(&format!("{limited} k.cu l.cu -o out")).exits(0);
        assert_eq!(project.names("out"), ["k.cu", "l.cu"], "{kilobytes}");
    }
}

/// Kernels with a loop each, in more text than one thread takes.
#[cfg(target_os = "linux")]
fn long_ptx() -> String {
    let kernel = |number: usize| {
        format!(
            ".visible .entry k{number}() {{\n.reg .b32 %n;\n.reg .pred %p;\nmov.u32 %n, 9;\n$L{number}:\nadd.u32 %n, %n, -1;\n\
             setp.ne.u32 %p, %n, 0;\n@%p bra $L{number};\n{}ret;\n}}\n",
            "// what makes it long\n".repeat(20),
        )
    };
    ".version 8.0\n.target sm_90\n.address_size 64\n".to_owned() + &(0..800).map(kernel).collect::<String>()
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_killed_within_a_write_leaves_no_file() {
    let project = Project::new(&[("k.cu", SPIN), ("out.cu", "old")]);
    for output in ["out.cu", "fresh.cu"] {
        // The signal comes when the file has grown to a kilobyte, and ends the process at once.
        let run = project.shell(&format!("ulimit -f 1; exec \"$1\" k.cu -o {output}"));
        assert_eq!(run.code, None, "{run:?}");
        assert_eq!(project.names("."), ["k.cu", "out.cu"]);
        assert_eq!(project.read("out.cu"), "old");
    }
    // What was left between two calls goes with the next write.
    project.write(".cuinstr-out.cu.tmp", b"left");
    project.run("k.cu -o out.cu").exits(0);
    assert_eq!(project.names("."), ["k.cu", "out.cu"]);
    assert!(project.read("out.cu").contains("__cuinstr_"));
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_written_to_not_replaced() {
    let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    project.run("k.cu -o /dev/null").exits(0);
    assert!(!Path::new("/dev/null").is_file());
    let run = project.shell("mkfifo pipe; cat pipe & \"$1\" k.cu -o pipe -q; wait").exits(0);
    assert_eq!(run.stdout, SPIN);
    assert_eq!(project.shell("\"$1\" k.cu -o /dev/stdout -q | cat").exits(0).stdout, SPIN);
}

#[test]
fn a_reader_that_stops_reading_is_no_fault() {
    let project = Project::new(&[("k.cu", SPIN), ("cuinstr.toml", COPY_ALL)]);
    for arguments in ["k.cu -o - -q", "explain", "--help"] {
        let (reader, writer) = std::io::pipe().expect("pipes can be made");
        drop(reader);
        let output = project.command(arguments).stdout(writer).output().expect("the command starts");
        Run::new(&output).exits(0).silent();
    }
}
