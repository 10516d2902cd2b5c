//! The fake child: a worker whose kernels do what their names say.

use crate::fake::Pipe;
use crate::{BRIEF, LONG};
use cuinstr_runtime::Report;
use cuinstr_runtime::control::{SITE_SLOTS, SiteCount, StopRecord};
use cuinstr_runtime::report::Launched;
use cuinstr_runtime::sources::NoSources;
use cuinstr_runtime::worker::Worker;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::thread;

struct Fake {
    pipe: Pipe,
    buffers: HashMap<u64, Vec<u8>>,
    modules: HashMap<u64, Vec<u8>>,
}

/// A child that speaks through standard input. Unless its behaviour says otherwise it is a worker whose kernels do what their names say.
pub(crate) fn fake(behaviour: &str) {
    let mut pipe = Pipe::of_standard_input();
    match behaviour {
        "silent" => thread::sleep(LONG),
        "chatty" => {
            pipe.write(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            thread::sleep(LONG);
        }
        "dead" => std::process::exit(3),
        "closed" => {
            pipe.0.shutdown(std::net::Shutdown::Both).expect("a pipe");
            thread::sleep(LONG);
        }
        "older" => {
            pipe.greet(77, 5);
            thread::sleep(LONG);
        }
        "starter" => {
            let error = Worker::builder().program("any").start().expect_err("it is a worker itself");
            println!("{error}");
        }
        _ => {
            pipe.greet(1, 1);
            if pipe.is_greeted() {
                Fake { pipe, buffers: HashMap::new(), modules: HashMap::new() }.serve();
            }
        }
    }
}

impl Fake {
    fn serve(mut self) {
        while let Some((request, payload)) = self.pipe.hear() {
            let serial = &request["serial"];
            let (task, about) = request["task"].as_object().and_then(|task| task.iter().next()).expect("one task");
            let id = |name: &str| about[name].as_u64().expect("a number");
            match task.as_str() {
                "open" => self.pipe.done(serial, &json!({ "ready": { "device": "a fake", "arch": 90 } }), &[]),
                "load" if payload == b"bad" => {
                    let fault = json!({ "call": "cuModuleLoadData", "code": 218, "name": "CUDA_ERROR_INVALID_PTX" });
                    let refusal = json!({ "module": { "fault": fault, "log": "line 3" } });
                    self.pipe.refused(serial, &refusal);
                }
                "load" => {
                    self.modules.insert(id("module"), payload);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "find" => self.pipe.done(serial, &json!({ "kernel": { "name": about["kernel"] } }), &[]),
                "blank" => {
                    self.buffers.insert(id("buffer"), vec![0; id("bytes") as usize]);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "fill" => {
                    self.buffers.insert(id("buffer"), payload);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "write" => {
                    let (buffer, offset) = (id("buffer"), id("offset") as usize);
                    self.buffers.get_mut(&buffer).expect("a buffer")[offset..offset + payload.len()].copy_from_slice(&payload);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "read" => {
                    let (from, bytes) = (id("offset") as usize, id("bytes") as usize);
                    let contents = self.buffers[&id("buffer")][from..from + bytes].to_vec();
                    self.pipe.done(serial, &json!("bytes"), &contents);
                }
                "start" => self.start(serial, about),
                "cancel" => self.pipe.ended(&about["launch"], &stopped("cancelled")),
                "forget" => {
                    for module in about["modules"].as_array().expect("numbers") {
                        self.modules.remove(&module.as_u64().expect("a number"));
                    }
                    for buffer in about["buffers"].as_array().expect("numbers") {
                        self.buffers.remove(&buffer.as_u64().expect("a number"));
                    }
                }
                other => panic!("{other}"),
            }
        }
    }

    fn start(&mut self, serial: &Value, order: &Value) {
        let launch = &order["launch"];
        assert!(self.modules.contains_key(&order["module"].as_u64().expect("a number")), "the module is there");
        let kernel = order["kernel"].as_str().expect("a name");
        match kernel {
            "dies" => std::process::exit(4),
            "stalls" => thread::sleep(LONG),
            "babbles" => self.pipe.write(&[0xee; 4096]),
            "floods" => self.pipe.frame(&json!({ "done": { "serial": serial, "answer": "nothing" } }), 1 << 40),
            "answers others" => self.pipe.done(&json!(serial.as_u64().expect("a number") + 7), &json!("nothing"), &[]),
            "ends others" => self.pipe.ended(&json!(12345), &completed()),
            _ => {}
        }
        self.pipe.done(serial, &json!("nothing"), &[]);
        match kernel {
            "adds one" => {
                for argument in order["arguments"].as_array().expect("arguments") {
                    if let Some(buffer) = argument["buffer"].as_u64() {
                        self.buffers.get_mut(&buffer).expect("a buffer").iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                    }
                }
                self.pipe.ended(launch, &completed());
            }
            "counts modules" => {
                self.pipe.ended(launch, &json!({ "completed": { "elapsed": self.modules.len(), "late": false, "fuel_used": null } }));
            }
            "leaves" => self.pipe.ended(launch, &stopped("deadline")),
            "stays" => self.pipe.ended(launch, &json!({ "undrained": { "why": "deadline", "since": 7_000_000, "report": report() } })),
            "faults" => {
                let fault = json!({ "call": "cuEventQuery", "code": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS" });
                self.pipe.ended(launch, &json!({ "faulted": { "fault": fault } }));
            }
            "faults late" => {
                thread::sleep(BRIEF);
                let fault = json!({ "call": "cuEventQuery", "code": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS" });
                self.pipe.ended(launch, &json!({ "faulted": { "fault": fault } }));
            }
            "is deaf" => {
                self.pipe.ended(launch, &completed());
                thread::sleep(LONG);
            }
            // "waits" and "is mute" say no more.
            _ => {}
        }
    }
}

fn completed() -> Value {
    json!({ "completed": { "elapsed": 5000, "late": false, "fuel_used": null } })
}

fn stopped(why: &str) -> Value {
    json!({ "stopped": { "why": why, "latency": 30_000, "report": report() } })
}

pub(crate) fn report() -> Report {
    let record = StopRecord {
        claimed: 1,
        published: 1,
        site: 0xa2,
        why: 2,
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
    Report::new(&record, &launched, &[], &NoSources)
}
