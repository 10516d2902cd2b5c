//! The functions of the CUDA runtime that a small program needs which nvcc compiled with `-cudart none` and which is linked with the stand-in.

#![allow(non_snake_case)]

use crate::calls::{self, current};
use crate::machine::{code, lock};
use crate::modules;
use crate::raw::{self, get, put};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

type Handle = *mut c_void;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    x: u32,
    y: u32,
    z: u32,
}

#[derive(Clone, Copy)]
struct Configuration {
    grid: Extent,
    block: Extent,
    shared: usize,
    stream: usize,
}

/// What the program's initialisers told: images, and the kernels of each by the addresses of their host functions.
struct Program {
    images: BTreeMap<usize, usize>,
    modules: BTreeMap<usize, usize>,
    kernels: BTreeMap<usize, (usize, String)>,
    functions: BTreeMap<usize, usize>,
    error: c_int,
}

static PROGRAM: Mutex<Program> = Mutex::new(Program {
    images: BTreeMap::new(),
    modules: BTreeMap::new(),
    kernels: BTreeMap::new(),
    functions: BTreeMap::new(),
    error: 0,
});

thread_local! {
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

fn program<T>(does: impl FnOnce(&mut Program) -> T) -> T {
    does(&mut PROGRAM.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The runtime makes the primary context current by itself.
fn initialised() {
    if current(&lock()) == Err(201) {
        let mut context = ptr::null_mut();
        calls::cuDevicePrimaryCtxRetain(&raw mut context, 0);
        calls::cuCtxSetCurrent(context);
    }
}

/// The driver's function of a kernel.
fn function(symbol: usize) -> Result<usize, u32> {
    initialised();
    program(|program| {
        if let Some(function) = program.functions.get(&symbol) {
            return Ok(*function);
        }
        let (image, name) = program.kernels.get(&symbol).cloned().ok_or(98_u32)?;
        let module = if let Some(module) = program.modules.get(&image) {
            *module
        } else {
            let mut module = ptr::null_mut();
            modules::load(&raw mut module, ptr::with_exposed_provenance(program.images[&image]))?;
            program.modules.insert(image, module.addr());
            module.addr()
        };
        let mut function = ptr::null_mut();
        let name = format!("{name}\0");
        modules::find_function(&raw mut function, ptr::without_provenance_mut(module), name.as_ptr().cast())?;
        program.functions.insert(symbol, function.addr());
        Ok(function.addr())
    })
}

fn told(error: u32) -> u32 {
    if error != 0 {
        program(|program| program.error = error.cast_signed());
    }
    error
}

fn launch(function: Result<usize, u32>, grid: Extent, block: Extent, arguments: *const *const u64, stream: Handle) -> u32 {
    let extents = [grid.x, grid.y, grid.z, block.x, block.y, block.z];
    told(
        function.and_then(|function| modules::launch(ptr::without_provenance_mut(function), extents, stream, arguments)).err().unwrap_or(0),
    )
}

macro_rules! runtime {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $answer:ty)? $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $name($($argument: $type),*) $(-> $answer)? $body
        )*
    };
}

runtime! {
    fn __cudaRegisterFatBinary(image: *const c_void) -> Handle {
        let handle = program(|program| {
            let handle = program.images.len() + 1;
            program.images.insert(handle, image.expose_provenance());
            handle
        });
        ptr::without_provenance_mut(handle)
    }
    fn __cudaRegisterFatBinaryEnd(_image: Handle) {}
    fn __cudaUnregisterFatBinary(_image: Handle) {}
    fn __cudaInitModule(_image: Handle) -> c_char { 1 }
    fn __cudaRegisterFunction(
        image: Handle, symbol: *const c_void, _device: *const c_char, name: *const c_char, _limit: c_int, _a: Handle, _b: Handle, _c: Handle,
        _d: Handle, _e: Handle,
    ) {
        program(|program| program.kernels.insert(symbol.addr(), (image.addr(), raw::text(name))));
    }
    fn __cudaRegisterVar(
        _image: Handle, _host: Handle, _device: *const c_char, _name: *const c_char, _external: c_int, _bytes: usize, _constant: c_int, _global: c_int,
    ) {}
    fn __cudaPushCallConfiguration(grid: Extent, block: Extent, shared: usize, stream: Handle) -> c_uint {
        PUSHED.with_borrow_mut(|pushed| pushed.push(Configuration { grid, block, shared, stream: stream.addr() }));
        0
    }
    fn __cudaPopCallConfiguration(grid: *mut Extent, block: *mut Extent, shared: *mut usize, stream: *mut Handle) -> u32 {
        let Some(pushed) = PUSHED.with_borrow_mut(Vec::pop) else { return 9 };
        let is_put = put(grid, pushed.grid) && put(block, pushed.block) && put(shared, pushed.shared);
        u32::from(!(is_put && put(stream, ptr::without_provenance_mut(pushed.stream))))
    }
    fn cudaLaunchKernel(symbol: *const c_void, grid: Extent, block: Extent, arguments: *const *const u64, _shared: usize, stream: Handle) -> u32 {
        launch(function(symbol.addr()), grid, block, arguments, stream)
    }
    fn cudaLaunchKernel_ptsz(symbol: *const c_void, grid: Extent, block: Extent, arguments: *const *const u64, _shared: usize, stream: Handle) -> u32 {
        launch(function(symbol.addr()), grid, block, arguments, own(stream))
    }
    fn cudaLaunchCooperativeKernel(symbol: *const c_void, grid: Extent, block: Extent, arguments: *const *const u64, _shared: usize, stream: Handle) -> u32 {
        launch(function(symbol.addr()), grid, block, arguments, stream)
    }
    fn cudaLaunchCooperativeKernel_ptsz(symbol: *const c_void, grid: Extent, block: Extent, arguments: *const *const u64, _shared: usize, stream: Handle) -> u32 {
        launch(function(symbol.addr()), grid, block, arguments, own(stream))
    }
    fn __cudaLaunchKernel(kernel: Handle, grid: Extent, block: Extent, arguments: *const *const u64, _shared: usize, stream: Handle) -> u32 {
        launch(Ok(kernel.addr()), grid, block, arguments, stream)
    }
    fn __cudaLaunchKernel_ptsz(kernel: Handle, grid: Extent, block: Extent, arguments: *const *const u64, _shared: usize, stream: Handle) -> u32 {
        launch(Ok(kernel.addr()), grid, block, arguments, own(stream))
    }
    fn __cudaGetKernel(kernel: *mut Handle, symbol: *const c_void) -> u32 { cudaGetFuncBySymbol(kernel, symbol) }
    fn cudaGetFuncBySymbol(place: *mut Handle, symbol: *const c_void) -> u32 {
        match function(symbol.addr()) {
            Ok(function) => u32::from(!put(place, ptr::without_provenance_mut(function))),
            Err(error) => told(error),
        }
    }
    fn cudaMalloc(address: *mut u64, bytes: usize) -> u32 { initialised(); told(calls::cuMemAlloc_v2(address, bytes)) }
    fn cudaFree(address: u64) -> u32 { initialised(); if address == 0 { 0 } else { told(calls::cuMemFree_v2(address)) } }
    fn cudaMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_int) -> u32 {
        initialised();
        told(match kind {
            1 => calls::cuMemcpyHtoD_v2(to.expose_provenance() as u64, from, bytes),
            _ => calls::cuMemcpyDtoH_v2(to, from.expose_provenance() as u64, bytes),
        })
    }
    // Not modelled.
    fn cudaMemcpy2D(_to: *mut c_void, _to_pitch: usize, _from: *const c_void, _from_pitch: usize, _width: usize, _height: usize, _kind: c_int) -> u32 { code::NOT_SUPPORTED }
    fn cudaMemcpyToSymbol(_to: *const c_void, _from: *const c_void, _bytes: usize, _offset: usize, _kind: c_int) -> u32 { code::NOT_SUPPORTED }
    fn cudaMemcpyFromSymbol(_to: *mut c_void, _from: *const c_void, _bytes: usize, _offset: usize, _kind: c_int) -> u32 { code::NOT_SUPPORTED }
    fn cudaStreamCreate(stream: *mut Handle) -> u32 { initialised(); told(calls::cuStreamCreate(stream, 0)) }
    fn cudaStreamCreateWithFlags(stream: *mut Handle, flags: c_uint) -> u32 { initialised(); told(calls::cuStreamCreate(stream, flags)) }
    fn cudaStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, _priority: c_int) -> u32 { cudaStreamCreateWithFlags(stream, flags) }
    fn cudaFreeHost(address: *mut c_void) -> u32 { initialised(); told(calls::cuMemFreeHost(address)) }
    fn cudaGraphLaunch(graph: Handle, stream: Handle) -> u32 { told(calls::cuGraphLaunch(graph, stream)) }
    fn cudaGraphLaunch_ptsz(graph: Handle, stream: Handle) -> u32 { told(calls::cuGraphLaunch(graph, stream)) }
    fn cudaStreamDestroy(stream: Handle) -> u32 { told(calls::cuStreamDestroy_v2(stream)) }
    fn cudaStreamSynchronize(stream: Handle) -> u32 { initialised(); told(calls::cuStreamSynchronize(stream)) }
    fn cudaStreamBeginCapture(stream: Handle, mode: c_int) -> u32 { told(calls::cuStreamBeginCapture_v2(stream, mode)) }
    fn cudaStreamEndCapture(stream: Handle, graph: *mut Handle) -> u32 { told(calls::cuStreamEndCapture(stream, graph)) }
    fn cudaGraphDestroy(graph: Handle) -> u32 { calls::cuGraphDestroy(graph) }
    fn cudaDeviceSynchronize() -> u32 { initialised(); told(calls::cuCtxSynchronize()) }
    fn cudaFuncSetAttribute(_symbol: *const c_void, _attribute: c_int, _value: c_int) -> u32 { 0 }
    fn cudaGetDevice(device: *mut c_int) -> u32 { u32::from(!put(device, 0)) }
    fn cudaSetDevice(_device: c_int) -> u32 { 0 }
    fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> u32 { calls::cuDeviceGetAttribute(value, attribute, device) }
    // Invalid device function: nothing is known of any.
    fn cudaFuncGetAttributes(_attributes: Handle, _symbol: *const c_void) -> u32 { 98 }
    fn cudaGetLastError() -> c_int { program(|program| std::mem::take(&mut program.error)) }
    fn cudaPeekAtLastError() -> c_int { program(|program| program.error) }
    fn cudaGetErrorString(_error: c_int) -> *const c_char { c"an error of the stand-in driver".as_ptr() }
    fn cudaGetErrorName(_error: c_int) -> *const c_char { c"an error of the stand-in driver".as_ptr() }
    fn cudaLaunchKernelExC(configuration: *const c_void, symbol: *const c_void, arguments: *const *const u64) -> u32 {
        launch_configured(configuration, symbol, arguments, |stream| stream)
    }
    fn cudaLaunchKernelExC_ptsz(configuration: *const c_void, symbol: *const c_void, arguments: *const *const u64) -> u32 {
        launch_configured(configuration, symbol, arguments, own)
    }
}

/// The default stream of programs that were compiled for a default stream in each thread.
fn own(stream: Handle) -> Handle {
    if stream.is_null() { ptr::without_provenance_mut(2) } else { stream }
}

/// `cudaLaunchConfig_t`: behind two extents of three words come the bytes of shared memory and the stream.
fn launch_configured(
    configuration: *const c_void,
    symbol: *const c_void,
    arguments: *const *const u64,
    stream: fn(Handle) -> Handle,
) -> u32 {
    let extents = configuration.cast::<Extent>();
    let (Some(grid), Some(block)) = (get(extents), get(extents.wrapping_add(1))) else { return 1 };
    let given = get(configuration.wrapping_byte_add(32).cast::<Handle>()).unwrap_or(ptr::null_mut());
    launch(function(symbol.addr()), grid, block, arguments, stream(given))
}
