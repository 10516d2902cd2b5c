//! Inputs: where they are, what they are called, what they hold.

use crate::diagnostic::{Code, Diagnostic};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One source as the user named it.
#[derive(Debug, Clone)]
pub struct Input {
    /// Path as spelled; `-` is standard input.
    pub path: PathBuf,
    /// Path for messages and for `#line`. Bytes that are no UTF-8 are replaced.
    pub name: String,
}

impl Input {
    /// The input that this argument names.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let name = if path.as_os_str() == "-" { "<stdin>".to_owned() } else { path.to_string_lossy().into_owned() };
        Self { path: path.to_owned(), name }
    }

    /// Whether it is standard input.
    #[must_use]
    pub fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The folder that it lies in, absolute and without links; the current one for standard input.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let folder = match self.path.parent() {
            Some(parent) if !self.is_stdin() && !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        folder.canonicalize().ok()
    }

    /// Its bytes.
    ///
    /// # Errors
    /// A diagnostic if it can't be read, or is too large to be worth reading.
    pub fn read(&self) -> Result<Vec<u8>, Box<Diagnostic>> {
        // One byte more than offsets of 32 bits can hold: enough for the library to see that it is too much, and `/dev/zero` ends.
        const LIMIT: u64 = 1 << 32;
        let read = |reader: &mut dyn Read| {
            let mut bytes = Vec::new();
            reader.take(LIMIT).read_to_end(&mut bytes).map(|_| bytes)
        };
        if self.is_stdin() {
            return read(&mut io::stdin().lock()).map_err(|error| cannot_read(&error));
        }
        let mut file = File::open(&self.path).map_err(|error| cannot_read(&error))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() >= LIMIT) {
            return Err(Box::new(Diagnostic::new(Code::TooLarge, Code::TooLarge.title()).help("split the file")));
        }
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let mut begin = Vec::new();
        (&mut file).take(ZEROS).read_to_end(&mut begin).map_err(|error| cannot_read(&error))?;
        if begin.len() as u64 == ZEROS && begin.iter().all(|byte| *byte == 0) {
            let message = "the file begins with zeros only: it holds neither source nor device code";
            return Err(Box::new(Diagnostic::new(Code::CannotRead, message).help("check how it was written")));
        }
        let rest = usize::try_from(length.saturating_sub(begin.len() as u64)).unwrap_or(0);
        begin.try_reserve_exact(rest + 1).map_err(|_| cannot_read(&io::ErrorKind::OutOfMemory.into()))?;
        file.take(LIMIT - begin.len() as u64).read_to_end(&mut begin).map_err(|error| cannot_read(&error))?;
        Ok(begin)
    }
}

/// A file that begins with so many zeros is not read any further.
const ZEROS: u64 = 1 << 16;

/// The diagnostic for a file that can't be read.
#[must_use]
pub fn cannot_read(error: &io::Error) -> Box<Diagnostic> {
    let (message, help) = match error.kind() {
        io::ErrorKind::NotFound => ("the file does not exist".to_owned(), "check the path"),
        io::ErrorKind::IsADirectory => ("this is a folder, not a file".to_owned(), "name the files in it, for example with `folder/*.cu`"),
        io::ErrorKind::PermissionDenied => ("the file may not be read".to_owned(), "make it readable with `chmod +r`"),
        _ => (format!("the file can't be read: {error}"), "check the path and the disk"),
    };
    Box::new(Diagnostic::new(Code::CannotRead, message).help(help))
}
