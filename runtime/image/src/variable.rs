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
}

/// A variable of the user's in a cubin.
fn of_cubin(bytes: &[u8]) -> Option<String> {
    let elf = elf::Elf::new(bytes).filter(|elf| elf.is_cubin())?;
    let names = elf.variables().into_iter().map(String::from_utf8_lossy);
    names.map(std::borrow::Cow::into_owned).find(|name| !NOT_THE_USERS.iter().any(|known| name.starts_with(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cubin_has_no_variables() {
        assert_eq!(of_cubin(b"\x7fELF"), None);
        assert_eq!(of_cubin(b""), None);
    }
}
