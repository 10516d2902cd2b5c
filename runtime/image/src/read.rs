//! From bytes to an image: what are they, and what lies in them?

use crate::brief::{Brief, Scan, without_ptx};
use crate::compression::Budget;
use crate::container::{self, Entry};
use crate::elf::{self, Elf};
use crate::place::{Arch, Place};
use crate::record::Records;
use crate::{Content, Form, Image, ImageError, Part, archive, ptx};
use std::borrow::Cow;

/// What LLVM's bitcode begins with.
const BITCODE: &[u8] = b"BC\xc0\xde";

const COMPILED_LATER: &str = "its host code is compiled when it is linked, and its fat binary with it: compile it without -flto";

/// Most notes of one image.
const MOST_NOTES: usize = 100;

/// Finds all device code and all site maps in a file's bytes.
///
/// PTX may end with zeros, as it does in memory. Uncompressed code is borrowed.
///
/// # Errors
/// If nothing in it is device code that can be read. What is damaged beside what can be read is noted in the image.
///
/// # Examples
/// ```
/// let image = cuinstr_image::read(b".version 9.0\n.target sm_80\n.visible .entry gemm() { ret; }")?;
/// assert_eq!(image.kernels()[0].name, "gemm");
/// assert!(image.without_ptx().next().is_none());
/// # Ok::<(), cuinstr_image::ImageError>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Image<'_>, ImageError> {
    let mut parts = Vec::new();
    let found = scan(bytes, |part| parts.push(part))?;
    let (form, mut notes, mut records) = (found.form, found.notes, Records::default());
    let mut faults =
        |what: &dyn std::fmt::Display, found: Vec<String>| notes.extend(found.into_iter().map(|fault| format!("{what}: {fault}")));
    for part in &parts {
        match &part.content {
            Content::Ptx(text) => faults(&part.place, records.take_ptx(text)),
            // What is borrowed is searched with the whole.
            Content::Code(Cow::Owned(bytes)) => faults(&part.place, records.take_raw(bytes)),
            _ => {}
        }
    }
    if form != Form::Ptx {
        faults(&Place::default(), records.take_raw(bytes));
    }
    notes.truncate(MOST_NOTES);
    Ok(Image { form, parts, site_maps: records.maps, notes })
}

/// Finds all device code in a file's bytes. Each part is handed on as soon as it is decompressed, so that no two need
/// memory at once. Gives back what is left to say of all of them.
///
/// # Errors
/// As [`read`].
pub fn scan<'a>(bytes: &'a [u8], mut take: impl FnMut(Part<'a>)) -> Result<Scan, ImageError> {
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    let mut briefs = Vec::new();
    let mut hand_on = |part: Part<'a>| {
        briefs.push(Brief::of(&part));
        take(part);
    };
    let mut reader = Reader {
        take: &mut hand_on,
        found: 0,
        notes: Vec::new(),
        budget: Budget::new(bytes.len().saturating_mul(Image::EXPANSION).saturating_add(Image::ALLOWANCE)),
    };
    let form = reader.file(bytes, &Place::default());
    let Reader { notes, .. } = reader;
    match (form, briefs.is_empty()) {
        (Some(form), false) => Ok(Scan { form, notes, without_ptx: without_ptx(briefs) }),
        (Some(_), true) if !notes.is_empty() => Err(ImageError::Damaged(notes.join("; "))),
        (Some(Form::Archive), true) => Err(ImageError::NoDeviceCode("library")),
        (Some(Form::Host), true) => Err(ImageError::NoDeviceCode("object or executable")),
        (Some(_), true) => Err(ImageError::NoDeviceCode("file")),
        (None, _) => Err(ImageError::Unknown(beginning(bytes))),
    }
}

struct Reader<'a, 't> {
    take: &'t mut dyn FnMut(Part<'a>),
    /// How many parts were handed on.
    found: usize,
    notes: Vec<String>,
    budget: Budget,
}

impl<'a> Reader<'a, '_> {
    fn part(&mut self, part: Part<'a>) {
        self.found += 1;
        (self.take)(part);
    }

    fn note(&mut self, place: &Place, what: &str) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(format!("{place}: {what}"));
        }
    }

    /// Takes what a file holds, or a member of a library; nothing is known about bytes of no form.
    fn file(&mut self, bytes: &'a [u8], place: &Place) -> Option<Form> {
        if ptx::is_ptx(bytes) {
            let text = ptx::text(bytes);
            self.part(Part { place: place.clone(), arch: ptx::target(&text), source: None, content: Content::Ptx(text) });
            return Some(Form::Ptx);
        }
        if bytes.starts_with(archive::THIN_MAGIC) {
            self.note(place, "a thin library only names files; give those");
            return Some(Form::Archive);
        }
        if bytes.starts_with(archive::MAGIC) {
            if place.member.is_some() {
                self.note(place, "a library in a library is not read");
            } else {
                self.archive(bytes);
            }
            return Some(Form::Archive);
        }
        if bytes.starts_with(container::MAGIC) {
            self.containers(bytes, place, true);
            return Some(Form::Fatbin);
        }
        if let Some(elf) = Elf::new(bytes) {
            if elf.is_cubin() {
                self.part(Part { place: place.clone(), arch: elf.arch(), source: None, content: Content::Code(Cow::Borrowed(bytes)) });
                return Some(Form::Cubin);
            }
            if !elf.has_its_sections() {
                self.note(place, "its table of sections lies beyond its end: it is cut off");
            }
            let sections = elf.fat_sections();
            if sections.is_empty() && elf.is_compiled_later() && registers(bytes) {
                self.note(place, COMPILED_LATER);
            }
            let (mut behind, mut number) = (0, 0);
            for (section, range) in sections {
                self.elsewhere(&bytes[behind..range.start], place, &mut number);
                behind = range.end;
                self.containers(&bytes[range], &Place { section: Some(section), ..place.clone() }, true);
            }
            self.elsewhere(&bytes[behind..], place, &mut number);
            return Some(Form::Host);
        }
        if bytes.starts_with(BITCODE) && registers(bytes) {
            self.note(place, COMPILED_LATER);
            return Some(Form::Host);
        }
        // Windows, macOS, 32 bits, or a file with such in it: wherever they lie.
        let before = self.found;
        self.containers(bytes, place, false);
        if bytes.starts_with(elf::MAGIC) && self.found == before {
            self.note(place, "its ELF header is damaged, or not of a 64-bit little-endian machine");
            return Some(Form::Host);
        }
        (self.found > before).then_some(Form::Other)
    }

    fn archive(&mut self, bytes: &'a [u8]) {
        let (members, fault) = archive::members(bytes);
        for (index, member) in members.into_iter().enumerate() {
            // A member of no known form, a text say, is no fault.
            self.file(member.bytes, &Place { member: Some((index, member.name)), ..Place::default() });
        }
        if let Some(fault) = fault {
            self.note(&Place::default(), &fault);
        }
    }

    /// Takes the fat binaries in these bytes, which are nothing else where `is_all`.
    fn containers(&mut self, bytes: &'a [u8], place: &Place, is_all: bool) {
        let (containers, has_rest) = container::containers(bytes);
        if is_all && has_rest {
            self.note(place, "a fat binary is damaged: there are bytes that belong to none");
        }
        for (number, container) in containers.into_iter().enumerate() {
            let place = Place { container: Some(number), ..place.clone() };
            for (index, entry) in container.entries.into_iter().enumerate() {
                self.entry(entry, Place { entry: Some(index), ..place.clone() });
            }
            if let Some(fault) = container.fault {
                self.note(&place, &fault);
            }
        }
    }

    /// Takes the whole fat binaries in other parts of a host's file: in a section of another name, or among data that the program loads itself.
    fn elsewhere(&mut self, bytes: &'a [u8], place: &Place, number: &mut usize) {
        let (containers, _) = container::containers(bytes);
        for container in containers.into_iter().filter(|container| container.fault.is_none()) {
            for (index, entry) in container.entries.into_iter().enumerate() {
                self.entry(entry, Place { container: Some(*number), entry: Some(index), ..place.clone() });
            }
            *number += 1;
        }
    }

    fn entry(&mut self, entry: Entry<'a>, place: Place) {
        let arch = (entry.arch != 0).then_some(Arch { number: entry.arch, suffix: entry.suffix });
        let content = match self.content(&entry) {
            Ok(content) => content,
            Err(why) => {
                self.note(&place, &why);
                Content::Unread(why)
            }
        };
        self.part(Part { place, arch, source: entry.source, content });
    }

    fn content(&mut self, entry: &Entry<'a>) -> Result<Content<'a>, String> {
        if entry.kind == container::INTERMEDIATE {
            return Ok(Content::Intermediate);
        }
        let bytes = match entry.compressed_from {
            Some(size) => Cow::Owned(self.budget.decompress(entry.payload, size)?),
            None => Cow::Borrowed(entry.payload),
        };
        // What it is counts, not what the entry says: kinds are added from time to time.
        if Elf::new(&bytes).is_some_and(Elf::is_cubin) {
            return Ok(Content::Code(bytes));
        }
        if ptx::is_ptx(&bytes) {
            return Ok(Content::Ptx(match bytes {
                Cow::Borrowed(bytes) => ptx::text(bytes),
                Cow::Owned(bytes) => Cow::Owned(ptx::text(&bytes).into_owned()),
            }));
        }
        Err(match entry.kind {
            container::PTX => "this entry should be PTX, but it does not begin as PTX does".to_owned(),
            container::ELF => "this entry should be a cubin, but it does not begin as a cubin does".to_owned(),
            kind => format!("entries of kind {kind} are not known"),
        })
    }
}

/// How the bytes begin, for a message.
fn beginning(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(16)];
    format!("\"{}\"", bytes.escape_ascii())
}

/// Whether host code registers fat binaries, by the names of the functions that it calls. They stand in the symbol table even where code is compressed.
fn registers(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"__cudaRegister").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::made::{container, entry};
    use crate::record::made::{map, ptx, record};
    use crate::{container, elf};
    use cuinstr_abi::sites::SiteMap;
    use proptest::prelude::*;

    /// A fat binary with PTX and machine code, both compressed, whose kernels and site maps differ.
    fn fatbin() -> Vec<u8> {
        let text = ptx(&map("a.cu"));
        let code = elf::made::cubin("_Z1fv", record(&map("b.cu")).as_bytes());
        let lz4 = lz4_flex::block::compress(text.as_bytes());
        let zstd = ruzstd::encoding::compress_to_vec(&code[..], ruzstd::encoding::CompressionLevel::Fastest);
        container(&[
            entry(container::PTX, 80, 0x2011, &lz4, text.len() as u64),
            entry(container::ELF, 90, 0x10_8011, &zstd, code.len() as u64),
        ])
    }

    fn host(section: &str, content: &[u8]) -> Vec<u8> {
        elf::made::file(62, 0, &[(".text", 1, 6, b"x", 0), (section, 1, 2, content, 0)])
    }

    fn library(members: &[&[u8]]) -> Vec<u8> {
        let mut bytes = archive::MAGIC.to_vec();
        for (index, member) in members.iter().enumerate() {
            let name = format!("{index}.o/");
            bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, member.len()).bytes());
            bytes.extend(*member);
            bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        }
        bytes
    }

    fn files(image: &Image<'_>) -> Vec<String> {
        image.site_maps.iter().map(|SiteMap { file, .. }| file.clone()).collect()
    }

    #[test]
    fn the_same_code_is_found_in_every_form() {
        let fatbin = fatbin();
        let windows = [b"MZ\x90\0 not aligned ".to_vec(), fatbin.clone()].concat();
        for (bytes, form) in [
            (fatbin.clone(), Form::Fatbin),
            (host(".nv_fatbin", &fatbin), Form::Host),
            (library(&[b"odd", &host("__nv_relfatbin", &fatbin)]), Form::Archive),
            (windows, Form::Other),
        ] {
            let image = read(&bytes).expect("it was made whole");
            assert_eq!((image.form, &image.notes), (form, &Vec::new()));
            assert_eq!(files(&image), ["a.cu", "b.cu"]);
            let kernels: Vec<_> = image.kernels().into_iter().map(|kernel| kernel.signature).collect();
            assert_eq!(kernels, ["k", "f()"]);
            let arches: Vec<_> = image.parts.iter().map(|part| part.arch.expect("each says so").to_string()).collect();
            assert_eq!(arches, ["80", "90a"]);
            // What was compiled for another architecture may be other code.
            assert_eq!(image.without_ptx().map(|part| part.arch).collect::<Vec<_>>(), [Arch::from_name("sm_90a")]);
        }
    }

    #[test]
    fn a_fat_binary_in_a_section_of_another_name_is_found_too() {
        let other = container(&[entry(container::PTX, 90, 0x11, ptx(&map("other.cu")).as_bytes(), 0)]);
        let sections = [(".nv_fatbin", 1, 2, &fatbin()[..], 0), ("mine", 1, 2, &other, 0), (".data", 1, 3, &other, 0)];
        let bytes = elf::made::file(62, 0, &sections);
        let image = read(&bytes).expect("it was made whole");
        let places: Vec<_> = image.parts.iter().map(|part| part.place.to_string()).collect();
        let first = ".nv_fatbin: container 0, entry ";
        assert_eq!(places, [&format!("{first}0"), &format!("{first}1"), "container 0, entry 0", "container 1, entry 0"]);
        assert_eq!(image.notes, Vec::<String>::new());
    }

    #[test]
    fn lone_text_and_lone_code_are_images_too() {
        let text = ptx(&map("a.cu")) + "\0\0";
        let image = read(text.as_bytes()).expect("it is PTX");
        assert_eq!((image.form, files(&image)), (Form::Ptx, vec!["a.cu".to_owned()]));
        assert_eq!(image.ptx().map(|(_, text)| text.ends_with("}\n")).collect::<Vec<_>>(), [true]);

        let code = elf::made::cubin("f", record(&map("a.cu")).as_bytes());
        let image = read(&code).expect("it is a cubin");
        assert_eq!((image.form, files(&image)), (Form::Cubin, vec!["a.cu".to_owned()]));
        assert_eq!(image.without_ptx().count(), 1);
    }

    #[test]
    fn code_without_text_is_told_a_fat_binary_at_a_time() {
        let text = ptx(&map("a.cu"));
        let code = elf::made::cubin("k", b"");
        let stub = elf::made::file(190, 0x0600_5004, &[]);
        let [text, code, stub] = [(container::PTX, text.as_bytes()), (container::ELF, &code), (container::ELF, &stub)]
            .map(|(kind, bytes)| entry(kind, 80, 0x11, bytes, 0));
        let bytes = [container(&[text, code.clone()]), container(&[code]), container(&[stub])].concat();
        let image = read(&bytes).expect("it was made whole");
        let places: Vec<_> = image.without_ptx().map(|part| part.place.to_string()).collect();
        assert_eq!(places, ["container 1, entry 0"]);
    }

    #[test]
    fn code_of_a_kernel_that_its_text_lacks_is_told() {
        let text = ptx(&map("a.cu"));
        let [of_text, other] = ["k", "other"].map(|name| elf::made::cubin(name, b""));
        let [text, of_text, other] = [(container::PTX, text.as_bytes()), (container::ELF, &of_text), (container::ELF, &other)]
            .map(|(kind, bytes)| entry(kind, 80, 0x11, bytes, 0));
        let bytes = container(&[text, of_text, other]);
        let without = scan(&bytes, |_| {}).expect("it was made whole").without_ptx;
        let told: Vec<_> = without.iter().map(|part| (part.place.entry, part.kernels.iter().map(String::as_str).collect())).collect();
        assert_eq!(told, [(Some(2), vec!["other"])]);
    }

    #[test]
    fn what_can_not_be_read_is_a_part_and_a_note() {
        let good = entry(container::ELF, 80, 0x11, &elf::made::cubin("f", b""), 0);
        let bytes = container(&[
            entry(container::PTX, 80, 0x8011, b"no zstd", 9000),
            entry(container::PTX, 80, 0x11, b"int main", 0),
            entry(container::INTERMEDIATE, 80, 0x8011, b"scrambled", 99),
            entry(77, 80, 0x11, b"unheard of", 0),
            good,
        ]);
        let image = read(&bytes).expect("one entry is good");
        let contents: Vec<_> = image.parts.iter().map(|part| std::mem::discriminant(&part.content)).collect();
        let [unread, other] = [Content::Unread(String::new()), Content::Intermediate].map(|content| std::mem::discriminant(&content));
        assert_eq!(contents[..4], [unread, unread, other, unread]);
        assert_eq!(image.notes.len(), 3, "{:?}", image.notes);
        assert!(image.notes[2].ends_with("container 0, entry 3: entries of kind 77 are not known"), "{:?}", image.notes);
        assert_eq!(image.without_ptx().count(), 5);
    }

    #[test]
    fn an_error_says_what_the_file_is_instead() {
        let said = |bytes: &[u8]| read(bytes).expect_err("there is no device code").to_string();
        assert_eq!(said(b""), "the file is empty");
        assert_eq!(
            said(b"#include <x>\n and more"),
            "this is neither PTX nor a cubin, fat binary, object, executable or library: it begins with \"#include <x>\\n an\""
        );
        assert_eq!(said(&host(".data", b"")), "this object or executable holds no device code");
        assert_eq!(said(&library(&[&host(".data", b"")])), "this library holds no device code");
        assert_eq!(said(b"!<thin>\n"), "nothing in it can be read: the file: a thin library only names files; give those");
        assert_eq!(said(&fatbin()[..40]), "nothing in it can be read: container 0: entry 0 is cut off");
        assert!(said(b"\x7fELF\x01").starts_with("nothing in it can be read: the file: its ELF header is damaged"));
        let whole = host(".nv_fatbin", &fatbin());
        let cut = "nothing in it can be read: the file: its table of sections lies beyond its end: it is cut off";
        assert_eq!(said(&whole[..64]), cut);
        // Without its table of sections what is whole in it is found all the same, and the fault is told.
        let image = read(&whole[..whole.len() - 1]).expect("the fat binary is whole").notes;
        assert_eq!(image, [cut.trim_start_matches("nothing in it can be read: ")]);
    }

    #[test]
    fn host_code_that_is_compiled_later_is_told_if_it_has_kernels() {
        let object = |symbols: &[u8]| elf::made::file(62, 0, &[(".text", 1, 6, b"", 0), (".gnu.lto_.symtab.1", 1, 2, symbols, 0)]);
        let bitcode = |symbols: &[u8]| [BITCODE, symbols].concat();
        let good = host(".nv_fatbin", &fatbin());
        let notes = |member: &[u8]| read(&library(&[&good, member])).unwrap().notes.len();
        for made in [object, bitcode as fn(&[u8]) -> Vec<u8>] {
            assert_eq!((notes(&made(b"__cudaRegisterFatBinary")), notes(&made(b"main"))), (1, 0));
        }
        let fat =
            elf::made::file(62, 0, &[(".nv_fatbin", 1, 2, &fatbin(), 0), (".gnu.lto_.symtab.1", 1, 2, b"__cudaRegisterFatBinary", 0)]);
        assert_eq!(notes(&fat), 0);
    }

    #[test]
    fn a_host_with_its_own_mention_of_the_magic_is_no_damage() {
        let mentions = format!("{}%08x {{}}", crate::SITES_MAGIC);
        let bytes = elf::made::file(62, 0, &[(".rodata", 1, 2, mentions.as_bytes(), 0), (".nv_fatbin", 1, 2, &fatbin(), 0)]);
        assert_eq!(read(&bytes).expect("it was made whole").notes, Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn a_file_with_changes_is_safe(form in 0..4_usize, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), cut in any::<prop::sample::Index>()) {
            let fatbin = fatbin();
            let mut bytes = match form {
                0 => fatbin,
                1 => host(".nv_fatbin", &fatbin),
                2 => library(&[&host(".nv_fatbin", &fatbin), &fatbin]),
                _ => ptx(&map("a.cu")).into_bytes(),
            };
            for (index, value) in &changes {
                let at = index.index(bytes.len());
                bytes[at] = *value;
            }
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                if let Ok(image) = read(bytes) {
                    let _ = (image.kernels(), image.without_ptx().count());
                }
            }
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let _ = read(&bytes);
        }
    }
}
