//! Ten candidates for the same task, at the same time under one deadline: the fastest right one wins. Some are wrong, some never end.
//!
//!     cargo run --example race --features jit

use cuinstr_runtime::cudarc::driver::{CudaSlice, LaunchConfig};
use cuinstr_runtime::jit::{Program, ProgramError};
use cuinstr_runtime::{Kernel, Outcome};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Bodies of `int ones(unsigned x)`, which counts the bits that are set.
const CANDIDATES: [(&str, &str); 10] = [
    ("built in", "return __popc(x);"),
    ("bit by bit", "int c = 0; for (int i = 0; i < 32; ++i) c += x >> i & 1; return c;"),
    ("lowest first", "int c = 0; for (; x; x &= x - 1) ++c; return c;"),
    ("two at a time", "int c = 0; for (; x; x >>= 2) c += (x & 1) + (x >> 1 & 1); return c;"),
    ("from a table", "int c = 0; for (; x; x >>= 4) c += 0x4332322132212110ull >> (x & 15) * 4 & 15; return c;"),
    (
        "side by side",
        "x -= x >> 1 & 0x55555555; x = (x & 0x33333333) + (x >> 2 & 0x33333333); return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;",
    ),
    ("one bit short", "int c = 0; for (int i = 0; i < 31; ++i) c += x >> i & 1; return c;"),
    ("shifts signed", "int c = 0; for (int y = x; y; y >>= 1) c += y & 1; return c;"),
    ("forgets to shift", "int c = 0; while (x) c += x & 1; return c;"),
    ("makes it up", "return bits_of(x);"),
];

const COUNT: u32 = 1 << 20;
const CONFIG: LaunchConfig = LaunchConfig { grid_dim: (48, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
const TIME: Duration = Duration::from_millis(50);

fn source(body: &str) -> String {
    format!(
        "__device__ int ones(unsigned x)
{{
    {body}
}}
extern \"C\" __global__ void candidate(const unsigned* numbers, int* counts, unsigned count)
{{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) counts[i] = ones(numbers[i]);
}}
"
    )
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("race: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let context = cuinstr_runtime::open(0)?;
    let stream = context.default_stream();
    let numbers: Vec<u32> = (0..COUNT).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let right: Vec<u32> = numbers.iter().map(|number| number.count_ones()).collect();
    let input = stream.clone_htod(&numbers)?;

    // Loading a module waits for the kernels that run, so it is all done before.
    let mut starters: Vec<(&str, Kernel, CudaSlice<u32>)> = Vec::new();
    for (name, body) in CANDIDATES {
        match Program::from_cuda(source(body)).file(format!("{name}.cu")).load(&context) {
            Ok((module, _)) => starters.push((name, module.kernel("candidate")?, stream.alloc_zeros(numbers.len())?)),
            Err(ProgramError::Compile { messages, .. }) => println!("{name:16} does not compile: {}", messages[0].text),
            Err(error) => return Err(error.into()),
        }
    }
    let lanes = starters.iter().map(|_| context.new_stream()).collect::<Result<Vec<_>, _>>()?;

    let deadline = Instant::now() + TIME;
    let mut running = Vec::new();
    for ((_, kernel, counts), lane) in starters.iter_mut().zip(&lanes) {
        let mut launch = kernel.on(lane)?;
        launch.arg(&input).arg(counts).arg(&COUNT).deadline(deadline).timed();
        // SAFETY: these are the candidates' parameters, and both slices have as many elements as they are told.
        running.push(unsafe { launch.start(CONFIG) }?);
    }

    let mut best: Option<(Duration, &str)> = None;
    for ((name, _, counts), running) in starters.iter().zip(&mut running) {
        let verdict = match running.wait()? {
            Outcome::Completed { elapsed, .. } if stream.clone_dtoh(counts)? == right => {
                let this = Some((elapsed, *name));
                best = best.min(this).or(this);
                format!("right, in {elapsed:.1?}")
            }
            Outcome::Completed { .. } => "wrong".to_owned(),
            Outcome::Stopped { report, .. } => match report.sites.first().and_then(|row| row.site.place.as_ref()) {
                Some(place) => format!("not done in {TIME:?}: still in line {}, column {}", place.line, place.column),
                None => format!("not done in {TIME:?}"),
            },
            Outcome::Faulted { fault } => return Err(fault.into()),
            paused @ Outcome::Paused { .. } => paused.to_string(),
        };
        println!("{name:16} {verdict}");
    }
    match best {
        Some((elapsed, name)) => println!("\n\"{name}\" wins, in {elapsed:.1?}."),
        None => println!("\nNobody wins."),
    }
    Ok(())
}
