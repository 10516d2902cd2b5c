//! ELF files: cubins, and the hosts' files that carry fat binaries in sections.

use crate::place::Arch;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use std::ops::Range;

/// What any ELF file begins with.
pub(crate) const MAGIC: &[u8] = b"\x7fELF";

/// Sections in which compilers put fat binaries: for the runtime, and for the device linker.
const FAT_SECTIONS: [&[u8]; 2] = [b".nv_fatbin", b"__nv_relfatbin"];

/// Longest name of a section that matters here, apart from those that hold a kernel's.
const LONGEST_SECTION_NAME: usize = 64;

/// Operating system by which cubins are marked since their flags hold the architecture one byte higher.
const NEW_ABI: u8 = 0x41;

/// Bit of a symbol's `st_other` that marks a kernel.
const STO_CUDA_ENTRY: u8 = 0x10;

type Header = FileHeader64<LE>;

/// A 64-bit little-endian ELF file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
    header: &'a Header,
}

/// Whether a cubin holds machine code of any function: the device linker's stubs hold none.
pub(crate) fn has_functions(bytes: &[u8]) -> bool {
    let Some(elf) = Elf::new(bytes) else { return true };
    let executable = |section: &&SectionHeader64<LE>| section.sh_flags.get(LE).0 & elf::SHF_EXECINSTR.0 != 0;
    elf.sections().iter().filter(executable).any(|section| section.sh_size.get(LE) > 0)
}

impl<'a> Elf<'a> {
    /// The file, if its header can be read.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let header = Header::parse(bytes).ok()?;
        header.is_little_endian().then_some(Self { bytes, header })
    }

    /// Whether all that its headers speak of is there. The driver trusts them, and reads beyond the end.
    pub(crate) fn is_whole(self) -> bool {
        let is_there = |section: &SectionHeader64<LE>| section.data(LE, self.bytes).is_ok();
        let segments = self.header.program_headers(LE, self.bytes);
        let sections = self.header.section_headers(LE, self.bytes);
        segments.is_ok_and(|segments| segments.iter().all(|segment| segment.data(LE, self.bytes).is_ok()))
            && sections.is_ok_and(|sections| !sections.is_empty() && sections.iter().all(is_there))
    }

    /// Whether its table of sections lies within it, if it has one: that of an object that was cut off does not.
    pub(crate) fn has_its_sections(self) -> bool {
        self.header.section_headers(LE, self.bytes).is_ok()
    }

    /// Whether it holds what a compiler goes on with when it is linked, and nothing else (GCC's `-flto`).
    pub(crate) fn is_compiled_later(self) -> bool {
        let names = self.section_names();
        self.sections().iter().any(|section| name_at(names, section.sh_name.get(LE), LONGEST_SECTION_NAME).starts_with(b".gnu.lto_"))
    }

    /// Whether it is code for a GPU.
    pub(crate) fn is_cubin(self) -> bool {
        self.header.e_machine.get(LE) == elf::EM_CUDA
    }

    /// The architecture that a cubin's flags name.
    pub(crate) fn arch(self) -> Option<Arch> {
        let flags = self.header.e_flags.get(LE).0;
        let number = if self.header.e_ident.os_abi.0 == NEW_ABI { flags >> 8 & 0xff } else { flags & 0xff };
        (number != 0).then_some(Arch { number, suffix: None })
    }

    /// Where the sections that hold fat binaries lie, in the order of the file. Of two that overlap the first one counts.
    pub(crate) fn fat_sections(self) -> Vec<(String, Range<usize>)> {
        let names = self.section_names();
        let mut found: Vec<(u64, u64, &[u8])> = Vec::new();
        for section in self.sections() {
            let name = name_at(names, section.sh_name.get(LE), LONGEST_SECTION_NAME);
            if FAT_SECTIONS.iter().any(|known| name.starts_with(known))
                && let Some((offset, size)) = section.file_range(LE)
            {
                found.push((offset, size, name));
            }
        }
        found.sort_by_key(|(offset, ..)| *offset);
        let mut end = 0;
        let mut sections = Vec::new();
        for (offset, size, name) in found {
            let range = usize::try_from(offset).ok().zip(offset.checked_add(size).and_then(|end| usize::try_from(end).ok()));
            let Some((from, to)) = range else { continue };
            let range = from..to.min(self.bytes.len());
            if offset >= end && range.start <= range.end {
                end = to as u64;
                sections.push((String::from_utf8_lossy(name).into_owned(), range));
            }
        }
        sections
    }

    /// The symbols of a cubin's kernels, from its symbol table; or, where that is stripped, from the sections of their parameters.
    pub(crate) fn kernels(self) -> Vec<&'a [u8]> {
        // Names may overlap, which would let few bytes name many long ones; those of a compiler do not.
        let mut left = self.bytes.len();
        let mut found = Vec::new();
        let mut take = |strings: &'a [u8], offset: u32, skip: usize| {
            let name = name_at(strings, offset, left).get(skip..).unwrap_or_default();
            left = left.saturating_sub(name.len());
            if !name.is_empty() {
                found.push(name);
            }
        };
        let sections = self.sections();
        if let Some(table) = sections.iter().find(|section| section.sh_type.get(LE) == elf::SHT_SYMTAB) {
            let strings = sections.get(table.sh_link.get(LE) as usize).and_then(|section| section.data(LE, self.bytes).ok());
            let symbols: &[Sym64<LE>] = table.data_as_array(LE, self.bytes).unwrap_or_default();
            for symbol in symbols {
                let is_kernel = symbol.st_type() == elf::STT_FUNC && symbol.st_other.0 & STO_CUDA_ENTRY != 0;
                if is_kernel && symbol.st_shndx.get(LE) != elf::SHN_UNDEF {
                    take(strings.unwrap_or_default(), symbol.st_name.get(LE), 0);
                }
            }
        }
        let names = self.section_names();
        let parameters = b".nv.constant0.";
        for section in sections {
            let offset = section.sh_name.get(LE);
            if names.get(offset as usize..).is_some_and(|name| name.starts_with(parameters)) {
                take(names, offset, parameters.len());
            }
        }
        found
    }

    /// The symbols of a cubin's variables in global and constant memory.
    pub(crate) fn variables(self) -> Vec<&'a [u8]> {
        let mut left = self.bytes.len();
        let sections = self.sections();
        let names = self.section_names();
        let holds_variables = |index: elf::SymbolSection| {
            let offset = sections.get(usize::from(index.0)).map_or(u32::MAX, |section| section.sh_name.get(LE));
            let name = name_at(names, offset, LONGEST_SECTION_NAME);
            name.starts_with(b".nv.global") || (name.starts_with(b".nv.constant") && !name[12..].contains(&b'.'))
        };
        let mut found = Vec::new();
        let Some(table) = sections.iter().find(|section| section.sh_type.get(LE) == elf::SHT_SYMTAB) else { return found };
        let strings = sections.get(table.sh_link.get(LE) as usize).and_then(|section| section.data(LE, self.bytes).ok());
        let symbols: &[Sym64<LE>] = table.data_as_array(LE, self.bytes).unwrap_or_default();
        for symbol in symbols {
            if symbol.st_type() == elf::STT_OBJECT && holds_variables(symbol.st_shndx.get(LE)) {
                let name = name_at(strings.unwrap_or_default(), symbol.st_name.get(LE), left);
                left = left.saturating_sub(name.len());
                found.push(name);
            }
        }
        found
    }

    fn sections(self) -> &'a [SectionHeader64<LE>] {
        self.header.section_headers(LE, self.bytes).unwrap_or_default()
    }

    fn section_names(self) -> &'a [u8] {
        let index = self.header.section_strings_index(LE, self.bytes).ok();
        let section = index.and_then(|index| self.sections().get(index.0));
        section.and_then(|section| section.data(LE, self.bytes).ok()).unwrap_or_default()
    }
}

/// The name at an offset of a table of strings, cut to a length so that no search is long.
fn name_at(strings: &[u8], offset: u32, longest: usize) -> &[u8] {
    let name = strings.get(offset as usize..).unwrap_or_default();
    let name = &name[..name.len().min(longest)];
    &name[..memchr::memchr(0, name).unwrap_or(name.len())]
}

#[cfg(test)]
pub(crate) mod made {
    //! ELF files made by hand.

    /// A section: name, type, flags, contents, linked section.
    pub(crate) type Section<'a> = (&'a str, u32, u64, &'a [u8], u32);

    /// A file for that machine with those sections, numbered from 1; the table of their names is the last.
    pub(crate) fn file(machine: u16, flags: u32, sections: &[Section<'_>]) -> Vec<u8> {
        let mut names = vec![0];
        let mut body: Vec<u8> = Vec::new();
        let mut headers = vec![0; 64];
        let all = sections.iter().copied().chain([(".shstrtab", 3, 0, &[][..], 0)]);
        for (name, kind, flags, content, link) in all {
            let name_offset = names.len() as u32;
            names.extend(name.as_bytes());
            names.push(0);
            let content = if name == ".shstrtab" { names.as_slice() } else { content };
            headers.extend(name_offset.to_le_bytes());
            headers.extend(kind.to_le_bytes());
            headers.extend(flags.to_le_bytes());
            headers.extend([0; 8]);
            headers.extend((64 + body.len() as u64).to_le_bytes());
            headers.extend((content.len() as u64).to_le_bytes());
            headers.extend(link.to_le_bytes());
            headers.extend([0; 20]);
            body.extend(content);
        }
        let mut bytes = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0".to_vec();
        bytes.extend(machine.to_le_bytes());
        bytes.extend([1, 0, 0, 0]);
        bytes.extend([0; 16]);
        bytes.extend((64 + body.len() as u64).to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend([64, 0, 0, 0, 0, 0, 64, 0]);
        bytes.extend((sections.len() as u16 + 2).to_le_bytes());
        bytes.extend((sections.len() as u16 + 1).to_le_bytes());
        bytes.extend(body);
        bytes.extend(headers);
        bytes
    }

    /// A cubin for `sm_80` with one kernel, a device function and some data.
    pub(crate) fn cubin(kernel: &str, data: &[u8]) -> Vec<u8> {
        let strings = format!("\0{kernel}\0helper\0");
        let symbol = |name: u32, other: u8| {
            let mut symbol = name.to_le_bytes().to_vec();
            symbol.extend([0x12, other, 1, 0]);
            symbol.extend([0; 16]);
            symbol
        };
        let symbols = [symbol(1, 0x10), symbol(kernel.len() as u32 + 2, 0)].concat();
        let text = format!(".text.{kernel}");
        let parameters = format!(".nv.constant0.{kernel}");
        let sections: [Section<'_>; 5] = [
            (&text, 1, 6, b"code", 0),
            (".symtab", 2, 0, &symbols, 3),
            (".strtab", 3, 0, strings.as_bytes(), 0),
            (&parameters, 1, 2, b"", 0),
            (".nv.global.init", 1, 3, data, 0),
        ];
        file(190, 0x0600_5004, &sections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubin_names_its_kernels_and_architecture() {
        let bytes = made::cubin("_Z4gemmPf", b"");
        let elf = Elf::new(&bytes).expect("it is made whole");
        assert!(elf.is_cubin() && has_functions(&bytes));
        assert_eq!(elf.arch(), Some(Arch { number: 80, suffix: None }));
        // From the symbol table, and again from the section of its parameters.
        assert_eq!(elf.kernels(), [b"_Z4gemmPf"; 2]);
        assert!(!has_functions(&made::file(190, 0, &[(".nv.info", 1, 0, b"x", 0)])));
    }

    #[test]
    fn an_old_cubin_has_its_architecture_in_the_lowest_byte() {
        let mut bytes = made::file(190, 0x0050_054b, &[]);
        bytes[7] = 0x33;
        assert_eq!(Elf::new(&bytes).and_then(Elf::arch), Some(Arch { number: 75, suffix: None }));
    }

    #[test]
    fn a_host_shows_its_sections_of_fat_binaries() {
        let sections: [made::Section<'_>; 4] =
            [(".text", 1, 6, b"x", 0), (".nv_fatbin", 1, 2, b"first", 0), (".data", 1, 3, b"y", 0), ("__nv_relfatbin", 1, 2, b"second", 0)];
        let bytes = made::file(62, 0, &sections);
        let found = Elf::new(&bytes).expect("it is made whole").fat_sections();
        let found = found.into_iter().map(|(name, range)| (name, &bytes[range])).collect::<Vec<_>>();
        assert_eq!(found, [(".nv_fatbin".into(), &b"first"[..]), ("__nv_relfatbin".into(), b"second")]);
    }

    #[test]
    fn a_file_cut_anywhere_or_with_any_byte_changed_is_safe() {
        let bytes = made::cubin("f", b"data");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            for value in [0, 1, 0x7f, 0xff] {
                changed[at] = value;
                for bytes in [&changed[..], &bytes[..at]] {
                    if let Some(elf) = Elf::new(bytes) {
                        let _ = (elf.kernels(), elf.fat_sections(), elf.arch(), has_functions(bytes));
                    }
                }
            }
        }
    }
}
