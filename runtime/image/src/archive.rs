//! Static libraries: `ar`, as GNU, LLVM and BSD write it.
//!
//! By hand, though libraries read it too: those search a long name's end as far as the table goes, which an input can make them do for each
//! member.

/// What a static library begins with.
pub(crate) const MAGIC: &[u8] = b"!<arch>\n";

/// What one begins with that only names files.
pub(crate) const THIN_MAGIC: &[u8] = b"!<thin>\n";

const HEADER: usize = 60;

/// Longest name that is taken from the table of long names.
const LONGEST_NAME: usize = 1024;

/// One member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    pub(crate) name: String,
    pub(crate) bytes: &'a [u8],
}

/// The members, without the tables of symbols and names, up to the first that is damaged; then what is wrong with it.
pub(crate) fn members(bytes: &[u8]) -> (Vec<Member<'_>>, Option<String>) {
    let mut members = Vec::new();
    let mut names: &[u8] = &[];
    let mut rest = bytes.get(MAGIC.len()..).unwrap_or_default();
    loop {
        // Members begin at even offsets; the filler is a newline.
        if rest.first() == Some(&b'\n') && (bytes.len() - rest.len()) % 2 == 1 {
            rest = &rest[1..];
        }
        if rest.is_empty() {
            return (members, None);
        }
        let number = members.len();
        let Some((header, body)) = rest.split_at_checked(HEADER) else {
            return (members, Some(format!("the header of member {number} is cut off")));
        };
        let size = decimal(&header[48..58]).filter(|_| &header[58..60] == b"`\n");
        let Some(size) = size else { return (members, Some(format!("the header of member {number} is damaged"))) };
        let Some((mut content, after)) = body.split_at_checked(size) else {
            return (members, Some(format!("member {number} is cut off")));
        };
        rest = after;
        let field = header[..16].trim_ascii_end();
        let name = match field {
            b"/" | b"/SYM64/" | b"__.SYMDEF" | b"__.SYMDEF SORTED" if members.is_empty() => continue,
            b"//" => {
                names = content;
                continue;
            }
            _ => {
                if let Some(offset) = field.strip_prefix(b"/").and_then(decimal) {
                    let name = names.get(offset..).unwrap_or_default();
                    let name = &name[..name.len().min(LONGEST_NAME)];
                    &name[..memchr::memchr2(b'\n', 0, name).unwrap_or(name.len())]
                } else if let Some((name, after)) =
                    field.strip_prefix(b"#1/").and_then(decimal).and_then(|length| content.split_at_checked(length))
                {
                    content = after;
                    let name = &name[..name.len().min(LONGEST_NAME)];
                    &name[..memchr::memchr(0, name).unwrap_or(name.len())]
                } else {
                    field
                }
            }
        };
        let name = String::from_utf8_lossy(name.strip_suffix(b"/").unwrap_or(name)).into_owned();
        let is_symbols = matches!(&*name, "__.SYMDEF" | "__.SYMDEF SORTED" | "__.SYMDEF_64" | "__.SYMDEF_64 SORTED");
        if !(is_symbols && members.is_empty()) {
            members.push(Member { name, bytes: content });
        }
    }
}

fn decimal(field: &[u8]) -> Option<usize> {
    let digits = field.trim_ascii_end();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, content: &str) -> String {
        let filler = if content.len() % 2 == 1 { "\n" } else { "" };
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{content}{filler}", 0, 0, 0, 644, content.len())
    }

    fn archive(members: &[(&str, &str)]) -> String {
        let members: String = members.iter().map(|(name, content)| member(name, content)).collect();
        format!("!<arch>\n{members}")
    }

    #[test]
    fn only_the_first_member_is_a_table_of_symbols() {
        let names = |members: &[(&str, &str)]| -> Vec<String> { members_of(&archive(members)) };
        assert_eq!(
            names(&[("__.SYMDEF SORTED", "s"), ("a.o/", "1"), ("__.SYMDEF_bad.o/", "2"), ("__.SYMDEF", "3")]),
            ["a.o", "__.SYMDEF_bad.o", "__.SYMDEF"]
        );
        assert_eq!(names(&[("/", "s"), ("/", "s"), ("//", ""), ("a.o/", "1"), ("/", "2")]), ["a.o", ""]);
    }

    fn members_of(text: &str) -> Vec<String> {
        let (found, fault) = super::members(text.as_bytes());
        assert_eq!(fault, None);
        found.into_iter().map(|member| member.name).collect()
    }

    #[test]
    fn names_are_found_in_each_dialect() {
        let table = "a_rather_long_name.o/\nanother_long_name.o/\n";
        let text = archive(&[("/", "sym"), ("//", table), ("a.o/", "1"), ("/22", "22"), ("#1/4", "b.o\x003"), ("/0", "")]);
        let (found, fault) = members(text.as_bytes());
        let found: Vec<_> = found.iter().map(|member| (member.name.as_str(), member.bytes)).collect();
        let expected: [(&str, &[u8]); 4] = [("a.o", b"1"), ("another_long_name.o", b"22"), ("b.o", b"3"), ("a_rather_long_name.o", b"")];
        assert_eq!((found, fault), (expected.to_vec(), None));
    }

    #[test]
    fn what_is_whole_stands_and_what_is_cut_off_is_said() {
        let text = archive(&[("a.o/", "first"), ("b.o/", "second")]);
        for cut in 0..text.len() {
            let (found, fault) = members(&text.as_bytes()[..cut]);
            assert!(found.len() <= 1 && (fault.is_some() || cut <= 8 || found.len() == 1), "{cut}");
        }
        let damaged = text.replace("`\n", "..");
        let (found, fault) = members(damaged.as_bytes());
        assert_eq!((found.len(), fault.as_deref()), (0, Some("the header of member 0 is damaged")));
    }
}
