//! `cuinstr explain`.

use cuinstr::diagnostic::Code;
use cuinstr::render::word;
use std::fmt::Write;

/// What the code means, or the list of all codes.
pub(crate) fn text(code: Option<Code>) -> String {
    let mut text = String::new();
    if let Some(code) = code {
        let _ = writeln!(text, "{} ({}): {}\n\n{}", code.id(), word(code.severity()), code.title(), code.explain());
    } else {
        for code in Code::ALL {
            let _ = writeln!(text, "{}  {:7}  {}", code.id(), word(code.severity()), code.title());
        }
    }
    text
}
