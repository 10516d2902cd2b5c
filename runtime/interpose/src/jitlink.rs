//! nvJitLink: PTX that a program gives it gets polls. Of code that is optimised when it is linked, a second link to PTX says what it was made of.

use crate::compilers::{Handle, Libraries, remember};
use crate::image::Image;
use crate::lookup::call;
use crate::replace;
use crate::session;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

static JITLINK: Libraries = Libraries::new();

/// `NVJITLINK_INPUT_PTX` and `…_LTOIR`.
const INPUT_PTX: c_int = 2;
const INPUT_LTOIR: c_int = 3;
/// `NVJITLINK_ERROR_INTERNAL`, of a library that is gone.
const INTERNAL: c_int = 6;

/// A link that optimises: what it was begun with and given.
#[derive(Default)]
struct Link {
    options: Vec<CString>,
    inputs: Vec<(Vec<u8>, CString)>,
}

/// The links that optimise, by slot and handle. One that was given anything but intermediate code is none of them.
fn links() -> MutexGuard<'static, HashMap<(usize, usize), Link>> {
    static LINKS: OnceLock<Mutex<HashMap<(usize, usize), Link>>> = OnceLock::new();
    LINKS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

macro_rules! slots {
    ($function:ident, $slot:expr) => {
        [$function::<0> as *mut c_void, $function::<1> as *mut c_void, $function::<2> as *mut c_void, $function::<3> as *mut c_void][$slot]
    };
}

/// The wrapper of a function of nvJitLink's. Its name may be `__NAME_12_4`.
pub(crate) fn wrapper_of(name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    let name = name.to_str().ok()?;
    let name = name.strip_prefix("__").and_then(|name| name.split('_').next()).unwrap_or(name);
    if found.is_null()
        || !["nvJitLinkCreate", "nvJitLinkAddData", "nvJitLinkAddFile", "nvJitLinkGetLinkedCubin", "nvJitLinkDestroy"].contains(&name)
    {
        return None;
    }
    let slot = JITLINK.slot_of(found)?;
    Some(match name {
        "nvJitLinkCreate" => slots!(create, slot),
        "nvJitLinkAddData" => slots!(add_data, slot),
        "nvJitLinkAddFile" => slots!(add_file, slot),
        "nvJitLinkGetLinkedCubin" => slots!(get_cubin, slot),
        _ => slots!(destroy, slot),
    })
}

unsafe extern "C" fn create<const SLOT: usize>(place: *mut Handle, count: u32, options: *const *const c_char) -> c_int {
    let function = JITLINK.function(SLOT, c"nvJitLinkCreate");
    let result = call!(function, (place => *mut Handle, count => u32, options => *const *const c_char)).unwrap_or(INTERNAL);
    if result == 0 && !place.is_null() && !options.is_null() {
        // SAFETY: the program gave so many options that each end with a zero, and the library has written the handle.
        let (options, handle): (Vec<CString>, _) =
            unsafe { ((0..count as usize).map(|at| CStr::from_ptr(*options.add(at)).to_owned()).collect(), *place) };
        let says = |option: &CStr| options.iter().any(|one| one.as_c_str() == option);
        if says(c"-lto") && !says(c"-ptx") {
            links().insert((SLOT, handle.addr()), Link { options, ..Link::default() });
        }
    }
    result
}

unsafe extern "C" fn add_data<const SLOT: usize>(
    handle: Handle,
    kind: c_int,
    data: *const c_void,
    size: usize,
    name: *const c_char,
) -> c_int {
    let function = JITLINK.function(SLOT, c"nvJitLinkAddData");
    let add = |kind: c_int, data: *const c_void, size: usize| {
        call!(function, (handle => Handle, kind => c_int, data => *const c_void, size => usize, name => *const c_char)).unwrap_or(INTERNAL)
    };
    if data.is_null() {
        return add(kind, data, size);
    }
    // SAFETY: the program gives so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
    if kind == INPUT_LTOIR {
        if let Some(link) = links().get_mut(&(SLOT, handle.addr())) {
            // SAFETY: a name ends with a zero.
            let name = if name.is_null() { CString::default() } else { unsafe { CStr::from_ptr(name) }.to_owned() };
            link.inputs.push((bytes.to_vec(), name));
        }
        return add(kind, data, size);
    }
    links().remove(&(SLOT, handle.addr()));
    // PTX alone: a fat binary is for the architecture that is linked for, which need not be that of a GPU here.
    let text = Image::of(bytes).filter(|image| matches!(image, Image::Text(_)));
    let added = text
        .and_then(|text| replace::replacement(&text, true).ok())
        .map(|polled| add(INPUT_PTX, polled.text.as_ptr().cast(), polled.text.len()));
    session::end_compiling();
    match added {
        Some(0) => 0,
        _ => add(kind, data, size),
    }
}

unsafe extern "C" fn add_file<const SLOT: usize>(handle: Handle, kind: c_int, path: *const c_char) -> c_int {
    links().remove(&(SLOT, handle.addr()));
    let function = JITLINK.function(SLOT, c"nvJitLinkAddFile");
    call!(function, (handle => Handle, kind => c_int, path => *const c_char)).unwrap_or(INTERNAL)
}

unsafe extern "C" fn get_cubin<const SLOT: usize>(handle: Handle, place: *mut c_void) -> c_int {
    let function = JITLINK.function(SLOT, c"nvJitLinkGetLinkedCubin");
    let result = call!(function, (handle => Handle, place => *mut c_void)).unwrap_or(INTERNAL);
    let link = links().remove(&(SLOT, handle.addr()));
    if let (0, false, Some(ptx)) = (result, place.is_null(), link.and_then(|link| linked_again::<SLOT>(&link))) {
        remember(place, ptx);
    }
    result
}

unsafe extern "C" fn destroy<const SLOT: usize>(handle: *mut Handle) -> c_int {
    if !handle.is_null() {
        // SAFETY: the program gives the place of a handle.
        links().remove(&(SLOT, unsafe { *handle }.addr()));
    }
    call!(JITLINK.function(SLOT, c"nvJitLinkDestroy"), (handle => *mut Handle)).unwrap_or(INTERNAL)
}

/// The PTX of a link that optimises.
fn linked_again<const SLOT: usize>(link: &Link) -> Option<Vec<u8>> {
    let ask = |name| JITLINK.function(SLOT, name);
    let options: Vec<*const c_char> = link.options.iter().map(CString::as_c_str).chain([c"-ptx"]).map(CStr::as_ptr).collect();
    let mut handle: Handle = ptr::null_mut();
    let count = u32::try_from(options.len()).ok()?;
    let made = call!(ask(c"nvJitLinkCreate"), (&raw mut handle => *mut Handle, count => u32, options.as_ptr() => *const *const c_char));
    if made != Some(0) {
        return None;
    }
    let add = |(input, name): &(Vec<u8>, CString)| {
        let (data, size) = (input.as_ptr().cast(), input.len());
        let function = ask(c"nvJitLinkAddData");
        call!(function, (handle => Handle, INPUT_LTOIR => c_int, data => *const c_void, size => usize, name.as_ptr() => *const c_char))
            == Some(0)
    };
    let is_linked = link.inputs.iter().all(add) && call!(ask(c"nvJitLinkComplete"), (handle => Handle)) == Some(0);
    let ptx = is_linked.then(|| text_of::<SLOT>(handle)).flatten();
    call!(ask(c"nvJitLinkDestroy"), (&raw mut handle => *mut Handle));
    ptx
}

/// The PTX that a link has made.
fn text_of<const SLOT: usize>(handle: Handle) -> Option<Vec<u8>> {
    let mut size = 0_usize;
    let asked = call!(JITLINK.function(SLOT, c"nvJitLinkGetLinkedPtxSize"), (handle => Handle, &raw mut size => *mut usize));
    let mut text = vec![0_u8; if asked == Some(0) { size } else { return None }];
    let function = JITLINK.function(SLOT, c"nvJitLinkGetLinkedPtx");
    let got = call!(function, (handle => Handle, text.as_mut_ptr().cast() => *mut c_char));
    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(size));
    Some(text).filter(|_| got == Some(0))
}
