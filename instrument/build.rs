//! Puts the host runtime together (`src/launcher/host_runtime/`): its text, and what the C++ compiler of this machine makes of it, so that no compilation of a
//! user's has to do that again. Assembly costs each of them some milliseconds, the text would cost a fifth of a second. And a number for this crate's
//! source, by which caches tell what two builds of one version make.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of the host runtime, in their order.
const PARTS: [&str; 15] = [
    "system",
    "cudart",
    "text",
    "environment",
    "process",
    "driver",
    "rows",
    "report",
    "room",
    "watch",
    "pause",
    "launch",
    "control",
    "listen",
    "stand_in",
];
const FOLDER: &str = "src/launcher/host_runtime";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    carry_interposer();
    println!("cargo::rerun-if-changed=src");
    if env::var_os("CARGO_FEATURE_LAUNCHER").is_none() {
        return;
    }
    println!("cargo::rustc-env=CUINSTR_SOURCE={:016x}", source(0xcbf2_9ce4_8422_2325, Path::new("src")));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it"));
    let read = |name: &str| fs::read_to_string(Path::new(FOLDER).join(format!("{name}.hpp"))).expect("it is part of the crate");
    let text: String = PARTS.iter().map(|name| read(name)).collect();
    let redirect = read("redirect");
    // Host runtimes of two versions in one program do not meet.
    let hash = hashed(0xcbf2_9ce4_8422_2325, (text.clone() + &redirect).as_bytes());
    let marked = |text: &str| text.replace("@HASH@", &format!("{hash:016x}"));
    let source = out.join("host_runtime.cpp");
    fs::write(&source, marked(&text)).expect("OUT_DIR can be written");
    fs::write(out.join("redirect.hpp"), marked(&redirect)).expect("OUT_DIR can be written");
    // Without a compiler, or for another machine, users' compilers read the text.
    let assembly = assembly(&source, &out.join("host_runtime.s")).unwrap_or_default();
    fs::write(out.join("host_runtime.inc"), inline(&assembly)).expect("OUT_DIR can be written");
    println!("cargo::rustc-env=CUINSTR_HOST_MACHINE={}", env::var("CARGO_CFG_TARGET_ARCH").expect("Cargo sets it"));
}

/// Has the command carry the library that `cuinstr run` loads in front of programs, where the build says where that lies.
fn carry_interposer() {
    println!("cargo::rustc-check-cfg=cfg(carries_interposer)");
    println!("cargo::rerun-if-env-changed=CUINSTR_INTERPOSER");
    if let Some(path) = env::var_os("CUINSTR_INTERPOSER").filter(|path| !path.is_empty()) {
        let path = fs::canonicalize(&path).unwrap_or_else(|error| panic!("CUINSTR_INTERPOSER: {}: {error}", path.display()));
        println!("cargo::rerun-if-changed={}", path.display());
        println!("cargo::rustc-env=CUINSTR_INTERPOSER={}", path.display());
        println!("cargo::rustc-cfg=carries_interposer");
    }
}

/// A number for the folder's files, by their names and bytes, in the names' order.
fn source(seed: u64, folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("it is part of the crate");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    paths.iter().fold(seed, |sum, path| {
        let sum = hashed(sum, path.to_string_lossy().as_bytes());
        if path.is_dir() { source(sum, path) } else { hashed(sum, &fs::read(path).expect("it is part of the crate")) }
    })
}

fn hashed(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Compiles it for any program or library, and without anything that a program's own object has once.
fn assembly(source: &Path, output: &Path) -> Option<String> {
    let compiler = cc::Build::new().cpp(true).cargo_metadata(false).cargo_warnings(false).opt_level_str("s").try_get_compiler().ok()?;
    if !compiler.is_like_gnu() && !compiler.is_like_clang() {
        return None;
    }
    let mut command = compiler.to_command();
    command.args(["-std=c++11", "-g0", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fno-lto", "-fno-asynchronous-unwind-tables"]);
    command.args(["-fno-stack-protector", "-fno-threadsafe-statics", "-S", "-o"]).arg(output).arg(source);
    let done = command.output().ok()?;
    assert!(done.status.success(), "the host runtime does not compile:\n{}", String::from_utf8_lossy(&done.stderr));
    fs::read_to_string(output).ok()
}

/// As a top-level `asm` of C++, with labels that no compiler uses.
fn inline(assembly: &str) -> String {
    let mut text = String::from("__asm__(\n\".pushsection .text\\n\"\n");
    for line in assembly.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if [".file", ".ident", ".addrsig", ".addrsig_sym"].contains(&word) || word.starts_with('#') || word.is_empty() {
            continue;
        }
        let line = line.replace(".L", ".L__cuinstr_");
        text.push('"');
        text.push_str(&line.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t"));
        text.push_str("\\n\"\n");
    }
    text.push_str("\".popsection\\n\");\n");
    if assembly.is_empty() { String::new() } else { text }
}
