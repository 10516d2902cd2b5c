//! Modules as programs load them, and launches of their kernels.

use crate::blocks::Blocks;
use crate::calls::{Done, Guard, Handle, alone, current, drained, enqueue, give, let_through, pointer, thread_context};
use crate::engine::{Launched, Op};
use crate::machine::{Function, Machine, Module, code, lock};
use crate::raw::{self, get, put};
use cuinstr_abi::control::{ABI_VERSION, Action, CONTROL_SYMBOL, ControlBlock, FIRST_LAUNCH, FLAG_SYMBOL, PAUSE_SYMBOL, PauseBlock};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::mem::offset_of;
use std::ptr;

/// Where an image ends: PTX at its zero, ELF and fat binaries by what their heads say.
fn image_bytes(image: *const c_void) -> Vec<u8> {
    let word = |offset: usize| get(image.wrapping_byte_add(offset).cast::<u64>()).unwrap_or(0);
    match get(image.cast::<u32>()) {
        // A fat binary: its head of 16 bytes, then as many as it says.
        Some(0xba55_ed50) => raw::bytes(image, 16 + word(8) as usize),
        // ELF: up to the end of its section headers, or of its program headers.
        Some(0x464c_457f) => {
            let half = |offset: usize| (word(offset) & 0xffff) as usize;
            let sections = word(40) as usize + half(58) * half(60);
            raw::bytes(image, sections.max(word(32) as usize + half(54) * half(56)))
        }
        // What nvcc puts around a fat binary points to it.
        Some(0x4662_43b1) => image_bytes(ptr::with_exposed_provenance(word(8) as usize)),
        _ => raw::text(image.cast()).into_bytes(),
    }
}

pub(crate) fn load(place: *mut Handle, image: *const c_void) -> Done {
    let (machine, context) = alone()?;
    keep(machine, context, place, image)
}

/// Loads code that each context may use: none need be current.
pub(crate) fn load_library(place: *mut Handle, image: *const c_void) -> Done {
    keep(lock(), thread_context(), place, image)
}

fn keep(mut machine: Guard, context: usize, place: *mut Handle, image: *const c_void) -> Done {
    if image.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let image = image_bytes(image);
    let has = |text: &str| raw::holds(&image, text);
    let is_binary = image.starts_with(b"\x7fELF") || image.starts_with(&0xba55_ed50_u32.to_le_bytes());
    if !is_binary && !has(".version") {
        return Err(if image.is_empty() { code::INVALID_IMAGE } else { code::INVALID_PTX });
    }
    let mut globals = BTreeMap::new();
    let mut add = |name: &str, bytes: usize| {
        let address = raw::allocate(bytes).ok_or(code::OUT_OF_MEMORY)?;
        globals.insert(name.to_owned(), (address, bytes));
        Ok::<u64, u32>(address)
    };
    // A fat binary may be compressed: it is taken for one that was rewritten.
    if has(CONTROL_SYMBOL) || !is_binary && has("cuinstr_control") || image.starts_with(&0xba55_ed50_u32.to_le_bytes()) {
        let (control, flag) = (add(CONTROL_SYMBOL, size_of::<ControlBlock>())?, add(FLAG_SYMBOL, 4)?);
        raw::store(control + offset_of!(ControlBlock, abi_version) as u64, ABI_VERSION);
        raw::store(control + offset_of!(ControlBlock, action) as u64, Action::Trap as u32);
        raw::store(control + offset_of!(ControlBlock, launch) as u64, FIRST_LAUNCH);
        raw::store(control + offset_of!(ControlBlock, flag) as u64, flag);
    }
    if ptx_of(&image).is_some_and(|ptx| ptx.contains(PAUSE_SYMBOL)) {
        add(PAUSE_SYMBOL, size_of::<PauseBlock>())?;
    }
    for (name, bytes) in ptx_of(&image).map(variables).unwrap_or_default() {
        add(&name, bytes)?;
    }
    let handle = machine.handle();
    machine.modules.insert(handle, Module { context, image, globals });
    give(place, pointer(handle))
}

/// The PTX of an image: all of it, or what a fat binary holds that is not compressed.
fn ptx_of(image: &[u8]) -> Option<&str> {
    let rest = if image.starts_with(&0xba55_ed50_u32.to_le_bytes()) {
        let at = image.windows(8).position(|part| part == b".version")?;
        let rest = &image[at..];
        &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len())]
    } else {
        image
    };
    std::str::from_utf8(rest).ok()
}

/// The visible arrays of bytes in device memory that are the program's, and their lengths.
fn variables(ptx: &str) -> Vec<(String, usize)> {
    let declared = ptx.split(".visible .global").skip(1).filter_map(|rest| rest.split_once(".b8 ")?.1.split_once(']')?.0.split_once('['));
    let own = declared.filter(|(name, _)| !name.trim_start().starts_with("cuinstr_"));
    own.filter_map(|(name, bytes)| Some((name.trim().to_owned(), bytes.trim().parse().ok()?))).collect()
}

/// Bytes of each parameter of an entry of PTX; nothing if there is no such entry.
fn parameters(ptx: &str, name: &str) -> Option<Vec<usize>> {
    let mut entries = ptx.split(".entry").skip(1).map(str::trim_start);
    let entry = entries.find_map(|entry| entry.strip_prefix(name).filter(|rest| rest.trim_start().starts_with('(')))?;
    let list = entry.split_once('(')?.1.split_once(')')?.0;
    let size = |parameter: &str| {
        let count = parameter.split_once('[').and_then(|(_, count)| count.split_once(']')?.0.trim().parse().ok()).unwrap_or(1);
        let one = [("64", 8), ("32", 4), ("16", 2), ("8", 1)].into_iter().find(|(bits, _)| {
            parameter.split_whitespace().any(|word| word.strip_suffix(bits).is_some_and(|kind| [".u", ".s", ".b", ".f"].contains(&kind)))
        });
        one.map(|(_, bytes)| bytes * count)
    };
    list.split(',').filter(|parameter| parameter.contains(".param")).map(size).collect()
}

/// What a second kernel of a module says that its kernels do.
fn act(image: &[u8]) -> String {
    const PREFIX: &[u8] = b"stand_in_";
    let at = image.windows(PREFIX.len()).position(|window| window == PREFIX);
    let rest = at.map_or(&[][..], |at| &image[at..]);
    let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end]).into_owned()
}

/// Something of a module is needed. Without a context a kernel of a library is a name.
fn needed(machine: &Machine, module: Handle) -> Done {
    if current(machine).is_ok() { machine.compile(module.addr()) } else { Ok(()) }
}

pub(crate) fn find_function(place: *mut Handle, module: Handle, name: *const c_char) -> Done {
    let mut machine = lock();
    let name = raw::text(name);
    let found = machine.modules.get(&module.addr()).ok_or(code::INVALID_HANDLE)?;
    needed(&machine, module)?;
    let parameters = match ptx_of(&found.image) {
        Some(ptx) => Some(parameters(ptx, &name).ok_or(code::NOT_FOUND)?),
        None => None,
    };
    let name = name + &act(&found.image);
    let handle = machine.handle();
    machine.functions.insert(handle, Function { module: module.addr(), name, parameters });
    give(place, pointer(handle))
}

/// The kernels of a module, as far as its PTX tells.
fn kernels(machine: &Machine, module: Handle) -> Result<Vec<String>, u32> {
    needed(machine, module)?;
    let found = machine.modules.get(&module.addr()).ok_or(code::INVALID_HANDLE)?;
    let entries = ptx_of(&found.image).unwrap_or_default().split(".entry").skip(1);
    Ok(entries.filter_map(|entry| entry.split_once('(')).map(|(name, _)| name.trim().to_owned()).collect())
}

pub(crate) fn find_module(place: *mut Handle, library: Handle) -> Done {
    let machine = lock();
    current(&machine)?;
    machine.compile(library.addr())?;
    give(place, library)
}

/// The function of a kernel in the current context.
pub(crate) fn function_of(place: *mut Handle, kernel: Handle) -> Done {
    let machine = lock();
    let found = machine.functions.get(&kernel.addr()).ok_or(code::INVALID_HANDLE)?;
    machine.compile(found.module)?;
    give(place, kernel)
}

pub(crate) fn count_functions(count: *mut u32, module: Handle) -> Done {
    let found = kernels(&lock(), module)?.len();
    give(count, u32::try_from(found).unwrap_or(0))
}

pub(crate) fn list_functions(places: *mut Handle, count: u32, module: Handle) -> Done {
    let names = kernels(&lock(), module)?;
    for (index, name) in names.into_iter().take(count as usize).enumerate() {
        let name = CString::new(name).map_err(|_| code::INVALID_VALUE)?;
        find_function(places.wrapping_add(index), module, name.as_ptr())?;
    }
    Ok(())
}

pub(crate) fn find_global(address: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char) -> Done {
    let mut machine = lock();
    let name = raw::text(name);
    machine.compile(module.addr())?;
    let found = machine.modules.get_mut(&module.addr()).ok_or(code::INVALID_HANDLE)?;
    let known = found.globals.get(&name).copied();
    let (at, size) = known.ok_or(code::NOT_FOUND)?;
    put(address, at);
    put(bytes, size);
    Ok(())
}

/// The same with all parameters in one buffer: the list has 1 and its address, 2 and the address of its size, and a zero.
pub(crate) fn launch_packed(function: Handle, extents: [u32; 6], stream: Handle, extra: *const u64) -> Done {
    let word = |index: usize| get(extra.wrapping_add(index)).unwrap_or(0);
    let named = |name: u64| (0..4).step_by(2).find(|index| word(*index) == name).map(|index| word(index + 1));
    let buffer: *const u64 = ptr::with_exposed_provenance(named(1).ok_or(code::INVALID_VALUE)? as usize);
    let size: *const u64 = ptr::with_exposed_provenance(named(2).ok_or(code::INVALID_VALUE)? as usize);
    let found = lock().functions.get(&function.addr()).cloned().ok_or(code::INVALID_HANDLE)?;
    let sizes = found.parameters.ok_or(code::NOT_SUPPORTED)?;
    if get(size) != Some(sizes.iter().sum::<usize>() as u64) {
        return Err(code::INVALID_VALUE);
    }
    let offset = |index: usize| sizes[..index].iter().sum();
    let places: Vec<*const u64> = (0..sizes.len()).map(|index| buffer.wrapping_byte_add(offset(index))).collect();
    launch(function, extents, stream, places.as_ptr())
}

pub(crate) fn launch(function: Handle, extents: [u32; 6], stream: Handle, parameters: *const *const u64) -> Done {
    let_through();
    let found = lock().functions.get(&function.addr()).cloned().ok_or(code::INVALID_HANDLE)?;
    if found.name.contains("refuse") {
        return Err(code::LAUNCH_OUT_OF_RESOURCES);
    }
    lock().compile(found.module)?;
    lock().load_code(&found);
    // A binary does not say what its parameters are; one that writes to its first has a pointer there.
    let sizes = found.parameters.unwrap_or_else(|| if found.name.contains("wrong") { vec![8] } else { Vec::new() });
    let read = |(index, bytes): (usize, &usize)| {
        let place = get(parameters.wrapping_add(index))?;
        if *bytes == 8 { get(place) } else { Some(0) }
    };
    let words: Option<Vec<u64>> = sizes.iter().enumerate().map(read).collect();
    let words = words.ok_or(code::INVALID_VALUE)?;
    let threads = extents.into_iter().map(u64::from).product();
    let key = enqueue(stream, |machine| {
        let global = |name| machine.modules.get(&found.module).and_then(|module| module.globals.get(name)).map(|(address, _)| *address);
        let (control, pause) = (global(CONTROL_SYMBOL), global(PAUSE_SYMBOL));
        let blocks = Blocks::new(extents[..3].iter().map(|extent| u64::from(*extent)).product(), machine.clock.now_ns());
        Ok(Op::Launch(Launched { name: found.name, control, pause, words, threads, blocks, begun: None, ends: 0 }))
    })?;
    // As with the driver, the call waits for its kernel.
    if std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value == "1") { drained(key) } else { Ok(()) }
}
