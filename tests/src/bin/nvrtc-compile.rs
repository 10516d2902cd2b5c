//! NVRTC as a command, in a process of its own: `nvrtc-compile SOURCE OUTPUT [OPTION]...` writes PTX, and whatever NVRTC says to stderr.
//! `LD_LIBRARY_PATH` says which NVRTC.

use cudarc::nvrtc::{result, sys};
use std::ffi::{CString, c_char};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, output, options @ ..] = &arguments[..] else {
        eprintln!("usage: nvrtc-compile SOURCE OUTPUT [OPTION]...");
        return ExitCode::from(2);
    };
    match compile(source, output, options) {
        Ok(said) => {
            eprint!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn compile(source: &str, output: &str, options: &[String]) -> Result<String, String> {
    let text = std::fs::read(source).map_err(|error| format!("{source}: {error}"))?;
    let text = CString::new(text).map_err(|_| format!("{source} holds a zero byte"))?;
    let name = CString::new(source).map_err(|_| "the name holds a zero byte")?;
    let program = result::create_program(&text, Some(&name)).map_err(|error| error.to_string())?;
    // SAFETY: the program was made above, and text and name live until its last use below; it is not destroyed before the process ends.
    let compiled = unsafe { result::compile_program(program, options) };
    // SAFETY: the same program.
    let said = unsafe { result::get_program_log(program) }.map(|log| text_of(&log)).unwrap_or_default();
    compiled.map_err(|error| format!("{error}\n{said}"))?;
    ptx(program).and_then(|ptx| std::fs::write(output, ptx).map_err(|error| format!("{output}: {error}")))?;
    Ok(said)
}

fn ptx(program: sys::nvrtcProgram) -> Result<String, String> {
    // SAFETY: its only caller passes a program that was compiled.
    unsafe { result::get_ptx(program) }.map(|ptx| text_of(&ptx)).map_err(|error| error.to_string())
}

fn text_of(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
