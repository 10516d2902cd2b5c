//! The fake worker: it does what the names of the candidates' second kernels say.

use crate::fake::{Memory, Pipe, stop_report};
use cuinstr_runtime::Report;
use serde_json::{Value, json};

struct Fake {
    pipe: Pipe,
    memory: Memory,
    launches: usize,
}

/// What the process does.
pub(crate) fn serve() {
    // What a real worker's kernels print would be the evaluation's output.
    assert_eq!(std::env::var("CUINSTR_EVALUATE").as_deref(), Ok("silent"));
    let mut pipe = Pipe::of_standard_input();
    pipe.greet(1, 1);
    if pipe.is_greeted() {
        Fake { pipe, memory: Memory::default(), launches: 0 }.serve();
    }
}

impl Fake {
    fn serve(mut self) {
        while let Some((request, payload)) = self.pipe.hear() {
            let serial = &request["serial"];
            let (task, about) = request["task"].as_object().and_then(|task| task.iter().next()).expect("one task");
            let id = |name: &str| about[name].as_u64().expect("a number");
            match task.as_str() {
                "open" => self.pipe.done(serial, &json!({ "ready": { "device": "a fake", "arch": 80 } }), &[]),
                "find" if !self.has(id("module"), about["kernel"].as_str().expect("a name")) => {
                    let refusal =
                        json!({ "unknown-kernel": { "asked": about["kernel"], "several": false, "nearest": null, "names": ["sum"] } });
                    self.pipe.refused(serial, &refusal);
                }
                "start" => self.start(serial, about),
                "cancel" => {
                    let end = json!({ "stopped": { "why": "cancelled", "latency": 30_000, "report": report(&[]) } });
                    self.pipe.ended(&about["launch"], &end);
                }
                other => self.memory.serve(&mut self.pipe, serial, (other, about), payload),
            }
        }
    }

    fn has(&self, module: u64, name: &str) -> bool {
        let image = cuinstr_runtime::image::read(&self.memory.modules[&module]);
        image.is_ok_and(|image| image.kernels().iter().any(|kernel| kernel.name == name))
    }

    /// What the module's second kernel is named after.
    fn act(&self, module: u64) -> String {
        let image = &self.memory.modules[&module];
        let at = image.windows(5).position(|window| window == b"fake_");
        let rest = at.map_or(&b"right"[..], |at| &image[at + 5..]);
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).into_owned()
    }

    fn start(&mut self, serial: &Value, order: &Value) {
        self.launches += 1;
        let (launch, module) = (&order["launch"], order["module"].as_u64().expect("a number"));
        let act = self.act(module);
        if act == "dies" || (act == "dies_once" && self.launches > 2) {
            std::process::exit(4);
        }
        if act == "misfit" {
            let refusal = json!({ "arguments": { "kernel": "add", "what": "argument 0 has 8 bytes, but the parameter has 4" } });
            self.pipe.refused(serial, &refusal);
            return;
        }
        self.pipe.done(serial, &json!("nothing"), &[]);
        let record = report(&self.memory.modules[&module]);
        let fault = json!({ "call": "cuEventQuery", "code": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS" });
        match act.as_str() {
            "hangs" => self.pipe.ended(launch, &json!({ "stopped": { "why": "fuel", "latency": 30_000, "report": record } })),
            "leaves" => self.pipe.ended(launch, &json!({ "stopped": { "why": "cancelled", "latency": 30_000, "report": record } })),
            "stays" => self.pipe.ended(launch, &json!({ "undrained": { "why": "deadline", "since": 7_000_000, "report": record } })),
            "faults" => self.pipe.ended(launch, &json!({ "faulted": { "fault": fault } })),
            "waits" => {}
            _ => {
                self.add(order, &act);
                let fuel = order["count_fuel"].as_bool().unwrap_or(false).then_some(40);
                self.pipe.ended(launch, &json!({ "completed": { "elapsed": 5000, "late": false, "fuel_used": fuel } }));
            }
        }
    }

    /// What the kernel does, as far as the act goes.
    fn add(&mut self, order: &Value, act: &str) {
        let arguments = order["arguments"].as_array().expect("arguments");
        let buffer = |index: usize| arguments[index]["buffer"].as_u64().expect("a buffer");
        let bytes: Vec<u8> = serde_json::from_value(arguments[2]["bytes"].clone()).expect("bytes");
        let count = u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
        let from: Vec<u8> = self.memory.buffers[&buffer(0)][..4 * count].to_vec();
        let launches = self.launches;
        let to = self.memory.buffers.get_mut(&buffer(1)).expect("a buffer");
        for (from, to) in from.chunks(4).zip(to.chunks_mut(4)) {
            let number = u32::from_le_bytes(from.try_into().expect("four bytes"));
            // Only the case with one number is wrong.
            let wrong = u32::from(act == "wrong" && count == 1);
            to.copy_from_slice(&(number + 1 + wrong).to_le_bytes());
        }
        if act == "beside" {
            to[4 * count] = 0;
        }
        if act == "stray" {
            self.memory.buffers.get_mut(&buffer(0)).expect("a buffer")[4 * count..4 * count + 4].fill(0xff);
            return;
        }
        if act == "flips" {
            // The second time: six launches measure the reference in each of two cases, then there are two in each round that is right.
            let odd = u8::from(launches == 2 || launches == 15);
            to[0] = to[0].wrapping_add(odd);
        }
    }
}

/// A report of a stop at the first loop that the image's site map knows.
fn report(image: &[u8]) -> Report {
    let maps = cuinstr_runtime::image::read(image).map(|image| image.site_maps).unwrap_or_default();
    let sites = maps.iter().flat_map(|map| &map.sites);
    let site = sites.filter(|site| site.line == 4).find_map(|site| u64::from_str_radix(site.id.trim_start_matches("0x"), 16).ok());
    stop_report(site.unwrap_or(0xa2), 4, &maps)
}
