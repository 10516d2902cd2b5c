//! Calls of NVRTC, each program destroyed on every way out.

use super::{ProgramError, install};
use cudarc::nvrtc::{result, sys};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

/// What a compilation gave.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) code: Vec<u8>,
    pub(super) log: Vec<u8>,
    pub(super) symbols: BTreeMap<String, String>,
}

/// What a compilation failed of.
#[derive(Debug)]
pub(super) enum Failed {
    /// The source; with the log.
    Source(Vec<u8>),
    /// The machine, or how it was called.
    Other(ProgramError),
}

impl From<ProgramError> for Failed {
    fn from(error: ProgramError) -> Self {
        Self::Other(error)
    }
}

/// The architectures that NVRTC compiles to machine code for.
pub(super) fn architectures() -> Result<Vec<u32>, ProgramError> {
    load()?;
    let mut count: c_int = 0;
    // SAFETY: one number is written, to a place for one.
    answer("nvrtcGetNumSupportedArchs", unsafe { sys::nvrtcGetNumSupportedArchs(&raw mut count) })?;
    let mut numbers: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: as many numbers are written as were announced, and there is room for them.
    answer("nvrtcGetSupportedArchs", unsafe { sys::nvrtcGetSupportedArchs(numbers.as_mut_ptr()) })?;
    Ok(numbers.into_iter().filter_map(|number| u32::try_from(number).ok()).collect())
}

/// Version of NVRTC: its major and minor number.
///
/// # Errors
/// If there is no NVRTC, or it does not say.
pub fn version() -> Result<(u32, u32), ProgramError> {
    load()?;
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: two numbers are written, each to a place for one.
    answer("nvrtcVersion", unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) })?;
    Ok((major.unsigned_abs(), minor.unsigned_abs()))
}

/// Compiles a text to a cubin or to PTX.
pub(super) fn compile(text: &[u8], name: &str, options: &[String], expressions: &[String], cubin: bool) -> Result<Done, Failed> {
    load()?;
    let c_string = |what: &str, bytes: &[u8]| CString::new(bytes).map_err(|_| ProgramError::ZeroByte(what.to_owned()));
    let text = c_string("the source", text)?;
    let name = c_string("the source's name", name.as_bytes())?;
    let options = options.iter().map(|option| c_string("an option", option.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let names = expressions.iter().map(|name| c_string("a kernel's name", name.as_bytes())).collect::<Result<Vec<_>, _>>()?;

    let handle = result::create_program(&text, Some(&name)).map_err(|error| fault("nvrtcCreateProgram", error.0, String::new()))?;
    let program = Compilation { handle };
    for name in &names {
        // SAFETY: the program is alive, the name ends with a zero, and NVRTC copies it.
        answer("nvrtcAddNameExpression", unsafe { sys::nvrtcAddNameExpression(handle, name.as_ptr()) })?;
    }
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
    // SAFETY: the program is alive, and there are `count` pointers to texts that end with a zero and outlive the call.
    let compiled = unsafe { sys::nvrtcCompileProgram(handle, count, pointers.as_ptr()) };
    let log = program.log();
    let said = || String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).to_owned();
    match compiled {
        sys::nvrtcResult::NVRTC_SUCCESS => {}
        sys::nvrtcResult::NVRTC_ERROR_COMPILATION => return Err(Failed::Source(log)),
        // Also what a name that is no kernel's ends with, after the log has said so.
        sys::nvrtcResult::NVRTC_ERROR_BUILTIN_OPERATION_FAILURE if said().contains("nvrtc-builtins") => {
            let beside = install::folder_of_loaded();
            return Err(ProgramError::NoBuiltins { library: install::builtins(&said()), beside }.into());
        }
        error => return Err(fault("nvrtcCompileProgram", error, said()).into()),
    }
    let code = if cubin { program.cubin() } else { program.ptx() }?;
    let symbols = expressions.iter().zip(&names).map(|(expression, name)| Ok((expression.clone(), program.symbol(name)?)));
    let symbols = symbols.collect::<Result<_, ProgramError>>()?;
    Ok(Done { code, log, symbols })
}

/// Loads NVRTC, once a process. The bindings panic where it is missing, so everything here begins with this.
fn load() -> Result<(), ProgramError> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loading runs the initialisers of NVIDIA's library, which asks nothing of us.
    let is_present = *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() });
    if is_present { Ok(()) } else { Err(ProgramError::NoNvrtc { found: install::folders_with_nvrtc() }) }
}

/// A program of NVRTC's, destroyed when dropped.
struct Compilation {
    handle: sys::nvrtcProgram,
}

impl Compilation {
    fn log(&self) -> Vec<u8> {
        // SAFETY: the program is alive.
        let log = unsafe { result::get_program_log(self.handle) }.unwrap_or_default();
        log.into_iter().map(|byte| byte.to_ne_bytes()[0]).collect()
    }

    fn ptx(&self) -> Result<Vec<u8>, ProgramError> {
        // SAFETY: the program is alive.
        let text = unsafe { result::get_ptx(self.handle) }.map_err(|error| fault("nvrtcGetPTX", error.0, String::new()))?;
        Ok(text.into_iter().map(|byte| byte.to_ne_bytes()[0]).collect())
    }

    fn cubin(&self) -> Result<Vec<u8>, ProgramError> {
        let mut size = 0;
        // SAFETY: the program is alive, and one number is written to a place for one.
        answer("nvrtcGetCUBINSize", unsafe { sys::nvrtcGetCUBINSize(self.handle, &raw mut size) })?;
        let mut code = vec![0_u8; size];
        // SAFETY: the program is alive, and as many bytes are written as were announced.
        answer("nvrtcGetCUBIN", unsafe { sys::nvrtcGetCUBIN(self.handle, code.as_mut_ptr().cast()) })?;
        Ok(code)
    }

    fn symbol(&self, name: &CStr) -> Result<String, ProgramError> {
        let mut symbol = ptr::null();
        // SAFETY: the program is alive, the name ends with a zero, and one pointer is written to a place for one.
        answer("nvrtcGetLoweredName", unsafe { sys::nvrtcGetLoweredName(self.handle, name.as_ptr(), &raw mut symbol) })?;
        // SAFETY: on success it points to a text that ends with a zero and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(symbol) }.to_string_lossy().into_owned())
    }
}

impl Drop for Compilation {
    fn drop(&mut self) {
        // SAFETY: the program is alive, and it is not used after this. A failure to destroy it leaves nothing to do.
        let _ = unsafe { result::destroy_program(self.handle) };
    }
}

fn answer(call: &'static str, result: sys::nvrtcResult) -> Result<(), ProgramError> {
    result.result().map_err(|error| fault(call, error.0, String::new()))
}

fn fault(call: &'static str, error: sys::nvrtcResult, log: String) -> ProgramError {
    ProgramError::Nvrtc { call, name: format!("{error:?}"), code: error as u32, log }
}
