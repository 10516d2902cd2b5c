//! A paused kernel whose process is suspended and resumed: `suspended IMAGE BLOCKS NS`. `IMAGE` is `suspended.cu`, rewritten with `--pausable` and compiled.
//!
//! It runs the kernel once as it is. Then it pauses the kernel, says `paused` and how many blocks are left, waits for a line, and lets the kernel go on.
//! The last line says whether both results are equal. `scripts/gpu-checkpoint` suspends the process while it waits.

use cuinstr_runtime::cudarc::driver::{DevicePtr, LaunchConfig};
use cuinstr_runtime::{Module, Outcome};
use std::error::Error;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [image, blocks, ns] = words.as_slice() else { return Err("usage: suspended IMAGE BLOCKS NS".into()) };
    let (blocks, ns) = (blocks.parse::<u32>()?, ns.parse::<u64>()?);
    let context = cuinstr_runtime::open(0)?;
    let stream = context.new_stream()?;
    let module = Module::load(&context, &std::fs::read(image)?)?;
    let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let [first, second] = [stream.alloc_zeros::<u64>(blocks as usize)?, stream.alloc_zeros::<u64>(blocks as usize)?];
    let prepare = |address: u64| -> Result<_, Box<dyn Error>> {
        let mut prepared = module.kernel("work")?.prepare(&stream);
        prepared.arg(address).arg(ns).timeout(Duration::from_secs(60)).pausable();
        Ok(prepared)
    };
    let (first_at, second_at) = (first.device_ptr(&stream).0, second.device_ptr(&stream).0);
    stream.synchronize()?;
    let since = Instant::now();
    // SAFETY: these are the kernel's parameters, and the buffers have a word for each block.
    unsafe { prepare(first_at)?.start(config) }?.wait()?.into_result()?;
    println!("ran for {} ms", since.elapsed().as_millis());
    // SAFETY: as above.
    let mut running = unsafe { prepare(second_at)?.start(config) }?;
    std::thread::sleep(since.elapsed() / 8);
    let Outcome::Paused { done, left, .. } = running.pause(Duration::from_secs(5))? else { return Err("it was not paused".into()) };
    // The driver waits for all that streams hold.
    running.let_streams_go()?;
    stream.synchronize()?;
    println!("paused {done} {left}");
    std::io::stdin().read_line(&mut String::new())?;
    running.resume(&stream)?;
    running.wait()?.into_result()?;
    println!("{}", stream.clone_dtoh(&first)? == stream.clone_dtoh(&second)?);
    Ok(())
}
