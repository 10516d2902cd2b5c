//! Tools that compile while the program runs. Each tool's own variables tell it to make code with polls, or PTX. What
//! the user has set stays.

use cuinstr::launcher;
use cuinstr::options::Limits;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Triton keeps its own ptxas, below a folder of packages.
const TRITON: &str = "triton/backends/nvidia/bin/ptxas";

/// Variables that name nvcc to tools that compile extensions: one of `PyTorch`, and one of `CuPy` and others.
const COMPILERS: [&str; 2] = ["PYTORCH_NVCC", "NVCC"];

/// Sets the variables for the program, which lies at this path. `fuel` if its launches have some. Gives sentences on the user's own settings that keep polls out.
pub(super) fn set(command: &mut Command, program: &Path, cache: &Path, fuel: bool) -> Vec<String> {
    if fuel {
        // How much the host says at each launch. The user's own flags come last, and win.
        let own = std::env::var(super::super::launch::FLAGS).unwrap_or_default();
        command.env(super::super::launch::FLAGS, format!("--fuel={} {own}", Limits::MAX_FUEL).trim_end());
    }
    let mut unless_set = |name: &str, value: OsString| {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    };
    // CuPy loads machine code otherwise, and what it keeps of that would be taken for this.
    unless_set("CUPY_COMPILE_WITH_PTX", "1".into());
    unless_set("CUPY_CACHE_DIR", cache.join("cupy").into());
    // Without an nvcc behind it ours can't do its work.
    if let (Ok(_), Ok(ours)) = (launcher::find("nvcc".as_ref()), link(cache, "nvcc")) {
        for name in COMPILERS {
            unless_set(name, ours.clone().into());
        }
    }
    // Triton and Inductor. Without a ptxas behind it ours can't do its work.
    let theirs = std::env::var_os("TRITON_PTXAS_PATH").map(PathBuf::from).or_else(|| triton(program));
    if let (Some(theirs), Ok(ours)) = (theirs, link(cache, launcher::ptxas::NAME)) {
        unless_set("CUINSTR_PTXAS", theirs.into());
        for name in ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"] {
            command.env(name, &ours);
        }
    }
    without_effect(|name| std::env::var(name).ok())
}

/// What is said of the user's own settings under which tools make code without polls.
fn without_effect(value: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut said = Vec::new();
    for name in COMPILERS {
        if let Some(compiler) = value(name).filter(|compiler| !compiler.is_empty() && !compiler.contains("cuinstr")) {
            said.push(format!(
                "{name} is `{compiler}`, so extensions that are compiled by it get no polls: unset it, or write \"cuinstr nvcc\""
            ));
        }
    }
    if value("CUPY_COMPILE_WITH_PTX").is_some_and(|value| value.parse() == Ok(0)) {
        said.push("CUPY_COMPILE_WITH_PTX is 0, so CuPy loads machine code from its cache: unset it".to_owned());
    }
    if let Some(folder) = value("CUPY_CACHE_DIR").filter(|folder| !folder.is_empty()) {
        said.push(format!(
            "CUPY_CACHE_DIR is `{folder}`, so CuPy may load machine code that it compiled before: unset it, or name another folder"
        ));
    }
    said
}

/// A link to this program by the name of a tool. Its path is the same for each run, so that caches which go by it hold.
fn link(cache: &Path, name: &str) -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = cache.join("links");
    let path = folder.join(name);
    if fs::read_link(&path).is_ok_and(|found| found == own) {
        return Ok(path);
    }
    fs::create_dir_all(&folder)?;
    let new = folder.join(format!("new-{}-{name}", std::process::id()));
    symlink(&own, &new)?;
    fs::rename(&new, &path)?;
    Ok(path)
}

/// The ptxas of the Triton that the program would import: of its own Python, of the environment's, or of the first on the search path.
fn triton(program: &Path) -> Option<PathBuf> {
    let of_program = |path: &Path| path.parent().and_then(Path::parent).map(Path::to_owned);
    let python = super::program::find("python3".as_ref());
    let mut roots: Vec<PathBuf> = of_program(program).into_iter().collect();
    roots.extend(["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| std::env::var_os(name).map(PathBuf::from)));
    roots.extend(python.as_deref().and_then(of_program));
    roots.extend(std::env::var_os("HOME").map(|home| Path::new(&home).join(".local")));
    roots.iter().find_map(|root| {
        let versions = fs::read_dir(root.join("lib")).into_iter().flatten().flatten().map(|entry| entry.path());
        let pythons = versions.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3")));
        let packages = pythons.flat_map(|path| ["site-packages", "dist-packages"].map(|folder| path.join(folder)));
        packages.map(|folder| folder.join(TRITON)).find(|path| path.is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_settings_that_keep_polls_out_are_told() {
        let said =
            |set: &[(&str, &str)]| without_effect(|name| set.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned()));
        assert_eq!(
            said(&[
                ("NVCC", "cuinstr nvcc"),
                ("PYTORCH_NVCC", "/links/cuinstr-nvcc"),
                ("CUPY_COMPILE_WITH_PTX", "1"),
                ("CUPY_CACHE_DIR", "")
            ]),
            [""; 0]
        );
        let all = said(&[("NVCC", "/usr/bin/nvcc"), ("PYTORCH_NVCC", "nvcc"), ("CUPY_COMPILE_WITH_PTX", "0"), ("CUPY_CACHE_DIR", "kept")]);
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(all[0].starts_with("PYTORCH_NVCC is `nvcc`, so"), "{all:?}");
    }

    #[test]
    fn tritons_own_ptxas_is_that_of_the_programs_python() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("lib/python3.12/site-packages").join(TRITON);
        fs::create_dir_all(own.parent().expect("a folder")).expect("folders");
        fs::write(&own, "").expect("a file");
        assert_eq!(triton(&folder.path().join("bin/python")), Some(own));
    }
}
