//! What real CUDA code looks like, row by row of the corpus study: the shapes that people write, and what the grammar makes of them. Each
//! row is one small file with the sites and diagnostics that it must give.

mod attacks;
mod breaks;
mod brief;
mod fall_backs;
mod forms;
mod grammar;
mod left_alone;
mod release;
mod shapes;

use cuinstr::options::Options;
use cuinstr::site::{Form, Kind, Site};
use cuinstr::{Rewrite, rewrite};
use std::fmt::Write as _;

/// A file, its sites beside entries and exits as `LINE KIND FORM`, and the codes of its diagnostics.
struct Row {
    name: &'static str,
    source: &'static str,
    sites: &'static [&'static str],
    codes: &'static [&'static str],
}

const fn row(name: &'static str, source: &'static str, sites: &'static [&'static str]) -> Row {
    Row { name, source, sites, codes: &[] }
}

const fn told(name: &'static str, source: &'static str, sites: &'static [&'static str], codes: &'static [&'static str]) -> Row {
    Row { name, source, sites, codes }
}

fn rewritten(source: &str) -> Rewrite {
    rewritten_as(source, &Options::default())
}

fn rewritten_as(source: &str, options: &Options) -> Rewrite {
    rewrite(source.as_bytes(), &Options { path: "row.cu".to_owned(), ..options.clone() })
}

/// A site's kind as JSON names it, and how it polls; the three forms that pay for iterations ahead are told apart in `forms.rs`.
fn words(site: &Site) -> String {
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let kind = serde_json::to_value(site.kind).map(word).unwrap_or_default();
    let form = match site.form {
        Form::CountDown | Form::Strip | Form::Chunk | Form::Foldable => "polled".to_owned(),
        form => serde_json::to_value(form).map(word).unwrap_or_default(),
    };
    format!("{} {kind} {form}", site.line)
}

fn check(rows: &[Row]) {
    let mut wrong = String::new();
    for Row { name, source, sites, codes } in rows {
        let rewrite = rewritten(source);
        let inner = rewrite.sites.sites.iter().filter(|site| !matches!(site.kind, Kind::Entry | Kind::Exit));
        let found: Vec<String> = inner.map(words).collect();
        let said: Vec<&str> = rewrite.diagnostics.iter().map(|diagnostic| diagnostic.code.id()).collect();
        if found != *sites || said != *codes {
            let _ = writeln!(wrong, "{name}\n  sites {found:?}, not {sites:?}\n  codes {said:?}, not {codes:?}");
        }
        if rewrite.output.is_some() && rewrite.original().as_deref() != Some(source.as_bytes()) {
            let _ = writeln!(wrong, "{name}\n  the input does not come back");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
