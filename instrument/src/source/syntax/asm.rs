//! Loops inside inline assembly: found, listed, never edited.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::statement::{Body, Simple};
use crate::source::syntax::token::Kind;

/// The `asm` statements of a body whose text branches to a label above the branch.
pub(crate) fn loops(source: &[u8], fragment: &Fragment, body: &Body) -> Vec<Simple> {
    body.asms.iter().filter(|statement| branches_back(&text(source, fragment, statement.token))).copied().collect()
}

/// The strings of the statement that begins at `token`, joined.
pub(crate) fn text(source: &[u8], fragment: &Fragment, token: usize) -> String {
    let Some(open) = (token + 1..token + 4).find(|at| fragment.is(*at, b'(')) else { return String::new() };
    let close = fragment.mate(open).unwrap_or(open);
    let mut text = String::new();
    for at in open..close {
        match fragment.kind(at) {
            Some(Kind::Str) => {
                let literal = String::from_utf8_lossy(fragment.text(source, at)).replace("\\n", "\n").replace("\\t", "\t");
                text.push_str(literal.trim_matches('"'));
            }
            // Operands follow: their constraints are strings too.
            Some(Kind::Punct(b':') | Kind::Scope) => break,
            _ => {}
        }
    }
    text
}

fn branches_back(text: &str) -> bool {
    let is_name = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '_' | '$' | '%' | '=');
    let mut at = 0;
    while let Some(found) = text[at..].find("bra") {
        let start = at + found;
        at = start + 3;
        let whole = !text[..start].ends_with(is_name);
        let rest = text[at..].trim_start_matches(".uni");
        if !whole || !rest.starts_with([' ', '\t', '\n']) {
            continue;
        }
        let target: String = rest.trim_start().chars().take_while(|byte| is_name(*byte)).collect();
        let mut search = 0;
        while let Some(position) = text[search..start].find(&target) {
            let label = search + position;
            let behind = text[label + target.len()..].trim_start();
            if !target.is_empty() && behind.starts_with(':') && !text[..label].ends_with(is_name) {
                return true;
            }
            search = label + target.len().max(1);
            if search > start {
                break;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::branches_back;

    #[test]
    fn only_a_branch_upwards_is_a_loop() {
        assert!(branches_back("{\n LAB_WAIT:\n mbarrier.try_wait.b64 p, [%0];\n @p bra DONE;\n bra LAB_WAIT;\n DONE:\n}"));
        assert!(branches_back("L%=: nanosleep.u32 20; @!p bra.uni L%=;"));
        assert!(!branches_back("@p bra DONE; mov.u32 %0, 1; DONE:"));
        assert!(!branches_back("vabsdiff LABRA: x; bra y;"));
    }
}
