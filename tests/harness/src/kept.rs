//! What compilers made of a text, kept from one run of the tests to the next: the same text, arguments and compilers give the same result.
//!
//! A result is a file of the folder `kept` beside the built programs, named by all that went into it. `CUINSTR_KEPT=none` makes all anew.

use crate::digest::digest;
use crate::process;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Once};
use std::time::{Duration, SystemTime};

/// What nobody asks for so long is removed.
const LONG: Duration = Duration::from_secs(14 * 86_400);

/// Variables that change what compilers do.
const VARIABLES: [&str; 6] = ["CPATH", "CPLUS_INCLUDE_PATH", "CXX", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS"];

/// What tells the host's compiler from others.
static HOST: LazyLock<String> = LazyLock::new(|| {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "g++".into());
    let version = process::run(Command::new(compiler).arg("--version"), Duration::from_secs(60)).map(|finished| finished.stdout);
    format!("{version:?} {:?}", VARIABLES.map(|name| std::env::var(name).ok()))
});

/// A result that is kept, or will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    path: Option<PathBuf>,
}

impl Kept {
    /// What the host's compiler, and what else is named, makes of these.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        if std::env::var_os("CUINSTR_KEPT").is_some_and(|asked| asked == "none") {
            return Self { path: None };
        }
        let name = digest(std::iter::once(HOST.as_bytes()).chain(parts));
        // The program lies in `debug` of the build folder, or in a folder of that.
        let program = std::env::current_exe().unwrap_or_default();
        let built = program.ancestors().find(|folder| folder.join("build").is_dir() && folder.join("deps").is_dir());
        Self { path: built.map(|built| built.join("kept").join(name)) }
    }

    /// The result, if there is one.
    #[must_use]
    pub fn read(&self) -> Option<Vec<u8>> {
        let path = self.path.as_ref()?;
        let bytes = fs::read(path).ok()?;
        // Those that are asked for stay.
        let _ = File::options().write(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps the result. Where that can't be done, it is made again the next time.
    pub fn keep(&self, bytes: &[u8]) {
        static SWEPT: Once = Once::new();
        let Some(path) = &self.path else { return };
        let Some(folder) = path.parent() else { return };
        let _ = fs::create_dir_all(folder);
        SWEPT.call_once(|| sweep(folder));
        // Another process may read it meanwhile.
        let _ = tempfile::NamedTempFile::new_in(folder).and_then(|file| {
            fs::write(file.path(), bytes)?;
            file.persist(path).map_err(|error| error.error)
        });
    }
}

fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > LONG)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_back_to_who_asks_for_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept { path: Some(folder.path().join("kept/here")) };
        assert_eq!(kept.read(), None);
        kept.keep(b"result");
        assert_eq!(kept.read().as_deref(), Some(&b"result"[..]));
        assert_eq!(Kept::of([&b"a"[..], b"b"]), Kept::of([&b"a"[..], b"b"]));
        assert_ne!(Kept::of([&b"a"[..], b"b"]), Kept::of([&b"ab"[..]]));
        assert!(Kept::of([&b"a"[..]]).path.is_some() || std::env::var_os("CUINSTR_KEPT").is_some());
    }

    #[test]
    fn what_is_old_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&new, "new").expect("it is written");
        File::create(&old).and_then(|file| file.set_modified(SystemTime::now() - 2 * LONG)).expect("it is written");
        sweep(folder.path());
        assert!(new.exists() && !old.exists());
    }
}
