//! `--list`: the site map as a table.

use cuinstr::render::one_line;
use cuinstr::site::{Form, Site, SiteMap};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: [&str; 5] = ["place", "kind", "poll", "function", "id"];

/// A table with one row for each site, under a line that names the file.
pub(crate) fn table(path: &str, site_map: &SiteMap) -> String {
    let sites = &site_map.sites;
    let mut text = format!("{}: {} site{}\n", one_line(path), sites.len(), if sites.len() == 1 { "" } else { "s" });
    if sites.is_empty() {
        return text;
    }
    let rows = sites.iter().map(row).collect::<Vec<_>>();
    let mut widths = HEAD.map(str::len);
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    line(&mut text, &HEAD.map(str::to_owned), widths, "");
    for (cells, note) in &rows {
        line(&mut text, cells, widths, note);
    }
    text
}

/// The site map, where each loop in no cheaper form says why.
pub(crate) fn with_reasons(site_map: &SiteMap, reasons: &BTreeMap<u64, &'static str>) -> SiteMap {
    let mut site_map = site_map.clone();
    for site in &mut site_map.sites {
        let number = u64::from_str_radix(site.id.trim_start_matches("0x"), 16).unwrap_or_default();
        let lacks = match site.form {
            Form::Chunk => "no strip",
            Form::CountDown => "neither strip nor chunk",
            _ => continue,
        };
        site.why = site.why.take().or_else(|| reasons.get(&number).map(|why| format!("{lacks}: {why}")));
    }
    site_map
}

/// What the forms of these sites mean, a line each, under a heading.
pub(crate) fn legend<'a>(sites: impl Iterator<Item = &'a Site>) -> String {
    let forms: BTreeMap<String, &str> = sites.map(|site| (name(&site.form), meaning(site.form))).collect();
    let mut text = String::new();
    if !forms.is_empty() {
        text.push_str("poll, how a site asks whether its thread must stop:\n");
    }
    for (form, meaning) in forms {
        let _ = writeln!(text, "  {form:<11}{meaning}");
    }
    text
}

fn meaning(form: Form) -> &'static str {
    match form {
        Form::Each => "each time a thread comes by",
        Form::CountDown => "when the thread's allowance is used up; each iteration takes from it",
        Form::Strip => "between strips; a strip is as many iterations as surely run, paid for at once",
        Form::Chunk => "between chunks of a constant number of iterations, paid for at once",
        Form::Foldable => "when the loop has run for long; the compiler drops the poll where it knows the trip count",
        Form::Flag => "by one read of a word, without the clock",
        Form::None => "not at all; the reason stands behind",
    }
}

fn row(site: &Site) -> ([String; 5], String) {
    let place = site.file.as_ref().map_or(String::new(), |file| format!("{}:", one_line(file)));
    let cells =
        [format!("{place}{}:{}", site.line, site.column), name(&site.kind), name(&site.form), one_line(&site.function), site.id.clone()];
    let waiver = site.waiver.as_ref().map(|reason| format!("accepted: {reason}"));
    let note = site.why.iter().cloned().chain(waiver).collect::<Vec<_>>().join("; ");
    (cells, one_line(&note))
}

fn line(text: &mut String, cells: &[String; 5], widths: [usize; 5], note: &str) {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let _ = write!(line, "  {cell:width$}");
    }
    if !note.is_empty() {
        let _ = write!(line, "  {note}");
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

/// The name that the value has in the site map.
fn name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuinstr::site::Kind;

    #[test]
    fn columns_line_up() {
        let site = |kind, form, line, why: Option<&str>| Site {
            id: "00f1".to_owned(),
            kind,
            function: "spin".to_owned(),
            file: None,
            line,
            column: 3,
            form,
            why: why.map(str::to_owned),
            waiver: None,
        };
        let sites = vec![site(Kind::RangeFor, Form::CountDown, 12, None), site(Kind::For, Form::None, 7, Some("ends soon"))];
        let site_map = SiteMap {
            version: SiteMap::VERSION,
            file: "k.cu".to_owned(),
            hash: String::new(),
            polls_each: false,
            counts_fuel: false,
            sites,
        };
        assert_eq!(
            table("k.cu", &site_map),
            "k.cu: 2 sites
  place  kind       poll        function  id
  12:3   range-for  count-down  spin      00f1
  7:3    for        none        spin      00f1  ends soon
"
        );
    }
}
