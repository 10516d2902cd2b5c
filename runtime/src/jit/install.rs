//! What to do where NVRTC is not whole.

use std::path::PathBuf;

/// Where a missing library is said to come from.
const INSTALL: &str = "install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` (nvidia-cuda-nvrtc-cu12 for CUDA 12)";

/// Variable by which the loader finds libraries.
const LOADER_PATH: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };

/// The message for a machine without NVRTC on the loader's path.
pub(super) fn no_nvrtc(found: &[String]) -> String {
    match found {
        [] => format!("NVRTC (libnvrtc) is not on the loader's path: {INSTALL}, and put the folder that holds libnvrtc on {LOADER_PATH}"),
        [first, ..] => format!("NVRTC (libnvrtc) is not on the loader's path, but lies in {first}: put that folder on {LOADER_PATH}"),
    }
}

/// The message for NVRTC without its builtins.
pub(super) fn no_builtins(library: &str, beside: Option<&str>) -> String {
    let folder = beside.map_or_else(|| "the folder of libnvrtc".to_owned(), |beside| format!("{beside}, beside libnvrtc"));
    format!(
        "NVRTC can't open {library}, which comes with it and must be of the same release: {INSTALL}, put {library} into {folder}, and put that folder on {LOADER_PATH}"
    )
}

/// Folders in which toolkits commonly lie and that hold NVRTC: of `CUDA_HOME` and `CUDA_PATH`, and where installers put them.
#[must_use]
pub fn folders_with_nvrtc() -> Vec<String> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let known = [PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")];
    let folders = homes.chain(known).flat_map(|home| ["lib64", "lib", "bin"].map(|folder| home.join(folder)));
    let holds_nvrtc = |folder: &PathBuf| {
        let mut entries = folder.read_dir().into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_str().is_some_and(is_nvrtc))
    };
    folders.filter(holds_nvrtc).map(|folder| folder.display().to_string()).collect()
}

/// The folder that NVRTC was loaded from, where the system says.
pub(super) fn folder_of_loaded() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (folder, name) = line.get(line.find('/')?..)?.rsplit_once('/')?;
        is_nvrtc(name).then(|| folder.to_owned())
    })
}

/// The library of builtins that NVRTC's log names.
pub(super) fn builtins(log: &str) -> String {
    let start = log.find("libnvrtc-builtins").or_else(|| log.find("nvrtc-builtins"));
    let name = start.map_or("libnvrtc-builtins", |start| log[start..].split(char::is_whitespace).next().unwrap_or_default());
    name.trim_end_matches('.').to_owned()
}

fn is_nvrtc(name: &str) -> bool {
    name.starts_with("libnvrtc.so") || name.starts_with("nvrtc64_") && name.to_ascii_lowercase().ends_with(".dll")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_library_and_the_folder() {
        let log =
            "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n  Make sure that libnvrtc-builtins.so.13.0 is installed correctly.";
        assert_eq!(builtins(log), "libnvrtc-builtins.so.13.0");
        assert_eq!(builtins(""), "libnvrtc-builtins");
        let said = no_builtins("libnvrtc-builtins.so.13.0", Some("/opt/cuda/lib"));
        assert!(said.contains("put libnvrtc-builtins.so.13.0 into /opt/cuda/lib, beside libnvrtc,"), "{said}");
        assert!(no_nvrtc(&["/opt/cuda/lib".into()]).contains("lies in /opt/cuda/lib: put that folder on"));
        assert!(no_nvrtc(&[]).contains("install the CUDA toolkit"));
    }

    #[test]
    fn the_library_is_told_from_its_neighbours() {
        for (name, expected) in
            [("libnvrtc.so.13", true), ("libnvrtc-builtins.so.13.0", false), ("libnvrtc_static.a", false), ("nvrtc64_120_0.dll", true)]
        {
            assert_eq!(is_nvrtc(name), expected, "{name}");
        }
    }
}
