//! Snapshots: saved in one process, restored in another.

use crate::Case;
use crate::guards::{Blocks, GRID};
use crate::world::{LONG, PTX, SHORT, command, start, until};
use cuinstr_runtime::cudarc::driver::{CudaStream, LaunchConfig};
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::snapshot::{Fault, Ledger};
use cuinstr_runtime::{Error, Outcome};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const CASES: &[Case] = &[
    ("a snapshot is restored in another process", restored),
    ("a snapshot is restored here", here),
    ("ledgers of one process are restored in another, together", several),
    ("snapshots of several ledgers are restored here", several_here),
    ("a paused launch is saved, and goes on in another process", paused),
    ("a paused launch goes on here", goes_on),
    ("a guard's paused launch is saved, and goes on in another process", left),
    ("a guard's paused launch goes on here", left_goes_on),
    ("any ledger comes back as it was", any_ledger),
    ("what keeps a snapshot from being restored is named", refused),
    ("a ledger whose kernels run on is not saved", busy),
    ("a driver that fails leaves no snapshot and no memory", failing),
];

/// Names the snapshot that the child of `restored` reads.
const PATH: &str = "CUINSTR_SNAPSHOT";

fn open() -> Ledger {
    Ledger::new(&cuinstr_runtime::open(0).expect("the stand-in has a device")).expect("a ledger")
}

fn again(path: &Path) -> Result<Ledger, Fault> {
    Ledger::restore(&cuinstr_runtime::open(0).expect("the stand-in has a device"), path)
}

/// Device memory of the stand-in is memory of the process, which only copies reach.
fn write(ledger: &Ledger, name: &str, bytes: &[u8]) {
    let stream = ledger.stream("main").expect("a stream");
    let memory = ledger.memory(name).expect("it is there");
    // SAFETY: the memory has as many bytes.
    let view = unsafe { stream.upgrade_device_ptr::<u8>(memory.address, memory.bytes) };
    let mut view = std::mem::ManuallyDrop::new(view);
    stream.memcpy_htod(bytes, &mut *view).expect("a copy");
    stream.synchronize().expect("it ends");
}

fn read(ledger: &Ledger, name: &str) -> Vec<u8> {
    let stream = ledger.stream("main").expect("a stream");
    let memory = ledger.memory(name).expect("it is there");
    // SAFETY: as above.
    let view = std::mem::ManuallyDrop::new(unsafe { stream.upgrade_device_ptr::<u8>(memory.address, memory.bytes) });
    stream.clone_dtoh(&*view).expect("a copy")
}

fn launches(ledger: &Ledger) {
    let kernel = ledger.module("kernels").expect("it is there").kernel("empty").expect("a kernel");
    let stream = ledger.stream("main").expect("a stream");
    let ended = start(&kernel, &stream, |launch| {
        launch.timeout(LONG);
    })
    .expect("a launch")
    .wait()
    .expect("an outcome");
    assert!(ended.is_completed());
}

fn restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let ledger = open();
    let first = ledger.allocate("first", 100_000).expect("memory");
    let second = ledger.allocate("second", 5 << 20).expect("memory");
    assert_eq!(read(&ledger, "first"), vec![0; 100_000]);
    // A pointer into the other piece.
    write(&ledger, "first", &[second.address.to_le_bytes().to_vec(), vec![7; 99_992]].concat());
    ledger.load("kernels", PTX.as_bytes()).expect("a module");
    launches(&ledger);
    let bytes = ledger.save(&path, LONG).expect("room");
    assert_eq!(std::fs::metadata(&path).expect("a file").len(), bytes);
    let mut child = std::process::Command::new(std::env::current_exe().expect("a program"));
    let told = child.env(crate::CASE, "a snapshot is restored here").env(PATH, &path).output().expect("this program");
    let said = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(said, format!("{:#x} {:#x}\n", first.address, second.address));
}

fn here() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    let ledger = again(&path).expect("it is whole");
    let (first, second) = (ledger.memory("first").expect("memory"), ledger.memory("second").expect("memory"));
    assert_eq!(read(&ledger, "first")[..8], second.address.to_le_bytes());
    assert_eq!(ledger.names(), [vec!["first".to_owned(), "second".into()], vec!["kernels".into()], vec!["main".into()]]);
    launches(&ledger);
    println!("{:#x} {:#x}", first.address, second.address);
}

fn several() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (open(), open());
    for (name, ledger) in [("first", &first), ("second", &second)] {
        ledger.allocate(name, 3 << 20).expect("memory");
        write(ledger, name, name.as_bytes());
        ledger.save(folder.path().join(name), LONG).expect("room");
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("a program"));
    let told =
        child.env(crate::CASE, "snapshots of several ledgers are restored here").env(PATH, folder.path()).output().expect("this program");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let addresses = [("first", &first), ("second", &second)].map(|(name, ledger)| ledger.memory(name).expect("memory").address);
    assert_eq!(String::from_utf8_lossy(&told.stdout), format!("{addresses:?}\n"));
}

fn several_here() {
    let Some(folder) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    // In another order than they were made.
    let [second, first] = ["second", "first"].map(|name| {
        let ledger = again(&folder.join(name)).expect("it is whole");
        assert_eq!(&read(&ledger, name)[..name.len()], name.as_bytes());
        ledger.memory(name).expect("memory").address
    });
    println!("{:?}", [first, second]);
}

/// Each block counts in a word of the ledger's memory.
const BLOCKS: u32 = 10_000;

fn paused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let ledger = open();
    let counts = ledger.allocate("counts", 4 * BLOCKS as usize).expect("memory");
    let kernel = ledger.load("kernels", PTX.as_bytes()).expect("a module").kernel("blocks").expect("a kernel");
    let stream = ledger.stream("main").expect("a stream");
    let config = LaunchConfig { grid_dim: (BLOCKS / 10, 5, 2), block_dim: (32, 1, 1), shared_mem_bytes: 0 };
    let prepared = |stream: &Arc<CudaStream>| {
        let mut prepared = kernel.prepare(stream);
        prepared.arg(4_u64).arg(1_000_000_u64).arg(counts.address).timeout(LONG).pausable();
        prepared
    };
    // SAFETY: the kernel counts in the ledger's memory.
    let mut running = unsafe { prepared(&stream).start(config) }.expect("a launch");
    assert!(matches!(ledger.put_paused("long", &mut running), Err(Fault::Runtime(Error::Order(_)))), "it runs");
    let Outcome::Paused { left, .. } = running.pause(LONG).expect("an outcome") else { panic!("its blocks take ten seconds") };
    assert!(matches!(ledger.save(&path, SHORT), Err(Fault::Busy { .. })), "it holds its stream");
    ledger.put_paused("long", &mut running).expect("its parts are the ledger's");
    ledger.save(&path, LONG).expect("room");
    // A paused launch of another stream is not the ledger's to save, and stays paused.
    let foreign = cuinstr_runtime::open(0).expect("the stand-in has a device").new_stream().expect("a stream");
    // SAFETY: as above.
    let mut other = unsafe { prepared(&foreign).start(config) }.expect("a launch");
    assert!(matches!(other.pause(LONG).expect("an outcome"), Outcome::Paused { .. }));
    let fault = ledger.put_paused("other", &mut other).expect_err("its stream is foreign");
    assert!(matches!(&fault, Fault::Name(what) if what.contains("the stream of the paused launch `other`")), "{fault}");
    assert!(other.is_paused());
    let mut child = std::process::Command::new(std::env::current_exe().expect("a program"));
    let told = child.env(crate::CASE, "a paused launch goes on here").env(PATH, &path).output().expect("this program");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(String::from_utf8_lossy(&told.stdout), format!("{left}\n"));
}

fn goes_on() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    let ledger = again(&path).expect("it is whole");
    let remainder = ledger.take_paused("long").expect("it was saved");
    assert!(matches!(ledger.take_paused("long"), Err(Fault::Name(_))), "it is given once");
    command("blocks 0");
    // SAFETY: its arguments lead to the ledger's memory.
    let mut running = unsafe { remainder.start() }.expect("a launch");
    // It may be paused in its turn.
    while let Outcome::Paused { .. } = running.pause(LONG).expect("an outcome") {
        running.resume(&ledger.stream("main").expect("a stream")).expect("it goes on");
    }
    assert_eq!(read(&ledger, "counts"), [1, 0, 0, 0].repeat(BLOCKS as usize), "each block ran once");
    println!("{}", remainder.left());
}

fn left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let ledger = Ledger::new(&context).expect("a ledger");
    let counts = ledger.allocate("counts", 4 * GRID.iter().product::<u32>() as usize).expect("memory");
    let host = Blocks::new(&context, counts.address, GRID).expect("a module");
    let stream = context.new_stream().expect("a stream");
    // SAFETY: stream and module live as long as this case.
    let guard =
        unsafe { host.attach().expect("it was rewritten").arm_pausable(handle(&stream), &Limits::timeout(LONG), GRID) }.expect("a guard");
    assert!(matches!(ledger.put_left("long", &guard), Err(Fault::Runtime(Error::Order(_)))), "it is not launched");
    host.launch(&stream).expect("a launch");
    guard.launched().expect("it was launched");
    assert!(matches!(ledger.put_left("long", &guard), Err(Fault::Runtime(Error::Order(_)))), "it runs");
    let Outcome::Paused { left, .. } = guard.pause(LONG).expect("an outcome") else { panic!("its blocks take long") };
    let behind = stream.record_event(None).expect("an event");
    assert!(!behind.is_complete(), "it holds its stream");
    ledger.put_left("long", &guard).expect("it is paused");
    assert!(matches!(ledger.put_left("long", &guard), Err(Fault::Runtime(Error::Order(_)))), "it is the ledger's by now");
    until("what is behind it goes on", || behind.is_complete());
    ledger.save(&path, LONG).expect("room");
    let mut child = std::process::Command::new(std::env::current_exe().expect("a program"));
    let told = child.env(crate::CASE, "a guard's paused launch goes on here").env(PATH, &path).output().expect("this program");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(String::from_utf8_lossy(&told.stdout), format!("{left}\n"));
}

fn handle(stream: &CudaStream) -> usize {
    stream.cu_stream().expose_provenance()
}

fn left_goes_on() {
    let Some(path) = std::env::var_os(PATH).map(PathBuf::from) else { return };
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let ledger = Ledger::restore(&context, path).expect("it is whole");
    let left = ledger.take_left("long").expect("it was saved");
    assert!(matches!(ledger.take_left("long"), Err(Fault::Name(_))), "it is given once");
    assert_eq!(left.grid(), GRID);
    let host = Blocks::new(&context, ledger.memory("counts").expect("memory").address, GRID).expect("a module");
    let [stream, other] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    command("blocks 0");
    // SAFETY: stream and module live as long as this case.
    let guard = unsafe { host.attach().expect("it was rewritten").arm_left(handle(&stream), &left) }.expect("a guard");
    host.launch(&stream).expect("a launch");
    guard.launched().expect("it was launched");
    // It may be paused in its turn.
    while let Outcome::Paused { .. } = guard.pause(LONG).expect("an outcome") {
        // SAFETY: as above.
        unsafe { guard.resume(handle(&other)) }.expect("the next part");
        host.launch(&other).expect("a launch");
        guard.launched().expect("it was launched");
    }
    assert_eq!(read(&ledger, "counts"), [1, 0, 0, 0].repeat(GRID.iter().product::<u32>() as usize), "each block ran once");
    println!("{}", left.blocks());
}

fn any_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let pieces = prop::collection::btree_map("[a-z]{1,8}", prop::collection::vec(any::<u8>(), 1..5000), 0..6);
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: 24, ..Config::default() });
    let checked = runner.run(&pieces, |pieces| {
        let ledger = open();
        for (name, bytes) in &pieces {
            ledger.allocate(name, bytes.len()).expect("memory");
            write(&ledger, name, bytes);
        }
        ledger.save(&path, LONG).expect("room");
        let before: Vec<_> = pieces.keys().map(|name| ledger.memory(name).expect("memory")).collect();
        for name in pieces.keys() {
            // SAFETY: no kernel was launched.
            unsafe { ledger.free(name) }.expect("it is there");
        }
        prop_assert_eq!(command("live mapped"), 0);
        let ledger = again(&path).expect("it is whole");
        for ((name, bytes), before) in pieces.iter().zip(before) {
            prop_assert_eq!(ledger.memory(name).expect("memory"), before);
            prop_assert_eq!(&read(&ledger, name), bytes);
            // SAFETY: as above.
            unsafe { ledger.free(name) }.expect("it is there");
        }
        Ok(())
    });
    checked.expect("each comes back");
}

fn refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let ledger = open();
    let memory = ledger.allocate("memory", 100).expect("memory");
    assert!(matches!(ledger.allocate("memory", 1), Err(Fault::Name(_))));
    assert!(matches!(ledger.memory("other"), Err(Fault::Name(_))));
    ledger.save(&path, LONG).expect("room");
    // Its own memory still lies there.
    assert!(matches!(again(&path), Err(Fault::AddressTaken { wanted }) if wanted == memory.address));
    // SAFETY: no kernel was launched.
    unsafe { ledger.free("memory") }.expect("it is there");
    drop(again(&path).expect("it is whole"));
    assert!(matches!(again(&folder.path().join("none")), Err(Fault::File { .. })));
    assert!(matches!(ledger.save(folder.path().join("no/folder"), LONG), Err(Fault::File { .. })));
    assert_eq!(command("live mapped"), 2 << 20, "only the ledger that was restored has memory");
    command("name another");
    let error = again(&path).expect_err("another model");
    assert!(matches!(&error, Fault::OtherGpu { saved, here } if saved == "stand-in (sm_90)" && here == "another (sm_90)"), "{error}");
}

fn busy() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let ledger = open();
    let kernel = ledger.load("kernels", PTX.as_bytes()).expect("a module").kernel("spin").expect("a kernel");
    let stream = ledger.stream("main").expect("a stream");
    let mut running = start(&kernel, &Arc::clone(&stream), |launch| {
        launch.until_cancelled();
    })
    .expect("a launch");
    let fault = ledger.save(&path, SHORT).expect_err("it runs on");
    assert!(matches!(&fault, Fault::Busy { stream, within } if stream == "main" && *within == SHORT), "{fault}");
    assert!(!path.exists());
    running.canceller().cancel().expect("it is told");
    assert!(!running.wait().expect("it stops").is_completed());
    ledger.save(&path, LONG).expect("nothing runs");
}

fn failing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot");
    let ledger = open();
    ledger.allocate("memory", 70 << 20).expect("memory");
    for call in ["cuMemHostAlloc", "cuMemcpyDtoHAsync_v2", "cuStreamQuery"] {
        command(&format!("fail {call} 1 999"));
        assert!(matches!(ledger.save(&path, LONG), Err(Fault::Runtime(Error::Driver(_)))), "{call}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "{call}");
        command("forget");
    }
    ledger.save(&path, LONG).expect("room");
    // SAFETY: no kernel was launched.
    unsafe { ledger.free("memory") }.expect("it is there");
    for call in ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemHostAlloc", "cuMemcpyHtoDAsync_v2"] {
        command(&format!("fail {call} 1 999"));
        assert!(matches!(again(&path), Err(Fault::Runtime(Error::Driver(_)))), "{call}");
        assert_eq!(command("live mapped"), 0, "{call}");
        command("forget");
    }
}
