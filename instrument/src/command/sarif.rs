//! Findings as SARIF 2.1.0 (OASIS standard), which code-scanning services take.

use cuinstr::diagnostic::{Code, Severity};
use cuinstr_verify::report::Frame;
use serde_json::{Value, json};
use std::fmt::Write;

/// One finding.
#[derive(Debug, Clone)]
pub(crate) struct Result {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// File, line and column, both from 1; column 0 if unknown.
    pub(crate) at: (String, usize, usize),
    pub(crate) inlined: Vec<Frame>,
    /// Why it is accepted, if it is.
    pub(crate) accepted: Option<String>,
}

/// The log, one run.
pub(crate) fn log(results: &[Result]) -> String {
    let mut codes: Vec<Code> = results.iter().map(|result| result.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules = codes.iter().map(|code| {
        json!({
            "id": code.id(),
            "shortDescription": { "text": code.title() },
            "fullDescription": { "text": code.explain() },
            "defaultConfiguration": { "level": level(code.severity()) },
        })
    });
    let value = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "cuinstr", "version": env!("CARGO_PKG_VERSION"), "rules": rules.collect::<Vec<_>>() } },
            "results": results.iter().map(|result| one(result, &codes)).collect::<Vec<_>>(),
        }],
    });
    format!("{value}\n")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn location(file: &str, line: usize, column: usize) -> Value {
    let mut region = json!({ "startLine": line.max(1) });
    if column > 0 {
        region["startColumn"] = column.into();
    }
    json!({ "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": region } })
}

/// The path as a URI reference: what may not stand in one is written as `%` and two digits.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'\\' => uri.push('/'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' | b',' | b'=' | b'@' => {
                uri.push(byte as char);
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

fn one(result: &Result, codes: &[Code]) -> Value {
    let (file, line, column) = &result.at;
    let mut value = json!({
        "ruleId": result.code.id(),
        "ruleIndex": codes.iter().position(|code| *code == result.code),
        "level": level(result.code.severity()),
        "message": { "text": result.message },
        "locations": [location(file, *line, *column)],
    });
    if !result.inlined.is_empty() {
        let related = result.inlined.iter().map(|frame| {
            let mut place = location(&frame.file, frame.line as usize, frame.column as usize);
            place["message"] = json!({ "text": "inlined here" });
            place
        });
        value["relatedLocations"] = related.collect();
    }
    if let Some(reason) = &result.accepted {
        value["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
    }
    value
}
