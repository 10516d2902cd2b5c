//! A fake worker's end of the pipe: the protocol of `runtime/src/worker/wire.rs`, spoken by hand.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The parent is at the other end of standard input.
pub(crate) struct Pipe(pub(crate) UnixStream);

/// What either side says first.
pub(crate) fn greeting(protocol: u32, abi: u32) -> Vec<u8> {
    let mut bytes = b"cuinstrW".to_vec();
    bytes.extend(protocol.to_le_bytes());
    bytes.extend(abi.to_le_bytes());
    bytes
}

impl Pipe {
    pub(crate) fn of_standard_input() -> Self {
        Self(UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().expect("standard input")))
    }

    /// Greets as a worker of that protocol and that control block does.
    pub(crate) fn greet(&mut self, protocol: u32, abi: u32) {
        self.write(&greeting(protocol, abi));
    }

    /// Whether the parent greets; one that no longer wants a spare does not.
    pub(crate) fn is_greeted(&mut self) -> bool {
        self.0.read_exact(&mut [0; 16]).is_ok()
    }

    pub(crate) fn hear(&mut self) -> Option<(Value, Vec<u8>)> {
        let mut head = [0; 12];
        self.0.read_exact(&mut head).ok()?;
        let [a, b, c, d, rest @ ..] = head;
        let mut text = vec![0; u32::from_le_bytes([a, b, c, d]) as usize];
        self.0.read_exact(&mut text).ok()?;
        let mut payload = vec![0; u64::from_le_bytes(rest) as usize];
        self.0.read_exact(&mut payload).ok()?;
        Some((serde_json::from_slice(&text).expect("JSON"), payload))
    }

    pub(crate) fn say(&mut self, message: &Value, payload: &[u8]) {
        self.frame(message, payload.len() as u64);
        self.write(payload);
    }

    /// A message that promises a payload of so many bytes.
    pub(crate) fn frame(&mut self, message: &Value, payload: u64) {
        let text = message.to_string();
        let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
        bytes.extend(payload.to_le_bytes());
        bytes.extend(text.as_bytes());
        self.write(&bytes);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.0.write_all(bytes).is_err() {
            // The parent has gone, or closed the pipe before it kills.
            std::process::exit(0);
        }
    }

    pub(crate) fn done(&mut self, serial: &Value, answer: &Value, payload: &[u8]) {
        self.say(&json!({ "done": { "serial": serial, "answer": answer } }), payload);
    }

    pub(crate) fn refused(&mut self, serial: &Value, refusal: &Value) {
        self.say(&json!({ "refused": { "serial": serial, "refusal": refusal } }), &[]);
    }

    pub(crate) fn ended(&mut self, launch: &Value, end: &Value) {
        self.say(&json!({ "ended": { "launch": launch, "end": end } }), &[]);
    }
}
