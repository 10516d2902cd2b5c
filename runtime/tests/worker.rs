//! The parent's side of a worker against children that behave, crash, stall, answer rubbish, answer too much, and close their pipe; and a real
//! worker's side against parents that go. None of this needs a GPU.
//!
//! The fake child is this program again. It speaks the protocol by hand, from what is written here and in `fake` alone.

#[path = "worker/child.rs"]
mod child;
mod fake;

use child::{fake, report};
use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::worker::{Builder, Fault, RemoteKernel, RemoteRunning, Restore, Worker};
use cuinstr_runtime::{Cause, Error, Outcome, Tier};
use fake::greeting;
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Names the behaviour of a fake child.
const FAKE: &str = "CUINSTR_FAKE";
const SHORT: Duration = Duration::from_millis(20);
const BRIEF: Duration = Duration::from_millis(300);
/// How long a sound fake may take to answer. A busy machine with two cores must not make one look unsound.
const ANSWER: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if let Ok(behaviour) = std::env::var(FAKE) {
        fake(&behaviour);
        return ExitCode::SUCCESS;
    }
    let tests: &[(&str, fn())] = &[
        ("a program that is no worker is told from one, and the error says what to do", no_worker),
        ("a worker of another release is refused with both versions", other_version),
        ("a program that does not offer to serve is not run", not_serving),
        ("a worker starts no workers", nested),
        ("a launch runs, and buffers hold what was written", sound),
        ("a hang that leaves its polls keeps its process", left),
        ("what does not leave costs its process, and the spare has module and buffers", undrained),
        ("a module that is kept in the spares is there when one takes over, and goes with its last handle", kept),
        ("a fault costs the process, the outcome says so, and a buffer that was not to be restored is lost", faulted),
        ("a process that dies, stalls, answers rubbish, too much or out of turn is given up", misbehaving),
        ("a process that never tells of a launch's end is killed, and the launch counts as stopped", mute),
        ("a process that stops reading is given up", deaf),
        ("a process killed from outside is replaced, idle or not", killed),
        ("a launch without a limit is not waited for, and can be cancelled from another thread", endless),
        ("launches queue, and what is behind a fault is lost", queued),
        ("a launch is a future", future),
        ("errors of the worker come back as they are", refused),
        ("dropping a worker leaves no process behind", dropped),
        ("a worker without spares starts the next one itself", no_spares),
        ("a real worker says why it can't open a device", real),
        ("a real worker ends with its parent's pipe, and with its parent", orphaned),
        ("the worker program says what it is to those who run it by hand", by_hand),
    ];
    let trial = |(name, test): &(&str, fn())| {
        let test = *test;
        Trial::test(*name, move || {
            test();
            Ok::<(), Failed>(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), tests.iter().map(trial).collect()).exit_code()
}

fn builder(behaviour: &str) -> Builder {
    let mut builder = Worker::builder();
    let program = std::env::current_exe().expect("this program");
    builder.program(program).variable(FAKE, behaviour).spares(1).start_within(LONG).answer_within(ANSWER);
    builder
}

fn worker() -> Worker {
    builder("sound").start().expect("the fake starts")
}

fn kernel(worker: &Worker, name: &str) -> RemoteKernel {
    worker.load(b"a module").expect("it loads").kernel(name).expect("it has every kernel")
}

fn start(kernel: &RemoteKernel) -> Result<RemoteRunning, Error> {
    kernel.launch().timeout(SHORT).grace(SHORT).begin_within(SHORT).start(LaunchConfig::for_num_elems(1))
}

fn run(kernel: &RemoteKernel) -> Result<Outcome, Error> {
    start(kernel)?.wait()
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Worker(fault) => fault,
        other => panic!("{other}"),
    }
}

fn why(error: Error) -> String {
    match fault(error) {
        Fault::Gone { why, .. } => why,
        other => panic!("{other}"),
    }
}

fn no_worker() {
    for (behaviour, wanted) in [
        ("silent", "did not answer the handshake within 200ms"),
        ("chatty", "sent something else"),
        ("dead", "ended (exit status: 3) instead of answering"),
        ("closed", "closed its pipe instead of answering"),
    ] {
        let since = Instant::now();
        let limit = if behaviour == "silent" { Duration::from_millis(200) } else { LONG };
        let error = builder(behaviour).start_within(limit).start().expect_err("it is no worker");
        let text = error.to_string();
        assert!(text.contains(wanted) && text.contains("serve_if_asked() first thing"), "{behaviour}: {text}");
        assert!(since.elapsed() < LONG / 2, "{behaviour}: {:?}", since.elapsed());
    }
    let error = Worker::builder().program("/no/such/program").start().expect_err("there is none");
    assert!(matches!(fault(error), Fault::NotStarted { .. }));
}

fn other_version() {
    let error = fault(builder("older").start().expect_err("it is of another release"));
    assert!(matches!(error, Fault::OtherVersion { theirs: 77, ours: 1, their_abi: 5, our_abi: 1, .. }), "{error}");
}

fn not_serving() {
    let error = fault(Worker::builder().start().expect_err("this program serves nobody"));
    assert_eq!(error, Fault::NotServing);
}

fn nested() {
    let program = std::env::current_exe().expect("this program");
    let said = Command::new(program).env("CUINSTR_WORKER", "1").env(FAKE, "starter").output().expect("it runs");
    assert!(String::from_utf8_lossy(&said.stdout).contains("this process is a worker itself"), "{said:?}");
}

fn sound() {
    let worker = worker();
    assert_eq!((worker.device_name().expect("it is there"), worker.losses()), ("a fake".to_owned(), 0));
    assert_eq!(worker.arch().expect("it is there").to_string(), "90a");
    let kernel = kernel(&worker, "adds one");
    let mut buffer = worker.upload(&[1_u8, 2, 3], Restore::Never).expect("there is room");
    let mut launch = kernel.launch();
    launch.arg(&buffer).arg(7_i32).timeout(SHORT);
    for _ in 0..3 {
        let mut running = launch.start(LaunchConfig::for_num_elems(1)).expect("it starts");
        let Outcome::Completed { elapsed, late: false, fuel_used: None } = running.wait().expect("it ends") else { panic!("it completes") };
        assert_eq!(elapsed, Duration::from_micros(5));
        assert!(running.wait().is_err(), "an outcome is given once");
    }
    assert_eq!(buffer.read::<u8>().expect("it is there"), [4, 5, 6]);
    buffer.write_bytes(1, &[9]).expect("it is there");
    assert_eq!(buffer.read_bytes(1, 2).expect("it is there"), [9, 6]);
    assert!(matches!(fault(buffer.read_bytes(2, 2).expect_err("there are three")), Fault::OutOfBuffer { from: 2, to: 4, bytes: 3 }));
    let stranger = builder("sound").spares(0).start().expect("the fake starts").zeros(4, Restore::Never).expect("there is room");
    let error = kernel.launch().arg(&stranger).timeout(SHORT).start(LaunchConfig::for_num_elems(1)).expect_err("it is another's");
    assert!(matches!(fault(error), Fault::OtherWorker { .. }));
    let error = kernel.launch().start(LaunchConfig::for_num_elems(1)).expect_err("it has no limit");
    assert!(matches!(error, Error::NoLimit { .. }));
    let error = kernel.launch().timeout(Duration::ZERO).start(LaunchConfig::for_num_elems(1)).expect_err("no time at all");
    assert_eq!(error, Error::ZeroTimeout);
}

fn left() {
    let worker = worker();
    let pid = worker.pid().expect("it is there");
    let outcome = run(&kernel(&worker, "leaves")).expect("it ends");
    let Outcome::Stopped { why: Cause::Deadline, tier: Tier::Leave, latency, report: found } = outcome else { panic!("{outcome:?}") };
    assert_eq!((latency, *found), (Duration::from_micros(30), report()));
    assert_eq!((worker.pid().expect("it is there"), worker.losses()), (pid, 0));
}

fn undrained() {
    let worker = worker();
    assert!(worker.warm(LONG).expect("the spare starts"));
    let (stays, adds) = (kernel(&worker, "stays"), kernel(&worker, "adds one"));
    let mut input = worker.upload(&[10_u32, 20], Restore::Copy).expect("there is room");
    let mut saved = worker.zeros(2, Restore::Copy).expect("there is room");
    let output = worker.upload(&[5_u8; 4], Restore::Blank).expect("there is room");
    input.write(&[11_u32]).expect("it is there");
    let mut running = adds.launch().arg(&mut saved).timeout(SHORT).start(LaunchConfig::for_num_elems(1)).expect("it starts");
    assert!(running.wait().expect("it ends").is_completed());
    saved.save().expect("it is there");
    let pid = worker.pid().expect("it is there");
    let outcome = run(&stays).expect("it is stopped");
    let Outcome::Stopped { why: Cause::Deadline, tier: Tier::Worker, latency, report: found } = outcome else { panic!("{outcome:?}") };
    assert!(latency >= Duration::from_millis(7) && latency < LONG, "{latency:?}");
    assert_eq!(*found, report());
    let since = Instant::now();
    assert_eq!(input.read::<u32>().expect("it was restored"), [11, 20]);
    assert!(since.elapsed() < ANSWER, "the spare was ready: {:?}", since.elapsed());
    assert_eq!(saved.read::<u8>().expect("it was restored"), [1, 1]);
    assert_eq!(output.read::<u8>().expect("it was restored"), [0; 4]);
    assert!(run(&adds).expect("its module was loaded again").is_completed());
    assert_ne!(worker.pid().expect("it is there"), pid);
    assert_eq!(worker.losses(), 1);
}

fn kept() {
    let worker = worker();
    let [first, second] = [b"one", b"two"].map(|image| worker.load(image).expect("it loads"));
    let counts = second.kernel("counts modules").expect("it is there");
    let stays = kernel(&worker, "stays");
    let modules = || {
        let Outcome::Completed { elapsed, .. } = run(&counts).expect("it ends") else { panic!("it completes") };
        elapsed.as_nanos()
    };
    assert_eq!(modules(), 3);
    let lose = || {
        assert!(worker.warm(LONG).expect("the spare starts"));
        assert!(matches!(run(&stays).expect("it is stopped"), Outcome::Stopped { tier: Tier::Worker, .. }));
    };
    lose();
    assert_eq!(modules(), 1, "only what is used is loaded again");
    for module in [&first, &second] {
        module.keep_in_spares().expect("a thread");
    }
    lose();
    assert_eq!(modules(), 2, "the spare that was ready has both");
    lose();
    assert_eq!(modules(), 2, "and so has one that was started later");
    assert!(worker.warm(LONG).expect("the spare starts"));
    drop(first);
    lose();
    let _sweeps = worker.zeros(1, Restore::Never).expect("there is room");
    assert_eq!(modules(), 1, "nobody needs the first");
}

fn faulted() {
    let worker = worker();
    let mut kept = worker.upload(&[1_u8, 2], Restore::Never).expect("there is room");
    let outcome = run(&kernel(&worker, "faults")).expect("it ends");
    let Outcome::Faulted { fault: driver } = outcome else { panic!("{outcome:?}") };
    assert_eq!((driver.call, driver.code), ("cuEventQuery", 700));
    let lost = fault(kept.read::<u8>().expect_err("it is gone"));
    assert!(matches!(&lost, Fault::Lost { bytes: 2, why } if why.contains("kernel `faults` ended its context")), "{lost}");
    let adds = kernel(&worker, "adds one");
    let error = adds.launch().arg(&kept).timeout(SHORT).start(LaunchConfig::for_num_elems(1)).expect_err("its buffer is gone");
    assert!(matches!(fault(error), Fault::Lost { .. }));
    assert!(kept.write_bytes(0, &[1]).is_err(), "half of it does not bring it back");
    kept.write(&[7_u8, 8]).expect("all of it does");
    assert_eq!(kept.read::<u8>().expect("it is there"), [7, 8]);
}

fn misbehaving() {
    let worker = worker();
    for (name, wanted) in [
        ("dies", "it ended"),
        ("stalls", "it did not launch a kernel within 4s, and was killed"),
        ("babbles", "it sent a message of"),
        ("floods", "bytes where at most 0 were asked for"),
        ("answers others", "it answered what nobody had asked"),
        ("ends others", "it told of a launch that was never made"),
    ] {
        let since = Instant::now();
        // The launch's own limit is far: what is seen here is how the worker answers.
        let launched = kernel(&worker, name).launch().timeout(LONG).start(LaunchConfig::for_num_elems(1));
        let text = why(launched.and_then(|mut running| running.wait()).expect_err("it misbehaves"));
        assert!(text.contains(wanted), "{name}: {text}");
        assert!(since.elapsed() < LONG / 2, "{name}: {:?}", since.elapsed());
        assert!(run(&kernel(&worker, "adds one")).expect("the next one behaves").is_completed());
    }
    assert_eq!(worker.losses(), 6);
}

fn mute() {
    let worker = worker();
    let since = Instant::now();
    let outcome = run(&kernel(&worker, "is mute")).expect("it is stopped");
    let Outcome::Stopped { why: Cause::Deadline, tier: Tier::Worker, latency, report } = outcome else { panic!("{outcome:?}") };
    assert!(since.elapsed() < LONG && latency <= since.elapsed() && latency > SHORT, "{latency:?} of {:?}", since.elapsed());
    assert_eq!((report.kernel.as_str(), report.threads, report.limit), ("is mute", 0, Some(20_000_000)));
    assert!(report.to_string().starts_with("kernel `is mute` was stopped: its deadline (20 ms) passed"), "{report}");
    // Nobody needs to wait for it: the timer sees to it.
    let running = start(&kernel(&worker, "is mute")).expect("it starts");
    let until = Instant::now() + LONG;
    while worker.losses() < 2 {
        assert!(Instant::now() < until, "the timer did not see to it");
        thread::sleep(SHORT);
    }
    assert_eq!(worker.losses(), 2);
    drop(running);
    assert!(run(&kernel(&worker, "adds one")).expect("the next one behaves").is_completed());
}

fn deaf() {
    let worker = worker();
    let mut buffer = worker.zeros(8 << 20, Restore::Copy).expect("there is room");
    assert!(run(&kernel(&worker, "is deaf")).expect("it ends").is_completed());
    let since = Instant::now();
    let text = why(buffer.write(&vec![1_u8; 8 << 20]).expect_err("nobody reads it"));
    assert!(text.contains("did not listen within"), "{text}");
    assert!(since.elapsed() < LONG / 2);
    assert!(buffer.read::<u8>().expect("the next has what was written").iter().all(|byte| *byte == 1));
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill runs").success());
}

fn killed() {
    // The tests run side by side, as this one's children must.
    const MARK: &str = "CUINSTR_FAKE_TO_KILL";
    let worker = builder("sound").variable(MARK, "1").start().expect("the fake starts");
    let input = worker.upload(&[3_u8], Restore::Copy).expect("there is room");
    let adds = kernel(&worker, "adds one");
    kill(worker.pid().expect("it is there"));
    assert_eq!(input.read::<u8>().expect("it was restored"), [3]);
    assert!(run(&adds).expect("the spare has it").is_completed());
    let mut running = kernel(&worker, "waits").launch().until_cancelled().start(LaunchConfig::for_num_elems(1)).expect("it starts");
    kill(worker.pid().expect("it is there"));
    let text = why(running.wait().expect_err("it went with its process"));
    assert!(text.contains("it ended"), "{text}");
    // A spare that died in reserve is not handed out.
    let pid = worker.pid().expect("it is there");
    assert!(worker.warm(LONG).expect("the spare starts"));
    for child in children() {
        if child != pid && variable(child, MARK) {
            kill(child);
        }
    }
    kill(pid);
    // Not noticed yet, maybe: it had nothing to do, so nothing is lost.
    assert!(run(&adds).expect("a new one has it").is_completed());
}

/// The children of this process.
fn children() -> Vec<u32> {
    let own = std::process::id();
    let all = std::fs::read_dir("/proc").expect("a system with /proc").flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| parent_of(*pid) == Some(own)).collect()
}

/// The parent of a process that there is, be it a zombie.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a process has a variable of that name, and so is not a test's child of another kind.
fn variable(pid: u32, name: &str) -> bool {
    let mut text = Vec::new();
    let read = File::open(format!("/proc/{pid}/environ")).and_then(|mut file| file.read_to_end(&mut text));
    read.is_ok() && text.split(|byte| *byte == 0).any(|entry| entry.starts_with(name.as_bytes()))
}

fn endless() {
    let worker = worker();
    let buffer = worker.zeros(4, Restore::Blank).expect("there is room");
    let waits = kernel(&worker, "waits");
    let mut running = waits.launch().until_cancelled().start(LaunchConfig::for_num_elems(1)).expect("it starts");
    assert_eq!(running.poll().expect("it is in flight"), None);
    assert_eq!(running.wait_for(SHORT).expect("it is in flight"), None);
    let error = buffer.read::<u8>().expect_err("it would wait for the launch");
    assert_eq!(fault(error), Fault::InFlight { kernel: "waits".into() });
    let canceller = running.canceller();
    let thread = thread::spawn(move || {
        thread::sleep(SHORT);
        canceller.cancel()
    });
    let outcome = running.wait().expect("it ends");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, tier: Tier::Leave, .. }), "{outcome:?}");
    thread.join().expect("no panic").expect("it was told");
    running.canceller().cancel().expect("a late cancel does nothing");
    assert_eq!(buffer.read::<u8>().expect("nothing is in flight"), [0; 4]);
    // A handle that is dropped cancels.
    drop(waits.launch().until_cancelled().start(LaunchConfig::for_num_elems(1)).expect("it starts"));
    assert_eq!(buffer.read::<u8>().expect("nothing is in flight"), [0; 4]);
    assert_eq!(worker.losses(), 0);
}

fn queued() {
    let worker = worker();
    let (late, waits) = (kernel(&worker, "faults late"), kernel(&worker, "waits"));
    let limits = |kernel: &RemoteKernel| kernel.launch().timeout(LONG).start(LaunchConfig::for_num_elems(1)).expect("it starts");
    let (mut first, mut second) = (limits(&waits), limits(&late));
    assert!(matches!(second.wait().expect("it ends"), Outcome::Faulted { .. }));
    let text = why(first.wait().expect_err("it went with the process"));
    assert!(text.contains("kernel `faults late` ended its context"), "{text}");
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn future() {
    let worker = worker();
    let mut running = Box::pin(start(&kernel(&worker, "faults late")).expect("it starts"));
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let outcome = loop {
        match running.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => thread::park_timeout(LONG),
        }
    };
    assert!(matches!(outcome, Ok(Outcome::Faulted { .. })), "{outcome:?}");
}

fn refused() {
    let worker = worker();
    let error = worker.load(b"bad").expect_err("it is refused");
    assert!(matches!(&error, Error::Module { fault, log } if fault.code == 218 && log == "line 3"), "{error}");
    assert_eq!(worker.losses(), 0);
}

fn gone(pid: u32) {
    let until = Instant::now() + LONG;
    while parent_of(pid).is_some() {
        assert!(Instant::now() < until, "process {pid} is still there, if only as a zombie");
        thread::sleep(SHORT);
    }
}

fn dropped() {
    let worker = builder("sound").spares(3).start().expect("the fake starts");
    assert!(worker.warm(LONG).expect("the spares start"));
    assert_eq!(worker.ready_spares(), 3);
    let pid = worker.pid().expect("it is there");
    // A kernel keeps its worker.
    let kernel = kernel(&worker, "adds one");
    let since = Instant::now();
    drop(worker);
    assert!(run(&kernel).expect("it is there").is_completed());
    drop(kernel);
    assert!(since.elapsed() < ANSWER, "dropping waits for nothing");
    gone(pid);
}

fn no_spares() {
    let worker = builder("sound").spares(0).start().expect("the fake starts");
    for _ in 0..3 {
        assert!(matches!(run(&kernel(&worker, "faults")), Ok(Outcome::Faulted { .. })));
    }
    assert!(run(&kernel(&worker, "adds one")).expect("it starts another").is_completed());
}

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_cuinstr-worker").into()
}

fn real() {
    match Worker::builder().program(program()).spares(0).start() {
        Ok(worker) => assert!(worker.arch().expect("it is there").number >= 50),
        Err(error) => assert!(matches!(error, Error::NoDriver | Error::NoDevice { .. } | Error::DriverTooOld { .. }), "{error}"),
    }
    let error = Worker::builder().program(program()).device(4096).spares(0).start().expect_err("nobody has as many");
    assert!(matches!(error, Error::NoDriver | Error::NoDevice { .. } | Error::DriverTooOld { .. }), "{error}");
}

fn orphaned() {
    let pair = || UnixStream::pair().expect("a pair of sockets");
    let (mut ours, theirs) = pair();
    let mut child =
        Command::new(program()).env("CUINSTR_WORKER", "1").stdin(Stdio::from(OwnedFd::from(theirs))).spawn().expect("it starts");
    let mut greeted = [0; 16];
    ours.read_exact(&mut greeted).expect("a greeting");
    assert_eq!(greeted.to_vec(), greeting(1, 1));
    ours.write_all(&greeting(1, 1)).expect("it listens");
    assert!(child.try_wait().expect("it is a child").is_none());
    drop(ours);
    assert_eq!(child.wait().expect("it is a child").signal(), Some(9));

    // Its parent ends when it is told to, but somebody holds the other end of the pipe.
    let (mut ours, theirs) = pair();
    let stays = tempfile::NamedTempFile::new().expect("a file");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec 3<&0; \"$0\" <&3 & while [ -e \"$1\" ]; do sleep 0.02; done"])
        .arg(program())
        .arg(stays.path())
        .env("CUINSTR_WORKER", "1")
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    let mut child = shell.spawn().expect("sh starts");
    drop(shell);
    ours.write_all(&greeting(1, 1)).expect("it listens");
    ours.set_read_timeout(Some(LONG)).expect("a limit");
    let mut said = [0; 16];
    ours.read_exact(&mut said).expect("a greeting");
    assert_eq!(said.to_vec(), greeting(1, 1));
    drop(stays);
    assert!(child.wait().expect("it is a child").success());
    assert_eq!(ours.read(&mut said).expect("it ends within the limit"), 0);
}

fn by_hand() {
    let said = Command::new(program()).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("runs CUDA kernels for another program"));
    let said = Command::new(program()).env("CUINSTR_WORKER", "1").stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(said.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&said.stderr).contains("CUINSTR_WORKER is set"));
}
