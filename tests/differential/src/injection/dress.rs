//! The same tokens in other clothes: comments, line ends and spellings that mean nothing to ptxas.

use cuinstr_harness::random::Random;

/// What may stand between two tokens.
const GAPS: &[&str] = &[
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\n\n\t",
    " /**/ ",
    "/* ; } */",
    "/*\n*/",
    "/* @%p1 exit; */",
    "/*//*/",
    "/* \" */",
    "// exit;\n",
    "// { /* \n",
    " // \\\n",
    "/* * / **/",
    "//\n",
    "/***/\n",
    "\x0c",
];

/// How much is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dress {
    /// As compilers write.
    Plain,
    /// Odd.
    Odd,
}

/// Gives text to marks: a space stands for a gap that must be there, `~` for one that may be, and line feeds for either.
#[must_use]
pub fn dress(tokens: &str, random: &mut Random, dress: Dress) -> String {
    let mut text = String::with_capacity(2 * tokens.len());
    for letter in tokens.chars() {
        match letter {
            ' ' => text.push_str(gap(random, dress)),
            '~' if dress == Dress::Odd && random.percent(25) => text.push_str(gap(random, dress)),
            '~' => {}
            '\n' if dress == Dress::Odd && random.percent(40) => text.push_str(if random.percent(50) { "" } else { gap(random, dress) }),
            other => text.push(other),
        }
    }
    text
}

/// What stands between two tokens.
#[must_use]
pub fn gap(random: &mut Random, dress: Dress) -> &'static str {
    if dress == Dress::Plain || random.percent(70) { " " } else { random.of(GAPS) }
}

/// A number of 32 bits, in one of its spellings.
#[must_use]
pub fn number(value: u32, random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("0x{value:x}"),
        1 => format!("{value}U"),
        2 => format!("0{value:o}"),
        _ => value.to_string(),
    }
}
