//! What C calls. Pointers are checked for null, sizes for sense, and nothing unwinds.
//!
//! # Safety
//! Of every function here: a pointer is null or leads to what the header says, for as long as the call lasts; a handle of the driver's is alive.

use crate::guarding::{self, GUARDS, MODULES, Watched};
use crate::layout::{self, API_VERSION, About, Id, Limits, Outcome, RewriteOptions};
use crate::rewriting::{self, REWRITTEN, Rewritten, Wishes};
use crate::status::{self, Failure, Status, answer};
use cuinstr::options::Pass;
use cuinstr_runtime::guard::{self, Attached, Handle};
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

pub(crate) fn null(what: &str) -> Failure {
    Failure::new(Status::BadArgument, format!("`{what}` is null"))
}

/// A struct of the caller's, which may be shorter than ours: what it lacks is zero.
///
/// # Safety
/// `given` leads to a struct that begins with its size in bytes.
unsafe fn sized<T: Copy>(given: *const T, default: T, what: &str) -> Result<T, Failure> {
    // SAFETY: every struct of the header begins with this word.
    let size = unsafe { given.cast::<u32>().read_unaligned() } as usize;
    if size < size_of::<u32>() || size > 4096 {
        return Err(Failure::new(Status::BadArgument, format!("{what}.size is {size}: begin with the struct's _INIT")));
    }
    let mut taken = default;
    // SAFETY: the caller's struct has `size` bytes, ours has as many as a `T`, all of which are plain numbers and pointers.
    unsafe { ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut taken).cast::<u8>(), size.min(size_of::<T>())) };
    Ok(taken)
}

/// # Safety
/// The text ends with a zero.
pub(crate) unsafe fn utf8(text: *const c_char, what: &str) -> Result<Option<String>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| Failure::new(Status::BadArgument, format!("`{what}` is not UTF-8")))?;
    Ok(Some(text.to_owned()))
}

/// # Safety
/// `place` leads to room for a `T`, or is null.
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's word.
    unsafe { place.write(value) };
    Ok(())
}

/// `CUINSTR_API_VERSION` of this library.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_api_version() -> u32 {
    API_VERSION
}

/// Its release.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_release_name() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Why this thread's last call did not do what was asked.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_message() -> *const c_char {
    status::message()
}

/// A status by its name.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_status_name(status: i32) -> *const c_char {
    let known = Status::ALL.iter().find(|(known, _)| *known as i32 == status);
    known.map_or(c"unknown status".as_ptr(), |(_, name)| name.as_ptr())
}

/// Rewrites a source.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_rewrite(source: *const c_char, length: usize, options: *const RewriteOptions, rewritten: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { rewrite(Pass::Source, source, length, options, rewritten) }
}

/// Puts polls into PTX.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_rewrite_ptx(ptx: *const c_char, length: usize, options: *const RewriteOptions, rewritten: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { rewrite(Pass::Ptx, ptx, length, options, rewritten) }
}

/// Rewrites source or PTX.
///
/// # Safety
/// As the module says.
unsafe fn rewrite(pass: Pass, source: *const c_char, length: usize, options: *const RewriteOptions, rewritten: *mut Id) -> i32 {
    answer(|| {
        if rewritten.is_null() {
            return Err(null("rewritten"));
        }
        if source.is_null() {
            return Err(null(if pass == Pass::Ptx { "ptx" } else { "source" }));
        }
        // SAFETY: the caller's source has `length` bytes.
        let source = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), length) };
        let mut wishes = Wishes::default();
        if !options.is_null() {
            let default = RewriteOptions {
                size: 0,
                polls_each: 0,
                path: ptr::null(),
                timeout_ns: 0,
                budget_cycles: 0,
                fuel: 0,
                strict: 0,
                reserved: 0,
                loop_macros: ptr::null(),
                device_macros: ptr::null(),
                leave_alone: ptr::null(),
                barrier_marks: ptr::null(),
                pausable: 0,
            };
            // SAFETY: the caller's struct, and the texts that it leads to.
            let (given, path) = unsafe {
                let given = sized(options, default, "cuinstr_rewrite_options")?;
                wishes.loop_macros = rewriting::names(utf8(given.loop_macros, "loop_macros")?);
                wishes.device_macros = rewriting::device_macros(utf8(given.device_macros, "device_macros")?)?;
                wishes.leave_alone = rewriting::names(utf8(given.leave_alone, "leave_alone")?);
                wishes.barrier_marks = rewriting::barrier_marks(utf8(given.barrier_marks, "barrier_marks")?)?;
                (given, utf8(given.path, "path")?)
            };
            let some = |value: u64| (value != 0).then_some(value);
            wishes.path = path;
            (wishes.limits.timeout_ns, wishes.limits.budget_cycles) = (some(given.timeout_ns), some(given.budget_cycles));
            wishes.limits.fuel = some(given.fuel);
            (wishes.polls_each, wishes.strict, wishes.pausable) = (given.polls_each != 0, given.strict != 0, given.pausable != 0);
        }
        let id = rewriting::rewrite(pass, source, wishes)?;
        // SAFETY: the caller's place.
        unsafe { put(rewritten, Id(id), "rewritten") }
    })
}

/// Gives one of its texts.
///
/// # Safety
/// As the module says.
unsafe fn text_of(rewritten: Id, text: *mut *const c_char, length: *mut usize, which: fn(&Rewritten) -> &CString) -> i32 {
    answer(|| {
        let kept = REWRITTEN.get(rewritten.0)?;
        let found = which(&kept);
        // SAFETY: the caller's places. The text lives until the handle is released.
        unsafe {
            if !length.is_null() {
                length.write(found.as_bytes().len());
            }
            put(text, found.as_ptr(), "text")
        }
    })
}

/// The rewritten source.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_rewritten_text(rewritten: Id, text: *mut *const c_char, length: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { text_of(rewritten, text, length, |kept| &kept.text) }
}

/// Its sites.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_rewritten_sites(rewritten: Id, json: *mut *const c_char, length: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { text_of(rewritten, json, length, |kept| &kept.sites) }
}

/// What the rewriter has to say.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_rewritten_diagnostics(rewritten: Id, json_lines: *mut *const c_char, length: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { text_of(rewritten, json_lines, length, |kept| &kept.diagnostics) }
}

/// Lets go of it.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_rewritten_release(rewritten: Id) -> i32 {
    answer(|| REWRITTEN.release(rewritten.0).map(drop))
}

/// Attaches to a module by any handle.
///
/// # Safety
/// As the module says.
unsafe fn attach(handle: Handle, about: *const About, module: *mut Id) -> i32 {
    answer(|| {
        if module.is_null() {
            return Err(null("module"));
        }
        let mut known = guard::About::default();
        if !about.is_null() {
            let default = About { size: 0, reserved: 0, image: ptr::null(), image_size: 0, kernel: ptr::null(), folder: ptr::null() };
            // SAFETY: the caller's struct, and what it leads to.
            unsafe {
                let given = sized(about, default, "cuinstr_about")?;
                if !given.image.is_null() {
                    known.image = Some(std::slice::from_raw_parts(given.image.cast::<u8>(), given.image_size).to_vec());
                }
                known.kernel = utf8(given.kernel, "kernel")?;
                known.folder = utf8(given.folder, "folder")?.map(PathBuf::from);
            }
        }
        // SAFETY: the caller's word for the driver's handle.
        let attached = unsafe { Attached::new(handle, &known) }?;
        // SAFETY: the caller's place.
        unsafe { put(module, Id(MODULES.keep(attached)), "module") }
    })
}

/// Attaches to a `CUmodule`.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_attach_module(cu_module: *mut c_void, about: *const About, module: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { attach(Handle::Module(cu_module.expose_provenance()), about, module) }
}

/// Attaches to a `CUlibrary`.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_attach_library(cu_library: *mut c_void, about: *const About, module: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { attach(Handle::Library(cu_library.expose_provenance()), about, module) }
}

/// Attaches to the module of a `CUfunction`.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_attach_function(cu_function: *mut c_void, about: *const About, module: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { attach(Handle::Function(cu_function.expose_provenance()), about, module) }
}

/// Attaches to the library of a `CUkernel`.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_attach_kernel(cu_kernel: *mut c_void, about: *const About, module: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { attach(Handle::Kernel(cu_kernel.expose_provenance()), about, module) }
}

/// Attaches to the module whose control block lies there.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_attach_control(address: u64, about: *const About, module: *mut Id) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { attach(Handle::Control(address), about, module) }
}

/// Lets go of a module.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_detach(module: Id) -> i32 {
    answer(|| MODULES.release(module.0).map(drop))
}

/// Arms a module for the next launch on a stream.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_arm(module: Id, stream: *mut c_void, limits: *const Limits, guard: *mut Id) -> i32 {
    answer(|| {
        if guard.is_null() {
            return Err(null("guard"));
        }
        if limits.is_null() {
            return Err(null("limits"));
        }
        let default = Limits {
            size: 0,
            flags: 0,
            timeout_ns: 0,
            fuel: 0,
            budget_cycles: 0,
            grace_ns: 0,
            begin_within_ns: 0,
            grid: [0; 3],
            block: [0; 3],
        };
        // SAFETY: the caller's struct.
        let given = unsafe { sized(limits, default, "cuinstr_limits") }?;
        let module = MODULES.get(module.0)?;
        let (stream, limits) = (stream.expose_provenance(), guarding::limits(&given)?);
        let armed = if given.flags & layout::PAUSABLE == 0 {
            // SAFETY: the caller's word for the stream and the module.
            unsafe { module.arm(stream, &limits) }?
        } else {
            let grid = if given.grid == [0; 3] { [0; 3] } else { given.grid.map(|extent| extent.max(1)) };
            // SAFETY: as above.
            unsafe { module.arm_pausable(stream, &limits, grid) }?
        };
        // SAFETY: the caller's place.
        unsafe { put(guard, Id(GUARDS.keep(Watched::new(armed))), "guard") }
    })
}

/// The launch was made.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_launched(guard: Id) -> i32 {
    answer(|| Ok(GUARDS.get(guard.0)?.guard.launched()?))
}

/// Waits for the outcome.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_wait(guard: Id, limit_ns: u64, outcome: *mut Outcome) -> i32 {
    answer(|| {
        let room = if outcome.is_null() {
            0
        } else {
            // SAFETY: every struct of the header begins with this word.
            let size = unsafe { outcome.cast::<u32>().read_unaligned() } as usize;
            if size < size_of::<u32>() || size > 4096 {
                let message = format!("cuinstr_outcome.size is {size}: begin with CUINSTR_OUTCOME_INIT");
                return Err(Failure::new(Status::BadArgument, message));
            }
            size
        };
        GUARDS.get(guard.0)?.wait(Duration::from_nanos(limit_ns), |told| {
            let told = layout::Outcome { size: room as u32, ..*told };
            let bytes = room.min(size_of::<layout::Outcome>());
            // SAFETY: the caller's struct has `room` bytes, ours at least as many as are copied.
            unsafe { ptr::copy_nonoverlapping((&raw const told).cast::<u8>(), outcome.cast::<u8>(), bytes) };
        })
    })
}

/// Asks for the outcome.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_poll(guard: Id, outcome: *mut Outcome) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { cuinstr_wait(guard, 0, outcome) }
}

/// Tells the launch to stop.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_cancel(guard: Id) -> i32 {
    answer(|| Ok(GUARDS.get(guard.0)?.guard.cancel()?))
}

/// Pauses the launch.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_pause(guard: Id, within_ns: u64) -> i32 {
    answer(|| Ok(GUARDS.get(guard.0)?.guard.pause(Duration::from_nanos(within_ns)).map(drop)?))
}

/// Arms the next part of a paused launch.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_resume(guard: Id, stream: *mut c_void) -> i32 {
    // SAFETY: the caller's word for the stream.
    answer(|| Ok(unsafe { GUARDS.get(guard.0)?.guard.resume(stream.expose_provenance()) }?))
}

/// Gives the guard back.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_release(guard: Id) -> i32 {
    answer(|| {
        let watched = GUARDS.release(guard.0)?;
        // A thread that waits for it still holds it; then it is that thread that gives it back, in a moment.
        let _ = watched.guard.cancel();
        Ok(())
    })
}
