//! Which registers decide a loop, and the fixpoint of their values over its blocks.

pub(crate) mod body;
pub(crate) mod counted_inside;
pub(crate) mod edge_cost;
pub(crate) mod equations;
pub(crate) mod fixpoint;
pub(crate) mod here;
pub(crate) mod liveness;
pub(crate) mod loop_invariant;
pub(crate) mod opaque;
pub(crate) mod parameters;
pub(crate) mod pass;
pub(crate) mod refine;
pub(crate) mod remat;
pub(crate) mod slice;
pub(crate) mod slicing;
pub(crate) mod step;
pub(crate) mod sum_values;
pub(crate) mod sums;
pub(crate) mod thresholds;
pub(crate) mod work;
