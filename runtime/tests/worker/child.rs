//! The fake child: a worker whose kernels do what their names say.

use crate::fake::{Memory, Pipe, stop_report};
use crate::{BRIEF, LONG};
use cuinstr_runtime::Report;
use cuinstr_runtime::worker::Worker;
use serde_json::{Value, json};
use std::thread;

struct Fake {
    pipe: Pipe,
    memory: Memory,
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
                Fake { pipe, memory: Memory::default() }.serve();
            }
        }
    }
}

impl Fake {
    fn serve(mut self) {
        while let Some((request, payload)) = self.pipe.hear() {
            let serial = &request["serial"];
            let (task, about) = request["task"].as_object().and_then(|task| task.iter().next()).expect("one task");
            match task.as_str() {
                "open" => self.pipe.done(serial, &json!({ "ready": { "device": "a fake", "arch": 90 } }), &[]),
                "load" if payload == b"bad" => {
                    let fault = json!({ "call": "cuModuleLoadData", "code": 218, "name": "CUDA_ERROR_INVALID_PTX" });
                    let refusal = json!({ "module": { "fault": fault, "log": "line 3" } });
                    self.pipe.refused(serial, &refusal);
                }
                "start" => self.start(serial, about),
                "cancel" => self.pipe.ended(&about["launch"], &stopped("cancelled")),
                other => self.memory.serve(&mut self.pipe, serial, (other, about), payload),
            }
        }
    }

    fn start(&mut self, serial: &Value, order: &Value) {
        let launch = &order["launch"];
        assert!(self.memory.modules.contains_key(&order["module"].as_u64().expect("a number")), "the module is there");
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
                        self.memory.buffers.get_mut(&buffer).expect("a buffer").iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
                    }
                }
                self.pipe.ended(launch, &completed());
            }
            "counts modules" => {
                self.pipe
                    .ended(launch, &json!({ "completed": { "elapsed": self.memory.modules.len(), "late": false, "fuel_used": null } }));
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
    stop_report(0xa2, 2, &[])
}
