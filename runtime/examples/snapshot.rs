//! Memory that is saved by one process and restored by another: `snapshot save|restore PATH BYTES IMAGE`. Prints a line of JSON.
//!
//! With `IMAGE`, which is `suspended.cu` rewritten with `--pausable` and compiled, the snapshot also holds a kernel of ten seconds that was paused.
//! The process that restores it lets the kernel go on.

use cuinstr_runtime::Outcome;
use cuinstr_runtime::cudarc::driver::{CudaStream, LaunchConfig, sys};
use cuinstr_runtime::snapshot::{Ledger, Memory};
use std::error::Error;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (word, path, bytes, image) = match words.as_slice() {
        [word, path, bytes] => (word, path, bytes, None),
        [word, path, bytes, image] => (word, path, bytes, Some(image)),
        _ => return Err("usage: snapshot save|restore PATH BYTES [IMAGE]".into()),
    };
    let context = cuinstr_runtime::open(0)?;
    let is_saved = word == "save";
    let mut since = Instant::now();
    let ledger = if is_saved { Ledger::new(&context)? } else { Ledger::restore(&context, path)? };
    let mut took = since.elapsed();
    let stream = ledger.stream("main")?;
    if is_saved {
        let memory = ledger.allocate("memory", bytes.parse()?)?;
        fill(&stream, memory)?;
    }
    let blocks = image.map(|image| if is_saved { pause(&ledger, &std::fs::read(image)?) } else { go_on(&ledger) }).transpose()?;
    let memory = ledger.memory("memory")?;
    let sum = sum(&stream, memory)?;
    if is_saved {
        since = Instant::now();
        ledger.save(path, Duration::from_secs(10))?;
        took = since.elapsed();
    }
    let address = format!("{:#x}", memory.address);
    let blocks = blocks.map_or(String::new(), |(left, is_equal)| format!(",\"blocks left\":{left},\"equal\":{is_equal}"));
    println!(
        "{{\"step\":\"{word}\",\"address\":\"{address}\",\"sum\":{sum},\"bytes\":{},\"seconds\":{}{blocks}}}",
        memory.bytes,
        took.as_secs_f64()
    );
    Ok(())
}

/// Blocks of the kernel, and the nanoseconds that each takes.
const BLOCKS: u32 = 132 * 8 * 1000;
const BLOCK_NS: u64 = 10_000_000;

/// Pauses a kernel early on and gives it to the ledger. How many blocks are left, and whether its sums equal those of a whole run, which they do not yet.
fn pause(ledger: &Ledger, image: &[u8]) -> Result<(u64, bool), Box<dyn Error>> {
    let stream = ledger.stream("main")?;
    let kernel = ledger.load("kernels", image)?.kernel("work")?;
    let config = LaunchConfig { grid_dim: (BLOCKS, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let start = |sums: Memory, ns: u64| {
        let mut prepared = kernel.prepare(&stream);
        prepared.arg(sums.address).arg(ns).timeout(Duration::from_secs(60)).pausable();
        // SAFETY: these are the kernel's parameters, and the memory has a word for each block.
        unsafe { prepared.start(config) }
    };
    let [whole, paused] = ["whole", "paused"].map(|name| ledger.allocate(name, 8 * BLOCKS as usize));
    start(whole?, 0)?.wait()?.into_result()?;
    let mut running = start(paused?, BLOCK_NS)?;
    std::thread::sleep(Duration::from_secs(1));
    let Outcome::Paused { left, .. } = running.pause(Duration::from_secs(5))? else { return Err("it was not paused".into()) };
    ledger.put_paused("work", &mut running)?;
    Ok((left, is_whole(ledger, &stream)?))
}

/// Lets the kernel go on: how many blocks were left, and whether its sums equal those of a whole run now.
fn go_on(ledger: &Ledger) -> Result<(u64, bool), Box<dyn Error>> {
    let remainder = ledger.take_paused("work")?;
    // SAFETY: its arguments lead to the ledger's memory.
    unsafe { remainder.start() }?.wait()?.into_result()?;
    Ok((remainder.left(), is_whole(ledger, &ledger.stream("main")?)?))
}

fn is_whole(ledger: &Ledger, stream: &Arc<CudaStream>) -> Result<bool, Box<dyn Error>> {
    Ok(sum(stream, ledger.memory("whole")?)? == sum(stream, ledger.memory("paused")?)?)
}

/// Words that differ.
fn fill(stream: &CudaStream, memory: Memory) -> Result<(), Box<dyn Error>> {
    let piece: Vec<u8> = (0..1_u32 << 20).flat_map(|index| index.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for at in (0..memory.bytes).step_by(piece.len()) {
        let count = piece.len().min(memory.bytes - at);
        // SAFETY: the range lies in the ledger's memory.
        unsafe { sys::cuMemcpyHtoD_v2(memory.address + at as u64, piece.as_ptr().cast(), count) }.result()?;
        // Each piece begins with its number.
        let number = (at as u64).to_le_bytes();
        // SAFETY: as above.
        unsafe { sys::cuMemcpyHtoD_v2(memory.address + at as u64, number.as_ptr().cast(), number.len().min(count)) }.result()?;
    }
    stream.synchronize()?;
    Ok(())
}

fn sum(stream: &Arc<CudaStream>, memory: Memory) -> Result<u64, Box<dyn Error>> {
    let mut total = 0_u64;
    let step = 256 << 20;
    for at in (0..memory.bytes).step_by(step) {
        let count = step.min(memory.bytes - at);
        // SAFETY: the range lies in the ledger's memory, which the view does not give back.
        let view = ManuallyDrop::new(unsafe { stream.upgrade_device_ptr::<u8>(memory.address + at as u64, count) });
        for word in stream.clone_dtoh(&*view)?.chunks_exact(8) {
            total = total.rotate_left(1).wrapping_add(u64::from_le_bytes(word.try_into()?));
        }
    }
    Ok(total)
}
