//! What is read from PTX text: that it is some, its target, its kernels.

use crate::place::Arch;
use std::borrow::Cow;

/// Whether the bytes are PTX: behind blanks and comments comes `.version`.
pub(crate) fn is_ptx(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut words = Words { rest: bytes };
    words.next() == Some(b".version")
}

/// The text without the zeros that stand behind it in a fat binary.
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// The same as text. Bytes that are no UTF-8 are replaced, since ptxas refuses them.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = trimmed(bytes);
    // This is much faster than the other, which stops at each character.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// What `.target` names.
pub(crate) fn target(text: &str) -> Option<Arch> {
    let mut words = Words { rest: text.as_bytes() };
    words.find(|word| *word == b".target")?;
    Arch::from_name(std::str::from_utf8(words.next()?).ok()?)
}

/// The names behind `.entry`, in order.
pub(crate) fn kernels(text: &str) -> Vec<&[u8]> {
    let bytes = text.as_bytes();
    let finder = memchr::memmem::Finder::new(ENTRY);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(entry) = finder.find(&bytes[at..]).map(|length| at + length) {
        // What stands in front is not cut into words, but comments and strings must be known as such.
        while let Some(length) = bytes.get(at..entry).and_then(|between| memchr::memchr2(b'/', b'"', between)) {
            at += length;
            at += passed_over(&bytes[at..]).unwrap_or(1);
        }
        if at > entry {
            continue;
        }
        let mut words = Words { rest: &bytes[entry..] };
        if (entry == 0 || !is_word(bytes[entry - 1])) && words.next() == Some(ENTRY) {
            found.extend(words.next().filter(|name| name.first().is_some_and(|byte| !byte.is_ascii_digit())));
            at = bytes.len() - words.rest.len();
        } else {
            at = entry + ENTRY.len();
        }
    }
    found
}

/// What begins a kernel.
const ENTRY: &[u8] = b".entry";

/// Words of PTX: identifiers and directives; other characters, comments and strings are passed over.
struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let first = self.rest.first()?;
            if is_word(*first) {
                // A directive's dot begins a word, one inside is part of an instruction.
                let length = self.rest.iter().position(|byte| !is_word(*byte)).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(length);
                self.rest = rest;
                return Some(word);
            }
            self.rest = &self.rest[passed_over(self.rest).unwrap_or(1)..];
        }
    }
}

/// The length of the comment or string that begins here. One that is not closed goes to the text's end.
fn passed_over(rest: &[u8]) -> Option<usize> {
    let all = rest.len();
    match rest {
        [b'/', b'/', ..] => Some(memchr::memchr(b'\n', rest).unwrap_or(all)),
        [b'/', b'*', after @ ..] => Some(memchr::memmem::find(after, b"*/").map_or(all, |end| end + 4)),
        [b'"', after @ ..] => Some(memchr::memchr2(b'"', b'\n', after).map_or(all, |end| end + 2)),
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%' | b'.') || byte >= 0x80
}

/// What stands in the names of all kernels of the device runtime, since they are static.
const RUNTIME_SOURCE: &[u8] = b"_cuda_device_runtime_cu_";

/// Whether it is the toolkit's library for kernels that launch kernels, which is compiled from one source for each architecture.
pub(crate) fn is_device_runtime(text: &str) -> bool {
    let calls = || text.contains("__cudaCDP2LaunchDeviceV2") && text.contains("cnpLaunchDeviceV2");
    let is_own = |kernel: &&[u8]| kernel.starts_with(b"__nv_static_") && memchr::memmem::find(kernel, RUNTIME_SOURCE).is_some();
    calls() && Some(kernels(text)).is_some_and(|kernels| !kernels.is_empty() && kernels.iter().all(is_own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//\n// Generated\n/* .version */\n.version 9.0\n.target sm_90a, debug\n.address_size 64\n// .entry commented(\n.file 1 \".entry quoted\"\n.visible .entry _Z1fv(\n)\n{\nret;\n}\n.entry g$1() { }";

    #[test]
    fn the_library_of_device_launches_is_told_by_what_it_defines_and_calls() {
        let own = ".entry __nv_static_52__f_22_cuda_device_runtime_cu_3_2__Z1fv()";
        let all = [own, "call cnpLaunchDeviceV2", ".func __cudaCDP2LaunchDeviceV2()"];
        assert!(is_device_runtime(&all.join("; ")));
        assert!((0..all.len()).all(|without| !is_device_runtime(&[&all[..without], &all[without + 1..]].concat().join("; "))));
        // A program that names both has its own kernels.
        assert!(!is_device_runtime(&[&all[..], &[".entry k()"]].concat().join("; ")));
    }

    #[test]
    fn text_is_told_by_its_first_directive() {
        assert!(is_ptx(TEXT.as_bytes()) && is_ptx(b"\xef\xbb\xbf\n.version 1.0"));
        for other in ["", "//", "/* .version", ".target sm_80", "int main() {}", "// .version 9.0", "\x7fELF"] {
            assert!(!is_ptx(other.as_bytes()), "{other}");
        }
        assert_eq!(trimmed(b"x\n\0\0"), b"x\n");
        assert_eq!(trimmed(b"\0"), b"");
    }

    #[test]
    fn target_and_kernels_are_not_looked_for_in_comments() {
        assert_eq!(target(TEXT), Some(Arch { number: 90, suffix: Some('a') }));
        assert_eq!(target(".version 1.0"), None);
        assert_eq!(kernels(TEXT), [&b"_Z1fv"[..], b"g$1"]);
        let odd = "x.entry a() .entry.b c() /* .entry d */.entry e() \".entry f\".entry /* g */ h() .entry 1() // .entry i";
        assert_eq!(kernels(odd), [&b"e"[..], b"h"]);
        assert_eq!(kernels(".entry"), [&b""[..]; 0]);
    }
}
