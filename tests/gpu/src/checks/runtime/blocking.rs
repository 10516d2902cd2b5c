//! Which calls of the driver wait for a running kernel, and whether another thread's call gets through meanwhile: the table of
//! `docs/RUNTIME.md`.

use super::Promise;
use super::bench::{Bench, cubin, told};
use crate::session::{Checked, Report, Session};
use cuinstr_harness::variant;
use cuinstr_runtime::cudarc::driver::sys::{self, CUresult};
use serde_json::json;
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const PROMISES: &[Promise] =
    &[Promise::new("the calls that wait for a running kernel are those that the documentation names", table)];

/// How long the kernel runs.
const RUN: Duration = Duration::from_millis(120);
/// Longest that a call takes which does not wait for it.
const PROMPT: Duration = Duration::from_millis(60);

/// Whether the call waits; whether it keeps another thread's copy to the device waiting; and another thread's written word.
type Expected = [bool; 3];

const FREE: Expected = [false, false, false];
const WAITS: Expected = [true, false, false];
const WAITS_AND_HOLDS: Expected = [true, true, false];

/// What a call may need, made before the kernel runs.
struct Things {
    image: Vec<u8>,
    stream: sys::CUstream,
    other: sys::CUstream,
    device: u64,
    host: *mut std::ffi::c_void,
    spare: *mut std::ffi::c_void,
    freed: u64,
    module: sys::CUmodule,
}

const CALLS: &[(&str, Expected)] = &[
    ("cuMemAlloc", FREE),
    ("cuMemHostAlloc", FREE),
    ("cuStreamCreate", FREE),
    ("cuStreamDestroy of another stream", FREE),
    ("cuEventCreate", FREE),
    ("cuStreamWriteValue32 on another stream", FREE),
    ("cuMemcpyDtoHAsync on another stream", FREE),
    ("cuMemcpyDtoH", FREE),
    ("cuMemsetD8Async on another stream", FREE),
    ("cuMemFree", WAITS_AND_HOLDS),
    ("cuMemFreeHost", WAITS_AND_HOLDS),
    ("cuModuleLoadData", WAITS_AND_HOLDS),
    ("cuModuleUnload", WAITS),
    ("cuCtxSetLimit of the stack", WAITS_AND_HOLDS),
    ("cuCtxSynchronize", WAITS),
];

/// Makes the call. What it allocates is not given back: this process is killed.
fn call(name: &str, things: &Things) -> CUresult {
    let (mut address, mut pointer, mut stream, mut event, mut module) =
        (0, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: handles are alive and used once, out pointers live through the calls, sizes are those of the allocations.
    unsafe {
        match name {
            "cuMemAlloc" => sys::cuMemAlloc_v2(&raw mut address, 1 << 20),
            "cuMemHostAlloc" => sys::cuMemHostAlloc(&raw mut pointer, 1 << 20, 2),
            "cuStreamCreate" => sys::cuStreamCreate(&raw mut stream, 1),
            "cuStreamDestroy of another stream" => sys::cuStreamDestroy_v2(things.other),
            "cuEventCreate" => sys::cuEventCreate(&raw mut event, 2),
            "cuStreamWriteValue32 on another stream" => sys::cuStreamWriteValue32_v2(things.stream, things.device, 0, 0),
            "cuMemcpyDtoHAsync on another stream" => sys::cuMemcpyDtoHAsync_v2(things.host, things.device, 64, things.stream),
            "cuMemcpyDtoH" => sys::cuMemcpyDtoH_v2(things.host, things.device, 64),
            "cuMemsetD8Async on another stream" => sys::cuMemsetD8Async(things.device, 0, 64, things.stream),
            "cuMemFree" => sys::cuMemFree_v2(things.freed),
            "cuMemFreeHost" => sys::cuMemFreeHost(things.spare),
            "cuModuleLoadData" => sys::cuModuleLoadData(&raw mut module, things.image.as_ptr().cast()),
            "cuModuleUnload" => sys::cuModuleUnload(things.module),
            "cuCtxSetLimit of the stack" => sys::cuCtxSetLimit(sys::CUlimit::CU_LIMIT_STACK_SIZE, 4096),
            "cuCtxSynchronize" => sys::cuCtxSynchronize(),
            _ => CUresult::CUDA_ERROR_UNKNOWN,
        }
    }
}

fn check(what: &str, result: CUresult) -> Result<(), String> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{what}: {result:?}")) }
}

fn things(session: &Session) -> Result<Things, String> {
    let mut things = Things {
        image: cubin(session, "saxpy", variant::PLAIN)?,
        stream: ptr::null_mut(),
        other: ptr::null_mut(),
        device: 0,
        host: ptr::null_mut(),
        spare: ptr::null_mut(),
        freed: 0,
        module: ptr::null_mut(),
    };
    // SAFETY: the out pointers live through the calls; the image is a whole cubin.
    unsafe {
        check("cuStreamCreate", sys::cuStreamCreate(&raw mut things.stream, 1))?;
        check("cuStreamCreate", sys::cuStreamCreate(&raw mut things.other, 1))?;
        check("cuMemAlloc", sys::cuMemAlloc_v2(&raw mut things.device, 4096))?;
        check("cuMemAlloc", sys::cuMemAlloc_v2(&raw mut things.freed, 1 << 22))?;
        check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut things.host, 4096, 2))?;
        check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut things.spare, 1 << 20, 2))?;
        check("cuModuleLoadData", sys::cuModuleLoadData(&raw mut things.module, things.image.as_ptr().cast()))?;
    }
    Ok(things)
}

fn table(session: &Session) -> Checked {
    let bench = Bench::new(session, "probe/spin_grid")?;
    let stream = bench.context.new_stream().map_err(told)?;
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for (name, expected) in CALLS {
        let things = things(session)?;
        let mut running = bench.start(&stream, |launch| _ = launch.timeout(RUN)).map_err(told)?;
        thread::sleep(Duration::from_millis(5));
        let context = Arc::clone(&bench.context);
        let (word, beside) = (things.device, things.stream.expose_provenance());
        // Two others, since a copy that waits would keep a word behind it waiting.
        let others = [false, true].map(|is_word| {
            let context = Arc::clone(&context);
            thread::spawn(move || {
                context.bind_to_thread().map_err(told)?;
                thread::sleep(Duration::from_millis(15));
                let stream = ptr::with_exposed_provenance_mut(beside);
                let since = Instant::now();
                // SAFETY: word and stream are alive; pageable memory is read before the copy returns.
                let result = unsafe {
                    if is_word {
                        sys::cuStreamWriteValue32_v2(stream, word + 64, 1, 0)
                    } else {
                        sys::cuMemcpyHtoDAsync_v2(word + 128, [1_u8; 4].as_ptr().cast(), 4, stream)
                    }
                };
                check("another thread", result)?;
                Ok::<_, String>(since.elapsed())
            })
        });
        let since = Instant::now();
        check(name, call(name, &things))?;
        let took = since.elapsed();
        let mut times = vec![took];
        for other in others {
            times.push(other.join().map_err(|_| "a thread panicked")??);
        }
        let _ = running.wait().map_err(told)?;
        let found = [times[0] > PROMPT, times[1] > PROMPT, times[2] > PROMPT];
        if found != *expected {
            wrong.push(format!("{name}: it waits, holds copies, holds words: {found:?}, not {expected:?}"));
        }
        let micros = |time: Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
        rows.push(
            json!({ "call": name, "call_us": micros(times[0]), "copy_beside_us": micros(times[1]), "word_beside_us": micros(times[2]) }),
        );
    }
    if wrong.is_empty() { Ok(Report::of(rows)) } else { Err(wrong.join("; ")) }
}
