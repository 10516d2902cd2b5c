//! From bytes to statements: tokens, brackets, macros, functions, and the loops and jumps in them.

pub(crate) mod asm;
pub(crate) mod class;
pub(crate) mod condition;
pub(crate) mod declaration;
pub(crate) mod definition;
pub(crate) mod fragment;
pub(crate) mod function;
pub(crate) mod grammar;
pub(crate) mod header;
pub(crate) mod integer;
pub(crate) mod keyword;
pub(crate) mod known_names;
pub(crate) mod macro_families;
pub(crate) mod macro_values;
pub(crate) mod macros;
pub(crate) mod pasting;
#[cfg(feature = "launcher")]
pub(crate) mod plain_macros;
pub(crate) mod scopes;
pub(crate) mod source_file;
pub(crate) mod splice;
pub(crate) mod statement;
pub(crate) mod statement_frame;
pub(crate) mod statement_reader;
pub(crate) mod token;
