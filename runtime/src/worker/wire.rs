//! What a worker and its parent say to each other, and how it is framed.
//!
//! Each side first sends sixteen bytes that no version will ever change: eight of [`MAGIC`], the protocol's version,
//! the control block's. After that come frames: length of the message, length of the payload, the message as JSON, the
//! payload as it is (a module, a buffer). The child obeys its parent. The parent validates everything that its child
//! sends, since a kernel may have written over the child's memory.

use super::words::{End, Refusal};
use cuinstr_abi::control::ABI_VERSION;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// First bytes of either side.
const MAGIC: [u8; 8] = *b"cuinstrW";
/// Version of the messages below.
pub(super) const VERSION: u32 = 1;
/// Longest message, in bytes.
const MOST_MESSAGE: u32 = 1 << 20;
/// Longest payload that a child takes from its parent, in bytes: more than a GPU has.
pub(super) const MOST_PAYLOAD: u64 = 1 << 40;

/// What either side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Speech {
    /// Version of the messages.
    pub(super) protocol: u32,
    /// Version of the control block.
    pub(super) abi: u32,
}

/// What this build speaks.
pub(super) const OURS: Speech = Speech { protocol: VERSION, abi: ABI_VERSION };

/// From parent to child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    /// The answer bears the same.
    pub(super) serial: u64,
    pub(super) task: Task,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    /// Make a context on this device. The first task of all.
    Open { device: usize },
    /// Load the payload as a module.
    Load { module: u64 },
    /// Find a kernel of a module.
    Find { module: u64, kernel: String },
    /// Allocate bytes, zeroed.
    Blank { buffer: u64, bytes: usize },
    /// Allocate the payload's bytes and fill them with it.
    Fill { buffer: u64 },
    /// Write the payload into a buffer.
    Write { buffer: u64, offset: usize },
    /// Answer with a buffer's bytes.
    Read { buffer: u64, offset: usize, bytes: usize },
    /// Launch a kernel. Its end comes by itself.
    Start(Box<Order>),
    /// Stop a launch. Has no answer.
    Cancel { launch: u64 },
    /// Give back what is no longer needed. Has no answer.
    Forget { modules: Vec<u64>, buffers: Vec<u64> },
}

/// A launch in all its parts. Durations are in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) launch: u64,
    pub(super) module: u64,
    pub(super) kernel: String,
    pub(super) arguments: Vec<Parameter>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: Option<[u32; 3]>,
    pub(super) shared_bytes: u32,
    pub(super) is_cooperative: bool,
    pub(super) is_timed: bool,
    pub(super) timeout: Option<u64>,
    /// From now on.
    pub(super) deadline: Option<u64>,
    pub(super) grace: u64,
    pub(super) begin_within: u64,
    pub(super) by_host_clock: bool,
    pub(super) budget: Option<u64>,
    pub(super) fuel: Option<u64>,
    pub(super) count_fuel: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Parameter {
    /// The address of a buffer.
    Buffer(u64),
    /// A value.
    Bytes(Vec<u8>),
}

/// From child to parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Message {
    /// The task was done.
    Done { serial: u64, answer: Answer },
    /// It could not be done.
    Refused { serial: u64, refusal: Refusal },
    /// A launch is over, or will never be.
    Ended { launch: u64, end: Box<End> },
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// There is nothing to say.
    Nothing,
    /// The context is ready.
    Ready { device: String, arch: u32 },
    /// A kernel's name as declared.
    Kernel { name: String },
    /// The payload is what was asked for.
    Bytes,
}

/// Says what this build speaks.
pub(super) fn greet(stream: &mut UnixStream) -> io::Result<()> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&OURS.protocol.to_le_bytes());
    bytes[12..].copy_from_slice(&OURS.abi.to_le_bytes());
    stream.write_all(&bytes)
}

/// What the other side speaks; an error of kind `InvalidData` if that is nothing like this.
pub(super) fn greeted(stream: &mut UnixStream, until: Instant) -> io::Result<Speech> {
    let mut bytes = [0; 16];
    read_exact(stream, &mut bytes, Some(until))?;
    if bytes[..8] != MAGIC {
        return Err(rubbish("does not begin as a worker does"));
    }
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok(Speech { protocol: word(8), abi: word(12) })
}

/// Sends a frame. A peer that does not take it until then is given up with an error of kind `TimedOut`; half a frame may have been sent.
pub(super) fn send(stream: &mut UnixStream, message: &impl Serialize, payload: &[u8], until: Option<Instant>) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MOST_MESSAGE);
    let length = length.ok_or_else(|| rubbish(format!("a message of {} bytes is too long", text.len())))?;
    let mut head = Vec::with_capacity(12 + text.len());
    head.extend(length.to_le_bytes());
    head.extend((payload.len() as u64).to_le_bytes());
    head.extend(text);
    for mut part in [&head[..], payload] {
        while !part.is_empty() {
            stream.set_write_timeout(left(until)?)?;
            match stream.write(part) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => part = &part[count..],
                Err(error) => retried(error)?,
            }
        }
    }
    Ok(())
}

/// Receives a frame. `most` says how many bytes of payload the message may bring; more of anything is an error of kind `InvalidData`, before
/// room is made for it.
pub(super) fn receive<T: DeserializeOwned>(
    stream: &mut UnixStream,
    until: Option<Instant>,
    most: impl FnOnce(&T) -> u64,
) -> io::Result<(T, Vec<u8>)> {
    let mut head = [0; 12];
    read_exact(stream, &mut head, until)?;
    let [a, b, c, d, rest @ ..] = head;
    let (length, payload) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(rest));
    if length > MOST_MESSAGE {
        return Err(rubbish(format!("a message of {length} bytes")));
    }
    let mut text = vec![0; length as usize];
    read_exact(stream, &mut text, until)?;
    let message: T = serde_json::from_slice(&text).map_err(|error| rubbish(format!("a message that can't be read ({error})")))?;
    let most = most(&message);
    if payload > most {
        return Err(rubbish(format!("{payload} bytes where at most {most} were asked for")));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(payload as usize).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    bytes.resize(payload as usize, 0);
    read_exact(stream, &mut bytes, until)?;
    Ok((message, bytes))
}

fn read_exact(stream: &mut UnixStream, mut bytes: &mut [u8], until: Option<Instant>) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_read_timeout(left(until)?)?;
        match stream.read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) => retried(error)?,
        }
    }
    Ok(())
}

/// Time left, as a socket wants it: `None` for no bound.
fn left(until: Option<Instant>) -> io::Result<Option<Duration>> {
    let Some(until) = until else { return Ok(None) };
    let left = until.saturating_duration_since(Instant::now());
    // A socket takes a timeout of zero for none at all.
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

/// Whether the call may be made again.
fn retried(error: io::Error) -> io::Result<()> {
    match error.kind() {
        // A socket's own timeout; the caller looks at the clock.
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(()),
        _ => Err(error),
    }
}

fn rubbish(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn what_is_sent_is_received() {
        let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
        let big = vec![7; 3 << 20];
        let sent = big.clone();
        let sender = std::thread::spawn(move || {
            greet(&mut here).and_then(|()| send(&mut here, &Request { serial: 4, task: Task::Fill { buffer: 9 } }, &sent, Some(soon())))
        });
        assert_eq!(greeted(&mut there, soon()).expect("a greeting"), OURS);
        let (request, payload): (Request, _) = receive(&mut there, Some(soon()), |_| MOST_PAYLOAD).expect("a frame");
        assert!(matches!(request, Request { serial: 4, task: Task::Fill { buffer: 9 } }));
        assert_eq!(payload, big);
        sender.join().expect("no panic").expect("it was sent");
    }

    fn received(bytes: &[u8], most: u64) -> io::ErrorKind {
        let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
        here.write_all(bytes).expect("it fits the socket");
        drop(here);
        receive::<Message>(&mut there, Some(soon()), |_| most).expect_err("it is wrong").kind()
    }

    fn frame(text: &str, payload: u64) -> Vec<u8> {
        let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
        bytes.extend(payload.to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    #[test]
    fn what_is_too_long_wrong_or_cut_off_is_told_apart() {
        let done = r#"{"done":{"serial":1,"answer":"nothing"}}"#;
        assert_eq!(received(&frame(done, 0)[..20], 0), io::ErrorKind::UnexpectedEof);
        assert_eq!(received(&frame(done, 5), 4), io::ErrorKind::InvalidData);
        assert_eq!(received(&frame(done, 5), 5), io::ErrorKind::UnexpectedEof);
        assert_eq!(received(&frame("{}", 0), 0), io::ErrorKind::InvalidData);
        assert_eq!(received(&[0xff; 64], 0), io::ErrorKind::InvalidData);
        assert_eq!(received(b"", 0), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn nobody_waits_longer_than_told() {
        let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
        let since = Instant::now();
        let until = || Some(Instant::now() + Duration::from_millis(30));
        let read = receive::<Message>(&mut there, until(), |_| 0).expect_err("nothing was sent");
        let written = send(&mut here, &"x", &vec![0; 64 << 20], until()).expect_err("nobody reads");
        assert_eq!([read.kind(), written.kind()], [io::ErrorKind::TimedOut; 2]);
        assert!(since.elapsed() < Duration::from_secs(5));
    }
}
