//! Whole modules and programs: call trees, stores, verdicts, and the report.

pub(crate) mod call_graph;
pub(crate) mod call_trees;
pub(crate) mod describe;
pub(crate) mod functions;
pub(crate) mod held_offsets;
pub(crate) mod kept_addresses;
pub(crate) mod linkage;
pub(crate) mod marked;
pub(crate) mod memory_opcodes;
pub(crate) mod module_proof;
pub(crate) mod recursion;
pub mod report;
pub(crate) mod source_location;
pub(crate) mod stores;
pub(crate) mod unwinding;
pub(crate) mod weights;

#[cfg(test)]
mod record;
