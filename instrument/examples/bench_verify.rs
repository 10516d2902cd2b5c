//! How fast the proof is: reads PTX files, repeats them to each of a few sizes under other names, and prints a table. On one core.
//!
//! `cargo run --release -p cuinstr --example bench_verify -- FILE.ptx...`

use cuinstr::verify::verify_ptx;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Megabytes of the texts that are tried.
const SIZES: &[usize] = &[1, 10, 50, 100];

/// What this process has spent on cores, where the system says so: another process on the same core is no business of this table.
fn on_core() -> Option<Duration> {
    let words = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    words.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bodies = Vec::new();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        // Only what stands behind the head, and nothing of the debug sections.
        let begin = text.find(".address_size 64").map_or(0, |at| at + ".address_size 64".len());
        let end = text.find("\t.file").or(text.find("\t.section")).unwrap_or(text.len());
        bodies.push(text[begin..end.max(begin)].to_owned());
    }
    if bodies.is_empty() {
        return Err("name PTX files".into());
    }
    println!("| MB | functions' loops | seconds | MB/s |\n| ---: | ---: | ---: | ---: |");
    for size in SIZES {
        let mut text = String::from(".version 9.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 cuinstr_control_v1[1192];\n");
        let mut copy = 0;
        while text.len() < size * 1_000_000 {
            let _ = write!(text, "// copy {copy}");
            text += &bodies[copy % bodies.len()].replace("_Z", &format!("_Y{copy}_"));
            copy += 1;
        }
        let mut best = Duration::MAX;
        let mut loops = 0;
        for _ in 0..if *size > 10 { 1 } else { 5 } {
            let start = (Instant::now(), on_core());
            loops = verify_ptx(&text).loops.len();
            let spent = start.0.elapsed();
            best = best.min(on_core().zip(start.1).map_or(spent, |(now, before)| now.saturating_sub(before)));
        }
        let millions = u32::try_from(text.len() / 1_000_000).map(f64::from)?;
        println!("| {millions} | {loops} | {:.3} | {:.1} |", best.as_secs_f64(), millions / best.as_secs_f64());
    }
    Ok(())
}
