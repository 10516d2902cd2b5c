//! Contexts that are busy, go, and come again; and what loading costs.

use crate::Case;
use crate::launches::long;
use crate::world::{LONG, PTX, SHORT, World, command, guarded, start, until};
use cuinstr_runtime::Module;
use cuinstr_runtime::cudarc::driver::CudaContext;
use cuinstr_runtime::guard::Limits;
use std::sync::mpsc;
use std::thread;

pub(crate) const CASES: &[Case] = &[
    ("loading again and again takes no more memory", reloading),
    ("contexts that come and go take no more memory", reopening),
    ("a context that has no module for a while is not opened again", kept),
    ("a context that is busy keeps no other one waiting", busy),
    ("a context that is gone is asked no more", gone),
];

fn live() -> [i64; 5] {
    ["live device", "live pinned", "live streams", "live events", "live modules"].map(command)
}

fn reloading() {
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let load = || {
        let module = Module::load(&context, PTX.as_bytes()).expect("a module");
        let kernel = module.kernel("empty").expect("a kernel");
        let stream = context.default_stream();
        assert!(start(&kernel, &stream, long).expect("a launch").wait().expect("an outcome").is_completed());
        drop(kernel.unguarded(&stream).expect("it can be launched by others"));
    };
    load();
    let before = live();
    for _ in 0..20 {
        load();
    }
    until("all is given back", || live() == before);
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    let words = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    4096 * words.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages")
}

fn reopening() {
    let round = || {
        let world = World::new();
        let stream = world.stream();
        assert!(start(&world.kernel("empty"), &stream, long).expect("a launch").wait().expect("an outcome").is_completed());
    };
    round();
    until("the context goes with its last owner", || command("live contexts") == 0);
    for _ in 0..5 {
        round();
    }
    until("all is given back", || ["live contexts", "live device", "live pinned"].map(command) == [0; 3]);
    // What this process knew of them goes, too: some 40 KB each.
    let before = resident();
    for _ in 0..200 {
        round();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 2 << 20, "200 contexts left {grown} bytes");
}

fn kept() {
    let load = |context| {
        let module = Module::load(context, PTX.as_bytes()).expect("a module");
        let stream = context.default_stream();
        assert!(
            start(&module.kernel("empty").expect("a kernel"), &stream, long).expect("a launch").wait().expect("an outcome").is_completed()
        );
    };
    let first = CudaContext::new_non_primary(0, 0).expect("a context");
    load(&first);
    // The process looks round for contexts that are gone whenever it sees a new one.
    let others: Vec<_> = (0..3).map(|_| CudaContext::new_non_primary(0, 0).expect("a context")).collect();
    others.iter().for_each(load);
    let opened = || command("calls cuStreamCreateWithPriority");
    let before = opened();
    load(&first);
    assert_eq!(opened(), before);
}

fn busy() {
    let [first, second] = [0, 0].map(|device| CudaContext::new_non_primary(device, 0).expect("a context"));
    command("block cuModuleLoadData 1");
    let blocked = thread::spawn(move || Module::load(&first, PTX.as_bytes()).map(|_| ()));
    until("a call is blocked", || command("blocked") == 1);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(Module::load(&second, PTX.as_bytes()).map(|_| ())));
    let loaded = receiver.recv_timeout(LONG);
    command("release");
    assert!(matches!(loaded, Ok(Ok(()))), "the other context waits: {loaded:?}");
    blocked.join().expect("no panic").expect("a module");
}

fn gone() {
    let context = CudaContext::new_non_primary(0, 0).expect("a context");
    let stream = context.new_stream().expect("a stream");
    let limits = Limits { grace: SHORT, ..Limits::UNTIL_CANCELLED };
    let guard = guarded(&context, "deaf", &stream, &limits).expect("a guard").expect("a launch");
    guard.launched().expect("it was launched");
    guard.cancel().expect("a cancel");
    until("it runs", || command("running") == 1);
    // Its host destroys the context, which takes the kernel along.
    command("destroy");
    until("nobody asks the context", || {
        let before = command("calls *");
        thread::sleep(SHORT * 10);
        command("calls *") == before
    });
    assert!(guard.wait_for(SHORT).is_err(), "the launch has no outcome");
    // cudarc would destroy it again.
    std::mem::forget((stream, context));
}
