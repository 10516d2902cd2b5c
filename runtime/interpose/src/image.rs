//! Code that a program hands to the driver by its address alone: what it is, and how long.

use std::ffi::{CStr, c_void};

/// What lies at an address that the driver is to load code from.
pub(crate) enum Image<'a> {
    /// PTX, without the zero at its end.
    Text(&'a [u8]),
    /// A fat binary.
    Fat(&'a [u8]),
    /// A cubin, or another file of machine code.
    Code(&'a [u8]),
}

/// What a fat binary begins with, what `nvcc` puts around one, and what ELF files begin with.
const FAT: u32 = 0xba55_ed50;
const WRAPPED: u32 = 0x4662_43b1;
const ELF: u32 = 0x464c_457f;

/// Longest head that ELF files have.
const ELF_HEAD: usize = 64;

impl<'a> Image<'a> {
    /// All of it.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        let (Self::Text(bytes) | Self::Fat(bytes) | Self::Code(bytes)) = self;
        bytes
    }

    /// What lies there; nothing if the address is null or the code of no known form.
    ///
    /// # Safety
    /// The address must be one that the driver may be given, and what lies there must stay.
    pub(crate) unsafe fn at(image: *const c_void) -> Option<Self> {
        if image.is_null() {
            return None;
        }
        // SAFETY: each form is longer than four bytes, and shorter text ends with a zero before.
        unsafe {
            let first = image.cast::<u8>();
            if (0..3).any(|at| *first.add(at) == 0) {
                return None;
            }
            match first.cast::<u32>().read_unaligned() {
                WRAPPED => {
                    let inner = first.add(8).cast::<*const c_void>().read_unaligned();
                    Self::fat(inner)
                }
                FAT => Self::fat(image),
                ELF => Some(Self::Code(elf(first))),
                _ => Some(CStr::from_ptr(image.cast()).to_bytes()).filter(|text| cuinstr::is_ptx(text)).map(Self::Text),
            }
        }
    }

    /// The fat binary at an address: its head says how long it is.
    ///
    /// # Safety
    /// As [`Image::at`].
    unsafe fn fat(at: *const c_void) -> Option<Self> {
        // SAFETY: the caller's promise; the head has sixteen bytes.
        unsafe {
            let first = at.cast::<u8>();
            if first.is_null() || first.cast::<u32>().read_unaligned() != FAT {
                return None;
            }
            let head = usize::from(first.add(6).cast::<u16>().read_unaligned());
            let rest = usize::try_from(first.add(8).cast::<u64>().read_unaligned()).ok()?;
            Some(Self::Fat(std::slice::from_raw_parts(first, head.checked_add(rest)?)))
        }
    }

    /// The same for bytes of known length, as files and inputs of linkers are.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let first = u32::from_le_bytes(*bytes.first_chunk()?);
        match first {
            FAT => Some(Self::Fat(bytes)),
            ELF => Some(Self::Code(bytes)),
            _ => {
                let text = &bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
                cuinstr::is_ptx(text).then_some(Self::Text(text))
            }
        }
    }
}

/// An ELF file, as far as its tables say that it goes.
///
/// # Safety
/// A whole file must lie there.
unsafe fn elf<'a>(first: *const u8) -> &'a [u8] {
    // SAFETY: a whole file has its head and the tables that the head names.
    unsafe {
        let word = |at: usize| first.add(at).cast::<u64>().read_unaligned() as usize;
        let half = |at: usize| usize::from(first.add(at).cast::<u16>().read_unaligned());
        let (segments, sections) = (word(32), word(40));
        let (segment_size, segment_count, section_size, section_count) = (half(54), half(56), half(58), half(60));
        let mut end = ELF_HEAD.max(segments + segment_size * segment_count).max(sections + section_size * section_count);
        for section in (0..section_count).map(|index| sections + index * section_size) {
            // Sections of zeroes (8) take no room in the file.
            let kind = first.add(section + 4).cast::<u32>().read_unaligned();
            if kind != 8 {
                end = end.max(word(section + 24) + word(section + 32));
            }
        }
        std::slice::from_raw_parts(first, end)
    }
}
