//! A kernel hangs, is stopped at its deadline and says where; the next launch, in the same context, works.
//!
//!     cargo run --example stop_a_hang --features jit

use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::{Outcome, jit::Program};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// Halves an interval until it is short enough. One of width zero is never reached: the middle of two neighbouring floats is one of them.
const SOURCE: &str = "
extern \"C\" __global__ void square_root(const float* numbers, float* roots, int count, float width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float low = 0, high = numbers[i] + 1;
    while (high - low > width) {
        float middle = (low + high) / 2;
        if (middle * middle <= numbers[i]) low = middle; else high = middle;
    }
    roots[i] = low;
}
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stop_a_hang: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let context = cuinstr_runtime::open(0)?;
    let stream = context.default_stream();
    let (module, _) = Program::from_cuda(SOURCE).file("square_root.cu").load(&context)?;
    let kernel = module.kernel("square_root")?;

    let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let input = stream.clone_htod(&numbers)?;
    let mut roots = stream.alloc_zeros::<f32>(numbers.len())?;
    for width in [0.0_f32, 1e-4] {
        let mut launch = kernel.on(&stream)?;
        launch.arg(&input).arg(&mut roots).arg(&1000_i32).arg(&width).timeout(Duration::from_millis(100));
        // SAFETY: these are the kernel's parameters, and both slices have as many elements as it is told.
        let mut running = unsafe { launch.start(LaunchConfig::for_num_elems(1000)) }?;
        match running.wait()? {
            Outcome::Stopped { latency, report, .. } => println!("{report}\nEvery thread had left {latency:.1?} after the deadline.\n"),
            Outcome::Completed { elapsed, .. } => println!("done in {elapsed:.1?}: the root of 2 is {}", stream.clone_dtoh(&roots)?[2]),
            Outcome::Faulted { fault } => return Err(fault.into()),
            paused @ Outcome::Paused { .. } => println!("{paused}"),
        }
    }
    Ok(())
}
