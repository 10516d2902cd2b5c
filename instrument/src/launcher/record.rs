//! The site maps of a unit as one variable of its device code. A unit reads the sites of all headers that it includes,
//! and never compiles most of them. So the site maps are packed. As text they were the larger part of objects that
//! include a library of templates.

use cuinstr_abi::sites::{PACKED_MAGIC, SiteMap};
use std::fmt::Write as _;

/// Bytes in one string literal.
const PIECE: usize = 1000;

/// The variable, or nothing where there are no sites.
pub(super) fn packed<'a>(maps: impl Iterator<Item = &'a SiteMap>) -> String {
    let lines: Vec<String> = maps.map(SiteMap::to_json).collect();
    if lines.is_empty() {
        return String::new();
    }
    let block = lz4_flex::block::compress_prepend_size(lines.join("\n").as_bytes());
    let head = format!("{PACKED_MAGIC}{:08x} ", block.len());
    let mut text = String::from("static __device__ __attribute__((__used__)) const char __cuinstr_sites_unit[] =");
    for piece in [head.as_bytes(), &block].concat().chunks(PIECE) {
        text.push_str("\n    \"");
        for (at, byte) in piece.iter().enumerate() {
            match byte {
                b'"' | b'\\' | b'?' => {
                    text.push('\\');
                    text.push(char::from(*byte));
                }
                0x20..0x7f => text.push(char::from(*byte)),
                // As short as what follows lets it be.
                _ if piece.get(at + 1).is_some_and(|next| (b'0'..=b'7').contains(next)) => {
                    let _ = write!(text, "\\{byte:03o}");
                }
                _ => {
                    let _ = write!(text, "\\{byte:o}");
                }
            }
        }
        text.push('"');
    }
    text.push_str(";\n");
    text
}
