//! The entries of one fat binary by their headers. Nothing is decompressed before it is asked for: a library may hold hundreds of megabytes.

use crate::compression::Budget;
use crate::container::{self, Container};
use crate::place::Arch;
use crate::{Image, ptx};

/// One entry of a fat binary.
#[derive(Debug)]
pub struct Listed<'a> {
    /// What it was compiled for, where that is known.
    pub arch: Option<Arch>,
    /// What its header says that it is.
    pub is: Is,
    /// Name of the source that the toolchain noted, if it did.
    pub source: Option<String>,
    payload: &'a [u8],
    compressed_from: Option<u64>,
}

/// What an entry's header says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    /// PTX text.
    Ptx,
    /// A cubin.
    Code,
    /// Something else, such as the compiler's intermediate code.
    Other,
}

/// The entries of the fat binary that the bytes begin with; none if they begin with no whole one.
#[must_use]
pub fn listing(bytes: &[u8]) -> Option<Vec<Listed<'_>>> {
    let (Container { entries, fault }, _) = container::container(bytes).filter(|_| bytes.starts_with(container::MAGIC))?;
    fault.is_none().then(|| entries.into_iter().map(Listed::of).collect())
}

impl<'a> Listed<'a> {
    fn of(entry: container::Entry<'a>) -> Self {
        let is = match entry.kind {
            container::PTX => Is::Ptx,
            container::ELF => Is::Code,
            _ => Is::Other,
        };
        let arch = (entry.arch != 0).then_some(Arch { number: entry.arch, suffix: entry.suffix });
        Self { arch, is, source: entry.source, payload: entry.payload, compressed_from: entry.compressed_from }
    }

    /// Its text, if it is PTX, without the zeros behind it.
    ///
    /// # Errors
    /// Says what is damaged.
    pub fn text(&self) -> Result<Vec<u8>, String> {
        let bytes = match self.compressed_from {
            Some(size) => {
                let most = self.payload.len().saturating_mul(Image::EXPANSION).saturating_add(Image::ALLOWANCE);
                Budget::new(most).decompress(self.payload, size)?
            }
            None => self.payload.to_vec(),
        };
        if ptx::is_ptx(&bytes) {
            Ok(ptx::trimmed(&bytes).to_vec())
        } else {
            Err("this entry should be PTX, but it does not begin as PTX does".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::made::{container, entry};

    #[test]
    fn entries_are_listed_by_their_headers_and_texts_are_read_when_asked_for() {
        let text = b".version 9.0\n.target sm_80\n".repeat(20);
        let lz4 = lz4_flex::block::compress(&text);
        let bytes = container(&[
            entry(container::PTX, 80, 0x2011, &lz4, text.len() as u64),
            entry(container::ELF, 90, 0x10_8011, b"never decompressed", 1 << 40),
        ]);
        let entries = listing(&bytes).expect("it is whole");
        assert_eq!(entries.iter().map(|entry| entry.is).collect::<Vec<_>>(), [Is::Ptx, Is::Code]);
        assert_eq!(entries[1].arch, Arch::from_name("sm_90a"));
        assert_eq!(entries[0].text(), Ok(text.clone()));
        assert!(entries[1].text().is_err());
        for cut in 0..bytes.len() {
            assert!(listing(&bytes[..cut]).is_none(), "{cut}");
        }
    }
}
