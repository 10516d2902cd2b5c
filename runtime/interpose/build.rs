//! Compiles the host half (`instrument/src/launcher/host_runtime/`), with what this host does in its own way in place of what programs of the CUDA runtime do.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of the half in their order: those that all hosts share, and this one's own.
const PARTS: [(&str, &str); 13] = [
    (SHARED, "system"),
    (OWN, "names"),
    (SHARED, "text"),
    (SHARED, "environment"),
    (SHARED, "process"),
    (SHARED, "driver"),
    (OWN, "sites"),
    (SHARED, "report"),
    (SHARED, "watch"),
    (SHARED, "pause"),
    (SHARED, "launch"),
    (SHARED, "control"),
    (OWN, "host"),
];
const SHARED: &str = "../../instrument/src/launcher/host_runtime";
const OWN: &str = "half";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SHARED}");
    println!("cargo::rerun-if-changed={OWN}");
    let read = |folder: &str, name: &str| fs::read_to_string(Path::new(folder).join(format!("{name}.hpp"))).expect("a part of the half");
    let text: String = PARTS.iter().map(|(folder, name)| read(folder, name)).collect();
    let source = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join("half.cpp");
    fs::write(&source, text.replace("@HASH@", "run")).expect("OUT_DIR can be written");
    let mut build = cc::Build::new();
    build.cpp(true).cpp_link_stdlib(None).std("c++11").opt_level(2).pic(true).file(&source);
    build.flag("-fno-exceptions").flag("-fno-rtti").flag("-fno-threadsafe-statics");
    build.compile("cuinstr_half_of_run");
    // What is kept in a cache holds for the source that made it.
    let rewriter = ["../../instrument/src", "../../instrument/ptx/src", "../../instrument/verify/src", "../abi/src", "src"];
    for folder in rewriter {
        println!("cargo::rerun-if-changed={folder}");
    }
    let number = rewriter.iter().fold(0xcbf2_9ce4_8422_2325, |number, folder| hashed(number, Path::new(folder)));
    println!("cargo::rustc-env=CUINSTR_INTERPOSE_SOURCE={number:016x}");
}

/// A number for the files of a folder, in the order of their names.
fn hashed(number: u64, path: &Path) -> u64 {
    if path.is_dir() {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(path).expect("a folder of the repository").map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        return paths.iter().fold(number, |number, path| hashed(number, path));
    }
    let bytes = fs::read(path).expect("a file of the repository");
    bytes.iter().fold(number, |number, byte| (number ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
