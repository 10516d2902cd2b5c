//! What the proof says of loops in the toolkit's own headers, which nobody rewrites: each shows up as what it is, at its place.

use crate::{Checks, Tools};
use cuinstr::verify::report::{Loop, Verdict};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::Fixture;

const SOURCE: &str = r#"
#include <cooperative_groups.h>
#include <cub/block/block_radix_sort.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
extern "C" __global__ void grid_sync(int* p) {
    p[threadIdx.x] += 1;
    cooperative_groups::this_grid().sync();
    p[threadIdx.x] += 2;
}
extern "C" __global__ void block_barrier(int* p) {
    __shared__ cuda::barrier<cuda::thread_scope_block> gate;
    if (threadIdx.x == 0) init(&gate, blockDim.x);
    __syncthreads();
    p[threadIdx.x] += 1;
    gate.arrive_and_wait();
    p[threadIdx.x] += 2;
}
extern "C" __global__ void device_barrier(cuda::barrier<cuda::thread_scope_device>* gate, int* p) {
    p[threadIdx.x] += 1;
    gate->arrive_and_wait();
    p[threadIdx.x] += 2;
}
extern "C" __global__ void atomic_wait(cuda::atomic<int, cuda::thread_scope_device>* word, int* p) {
    word->wait(0);
    p[threadIdx.x] += 2;
}
extern "C" __global__ void radix_sort(unsigned* keys, int end_bit) {
    typedef cub::BlockRadixSort<unsigned, 128, 4> Sort;
    __shared__ typename Sort::TempStorage storage;
    unsigned own[4];
    for (int i = 0; i < 4; ++i) own[i] = keys[threadIdx.x * 4 + i];
    Sort(storage).Sort(own, 0, end_bit);
    for (int i = 0; i < 4; ++i) keys[threadIdx.x * 4 + i] = own[i];
}
"#;

/// Kernel, header that its loop stands in, and whether hardware moves it on.
const EXPECTED: &[(&str, &str, bool)] = &[
    ("grid_sync", "cooperative_groups/details/sync.h", false),
    ("block_barrier", "cuda/std/", true),
    ("device_barrier", "cuda/std/", false),
    ("atomic_wait", "cuda/std/", false),
    ("radix_sort", "cub/block/block_radix_sort.cuh", false),
];

pub(crate) fn add(_: &[Fixture], checks: &mut Checks) {
    checks.add("proof: loops of cooperative groups, libcu++ and CUB are what they are", libraries);
}

fn libraries(tools: &Tools) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (source, output) = (folder.path().join("libraries.cu"), folder.path().join("libraries.ptx"));
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let args = ["-ptx", "-w", "-std=c++17", "-lineinfo", "-arch=sm_90", "-o"].map(std::ffi::OsString::from);
    let finished = tools.nvcc.run(args.into_iter().chain([output.clone().into(), source.into()]))?;
    if !finished.success() {
        return Err(finished.stderr);
    }
    let text = std::fs::read_to_string(&output).map_err(|error| error.to_string())?;
    let report = verify_ptx(&text);
    for (kernel, header, in_hardware) in EXPECTED {
        let own: Vec<&Loop> = report.loops.iter().filter(|found| found.function == *kernel && !found.verdict.holds()).collect();
        let is_so = |found: &&&Loop| match &found.verdict {
            Verdict::WaitsInHardware => *in_hardware,
            Verdict::NotPolled { .. } => !in_hardware,
            _ => false,
        };
        let is_there = |found: &&&Loop| found.place.as_ref().is_some_and(|place| place.file.contains(header) && !place.inlined.is_empty());
        if own.is_empty() || !own.iter().all(|found| is_so(&found)) || !own.iter().any(|found| is_there(&found)) {
            return Err(format!("{kernel}: {own:#?}"));
        }
    }
    Ok(())
}
