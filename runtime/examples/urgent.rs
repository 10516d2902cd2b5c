//! A long kernel is paused for an urgent one, and goes on behind it.
//!
//! ```console
//! $ cargo run --release -p cuinstr-runtime --features jit,cudarc/cuda-13000 --example urgent
//! ```

use cuinstr_runtime::cudarc::driver::{DevicePtr, LaunchConfig};
use cuinstr_runtime::jit::Program;
use cuinstr_runtime::{Kernel, Outcome};
use std::time::{Duration, Instant};

/// Each block counts, and takes as long as it is told.
const SOURCE: &str = r#"
extern "C" __global__ void work(unsigned* counts, unsigned long long ns) {
    if (threadIdx.x == 0) atomicAdd(counts + blockIdx.x, 1u);
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}
"#;
const BLOCKS: u32 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = cuinstr_runtime::open(0)?;
    let [stream, other] = [context.new_stream()?, context.new_stream()?];
    let mut program = Program::from_cuda(SOURCE);
    program.file("work.cu").pausable();
    // Two modules: one control block serves one launch at a time.
    let [long, urgent] = [program.load(&context)?.0.kernel("work")?, program.load(&context)?.0.kernel("work")?];
    let counts = stream.alloc_zeros::<u32>(BLOCKS as usize)?;
    let few = other.alloc_zeros::<u32>(132)?;
    let (counts_at, few_at) = (counts.device_ptr(&stream).0, few.device_ptr(&other).0);
    stream.synchronize()?;
    other.synchronize()?;

    let prepare = |kernel: &Kernel, stream, address: u64, ns: u64| {
        let mut prepared = kernel.prepare(stream);
        prepared.arg(address).arg(ns).timeout(Duration::from_secs(60));
        prepared
    };
    let grid = |blocks| LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let mut all = prepare(&long, &stream, counts_at, 1_000_000);
    // SAFETY: these are the kernel's parameters, and the buffers have a word for each block.
    let mut running = unsafe { all.pausable().start(grid(BLOCKS)) }?;
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(100));
        let since = Instant::now();
        let outcome = running.pause(Duration::from_millis(100))?;
        let Outcome::Paused { done, left, latency } = outcome else { break };
        let quick = prepare(&urgent, &other, few_at, 100_000);
        // SAFETY: as above.
        unsafe { quick.start(grid(132)) }?.wait()?.into_result()?;
        println!("{done} blocks done, {left} left: paused in {latency:.0?}, urgent work answered in {:.0?}", since.elapsed());
        running.resume(&stream)?;
    }
    let done = running.wait()?.into_result()?;
    let right = stream.clone_dtoh(&counts)?.iter().all(|count| *count == 1);
    println!("all done in {:.1?}, each block {}", done.elapsed, if right { "once" } else { "NOT once" });
    Ok(())
}
