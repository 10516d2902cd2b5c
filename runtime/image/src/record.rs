//! Site map records, wherever they lie: as they are in a cubin's data, as a list of numbers in PTX.

use cuinstr_abi::sites::{PACKED_MAGIC, SiteMap};
use memchr::memmem;
use std::collections::BTreeSet;

pub use cuinstr_abi::sites::MAGIC;

/// What records of either form begin with.
const BEGIN: &[u8] = b"CUINSTR-SITES/";

/// Part of the name of each variable that holds a record.
const VARIABLE: &[u8] = b"__cuinstr_sites_";

/// Site maps found so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) maps: Vec<SiteMap>,
    seen: BTreeSet<String>,
}

impl Records {
    /// Takes every record in the bytes; returns what is wrong with those that are damaged.
    ///
    /// Records do not lie in one another, so each byte is parsed at most once.
    pub(crate) fn take_raw(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut starts = memmem::find_iter(bytes, BEGIN).peekable();
        while let Some(at) = starts.next() {
            // The magic alone stands in every program that looks for it.
            let Some((form, length, rest)) = header(&bytes[at..]) else { continue };
            let Some(body) = rest.get(..length) else {
                faults.push(format!("the site map record at byte {at} is cut off"));
                continue;
            };
            let end = bytes.len() - rest.len() + length;
            if starts.peek().is_some_and(|next| *next < end) {
                faults.push(format!("in the site map record at byte {at} another begins"));
                continue;
            }
            if let Err(why) = self.take(form, body) {
                faults.push(format!("the site map record at byte {at} {why}"));
            }
        }
        faults
    }

    /// Takes every record that PTX text holds as `.b8 NAME[LENGTH] = {67, 85, …}`; returns what is wrong with those that are damaged.
    pub(crate) fn take_ptx(&mut self, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut rest = text.as_bytes();
        while let Some(at) = memmem::find(rest, VARIABLE) {
            let from = &rest[at..];
            let name = from.iter().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'$')).unwrap_or(from.len());
            let (name, after) = from.split_at(name);
            rest = after;
            // Anything else is a use of the variable.
            let Some(list) = initialiser(after) else { continue };
            let shown = String::from_utf8_lossy(name);
            let Some((bytes, after)) = numbers(list) else {
                faults.push(format!("the numbers of {shown} are damaged"));
                continue;
            };
            rest = after;
            match header(&bytes).map(|(form, length, rest)| (form, rest.get(..length))) {
                None => faults.push(format!("{shown} holds no site map record")),
                Some((_, None)) => faults.push(format!("the site map record in {shown} is cut off")),
                Some((form, Some(body))) => {
                    if let Err(why) = self.take(form, body) {
                        faults.push(format!("the site map record in {shown} {why}"));
                    }
                }
            }
        }
        faults
    }

    fn take(&mut self, form: Form, body: &[u8]) -> Result<(), String> {
        match form {
            Form::One => self.take_map(body),
            Form::Packed => unpacked(body)?.split(|byte| *byte == b'\n').try_for_each(|line| self.take_map(line)),
        }
    }

    fn take_map(&mut self, json: &[u8]) -> Result<(), String> {
        let map: SiteMap = serde_json::from_slice(json).map_err(|error| format!("is damaged: {error}"))?;
        if map.version != SiteMap::VERSION {
            return Err(format!("is of version {}, and this reads {}", map.version, SiteMap::VERSION));
        }
        if self.seen.insert(map.to_json()) {
            self.maps.push(map);
        }
        Ok(())
    }
}

/// How a record holds its maps.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// One, as JSON.
    One,
    /// Several, packed.
    Packed,
}

/// What stands behind the magic of either form: the length, in eight hexadecimal digits, a space, and the record.
fn header(bytes: &[u8]) -> Option<(Form, usize, &[u8])> {
    let one = bytes.strip_prefix(MAGIC.as_bytes()).map(|rest| (Form::One, rest));
    let (form, rest) = one.or_else(|| Some((Form::Packed, bytes.strip_prefix(PACKED_MAGIC.as_bytes())?)))?;
    let (digits, rest) = rest.split_at_checked(8)?;
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    let length = is_number.then(|| usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).flatten()?;
    let rest = rest.strip_prefix(b" ")?;
    (matches!(form, Form::Packed) || rest.starts_with(b"{")).then_some((form, length, rest))
}

/// The text of packed maps.
fn unpacked(body: &[u8]) -> Result<Vec<u8>, String> {
    let (size, block) = body.split_first_chunk::<4>().ok_or("is damaged: it has no length")?;
    // No byte of a block stands for more than 255 of its text.
    let size = usize::try_from(u32::from_le_bytes(*size)).ok().filter(|size| *size <= 255 * block.len());
    let size = size.ok_or("is damaged: its length is wrong")?;
    let text = lz4_flex::block::decompress(block, size).map_err(|error| format!("is damaged: {error}"))?;
    if text.len() == size { Ok(text) } else { Err("is damaged: its length is wrong".to_owned()) }
}

/// What stands behind `[LENGTH] = {`.
fn initialiser(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.trim_ascii_start().strip_prefix(b"[")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
    let rest = rest[digits..].strip_prefix(b"]")?.trim_ascii_start().strip_prefix(b"=")?;
    rest.trim_ascii_start().strip_prefix(b"{")
}

/// The bytes of a list such as `67, 85}`, and what follows it.
fn numbers(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (list, rest) = text.split_at(memchr::memchr(b'}', text)?);
    let number = |item: &[u8]| std::str::from_utf8(item.trim_ascii()).ok()?.parse::<u8>().ok();
    Some((list.split(|byte| *byte == b',').map(number).collect::<Option<_>>()?, &rest[1..]))
}

#[cfg(test)]
pub(crate) mod made {
    //! Records made by hand.

    use super::*;

    pub(crate) fn map(file: &str) -> SiteMap {
        SiteMap { version: SiteMap::VERSION, file: file.into(), hash: "0".into(), polls_each: false, counts_fuel: false, sites: Vec::new() }
    }

    pub(crate) fn record(map: &SiteMap) -> String {
        let json = map.to_json();
        format!("{MAGIC}{:08x} {json}", json.len())
    }

    pub(crate) fn packed(maps: &[SiteMap]) -> Vec<u8> {
        let lines: Vec<String> = maps.iter().map(SiteMap::to_json).collect();
        let block = lz4_flex::block::compress_prepend_size(lines.join("\n").as_bytes());
        [format!("{PACKED_MAGIC}{:08x} ", block.len()).as_bytes(), &block].concat()
    }

    pub(crate) fn ptx(map: &SiteMap) -> String {
        ptx_of(record(map).as_bytes())
    }

    pub(crate) fn ptx_of(record: &[u8]) -> String {
        let numbers: Vec<String> = record.iter().chain(&[0]).map(u8::to_string).collect();
        let list = numbers.join(", ");
        format!(
            ".version 9.0\n.target sm_80\n.global .align 1 .b8 __cuinstr_sites_0[{}] = {{{list}}};\n.visible .entry k() {{ ret; }}\n",
            numbers.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::made::{map, record};
    use super::*;

    #[test]
    fn records_are_found_between_other_bytes_each_once() {
        let (a, b) = (map("a.cu"), map("b.cu"));
        let bytes = format!("\u{1}{}\0{}\0{MAGIC}%s{}\0", record(&a), record(&b), record(&a));
        let mut records = Records::default();
        assert_eq!(records.take_raw(bytes.as_bytes()), Vec::<String>::new());
        assert_eq!(records.take_ptx(&made::ptx(&b)), Vec::<String>::new());
        assert_eq!(records.maps, [a, b]);
    }

    #[test]
    fn maps_that_are_packed_together_are_found_among_others() {
        let (a, b) = (map("a.cu"), map("b.cu"));
        let bytes = made::packed(&[a.clone(), b.clone()]);
        let mut records = Records::default();
        assert_eq!(records.take_raw(&[b"\0", &bytes[..], b"\0", record(&a).as_bytes()].concat()), Vec::<String>::new());
        assert_eq!(records.take_ptx(&made::ptx_of(&made::packed(&[map("c.cu")]))), Vec::<String>::new());
        assert_eq!(records.maps, [a, b, map("c.cu")]);
        let start = PACKED_MAGIC.len() + 9;
        for (at, why) in [(start, "its length is wrong"), (start + 3, "its length is wrong"), (start + 4, "is damaged")] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let faults = Records::default().take_raw(&damaged);
            assert!(faults.len() == 1 && faults[0].contains(why), "{at}: {faults:?}");
        }
        assert_eq!(Records::default().take_raw(&bytes[..bytes.len() - 1]), ["the site map record at byte 0 is cut off"]);
    }

    #[test]
    fn a_damaged_record_is_noted_and_the_next_one_found() {
        let (a, b) = (record(&map("a.cu")), record(&map("b.cu")));
        let longer = format!("{MAGIC}{:08x}{}", a.len(), &a[MAGIC.len() + 8..]);
        for (damaged, why) in [
            (longer, "in the site map record at byte 0 another begins"),
            (a.replace("version", "verzion"), "the site map record at byte 0 is damaged: missing field `version`"),
            (a.replace(":1,", ":2,"), "the site map record at byte 0 is of version 2, and this reads 1"),
        ] {
            let mut records = Records::default();
            let faults = records.take_raw(format!("{damaged}{b}").as_bytes());
            assert!(faults.len() == 1 && faults[0].starts_with(why), "{faults:?}");
            assert_eq!(records.maps, [map("b.cu")]);
        }
        let cut = Records::default().take_raw(&a.as_bytes()[..a.len() - 1]);
        assert_eq!(cut, ["the site map record at byte 0 is cut off"]);
    }

    #[test]
    fn numbers_of_ptx_may_be_damaged_or_only_named() {
        let text = made::ptx(&map("a.cu"));
        for (damaged, why) in [
            (text.replace("{67,", "{267,"), "the numbers of __cuinstr_sites_0 are damaged"),
            (text.replace('}', ""), "the numbers of __cuinstr_sites_0 are damaged"),
            (text.replace("{67,", "{66,"), "__cuinstr_sites_0 holds no site map record"),
            (text.replace(", 0}", "}").replace(", 125}", "}"), "the site map record in __cuinstr_sites_0 is cut off"),
        ] {
            assert_eq!(Records::default().take_ptx(&damaged), [why]);
        }
        assert_eq!(Records::default().take_ptx("mov.u64 %rd1, __cuinstr_sites_0;"), Vec::<String>::new());
    }
}
