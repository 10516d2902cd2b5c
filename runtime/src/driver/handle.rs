//! Handles that another host made: its context, its module, its stream. What is asked of them here answers at once.

use super::check;
use crate::fault::DriverFault;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, CString, c_void};
use std::ptr;

/// A context, as the driver knows it, and the id that no later context at the same address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextHandle {
    address: usize,
    id: u64,
}

impl ContextHandle {
    /// The calling thread's current context, if it has one.
    pub(crate) fn current() -> Result<Option<Self>, DriverFault> {
        let mut context = ptr::null_mut();
        // SAFETY: the out pointer lives through the call.
        let result = unsafe { sys::cuCtxGetCurrent(&raw mut context) };
        if result == CUresult::CUDA_ERROR_NOT_INITIALIZED || context.is_null() {
            return Ok(None);
        }
        check("cuCtxGetCurrent", result)?;
        let mut id = 0;
        // SAFETY: the context is this thread's current one, the out pointer lives through the call.
        check("cuCtxGetId", unsafe { sys::cuCtxGetId(context, &raw mut id) })?;
        Ok(Some(Self { address: context.expose_provenance(), id }))
    }

    /// A number that no other context of the process has, or ever had.
    pub(crate) fn id(self) -> u64 {
        self.id
    }

    /// Whether it is the context at this address.
    pub(crate) fn is_at(self, address: usize) -> bool {
        self.address == address
    }

    /// Makes it the current one of this thread.
    pub(crate) fn bind(self) -> Result<(), DriverFault> {
        let mut current = ptr::null_mut();
        // SAFETY: the out pointer lives through the call; the caller that attached to the context keeps it alive.
        unsafe {
            check("cuCtxGetCurrent", sys::cuCtxGetCurrent(&raw mut current))?;
            if current.addr() != self.address {
                check("cuCtxSetCurrent", sys::cuCtxSetCurrent(ptr::with_exposed_provenance_mut(self.address)))?;
            }
        }
        Ok(())
    }

    /// Makes it the current one until the answer is dropped.
    pub(crate) fn visit(self) -> Result<Visit, DriverFault> {
        let mut before = ptr::null_mut();
        // SAFETY: the out pointer lives through the call.
        check("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&raw mut before) })?;
        self.bind()?;
        Ok(Visit { before: before.expose_provenance() })
    }
}

/// A thread's stay in another context than its own: its own comes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    before: usize,
}

impl Drop for Visit {
    fn drop(&mut self) {
        // SAFETY: this was the thread's current context, or none; no thread may destroy a context that is current.
        let _ = unsafe { sys::cuCtxSetCurrent(ptr::with_exposed_provenance_mut(self.before)) };
    }
}

/// What a host has of a module that it loaded. Each is the value of the driver's handle.
///
/// `cudaFunction_t` and `cudaKernel_t` of the CUDA runtime are `CUfunction` and `CUkernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Handle {
    /// A `CUmodule`.
    Module(usize),
    /// A `CUlibrary`.
    Library(usize),
    /// A `CUfunction` of the module.
    Function(usize),
    /// A `CUkernel` of the library.
    Kernel(usize),
    /// The address of `cuinstr_control_v1` on the device, as `cudaGetSymbolAddress` and the like give it.
    Control(u64),
}

/// A module as the driver finds variables in it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Container {
    Module(sys::CUmodule),
    Library(sys::CUlibrary),
}

impl Handle {
    pub(crate) fn is_null(self) -> bool {
        match self {
            Self::Module(handle) | Self::Library(handle) | Self::Function(handle) | Self::Kernel(handle) => handle == 0,
            Self::Control(address) => address == 0,
        }
    }

    /// The module or library that it leads to; nothing for an address.
    pub(crate) fn container(self) -> Result<Option<Container>, DriverFault> {
        let of_function = |function| {
            let mut module = ptr::null_mut();
            // SAFETY: the caller that attaches vouches for the handle, the out pointer lives through the call.
            check("cuFuncGetModule", unsafe { sys::cuFuncGetModule(&raw mut module, function) })?;
            Ok(Some(Container::Module(module)))
        };
        match self {
            Self::Module(handle) => Ok(Some(Container::Module(ptr::with_exposed_provenance_mut(handle)))),
            Self::Library(handle) => Ok(Some(Container::Library(ptr::with_exposed_provenance_mut(handle)))),
            Self::Function(handle) => of_function(ptr::with_exposed_provenance_mut(handle)),
            Self::Kernel(handle) => {
                let mut function = ptr::null_mut();
                let kernel = ptr::with_exposed_provenance_mut(handle);
                // SAFETY: as above.
                check("cuKernelGetFunction", unsafe { sys::cuKernelGetFunction(&raw mut function, kernel) })?;
                of_function(function)
            }
            Self::Control(_) => Ok(None),
        }
    }

    /// Symbol of the kernel that it names by itself.
    pub(crate) fn symbol(self) -> Option<String> {
        let mut name = ptr::null();
        // SAFETY: as above; the names live as long as the module.
        let result = unsafe {
            match self {
                Self::Function(handle) => sys::cuFuncGetName(&raw mut name, ptr::with_exposed_provenance_mut(handle)),
                Self::Kernel(handle) => sys::cuKernelGetName(&raw mut name, ptr::with_exposed_provenance_mut(handle)),
                Self::Module(_) | Self::Library(_) | Self::Control(_) => return None,
            }
        };
        if result != CUresult::CUDA_SUCCESS || name.is_null() {
            return None;
        }
        // SAFETY: the driver gave a text that ends with a zero.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

impl Container {
    /// Address and size in bytes of a variable, if it has one of this name. A module that is loaded late may wait for running kernels here.
    pub(crate) fn global(self, name: &str) -> Result<Option<(u64, usize)>, DriverFault> {
        let name = CString::new(name).unwrap_or_default();
        let (mut address, mut size) = (0, 0);
        // SAFETY: the caller that attaches vouches for the handle; the name ends with a zero, the out pointers live through the call.
        let (call, result) = unsafe {
            match self {
                Self::Module(module) => {
                    ("cuModuleGetGlobal", sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut size, module, name.as_ptr()))
                }
                Self::Library(library) => {
                    ("cuLibraryGetGlobal", sys::cuLibraryGetGlobal(&raw mut address, &raw mut size, library, name.as_ptr()))
                }
            }
        };
        if result == CUresult::CUDA_ERROR_NOT_FOUND {
            return Ok(None);
        }
        check(call, result)?;
        Ok(Some((address, size)))
    }
}

/// What the driver calls the context that a piece of device memory belongs to; nothing if it does not say.
pub(crate) fn context_of_memory(address: u64) -> Result<Option<usize>, DriverFault> {
    let mut context: sys::CUcontext = ptr::null_mut();
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
    // SAFETY: the out pointer lives through the call and has room for a context; any address may be asked about.
    let result = unsafe { sys::cuPointerGetAttribute((&raw mut context).cast::<c_void>(), attribute, address) };
    check("cuPointerGetAttribute", result)?;
    Ok((!context.is_null()).then(|| context.addr()))
}

/// A stream that another host made: its handle, or 0, 1 (legacy) and 2 (per thread) for the default ones.
pub(crate) fn stream(handle: usize) -> sys::CUstream {
    ptr::with_exposed_provenance_mut(handle)
}

/// Number of a stream that no other of the process has; the per-thread default stream is another one in each thread.
pub(crate) fn stream_id(stream: sys::CUstream) -> Result<u64, DriverFault> {
    let mut id = 0;
    // SAFETY: the caller that arms vouches for the stream; the out pointer lives through the call.
    check("cuStreamGetId", unsafe { sys::cuStreamGetId(stream, &raw mut id) })?;
    Ok(id)
}

impl ContextHandle {
    /// Whether the stream is one of this context.
    pub(crate) fn has(self, stream: sys::CUstream) -> Result<bool, DriverFault> {
        let mut context = ptr::null_mut();
        // SAFETY: the caller that arms vouches for the stream; the out pointer lives through the call.
        check("cuStreamGetCtx", unsafe { sys::cuStreamGetCtx(stream, &raw mut context) })?;
        Ok(self.address == context.addr())
    }
}
