//! The source pass: from a source text to its rewritten form.
//!
//! A text passes the folders in this order. [`syntax`] finds tokens, functions and loops. [`analysis`] finds facts about them. [`plan`] decides what each
//! site gets. [`emit`] makes the text that is inserted. Each folder imports only those before it.

pub(crate) mod analysis;
pub(crate) mod emit;
pub(crate) mod plan;
pub(crate) mod syntax;
#[cfg(test)]
mod tests;
#[cfg(feature = "launcher")]
pub(crate) mod unit_cycles;
#[cfg(feature = "launcher")]
pub(crate) mod unit_loops;
#[cfg(feature = "launcher")]
mod unit_text;

use crate::common::diagnostic::{Code, Diagnostic, Severity};
use crate::common::edit::{self, Edit};
use crate::common::options::Options;
use crate::common::position::LineIndex;
use crate::common::rewrite::{Rewrite, refused, site_map};
use crate::common::waiver::{self, Remarked};
use crate::source::analysis::shared_memory;
use crate::source::emit::prelude;
use crate::source::plan::Plan;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::source_file::SourceFile;
use crate::source::syntax::splice::{self, Joined};
use crate::source::syntax::token::{self, Kind, Lexed};
use crate::source::syntax::{condition, header, keyword};
use cuinstr_abi::sites::hash;
use std::ops::Range;

/// Rewrites one file. It never fails: if the file can't be rewritten, the diagnostics say why, and there is no output.
///
/// # Examples
/// ```
/// use cuinstr::options::Options;
///
/// let source = b"__global__ void wait(volatile int* flag) { while (*flag == 0) { } }\n";
/// let rewrite = cuinstr::rewrite(source, &Options { path: "wait.cu".to_owned(), ..Options::default() });
/// assert_eq!(rewrite.summary.polled, 1);
/// assert_eq!(rewrite.original().as_deref(), Some(&source[..]));
/// ```
pub fn rewrite(source: &[u8], options: &Options) -> Rewrite {
    let mut refusals = Vec::new();
    if source.len() >= u32::MAX as usize {
        refusals.push(Diagnostic::new(Code::TooLarge, "the file is larger than 4 GiB").help("split the file"));
        return refused(options, Vec::new(), refusals, 0);
    }
    let path = if options.site_path.is_empty() { &options.path } else { &options.site_path };
    let file_hash = hash(hash(0, path.as_bytes()), source);
    if let Some(at) = source.iter().position(|byte| *byte == 0) {
        let help = "give the CUDA source it was made from";
        refusals.push(Diagnostic::new(Code::NotCuda, "this is a binary file: it holds a zero byte").at(at..at + 1).help(help));
        return refused(options, Vec::new(), refusals, file_hash);
    }
    let joined = splice::join(source);
    let original = source;
    let source = &*joined.text;
    let mut lexed = token::lex(source, 0..source.len(), false);
    condition::decide(source, &mut lexed, &condition::given(options));
    let mut diagnostics = encoding(source, &lexed);
    if lexed.tokens.is_empty() {
        diagnostics.push(Diagnostic::new(Code::Empty, "the file is empty").help("check the path, and that the file was generated before"));
    }
    diagnostics.extend(reserved_names(source, &lexed));
    let redefined = keyword::redefined(source, &lexed);
    let polls = keyword::plainest(options.polls, redefined.polls);
    let plainly = Some(Options { polls, ..options.clone() }).filter(|_| polls != options.polls);
    let options = plainly.as_ref().unwrap_or(options);
    diagnostics.extend(redefined.diagnostics);
    if has_error(&diagnostics) {
        return refused(options, Vec::new(), diagnostics, file_hash);
    }
    let mut file = match Fragment::of_file(&lexed) {
        Ok(file) => file,
        Err(at) => {
            let bracket = char::from(source[at]);
            let help = "if nvcc accepts the file, a macro holds the bracket's other half: write it out here";
            diagnostics.push(Diagnostic::new(Code::Unbalanced, format!("`{bracket}` has no partner")).at(at..at + 1).help(help));
            return refused(options, Vec::new(), diagnostics, file_hash);
        }
    };
    let lines = LineIndex::new(source);
    let macros = Macros::read(source, &lexed, options);
    file.add_lambdas(source, |name| macros.is_captures(name));
    let dead = condition::dead(&lexed.directives);
    let input = SourceFile { source, lexed: &lexed, macros: &macros, options, lines: &lines, dead: &dead, hash: file_hash };
    let plan = plan::plan(&input, &file);
    finish(&input, &file, original, &joined, plan, diagnostics)
}

fn finish(input: &SourceFile, file: &Fragment, original: &[u8], joined: &Joined, plan: Plan, mut diagnostics: Vec<Diagnostic>) -> Rewrite {
    let SourceFile { source, options, .. } = *input;
    let Plan { insertions, sites, diagnostics: found, mut summary, reasons } = plan;
    if summary.functions == 0 && summary.loops == 0 && found.is_empty() {
        let is_ptx = |token: &&token::Token| source[token.start as usize..].starts_with(b".version");
        let ptx = input.lexed.tokens.first().filter(is_ptx);
        let help = "if a macro marks its device functions, name it in cuinstr.toml, under [device-macros]";
        diagnostics.push(match ptx {
            Some(token) => {
                Diagnostic::new(Code::NotCuda, "this is PTX").at(token.range()).help("`rewrite_ptx` takes PTX, and so does the command")
            }
            None => Diagnostic::new(Code::NotCuda, "no device function and no macro with a loop was found").help(help),
        });
    }
    diagnostics.extend(header::not_rewritten(source, input.lexed, options));
    summary.gaps += diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning).count();
    diagnostics.extend(found);
    let mut applied = waiver::apply(&remarks(source, input.lexed), input.lines, options, diagnostics);
    let mut site_list = Vec::with_capacity(sites.len());
    for (offset, mut site) in sites {
        site.waiver = applied.waived.iter().find(|(at, _)| *at == offset).map(|(_, reason)| reason.clone());
        site_list.push(site);
    }
    if options.strict {
        for diagnostic in applied.diagnostics.iter_mut().filter(|diagnostic| diagnostic.severity == Severity::Warning) {
            diagnostic.severity = Severity::Error;
        }
    }
    applied.diagnostics.sort_by_key(|diagnostic| (diagnostic.primary.as_ref().map_or(0, |label| label.span.start), diagnostic.code));
    if has_error(&applied.diagnostics) {
        let mut rewrite = refused(options, site_list, applied.diagnostics, input.hash);
        rewrite.summary = summary;
        rewrite.used_waivers = applied.used;
        rewrite.reasons = reasons;
        return rewrite;
    }
    let sites = site_map(options, site_list, input.hash);
    let start = if source.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let shared_bytes = shared_memory::bytes(source, input.lexed, file, input.macros);
    let mut edits = emit::edits(source, &insertions);
    edits.push(Edit { at: start, closes: true, text: prelude::prelude(options, &sites, source, shared_bytes) });
    for edit in &mut edits {
        edit.at = joined.in_source(edit.at);
    }
    let (output, inserted) = edit::apply(original, edits);
    let waiver::Applied { diagnostics, used: used_waivers, .. } = applied;
    Rewrite { output: Some(output), inserted, sites, diagnostics, summary, used_waivers, shared_bytes, reasons }
}

fn has_error(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Bytes that are no UTF-8 are fine in comments, and nowhere else.
fn encoding(source: &[u8], lexed: &Lexed) -> Vec<Diagnostic> {
    let mut at = 0;
    let mut noted: Option<Range<usize>> = None;
    while let Err(error) = std::str::from_utf8(&source[at..]) {
        let bad = at + error.valid_up_to();
        let length = error.error_len().unwrap_or(source.len() - bad);
        let index = lexed.foreign_comments.partition_point(|comment| comment.end <= bad);
        match lexed.foreign_comments.get(index) {
            Some(comment) if comment.start <= bad => {
                noted = noted.or(Some(bad..bad + length));
                at = comment.end.max(bad + length);
            }
            _ => {
                let help = "convert the file, for example: iconv -f latin1 -t utf-8";
                return vec![
                    Diagnostic::new(Code::NotUtf8, format!("byte {:#04x} is not UTF-8", source[bad])).at(bad..bad + length).help(help),
                ];
            }
        }
    }
    noted
        .map(|span| Diagnostic::new(Code::OtherEncodingInComment, "a comment is not UTF-8; it is kept as it is").at(span))
        .into_iter()
        .collect()
}

/// Names that only we insert: the text is our own output, or it means to interfere.
fn reserved_names(source: &[u8], lexed: &Lexed) -> Option<Diagnostic> {
    let is_ours = |text: &[u8]| {
        text.windows(10).any(|part| part == b"__cuinstr_")
            || text.windows(18).any(|part| part == b"cuinstr_control_v1")
            || text.windows(16).any(|part| part == b"cuinstr_pause_v1")
            || text.windows(15).any(|part| part == b"cuinstr_flag_v1" || part == b"cuinstr_left_v1")
    };
    let token =
        lexed.tokens.iter().find(|token| matches!(token.kind, Kind::Ident | Kind::Directive(_)) && is_ours(&source[token.range()]))?;
    let range = token.range();
    let end = source[range.clone()].iter().position(|byte| *byte == b'\n').map_or(range.end, |at| range.start + at);
    let help = "run cuinstr on the original file; names that begin with __cuinstr_ are reserved";
    Some(Diagnostic::new(Code::OwnOutput, "the source holds names that only cuinstr inserts").at(range.start..end).help(help))
}

/// Comments and tokens of CUDA source, for waivers.
fn remarks<'a>(source: &'a [u8], lexed: &Lexed) -> Remarked<'a> {
    let tokens = if lexed.remarks.is_empty() { &[][..] } else { &lexed.tokens[..] };
    let tokens = tokens.iter().map(|token| (token.start as usize, token.end as usize)).collect();
    Remarked { source, remarks: lexed.remarks.clone(), tokens }
}
