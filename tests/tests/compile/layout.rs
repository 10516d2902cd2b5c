//! nvcc and NVRTC lay the control block out as the host writes it. Its symbols bear their names. The site map can be
//! read back from a module.

use crate::{Checks, Tools};
use cuinstr::options::Options;
use cuinstr_abi::control::{C_FIELD, ControlBlock, Field, PauseBlock, SiteCount, StopRecord};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::ptx::{self, Variable};
use cuinstr_harness::record;
use cuinstr_harness::unit::{STRICT, Unit};
use std::fmt::Write as _;
use std::mem::size_of;

const KERNEL: &str = "__global__ void wait(volatile int* flag) { while (*flag == 0) { } }\n";

/// How a module is made.
const WAYS: &[(&str, &[&str])] = &[("whole-program code", &["-ptx"]), ("relocatable code", &["-ptx", "-rdc=true"])];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    for (what, args) in WAYS {
        checks.add(format!("layout: the control block of {what} is the host's"), move |tools| {
            layout(&with_layout()?.nvcc(&tools.nvcc, &strict(args))?.expect_clean()?.text())
        });
        checks.add(format!("layout: the symbols of {what} have their names and linkage"), move |tools| {
            let weak = args.contains(&"-rdc=true");
            symbols(&unit()?.nvcc(&tools.nvcc, &strict(args))?.expect_clean()?.text(), weak)
        });
    }
    checks.add("layout: the control block of NVRTC is the host's", |tools| {
        layout(&with_layout()?.nvrtc(tools.nvrtc.as_ref()?, &["--gpu-architecture=compute_75"])?.expect_clean()?.text())
    });
    checks.add("layout: the symbols of NVRTC have their names and linkage", |tools| {
        for (args, weak) in
            [(&["--gpu-architecture=compute_75"][..], false), (&["--gpu-architecture=compute_75", "--relocatable-device-code=true"], true)]
        {
            symbols(&unit()?.nvrtc(tools.nvrtc.as_ref()?, args)?.expect_clean()?.text(), weak)?;
        }
        Ok(())
    });
    for name in ["connected", "lambda_extended", "hang/mbarrier_asm", "mandelbrot"] {
        checks.add(format!("layout: the site map of {name} comes back from PTX and cubin"), move |tools| site_map(tools, name));
    }
}

fn strict<'a>(args: &[&'a str]) -> Vec<&'a str> {
    STRICT.iter().chain(args).copied().chain(["-arch=sm_75", "-std=c++17"]).collect()
}

fn unit() -> Result<Unit, String> {
    Unit::new("wait.cu", KERNEL).rewrite(&Options::default())
}

/// Size and fields of each struct that both sides share.
fn structs() -> [(&'static str, usize, Vec<Field>); 4] {
    [
        (ControlBlock::C_NAME, size_of::<ControlBlock>(), ControlBlock::fields()),
        (StopRecord::C_NAME, size_of::<StopRecord>(), StopRecord::fields()),
        (SiteCount::C_NAME, size_of::<SiteCount>(), SiteCount::fields()),
        (PauseBlock::C_NAME, size_of::<PauseBlock>(), PauseBlock::fields()),
    ]
}

/// The kernel, and a variable that holds every size and offset. `offsetof` is in a header; this is what nvcc and NVRTC make it of.
fn with_layout() -> Result<Unit, String> {
    let mut unit = unit()?;
    let mut text = "\n__device__ unsigned long long layout[] = {".to_owned();
    for (name, _, fields) in structs() {
        let _ = write!(text, "sizeof({name}), alignof({name}), ");
        for field in fields {
            let _ = write!(text, "__INTADDR__(&((({name}*)0)->{C_FIELD}{0})), sizeof((({name}*)0)->{C_FIELD}{0}), ", field.name);
        }
    }
    unit.text.extend_from_slice((text + "};\n").as_bytes());
    Ok(unit)
}

fn variable(ptx: &str, name: &str) -> Result<Variable, String> {
    let found = ptx::variables(ptx).into_iter().find(|variable| variable.name == name);
    found.ok_or_else(|| format!("the PTX has no variable called {name}"))
}

fn layout(ptx: &str) -> Result<(), String> {
    // The 64-bit words come as bytes, zeros at the end left out.
    let mut bytes = variable(ptx, "layout")?.bytes().ok_or("the layout is no list of bytes")?;
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let device: Vec<u64> =
        bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))).collect();
    let mut host = Vec::new();
    let mut names = Vec::new();
    for (name, size, fields) in structs() {
        host.extend([size as u64, 8]);
        names.extend([format!("size of {name}"), format!("alignment of {name}")]);
        for field in fields {
            host.extend([field.offset as u64, field.size as u64]);
            names.extend([format!("offset of {name}::{}", field.name), format!("size of {name}::{}", field.name)]);
        }
    }
    if device.len() != host.len() {
        return Err(format!("{} numbers from the device, {} from the host", device.len(), host.len()));
    }
    for ((device, host), name) in device.iter().zip(&host).zip(names) {
        if device != host {
            return Err(format!("{name}: {device} on the device, {host} on the host"));
        }
    }
    Ok(())
}

fn symbols(ptx: &str, weak: bool) -> Result<(), String> {
    let linkage = if weak { ".weak .global" } else { ".global" };
    let control = variable(ptx, cuinstr_abi::control::CONTROL_SYMBOL)?;
    let flag = variable(ptx, cuinstr_abi::control::FLAG_SYMBOL)?;
    for found in [&control, &flag] {
        if !found.declaration.starts_with(linkage) {
            return Err(format!("{} is declared `{}`, not `{linkage}`", found.name, found.declaration));
        }
    }
    // ABI version 1 and action 0 are one 64-bit word, launch 1 and no counting of fuel another; then the flag's address.
    let first: Vec<&str> = control.values.iter().take(3).map(String::as_str).collect();
    if first != ["1", "1", "generic(cuinstr_flag_v1)"] {
        return Err(format!("the control block begins with {first:?}"));
    }
    if control.values.iter().skip(3).any(|value| value != "0") {
        return Err(format!("the control block is not zero behind its first words: {:?}", control.values));
    }
    Ok(())
}

fn site_map(tools: &Tools, name: &str) -> Result<(), String> {
    let fixture = tools.fixture(name)?;
    let unit = Unit::plain(fixture)?.rewrite(&Options::default())?;
    let arch = format!("-arch=sm_{}", fixture.header.min_arch);
    let ptx = unit.nvcc(&tools.nvcc, &["-ptx", &arch])?.expect_clean()?.text();
    let mut from_ptx = Vec::new();
    for variable in ptx::variables(&ptx).iter().filter(|variable| variable.name.contains("__cuinstr_sites_")) {
        from_ptx.extend(record::site_maps(&variable.bytes().ok_or("a site map is no list of bytes")?)?);
    }
    let mut expected = unit.site_maps.clone();
    for (what, mut found) in
        [("PTX", from_ptx), ("cubin", record::site_maps(&unit.nvcc(&tools.nvcc, &["-cubin", &arch])?.expect_clean()?.image)?)]
    {
        found.sort_by(|a, b| a.file.cmp(&b.file));
        expected.sort_by(|a, b| a.file.cmp(&b.file));
        if found != expected {
            return Err(format!("{what} holds {found:#?}\nwhere the rewriter gave {expected:#?}"));
        }
    }
    Ok(())
}
