//! Sockets without a listener.

use crate::project::{BINARY, Project, text};
use std::fs;
use std::os::unix::net::UnixListener;

/// A process that begins has a socket before it listens. If `ps` removes it then, no command finds the process any more.
#[test]
fn a_socket_goes_with_its_process_and_not_before() {
    let project = Project::new(&[]);
    let folder = project.path().join("runtime").join("cuinstr");
    fs::create_dir_all(&folder).expect("a folder");
    // This process lives. No process has the other number.
    let (living, gone) = (std::process::id(), u32::MAX);
    for number in [living, gone] {
        drop(UnixListener::bind(folder.join(format!("{number}.sock"))).expect("a socket"));
        fs::write(folder.join(format!("{number}.0.words")), "").expect("a file");
    }
    for _ in 0..2 {
        let mut command = project.command(BINARY);
        let output = command.arg("ps").env("XDG_RUNTIME_DIR", project.path().join("runtime")).output().expect("it starts");
        assert_eq!(text(&output.stdout), "no process of yours is watched: start one with `cuinstr run`\n");
        let left = |name: &str| [living, gone].map(|number| folder.join(format!("{number}.{name}")).exists());
        assert_eq!((left("sock"), left("0.words")), ([true, false], [true, false]));
    }
}
