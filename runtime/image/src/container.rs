//! Fat binaries: a header, then entries one behind another, each PTX or a cubin, perhaps compressed.
//!
//! NVIDIA does not document the format. The offsets below are what `fatbinary` of CUDA 13.0 writes. A test compiles
//! with every mode that it has.
//!
//! Container: magic, `u16` version 1, `u16` header length, `u64` length of the entries.
//!
//! Entry:
//! - `u16` kind, `u16` version, `u32` header length;
//! - `u64` payload length with padding, `u32` compressed length;
//! - `u32` offset of options, `u16` × 2 version of the code, `u32` architecture;
//! - `u32` offset and `u32` length of the source's name;
//! - `u64` flags, `u64`, `u64` length before compression.

/// What a fat binary begins with: 0xBA55ED50, little-endian.
pub(crate) const MAGIC: &[u8] = b"\x50\xed\x55\xba";

/// Kind of an entry that is PTX.
pub(crate) const PTX: u16 = 1;

/// Kind of an entry that is a cubin.
pub(crate) const ELF: u16 = 2;

/// Kind of an entry that is the compiler's intermediate code, scrambled.
pub(crate) const INTERMEDIATE: u16 = 8;

/// Entry is a raw LZ4 block.
const FLAG_LZ4: u64 = 0x2000;
/// Entry is an LZ4 frame, as far as is known; told by its magic in any case.
const FLAG_LZ4_FRAME: u64 = 0x4000;
/// Entry is zstd.
const FLAG_ZSTD: u64 = 0x8000;
/// Entry is for one architecture alone, `sm_90a`.
const FLAG_ARCH_ONLY: u64 = 0x10_0000;
/// Entry is for a family of architectures, `sm_100f`.
const FLAG_FAMILY: u64 = 0x20_0000;

const HEADER: usize = 16;
const ENTRY_HEADER: usize = 64;

/// One fat binary.
#[derive(Debug)]
pub(crate) struct Container<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    /// What is wrong behind the last whole entry.
    pub(crate) fault: Option<String>,
}

/// One entry, as it lies there.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) kind: u16,
    pub(crate) arch: u32,
    pub(crate) suffix: Option<char>,
    pub(crate) source: Option<String>,
    pub(crate) payload: &'a [u8],
    /// Length before compression, if it is compressed.
    pub(crate) compressed_from: Option<u64>,
}

/// Every fat binary in the bytes, and whether anything but zeros lies between them. What lies inside one is not searched for another.
pub(crate) fn containers(bytes: &[u8]) -> (Vec<Container<'_>>, bool) {
    let mut found = Vec::new();
    let (mut from, mut behind) = (0, 0);
    let mut has_rest = false;
    let is_rest = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    // Where one ends that is cut off is not known.
    let mut is_cut = false;
    while let Some(at) = memchr::memmem::find(&bytes[from..], MAGIC) {
        let at = from + at;
        match container(&bytes[at..]) {
            Some((container, length)) => {
                has_rest |= !is_cut && is_rest(&bytes[behind..at]);
                is_cut = container.fault.is_some();
                found.push(container);
                from = at + length;
                behind = from;
            }
            // The magic alone is also in the runtime's machine code.
            None => from = at + MAGIC.len(),
        }
    }
    has_rest |= !is_cut && is_rest(&bytes[behind..]);
    (found, has_rest)
}

/// The fat binary that the bytes begin with, and how many of them were looked at.
pub(crate) fn container(bytes: &[u8]) -> Option<(Container<'_>, usize)> {
    if u16_at(bytes, 4)? != 1 {
        return None;
    }
    let header = usize::from(u16_at(bytes, 6)?);
    let size = usize::try_from(u64_at(bytes, 8)?).ok()?;
    if header < HEADER || bytes.len() < header {
        return None;
    }
    let body = &bytes[header..];
    let whole = body.get(..size);
    let mut rest = whole.unwrap_or(body);
    let mut entries = Vec::new();
    let mut fault = None;
    while !rest.is_empty() {
        let Some((entry, after)) = entry(rest) else {
            let cut = if whole.is_some() { "damaged" } else { "cut off" };
            fault = Some(format!("entry {} is {cut}", entries.len()));
            break;
        };
        entries.push(entry);
        rest = after;
    }
    if fault.is_none() && whole.is_none() {
        fault = Some(format!("it is cut off behind entry {}", entries.len()));
    }
    let looked_at = bytes.len() - rest.len() - (body.len() - whole.unwrap_or(body).len());
    Some((Container { entries, fault }, looked_at))
}

fn entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let header = usize::try_from(u32_at(bytes, 4)?).ok().filter(|header| *header >= ENTRY_HEADER)?;
    let size = usize::try_from(u64_at(bytes, 8)?).ok()?;
    let (header, body) = bytes.split_at_checked(header)?;
    let (payload, rest) = body.split_at_checked(size)?;
    let compressed = usize::try_from(u32_at(header, 16)?).ok()?;
    let flags = u64_at(header, 40)?;
    let is_compressed = flags & (FLAG_LZ4 | FLAG_LZ4_FRAME | FLAG_ZSTD) != 0;
    let name = || {
        let offset = usize::try_from(u32_at(header, 32)?).ok().filter(|offset| *offset >= ENTRY_HEADER)?;
        let length = usize::try_from(u32_at(header, 36)?).ok().filter(|length| *length > 0)?;
        let name = header.get(offset..)?.get(..length)?;
        Some(String::from_utf8_lossy(&name[..memchr::memchr(0, name).unwrap_or(name.len())]).into_owned())
    };
    let entry = Entry {
        kind: u16_at(header, 0)?,
        arch: u32_at(header, 28)?,
        suffix: match flags {
            _ if flags & FLAG_ARCH_ONLY != 0 => Some('a'),
            _ if flags & FLAG_FAMILY != 0 => Some('f'),
            _ => None,
        },
        source: name(),
        // Behind a compressed payload the padding is not part of it.
        payload: if is_compressed { payload.get(..compressed)? } else { payload },
        compressed_from: is_compressed.then(|| u64_at(header, 56)).flatten(),
    };
    Some((entry, rest))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
pub(crate) mod made {
    //! Fat binaries made by hand.

    /// One entry; a compressed one says from how many bytes.
    pub(crate) fn entry(kind: u16, arch: u32, flags: u64, payload: &[u8], compressed_from: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(0x101_u16.to_le_bytes());
        bytes.extend(64_u32.to_le_bytes());
        let padded = payload.len().next_multiple_of(8);
        bytes.extend((padded as u64).to_le_bytes());
        bytes.extend(if compressed_from == 0 { [0; 4] } else { (payload.len() as u32).to_le_bytes() });
        bytes.extend([0; 8]);
        bytes.extend(arch.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(flags.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(compressed_from.to_le_bytes());
        bytes.extend(payload);
        bytes.resize(64 + padded, 0);
        bytes
    }

    /// A container of these entries.
    pub(crate) fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let entries = entries.concat();
        let mut bytes = super::MAGIC.to_vec();
        bytes.extend(1_u16.to_le_bytes());
        bytes.extend(16_u16.to_le_bytes());
        bytes.extend((entries.len() as u64).to_le_bytes());
        bytes.extend(entries);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<u8> {
        made::container(&[made::entry(PTX, 80, 0x11, b".version 9.0", 0), made::entry(ELF, 90, 0x10_8011, b"12345", 99)])
    }

    #[test]
    fn a_header_is_as_long_as_it_says_and_no_shorter_than_known() {
        let with = |header: u16, bytes: usize| {
            let mut made = two();
            made[6..8].copy_from_slice(&header.to_le_bytes());
            container(&made[..bytes]).is_some()
        };
        assert!(with(16, 16) && with(17, 17) && with(16, 100));
        assert!(!with(15, 100) && !with(16, 15) && !with(101, 100));
    }

    #[test]
    fn an_entry_may_name_its_source_and_a_family() {
        let named = |offset: u32, length: u32| {
            let mut bytes = made::entry(ELF, 100, FLAG_FAMILY, b"12345678", 0);
            bytes.splice(64..64, *b"a.cu\0\0\0\0");
            bytes[4..8].copy_from_slice(&72_u32.to_le_bytes());
            bytes[32..36].copy_from_slice(&offset.to_le_bytes());
            bytes[36..40].copy_from_slice(&length.to_le_bytes());
            let (entry, _) = entry(&bytes).expect("an entry");
            (entry.suffix, entry.source, entry.payload.to_vec())
        };
        for (offset, length, wanted) in
            [(64, 8, Some("a.cu")), (64, 1, Some("a")), (65, 2, Some(".c")), (63, 8, None), (64, 0, None), (64, 9, None)]
        {
            assert_eq!(named(offset, length), (Some('f'), wanted.map(str::to_owned), b"12345678".to_vec()), "{offset} {length}");
        }
    }

    #[test]
    fn entries_come_with_what_their_headers_say() {
        let bytes = [b"before ".to_vec(), two(), two()].concat();
        let (found, _) = containers(&bytes);
        assert_eq!(found.len(), 2);
        for container in found {
            assert_eq!(container.fault, None);
            let [ptx, elf] = &container.entries[..] else { panic!("two entries were put in") };
            assert_eq!((ptx.kind, ptx.arch, ptx.suffix, ptx.compressed_from), (PTX, 80, None, None));
            assert_eq!(ptx.payload, b".version 9.0\0\0\0\0");
            assert_eq!((elf.kind, elf.arch, elf.suffix, elf.compressed_from), (ELF, 90, Some('a'), Some(99)));
            assert_eq!(elf.payload, b"12345");
        }
    }

    #[test]
    fn what_is_whole_stands_and_what_is_cut_off_is_said() {
        let bytes = two();
        for cut in 0..bytes.len() {
            let (found, _) = containers(&bytes[..cut]);
            if let Some(container) = found.first() {
                assert!(container.fault.is_some(), "{cut}");
                assert_eq!(container.entries.len(), usize::from(cut >= 16 + 64 + 16), "{cut}");
            }
        }
        assert!(containers(b"\x50\xed\x55\xba\x02\x00\x10\x00 machine code").0.is_empty());
    }

    #[test]
    fn many_magics_take_no_longer_than_their_bytes() {
        // Each could be a container of all that follow.
        let mut bytes = Vec::new();
        for _ in 0..200_000 {
            bytes.extend(b"\x50\xed\x55\xba\x01\x00\x10\x00\xff\xff\xff\xff\x00\x00\x00\x00");
        }
        assert!(!containers(&bytes).0.is_empty());
    }
}
