//! Words of the language that the command line makes macros of, as in `-Dfor='if (0); else for'`.

use crate::source::syntax::keyword;
use crate::source::syntax::token::lex;
use std::fmt::Write as _;

/// What to tell of them with the source of that name, one line each. `defined` holds what the command line defines, as text.
pub(super) fn told(name: &str, defined: &[u8], strict: bool) -> String {
    let found = keyword::redefined(defined, &lex(defined, 0..defined.len(), false)).diagnostics;
    let what = if strict { "error" } else { "warning" };
    found.iter().fold(String::new(), |mut said, found| {
        let _ = writeln!(said, "{name}: {what}[{}]: on the command line, {}", found.code.id(), found.message);
        said
    })
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn each_word_that_hides_something_is_told() {
        assert_eq!(told("a.cu", b"#define N 3\n#define true 1\n#define inline\n", false), "");
        let said = told("a.cu", b"#define for if (0) ; else for\n#define int short\n", true);
        let begins: Vec<_> = said.lines().map(|line| line.split(" is a macro").next()).collect();
        assert_eq!(
            begins,
            [Some("a.cu: error[CI017]: on the command line, `for`"), Some("a.cu: error[CI017]: on the command line, `int`")]
        );
    }
}
