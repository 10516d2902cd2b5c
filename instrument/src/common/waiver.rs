//! Gaps that a person has accepted: `// cuinstr: allow(CI013) reason` at the loop, or an entry of the configuration.

use crate::common::diagnostic::{Code, Diagnostic, Severity};
use crate::common::options::Options;
use crate::common::position::LineIndex;
use std::collections::BTreeSet;
use std::ops::Range;

/// A waiver written in the source.
struct Remark {
    span: Range<usize>,
    code: Code,
    reason: String,
    /// Lines it speaks of: its own, and the next that holds code.
    lines: [u32; 2],
    used: bool,
}

/// The diagnostics behind the waivers.
pub(crate) struct Applied {
    /// Those that stand.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Offset and reason of each that was waived.
    pub(crate) waived: Vec<(usize, String)>,
    /// Which of the options' waivers accept something.
    pub(crate) used: BTreeSet<usize>,
}

/// A text's remarks and code, as the language's own lexer finds them.
pub(crate) struct Remarked<'a> {
    /// The text.
    pub(crate) source: &'a [u8],
    /// Comments that speak to us.
    pub(crate) remarks: Vec<Range<usize>>,
    /// Where tokens begin and end, in order.
    pub(crate) tokens: Vec<(usize, usize)>,
}

impl<'a> Remarked<'a> {
    /// Of PTX. One without such a comment, as compilers write it, is not taken apart for it.
    pub(crate) fn ptx(text: &'a str) -> Self {
        let mut found = Self { source: text.as_bytes(), remarks: Vec::new(), tokens: Vec::new() };
        if memchr::memmem::find(found.source, b"cuinstr:").is_none() {
            return found;
        }
        for token in cuinstr_ptx::tokens(text) {
            let range = token.span.start as usize..token.span.end as usize;
            match token.kind {
                cuinstr_ptx::Kind::Comment if text[range.clone()].contains("cuinstr:") => found.remarks.push(range),
                cuinstr_ptx::Kind::Blank | cuinstr_ptx::Kind::Comment => {}
                _ => found.tokens.push((range.start, range.end)),
            }
        }
        found
    }
}

/// Takes away waived diagnostics, and adds diagnostics about the waivers.
pub(crate) fn apply(text: &Remarked<'_>, lines: &LineIndex, options: &Options, diagnostics: Vec<Diagnostic>) -> Applied {
    let mut applied = Applied { diagnostics: Vec::new(), waived: Vec::new(), used: BTreeSet::new() };
    let mut remarks = read(text, lines, &mut applied.diagnostics);
    for diagnostic in diagnostics {
        let offset = diagnostic.primary.as_ref().map(|label| label.span.start);
        if diagnostic.severity == Severity::Error {
            applied.diagnostics.push(diagnostic);
            continue;
        }
        let line = offset.map(|offset| lines.position(offset).0);
        let remark =
            remarks.iter_mut().find(|remark| remark.code == diagnostic.code && line.is_some_and(|line| remark.lines.contains(&line)));
        if let Some(remark) = remark {
            remark.used = true;
            applied.waived.push((offset.unwrap_or(0), remark.reason.clone()));
            continue;
        }
        let waiver = options
            .waivers
            .iter()
            .position(|waiver| waiver.code == diagnostic.code && (waiver.function.is_none() || waiver.function == diagnostic.function));
        if let Some(index) = waiver {
            applied.used.insert(index);
            applied.waived.push((offset.unwrap_or(0), options.waivers[index].reason.clone()));
            continue;
        }
        applied.diagnostics.push(diagnostic);
    }
    for remark in remarks.iter().filter(|remark| !remark.used) {
        let message = format!("this waiver of {} accepts nothing", remark.code.id());
        applied.diagnostics.push(Diagnostic::new(Code::StaleWaiver, message).at(remark.span.clone()).help("remove the comment"));
    }
    for (index, waiver) in options.waivers.iter().enumerate() {
        if !waiver.shared && !applied.used.contains(&index) {
            let message = format!("the configuration's waiver of {} for this file accepts nothing", waiver.code.id());
            applied.diagnostics.push(Diagnostic::new(Code::StaleWaiver, message).help("remove it from cuinstr.toml"));
        }
    }
    applied
}

fn read(remarked: &Remarked<'_>, lines: &LineIndex, diagnostics: &mut Vec<Diagnostic>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for span in &remarked.remarks {
        let text = String::from_utf8_lossy(&remarked.source[span.clone()]);
        let Some((_, rest)) = text.split_once("cuinstr:") else { continue };
        let Some(rest) = rest.trim_start().strip_prefix("allow(") else { continue };
        let Some((id, reason)) = rest.split_once(')') else { continue };
        let reason = reason.trim_end_matches("*/").trim();
        let Some(code) = Code::from_id(id.trim()).filter(|code| code.severity() != Severity::Error) else {
            diagnostics.push(
                Diagnostic::new(Code::UnknownWaiver, format!("`{}` can't be waived", id.trim()))
                    .at(span.clone())
                    .help("cuinstr explain lists the codes"),
            );
            continue;
        };
        if reason.is_empty() {
            let help = format!("write it behind the code: // cuinstr: allow({}) why it is harmless", code.id());
            diagnostics.push(Diagnostic::new(Code::WaiverWithoutReason, "this waiver gives no reason").at(span.clone()).help(help));
            continue;
        }
        let own = lines.position(span.start).0;
        let behind = remarked.tokens.partition_point(|(start, _)| *start < span.end);
        let next = remarked.tokens.get(behind).map_or(own, |(start, _)| lines.position(*start).0);
        // A comment behind code speaks of that code alone.
        let in_front = remarked.tokens[..behind].iter().rev().find(|(_, end)| *end <= span.start);
        let alone = in_front.is_none_or(|(_, end)| lines.position(*end).0 != own);
        remarks.push(Remark {
            span: span.clone(),
            code,
            reason: reason.to_owned(),
            lines: [own, if alone { next } else { own }],
            used: false,
        });
    }
    remarks
}

#[cfg(test)]
mod tests {
    use crate::common::diagnostic::Code;
    use crate::common::options::{Options, Waiver};
    use crate::rewrite_ptx;

    /// A kernel that calls what is in another file, with a comment in front of the call.
    fn calls(comment: &str) -> String {
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func outside();\n.visible .entry k()\n{{\n{comment}\n\tcall outside, ();\n\tret;\n}}\n"
        )
    }

    fn codes(text: &str, waivers: Vec<Waiver>) -> (bool, Vec<Code>) {
        let rewrite = rewrite_ptx(text.as_bytes(), &Options { path: "k.ptx".to_owned(), strict: true, waivers, ..Options::default() });
        (rewrite.output.is_some(), rewrite.diagnostics.iter().map(|diagnostic| diagnostic.code).collect())
    }

    #[test]
    fn waivers_hold_in_ptx() {
        assert_eq!(codes(&calls(""), Vec::new()), (false, vec![Code::CalleeElsewhere]));
        assert_eq!(codes(&calls("\t// cuinstr: allow(CI018) its file has polls"), Vec::new()), (true, Vec::new()));
        assert_eq!(codes(&calls("\t// cuinstr: allow(CI018)"), Vec::new()).1, [Code::WaiverWithoutReason, Code::CalleeElsewhere]);
        let waiver = |code| Waiver { code, function: None, reason: "its file has polls".to_owned(), shared: false };
        assert_eq!(codes(&calls(""), vec![waiver(Code::CalleeElsewhere)]), (true, Vec::new()));
        // A waiver without effect is reported.
        let stale = codes(&calls("\t// cuinstr: allow(CI020) nothing"), vec![waiver(Code::CalleeElsewhere)]);
        assert_eq!(stale.1, [Code::StaleWaiver]);
    }
}
