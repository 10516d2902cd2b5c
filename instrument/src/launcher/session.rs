//! The folder of one call of nvcc: links in place of the host's compiler, and the overlays that its passes read. It is
//! removed when the call ends.
//!
//! All sessions of a user lie in one folder, beside the cache that they share:
//!
//! - `cuinstr-UID/lock`: held while sessions are made and removed.
//! - `cuinstr-UID/cache/`: rewritten headers, removed with the last session.
//! - `cuinstr-UID/s-*/lock`: held by the call and all processes below it, as long as one of them lives.
//! - `cuinstr-UID/s-*/session.json`: what those processes must know.
//! - `cuinstr-UID/s-*/bin/`, `host/`: links named as the host's compiler, for the search path and in place of a folder.
//! - `cuinstr-UID/s-*/hook/`: a link named `cicc`, where the PTX pass is asked for.
//!
//! A session whose lock is free belongs to a killed build, and the next call removes it. The locks are those of `flock`. The
//! system frees such a lock with the last process that has the file open, however that process ends. So nothing depends on
//! the time, or on process ids, which come back.

use super::arguments::CommandLine;
use super::compiler::is_program;
use super::error::Error;
use super::hook::{self, Hook};
use super::process::absolute;
use super::settings::Settings;
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Names under which nvcc may call a host compiler that it was given as a folder, or as one of these.
const HOST_NAMES: [&str; 6] = ["gcc", "g++", "cc", "c++", "clang", "clang++"];

/// What the processes below a call must know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Knowledge {
    /// How to rewrite.
    pub(super) settings: Settings,
    /// The nvcc that runs.
    pub(super) nvcc: OsString,
    /// Folder of the host compilers that are linked in `host/`.
    pub(super) host_folder: Option<OsString>,
    /// The search path as it was.
    pub(super) search_path: OsString,
    /// Where rewritten headers are shared.
    pub(super) cache: OsString,
    /// nvcc's compiler to PTX, where this program stands in for it.
    pub(super) cicc: Option<OsString>,
}

/// A session that this process began, and ends.
#[derive(Debug)]
pub(super) struct Session {
    base: PathBuf,
    folder: PathBuf,
    knowledge: Knowledge,
    /// Kept open: it says that the session is in use.
    _lock: File,
}

impl Session {
    /// Makes the folder, and removes what killed calls left.
    ///
    /// # Errors
    /// If that fails, or a host compiler is named that can't be stood in for.
    pub(super) fn begin(nvcc: &Path, line: &CommandLine, settings: &Settings, hook: Option<&Hook>) -> Result<Self, Error> {
        let base = base()?;
        let (guard, base) = lock_base(base)?;
        sweep(&base);
        let made = Self::make(base.clone(), nvcc, line, settings, hook);
        if made.is_err() {
            sweep(&base);
            remove_if_unused(&base);
        }
        drop(guard);
        made
    }

    fn make(base: PathBuf, nvcc: &Path, line: &CommandLine, settings: &Settings, hook: Option<&Hook>) -> Result<Self, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| Error::io("can't write", &path, &error)
        };
        let folder = tempfile::Builder::new().prefix("s-").tempdir_in(&base).map_err(failed(&base))?.keep();
        let lock = File::create(folder.join("lock")).map_err(failed(&folder))?;
        lock.lock_shared().map_err(failed(&folder))?;
        // The processes below inherit it, and with it the lock.
        fcntl_setfd(&lock, FdFlags::empty()).map_err(|error| failed(&folder)(error.into()))?;

        let mut names = vec![OsString::from("gcc"), OsString::from("g++")];
        let mut host_folder = None;
        for (_, value) in named_compilers(line) {
            let path = PathBuf::from(value);
            if path.is_dir() || path.components().count() > 1 {
                let in_folder = if path.is_dir() { path } else { path.parent().map_or_else(PathBuf::new, Path::to_owned) };
                host_folder = Some(absolute(&in_folder).into_os_string());
            } else {
                names.push(path.into_os_string());
            }
        }
        let cache = base.join("cache");
        let knowledge = Knowledge {
            settings: settings.clone(),
            nvcc: absolute(nvcc).into_os_string(),
            host_folder,
            search_path: env::var_os("PATH").unwrap_or_default(),
            cache: cache.clone().into_os_string(),
            cicc: hook.map(|hook| absolute(&hook.cicc).into_os_string()),
        };
        fill(&folder, &knowledge, &names, line).map_err(failed(&folder))?;
        make_private(&cache).map_err(failed(&cache))?;
        // Not before all of it is there: what ends a session waits for the lock that the caller holds.
        Ok(Self { base, folder, knowledge, _lock: lock })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of links in place of the host's compiler.
    pub(super) fn links(&self) -> OsString {
        self.folder.join("bin").into_os_string()
    }

    /// nvcc's search path: our links first.
    pub(super) fn search_path(&self) -> OsString {
        let mut path = self.links();
        path.push(":");
        path.push(&self.knowledge.search_path);
        path
    }

    /// nvcc's arguments, with our links in place of host compilers that are named by their paths.
    pub(super) fn arguments(&self, line: &CommandLine) -> Vec<OsString> {
        let mut words = line.words.clone();
        for &(word, at) in &line.host_compilers {
            let bytes = words[word].as_bytes();
            if let Some(stand_in) = self.stand_in(OsStr::from_bytes(&bytes[at..])) {
                let mut changed = bytes[..at].to_vec();
                changed.extend_from_slice(stand_in.as_os_str().as_bytes());
                words[word] = OsString::from_vec(changed);
            }
        }
        words
    }

    /// Variables that nvcc reads, with our links in them.
    pub(super) fn variables(&self, line: &CommandLine) -> Vec<(&'static str, OsString)> {
        let mut changed = Vec::new();
        for (name, value) in &line.variables {
            let mut value = value.as_bytes().to_vec();
            for compiler in &line.variable_compilers {
                if let Some(stand_in) = self.stand_in(compiler)
                    && let Some(at) = memchr::memmem::find(&value, compiler.as_bytes())
                {
                    value.splice(at..at + compiler.len(), stand_in.as_os_str().as_bytes().iter().copied());
                }
            }
            changed.push((*name, OsString::from_vec(value)));
        }
        if let Some(value) = host_variable()
            && let Some(stand_in) = self.stand_in(&value)
        {
            changed.push((HOST_VARIABLE, stand_in.into_os_string()));
        }
        changed
    }

    /// The link that stands in for a host compiler; none where the search path does, or where there is no such compiler, as nvcc will say.
    fn stand_in(&self, value: &OsStr) -> Option<PathBuf> {
        let path = Path::new(value);
        let links = self.folder.join("host");
        if path.is_dir() {
            return Some(links).filter(|links| fs::read_dir(links).is_ok_and(|mut entries| entries.next().is_some()));
        }
        path.file_name().filter(|_| path.components().count() > 1).map(|name| links.join(name)).filter(|link| link.is_symlink())
    }

    /// What nvcc prints of its commands, as it would print it without us.
    pub(super) fn translate_commands(&self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        let mut first = self.links().into_vec();
        first.push(b':');
        replace(&mut text, &first, b"");
        if let Some(host) = &self.knowledge.host_folder {
            replace(&mut text, self.folder.join("host").as_os_str().as_bytes(), host.as_bytes());
        }
        text
    }

    /// Whether a step came by in which polls are inserted.
    pub(super) fn was_reached(&self) -> bool {
        self.folder.join("reached").exists()
    }
}

/// Writes links and knowledge.
fn fill(folder: &Path, knowledge: &Knowledge, names: &[OsString], line: &CommandLine) -> io::Result<()> {
    let own = env::current_exe()?;
    let bin = folder.join("bin");
    fs::create_dir(&bin)?;
    for name in names {
        let place = bin.join(name);
        if !place.is_symlink() {
            symlink(&own, place)?;
        }
    }
    if let Some(host) = &knowledge.host_folder {
        let links = folder.join("host");
        fs::create_dir(&links)?;
        let given = named_compilers(line).filter_map(|(_, value)| Path::new(&value).file_name().map(OsStr::to_owned));
        for name in HOST_NAMES.iter().map(OsString::from).chain(given) {
            let place = links.join(&name);
            if is_program(&Path::new(host).join(&name)) && !place.is_symlink() {
                symlink(&own, place)?;
            }
        }
    }
    if knowledge.cicc.is_some() {
        let links = folder.join(hook::FOLDER);
        fs::create_dir(&links)?;
        symlink(&own, links.join(hook::CICC))?;
    }
    fs::write(folder.join("session.json"), serde_json::to_vec(knowledge)?)
}

impl Drop for Session {
    fn drop(&mut self) {
        let Ok((guard, base)) = lock_base(self.base.clone()) else { return };
        // A process that is still writing there loses its place; nothing reads it any more.
        for _ in 0..3 {
            if fs::remove_dir_all(&self.folder).is_ok() {
                break;
            }
        }
        remove_if_unused(&base);
        drop(guard);
    }
}

impl Knowledge {
    /// What the call that this process runs below wrote.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("session.json");
        let bytes = fs::read(&path).map_err(|error| Error::io("can't read", &path, &error))?;
        serde_json::from_slice(&bytes).map_err(|error| Error::io("can't read", &path, &error.into()))
    }
}

/// The variable that names a host compiler for nvcc.
const HOST_VARIABLE: &str = "NVCC_CCBIN";

fn host_variable() -> Option<OsString> {
    env::var_os(HOST_VARIABLE).filter(|value| !value.is_empty())
}

/// All host compilers that are named, the word that names each first where there is one.
fn named_compilers(line: &CommandLine) -> impl Iterator<Item = (Option<usize>, OsString)> + '_ {
    let words =
        line.host_compilers.iter().map(|&(word, at)| (Some(word), OsStr::from_bytes(&line.words[word].as_bytes()[at..]).to_owned()));
    let all =
        words.chain(line.variable_compilers.iter().map(|value| (None, value.clone()))).chain(host_variable().map(|value| (None, value)));
    // An empty name is nvcc's to refuse.
    all.filter(|(_, value)| !value.is_empty())
}

fn replace(text: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&text[at..], from) {
        text.splice(at + found..at + found + from.len(), to.iter().copied());
        at += found + to.len();
    }
}

/// The folder of all of this user's sessions. One that somebody else made there, or that others may write to, is not used.
fn base() -> Result<PathBuf, Error> {
    let user = rustix::process::geteuid().as_raw();
    let temporary = temporary();
    let shared = temporary.join(format!("cuinstr-{user}"));
    let is_ours = |path: &Path| {
        path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user && metadata.mode().trailing_zeros() >= 6)
    };
    match make_private(&shared) {
        Ok(()) if is_ours(&shared) => Ok(shared),
        Ok(()) => {
            let own = tempfile::Builder::new().prefix(&format!("cuinstr-{user}-")).tempdir_in(&temporary);
            own.map(tempfile::TempDir::keep).map_err(|error| Error::io("can't make a folder in", &temporary, &error))
        }
        Err(error) => Err(Error::io("can't make the folder", &shared, &error)),
    }
}

/// Where temporary files go. Links of ours stand on the search path, which can't name a folder with a colon.
fn temporary() -> PathBuf {
    let folder = env::temp_dir();
    let path = if folder.as_os_str().is_empty() { folder } else { absolute(&folder) };
    if path.as_os_str().is_empty() || path.as_os_str().as_bytes().contains(&b':') { PathBuf::from("/tmp") } else { path }
}

/// Makes a folder that no other user can look into; one that is there already is fine.
fn make_private(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Waits until no other call makes or removes a session here.
fn lock_base(base: PathBuf) -> Result<(File, PathBuf), Error> {
    let failed = |error: &io::Error| Error::io("can't lock", &base, error);
    loop {
        match make_private(&base).and_then(|()| File::create(base.join("lock"))) {
            Ok(lock) => {
                lock.lock().map_err(|error| failed(&error))?;
                // The last session may have removed the folder while this one waited.
                let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
                if let (Ok(held), Ok(there)) = (lock.metadata(), fs::metadata(base.join("lock")))
                    && inode(held) == inode(there)
                {
                    return Ok((lock, base));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                // Where another call has begun, it is not empty.
                let _ = fs::remove_dir(&base);
                return Err(failed(&error));
            }
        }
    }
}

/// Sessions in the folder.
fn sessions(base: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"s-")).map(|entry| entry.path())
}

/// Removes sessions whose lock is free.
fn sweep(base: &Path) {
    for session in sessions(base) {
        let is_live = File::open(session.join("lock")).is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)));
        if !is_live {
            let _ = fs::remove_dir_all(session);
        }
    }
}

/// Removes the folder if no session is left in it. The caller holds its lock.
///
/// The lock's file goes last. Once it is gone another call may begin here, and all of what that call writes must stay.
fn remove_if_unused(base: &Path) {
    if sessions(base).next().is_some() {
        return;
    }
    let lock = base.join("lock");
    for entry in fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| *path != lock) {
        let _ = if entry.is_dir() { fs::remove_dir_all(entry) } else { fs::remove_file(entry) };
    }
    let _ = fs::remove_file(lock);
    let _ = fs::remove_dir(base);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_replaced_everywhere() {
        let mut text = b"a/x:b a/x:c".to_vec();
        replace(&mut text, b"a/x:", b"");
        assert_eq!(text, b"b c");
        // What is put in is not looked at again, and what stands behind it is found.
        let mut text = b"the ab, and ab ab".to_vec();
        replace(&mut text, b"ab", b"cabbage");
        assert_eq!(text, b"the cabbage, and cabbage cabbage");
    }

    /// A file that can be run.
    fn program(path: &Path) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(path, "").expect("it can be written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// A session of a command line that names host compilers by a path, in a word and in a variable, and one by its name.
    fn session(base: &Path, host: &Path, hook: Option<&Hook>) -> (Session, CommandLine) {
        let word = |text: &str| OsString::from(text);
        let named = host.join("g++-12").into_os_string();
        let mut flag = word("-ccbin=");
        flag.push(&named);
        let mut flags = word("-O2 -ccbin ");
        flags.push(&named);
        let line = CommandLine {
            words: vec![word("-c"), flag, word("a.cu"), word("-ccbin"), word("my-cc")],
            host_compilers: vec![(1, 7), (4, 0)],
            variables: vec![("NVCC_APPEND_FLAGS", flags)],
            variable_compilers: vec![named],
            ..CommandLine::default()
        };
        let session = Session::make(base.to_owned(), Path::new("/opt/nvcc"), &line, &Settings::default(), hook);
        (session.expect("a session"), line)
    }

    #[test]
    fn links_stand_in_for_host_compilers_that_are_named_by_their_paths() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let host = folder.path().join("host");
        fs::create_dir(&host).expect("a folder");
        for name in ["gcc", "g++-12"] {
            program(&host.join(name));
        }
        fs::write(host.join("clang"), "no program").expect("it can be written");
        let (session, line) = session(folder.path(), &host, None);
        let names = |folder: &str| {
            let entries = fs::read_dir(session.folder().join(folder)).into_iter().flatten().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().expect("a name")).collect();
            names.sort();
            names
        };
        assert_eq!(names("bin"), ["g++", "gcc", "my-cc"]);
        assert_eq!(names("host"), ["g++-12", "gcc"], "only what is there and can be run");
        assert_eq!(names("hook"), Vec::<String>::new());
        let compiler = session.folder().join("host/g++-12");
        let text = compiler.to_str().expect("a path of UTF-8");
        let words: Vec<String> = session.arguments(&line).into_iter().map(|word| word.into_string().expect("UTF-8")).collect();
        assert_eq!(words, ["-c", &format!("-ccbin={text}"), "a.cu", "-ccbin", "my-cc"]);
        assert_eq!(session.variables(&line), [("NVCC_APPEND_FLAGS", OsString::from(format!("-O2 -ccbin {text}")))]);
        assert_eq!(session.stand_in(host.as_os_str()), Some(session.folder().join("host")), "a folder for a folder");
        assert_eq!(session.stand_in(OsStr::new("g++")), None, "the search path does");
        assert_eq!(session.stand_in(host.join("absent").as_os_str()), None);
        // What nvcc prints names the user's own.
        let printed = format!("{}:/usr/bin {text} -c", session.links().to_str().expect("UTF-8"));
        let told = session.translate_commands(printed.as_bytes());
        assert_eq!(String::from_utf8_lossy(&told), format!("/usr/bin {}/g++-12 -c", host.display()));
        let known = Knowledge::read(session.folder()).expect("what was written");
        assert_eq!((known.nvcc, known.cicc), (OsString::from("/opt/nvcc"), None));
        assert_eq!(known.host_folder, Some(host.into_os_string()));
        assert!(!session.was_reached());
        fs::write(session.folder().join("reached"), "").expect("it can be written");
        assert!(session.was_reached());
    }

    #[test]
    fn a_session_goes_when_its_call_ends_and_a_dead_one_with_the_next() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let host = folder.path().join("host");
        fs::create_dir(&host).expect("a folder");
        let base = folder.path().join("base");
        let (guard, base) = lock_base(base).expect("the folder can be locked");
        let (live, _) = session(&base, &host, None);
        // One whose lock no process holds.
        let dead = base.join("s-dead");
        fs::create_dir(&dead).expect("a folder");
        fs::write(dead.join("lock"), "").expect("it can be written");
        fs::write(base.join("other"), "").expect("it can be written");
        sweep(&base);
        assert!(live.folder().is_dir() && !dead.exists() && base.join("other").is_file());
        drop(guard);
        let own = live.folder().to_owned();
        drop(live);
        assert!(!own.exists() && !base.exists(), "the last session takes the folder along");
    }

    #[test]
    fn what_one_call_removes_is_nothing_of_another() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let base = folder.path().join("base");
        let cache = base.join("cache");
        let (guard, _) = lock_base(base.clone()).expect("the folder can be locked");
        make_private(&cache).expect("a cache");
        (0..2000).for_each(|number| drop(File::create(cache.join(number.to_string()))));
        let next = std::thread::scope(|scope| {
            let next = scope.spawn(|| {
                while base.join("lock").exists() {}
                let (guard, base) = lock_base(base.clone()).expect("the folder can be locked");
                let session = tempfile::Builder::new().prefix("s-").tempdir_in(&base).expect("a session");
                make_private(&cache).expect("a cache");
                (guard, session)
            });
            remove_if_unused(&base);
            drop(guard);
            next.join().expect("the next call goes on")
        });
        assert!(cache.is_dir(), "another call removed the cache of a session that goes on");
        drop(next);
    }
}
