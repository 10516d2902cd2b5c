//! Macros that open no loop, for those who rewrite several files of one translation unit.

use crate::source::syntax::macros::sounds_like_a_loop;
use crate::source::syntax::token::{Kind, Lexed, Line, is_name_byte, lex};
use std::collections::{BTreeMap, BTreeSet};

/// Macros of these files that surely open no loop and jump nowhere: no definition of theirs in any of the files holds a word for that, makes words out of
/// parts, or names a macro that may. For those who rewrite several files of one translation unit.
pub(crate) fn plain(files: &[(&[u8], Lexed)]) -> BTreeSet<String> {
    // By name: the names in its definitions; none if a definition is not plain by itself.
    let mut known: BTreeMap<&[u8], Option<BTreeSet<&[u8]>>> = BTreeMap::new();
    for (source, lexed) in files {
        for directive in &lexed.directives {
            let Line::Define(define) = &directive.line else { continue };
            let tokens = lex(source, define.body.clone(), true).tokens;
            let pastes = source[define.body.clone()].windows(2).any(|pair| pair == b"##" || pair == b"%:");
            let jumps = |kind| matches!(kind, Kind::For | Kind::While | Kind::Do | Kind::Goto | Kind::Asm);
            let own = known.entry(&source[define.name.clone()]).or_insert_with(|| Some(BTreeSet::new()));
            if pastes || tokens.iter().any(|token| jumps(token.kind)) {
                *own = None;
            } else if let Some(names) = own {
                let parameters = &source[define.name.end..define.body.start];
                let is_parameter =
                    |name: &[u8]| define.function_like && parameters.split(|byte| !is_name_byte(*byte)).any(|parameter| parameter == name);
                let all = tokens.iter().filter(|token| token.kind == Kind::Ident).map(|token| &source[token.range()]);
                names.extend(all.filter(|name| !is_parameter(name)));
            }
        }
    }
    loop {
        let is_loop = |name: &[u8]| match known.get(name) {
            Some(names) => names.is_none(),
            // The compiler's own, in pragmas as well, or what is no macro if it is named as such things are.
            None => !name.starts_with(b"__") && name != b"GCC" && (!name.iter().any(u8::is_ascii_lowercase) || sounds_like_a_loop(name)),
        };
        let found: Vec<&[u8]> = known
            .iter()
            .filter(|(_, names)| names.as_ref().is_some_and(|names| names.iter().any(|name| is_loop(name))))
            .map(|(name, _)| *name)
            .collect();
        if found.is_empty() {
            break;
        }
        for name in found {
            known.insert(name, None);
        }
    }
    known.into_iter().filter(|(_, names)| names.is_some()).map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_are_plain_if_no_definition_in_any_file_may_hold_a_loop() {
        let one: &[u8] = b"#define WHEN if (__builtin_constant_p(1))\n#define ALSO WHEN\n#define EACH(i, n) for (int i = 0; i < n; ++i)\n#define TWICE if (1)\n\
                           #define TEMPLATE(...) template <__VA_ARGS__>\n#define TAKES(BODY) BODY\n#define TRY if (true)\n#define SILENT _Pragma(TEXT_OF(GCC diagnostic push))\n#define TEXT_OF(x) #x\n#define BLOCK \\\n  { int lower = 0; (void)lower; }\n";
        let other: &[u8] = b"#define VIA EACH(i, 3)\n#define FAR VIA\n#define PASTED(x) fo##r (;x;)\n#define TWICE while (1)\n#define BACK goto again\n\
                             #define UNKNOWN SOMEWHERE_ELSE(3)\n#define CALLS for_each_of(3)\n#define LOOKS helper(3)\n#define TEXT asm(\"bra L;\")\n#define ROUND ROUND\n";
        let read = |source: &'static [u8]| (source, lex(source, 0..source.len(), false));
        let found = plain(&[read(one), read(other)]);
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            ["ALSO", "BLOCK", "LOOKS", "ROUND", "SILENT", "TAKES", "TEMPLATE", "TEXT_OF", "TRY", "WHEN"]
        );
        assert!(!plain(&[read(other)]).contains("FAR"), "EACH is another file's");
    }
}
