//! `--list`: the site map as a table.

use cuinstr::render::one_line;
use cuinstr::site::{Site, SiteMap};
use serde::Serialize;
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
    use cuinstr::site::{Form, Kind};

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
        let site_map = SiteMap { version: SiteMap::VERSION, file: "k.cu".to_owned(), hash: String::new(), polls_each: false, sites };
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
