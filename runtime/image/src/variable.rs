//! Module-scope variables of the user's, which two loaded copies of a module would not share.

use crate::{Content, Image, elf};

/// Beginnings of names that compilers and `cuinstr` give to variables which no program writes, or which each copy wants for itself.
const NOT_THE_USERS: [&str; 7] = ["cuinstr_", "__cuinstr_", "$str", "__cudart_", "__unnamed_", "_$_", "__nv_"];

impl Image<'_> {
    /// A variable of the user's in global or constant memory, if there is one; also where the image does not tell.
    ///
    /// PTX does not say which of its variables survive compilation, so it counts as not telling: ask the cubin made of it.
    #[must_use]
    pub fn state(&self) -> Option<String> {
        let code = self.parts.iter().filter_map(|part| match &part.content {
            Content::Code(code) => Some(code),
            _ => None,
        });
        let mut has_code = false;
        for code in code {
            has_code = true;
            if let Some(name) = of_cubin(code) {
                return Some(name);
            }
        }
        (!has_code).then(|| "unknown variables".into())
    }

    /// Whether it is PTX alone, and declares no variable of the user's: then no compiled form of it keeps one.
    #[must_use]
    pub fn declares_no_state(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| part.ptx().is_some_and(|text| declared(text).is_empty()))
    }
}

/// The user's variables in global or constant memory that a text of PTX declares. Compilation may drop some of them.
fn declared(ptx: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for line in ptx.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)) {
        for statement in line.split_inclusive([';', '{', '}']) {
            let words = || statement.split_whitespace();
            if depth == 0 && words().any(|word| word == ".global" || word == ".const") {
                // The name ends where its size, its value or the statement does.
                let declaration = statement.split(['[', '=', ';']).next().unwrap_or_default();
                found.extend(declaration.split_whitespace().next_back().filter(|name| is_the_users(name)));
            }
            match statement.chars().next_back() {
                Some('{') => depth += 1,
                Some('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    found
}

fn is_the_users(name: &str) -> bool {
    !NOT_THE_USERS.iter().any(|known| name.starts_with(known))
}

/// A variable of the user's in a cubin.
fn of_cubin(bytes: &[u8]) -> Option<String> {
    let elf = elf::Elf::new(bytes).filter(|elf| elf.is_cubin())?;
    let names = elf.variables().into_iter().map(String::from_utf8_lossy);
    names.map(std::borrow::Cow::into_owned).find(|name| is_the_users(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_declares_its_variables_outside_of_functions() {
        let ptx = ".version 8.0\n.visible .global .align 4 .u32 counter;\n.const .align 4 .b8 table[8] = {1, 2}; // .global .u32 no\n\
                   .visible .global .align 8 .b8 cuinstr_control_v1[1192];\n.extern .shared .b8 shared[];\n\
                   .visible .entry k() { .reg .b32 r; ld.global.u32 r, [counter]; }\n.global .u64 last = 4;";
        assert_eq!(declared(ptx), ["counter", "table", "last"]);
        assert_eq!(declared(".visible .entry k() {\n{\n}\n.global .u32 inside;\n}"), Vec::<&str>::new());
    }

    #[test]
    fn ptx_does_not_tell_and_what_is_cut_off_is_not_loaded() {
        let image = |bytes: &[u8]| {
            let image = crate::read(bytes).expect("an image");
            (image.state(), image.unloadable())
        };
        assert_eq!(image(b".version 8.0\n.target sm_80\n"), (Some("unknown variables".to_owned()), None));
        let declares_none = |bytes: &[u8]| crate::read(bytes).expect("an image").declares_no_state();
        assert!(declares_none(b".version 8.0\n.target sm_80\n"));
        assert!(!declares_none(b".version 8.0\n.target sm_80\n.global .u32 counter;\n"));
        assert!(!declares_none(&elf::made::cubin("k", b"")));
        let cubin = elf::made::cubin("k", b"data");
        assert_eq!(image(&cubin), (None, None));
        // Its table of sections comes last.
        assert_eq!(image(&cubin[..cubin.len() - 1]).1.as_deref(), Some("its end is missing"));
    }

    #[test]
    fn what_is_no_cubin_has_no_variables() {
        assert_eq!(of_cubin(b"\x7fELF"), None);
        assert_eq!(of_cubin(b""), None);
    }
}
