//! Checkpoints over the stand-in driver: its state machine, and each error that the driver documents. What needs a GPU is `scripts/gpu-checkpoint`.

use cuinstr_checkpoint::{Checkpointed, Error, Group, Handle, Helper, Mapping, Process, Running, State, TreeFailure, Uuid};
use cuinstr_stand_in::targets::{Machine, Target};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SHORT: Option<Duration> = Some(Duration::from_millis(50));
const GB: u64 = 1 << 30;

/// A machine, and further commands for the stand-in.
struct World {
    machine: Machine,
    rules: String,
}

impl World {
    fn new() -> Self {
        Self { machine: Machine::new(), rules: String::new() }
    }

    /// With commands for the stand-in.
    fn with(rules: &str) -> Self {
        Self { rules: rules.to_owned(), ..Self::new() }
    }

    fn helper(&self) -> Helper {
        self.helper_with(&[])
    }

    fn helper_with(&self, variables: &[String]) -> Helper {
        let mut arguments: Vec<String> =
            self.machine.variables(&self.rules).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        arguments.extend_from_slice(variables);
        arguments.push(env!("CARGO_BIN_EXE_cuinstr-checkpoint").to_owned());
        Helper::of_program("env", arguments)
    }

    fn target(&self, facts: &[(&str, u64)]) -> Target {
        self.machine.target(facts)
    }

    fn know(&self, name: &str, facts: &[(&str, u64)]) {
        self.machine.know(name, facts);
    }

    fn handle(&self, target: &Target) -> Handle {
        Handle::open(self.helper(), target.pid()).expect("it runs")
    }

    fn group(&self, target: &Target) -> Group {
        Group::of(self.helper(), target.pid()).expect("it runs")
    }
}

fn states(failure: &TreeFailure) -> Vec<Option<State>> {
    failure.now.iter().map(|(_, state)| *state).collect()
}

fn uuid(gpu: u8) -> Uuid {
    Uuid([gpu; 16])
}

#[test]
fn a_process_goes_round_its_states() {
    let world = World::new();
    let target = world.target(&[("bytes", GB)]);
    let running: Process<Running> = Process::running(world.helper(), target.pid()).expect("it runs");
    let again = running.handle().clone();
    let locked = running.lock(SHORT).expect("nothing runs");
    assert_eq!(again.state().expect("a state"), State::Locked);
    let checkpointed: Process<Checkpointed> = locked.checkpoint().expect("nothing is in the way");
    assert_eq!(again.look().expect("a look").gpus[0].free, 80 * GB);
    let running = checkpointed.restore(&Mapping::none()).expect("there is room").unlock().expect("it is locked");
    assert_eq!(again.look().expect("a look").gpus[0].used, Some(GB));
    assert_eq!(again.restore_thread_id().expect("a thread"), target.pid() as i32);
    // Unlocking what is only locked.
    running.lock(None).expect("nothing runs").unlock().expect("it is locked");
    assert_eq!(again.state().expect("a state"), State::Running);
}

#[test]
fn calls_in_the_wrong_state_say_which_it_is_and_which_it_should_be() {
    let world = World::new();
    let target = world.target(&[]);
    let handle = world.handle(&target);
    for (call, needed) in
        [(handle.unlock(), State::Locked), (handle.checkpoint(), State::Locked), (handle.restore(&Mapping::none()), State::Checkpointed)]
    {
        let is_right =
            |error: &Error| matches!(error, Error::WrongState { state: State::Running, needed: wanted, .. } if *wanted == needed);
        assert!(call.as_ref().is_err_and(is_right), "{call:?}");
    }
    assert!(matches!(Process::checkpointed(world.helper(), target.pid()), Err(Error::WrongState { needed: State::Checkpointed, .. })));
    handle.lock(SHORT).expect("nothing runs");
    assert!(matches!(handle.lock(SHORT), Err(Error::WrongState { state: State::Locked, needed: State::Running, .. })));
}

#[test]
fn states_of_newer_drivers_are_told() {
    let world = World::new();
    let target = world.target(&[("state", 9)]);
    assert_eq!(world.handle(&target).state().expect("a state"), State::Other(9));
    assert!(matches!(
        world.group(&target).suspend(SHORT).expect_err("no known state").error,
        Error::WrongState { state: State::Other(9), .. }
    ));
}

#[test]
fn a_busy_process_runs_on_after_the_timeout() {
    let world = World::new();
    let target = world.target(&[("busy", 1)]);
    let failure = world.group(&target).suspend(SHORT).expect_err("it is busy");
    assert!(matches!(failure.error, Error::Busy { timeout, .. } if Some(timeout) == SHORT), "{failure}");
    assert_eq!(states(&failure), [Some(State::Running)]);
    // A timeout of zero would be none.
    assert!(matches!(world.handle(&target).lock(Some(Duration::ZERO)), Err(Error::BadTimeout(_))));
}

#[test]
fn memory_that_cannot_be_checkpointed_is_named_and_the_process_runs_on() {
    let world = World::new();
    let target = world.target(&[("managed", 1)]);
    let failure = world.group(&target).suspend(SHORT).expect_err("managed memory");
    assert!(matches!(failure.error, Error::Unsupported { .. }) && failure.to_string().contains("cudaMallocManaged"), "{failure}");
    assert_eq!(states(&failure), [Some(State::Running)]);
}

#[test]
fn a_process_that_the_driver_gives_up_is_called_lost() {
    let world = World::new();
    let target = world.target(&[("breaks", 1)]);
    let failure = world.group(&target).suspend(SHORT).expect_err("it breaks");
    assert!(matches!(failure.error, Error::Lost(_)), "{failure}");
    assert_eq!(states(&failure), [Some(State::Failed)]);
    assert!(matches!(world.group(&target).resume(&Mapping::none()).expect_err("it is lost").error, Error::Lost(_)));
}

#[test]
fn a_restore_without_room_is_refused_before_it_is_tried() {
    let world = World::new();
    let target = world.target(&[("bytes", 2 * GB)]);
    world.group(&target).suspend(SHORT).expect("nothing is in the way");
    world.know("gpu0", &[("used", 79 * GB)]);
    let failure = world.group(&target).resume(&Mapping::none()).expect_err("there is no room");
    assert!(matches!(failure.error, Error::GpuMemory { needed, free, .. } if needed == 2 * GB && free == GB), "{failure}");
    assert_eq!(states(&failure), [Some(State::Checkpointed)]);
    let typed =
        Process::checkpointed(world.helper(), target.pid()).expect("it is").restore(&Mapping::none()).expect_err("there is no room");
    assert_eq!(typed.state, Some(State::Checkpointed));
    world.know("gpu0", &[]);
    world.group(&target).resume(&Mapping::none()).expect("there is room");
    assert_eq!(world.handle(&target).state().expect("a state"), State::Running);
}

#[test]
fn what_the_host_cannot_take_is_refused_and_the_process_runs_on() {
    let world = World::new();
    let target = world.target(&[("bytes", GB << 20)]);
    let failure = world.group(&target).suspend(SHORT).expect_err("no host has that much");
    assert!(matches!(failure.error, Error::HostMemory { needed, available, .. } if needed == GB << 20 && available < needed), "{failure}");
    assert_eq!(states(&failure), [Some(State::Running)]);
}

#[test]
fn gpus_are_mapped_as_a_whole() {
    let world = World::new();
    world.know("gpu1", &[]);
    let target = world.target(&[("bytes", GB)]);
    let group = world.group(&target);
    group.suspend(SHORT).expect("nothing is in the way");
    let pairs = |pairs: &[(u8, u8)]| Mapping::new(pairs.iter().map(|(old, new)| (uuid(*old), uuid(*new))).collect()).expect("no GPU twice");
    for absent in [pairs(&[(0, 7)]), pairs(&[(0, 1)])] {
        assert!(matches!(group.resume(&absent).expect_err("no such place").error, Error::BadMapping(_)));
    }
    group.resume(&pairs(&[(0, 1), (1, 0)])).expect("a swap");
    let look = world.handle(&target).look().expect("a look");
    assert_eq!((look.gpus[0].used, look.gpus[1].used), (None, Some(GB)));
    // One that stays need not be named.
    group.suspend(SHORT).expect("nothing is in the way");
    group.resume(&pairs(&[(1, 1)])).expect("it stays");
}

#[test]
fn what_is_no_target_is_told_apart() {
    let world = World::new();
    let target = world.target(&[]);
    let other = Target::unknown();
    assert!(matches!(world.handle(&other).state(), Err(Error::NotCuda(_))));
    assert!(matches!(world.group(&other).suspend(SHORT).expect_err("no CUDA").error, Error::NotCuda(_)));
    // Whatever the driver answers for a process that has not loaded it.
    let refusing = World::with("fail cuCheckpointProcessGetState always 304");
    assert!(matches!(refusing.handle(&other).state(), Err(Error::NotCuda(_))));
    let gone = world.handle(&target);
    drop(target);
    assert!(matches!(gone.state(), Err(Error::NoSuchProcess(_))));
}

#[test]
fn mig_and_mps_are_refused_before_anything_is_touched() {
    let world = World::new();
    let target = world.target(&[("bytes", GB)]);
    world.know("gpu0", &[("mig", 1)]);
    let failure = world.group(&target).suspend(SHORT).expect_err("MIG");
    assert!(matches!(failure.error, Error::Mig { .. }) && states(&failure) == [Some(State::Running)], "{failure}");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("nvidia-cuda-mps-control.pid"), std::process::id().to_string()).expect("a file");
    let client = Target(Command::new("sleep").arg("100").env("CUDA_MPS_PIPE_DIRECTORY", folder.path()).spawn().expect("sleep"));
    world.know(&client.0.id().to_string(), &[]);
    // The child has its environment once it runs `sleep`.
    while fs::read_link(format!("/proc/{}/exe", client.0.id())).ok() == std::env::current_exe().ok() {
        std::thread::yield_now();
    }
    let failure = world.group(&client).suspend(SHORT).expect_err("MPS");
    assert!(matches!(failure.error, Error::Mps { .. }) && states(&failure) == [Some(State::Running)], "{failure}");
}

#[test]
fn drivers_without_the_calls_are_named() {
    let no_driver = tempfile::tempdir().expect("a folder");
    let world = World::new();
    let target = world.target(&[]);
    let handle =
        Handle::open(world.helper_with(&[format!("LD_LIBRARY_PATH={}", no_driver.path().display())]), target.pid()).expect("it runs");
    assert!(matches!(handle.state(), Err(Error::NoDriver(_))), "{:?}", handle.state());
    // Before driver 550 there is nothing; before 570 only the program.
    for version in [12_030, 12_040] {
        let world = World::with(&format!("version {version}"));
        let handle = Handle::open(world.helper_with(&["PATH=".to_owned()]), target.pid()).expect("it runs");
        assert!(matches!(handle.state(), Err(Error::DriverTooOld(found)) if found == version), "{:?}", handle.state());
    }
    let world = World::with("fail cuInit 1 100");
    assert!(matches!(Handle::open(world.helper(), target.pid()).expect("it runs").state(), Err(Error::NoDriver(_))));
    // A library of the right version without the calls.
    let source = no_driver.path().join("driver.c");
    let text = "int cuInit(unsigned flags) { return flags; } int cuDriverGetVersion(int *version) { *version = 13000; return 0; }";
    fs::write(&source, text).expect("a file");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(no_driver.path().join("libcuda.so.1")).arg(&source).status();
    assert!(compiled.expect("a C compiler is part of the set-up").success());
    assert!(matches!(handle.state(), Err(Error::SymbolMissing(name)) if name == "cuCheckpointProcessGetState"));
}

#[test]
fn older_drivers_toggle_by_the_program() {
    let world = World::with("version 12040");
    let target = world.target(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("cuda-checkpoint");
    let state = folder.path().join("state");
    fs::write(&state, "running\n").expect("a file");
    let text = format!(
        "#!/bin/sh\n[ \"$2 $3\" = '--pid {0}' ] || {{ echo \"bad pid $3\" >&2; exit 1; }}\nread now < {1}\nif [ \"$1\" = --get-state ]; then echo $now; exit; fi\nif [ $now = running ]; then echo checkpointed; else echo running; fi > {1}\n",
        target.pid(),
        state.display()
    );
    fs::write(&program, text).expect("a file");
    Command::new("chmod").arg("+x").arg(&program).status().expect("chmod");
    let helper = world.helper_with(&[format!("PATH={}", folder.path().display())]);
    let group = Group::of(helper.clone(), target.pid()).expect("it runs");
    group.suspend(SHORT).expect("the program does it");
    assert_eq!(fs::read_to_string(&state).expect("a file"), "checkpointed\n");
    assert!(matches!(group.suspend(SHORT).expect_err("it is").error, Error::WrongState { state: State::Checkpointed, .. }));
    group.resume(&Mapping::none()).expect("the program does it");
    let handle = Handle::open(helper.clone(), target.pid()).expect("it runs");
    assert_eq!(handle.state().expect("a state"), State::Running);
    assert!(matches!(handle.lock(SHORT), Err(Error::ToggleOnly(12_040))));
    let other = world.target(&[]);
    assert!(
        matches!(Handle::open(helper, other.pid()).expect("it runs").state(), Err(Error::Program { said, .. }) if said.starts_with("bad pid"))
    );
}

#[test]
fn other_answers_of_the_driver_are_told_as_they_are() {
    let world = World::with("fail cuCheckpointProcessLock 1 999;fail cuCheckpointProcessUnlock 1 800");
    let target = world.target(&[]);
    let handle = world.handle(&target);
    assert!(matches!(handle.lock(SHORT), Err(Error::Driver { code: 999, call: "cuCheckpointProcessLock", .. })));
    assert!(matches!(handle.unlock(), Err(Error::NoPermission { .. })));
}

#[test]
fn a_call_that_blocks_costs_the_helper_and_not_the_caller() {
    let world = World::with("block cuCheckpointProcessCheckpoint 1");
    let target = world.target(&[]);
    let helper = world.helper().copy_within(Duration::from_millis(300));
    let group = Group::of(helper, target.pid()).expect("it runs");
    let since = Instant::now();
    let failure = group.suspend(SHORT).expect_err("it blocks");
    assert!(matches!(failure.error, Error::Blocked { call: "cuCheckpointProcessCheckpoint", .. }), "{failure}");
    assert!(since.elapsed() < Duration::from_secs(60));
    // The next helper has undone the lock.
    assert_eq!(states(&failure), [Some(State::Running)]);
}

#[test]
fn a_helper_that_dies_at_any_step_leaves_a_named_state() {
    let steps = [
        ("cuCheckpointProcessLock", State::Running),
        ("cuCheckpointProcessCheckpoint", State::Running),
        ("cuCheckpointProcessRestore", State::Checkpointed),
        ("cuCheckpointProcessUnlock", State::Locked),
    ];
    for (call, left) in steps {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let world = World::with(&format!("log {};block {call} 1", log.path().display()));
        let target = world.target(&[("bytes", GB)]);
        let helper = world.helper();
        let group = Group::of(helper.clone(), target.pid()).expect("it runs");
        if call.ends_with("Restore") || call.ends_with("Unlock") {
            world.know(&target.0.id().to_string(), &[("state", 2), ("bytes", GB)]);
        }
        let killed = std::thread::scope(|scope| {
            let done = scope.spawn(|| group.toggle(SHORT, &Mapping::none()));
            // A call is logged before it blocks.
            until(|| fs::read_to_string(log.path()).ok().filter(|calls| calls.ends_with(&format!("{call}\n"))));
            let known = format!("processes {}", world.machine.known().display());
            let is_helper = |pid: &u32| {
                *pid != target.0.id()
                    && fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&known))
            };
            let helper = cuinstr_checkpoint::system::tree(std::process::id()).into_iter().find(is_helper).expect("it is in a call");
            Command::new("kill").args(["-9", &helper.to_string()]).status().expect("kill");
            done.join().expect("no panic")
        });
        let failure = killed.expect_err("its helper is dead");
        assert!(matches!(failure.error, Error::Helper(_)), "{call}: {failure}");
        assert_eq!(states(&failure), [Some(left)], "{call}");
        // From there everything goes on.
        let world = World { rules: String::new(), ..world };
        let now = world.group(&target);
        let done = if left == State::Running { now.suspend(SHORT) } else { now.resume(&Mapping::none()) };
        assert!(done.is_ok(), "{call}: {done:?}");
    }
}

fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_caller_that_dies_between_lock_and_checkpoint_leaves_the_process_running() {
    let world = World::new();
    let target = world.target(&[]);
    // The test's own program again, which locks and is killed.
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--exact", "the_caller_that_is_killed", "--ignored", "--nocapture"]).stdout(Stdio::null());
    command.env("WORLD", world.machine.known()).env("DRIVER", world.machine.driver()).env("TARGET", target.pid().to_string());
    let mut caller = Target(command.spawn().expect("this program"));
    let file = world.machine.known().join(target.pid().to_string());
    let is_in = |state: &str| fs::read_to_string(&file).is_ok_and(|text| text.contains(state)).then_some(());
    until(|| is_in("state 1"));
    caller.0.kill().expect("it runs");
    until(|| is_in("state 0"));
}

#[test]
#[ignore = "it is run by the test above"]
fn the_caller_that_is_killed() {
    let Some(known) = std::env::var_os("WORLD") else { return };
    let driver = std::env::var("DRIVER").expect("a folder");
    let arguments = [
        format!("LD_LIBRARY_PATH={driver}"),
        format!("CUINSTR_STAND_IN=processes {}", Path::new(&known).display()),
        env!("CARGO_BIN_EXE_cuinstr-checkpoint").to_owned(),
    ];
    let target = std::env::var("TARGET").expect("a pid").parse().expect("a pid");
    let locked = Process::running(Helper::of_program("env", arguments), target).expect("it runs").lock(SHORT).expect("nothing runs");
    std::thread::sleep(Duration::from_secs(60));
    drop(locked);
}

#[test]
fn a_tree_is_suspended_as_a_whole_or_not_at_all() {
    let world = World::new();
    let root = Target(Command::new("sh").args(["-c", "sleep 100 & sleep 100 & wait"]).spawn().expect("sh"));
    let tree = until(|| Some(cuinstr_checkpoint::system::tree(root.0.id())).filter(|tree| tree.len() == 3));
    // The shell itself does not use CUDA.
    for pid in &tree[1..] {
        world.know(&pid.to_string(), &[("bytes", GB)]);
    }
    let group = Group::tree(world.helper(), root.pid()).expect("it runs");
    assert_eq!(group.suspend(SHORT).expect("nothing is in the way"), tree[1..]);
    assert_eq!(group.resume(&Mapping::none()).expect("there is room"), tree[1..]);
    for broken in [("busy", 1), ("managed", 1)] {
        world.know(&tree[2].to_string(), &[("bytes", GB), broken]);
        let failure = group.suspend(SHORT).expect_err("one can't");
        assert_eq!(states(&failure), [Some(State::Running), Some(State::Running)], "{failure}");
    }
    // A restore that fails for one has the others suspended again.
    world.know(&tree[2].to_string(), &[("bytes", GB)]);
    group.suspend(SHORT).expect("nothing is in the way");
    let refusing = World { rules: "fail cuCheckpointProcessRestore 2 999".to_owned(), ..world };
    let failure = Group::tree(refusing.helper(), root.pid()).expect("it runs").resume(&Mapping::none()).expect_err("the second fails");
    assert_eq!(states(&failure), [Some(State::Checkpointed), Some(State::Checkpointed)], "{failure}");
    for child in &tree[1..] {
        let _ = Command::new("kill").arg(child.to_string()).status();
    }
}

#[test]
fn an_assessment_says_how_large_and_what_is_in_the_way() {
    let world = World::new();
    let target = world.target(&[("bytes", 2 * GB)]);
    let told = world.group(&target).assess();
    assert_eq!((told.len(), told[0].gpu_bytes, told[0].obstacles.len()), (1, Some(2 * GB), 0), "{told:?}");
    world.know(&target.0.id().to_string(), &[("bytes", 70_000 * GB)]);
    assert!(world.group(&target).assess()[0].obstacles[0].contains("the host has"));
}
