//! Libraries that were loaded with polls: does the driver compile them, and which stand in for those that it refuses?
//!
//! The driver takes a library at once. It compiles the library later, for each context in which something of it is
//! needed. Compiling each library when it is loaded would not do: there may be no context yet, and a program has
//! thousands of kernels that it never runs. So the driver is asked at the first look-up, before the program gets
//! anything: for the address of the control block, which it can't have without compiling. If it refuses, the program's
//! own code is loaded beside, and answers this and each later look-up. So no program writes to a variable of one library
//! and launches a kernel of the other.
//!
//! Without a context the driver can't be asked, but gives kernels. Such a kernel is *early*. When it is used, the driver
//! is asked, and a kernel of the same name may stand in for it.

use crate::image::Image;
use crate::lookup::call;
use crate::replace::refusal;
use crate::{driver, half, handles};
use cuinstr_abi::control::CONTROL_SYMBOL;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

type Handle = *mut c_void;

/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: u32 = 500;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;
/// Options of the compiler whose values are addresses, or belong to one: buffers for messages, and lists of names.
/// The program need not keep these.
const BY_ADDRESS: [c_int; 11] = [3, 4, 5, 6, 17, 18, 19, 25, 26, 27, 28];

/// Whether the driver says that it can't compile code, or has no compiler.
pub(crate) fn is_refusal(code: u32) -> bool {
    matches!(code, 200 | 209 | 218 | 221..=223 | 300 | 302 | 303)
}

/// Has the driver compile a module or library that was loaded with polls, and gives its answer. It has no address of the
/// control block without compiling. Code in which nothing polls has no such block. `ask` is the function that gives
/// addresses.
pub(crate) fn compile(ask: &CStr, of: Handle) -> u32 {
    let control = CString::new(CONTROL_SYMBOL).unwrap_or_default();
    let (mut address, mut bytes) = (0_u64, 0_usize);
    let ask = driver::exported(ask);
    let answer = call!(ask, (&raw mut address => *mut u64, &raw mut bytes => *mut usize, of => Handle, control.as_ptr() => *const c_char));
    answer.map_or(driver::NOT_INITIALIZED, i32::cast_unsigned)
}

/// Options of a call that loads a library.
#[derive(Default)]
pub(crate) struct Options {
    names: Vec<c_int>,
    values: Vec<usize>,
}

impl Options {
    pub(crate) fn new(given: impl Iterator<Item = (c_int, usize)>) -> Self {
        let (names, values) = given.unzip();
        Self { names, values }
    }

    fn parts(&mut self) -> (Handle, Handle, u32) {
        (self.names.as_mut_ptr().cast(), self.values.as_mut_ptr().cast(), u32::try_from(self.names.len()).unwrap_or(0))
    }
}

/// What the program has asked to load: it may free that once it is loaded.
pub(crate) struct Original {
    /// Words, since the driver reads some of them.
    image: Vec<u64>,
    compiler: Options,
    settings: Options,
}

impl Original {
    pub(crate) fn new(image: &Image<'_>, mut compiler: Options, settings: Options) -> Self {
        let mut bytes = image.bytes().to_vec();
        // The end of a text.
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let image = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect();
        let kept = compiler.names.into_iter().zip(compiler.values).filter(|(name, _)| !BY_ADDRESS.contains(name));
        compiler = Options::new(kept);
        Self { image, compiler, settings }
    }

    /// Loads it, for all contexts.
    fn load(&mut self, library: &mut Handle) -> u32 {
        let ((names, values, count), (settings, setting_values, setting_count)) = (self.compiler.parts(), self.settings.parts());
        let code = driver::ask!(c"cuLibraryLoadData" (
            library => *mut Handle, self.image.as_ptr().cast() => *const c_void, names => Handle, values => Handle, count => u32,
            settings => Handle, setting_values => Handle, setting_count => u32
        ));
        code.unwrap_or(driver::NOT_INITIALIZED)
    }
}

enum State {
    /// The driver has not compiled it, and the program has nothing of it but early kernels.
    Open(Original),
    /// The driver has compiled it. Whether it was said that the driver refuses it all the same, for another GPU.
    Taken(bool),
    /// The driver refuses it, and this library stands in for it. The driver may have been told that the code stays.
    Plain(usize, #[expect(dead_code, reason = "the driver may read it")] Original),
}

impl State {
    fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// The library to ask in place of this one.
    fn current(&self, library: Handle) -> Handle {
        if let Self::Plain(plain, _) = self { ptr::with_exposed_provenance_mut(*plain) } else { library }
    }

    /// Has the driver compile an open one.
    fn settle(&mut self, library: Handle) {
        match half::outside_of_pauses(|| compile(c"cuLibraryGetGlobal", library)) {
            0 | NOT_FOUND => *self = Self::Taken(false),
            code if is_refusal(code) => self.exchange(library, code),
            _ => {}
        }
    }

    /// The driver has refused an open one. The program's own code stands in for it, if that can be.
    fn exchange(&mut self, library: Handle, code: u32) {
        if let Self::Open(mut original) = std::mem::replace(self, Self::Taken(false)) {
            let mut plain: Handle = ptr::null_mut();
            if half::outside_of_pauses(|| original.load(&mut plain)) == 0 {
                handles::note(library, Some(refusal(code)));
                *self = Self::Plain(plain.expose_provenance(), original);
            }
        }
    }

    /// Says once that the driver refuses a library of which the program has something already.
    fn tell(&mut self, code: u32) {
        if let Self::Taken(is_told @ false) = self {
            *is_told = true;
            eprintln!(
                "cuinstr: warning: the driver refuses a library with polls (error {code}) that the program already uses: this call fails\n  \
                 = help: if the program uses several GPUs, give it one (`cuinstr run --gpu auto`); else run it without `cuinstr run`"
            );
        }
    }
}

type Entry = Arc<Mutex<State>>;

/// The libraries that were loaded with polls.
fn entries() -> MutexGuard<'static, HashMap<usize, Entry>> {
    static ENTRIES: OnceLock<Mutex<HashMap<usize, Entry>>> = OnceLock::new();
    ENTRIES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock(entry: &Entry) -> MutexGuard<'_, State> {
    entry.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls the driver while a library is locked. What a driver calls by its own exported names goes through then. What
/// loads code is no part of a graph that a stream is recording.
fn inside<T>(does: impl FnOnce() -> T) -> T {
    let exchange = |mut mode: c_int| {
        driver::ask!(c"cuThreadExchangeStreamCaptureMode" (&raw mut mode => *mut c_int));
        mode
    };
    IS_INSIDE.set(true);
    let mode = exchange(RELAXED);
    let done = does();
    exchange(mode);
    IS_INSIDE.set(false);
    done
}

/// A library that was loaded with polls; nothing while this thread has one locked.
fn entry(library: usize) -> Option<Entry> {
    entries().get(&library).filter(|_| !IS_INSIDE.get()).cloned()
}

/// A library was loaded with polls.
pub(crate) fn begin(library: Handle, original: Original) {
    entries().insert(library.addr(), Arc::new(Mutex::new(State::Open(original))));
}

/// A library is about to be unloaded: gives the one that stands in for it.
pub(crate) fn end(library: Handle) -> Option<Handle> {
    let entry = entries().remove(&library.addr())?;
    let current = lock(&entry).current(library);
    (current != library).then_some(current)
}

/// Calls the driver for something of a library: of the one that stands in for it, if the driver refuses it. `settles` if
/// the program then has something that can't be exchanged. Also tells whether the library is still open.
fn ask(library: Handle, settles: bool, mut call: impl FnMut(Handle) -> u32) -> (u32, bool) {
    let Some(entry) = entry(library.addr()) else { return (call(library), false) };
    let mut state = lock(&entry);
    if state.is_open() {
        inside(|| state.settle(library));
    }
    if state.is_open() {
        // Under the lock: another thread must not exchange it meanwhile.
        let result = inside(|| call(library));
        if result == 0 && settles {
            *state = State::Taken(false);
        }
        if !is_refusal(result) {
            return (result, state.is_open());
        }
        inside(|| state.exchange(library, result));
    }
    let current = state.current(library);
    drop(state);
    let result = call(current);
    if is_refusal(result) {
        lock(&entry).tell(result);
    }
    (result, false)
}

/// Looks up a variable or a module.
pub(crate) fn find(library: Handle, call: impl FnMut(Handle) -> u32) -> u32 {
    ask(library, true, call).0
}

/// Asks what gives the program nothing of the library.
pub(crate) fn count(library: Handle, call: impl FnMut(Handle) -> u32) -> u32 {
    ask(library, false, call).0
}

/// Looks up kernels.
pub(crate) fn find_kernels(library: Handle, kernels: *const Handle, count: usize, call: impl FnMut(Handle) -> u32) -> u32 {
    let (result, is_early) = ask(library, false, call);
    if result == 0 {
        handles::note_kernels(kernels, count, library, is_early);
    }
    result
}

/// Calls the driver with a kernel, or with the one that stands in for it.
pub(crate) fn with_kernel(kernel: Handle, call: impl FnOnce(Handle) -> u32) -> u32 {
    let current = handles::library_of_early(kernel.addr()).map_or(kernel, |library| counterpart(kernel, library));
    let result = call(current);
    if is_refusal(result) {
        handles::library_of(kernel.addr()).and_then(entry).inspect(|entry| lock(entry).tell(result));
    }
    result
}

/// The kernel to use in place of an early one.
fn counterpart(kernel: Handle, library: usize) -> Handle {
    let library: Handle = ptr::without_provenance_mut(library);
    let mut found = kernel;
    let mut name: *const c_char = ptr::null();
    let find = |at: Handle| {
        if at != library && driver::ask!(c"cuKernelGetName" (&raw mut name => *mut *const c_char, kernel => Handle)) == Some(0) {
            driver::ask!(c"cuLibraryGetKernel" (&raw mut found => *mut Handle, at => Handle, name => *const c_char));
        }
        0
    };
    ask(library, false, find);
    if found != kernel {
        handles::note_kernels(&raw const found, 1, library, false);
    }
    found
}
