//! What a driver of some version gives for a name, a version and flags: `cuGetProcAddress`, and the calls that programs find only by it.

#![allow(non_snake_case, missing_docs)]

use crate::calls::exported;
use crate::machine::{code, lock};
use crate::modules;
use crate::raw::{self, get, put};
use crate::{mapping, processes};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

type Handle = *mut c_void;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;
/// Offset of the stream in `CUlaunchConfig`.
const CONFIG_STREAM: usize = 32;

/// Names with several signatures, or variants for per-thread default streams: the name, the version that brought the signature, whether it is for
/// per-thread streams, and what the library exports it as. A driver without one of these gives the older one.
const VARIANTS: [(&str, i32, bool, &str); 26] = [
    ("cuGetProcAddress", 11030, false, "cuGetProcAddress"),
    ("cuGetProcAddress", 12000, false, "cuGetProcAddress_v2"),
    ("cuLaunchKernel", 4000, false, "cuLaunchKernel"),
    ("cuLaunchKernel", 7000, true, "cuLaunchKernel_ptsz"),
    ("cuLaunchKernelEx", 11060, false, "cuLaunchKernelEx"),
    ("cuLaunchKernelEx", 11060, true, "cuLaunchKernelEx_ptsz"),
    ("cuLaunchCooperativeKernel", 9000, false, "cuLaunchCooperativeKernel"),
    ("cuLaunchCooperativeKernel", 9000, true, "cuLaunchCooperativeKernel_ptsz"),
    ("cuLinkAddData", 5050, false, "cuLinkAddData"),
    ("cuLinkAddData", 6050, false, "cuLinkAddData_v2"),
    ("cuModuleLoadData", 2000, false, "cuModuleLoadData"),
    ("cuModuleLoadDataEx", 2010, false, "cuModuleLoadDataEx"),
    ("cuModuleLoadFatBinary", 2000, false, "cuModuleLoadFatBinary"),
    ("cuModuleLoad", 2000, false, "cuModuleLoad"),
    ("cuModuleUnload", 2000, false, "cuModuleUnload"),
    ("cuLibraryLoadData", 12000, false, "cuLibraryLoadData"),
    ("cuLibraryLoadFromFile", 12000, false, "cuLibraryLoadFromFile"),
    ("cuLibraryGetKernel", 12000, false, "cuLibraryGetKernel"),
    ("cuLibraryGetKernelCount", 12040, false, "cuLibraryGetKernelCount"),
    ("cuLibraryEnumerateKernels", 12040, false, "cuLibraryEnumerateKernels"),
    ("cuLibraryGetModule", 12000, false, "cuLibraryGetModule"),
    ("cuLibraryGetGlobal", 12000, false, "cuLibraryGetGlobal"),
    ("cuLibraryUnload", 12000, false, "cuLibraryUnload"),
    ("cuKernelGetFunction", 12000, false, "cuKernelGetFunction"),
    ("cuMemAlloc", 3020, false, "cuMemAlloc_v2"),
    ("cuStreamWriteValue32", 12000, false, "cuStreamWriteValue32_v2"),
];

/// The newest variant that the version and the flags allow, or the plain export of that name.
fn address(name: &str, version: i32, per_thread: bool) -> Option<usize> {
    let driver = lock().version;
    let fits = |(of, since, thread, _): &&(&str, i32, bool, &str)| *of == name && *since <= version.min(driver) && (!*thread || per_thread);
    // Of one name the variants stand from the oldest to the newest.
    let variant = VARIANTS.iter().rfind(fits);
    let is_known = VARIANTS.iter().any(|(of, ..)| *of == name);
    match variant {
        Some((.., export)) => own(export),
        None if is_known => None,
        None => own(name),
    }
}

fn own(export: &str) -> Option<usize> {
    let here = match export {
        "cuGetProcAddress" => cuGetProcAddress as *const (),
        "cuGetProcAddress_v2" => cuGetProcAddress_v2 as *const (),
        "cuLaunchKernelEx" => cuLaunchKernelEx as *const (),
        "cuLaunchKernelEx_ptsz" => cuLaunchKernelEx_ptsz as *const (),
        "cuLaunchKernel_ptsz" => cuLaunchKernel_ptsz as *const (),
        "cuLaunchCooperativeKernel_ptsz" => cuLaunchCooperativeKernel_ptsz as *const (),
        "cuModuleLoadFatBinary" => cuModuleLoadFatBinary as *const (),
        "cuModuleLoad" => cuModuleLoad as *const (),
        "cuLibraryLoadFromFile" => cuLibraryLoadFromFile as *const (),
        "cuLinkAddData" => cuLinkAddData as *const (),
        other => return exported(other).or_else(|| mapping::exported(other)).or_else(|| processes::exported(other)),
    };
    Some(here.addr())
}

macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $name($($argument: $type),*) -> u32 {
                crate::control::enter(stringify!($name)).and_then(|()| -> Result<(), u32> { $body }).err().unwrap_or(0)
            }
        )*
    };
}

fn thread_stream(stream: Handle) -> Handle {
    if stream.is_null() { ptr::without_provenance_mut(2) } else { stream }
}

fn launch_by(config: *const c_void, function: Handle, arguments: *const *const u64, own_stream: bool) -> Result<(), u32> {
    let mut extents = [0; 6];
    for (index, extent) in extents.iter_mut().enumerate() {
        *extent = get(config.cast::<u32>().wrapping_add(index)).ok_or(code::INVALID_VALUE)?;
    }
    let stream = get(config.wrapping_byte_add(CONFIG_STREAM).cast::<Handle>()).ok_or(code::INVALID_VALUE)?;
    modules::launch(function, extents, if own_stream { thread_stream(stream) } else { stream }, arguments)
}

fn find(symbol: *const c_char, place: *mut Handle, version: c_int, flags: u64) -> Result<(), u32> {
    let found = address(&raw::text(symbol), version, flags & PER_THREAD != 0);
    let given = found.map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut);
    if !put(place, given) {
        return Err(code::INVALID_VALUE);
    }
    if given.is_null() { Err(code::NOT_FOUND) } else { Ok(()) }
}

/// A file, and a zero behind it.
fn read(path: *const c_char) -> Result<Vec<u8>, u32> {
    let mut bytes = std::fs::read(raw::text(path)).map_err(|_| 301_u32)?;
    bytes.push(0);
    Ok(bytes)
}

calls! {
    fn cuGetProcAddress(symbol: *const c_char, place: *mut Handle, version: c_int, flags: u64) { find(symbol, place, version, flags) }
    fn cuGetProcAddress_v2(symbol: *const c_char, place: *mut Handle, version: c_int, flags: u64, status: *mut c_int) {
        let found = find(symbol, place, version, flags);
        put(status, c_int::from(found.is_err()));
        found
    }
    fn cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) { modules::load(module, image) }
    fn cuModuleLoad(module: *mut Handle, path: *const c_char) {
        modules::load(module, read(path)?.as_ptr().cast())
    }
    fn cuLibraryLoadFromFile(
        library: *mut Handle, path: *const c_char, _a: Handle, _b: Handle, _c: c_uint, _d: Handle, _e: Handle, _f: c_uint,
    ) { modules::load_library(library, read(path)?.as_ptr().cast()) }
    fn cuLinkAddData(
        _state: Handle, _kind: c_int, _data: Handle, _size: usize, _name: *const c_char, _count: c_uint, _options: Handle, _values: Handle,
    ) { Ok(()) }
    fn cuLaunchKernelEx(config: *const c_void, function: Handle, arguments: *const *const u64, _extra: Handle) {
        launch_by(config, function, arguments, false)
    }
    fn cuLaunchKernelEx_ptsz(config: *const c_void, function: Handle, arguments: *const *const u64, _extra: Handle) {
        launch_by(config, function, arguments, true)
    }
    fn cuLaunchKernel_ptsz(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        _shared: c_uint, stream: Handle, parameters: *const *const u64, _extra: Handle,
    ) { modules::launch(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z], thread_stream(stream), parameters) }
    fn cuLaunchCooperativeKernel_ptsz(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        _shared: c_uint, stream: Handle, parameters: *const *const u64,
    ) { modules::launch(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z], thread_stream(stream), parameters) }
}
