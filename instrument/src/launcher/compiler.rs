//! Which nvcc is meant.

use super::error::{Error, NOT_FOUND};
use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names of compilers that people put behind a launcher and that are no nvcc.
const OTHERS: &[&str] = &[
    "cc",
    "c++",
    "gcc",
    "g++",
    "clang",
    "clang++",
    "nvc",
    "nvc++",
    "nvfortran",
    "hipcc",
    "amdclang",
    "amdclang++",
    "icx",
    "icpx",
    "dpcpp",
    "acpp",
    "ccache",
    "sccache",
    "distcc",
];

/// Whether a program of this name is nvcc: `nvcc`, or `nvcc-` and a version or the like.
#[must_use]
pub fn is_nvcc(program: &OsStr) -> bool {
    let Some(name) = Path::new(program).file_name().and_then(OsStr::to_str) else { return false };
    let is_source = [".cu", ".cuh", ".h", ".hpp", ".inl"].iter().any(|ending| name.ends_with(ending));
    name == "nvcc" || name.starts_with("nvcc-") && !is_source
}

/// Why a program of this name can't be launched, if it is a compiler that is no nvcc.
#[must_use]
pub fn other_compiler(program: &OsStr) -> Option<Error> {
    let name = Path::new(program).file_name()?.to_str()?;
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let base = if OTHERS.contains(&name) { name } else { unversioned };
    // Cross compilers: `aarch64-linux-gnu-g++`.
    let is_other = OTHERS.iter().any(|other| base == *other || base.ends_with(&format!("-{other}")));
    if !is_other || Path::new(program).extension().is_some_and(|extension| extension == "cu") {
        return None;
    }
    let help = match base {
        "ccache" | "sccache" => "put it in front of a link to cuinstr named nvcc: `ccache links/nvcc …` (docs/PROJECTS.md)",
        _ => "cuinstr launches NVIDIA's nvcc only: `cuinstr nvcc …`, and in CMake -DCMAKE_CUDA_COMPILER=nvcc",
    };
    Some(Error { code: 2, ..Error::new(format!("`{name}` is not nvcc"), help) })
}

/// The program that the name or path stands for. This program itself, by whatever name, is passed over.
///
/// # Errors
/// If there is none.
pub fn find(named: &OsStr) -> Result<PathBuf, Error> {
    let path = Path::new(named);
    if path.components().count() > 1 && !is_this(path) {
        return if is_program(path) { Ok(path.to_owned()) } else { Err(missing(&format!("there is no program `{}`", path.display()))) };
    }
    let name = path.file_name().filter(|name| is_nvcc(name)).unwrap_or(OsStr::new("nvcc"));
    on_search_path(name).ok_or_else(|| missing(&format!("`{}` is neither on PATH nor in CUDA_HOME", name.display())))
}

/// The program of that name on the search path, else of the toolkit. This program itself, by whatever name, is passed over.
pub(super) fn on_search_path(name: &OsStr) -> Option<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).filter(|home| !home.is_empty()).map(PathBuf::from);
    let homes = homes.chain([PathBuf::from("/usr/local/cuda")]).map(|home| home.join("bin"));
    env::split_paths(&on_path).chain(homes).map(|folder| folder.join(name)).find(|path| is_program(path) && !is_this(path))
}

/// Whether ccache runs this program as its prefix, of which its key for an object says nothing. It tells all that it runs not to cache again.
pub(super) fn is_a_caches_prefix() -> bool {
    let Some(prefix) = env::var_os("CCACHE_PREFIX").filter(|_| env::var_os("CCACHE_DISABLE").is_some()) else { return false };
    let on_path = env::var_os("PATH").unwrap_or_default();
    prefix.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty()).map(|word| Path::new(OsStr::from_bytes(word))).any(
        |word| {
            let is_path = word.components().count() > 1;
            if is_path {
                is_this(word)
            } else {
                env::split_paths(&on_path).map(|folder| folder.join(word)).find(|path| is_program(path)).is_some_and(|path| is_this(&path))
            }
        },
    )
}

fn missing(message: &str) -> Error {
    let help = "install the CUDA toolkit, or name nvcc by its path: `cuinstr /usr/local/cuda/bin/nvcc …`";
    Error { code: NOT_FOUND, ..Error::new(message, help) }
}

/// Whether it is a file that may be run.
pub(super) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether it is this program, through links.
pub(super) fn is_this(path: &Path) -> bool {
    let own = env::current_exe().and_then(|path| path.canonicalize());
    matches!((own, path.canonicalize()), (Ok(own), Ok(other)) if own == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvcc_is_told_from_sources_and_from_other_compilers() {
        for name in ["nvcc", "/usr/local/cuda-13.0/bin/nvcc", "nvcc-13.0", "./nvcc-wrapper"] {
            assert!(is_nvcc(OsStr::new(name)), "{name}");
        }
        for name in ["nvcc.cu", "nvcc-bug.cu", "anvcc", "nvcc_test", ""] {
            assert!(!is_nvcc(OsStr::new(name)), "{name}");
        }
        for name in ["clang++", "/opt/bin/clang++-18", "nvc++", "hipcc", "g++", "x86_64-linux-gnu-g++-13", "ccache"] {
            let error = other_compiler(OsStr::new(name)).expect(name);
            assert!(error.to_string().contains("is not nvcc") && error.code == 2, "{error}");
        }
        for name in ["kernel.cu", "clang.cu", "explain", "a/b.cu"] {
            assert_eq!(other_compiler(OsStr::new(name)), None, "{name}");
        }
    }
}
