//! Reads PTX the way ptxas does, and keeps it byte for byte.
//!
//! In reading order:
//! - [`tokens`], then [`parse`] or [`parse_on`]: module, functions, statements, scopes, labels, locations.
//! - [`Code`]: the operands of a function, and what each instruction reads and writes.
//! - [`Graph`]: control flow. [`Calls`]: who calls whom.
//! - [`Edits`]: changes that leave all other bytes as they are.
//!
//! Reading never fails and never panics. What ptxas would refuse is a [`Fault`] with its offset; what stands behind it is read all the same.
//!
//! The text is a `&str`. ptxas 13.0 refuses bytes outside ASCII anywhere, also in comments and strings; here they may stand in both, and are a
//! fault elsewhere. Bytes that are no UTF-8 are for the caller to refuse.
//!
//! ```
//! let text = ".version 9.0 .target sm_90 .visible .entry spin() { $L: bra $L; }";
//! let module = cuinstr_ptx::parse(text);
//! let spin = &module.functions[0];
//! assert!(module.faults.is_empty() && spin.is_kernel);
//! assert_eq!(spin.statements[0].opcode(text), "bra");
//! let graph = cuinstr_ptx::Graph::new(spin);
//! assert_eq!(graph.edges(0).next().map(|edge| edge.to), Some(0));
//! ```

mod bodies;
mod body;
mod calls;
mod code;
mod components;
mod constant;
mod declaration;
mod decode;
mod edit;
mod effect;
mod function;
mod graph;
mod module;
mod operand;
mod registers;
mod shares;
mod span;
mod special;
mod strings;
mod symbols;
mod system;
mod token;

pub use bodies::parse_on;
pub use calls::{Callee, Calls};
pub use code::Code;
pub use components::Components;
pub use constant::unsigned;
pub use declaration::{Declared, Parameter, RegisterDeclaration, Variable};
pub use edit::{EditError, Edits};
pub use effect::{Access, access_of};
pub use function::{Call, CallTarget, Flow, Function, Inlined, Label, Location, Point, Scope, Statement, Table, TableKind, Target};
pub use graph::{Block, Edge, Graph};
pub use module::{Fault, Module, Prototype, parse};
pub use operand::{List, Name, NameId, Operand, Register};
pub use shares::{Run, each_share};
pub use span::Span;
pub use strings::Strings;
pub use system::{is_launch, is_system};
pub use token::{Kind, Token, tokens};
