//! Names of kernels, as the linker and as people write them.

use crate::{Content, Part, elf, ptx};
use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use std::collections::BTreeSet;
use std::fmt;

/// Longest symbol that is demangled, in bytes.
const LONGEST_SYMBOL: usize = 4096;

/// Longest name that is written out, in bytes: a symbol can stand for a text that doubles with each of its letters.
const LONGEST_NAME: usize = 16 << 10;

/// A kernel's names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel {
    /// What the driver knows it by: `_Z4gemmIfEvPT_i`, or `gemm` for `extern "C"`.
    pub symbol: String,
    /// As declared: `void gemm<float>(float*, int)`. The symbol itself, where it is not mangled or can't be read.
    pub signature: String,
    /// Without return type and parameters: `gemm<float>`.
    pub name: String,
}

impl Kernel {
    /// The names that a symbol stands for.
    #[must_use]
    pub fn new(symbol: &str) -> Self {
        let name = demangled(symbol, DemangleOptions::new().no_params().no_return_type());
        let signature = demangled(symbol, DemangleOptions::new());
        let or_symbol = |name: Option<String>| name.filter(|name| !name.is_empty()).unwrap_or_else(|| symbol.to_owned());
        Self { symbol: symbol.to_owned(), signature: or_symbol(signature), name: or_symbol(name) }
    }
}

/// The kernels of PTX text, in order.
#[must_use]
pub fn of_ptx(text: &str) -> Vec<Kernel> {
    kernels(ptx::kernels(text))
}

/// The kernels of a cubin, in order; none if the bytes are no cubin.
#[must_use]
pub fn of_cubin(bytes: &[u8]) -> Vec<Kernel> {
    kernels(elf::Elf::new(bytes).filter(|elf| elf.is_cubin()).map(elf::Elf::kernels).unwrap_or_default())
}

pub(crate) fn of_parts(parts: &[Part<'_>]) -> Vec<Kernel> {
    kernels(parts.iter().flat_map(|part| match &part.content {
        Content::Ptx(text) => ptx::kernels(text),
        Content::Code(bytes) => elf::Elf::new(bytes).map(elf::Elf::kernels).unwrap_or_default(),
        Content::Intermediate | Content::Unread(_) => Vec::new(),
    }))
}

fn kernels<'a>(symbols: impl IntoIterator<Item = &'a [u8]>) -> Vec<Kernel> {
    let mut seen = BTreeSet::new();
    symbols.into_iter().filter(|symbol| seen.insert(*symbol)).map(|symbol| Kernel::new(&String::from_utf8_lossy(symbol))).collect()
}

fn demangled(symbol: &str, options: DemangleOptions) -> Option<String> {
    if !symbol.starts_with("_Z") || symbol.len() > LONGEST_SYMBOL {
        return None;
    }
    let parsed = Symbol::new_with_options(symbol, &ParseOptions::default()).ok()?;
    let mut name = Bounded(String::new());
    parsed.structured_demangle(&mut name, &options).ok()?;
    Some(name.0)
}

/// A text that takes no more than [`LONGEST_NAME`].
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write as _;

    #[test]
    fn a_name_may_be_as_long_as_the_longest() {
        let mut name = Bounded("a".repeat(LONGEST_NAME - 1));
        assert!(name.write_str("b").is_ok() && name.write_str("c").is_err());
        assert_eq!(name.0.len(), LONGEST_NAME);
    }

    #[test]
    fn names_read_as_they_were_declared() {
        for (symbol, signature, name) in [
            ("gemm", "gemm", "gemm"),
            ("_Z11sgemm_tiledPKfS0_Pfiii", "sgemm_tiled(float const*, float const*, float*, int, int, int)", "sgemm_tiled"),
            ("_ZN2ns4gemmIfLi16EEEvPT_i", "void ns::gemm<float, 16>(float*, int)", "ns::gemm<float, 16>"),
            ("_Z", "_Z", "_Z"),
            ("_Znonsense", "_Znonsense", "_Znonsense"),
        ] {
            let kernel = Kernel::new(symbol);
            assert_eq!((kernel.signature.as_str(), kernel.name.as_str()), (signature, name));
        }
    }

    #[test]
    fn a_symbol_that_doubles_with_each_letter_stays_as_it_is() {
        // Each argument is a pair of the one before.
        let mut symbol = "_Z1fI1XE".to_owned();
        symbol.push_str("vP1pI");
        for index in 0..40_u32 {
            let back = char::from_digit(index % 36, 36).unwrap_or('0').to_ascii_uppercase();
            symbol += &"S@_S@_E1pI".replace('@', &back.to_string());
        }
        assert!(Kernel::new(&symbol).signature.len() <= LONGEST_NAME);
    }

    proptest! {
        #[test]
        fn any_symbol_has_names(symbol in "_Z[A-Za-z0-9_]{0,60}") {
            prop_assert!(!Kernel::new(&symbol).name.is_empty());
        }
    }
}
