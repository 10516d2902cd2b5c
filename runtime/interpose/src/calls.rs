//! The driver's functions as the program finds them.

#![allow(non_snake_case)]

use crate::half::Shape;
use crate::handles::{self, Part, written};
use crate::image::Image;
use crate::library::{self, Options, Original};
use crate::replace::{self, Replaced};
use crate::{driver, entry, half, session};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

type Handle = *mut c_void;

/// Inputs of a linker: `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_int = 1;
/// Offset of the stream in `CUlaunchConfig`.
const CONFIG_STREAM: usize = 32;
/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: Handle = ptr::without_provenance_mut(2);

/// Whether the driver knows the host memory at this address. The kind of what it does not know is an error.
fn is_pinned(memory: *mut c_void) -> bool {
    const MEMORY_TYPE: c_int = 2;
    let mut kind = 0_u32;
    driver::ask!(c"cuPointerGetAttribute" (&raw mut kind => *mut u32, MEMORY_TYPE => c_int, memory => *mut c_void)) == Some(0)
}

entry::entries! {
    /// Asks the driver for a function.
    fn cuGetProcAddress = "cuGetProcAddress", 11030, false, |real| (symbol: *const c_char, place: *mut Handle, version: c_int, flags: u64) {
        // SAFETY: the caller's own words.
        let result = unsafe { real(symbol, place, version, flags) };
        substitute(result, place)
    }
    /// Asks the driver for a function, and why there is none.
    fn cuGetProcAddress_v2 = "cuGetProcAddress", 12000, false, |real| (
        symbol: *const c_char, place: *mut Handle, version: c_int, flags: u64, status: *mut c_void,
    ) {
        // SAFETY: the caller's own words.
        let result = unsafe { real(symbol, place, version, flags, status) };
        substitute(result, place)
    }

    /// Loads a file.
    fn cuModuleLoad = "cuModuleLoad", 2000, false, |real| (module: *mut Handle, path: *const c_char) {
        let replaced = file(path, true);
        let load = |polled: replace::Polled| driver::ask!(c"cuModuleLoadData" (module => *mut Handle, polled.text.as_ptr().cast() => *const c_void)).unwrap_or(driver::NOT_INITIALIZED);
        // SAFETY: the caller's own words.
        loaded(module, replaced, |polled| compiled(module, load(polled)), || unsafe { real(module, path) })
    }
    /// Loads code.
    fn cuModuleLoadData = "cuModuleLoadData", 2000, false, |real| (module: *mut Handle, image: *const c_void) {
        // SAFETY: the caller's own words, with other code of the same meaning.
        let load = |image: *const c_void| unsafe { real(module, image) };
        loaded(module, data(image, true), |polled| compiled(module, load(polled.text.as_ptr().cast())), || load(image))
    }
    /// Loads code, with options.
    fn cuModuleLoadDataEx = "cuModuleLoadDataEx", 2010, false, |real| (
        module: *mut Handle, image: *const c_void, count: u32, options: *mut c_void, values: *mut c_void,
    ) {
        // SAFETY: the caller's own words, with other code of the same meaning.
        let load = |image: *const c_void| unsafe { real(module, image, count, options, values) };
        loaded(module, data(image, true), |polled| compiled(module, load(polled.text.as_ptr().cast())), || load(image))
    }
    /// Loads a fat binary.
    fn cuModuleLoadFatBinary = "cuModuleLoadFatBinary", 2000, false, |real| (module: *mut Handle, image: *const c_void) {
        let load = |polled: replace::Polled| driver::ask!(c"cuModuleLoadData" (module => *mut Handle, polled.text.as_ptr().cast() => *const c_void)).unwrap_or(driver::NOT_INITIALIZED);
        // SAFETY: the caller's own words.
        loaded(module, data(image, true), |polled| compiled(module, load(polled)), || unsafe { real(module, image) })
    }
    /// Unloads a module.
    fn cuModuleUnload = "cuModuleUnload", 2000, false, |real| (module: Handle) {
        half::outside_of_pauses(|| {
            handles::forget_module(module);
            // SAFETY: the caller's own words.
            unsafe { real(module) }
        })
    }

    /// Loads code for all contexts.
    fn cuLibraryLoadData = "cuLibraryLoadData", 12000, false, |real| (
        library: *mut Handle, image: *const c_void, options: *mut c_int, values: *mut Handle, count: u32, settings: *mut c_int,
        setting_values: *mut Handle, setting_count: u32,
    ) {
        // SAFETY: the caller's own words, with other code of the same meaning that is never freed.
        let load = |image: *const c_void| unsafe { real(library, image, options, values, count, settings, setting_values, setting_count) };
        let polled = |polled: replace::Polled| {
            // SAFETY: the caller's own words.
            let code = unsafe { Image::at(image) };
            let original = code.map(|code| Original::new(&code, given(options, values, count), given(settings, setting_values, setting_count)));
            begun(library, original, load(polled.text.as_ptr().cast()))
        };
        loaded(library, data(image, false), polled, || load(image))
    }
    /// Loads a file for all contexts.
    fn cuLibraryLoadFromFile = "cuLibraryLoadFromFile", 12000, false, |real| (
        library: *mut Handle, path: *const c_char, options: *mut c_int, values: *mut Handle, count: u32, settings: *mut c_int,
        setting_values: *mut Handle, setting_count: u32,
    ) {
        let load = |polled: replace::Polled| {
            let bytes = bytes_of(path).unwrap_or_default();
            let original = Image::of(&bytes)
                .map(|code| Original::new(&code, given(options, values, count), given(settings, setting_values, setting_count)));
            let code = driver::ask!(c"cuLibraryLoadData" (
                library => *mut Handle, polled.text.as_ptr().cast() => *const c_void, options => *mut c_int, values => *mut Handle, count => u32,
                settings => *mut c_int, setting_values => *mut Handle, setting_count => u32
            ));
            begun(library, original, code.unwrap_or(driver::NOT_INITIALIZED))
        };
        // SAFETY: the caller's own words.
        let plain = || unsafe { real(library, path, options, values, count, settings, setting_values, setting_count) };
        loaded(library, file(path, false), load, plain)
    }
    /// Unloads a library.
    fn cuLibraryUnload = "cuLibraryUnload", 12000, false, |real| (library: Handle) {
        half::outside_of_pauses(|| {
            handles::forget_library(library);
            if let Some(plain) = library::end(library) {
                // SAFETY: it was loaded for this library alone.
                unsafe { real(plain) };
            }
            // SAFETY: the caller's own words.
            unsafe { real(library) }
        })
    }
    /// Finds a kernel.
    fn cuLibraryGetKernel = "cuLibraryGetKernel", 12000, false, |real| (kernel: *mut Handle, library: Handle, name: *const c_char) {
        // SAFETY: the caller's own words.
        library::find_kernels(library, kernel, 1, |library| unsafe { real(kernel, library, name) })
    }
    /// Counts the kernels.
    fn cuLibraryGetKernelCount = "cuLibraryGetKernelCount", 12040, false, |real| (count: *mut u32, library: Handle) {
        // SAFETY: the caller's own words.
        library::count(library, |library| unsafe { real(count, library) })
    }
    /// Finds all kernels.
    fn cuLibraryEnumerateKernels = "cuLibraryEnumerateKernels", 12040, false, |real| (kernels: *mut Handle, count: u32, library: Handle) {
        // SAFETY: the caller's own words.
        library::find_kernels(library, kernels, count as usize, |library| unsafe { real(kernels, count, library) })
    }
    /// Finds the module of the current context.
    fn cuLibraryGetModule = "cuLibraryGetModule", 12000, false, |real| (module: *mut Handle, library: Handle) {
        // SAFETY: the caller's own words.
        let result = library::find(library, |library| unsafe { real(module, library) });
        note_part(result, module, Part::Module, Some(library.addr()));
        result
    }
    /// Finds a variable.
    fn cuLibraryGetGlobal = "cuLibraryGetGlobal", 12000, false, |real| (address: *mut u64, bytes: *mut usize, library: Handle, name: *const c_char) {
        // SAFETY: the caller's own words.
        library::find(library, |library| unsafe { real(address, bytes, library, name) })
    }
    /// Finds a managed variable.
    fn cuLibraryGetManaged = "cuLibraryGetManaged", 12000, false, |real| (address: *mut u64, bytes: *mut usize, library: Handle, name: *const c_char) {
        // SAFETY: the caller's own words.
        library::find(library, |library| unsafe { real(address, bytes, library, name) })
    }
    /// Finds a function that host and device can call.
    fn cuLibraryGetUnifiedFunction = "cuLibraryGetUnifiedFunction", 12000, false, |real| (function: *mut Handle, library: Handle, name: *const c_char) {
        // SAFETY: the caller's own words.
        library::find(library, |library| unsafe { real(function, library, name) })
    }
    /// Finds the function of a kernel in the current context.
    fn cuKernelGetFunction = "cuKernelGetFunction", 12000, false, |real| (function: *mut Handle, kernel: Handle) {
        // SAFETY: the caller's own words.
        let result = library::with_kernel(kernel, |kernel| unsafe { real(function, kernel) });
        note_part(result, function, Part::Function, handles::library_of(kernel.addr()));
        result
    }
    /// Finds the library of a kernel.
    fn cuKernelGetLibrary = "cuKernelGetLibrary", 12050, false, |real| (library: *mut Handle, kernel: Handle) {
        // SAFETY: the caller's own words.
        let result = unsafe { real(library, kernel) };
        // The program's own, though another one may stand in for it.
        if let Some(known) = handles::library_of(kernel.addr()).filter(|_| result == 0 && !library.is_null()) {
            // SAFETY: the driver has written its answer there.
            unsafe { *library = ptr::without_provenance_mut(known) };
        }
        result
    }
    /// Asks about a kernel.
    fn cuKernelGetAttribute = "cuKernelGetAttribute", 12000, false, |real| (value: *mut c_int, attribute: c_int, kernel: Handle, device: c_int) {
        // SAFETY: the caller's own words.
        library::with_kernel(kernel, |kernel| unsafe { real(value, attribute, kernel, device) })
    }
    /// Sets how a kernel is launched.
    fn cuKernelSetAttribute = "cuKernelSetAttribute", 12000, false, |real| (attribute: c_int, value: c_int, kernel: Handle, device: c_int) {
        // SAFETY: the caller's own words.
        library::with_kernel(kernel, |kernel| unsafe { real(attribute, value, kernel, device) })
    }

    /// Gives a linker an input, as CUDA 5.5 declared it.
    fn cuLinkAddData = "cuLinkAddData", 5050, false, |real| (
        state: Handle, kind: c_int, bytes: *mut c_void, size: usize, name: *const c_char, count: u32, options: *mut c_void, values: *mut c_void,
    ) {
        // SAFETY: the caller's own words, or other code of the same meaning.
        let add = |kind, bytes, size| unsafe { real(state, kind, bytes, size, name, count, options, values) };
        linked(input(bytes, size), |polled| add(INPUT_PTX, polled.text.as_ptr().cast_mut().cast(), polled.text.len()), || add(kind, bytes, size))
    }
    /// Gives a linker an input.
    fn cuLinkAddData_v2 = "cuLinkAddData", 6050, false, |real| (
        state: Handle, kind: c_int, bytes: *mut c_void, size: usize, name: *const c_char, count: u32, options: *mut c_void, values: *mut c_void,
    ) {
        // SAFETY: the caller's own words, or other code of the same meaning.
        let add = |kind, bytes, size| unsafe { real(state, kind, bytes, size, name, count, options, values) };
        linked(input(bytes, size), |polled| add(INPUT_PTX, polled.text.as_ptr().cast_mut().cast(), polled.text.len()), || add(kind, bytes, size))
    }
    /// Gives a linker a file.
    fn cuLinkAddFile_v2 = "cuLinkAddFile", 6050, false, |real| (
        state: Handle, kind: c_int, path: *const c_char, count: u32, options: *mut c_void, values: *mut c_void,
    ) {
        let add = |polled: replace::Polled| {
            driver::ask!(c"cuLinkAddData_v2" (
                state => Handle, INPUT_PTX => c_int, polled.text.as_ptr().cast_mut().cast() => *mut c_void, polled.text.len() => usize, path => *const c_char,
                count => u32, options => *mut c_void, values => *mut c_void
            )).unwrap_or(driver::NOT_INITIALIZED)
        };
        // SAFETY: the caller's own words.
        linked(file(path, true), add, || unsafe { real(state, kind, path, count, options, values) })
    }

    /// Frees memory: the driver waits for all kernels.
    fn cuMemFree_v2 = "cuMemFree", 3020, false, |real| (memory: u64) {
        // SAFETY: the caller's own words.
        half::outside_of_pauses(|| unsafe { real(memory) })
    }
    /// Frees pinned memory: the driver waits for all kernels.
    fn cuMemFreeHost = "cuMemFreeHost", 2000, false, |real| (memory: *mut c_void) {
        // SAFETY: the caller's own words.
        half::outside_of_pauses(|| unsafe { real(memory) })
    }
    /// Copies from the device, and waits.
    fn cuMemcpyDtoH_v2 = "cuMemcpyDtoH", 3020, false, |real| (to: *mut c_void, from: u64, bytes: usize) {
        // SAFETY: the caller's own words.
        half::copy(|| unsafe { real(to, from, bytes) })
    }
    /// Copies to the device, and waits.
    fn cuMemcpyHtoD_v2 = "cuMemcpyHtoD", 3020, false, |real| (to: u64, from: *const c_void, bytes: usize) {
        // SAFETY: the caller's own words.
        half::copy(|| unsafe { real(to, from, bytes) })
    }
    /// Copies from anywhere to anywhere, and may wait.
    fn cuMemcpy = "cuMemcpy", 4000, false, |real| (to: u64, from: u64, bytes: usize) {
        // SAFETY: the caller's own words.
        half::copy(|| unsafe { real(to, from, bytes) })
    }
    /// Copies rows, and may wait.
    fn cuMemcpy2D_v2 = "cuMemcpy2D", 3020, false, |real| (about: *const c_void) {
        // SAFETY: the caller's own words.
        half::copy(|| unsafe { real(about) })
    }
    /// Copies rows of any alignment, and may wait.
    fn cuMemcpy2DUnaligned_v2 = "cuMemcpy2DUnaligned", 3020, false, |real| (about: *const c_void) {
        // SAFETY: the caller's own words.
        half::copy(|| unsafe { real(about) })
    }
    /// Copies from the device in a stream. The caller waits if the memory is not pinned.
    fn cuMemcpyDtoHAsync_v2 = "cuMemcpyDtoHAsync", 3020, false, |real| (to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
        // SAFETY: the caller's own words.
        let copy = || unsafe { real(to, from, bytes, stream) };
        if stream.addr() > 1 || is_pinned(to) { copy() } else { half::copy(copy) }
    }
    /// Makes a stream: beside a held one, the driver does not come back from making the 33rd.
    fn cuStreamCreate = "cuStreamCreate", 2000, false, |real| (stream: *mut Handle, flags: u32) {
        // SAFETY: the caller's own words.
        half::outside_of_pauses(|| unsafe { real(stream, flags) })
    }
    /// Makes a stream with a priority.
    fn cuStreamCreateWithPriority = "cuStreamCreateWithPriority", 5050, false, |real| (stream: *mut Handle, flags: u32, priority: c_int) {
        // SAFETY: the caller's own words.
        half::outside_of_pauses(|| unsafe { real(stream, flags, priority) })
    }

    /// Launches a kernel.
    fn cuLaunchKernel = "cuLaunchKernel", 4000, false, |real| (
        function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, arguments: *mut c_void, extra: *mut c_void,
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, is_cooperative: 0, arguments, extra, configuration: ptr::null() };
        // SAFETY: the caller's own words.
        launched(function, stream, &shape, |function| unsafe { real(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra) })
    }
    /// Launches a kernel; the default stream is the thread's own.
    fn cuLaunchKernel_ptsz = "cuLaunchKernel", 7000, true, |real| (
        function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, arguments: *mut c_void, extra: *mut c_void,
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, is_cooperative: 0, arguments, extra, configuration: ptr::null() };
        // SAFETY: the caller's own words.
        launched(function, own(stream), &shape, |function| unsafe { real(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra) })
    }
    /// Launches a graph, whose kernels were armed when they were captured.
    fn cuGraphLaunch = "cuGraphLaunch", 10000, false, |real| (graph: Handle, stream: Handle) {
        half::launches_graph();
        // SAFETY: the caller's own words.
        unsafe { real(graph, stream) }
    }
    /// Launches a graph; the default stream is the thread's own.
    fn cuGraphLaunch_ptsz = "cuGraphLaunch", 10000, true, |real| (graph: Handle, stream: Handle) {
        half::launches_graph();
        // SAFETY: the caller's own words.
        unsafe { real(graph, stream) }
    }
    /// Launches a kernel with attributes.
    fn cuLaunchKernelEx = "cuLaunchKernelEx", 11060, false, |real| (config: *const c_void, function: Handle, arguments: *mut c_void, extra: *mut c_void) {
        // SAFETY: the caller's own words.
        launched(function, stream_of(config), &configured(config, arguments, extra), |function| unsafe { real(config, function, arguments, extra) })
    }
    /// Launches a kernel with attributes; the default stream is the thread's own.
    fn cuLaunchKernelEx_ptsz = "cuLaunchKernelEx", 11060, true, |real| (config: *const c_void, function: Handle, arguments: *mut c_void, extra: *mut c_void) {
        // SAFETY: the caller's own words.
        launched(function, own(stream_of(config)), &configured(config, arguments, extra), |function| unsafe { real(config, function, arguments, extra) })
    }
    /// Launches a kernel whose blocks all run at once.
    fn cuLaunchCooperativeKernel = "cuLaunchCooperativeKernel", 9000, false, |real| (
        function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, arguments: *mut c_void,
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, is_cooperative: 1, arguments, extra: ptr::null_mut(), configuration: ptr::null() };
        // SAFETY: the caller's own words.
        launched(function, stream, &shape, |function| unsafe { real(function, gx, gy, gz, bx, by, bz, shared, stream, arguments) })
    }
    /// Launches a kernel whose blocks all run at once; the default stream is the thread's own.
    fn cuLaunchCooperativeKernel_ptsz = "cuLaunchCooperativeKernel", 9000, true, |real| (
        function: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, arguments: *mut c_void,
    ) {
        let shape = Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared, is_cooperative: 1, arguments, extra: ptr::null_mut(), configuration: ptr::null() };
        // SAFETY: the caller's own words.
        launched(function, own(stream), &shape, |function| unsafe { real(function, gx, gy, gz, bx, by, bz, shared, stream, arguments) })
    }
}

/// The default stream of calls for which that is the thread's own.
fn own(stream: Handle) -> Handle {
    if stream.is_null() { PER_THREAD } else { stream }
}

/// The stream that a configuration names.
fn stream_of(config: *const c_void) -> Handle {
    // SAFETY: the driver reads it there, too.
    if config.is_null() { ptr::null_mut() } else { unsafe { config.byte_add(CONFIG_STREAM).cast::<Handle>().read() } }
}

/// A launch whose extents its configuration holds.
fn configured(configuration: *const c_void, arguments: *mut c_void, extra: *mut c_void) -> Shape {
    Shape { grid: [0; 3], block: [0; 3], shared: 0, is_cooperative: 0, arguments, extra, configuration }
}

/// Puts the wrapper in place of a function that the driver has given, if there is one for it.
fn substitute(result: u32, place: *mut Handle) -> u32 {
    if result == 0 && !place.is_null() {
        // SAFETY: the driver has written its answer there.
        unsafe {
            if let Some(wrapper) = driver::wrapper_of((*place).addr()) {
                *place = ptr::with_exposed_provenance_mut(wrapper);
            }
        }
    }
    result
}

fn data(image: *const c_void, of_context: bool) -> Replaced {
    // SAFETY: the program hands it to the driver, which reads it as well.
    let image = unsafe { Image::at(image) }.ok_or("it is no code that cuinstr knows")?;
    replace::replacement(&image, of_context)
}

fn input(bytes: *const c_void, size: usize) -> Replaced {
    if bytes.is_null() {
        return Err("it is empty".to_owned());
    }
    // SAFETY: the program hands it to the driver's linker, which reads as many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) };
    replace::replacement(&Image::of(bytes).ok_or("it is no code that cuinstr knows")?, true)
}

fn bytes_of(path: *const c_char) -> Result<Vec<u8>, String> {
    if path.is_null() {
        return Err("it has no name".to_owned());
    }
    // SAFETY: the program gave a path that ends with a zero.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
    std::fs::read(path).map_err(|error| error.to_string())
}

fn file(path: *const c_char, of_context: bool) -> Replaced {
    replace::replacement(&Image::of(&bytes_of(path)?).ok_or("it is no code that cuinstr knows")?, of_context)
}

/// Options of a library, as the program gives them.
fn given(names: *const c_int, values: *const Handle, count: u32) -> Options {
    let is_there = !names.is_null() && !values.is_null();
    // SAFETY: the program gives so many names and values.
    Options::new((0..count as usize).filter(|_| is_there).map(|at| unsafe { (*names.add(at), (*values.add(at)).expose_provenance()) }))
}

/// Loads code with polls, or else what the program gave. What the driver refuses with polls is loaded without.
fn loaded(place: *mut Handle, replaced: Replaced, load: impl FnOnce(replace::Polled) -> u32, plain: impl FnOnce() -> u32) -> u32 {
    let why = match replaced {
        Ok(polled) => {
            let code = half::outside_of_pauses(|| load(polled));
            session::end_compiling();
            if code == 0 {
                note(0, place, polled.no_fuel.map(str::to_owned));
                return 0;
            }
            replace::refusal(code)
        }
        Err(why) => why,
    };
    let result = half::outside_of_pauses(plain);
    note(result, place, Some(why));
    result
}

/// Sees to it that a module that was just loaded with polls is compiled, and gives the driver's last answer.
fn compiled(module: *const Handle, code: u32) -> u32 {
    let Some(module) = written(module).filter(|_| code == 0) else { return code };
    let code = library::compile(c"cuModuleGetGlobal_v2", module);
    if !library::is_refusal(code) {
        return 0;
    }
    driver::ask!(c"cuModuleUnload" (module => Handle));
    code
}

/// Keeps what a library was loaded from that was just loaded with polls: the driver may refuse it later.
fn begun(library: *const Handle, original: Option<Original>, code: u32) -> u32 {
    if let (Some(library), Some(original), 0) = (written(library), original, code) {
        library::begin(library, original);
    }
    code
}

/// Notes what a module or library lacks that was just loaded.
fn note(result: u32, place: *const Handle, lacks: Option<String>) {
    if let Some(handle) = written(place).filter(|_| result == 0) {
        handles::note(handle, lacks);
    }
}

/// Notes a function or module that a library has given.
fn note_part(result: u32, place: *const Handle, part: Part, library: Option<usize>) {
    if let (Some(handle), Some(library), 0) = (written(place), library, result) {
        handles::note_part(handle, part, library);
    }
}

/// Launches a kernel or function.
fn launched(function: Handle, stream: Handle, shape: &Shape, mut call: impl FnMut(Handle) -> u32) -> u32 {
    library::with_kernel(function, |function| half::launch(function, stream, shape, || call(function)))
}

/// The same for an input of a linker.
fn linked(replaced: Replaced, add: impl FnOnce(replace::Polled) -> u32, plain: impl FnOnce() -> u32) -> u32 {
    let added = replaced.map(add);
    session::end_compiling();
    match added {
        Ok(0) => 0,
        _ => plain(),
    }
}
