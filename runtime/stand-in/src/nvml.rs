//! The few functions of NVML that tell of GPUs and of the processes on them. The library of this crate is `libnvidia-ml.so.1`, too.
//!
//! The GPUs are those of the folder that the command `processes DIR` names ([`crate::control`]), or of the file that
//! `CUINSTR_STAND_IN_GPUS` names. Both are read anew at each call, so that a test can change the machine. A line of the file is one GPU:
//!
//! ```text
//! GPU-UUID TOTAL-MiB FREE-MiB BUSY-PERCENT PROCESSES shared|exclusive|prohibited|lost
//! ```
//!
//! A line that begins with `MIG-` is a part of the GPU above it, which is then in MIG mode.

#![allow(non_snake_case, missing_docs)]

use crate::calls::{calls, give};
use crate::control;
use crate::processes::{self, Facts};
use crate::raw::{get, put};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fmt::Write as _;
use std::path::Path;
use std::ptr;

/// `NVML_ERROR_INVALID_ARGUMENT` and its like.
const INVALID: u32 = 2;
const NOT_SUPPORTED: u32 = 3;
const NOT_FOUND: u32 = 6;
const TOO_SHORT: u32 = 7;
const NO_DRIVER: u32 = 9;
const LOST: u32 = 15;

/// Most parts that a GPU in MIG mode has.
const MOST_PARTS: u32 = 7;

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Process {
    pid: c_uint,
    used: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// A GPU, or a part of one.
struct Device {
    uuid: String,
    total: u64,
    free: u64,
    busy: u32,
    /// Processes and the bytes of each.
    processes: Vec<(u32, u64)>,
    mode: String,
    /// Whether it is in MIG mode, although none of its parts is listed.
    divided: bool,
}

impl Device {
    fn is_part(&self) -> bool {
        self.uuid.starts_with("MIG-")
    }

    fn of_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        Some(Self {
            uuid: (*words.first()?).to_owned(),
            total: number(1) << 20,
            free: number(2) << 20,
            busy: number(3) as u32,
            processes: (0..number(4) as u32).map(|pid| (pid + 1, 0)).collect(),
            mode: words.get(5).map_or_else(String::new, |word| (*word).to_owned()),
            divided: false,
        })
    }

    fn of_folder(folder: &Path, index: u32) -> Self {
        let mut uuid = "GPU".to_owned();
        for (place, byte) in processes::uuid(index).into_iter().enumerate() {
            let dash = if [0, 4, 6, 8, 10].contains(&place) { "-" } else { "" };
            let _ = write!(uuid, "{dash}{byte:02x}");
        }
        Self {
            uuid,
            total: processes::GPU,
            free: processes::free(folder, index),
            busy: 0,
            processes: processes::on_gpu(folder, index),
            mode: String::new(),
            divided: Facts::read(folder.join(format!("gpu{index}"))).is_some_and(|facts| facts.number("mig") != 0),
        }
    }
}

/// What is there, in the order of handles, which count from 1.
fn devices() -> Result<Vec<Device>, u32> {
    if let Some(folder) = control::processes() {
        return Ok((0..processes::count(&folder)).map(|index| Device::of_folder(&folder, index)).collect());
    }
    let file = std::env::var_os("CUINSTR_STAND_IN_GPUS").ok_or(NO_DRIVER)?;
    let text = std::fs::read_to_string(file).map_err(|_| NO_DRIVER)?;
    Ok(text.lines().filter_map(Device::of_line).collect())
}

fn device(handle: *mut c_void) -> Result<Device, u32> {
    let place = handle.addr().checked_sub(1).ok_or(INVALID)?;
    let device = devices()?.into_iter().nth(place).ok_or(INVALID)?;
    if device.mode == "lost" { Err(LOST) } else { Ok(device) }
}

/// The handle of the first of some devices.
fn handle(wanted: impl Fn(usize, &Device) -> bool, nth: c_uint) -> Result<Option<*mut c_void>, u32> {
    let devices = devices()?;
    let found = devices.iter().enumerate().filter(|(place, device)| wanted(*place, device)).nth(nth as usize);
    Ok(found.map(|(place, _)| ptr::without_provenance_mut(place + 1)))
}

/// How many devices behind a GPU are its parts.
fn parts(handle: *mut c_void) -> Result<usize, u32> {
    Ok(devices()?.iter().skip(handle.addr()).take_while(|device| device.is_part()).count())
}

fn text(to: *mut c_char, room: c_uint, text: &str) -> Result<(), u32> {
    if text.len() + 1 > room as usize {
        return Err(TOO_SHORT);
    }
    for (index, byte) in text.bytes().chain([0]).enumerate() {
        put(to.wrapping_add(index), byte.cast_signed() as c_char);
    }
    Ok(())
}

calls! {
    fn nvmlInit_v2() { devices().map(drop) }
    fn nvmlInitWithFlags(_flags: c_uint) { devices().map(drop) }
    fn nvmlShutdown() { Ok(()) }
    fn nvmlDeviceGetCount_v2(count: *mut c_uint) { give(count, devices()?.iter().filter(|device| !device.is_part()).count() as c_uint) }
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut *mut c_void) {
        give(to, handle(|_, device| !device.is_part(), index)?.ok_or(INVALID)?)
    }
    fn nvmlDeviceGetUUID(of: *mut c_void, to: *mut c_char, room: c_uint) { text(to, room, &device(of)?.uuid) }
    fn nvmlDeviceGetName(of: *mut c_void, to: *mut c_char, room: c_uint) { device(of).and_then(|_| text(to, room, "stand-in")) }
    fn nvmlDeviceGetMinorNumber(of: *mut c_void, minor: *mut c_uint) { give(minor, of.addr().checked_sub(1).ok_or(INVALID)? as c_uint) }
    fn nvmlDeviceGetMemoryInfo_v2(of: *mut c_void, memory: *mut Memory) {
        let Device { total, free, .. } = device(of)?;
        let version = get(memory).ok_or(INVALID)?.version;
        give(memory, Memory { version, total, reserved: 0, free, used: total.saturating_sub(free) })
    }
    fn nvmlDeviceGetUtilizationRates(of: *mut c_void, rates: *mut [c_uint; 2]) {
        let device = device(of)?;
        if device.is_part() { Err(NOT_SUPPORTED) } else { give(rates, [device.busy, 0]) }
    }
    fn nvmlDeviceGetComputeMode(of: *mut c_void, mode: *mut c_uint) {
        give(mode, match device(of)?.mode.as_str() { "prohibited" => 2, "exclusive" => 3, _ => 0 })
    }
    fn nvmlDeviceGetMigMode(of: *mut c_void, now: *mut c_uint, later: *mut c_uint) {
        let mode = c_uint::from(device(of)?.divided || parts(of)? > 0);
        give(now, mode).and_then(|()| give(later, mode))
    }
    fn nvmlDeviceGetMaxMigDeviceCount(of: *mut c_void, count: *mut c_uint) { device(of).and_then(|_| give(count, MOST_PARTS)) }
    fn nvmlDeviceGetMigDeviceHandleByIndex(of: *mut c_void, index: c_uint, to: *mut *mut c_void) {
        let (first, count) = (of.addr(), parts(of)?);
        give(to, handle(|place, _| (first..first + count).contains(&place), index)?.ok_or(NOT_FOUND)?)
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(of: *mut c_void, count: *mut c_uint, places: *mut Process) {
        let found = device(of)?.processes;
        let room = get(count).ok_or(INVALID)? as usize;
        give(count, found.len() as c_uint)?;
        if room < found.len() { return Err(TOO_SHORT); }
        for (index, (pid, used)) in found.into_iter().enumerate() {
            give(places.wrapping_add(index), Process { pid, used, gpu_instance: c_uint::MAX, compute_instance: c_uint::MAX })?;
        }
        Ok(())
    }
    fn nvmlSystemGetDriverVersion(to: *mut c_char, room: c_uint) { text(to, room, "580.00") }
    fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) { give(version, 13_000) }
}
