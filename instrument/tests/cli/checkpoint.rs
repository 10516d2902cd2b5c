//! `cuinstr checkpoint` over the stand-in driver; the library's own tests are in `runtime/checkpoint`.

use cuinstr_stand_in::targets::{Machine, Target};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

struct World(Machine);

impl World {
    fn new() -> Self {
        Self(Machine::new())
    }

    fn command(&self, words: &str, target: &Target) -> Command {
        let words = words.replace("PID", &target.pid().to_string()).replace("DIR", &self.0.file("dump").display().to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuinstr"));
        command.arg("checkpoint").args(words.split(' ')).envs(self.0.variables("")).env("XDG_RUNTIME_DIR", self.0.known());
        command
    }

    /// `cuinstr checkpoint` with these words, of which PID stands for the target's.
    fn run(&self, words: &str, target: &Target) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(words, target).output().expect("the command");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (status.code().expect("an exit code"), text(stdout), text(stderr))
    }
}

#[test]
fn a_process_is_suspended_and_resumed_by_its_pid() {
    let world = World::new();
    let target = world.0.target(&[("bytes", 1_073_741_824)]);
    for (words, said) in [
        ("state --pid PID", "running\n"),
        ("suspend --pid PID", "checkpointed\n"),
        ("state --pid PID", "checkpointed\n"),
        ("resume --pid PID", "running\n"),
        ("toggle --pid PID", "checkpointed\n"),
        ("toggle --pid PID --map-gpu GPU-00000000-0000-0000-0000-000000000000=GPU-00000000-0000-0000-0000-000000000000", "running\n"),
    ] {
        assert_eq!(world.run(words, &target), (0, said.to_owned(), String::new()), "{words}");
    }
    let (status, said, _) = world.run("state --tree --json --pid PID", &target);
    assert_eq!((status, said), (0, format!("{{\"processes\":[{{\"pid\":{},\"state\":\"running\"}}]}}\n", target.0.id())));
    let (status, said, _) = world.run("check --pid PID", &target);
    assert!(status == 0 && said.contains("running, can be checkpointed") && said.contains("on GPUs        1.0 GiB"), "{said}");
}

#[test]
fn what_is_in_the_way_is_named_with_where_the_process_stands() {
    let world = World::new();
    let target = world.0.target(&[("busy", 1)]);
    let (status, said, why) = world.run("suspend --lock-timeout 20ms --json --pid PID", &target);
    assert!(status == 1 && said.starts_with("{\"error\":") && why.contains("is busy") && why.contains("is running now"), "{said}{why}");
    world.0.know(&target.pid().to_string(), &[("managed", 1)]);
    let (status, _, why) = world.run("suspend --pid PID", &target);
    assert!(status == 1 && why.contains("cudaMallocManaged") && why.contains("is running now"), "{why}");
    world.0.know(&target.pid().to_string(), &[("state", 3)]);
    let (status, said, _) = world.run("check --pid PID", &target);
    assert!(status == 1 && said.contains("in the way: process") && said.contains("is lost"), "{said}");
    for (words, status, why) in [
        ("state --pid 0", 2, "no process id"),
        ("state --pid -4", 2, "no process id"),
        ("state --pid 2147483647", 1, "there is no process"),
        ("resume --pid PID --map-gpu GPU-1=GPU-2", 2, "is no UUID of a GPU"),
        ("suspend --pid PID --lock-timeout 0s", 2, "zero"),
        ("suspend", 2, "--pid"),
    ] {
        let told = world.run(words, &target);
        assert!(told.0 == status && told.2.contains(why), "{words}: {told:?}");
    }
}

/// A stand-in for CRIU: `CRIU_MODE` says what goes wrong.
const CRIU: &str = include_str!("../../../tests/data/criu");

impl World {
    /// `cuinstr checkpoint` with these words, with a CRIU that does as `mode` says.
    fn with_criu(&self, words: &str, target: &Target, mode: &str) -> (Option<i32>, String) {
        let output = self.criu_command(words, target, mode).output().expect("the command");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    fn criu_command(&self, words: &str, target: &Target, mode: &str) -> Command {
        let criu = self.0.file("bin");
        fs::create_dir_all(&criu).expect("a folder");
        fs::write(criu.join("criu"), CRIU).expect("a file");
        Command::new("chmod").arg("+x").arg(criu.join("criu")).status().expect("chmod");
        let mut command = self.command(words, target);
        command.env("CRIU_MODE", mode);
        if let Some(version) = mode.strip_prefix("version ") {
            command.env("CRIU_VERSION", version);
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", criu.display()));
        command
    }

    fn state(&self, target: &Target) -> String {
        self.run("state --pid PID", target).1.trim().to_owned()
    }

    fn dump(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.file("dump").join(name)).ok()
    }
}

/// Whether a process is stopped by a signal.
fn is_stopped(target: &Target) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", target.0.id())).is_ok_and(|stat| stat.contains(") T "))
}

#[test]
fn a_process_is_dumped_to_a_folder_and_restored() {
    let world = World::new();
    let mut target = world.0.target(&[("bytes", 1_048_576)]);
    let (status, said) = world.with_criu("dump --pid PID --to DIR", &target, "version 3.17.1");
    assert!(status == Some(3) && said.contains("CRIU 4.0 or later is needed"), "{said}");
    if !rustix::process::geteuid().is_root() {
        let (status, said) = world.with_criu("dump --pid PID --to DIR", &target, "");
        assert!(status == Some(3) && said.contains("takes root"), "{said}");
        return;
    }
    let (status, said) = world.with_criu("dump --pid PID --to DIR", &target, "");
    assert!(status == Some(0) && said.contains("suspending") && said.contains("is in"), "{said}");
    assert_eq!((world.state(&target).as_str(), is_stopped(&target)), ("running", false));
    let manifest = world.dump("manifest.json").expect("the folder describes itself");
    assert!(manifest.contains("pages.img") && manifest.contains("GPU") && manifest.contains("\"criu\": \"4.1\""), "{manifest}");
    // What goes wrong later leaves the last good dump, and a process that runs.
    for (mode, why) in [("refuse", "can't dump a thing"), ("full", "No space left on device"), ("die", "signal: 9")] {
        let (status, said) = world.with_criu("dump --pid PID --to DIR", &target, mode);
        assert!(status == Some(1) && said.contains(why), "{mode}: {said}");
        assert_eq!((world.state(&target).as_str(), is_stopped(&target)), ("running", false), "{mode}");
        assert_eq!(world.dump("manifest.json").as_ref(), Some(&manifest), "{mode}");
        assert!(!world.0.file("dump.partial").exists(), "{mode}");
    }
    world.0.know(&target.pid().to_string(), &[("managed", 1)]);
    let (status, said) = world.with_criu("dump --pid PID --to DIR", &target, "");
    assert!(status == Some(1) && said.contains("cudaMallocManaged") && world.state(&target) == "running", "{said}");
    // A caller that is killed leaves it suspended, and that is named.
    world.0.know(&target.pid().to_string(), &[("bytes", 1_048_576)]);
    assert_eq!(world.with_criu("dump --pid PID --to DIR", &target, "orphan").0, None);
    assert_eq!(world.state(&target), "checkpointed");
    assert_eq!(world.run("resume --pid PID", &target).1, "running\n");
    assert_eq!(world.dump("manifest.json").as_ref(), Some(&manifest));
    let (status, said) = world.with_criu("restore DIR", &target, "");
    assert!(status == Some(1) && said.contains("is taken"), "{said}");
    // One dump replaces the other, and the process ends.
    assert_eq!(world.with_criu("dump --pid PID --to DIR --kill", &target, "").0, Some(0));
    target.0.wait().expect("it was killed");
    world.0.know(&target.pid().to_string(), &[("state", 2), ("bytes", 1_048_576)]);
    let (status, said) = world.with_criu("restore DIR", &target, "");
    assert!(status == Some(0) && said.contains("runs again"), "{said}");
    assert_eq!(world.state(&target), "running");
    Command::new("kill").args(["-9", &target.0.id().to_string()]).status().expect("kill");
}

#[test]
fn a_dump_without_room_or_rights_touches_nothing() {
    let world = World::new();
    let target = world.0.target(&[("bytes", 1_048_576)]);
    let is_untouched = || world.state(&target) == "running" && !is_stopped(&target) && !world.0.file("dump").exists();
    if !rustix::process::geteuid().is_root() {
        let (status, said) = world.with_criu("dump --pid PID --to DIR", &target, "");
        assert!(status == Some(3) && said.contains("takes root") && is_untouched(), "{said}");
        return;
    }
    // A file system that has no room at all.
    let (status, said) = world.with_criu("dump --pid PID --to /proc/dump", &target, "");
    assert!(status == Some(3) && said.contains("bytes are needed and 0 are free on this disk; nothing was touched"), "{said}");
    assert!(is_untouched());
    // Root without the rights to look into processes is like any other user.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups", "true"]);
    if !command.status().is_ok_and(|status| status.success()) {
        cuinstr_trial::ignore("there is no setpriv, so what a user without rights sees is not tested");
    }
    let plain = world.criu_command("dump --pid PID --to DIR", &target, "");
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"])
        .arg(plain.get_program())
        .args(plain.get_args());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for folder in [world.0.known(), world.0.driver()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("our own folder");
    }
    let output = command.output().expect("setpriv");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // The program may lie where that user can't go.
    if !said.contains("Permission denied") {
        assert!(!output.status.success() && said.contains("no permission for process"), "{said}");
    }
    assert!(is_untouched());
}

#[test]
fn a_dump_that_is_damaged_or_of_another_machine_is_not_restored() {
    let world = World::new();
    let mut target = world.0.target(&[("bytes", 1_048_576)]);
    assert!(world.with_criu("restore DIR", &target, "").1.contains(if rustix::process::geteuid().is_root() {
        "no dump"
    } else {
        "takes root"
    }));
    if !rustix::process::geteuid().is_root() {
        return;
    }
    assert_eq!(world.with_criu("dump --pid PID --to DIR --kill", &target, "").0, Some(0));
    target.0.wait().expect("it was killed");
    let (folder, manifest) = (world.0.file("dump"), world.dump("manifest.json").expect("a dump"));
    let refused = |why: &str| {
        let (status, said) = world.with_criu("restore DIR", &target, "");
        assert!(status == Some(1) && said.contains(why), "{why}: {said}");
    };
    let pages = fs::read(folder.join("images/pages.img")).expect("a file");
    fs::write(folder.join("images/pages.img"), "1\n").expect("a file");
    refused("pages.img: this file is missing, or another");
    fs::remove_file(folder.join("images/pages.img")).expect("a file");
    refused("pages.img: this file is missing, or another");
    fs::write(folder.join("images/pages.img"), pages).expect("a file");
    fs::write(folder.join("manifest.json"), manifest.replacen("4.1", "4.2", 1)).expect("a file");
    refused("manifest.json: this file is missing, or another");
    fs::write(folder.join("manifest.json"), &manifest).expect("a file");
    world.0.know(&target.pid().to_string(), &[("state", 2), ("bytes", 1_048_576)]);
    let (status, said) = world.with_criu("restore DIR", &target, "refuse");
    assert!(status == Some(1) && said.contains("can't dump a thing"), "{said}");
}
