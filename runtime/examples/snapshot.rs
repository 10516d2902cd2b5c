//! Memory that is saved by one process and restored by another: `snapshot save|restore PATH BYTES`. Prints a line of JSON.

use cuinstr_runtime::cudarc::driver::{CudaStream, sys};
use cuinstr_runtime::snapshot::{Ledger, Memory};
use std::error::Error;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, path, bytes] = words.as_slice() else { return Err("usage: snapshot save|restore PATH BYTES".into()) };
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
    let memory = ledger.memory("memory")?;
    let sum = sum(&stream, memory)?;
    if is_saved {
        since = Instant::now();
        ledger.save(path, Duration::from_secs(10))?;
        took = since.elapsed();
    }
    let address = format!("{:#x}", memory.address);
    println!(
        "{{\"step\":\"{word}\",\"address\":\"{address}\",\"sum\":{sum},\"bytes\":{},\"seconds\":{}}}",
        memory.bytes,
        took.as_secs_f64()
    );
    Ok(())
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

fn sum(stream: &std::sync::Arc<CudaStream>, memory: Memory) -> Result<u64, Box<dyn Error>> {
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
