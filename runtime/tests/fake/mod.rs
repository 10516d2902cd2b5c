//! What fake workers share: the protocol of `runtime/src/worker/wire.rs`, spoken by hand, modules and buffers, and reports.

use cuinstr_abi::control::{SITE_SLOTS, SiteCount, StopRecord};
use cuinstr_abi::sites::SiteMap;
use cuinstr_runtime::Report;
use cuinstr_runtime::report::Launched;
use cuinstr_runtime::sources::NoSources;
use serde_json::{Value, json};
use std::collections::HashMap;
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

/// The modules and buffers of a fake worker, by their numbers.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) modules: HashMap<u64, Vec<u8>>,
    pub(crate) buffers: HashMap<u64, Vec<u8>>,
}

impl Memory {
    /// Does a task that is about modules or buffers alone, and answers.
    pub(crate) fn serve(&mut self, pipe: &mut Pipe, serial: &Value, (task, about): (&str, &Value), payload: Vec<u8>) {
        let id = |name: &str| about[name].as_u64().expect("a number");
        match task {
            "load" => drop(self.modules.insert(id("module"), payload)),
            "find" => return pipe.done(serial, &json!({ "kernel": { "name": about["kernel"] } }), &[]),
            "blank" => drop(self.buffers.insert(id("buffer"), vec![0; id("bytes") as usize])),
            "fill" => drop(self.buffers.insert(id("buffer"), payload)),
            "write" => {
                let (buffer, offset) = (id("buffer"), id("offset") as usize);
                self.buffers.get_mut(&buffer).expect("a buffer")[offset..offset + payload.len()].copy_from_slice(&payload);
            }
            "read" => {
                let (from, bytes) = (id("offset") as usize, id("bytes") as usize);
                return pipe.done(serial, &json!("bytes"), &self.buffers[&id("buffer")][from..from + bytes]);
            }
            "forget" => {
                let numbers = |name: &str| about[name].as_array().expect("numbers").iter().map(|number| number.as_u64().expect("a number"));
                numbers("modules").for_each(|module| drop(self.modules.remove(&module)));
                numbers("buffers").for_each(|buffer| drop(self.buffers.remove(&buffer)));
                return;
            }
            other => panic!("{other}"),
        }
        pipe.done(serial, &json!("nothing"), &[]);
    }
}

/// The report of a stop at this site for this reason.
pub(crate) fn stop_report(site: u64, why: u32, maps: &[SiteMap]) -> Report {
    let record = StopRecord {
        claimed: 1,
        published: 1,
        site,
        why,
        late: 0,
        block: [0; 3],
        thread: [5, 0, 0],
        start_ns: 0,
        fuel_used: 0,
        elapsed_ns: 0,
        elapsed_cycles: 0,
        reserved: 0,
        unlisted: 32,
        sites: [SiteCount { site: 0, threads: 0 }; SITE_SLOTS],
    };
    let launched = Launched { kernel: "k", grid: [1; 3], block: [32, 1, 1], ..Launched::default() };
    Report::new(&record, &launched, maps, &NoSources)
}
