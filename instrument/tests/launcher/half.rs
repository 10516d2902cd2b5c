//! The host half: what a program that knows nothing of us does about `CUINSTR_TIMEOUT` and its kin. There is no GPU
//! here. A library stands in for driver and runtime (`half/driver.cpp`). It does to the control block what docs/ABI.md
//! says that a GPU does. `scripts/gpu-projects` shows the same on one.

use crate::project::{BINARY, Project, expect, text};
use crate::toolkit::nvcc;
use cuinstr_trial::ignore;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

mod pauses;

const PROGRAM: &str = include_str!("half/program.cu");
const VARIABLES: [&str; 5] = ["CUINSTR_TIMEOUT", "CUINSTR_FUEL", "CUINSTR_ON_STOP", "CUINSTR_REPORT", "CUINSTR_PAUSABLE"];

/// What stands in for the driver, compiled once: that takes as long as the program.
static DRIVER: OnceLock<Vec<u8>> = OnceLock::new();

/// A program built through the launcher, linked with what stands in for the GPU.
struct Program {
    project: Project,
}

impl Program {
    fn new(flags: &str) -> Self {
        let nvcc = nvcc();
        let files = [("program.cu", PROGRAM), ("driver.cpp", include_str!("half/driver.cpp")), ("rows.cpp", include_str!("half/rows.cpp"))];
        let project = Project::new(&files);
        // scripts/sanitize asks for it. A program in which it finds something ends with a status of its own.
        let sanitizer = std::env::var("CUINSTR_SANITIZE").map(|name| format!("-fsanitize={name}")).ok();
        let run = |program: &Path, words: &str| {
            let mut command = project.command(program);
            expect(command.env("CUINSTR_FLAGS", flags).args(sanitizer.iter()).args(words.split(' ')), 0);
        };
        let mut command = project.command(BINARY);
        command.env("CUINSTR_FLAGS", flags).arg(nvcc).args(["-arch=sm_90", "-c", "program.cu", "-o", "program.o"]);
        expect(command.args(sanitizer.iter().flat_map(|flag| ["-Xcompiler", flag])), 0);
        let library = project.path().join("libcuda.so.1");
        let driver = DRIVER.get_or_init(|| {
            run(Path::new("g++"), "-O0 -shared -fPIC driver.cpp -o libcuda.so.1 -Wl,-soname,libcuda.so.1 -lpthread");
            fs::read(&library).expect("a library")
        });
        fs::write(&library, driver).expect("a file");
        let folder = project.path().to_str().expect("a temporary folder's path is text");
        run(Path::new("g++"), &format!("-rdynamic program.o rows.cpp ./libcuda.so.1 -Wl,-rpath,{folder} -ldl -lpthread -o program"));
        Self { project }
    }

    /// What it does, one word each (`half/program.cu`), under these variables.
    fn run(&self, does: &str, variables: &[(&str, &str)]) -> Output {
        self.start(does, variables).wait_with_output().expect("it starts")
    }

    fn start(&self, does: &str, variables: &[(&str, &str)]) -> Child {
        // A hang of the program's own fails the test.
        let mut command = self.project.command("timeout");
        command.args(["-s", "KILL", "60"]).arg(self.project.path().join("program"));
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied()).args(does.split(' '));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    fn report(&self, name: &str) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.project.path().join(name)).expect("a report was written");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

fn line_of(mark: &str) -> usize {
    PROGRAM.lines().position(|line| line.contains(mark)).expect("it is there") + 1
}

#[test]
fn a_program_that_knows_nothing_obeys() {
    let program = Program::new("--fuel 1000 --barrier-marks shared");
    // These take twenty seconds, and nothing of this machine.
    let held = ["l w", "l L x3"].map(|does| program.start(does, &[("CUINSTR_TIMEOUT", "60s")]));
    a_launch_that_is_late_is_stopped_and_reported(&program);
    what_is_in_time_is_left_alone(&program);
    half_a_result_is_no_success(&program);
    what_a_variable_can_not_hold_is_said(&program);
    memory_that_our_own_words_take_is_spoken_of(&program);
    a_limit_of_one_kernel_holds_beside_others_without(&program);
    what_a_report_names_is_the_launch_that_was_stopped(&program);
    a_process_may_have_any_number_of_streams_graphs_and_modules(&program);
    a_report_goes_through_links_and_waits_for_no_pipe(&program);
    other_commands_see_it(&program);
    let wanted = [(124, "does not give back the launch that trapped"), (3, "does not let the process end")];
    for (child, (status, says)) in held.into_iter().zip(wanted) {
        let output = child.wait_with_output().expect("it ends");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains("kernel `lost` was stopped") && said.contains(&format!("cuinstr: error: the driver {says}")), "{said}");
    }
}

#[test]
fn a_program_whose_polls_are_in_its_ptx_obeys_too() {
    let program = Program::new("--pass ptx");
    let output = program.run("s w", &[("CUINSTR_TIMEOUT", "200ms"), ("CUINSTR_REPORT", "report.jsonl")]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "waited: 719\n"), "{}", text(&output.stderr));
    let (launch, spin, said) = (line_of("case 's'"), line_of("while (*(volatile T*)gate"), text(&output.stderr));
    for part in [
        "cuinstr: kernel `scope::spin<int>` was stopped: its deadline (200 ms) passed\n",
        &format!(" --> program.cu:{spin}:"),
        ": the first thread stopped at this loop in `scope::spin<int>`\n",
        &format!("launched by program.cu:{launch}, stopped after 2"),
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let told = program.report("report.jsonl");
    assert_eq!((&told[0]["loop"]["file"], &told[0]["loop"]["line"]), (&"program.cu".into(), &spin.into()), "{told:?}");
    let output = program.run("m300 w", &[("CUINSTR_TIMEOUT", "2s")]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("waited: 0\n", ""));
}

fn other_commands_see_it(program: &Program) {
    let runtime = program.project.path().join("runtime");
    fs::create_dir(&runtime).expect("a folder");
    let place = runtime.to_str().expect("a path");
    let mut child = program.start("s w m1 w", &[("CUINSTR_TIMEOUT", "50s"), ("CUINSTR_ON_STOP", "leave"), ("XDG_RUNTIME_DIR", place)]);
    let ask = |words: &[&str]| {
        let output = program.project.command(BINARY).args(words).env("XDG_RUNTIME_DIR", &runtime).output().expect("it starts");
        text(&[output.stdout, output.stderr].concat())
    };
    let since = std::time::Instant::now();
    let process = loop {
        let listed = ask(&["ps", "--json"]);
        match listed.lines().next().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")) {
            Some(first) if first["running"][0]["kernel"] == "scope::spin<int>" => break first["process"].to_string(),
            _ => assert!(since.elapsed().as_secs() < 40, "{listed}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let told = ask(&["where", &process]);
    let spin = line_of("while (*(volatile T*)gate");
    assert!(told.contains("`scope::spin<int>` has run for") && told.contains(&format!("    program.cu:{spin}:5: while\n")), "{told}");
    assert!(ask(&["pause", &process]).starts_with("paused: later launches wait\n"));
    assert!(ask(&["ps"]).contains("(paused: launches wait)"));
    assert_eq!(ask(&["stop", &process]), "stopped: `scope::spin<int>`\n");
    assert!(child.try_wait().expect("a child").is_none());
    assert_eq!(ask(&["resume", &process]), "resumed\n");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "waited: 0\nwaited: 0\n", "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("was stopped: somebody asked for that"), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(runtime.join("cuinstr")).expect("a folder").count(), 0, "the socket goes with the process");
}

fn a_launch_that_is_late_is_stopped_and_reported(program: &Program) {
    let output = program.run("s w", &[("CUINSTR_TIMEOUT", "200ms"), ("CUINSTR_REPORT", "%%r-%p-%h.jsonl")]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "waited: 719\n"), "{}", text(&output.stderr));
    let (launch, spin) = (line_of("case 's'"), line_of("while (*(volatile T*)gate"));
    let said = text(&output.stderr);
    for part in [
        "cuinstr: kernel `scope::spin<int>` was stopped: its deadline (200 ms) passed\n",
        &format!(" --> program.cu:{spin}:5: the first thread stopped at this `while` loop in `spin`\n"),
        &format!("launched by program.cu:{launch}, stopped after 2"),
        "block (3, 0, 0), thread (5, 0, 0)\n",
        "the program sees cudaErrorLaunchFailure",
    ] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let files = fs::read_dir(program.project.path()).expect("readable").map(|entry| entry.expect("readable").file_name());
    let report = files.map(|name| name.to_string_lossy().into_owned()).find(|name| name.starts_with("%r-")).expect("a report");
    let told = program.report(&report);
    assert!(!report.contains("%p") && !report.contains("%h") && told.len() == 1, "{report}: {told:?}");
    assert_eq!((&told[0]["event"], &told[0]["why"], &told[0]["loop"]["line"]), (&"stopped".into(), &"deadline".into(), &spin.into()));
    assert_eq!(told[0]["launched_by"], serde_json::json!({"file": "program.cu", "line": launch}));

    // Where the kernel's own clock does not stop it, the host does.
    let output = program.run("d w", &[("CUINSTR_TIMEOUT", "200ms")]);
    assert!(
        text(&output.stderr).starts_with("cuinstr: kernel `deaf` was stopped: its deadline (200 ms) passed\n"),
        "{}",
        text(&output.stderr)
    );

    // By the runtime's function, whose call has no line of ours; and without a report, on standard error alone.
    let output = program.run("p w", &[("CUINSTR_TIMEOUT", "200ms")]);
    assert!(text(&output.stderr).contains("launched by a call of the CUDA runtime"), "{}", text(&output.stderr));
}

fn what_is_in_time_is_left_alone(program: &Program) {
    // Together they take longer than a launch may. Of two streams one waits for nothing of the other's.
    for variables in [&[("CUINSTR_TIMEOUT", "2s")][..], &[], &[("CUINSTR_REPORT", "unused.jsonl")]] {
        let output = program.run("m900 o900 m900 o900 m900 w W", variables);
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("waited: 0\nwaited: 0\n", ""), "{variables:?}");
        assert!(output.status.success());
    }
    assert!(!program.project.path().join("unused.jsonl").exists());
    // One that waits for a place behind another has not begun, though both came to the heads of their streams at the same time; and what comes beside a
    // launch with a longer limit does not shorten it.
    for (does, timeout) in [("F1300 G1300 w W", "2s"), ("F2000 G100 w W", "1s,fills=60s")] {
        let output = program.run(does, &[("CUINSTR_TIMEOUT", timeout)]);
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("waited: 0\nwaited: 0\n", ""), "{does}");
    }
    // A kernel of its own limit; a name that is none of a kernel's is said.
    let output = program.run("m700 w", &[("CUINSTR_TIMEOUT", "100ms,sleeps=60s,spin<int>=1s")]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("waited: 0\n", Some(0)));
    assert!(text(&output.stderr).contains("names the kernel `spin<int>`, and none of that name was launched"), "{}", text(&output.stderr));
    for name in ["spin", "scope::spin", "spin<int>", "scope::spin<int>", "_ZN5scope4spinIiEEvPT_"] {
        let output = program.run("s w", &[("CUINSTR_TIMEOUT", &format!("60s,{name}=100ms"))]);
        assert!(text(&output.stderr).starts_with("cuinstr: kernel `scope::spin<int>` was stopped"), "{name}: {}", text(&output.stderr));
    }
}

fn half_a_result_is_no_success(program: &Program) {
    let leave = [("CUINSTR_TIMEOUT", "200ms"), ("CUINSTR_ON_STOP", "leave"), ("CUINSTR_REPORT", "stderr")];
    let output = program.run("s w m1 w x0", &leave);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(124), "waited: 0\nwaited: 0\n"), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let told: serde_json::Value = serde_json::from_str(&said).expect("one line, and nothing else");
    assert_eq!((&told["action"], &told["threads"]), (&"leave".into(), &64.into()));
    // A program that has asked answers for itself.
    let output = program.run("s w a x5", &leave);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(5), "waited: 0\nstopped: 1\n"), "{}", text(&output.stderr));
    // What nothing can stop ends with the process.
    let output = program.run("u w", &leave);
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("\"event\":\"stuck\""), "{}", text(&output.stderr));
    // Stopped by the GPU itself.
    let output = program.run("b w x0", &[("CUINSTR_FUEL", "70"), ("CUINSTR_ON_STOP", "leave")]);
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("cuinstr: kernel `burn` was stopped: its fuel is used up\n"), "{}", text(&output.stderr));
}

fn what_a_variable_can_not_hold_is_said(program: &Program) {
    for (name, value, says) in [
        ("CUINSTR_TIMEOUT", "2", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "0s", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "2 s", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "1.s", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "307445735m", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "52560001m", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "1s,2s", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "=2s", "write a time such as 2s"),
        ("CUINSTR_TIMEOUT", "a<b,c>=2s,", "write a time such as 2s"),
        ("CUINSTR_FUEL", "0", "write a number of iterations"),
        ("CUINSTR_FUEL", "1e3", "write a number of iterations"),
        ("CUINSTR_FUEL", "1099511627775", "write a number of iterations"),
        ("CUINSTR_ON_STOP", "exit", "write trap or leave"),
        ("CUINSTR_REPORT", "a%b", "write a file's name"),
    ] {
        let output = program.run("m1 w", &[(name, value)]);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""), "{name}={value}");
        assert!(said.starts_with(&format!("cuinstr: error: {name}={value}: {says}")), "{said}");
    }
    for (name, value) in [
        ("CUINSTR_TIMEOUT", "1.5s,a<b, c>=10m"),
        ("CUINSTR_TIMEOUT", "52560000m"),
        ("CUINSTR_FUEL", "1099511627774"),
        ("CUINSTR_ON_STOP", "trap"),
    ] {
        assert_eq!(program.run("m1 w", &[(name, value)]).status.code(), Some(0), "{name}={value}");
    }
    let said = text(&program.run("m1 w", &[("CUINSTR_TIMEOT", "2s"), ("CUINSTR_FLAGS", "")]).stderr);
    assert_eq!(said.matches("warning: nothing reads the variable").count(), 1, "{said}");
    assert!(said.contains("nothing reads the variable CUINSTR_TIMEOT; a program reads CUINSTR_TIMEOUT"), "{said}");
    let said = text(&program.run("b w", &[("CUINSTR_REPORT", "no/such/folder")]).stderr);
    assert!(said.contains("can't write CUINSTR_REPORT `no/such/folder`: No such file or directory\n{\"cuinstr\":1"), "{said}");
}

fn memory_that_our_own_words_take_is_spoken_of(program: &Program) {
    let says = |bytes, left| {
        format!(
            "cuinstr: warning: a kernel asks for {bytes} bytes of shared memory, and words of cuinstr's leave it {left}: build it with \
             CUINSTR_FLAGS=\"--barrier-marks global\" and no compiled-in limit, nor a gate (CUINSTR_TIMEOUT takes no shared memory)\n"
        )
    };
    let all = 232_448;
    for (does, answers, said) in [
        (format!("S{all}"), "set: 1\n", says(all, all - 9216)),
        ("R49152 w".to_owned(), "launched: 1\nwaited: 0\n", says(49152, 49152 - 9216)),
        // Said once, whatever a program tries.
        (format!("S{all} S{all} R49152"), "set: 1\nset: 1\nlaunched: 1\n", says(all, all - 9216)),
        ("S200000 R200000 w".to_owned(), "set: 0\nlaunched: 0\nwaited: 0\n", String::new()),
        // What would not fit without us.
        (format!("S{} R50000", all + 1), "set: 1\nlaunched: 1\n", String::new()),
    ] {
        for variables in [&[][..], &[("CUINSTR_TIMEOUT", "60s")]] {
            let output = program.run(&does, variables);
            assert_eq!((text(&output.stdout).as_str(), text(&output.stderr)), (answers, said.clone()), "{does}");
        }
    }
}

fn a_limit_of_one_kernel_holds_beside_others_without(program: &Program) {
    // The older launch, on another stream, has no limit; in one module all launches are asked to stop together.
    let output = program.run("m5000 O W", &[("CUINSTR_TIMEOUT", "spin=200ms")]);
    let said = text(&output.stderr);
    assert!(said.starts_with("cuinstr: kernel `scope::spin<int>` was stopped: its deadline (200 ms) passed\n"), "{said}");
    assert_eq!(text(&output.stdout), "waited: 719\n");
    // Behind one of another module that fills the GPU it has not begun, and its own clock says so.
    let output = program.run("M F2600 G100 w W", &[("CUINSTR_TIMEOUT", "fills_too=1s")]);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("waited: 0\nwaited: 0\n", ""));
    // It is stopped once it has begun, also where the clock of its own can't.
    let output = program.run("M O F600 d w W", &[("CUINSTR_TIMEOUT", "deaf=200ms")]);
    assert!(text(&output.stderr).starts_with("cuinstr: kernel `deaf` was stopped"), "{}", text(&output.stderr));
}

fn what_a_report_names_is_the_launch_that_was_stopped(program: &Program) {
    // A launch that waits behind it in its stream is another one.
    let said = text(&program.run("s m1 b w", &[("CUINSTR_TIMEOUT", "200ms")]).stderr);
    assert!(said.starts_with("cuinstr: kernel `scope::spin<int>` was stopped"), "{said}");
    assert!(said.contains(&format!("launched by program.cu:{}, ", line_of("case 's'"))), "{said}");
    // A program may write over its environment.
    let variables = [("CUINSTR_TIMEOUT", "60s,spin=200ms"), ("CUINSTR_REPORT", "kept.jsonl")];
    program.run("m1 w E s w", &variables);
    assert_eq!(program.report("kept.jsonl").len(), 1);
}

fn a_process_may_have_any_number_of_streams_graphs_and_modules(program: &Program) {
    let timeout = [("CUINSTR_TIMEOUT", "500ms")];
    let stopped = "cuinstr: kernel `scope::spin<int>` was stopped: its deadline (500 ms) passed\n";
    for does in ["C17000 s w", "T17000 w s w", "C17000 T17000 w C10 O W"] {
        let said = text(&program.run(does, &timeout).stderr);
        assert!(said.starts_with(stopped), "{does}: {said}");
    }
    // Graphs that are kept, and a driver that does not tell when they are gone.
    let full = "cuinstr: warning: 16384 streams and captured launches are watched, and no more can be: launches in others have no limit\n";
    for does in ["K16385 m1 w", "U C16385 C16385 m1 w"] {
        let output = program.run(does, &timeout);
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("waited: 0\n", full), "{does}");
    }
    let said = text(&program.run("m1 w K16384 s w", &timeout).stderr);
    assert!(said.starts_with(full) && said.contains(stopped), "{said}");
    let said = text(&program.run("I701 w", &timeout).stderr);
    let wanted = "` came after 700 others of this process, and no more are watched: its launches have no limit\n";
    assert!(said.lines().count() == 1 && said.ends_with(wanted), "{said}");
}

#[test]
fn a_program_with_more_rights_than_its_user_obeys_nobody() {
    let program = Program::new("");
    let path = program.project.path();
    let copy = path.join("privileged");
    fs::copy(path.join("program"), &copy).expect("a copy");
    // Root gives its own rights up, and anybody else takes a group's.
    let user = rustix::process::geteuid();
    let group = rustix::process::getgroups().unwrap_or_default().into_iter().find(|group| *group != rustix::process::getegid());
    let mode = match group {
        _ if user.is_root() => chown(&copy, Some(65534), None).map(|()| 0o4755),
        Some(group) => chown(&copy, None, Some(group.as_raw())).map(|()| 0o2755),
        None => ignore("there is no right that a program could have besides its user's"),
    };
    fs::set_permissions(&copy, fs::Permissions::from_mode(mode.expect("it is ours"))).expect("it is ours");
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let run = |program: &Path| {
        let mut command = Command::new(program);
        command.current_dir(path).args(["m1", "w", "b", "w"]).env("CUINSTR_TIMEOUT", "60s").env("CUINSTR_REPORT", "privileged.jsonl");
        text(&command.output().expect("it starts").stderr)
    };
    assert!(run(&path.join("program")).contains("kernel `burn` was stopped"));
    assert!(path.join("privileged.jsonl").exists());
    fs::remove_file(path.join("privileged.jsonl")).expect("it is ours");
    assert_eq!(run(&copy), "");
    assert!(!path.join("privileged.jsonl").exists());
}

fn a_report_goes_through_links_and_waits_for_no_pipe(program: &Program) {
    let path = program.project.path();
    fs::write(path.join("theirs"), "").expect("a file");
    symlink("theirs", path.join("own-link")).expect("a link");
    let run = |report: &str| text(&program.run("b w", &[("CUINSTR_REPORT", report)]).stderr);
    run("own-link");
    assert_eq!(program.report("theirs").len(), 1);
    assert!(run("/dev/stderr").contains("\n{\"cuinstr\":1"));
    // A pipe that nobody reads holds up nothing.
    rustix::fs::mkfifoat(rustix::fs::CWD, path.join("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("a pipe");
    assert!(run("pipe").contains("can't write CUINSTR_REPORT `pipe`: No such device"), "{}", run("pipe"));
}

#[test]
fn a_report_goes_through_no_link_of_others() {
    if !rustix::process::geteuid().is_root() {
        ignore("only root can make a link for somebody else");
    }
    let program = Program::new("");
    let path = program.project.path();
    fs::write(path.join("theirs"), "").expect("a file");
    symlink("theirs", path.join("foreign-link")).expect("a link");
    lchown(path.join("foreign-link"), Some(65534), None).expect("root may");
    let said = text(&program.run("b w", &[("CUINSTR_REPORT", "foreign-link")]).stderr);
    assert!(said.contains("can't write CUINSTR_REPORT `foreign-link`: it is another user's link: name a file\n{\"cuinstr\":1"), "{said}");
    assert_eq!(program.report("theirs").len(), 0);
}

#[test]
fn it_travels_in_each_object_and_every_linker_takes_it() {
    let nvcc = nvcc();
    let unit = |name: &str| {
        format!(
            "__global__ void k_{name}(int* p) {{ while (*p) {{ }} }}\nint {name}() {{ k_{name}<<<1,\n    1>>>(nullptr); return cudaGetLastError(); }}\n"
        )
    };
    let main = "#include <cstdio>\nint a(); int b();\nint main() { std::printf(\"%d\\n\", a() == b()); }\n";
    let project = Project::new(&[("a.cu", &unit("a")), ("b.cu", &unit("b")), ("main.cpp", main)]);
    let compile = |words: &str| {
        let mut command = project.command(BINARY);
        command.arg(&nvcc).args(["-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]).args(words.split(' '));
        assert_eq!(text(&expect(&mut command, 0).stderr), "", "{words}");
    };
    let home = nvcc.parent().and_then(Path::parent).expect("it lies in a toolkit");
    let link = |words: &str| {
        let mut command = project.command("g++");
        command.args(words.split(' ')).arg(format!("-L{}", home.join("lib64").display())).arg(format!("-L{}", home.join("lib").display()));
        expect(command.args(["-lcudart_static", "-ldl", "-lrt", "-lpthread"]), 0);
    };
    let says = |program: &str| text(&expect(project.command(project.path().join(program)).env("CUINSTR_TIMEOUT", "1s"), 0).stdout);
    // Each standard, and the half as its text where an optimiser reads all of a program at once.
    compile("-std=c++14 -c -g a.cu -o a.o");
    compile("-std=c++20 -c -O0 b.cu -o b.o");
    link("main.cpp a.o b.o -o archived");
    assert_eq!(says("archived"), "1\n");
    let said = text(&expect(project.command(project.path().join("archived")).env("CUINSTR_FUEL", "9"), 0).stderr);
    assert!(said.contains("CUINSTR_FUEL has no effect: nothing in this program is compiled with --fuel"), "{said}");
    compile("-std=c++17 -Xcompiler -flto,-O2 -c a.cu -o a-lto.o");
    link("-O2 -flto main.cpp a-lto.o b.o -o optimised");
    assert_eq!(says("optimised"), "1\n");
    for name in ["a", "b"] {
        compile(&format!("-shared -Xcompiler -fPIC {name}.cu -o lib{name}.so"));
    }
    let folder = project.path().display();
    link(&format!("main.cpp -L. -la -lb -Wl,-rpath,{folder} -o libraries"));
    assert_eq!(says("libraries"), "1\n");
    // One copy a program, whatever the number of its objects, and none that others can see.
    let symbols = |file: &str, words: &[&str]| text(&expect(Command::new("nm").args(words).arg(project.path().join(file)), 0).stdout);
    let copies = |text: &str| text.lines().filter(|line| line.contains(" __cuinstr_") && line.ends_with("_stub_ptsz")).count();
    assert_eq!(copies(&symbols("archived", &[])), 1);
    let shown = symbols("liba.so", &["-D"]);
    // Linkers make two names of their own for the section of the rows.
    assert_eq!(
        shown.lines().filter(|line| line.contains("cuinstr") && !line.ends_with("_cuinstr_rows")).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
    let bytes = fs::read(project.path().join("a.o")).expect("readable");
    assert!(!bytes.windows(9).any(|part| part == b"/cuinstr-"), "the object holds a path of ours");
}
