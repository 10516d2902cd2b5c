//! All text that is inserted: the prelude in front of the file, and the polls in it.

pub(crate) mod brief;
pub(crate) mod poll_text;
pub mod prelude;
