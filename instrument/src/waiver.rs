//! Gaps that a person has accepted: `// cuinstr: allow(CI013) reason` at the loop, or an entry of the configuration.

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::options::Options;
use crate::position::LineIndex;
use crate::token::Lexed;
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

/// What became of the diagnostics.
pub(crate) struct Applied {
    /// Those that stand.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Offset and reason of each that was waived.
    pub(crate) waived: Vec<(usize, String)>,
    /// Which of the options' waivers accept something.
    pub(crate) used: BTreeSet<usize>,
}

/// Takes away what is waived, and adds what is wrong with the waivers.
pub(crate) fn apply(source: &[u8], lexed: &Lexed, lines: &LineIndex, options: &Options, diagnostics: Vec<Diagnostic>) -> Applied {
    let mut applied = Applied { diagnostics: Vec::new(), waived: Vec::new(), used: BTreeSet::new() };
    let mut remarks = read(source, lexed, lines, &mut applied.diagnostics);
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

fn read(source: &[u8], lexed: &Lexed, lines: &LineIndex, diagnostics: &mut Vec<Diagnostic>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for span in &lexed.remarks {
        let text = String::from_utf8_lossy(&source[span.clone()]);
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
        let next =
            lexed.tokens.iter().find(|token| token.start as usize >= span.end).map_or(own, |token| lines.position(token.start as usize).0);
        // A comment behind code speaks of that code alone.
        let alone = !lexed.tokens.iter().any(|token| (token.end as usize) <= span.start && lines.position(token.end as usize).0 == own);
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
