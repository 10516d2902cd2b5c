//! The socket by which `cuinstr ps`, `stop`, `pause`, `resume`, `where` and the parent ask this process (`cuinstr_abi::sockets`).

use crate::half::{self, Hold};
use crate::sites;
use cuinstr_abi::sockets::{self, Pause, Whereabouts};
use serde::Serialize;
use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest that one who asks is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request.
const LONGEST: u64 = 8 << 10;

/// The socket's path and its process, for the end.
static PATH: Mutex<Option<(u32, CString)>> = Mutex::new(None);

/// Begins to listen. What keeps that from working keeps nothing else from working.
pub(crate) fn begin() {
    let _ = listen();
}

fn listen() -> io::Result<()> {
    // SAFETY: the call has no conditions.
    let user = unsafe { libc::geteuid() };
    let folder = sockets::folder(std::env::var_os("XDG_RUNTIME_DIR"), std::env::var_os("TMPDIR"), user);
    private(&folder, user)?;
    let numbers = std::iter::repeat_with(half::next_socket).take_while(|number| *number < 64);
    let mut names = numbers.map(|number| folder.join(sockets::name(std::process::id(), number)));
    // A name that somebody listens at is a half's of another release.
    let path = names.find(|path| UnixStream::connect(path).is_err()).ok_or(io::ErrorKind::AddrInUse)?;
    // One of an earlier process of this number: it is gone.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let kept = CString::new(path.as_os_str().as_bytes())?;
    *PATH.lock().unwrap_or_else(PoisonError::into_inner) = Some((std::process::id(), kept));
    let serve = move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream);
        }
    };
    without_signals(|| std::thread::Builder::new().name("cuinstr-control".into()).spawn(serve)).map(|_| ())
}

/// Makes a folder that only its user may enter, or sees that it is one.
fn private(folder: &Path, user: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    let of_others = found.mode() & 0o077;
    let is_private = found.is_dir() && found.uid() == user && of_others == 0;
    if is_private { Ok(()) } else { Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may enter the folder")) }
}

/// Signals are for the program's own threads.
fn without_signals<T>(does: impl FnOnce() -> T) -> T {
    // SAFETY: both sets live through the calls.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let done = does();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        done
    }
}

fn answer(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    BufReader::new(stream).take(LONGEST).read_line(&mut request)?;
    let (word, rest) = request.trim_end().split_once(' ').unwrap_or((request.trim_end(), ""));
    let is_of_session = || std::env::var_os("CUINSTR_RUN").map(PathBuf::from) == Some(rest.into());
    match word {
        "list" => tell(stream, half::running()),
        "stop" if rest.is_empty() || is_of_session() => {
            // The process may end as soon as they have stopped. One who asks hears then that the answer is over.
            tell(stream, half::running().into_iter().filter(|launch| launch.polled))?;
            half::stop_all();
            Ok(())
        }
        "pause" => {
            half::hold(if rest == "blocks" { Hold::Blocks } else { Hold::Later });
            tell(stream, half::running())
        }
        "resume" => {
            half::hold(Hold::Nothing);
            Ok(())
        }
        "state" => tell(stream, [half::state()]),
        "where" => tell(
            stream,
            half::running()
                .into_iter()
                .filter(|launch| !matches!(launch.pause, Some(Pause::Paused { .. })))
                .map(|launch| Whereabouts { loops: sites::loops_of(&launch.kernel), launch }),
        ),
        _ => Ok(()),
    }
}

/// Answers, one line each.
fn tell(mut stream: &UnixStream, answers: impl IntoIterator<Item = impl Serialize>) -> io::Result<()> {
    for answer in answers {
        writeln!(stream, "{}", serde_json::to_string(&answer)?)?;
    }
    Ok(())
}

/// At the process's end: takes the socket away.
pub(crate) fn end() {
    let path = PATH.try_lock().ok().and_then(|mut path| path.take());
    if let Some((_, path)) = path.filter(|(process, _)| *process == std::process::id()) {
        // SAFETY: the path ends with a zero.
        unsafe { libc::unlink(path.as_ptr()) };
    }
}
