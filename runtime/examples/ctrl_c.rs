//! Ctrl-C stops the kernel, not the program.
//!
//!     cargo run --example ctrl_c --features jit

use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::{Outcome, jit::Program};
use std::error::Error;
use std::process::ExitCode;

const SOURCE: &str = "
extern \"C\" __global__ void count(volatile unsigned long long* rounds)
{
    for (;;) ++rounds[threadIdx.x];
}
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ctrl_c: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let context = cuinstr_runtime::open(0)?;
    let stream = context.default_stream();
    let (module, _) = Program::from_cuda(SOURCE).file("count.cu").load(&context)?;
    let kernel = module.kernel("count")?;
    let mut rounds = stream.alloc_zeros::<u64>(32)?;

    let mut launch = kernel.on(&stream)?;
    launch.arg(&mut rounds).until_cancelled();
    // SAFETY: this is the kernel's parameter, one number for each of its threads.
    let mut running = unsafe { launch.start(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (32, 1, 1), shared_mem_bytes: 0 }) }?;
    let canceller = running.canceller();
    ctrlc::set_handler(move || {
        if let Err(error) = canceller.cancel() {
            eprintln!("ctrl_c: {error}");
        }
    })?;
    println!("The kernel counts and never ends: press Ctrl-C.");

    let outcome = running.wait()?;
    if let Outcome::Stopped { latency, report, .. } = outcome {
        println!("\n{report}\nEvery thread had left {latency:.1?} after Ctrl-C.");
    }
    let counted: u64 = stream.clone_dtoh(&rounds)?.into_iter().sum();
    println!("The program goes on, and the device's memory is as the kernel left it: {counted} rounds.");
    Ok(())
}
