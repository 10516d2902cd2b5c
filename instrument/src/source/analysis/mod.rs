//! Facts about loops, expressions and calls. Nothing is decided here, and no text is made.

pub(crate) mod block_share;
pub(crate) mod call_graph;
pub(crate) mod census;
pub(crate) mod check_elision;
pub(crate) mod constness;
pub(crate) mod cost;
pub(crate) mod declared_type;
pub(crate) mod descent;
pub(crate) mod element;
pub(crate) mod file_facts;
pub(crate) mod foldable;
pub(crate) mod function_scope;
pub(crate) mod hardware;
pub(crate) mod implicit_call;
pub(crate) mod implicit_edges;
mod implicit_operand;
pub(crate) mod induction;
pub(crate) mod invariant;
pub(crate) mod lambda_call;
pub(crate) mod operators;
pub(crate) mod overload;
pub(crate) mod purity;
pub(crate) mod shared_memory;
pub(crate) mod strip_mine;
pub(crate) mod trip_count;
pub(crate) mod uniform_address;
pub(crate) mod unroll;
