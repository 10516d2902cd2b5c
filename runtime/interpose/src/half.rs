//! The host half, which arms and times launches (`instrument/src/launcher/host_runtime`), and what it asks of this host.

use crate::{control, driver, handles, replace, session, sites};
use cuinstr_abi::sockets::{Pause, Running, State};
use cuinstr_image::Kernel;
use serde_json::json;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

unsafe extern "C" {
    fn cuinstr_launch(
        what: *const c_void,
        stream: *mut c_void,
        shape: *const Shape,
        run: extern "C" fn(*mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn cuinstr_enter_driver();
    fn cuinstr_enter_copy();
    fn cuinstr_leave_driver();
    fn cuinstr_forget(module: *mut c_void);
    fn cuinstr_end();
    fn cuinstr_stop_all();
    fn cuinstr_hold(how: c_int);
    fn cuinstr_is_held() -> c_int;
    fn cuinstr_next_socket() -> u32;
    fn cuinstr_launches_graph();
    fn cuinstr_leaves() -> c_int;
    fn cuinstr_running(tell: extern "C" fn(*mut c_void, *const Seen), data: *mut c_void);
}

/// `cuinstr_shape` of `half/names.hpp`: a launch, as far as the driver's function says. A configuration holds its extents and more.
#[repr(C)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) is_cooperative: c_int,
    pub(crate) arguments: *mut c_void,
    pub(crate) extra: *mut c_void,
    pub(crate) configuration: *const c_void,
}

/// `cuinstr_seen_launch` of `half/names.hpp`.
#[repr(C)]
struct Seen {
    name: *const c_char,
    runs_on: *const c_char,
    ran_ns: u64,
    timeout_ns: u64,
    is_polled: c_int,
    pause: c_int,
    done: u32,
    left: u32,
}

/// How launches are held.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hold {
    Nothing,
    /// Later launches wait.
    Later,
    /// Later launches wait, and those that run pause at block boundaries, if they can.
    Blocks,
}

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Launches a function or a kernel by `call`, with what belongs before and after it.
pub(crate) fn launch(what: *const c_void, stream: *mut c_void, shape: &Shape, mut call: impl FnMut() -> u32) -> u32 {
    extern "C" fn run<F: FnMut() -> u32>(data: *mut c_void) -> c_int {
        // SAFETY: `launch` gave the address of its own `call`, which lives until it returns.
        unsafe { (*data.cast::<F>())() }.cast_signed()
    }
    fn runner<F: FnMut() -> u32>(_: &F) -> extern "C" fn(*mut c_void) -> c_int {
        run::<F>
    }
    // A driver that launches by way of its own exported functions is not armed twice.
    if IS_INSIDE.replace(true) {
        return call();
    }
    // SAFETY: the half calls `run` with `data` while this waits for it.
    let result = unsafe { cuinstr_launch(what, stream, shape, runner(&call), ptr::from_mut(&mut call).cast()) };
    IS_INSIDE.set(false);
    result.cast_unsigned()
}

/// A module is about to be unloaded.
pub(crate) fn forget(module: *mut c_void) {
    // SAFETY: the handle is only compared.
    unsafe { cuinstr_forget(module) }
}

/// Calls the driver for what may wait for the GPU, or not come back beside a held stream. A pause comes before or after it.
pub(crate) fn outside_of_pauses(call: impl FnOnce() -> u32) -> u32 {
    // SAFETY: the half counts threads in a word of its own.
    unsafe { cuinstr_enter_driver() };
    let result = call();
    // SAFETY: as above.
    unsafe { cuinstr_leave_driver() };
    result
}

/// Does a copy that the caller waits for. In the legacy default stream the driver keeps all others out meanwhile.
pub(crate) fn copy(call: impl FnOnce() -> u32) -> u32 {
    // SAFETY: the half counts threads in a word of its own.
    unsafe { cuinstr_enter_copy() };
    let result = call();
    // SAFETY: as above.
    unsafe { cuinstr_leave_driver() };
    result
}

/// The launches that run or are paused.
pub(crate) fn running() -> Vec<Running> {
    extern "C" fn tell(data: *mut c_void, seen: *const Seen) {
        // SAFETY: the half gives back the address that it was given below, and what it has just filled in.
        let (launches, seen) = unsafe { (&mut *data.cast::<Vec<Running>>(), &*seen) };
        // SAFETY: texts of the half end with a zero.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        let pause = match seen.pause {
            1 => Some(Pause::Asked),
            2 => Some(Pause::Paused { done: seen.done, left: seen.left }),
            3 => Some(Pause::RunsOn { why: text(seen.runs_on) }),
            _ => None,
        };
        let (ran_ns, timeout_ns) = (seen.ran_ns, seen.timeout_ns);
        launches.push(Running { kernel: text(seen.name), polled: seen.is_polled != 0, ran_ns, timeout_ns, pause });
    }
    let mut launches: Vec<Running> = Vec::new();
    // SAFETY: the list lives through the call.
    unsafe { cuinstr_running(tell, ptr::from_mut(&mut launches).cast()) };
    launches
}

/// Has all launches stop that run and poll.
pub(crate) fn stop_all() {
    // SAFETY: the half looks at words of its own.
    unsafe { cuinstr_stop_all() };
}

/// Has launches wait from now on, or go on.
pub(crate) fn hold(how: Hold) {
    // SAFETY: the half writes a word of its own.
    unsafe { cuinstr_hold(how as c_int) };
}

/// What is true of this process as a whole.
pub(crate) fn state() -> State {
    // SAFETY: the half reads words of its own.
    unsafe { State { paused: cuinstr_is_held() != 0, leaves: cuinstr_leaves() != 0 } }
}

/// A number for a socket of this process, which no other half gets.
pub(crate) fn next_socket() -> u32 {
    // SAFETY: the half has words of its own.
    unsafe { cuinstr_next_socket() }
}

/// A graph is about to be launched: it waits as a launch does while the process is paused.
pub(crate) fn launches_graph() {
    // SAFETY: the half has words of its own.
    unsafe { cuinstr_launches_graph() };
}

/// At the process's end.
extern "C" fn end() {
    // SAFETY: the half looks at its own memory only.
    unsafe { cuinstr_end() }
    control::end();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// A real function of the driver.
#[unsafe(no_mangle)]
extern "C" fn cuinstr_driver_function(name: *const c_char) -> *mut c_void {
    // SAFETY: the half gives names that end with a zero.
    driver::exported(unsafe { CStr::from_ptr(name) })
}

/// Whether a handle is a kernel of a library rather than a function of a module.
#[unsafe(no_mangle)]
extern "C" fn cuinstr_is_kernel(handle: *const c_void) -> c_int {
    c_int::from(handles::is_kernel(handle.addr()))
}

/// A kernel as declared, as `__cxa_demangle` gives it.
#[unsafe(no_mangle)]
extern "C" fn cuinstr_signature(mangled: *const c_char, _: *mut c_char, _: *mut usize, status: *mut c_int) -> *mut c_char {
    // SAFETY: the half gives a name that ends with a zero, and a place for the status.
    let symbol = unsafe {
        *status = 0;
        CStr::from_ptr(mangled)
    };
    CString::new(Kernel::new(&symbol.to_string_lossy()).signature).map_or(ptr::null_mut(), CString::into_raw)
}

/// `cuinstr_site` of `half/names.hpp`.
#[repr(C)]
struct Found {
    line: u32,
    column: u32,
    kind_length: u32,
    function_length: u32,
    file_length: u32,
    kind: *const u8,
    function: *const u8,
    file: *const u8,
}

#[unsafe(no_mangle)]
extern "C" fn cuinstr_find_site(id: u64, found: *mut Found) -> c_int {
    let Some(spot) = sites::find(id) else { return 0 };
    let length = |text: &str| text.len() as u32;
    let told = Found {
        line: spot.line,
        column: spot.column,
        kind_length: length(spot.kind),
        function_length: length(spot.function),
        file_length: length(spot.file),
        kind: spot.kind.as_ptr(),
        function: spot.function.as_ptr(),
        file: spot.file.as_ptr(),
    };
    // SAFETY: the half gives a place for it.
    unsafe { found.write(told) };
    1
}

/// A kernel is launched for the first time: notes it, and gives the place where its launches are counted.
#[unsafe(no_mangle)]
extern "C" fn cuinstr_met(met: *const Met) -> *mut u64 {
    // SAFETY: the half gives what it has just filled in; texts end with a zero.
    let (met, symbol, name) = unsafe { (&*met, CStr::from_ptr((*met).symbol), CStr::from_ptr((*met).name)) };
    let is_polled = met.is_polled != 0;
    let why = (!is_polled).then(|| {
        handles::why(met.key.addr(), met.module.addr()).unwrap_or_else(|| {
            // SAFETY: as above; the reason is null or ends with a zero.
            let reason = (!met.reason.is_null()).then(|| unsafe { CStr::from_ptr(met.reason) });
            reason.map_or_else(String::new, |reason| format!("its module {}", reason.to_string_lossy()))
        })
    });
    let is_short = is_polled && replace::has_fuel();
    let no_fuel = is_short.then(|| handles::why(met.key.addr(), met.module.addr())).flatten().filter(|why| why != replace::HAS_POLLS);
    handles::note_module(met.key.addr(), met.module);
    session::met(json!({
        "kernel": name.to_string_lossy(),
        "symbol": symbol.to_string_lossy(),
        "polled": is_polled,
        "why": why,
        "no_fuel": no_fuel,
        "timeout_ns": met.timeout_ns,
        "limit": usize::try_from(met.limit).ok(),
    }))
}

/// `cuinstr_met_kernel` of `half/names.hpp`.
#[repr(C)]
struct Met {
    key: *const c_void,
    module: *mut c_void,
    symbol: *const c_char,
    name: *const c_char,
    reason: *const c_char,
    timeout_ns: u64,
    is_polled: c_int,
    limit: c_int,
}
