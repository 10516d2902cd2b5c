//! How fast the proof is, and how much memory it takes: reads PTX files, repeats them to each of a few sizes under other names, and prints a
//! table; then the same for single kernels of 100,000 blocks in shapes that are bad for a proof. On one core.
//!
//! `cargo run --release -p cuinstr-verify --example bench_verify -- FILE.ptx...`

mod shapes;

use cuinstr_verify::verify_ptx;
use shapes::SHAPES;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Megabytes of the texts that are tried.
const SIZES: &[usize] = &[1, 10, 50, 100];

/// What this process has spent on cores, where the system says so: another process on the same core is no business of this table.
fn on_core() -> Option<Duration> {
    let words = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    words.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// The most memory that this process held since the last call, in MB, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    // Linux: begins the peak anew.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(peak / 1000)
}

/// Seconds on the core that the proof of a text takes, the best of so many tries, how many loops there are, and the peak of memory.
fn measure(text: &str, tries: usize) -> (f64, usize, String) {
    let (mut best, mut loops) = (Duration::MAX, 0);
    peak_memory();
    for _ in 0..tries {
        let start = (Instant::now(), on_core());
        loops = verify_ptx(text).loops.len();
        let spent = start.0.elapsed();
        best = best.min(on_core().zip(start.1).map_or(spent, |(now, before)| now.saturating_sub(before)));
    }
    (best.as_secs_f64(), loops, peak_memory().map_or_else(|| "?".to_owned(), |peak| peak.to_string()))
}

/// Blocks of a large kernel.
const BLOCKS: usize = 100_000;

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
    println!("| MB | functions' loops | seconds | MB/s | peak memory, MB |\n| ---: | ---: | ---: | ---: | ---: |");
    for size in SIZES {
        let mut text = String::from(".version 9.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 cuinstr_control_v1[1192];\n");
        let mut copy = 0;
        while text.len() < size * 1_000_000 {
            let _ = write!(text, "// copy {copy}");
            text += &bodies[copy % bodies.len()].replace("_Z", &format!("_Y{copy}_"));
            copy += 1;
        }
        let (seconds, loops, peak) = measure(&text, if *size > 10 { 1 } else { 5 });
        let millions = u32::try_from(text.len() / 1_000_000).map(f64::from)?;
        println!("| {millions} | {loops} | {seconds:.3} | {:.1} | {peak} |", millions / seconds);
    }
    println!("\n| {BLOCKS} blocks | MB | loops | seconds | peak memory, MB |\n| :--- | ---: | ---: | ---: | ---: |");
    for (name, block) in SHAPES {
        let mut text = String::from(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\t.reg .pred %p<4>;\n\t.reg .b32 %r<4>;\n\tmov.u32 %r1, 0;\n",
        );
        (0..BLOCKS).for_each(|at| block(&mut text, at));
        let _ = write!(text, "$B{BLOCKS}:\n\tret;\n}}\n");
        let (seconds, loops, peak) = measure(&text, 3);
        println!("| {name} | {} | {loops} | {seconds:.3} | {peak} |", text.len() / 1_000_000);
    }
    Ok(())
}
