//! How many blocks of a kernel a multiprocessor holds at a time, by the rules for compute capability 9.0 (CUDA C++ programming guide,
//! "Compute Capabilities"; the allocation units are those of NVIDIA's occupancy calculator).

/// Warps of a multiprocessor.
pub const WARPS: u32 = 64;
/// Blocks of a multiprocessor.
const BLOCKS: u32 = 32;
/// Each of the four parts of a multiprocessor has registers of its own.
const PARTS: u32 = 4;
const REGISTERS_OF_A_PART: u32 = 16 * 1024;
/// Registers are handed out to warps in multiples of this.
const REGISTER_UNIT: u32 = 256;
/// Bytes of shared memory for blocks, and what the system takes of it for each.
const SHARED: u32 = 228 * 1024;
const SHARED_OF_THE_SYSTEM: u32 = 1024;
const SHARED_UNIT: u32 = 128;

/// Blocks that a multiprocessor holds: of so many threads, registers a thread, and bytes of shared memory.
#[must_use]
pub fn blocks(threads: u32, registers: u32, shared: u32) -> u32 {
    let warps = threads.div_ceil(32).max(1);
    let registers_of_a_warp = (registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
    let by_registers = REGISTERS_OF_A_PART / registers_of_a_warp * PARTS / warps;
    let by_shared = SHARED / (shared + SHARED_OF_THE_SYSTEM).next_multiple_of(SHARED_UNIT);
    BLOCKS.min(WARPS / warps).min(by_registers).min(by_shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts() {
        assert_eq!(blocks(32, 16, 0), 32, "blocks");
        assert_eq!(blocks(256, 32, 0), 8, "warps");
        assert_eq!([blocks(1024, 32, 0), blocks(1024, 33, 0)], [2, 1], "registers");
        assert_eq!([blocks(256, 40, 0), blocks(256, 41, 0), blocks(128, 168, 0)], [6, 5, 3], "registers");
        assert_eq!([blocks(128, 32, 100 * 1024), blocks(128, 32, 113 * 1024), blocks(128, 32, 114 * 1024)], [2, 2, 1], "shared memory");
        assert_eq!(blocks(1024, 255, 0), 0, "a block that does not fit");
    }
}
