//! The sources of a project: what a configuration may speak of beside the files of one run.

use super::config::Config;
use memchr::memmem;
use std::cell::OnceCell;
use std::fs;
use std::path::Path;

/// Endings of files that may hold device code.
const ENDINGS: &[&str] = &["cu", "cuh", "h", "hh", "hpp", "hxx", "inl", "inc", "ipp", "tpp", "c", "cc", "cpp", "cxx"];
/// Largest source that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// The sources below a configuration's folder, read when first asked for. What it excludes, hidden folders and our own output are no sources.
pub(super) struct Sources<'a> {
    config: &'a Config,
    texts: OnceCell<Vec<(String, Vec<u8>)>>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(config: &'a Config) -> Self {
        Self { config, texts: OnceCell::new() }
    }

    /// Whether this holds for the path, relative to the project, and the text of one of them.
    pub(super) fn any(&self, holds: impl Fn(&str, &[u8]) -> bool) -> bool {
        let texts = self.texts.get_or_init(|| {
            let mut texts = Vec::new();
            self.read(&self.config.folder, "", &mut texts);
            texts
        });
        texts.iter().any(|(path, text)| holds(path, text))
    }

    fn read(&self, folder: &Path, prefix: &str, texts: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            // Links are not followed: a folder may hold a link to itself.
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') || self.config.excludes(&path) {
                continue;
            }
            if kind.is_dir() {
                self.read(&entry.path(), &format!("{path}/"), texts);
            } else if Path::new(&name).extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
                && entry.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST)
                && let Ok(text) = fs::read(entry.path())
                && memmem::find(&text, b"__cuinstr_").is_none()
            {
                texts.push((path, text));
            }
        }
    }
}

/// Whether the text holds the last part of this name as a word.
pub(super) fn names(text: &[u8], name: &str) -> bool {
    let word = name.rsplit("::").next().unwrap_or(name).as_bytes();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    memmem::find_iter(text, word)
        .any(|at| !is_part(at.checked_sub(1).and_then(|before| text.get(before))) && !is_part(text.get(at + word.len())))
}
