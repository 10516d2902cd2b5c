//! Counts what files hold for a GPU and puts polls into their PTX. Run it by `scripts/read-wheels`.
//!
//! usage: `read_images FILE...`. One line of JSON per file with device code; a file without any has no line.

use cuinstr::Rewrite;
use cuinstr::options::Options;
use cuinstr::rewrite_ptx;
use cuinstr_image::{Content, ImageError, Part, scan};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::{env, fs};

#[derive(Default)]
struct Counts {
    ptx: BTreeMap<String, usize>,
    code: BTreeMap<String, usize>,
    intermediate: usize,
    unread: Vec<String>,
    ptx_bytes: usize,
    polled: usize,
    sites: usize,
    /// Codes of the diagnostics of texts that got no polls.
    refused: BTreeMap<String, usize>,
}

impl Counts {
    fn take(&mut self, part: &Part<'_>) {
        let arch = part.arch.map_or_else(|| "unknown".into(), |arch| arch.to_string());
        match &part.content {
            Content::Ptx(text) => {
                *self.ptx.entry(arch).or_default() += 1;
                self.ptx_bytes += text.len();
                self.poll(&rewrite_ptx(text.as_bytes(), &Options::default()));
            }
            Content::Code(_) => *self.code.entry(arch).or_default() += 1,
            Content::Intermediate => self.intermediate += 1,
            Content::Unread(why) => self.unread.push(why.clone()),
        }
    }

    fn poll(&mut self, done: &Rewrite) {
        if done.output.is_some() {
            self.polled += 1;
            self.sites += done.sites.sites.len();
        } else {
            let codes: BTreeSet<String> = done.diagnostics.iter().map(|found| found.code.id().to_owned()).collect();
            for code in codes {
                *self.refused.entry(code).or_default() += 1;
            }
        }
    }
}

fn main() -> ExitCode {
    let mut faults = 0;
    for path in env::args().skip(1) {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("read_images: {path}: {error}");
                faults += 1;
                continue;
            }
        };
        let mut counts = Counts::default();
        match scan(&bytes, |part| counts.take(&part)) {
            Ok(found) => {
                faults += found.notes.len() + counts.unread.len();
                println!(
                    "{}",
                    json!({
                        "file": path, "bytes": bytes.len(), "form": format!("{:?}", found.form), "ptx": counts.ptx, "code": counts.code,
                        "intermediate": counts.intermediate, "unread": counts.unread, "notes": found.notes,
                        "without_ptx": found.without_ptx.len(), "ptx_bytes": counts.ptx_bytes, "polled": counts.polled,
                        "sites": counts.sites, "refused": counts.refused,
                    })
                );
            }
            Err(ImageError::NoDeviceCode(_) | ImageError::Unknown(_) | ImageError::Empty) => {}
            Err(error) => {
                println!("{}", json!({"file": path, "bytes": bytes.len(), "notes": [error.to_string()]}));
                faults += 1;
            }
        }
    }
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
