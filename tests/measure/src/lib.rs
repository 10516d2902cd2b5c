//! What measures: the runtime ([`bench`]), polls ([`poll`]), pauses ([`pause`]), and what a GPU keeps over a stop ([`hardware`]).

pub mod barriers;
pub mod bench;
pub mod crew;
pub mod hardware;
pub mod machine;
pub mod pause;
pub mod poll;
